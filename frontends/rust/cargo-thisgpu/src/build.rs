//! `cargo thisgpu build`: an object, and a line for each kernel.

use crate::options::{Compilation, Purpose};
use anyhow::{Context, Result};
use clap::Args;
use cranelift_thisgpu::Object;
use std::path::PathBuf;
use thisgpu_build::{Access, Class, Device, Parameter, SimConfig};

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    compilation: Compilation,
    /// Write the object there.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print this instead of the kernels: the CLIF, or the assembly.
    #[arg(long, value_name = "WHAT")]
    emit: Option<Emit>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Emit {
    Clif,
    Asm,
}

impl Options {
    pub fn run(&self) -> Result<()> {
        let compiled = self.compilation.compile(Purpose::Run)?;
        if let Some(path) = &self.output {
            std::fs::write(path, compiled.object()).with_context(|| path.display().to_string())?;
        }
        match self.emit {
            Some(Emit::Clif) => print!("{}", compiled.clif()),
            Some(Emit::Asm) => print!(
                "{}",
                cranelift_thisgpu::asm::listing(&Object::read(compiled.object())?).0
            ),
            None => {
                let module = compiled.load(&Device::simulator(SimConfig::default()))?;
                for kernel in &compiled.description().kernels {
                    let resources = module.kernel(&kernel.symbol)?.driver().resources();
                    let parameters: Vec<String> = kernel
                        .parameters
                        .iter()
                        .map(|parameter| format!("{}: {}", parameter.name, type_of(parameter)))
                        .collect();
                    println!(
                        "{}({}): {} registers, {} bytes of local memory",
                        kernel.name,
                        parameters.join(", "),
                        resources.registers,
                        resources.local_bytes
                    );
                }
            }
        }
        Ok(())
    }
}

/// A parameter's type as its crate writes it, as far as it is known.
pub fn type_of(parameter: &Parameter) -> String {
    let number = match parameter.number.host_type() {
        Some(name) => name.to_string(),
        None => format!("structure of {} bytes", parameter.size),
    };
    match (parameter.class, parameter.access) {
        (Class::Value, _) => number,
        (Class::Slice, Access::Write) => format!("DisjointMut<{number}>"),
        (Class::Plane, Access::Write) => format!("DisjointMut<{number}, Plane>"),
        (Class::Volume, Access::Write) => format!("DisjointMut<{number}, Volume>"),
        (Class::Slice, _) => format!("&[{number}]"),
        (Class::Reference, _) => format!("&{number}"),
        (Class::Plane, _) => format!("View2<{number}>"),
        (Class::Volume, _) => format!("View3<{number}>"),
    }
}
