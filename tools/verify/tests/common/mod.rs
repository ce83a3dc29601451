//! What the tests share: solvers, and functions with their words.

use cranelift_thisgpu::Compiler;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::settings::Options;
use std::time::Duration;
use thisgpu_verify::{Limits, Solvers};

/// Paths and steps that are followed.
pub const LIMITS: Limits = Limits {
    paths: 32,
    steps: 4000,
};

/// The solvers, if there are any: without them nothing is tested, and the test says so.
pub fn solvers() -> Option<Solvers> {
    match Solvers::find(Duration::from_secs(5)) {
        Ok(solvers) => Some(solvers),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// The function `f` of a text, and its words.
pub fn compiled(text: &str) -> (SourceFile, Vec<u128>) {
    let file = SourceFile::parse("f.clif", text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let code = Compiler::new(Options::default()).file(&file);
    let code = code.unwrap_or_else(|e| panic!("{e}\n{text}"));
    let object = code.object().function("f").expect("it is there");
    (file, object.words.clone())
}
