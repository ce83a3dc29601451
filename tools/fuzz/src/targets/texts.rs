//! Texts: CLIF and assembly.

use cranelift_thisgpu::asm;
use cranelift_thisgpu::compile::{Compiler, SourceFile};
use cranelift_thisgpu::settings::Options;

/// CLIF is read, its run lines too, and compiled as its header says and without optimisation. What comes of it is not
/// looked at.
pub fn clif(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let file = SourceFile::parse_partly("input.clif", &text);
    for function in &file.functions {
        _ = function.run_lines(&file.name);
    }
    let mut options = Options::default();
    for word in file.header.settings.iter().flat_map(|line| &line.words) {
        // What the target does not know is for others.
        _ = options.set(word);
    }
    // Without the verifier a function has to be valid, which nobody knows of these.
    _ = options.set("enable_verifier=true");
    let mut plain = Options::default();
    _ = plain.set("opt_level=none");
    for options in [options, plain] {
        _ = Compiler::new(options).file(&file);
    }
}

/// Assembly is assembled; what it became is listed, and the listing is assembled to the same.
///
/// # Panics
/// When the listing is no assembly, or of something else.
pub fn assembly(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(assembly) = asm::assemble("input.s", &text) else {
        return;
    };
    let (listing, bad) = asm::listing(&assembly.object);
    if !bad.is_empty() {
        return;
    }
    let again = asm::assemble("listing.s", &listing)
        .unwrap_or_else(|error| panic!("a listing is no assembly: {error}\n{listing}"));
    let code = |assembly: &asm::Assembly| -> Vec<(String, Vec<u128>)> {
        let functions = assembly.object.functions.iter();
        functions
            .map(|f| (f.name.clone(), f.words.clone()))
            .collect()
    };
    assert_eq!(code(&assembly), code(&again), "{listing}");
}
