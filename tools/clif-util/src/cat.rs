//! `clif-util cat FILES` and `clif-util print-cfg FILES`: functions as text and as graphs.

use crate::options::DebugOutput;
use crate::{Outcome, input, source};
use anyhow::Result;
use clap::Args;
use cranelift_codegen::cfg_printer::CFGPrinter;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Options of `cat` and `print-cfg`.
#[derive(Args)]
pub struct Options {
    /// CLIF files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pub debug: DebugOutput,
}

impl Options {
    /// Prints the functions of all files as they were read.
    pub fn cat(self) -> Result<Outcome> {
        self.print(|func, text| write!(text, "{func}"))
    }

    /// Prints their control-flow graphs in dot format.
    pub fn print_cfg(self) -> Result<Outcome> {
        self.print(|func, text| CFGPrinter::new(func).write(text))
    }

    fn print(
        self,
        print: impl Fn(&cranelift_codegen::ir::Function, &mut String) -> std::fmt::Result,
    ) -> Result<Outcome> {
        input::check_inputs(&self.files)?;
        let mut text = String::new();
        for path in &self.files {
            for function in &source::read(path, &[])?.functions {
                if !text.is_empty() {
                    text.push('\n');
                }
                print(&function.func, &mut text)?;
            }
        }
        input::write(Path::new("-"), text.as_bytes())?;
        Ok(Outcome::Success)
    }
}
