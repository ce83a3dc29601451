//! `clif-util pass FILE TARGET PASSES`: the functions after passes of the compiler, checked by the file's filecheck
//! directives.

use crate::options::{self, DebugOutput, Subject};
use crate::{Outcome, input, messages, source};
use anyhow::Result;
use clap::Args;
use cranelift_thisgpu::compile::{Compiler, Pass};
use std::path::Path;
use thisgpu_filetests::{checks, compiled};

/// Options of `pass`.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    subject: Subject,
    /// Name every function and pass.
    #[arg(short, long)]
    verbose: bool,
    /// Print the time that each pass takes.
    #[arg(short = 'T', long)]
    time_passes: bool,
    #[command(flatten)]
    pub debug: DebugOutput,
    /// The passes after which the functions are printed, in the compiler's order.
    #[arg(required = true, value_parser = options::parse_pass)]
    passes: Vec<Pass>,
}

impl Options {
    /// Prints the functions after each pass and checks the directives on what the last one gives.
    pub fn run(self) -> Result<Outcome> {
        let (file, settings) = self.subject.read()?;
        let mut outcome = Outcome::Success;
        for (index, pass) in self.passes.iter().enumerate() {
            let last = index + 1 == self.passes.len();
            for (function, dump) in file
                .functions
                .iter()
                .zip(compiled::dumps(&file, &settings, *pass, &mut None))
            {
                let text = dump?;
                if self.verbose {
                    input::print_line(format_args!(
                        "; %{} after {}",
                        function.name(),
                        pass.name()
                    ))?;
                }
                input::write(Path::new("-"), format!("{}\n", text.trim_end()).as_bytes())?;
                if let (true, Err(error)) = (last, checks::compare(function, None, &text)) {
                    messages::print_errors(&[format!("{}:{}: {error}", file.name, function.line)]);
                    outcome = Outcome::Failure;
                }
            }
        }
        if self.time_passes {
            let mut compiler = Compiler::new(settings);
            compiler.time_passes(true);
            source::compile(&mut compiler, &file, 1)?;
            messages::report(compiler.timings())?;
        }
        Ok(outcome)
    }
}
