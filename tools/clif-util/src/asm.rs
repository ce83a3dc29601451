//! `clif-util asm FILE.s [--hex | -o OUT]`.

use crate::messages::{self, Several};
use crate::{Outcome, input};
use anyhow::{Context, Result, bail};
use clap::Args;
use cranelift_thisgpu::asm;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Options of `asm`.
#[derive(Args)]
#[command(after_help = "Examples:
  clif-util asm kernel.s               words, one a line
  clif-util asm kernel.s -o kernel.elf an object
  echo 'IADD R0, R1, R2 ;' | clif-util asm -")]
pub struct Options {
    /// Assembly text.
    file: PathBuf,
    /// Print one word a line, 32 hexadecimal digits, most significant first (without -o the default).
    #[arg(long, conflicts_with = "output")]
    hex: bool,
    /// Write an object.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Stop after so many errors, and count the rest.
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::new(messages::FIRST).unwrap_or(NonZeroUsize::MIN))]
    max_errors: NonZeroUsize,
}

impl Options {
    /// Assembles the file.
    pub fn run(self) -> Result<Outcome> {
        if let Some(output) = &self.output {
            input::check_output("-o", output, [&self.file])?;
        }
        let text = input::text(&self.file)?;
        let name = input::name(&self.file);
        let most = self.max_errors.get();
        let assembly = match asm::assemble(&name, &text) {
            Ok(assembly) => assembly,
            Err(errors) => {
                messages::print_diagnostics(&errors, most);
                return Ok(Outcome::Failure);
            }
        };
        messages::print_diagnostics(&assembly.warnings, most);
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
                let error = |error| {
                    format!("{name}: error: {error}; words cannot say that, an object can (-o)")
                };
                bail!(Several(errors.iter().map(error).collect()))
            }
        }
    }
}
