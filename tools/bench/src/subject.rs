//! This compiler in one of the settings that are compared.

use crate::quietly;
use anyhow::Result;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::compile::{Compiler, FunctionInput, Unit};
use cranelift_thisgpu::settings::Options;
use std::time::{Duration, Instant};

/// A compiler whose memory is reused from one function to the next, both verifiers off.
pub struct Subject {
    /// What makes it differ from the others, as given.
    pub label: String,
    options: Options,
    compiler: Compiler,
}

/// Why a function has no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not supported.
    Error,
    /// The compiler panicked.
    Panic,
}

/// The `common` settings and those of `variant`, joined by `+`, with both verifiers off; an empty variant changes
/// nothing.
///
/// # Errors
/// An unknown setting or value.
pub fn options(common: &[String], variant: &str) -> Result<Options> {
    let mut options = Options::default();
    let special = variant.split('+').filter(|setting| !setting.is_empty());
    for setting in common.iter().map(String::as_str).chain(special) {
        options.set(setting)?;
    }
    options.verify = false;
    options.enable_verifier = false;
    Ok(options)
}

impl Subject {
    /// A compiler with these [`options`].
    ///
    /// # Errors
    /// An unknown setting or value.
    pub fn new(common: &[String], variant: &str) -> Result<Self> {
        let options = options(common, variant)?;
        let label = if variant.is_empty() {
            "thisgpu".to_owned()
        } else {
            variant.to_owned()
        };
        Ok(Self {
            label,
            compiler: Compiler::new(options.clone()),
            options,
        })
    }

    /// The compiler itself.
    pub fn compiler(&mut self) -> &mut Compiler {
        &mut self.compiler
    }

    /// A unit that knows the functions of a file, as [`Compiler::file`] makes it, and how long that took.
    pub fn announce(file: &SourceFile) -> (Unit, Duration) {
        let start = Instant::now();
        let mut unit = Unit::new();
        unit.announce_file(file);
        (unit, start.elapsed())
    }

    /// Compiles a function into `unit` and says how long it took.
    ///
    /// # Errors
    /// Why it did not; after a panic the compiler begins anew.
    pub fn compile(
        &mut self,
        input: &FunctionInput<'_>,
        unit: &mut Unit,
    ) -> Result<Duration, Refusal> {
        let compiler = &mut self.compiler;
        let start = Instant::now();
        let compiled = quietly(|| compiler.compile_function(input, unit).is_ok());
        let time = start.elapsed();
        match compiled {
            Some(true) => Ok(time),
            Some(false) => Err(Refusal::Error),
            None => {
                self.compiler = Compiler::new(self.options.clone());
                Err(Refusal::Panic)
            }
        }
    }
}
