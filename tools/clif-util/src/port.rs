//! `clif-util port FILE.s --from spa5.3 [--scratch R40-R47,P5] [-o OUT]`: old assembly carried over.

use crate::messages;
use crate::{Outcome, input};
use anyhow::Result;
use clap::{Args, ValueEnum};
use spa53::port::{self, Scratch};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Options of `port`.
#[derive(Args)]
#[command(after_help = "Examples:
  clif-util port old.s --from spa5.3 -o new.s
  echo 'HMUL2.FTZ R0, R1.F32, R2 &wr=0 ?1 ;' | clif-util port - --from spa5.3")]
pub struct Options {
    /// Assembly text: HSET2, HMUL2 and HMUL2_32I of the old set; the other lines are copied if they assemble.
    file: PathBuf,
    /// The old instruction set.
    #[arg(long, value_name = "ISA")]
    from: Predecessor,
    /// Registers that the text leaves free and that may be overwritten: R40-R47,P5. How many are needed is said where
    /// they do not suffice.
    #[arg(long, value_name = "REGISTERS")]
    scratch: Option<Scratch>,
    /// Write the text there instead of on standard output.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Stop after so many errors, and count the rest.
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::new(messages::FIRST).unwrap_or(NonZeroUsize::MIN))]
    max_errors: NonZeroUsize,
}

/// A set that code is carried over from.
#[derive(Clone, Copy, ValueEnum)]
enum Predecessor {
    /// SPA 5.3.
    #[value(name = "spa5.3")]
    Spa53,
}

impl Options {
    /// Carries the file over.
    pub fn run(self) -> Result<Outcome> {
        if let Some(output) = &self.output {
            input::check_output("-o", output, [&self.file])?;
        }
        let text = input::text(&self.file)?;
        let name = input::name(&self.file);
        let most = self.max_errors.get();
        let scratch = self.scratch.unwrap_or_default();
        let ported = match self.from {
            Predecessor::Spa53 => port::port(&name, &text, &scratch),
        };
        let ported = match ported {
            Ok(ported) => ported,
            Err(errors) => {
                messages::print_diagnostics(&errors, most);
                return Ok(Outcome::Failure);
            }
        };
        messages::print_diagnostics(&ported.warnings, most);
        for (line, text) in &ported.copied {
            messages::say(format_args!("{name}:{line}: note: copied: {text}\n"));
        }
        let output = self.output.as_deref().unwrap_or(Path::new("-"));
        input::write(output, ported.text.as_bytes())?;
        Ok(Outcome::Success)
    }
}
