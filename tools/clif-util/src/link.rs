//! `clif-util link FILES -o OUT`: objects to one object whose code has addresses.

use crate::{Outcome, input, messages};
use anyhow::{Context, Result};
use clap::Args;
use cranelift_thisgpu::object::{Linker, Object};
use std::path::PathBuf;

/// Options of `link`.
#[derive(Args)]
pub struct Options {
    /// Objects.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Write to this file.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

impl Options {
    /// Links the objects.
    pub fn run(self) -> Result<Outcome> {
        input::check_inputs(&self.files)?;
        input::check_output("-o", &self.output, &self.files)?;
        let mut linker = Linker::new();
        for file in &self.files {
            let name = input::name(file);
            let object = Object::read(&input::bytes(file)?).with_context(|| name.clone())?;
            linker = linker.add(name, &object);
        }
        let object = match linker.link() {
            Ok(object) => object,
            Err(errors) => {
                messages::print_errors(errors.as_slice());
                return Ok(Outcome::Failure);
            }
        };
        let bytes = (object.write_linked()).with_context(|| input::name(&self.output))?;
        input::write(&self.output, &bytes)?;
        Ok(Outcome::Success)
    }
}
