//! `clif-util asm FILE.s [--hex | -o OUT]`.

use crate::{Outcome, input};
use anyhow::{Context, Result};
use clap::Args;
use cranelift_thisgpu::asm;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Options of `asm`.
#[derive(Args)]
pub struct Options {
    /// Assembly text.
    file: PathBuf,
    /// Print one word a line, 32 hexadecimal digits, most significant first (without -o the default).
    #[arg(long, conflicts_with = "output")]
    hex: bool,
    /// Write an object.
    #[arg(short, value_name = "OUT")]
    output: Option<PathBuf>,
}

impl Options {
    /// Assembles the file.
    pub fn run(self) -> Result<Outcome> {
        let text = input::text(&self.file)?;
        let name = input::name(&self.file);
        let assembly = match asm::assemble(&name, &text) {
            Ok(assembly) => assembly,
            Err(errors) => {
                eprintln!("{errors}");
                return Ok(Outcome::Failure);
            }
        };
        input::print_warnings(&assembly);
        if let Some(output) = &self.output {
            let bytes = assembly.object.write().with_context(|| name)?;
            input::write(output, &bytes)?;
            return Ok(Outcome::Success);
        }
        match assembly.words() {
            Ok(words) => {
                let mut out = String::with_capacity(words.len() * 33);
                for word in words {
                    writeln!(out, "{word:032x}")?;
                }
                input::write(Path::new("-"), out.as_bytes())?;
                Ok(Outcome::Success)
            }
            Err(errors) => {
                for error in errors {
                    eprintln!("{name}: error: {error}; words cannot say that, an object can (-o)");
                }
                Ok(Outcome::Failure)
            }
        }
    }
}
