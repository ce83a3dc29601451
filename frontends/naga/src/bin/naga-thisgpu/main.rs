//! `naga-thisgpu`: compute shaders in WGSL, GLSL and SPIR-V compiled and run on the simulator.
//!
//! The end of a file's name says what is in it: `.wgsl`, `.comp` or `.spv`. Exit status: 0 success, 1 failure of what
//! was asked, 2 a wrong command line.

mod launch;
mod shader;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use cranelift_thisgpu::asm::listing;
use shader::Input;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compute shaders in WGSL, GLSL and SPIR-V for the thisgpu code generator and its simulator.
#[derive(Parser)]
#[command(name = "naga-thisgpu", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile an entry point to assembly text or an object.
    Compile(Compile),
    /// Print an entry point as CLIF, and what a launch must bind.
    Cat(Input),
    /// Run an entry point on the simulator.
    Launch(launch::Launch),
}

#[derive(Args)]
struct Compile {
    #[command(flatten)]
    input: Input,
    /// Write an object here; without this the assembly text is printed.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn main() -> ExitCode {
    let run = match Arguments::parse().command {
        Command::Compile(options) => compile(&options),
        Command::Cat(input) => cat(&input),
        Command::Launch(options) => options.run(),
    };
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compile(options: &Compile) -> Result<()> {
    let compiled = options.input.compile(&options.input.read()?)?;
    match &options.output {
        Some(file) => shader::write(file, &compiled.code.to_elf()?),
        None => {
            let (text, _) = listing((*compiled.code).as_ref());
            shader::print(&text)
        }
    }
}

fn cat(input: &Input) -> Result<()> {
    let translation = input.translate(&input.read()?)?;
    let interface = &translation.interface;
    let [x, y, z] = interface.workgroup_size;
    let mut text = format!(
        "; entry point {}, workgroups of {x}x{y}x{z}\n",
        interface.entry
    );
    for buffer in &interface.buffers {
        text += &format!(
            "; @group({}) @binding({}) {} {:?}, at least {} bytes: parameters {} and {}\n",
            buffer.group,
            buffer.binding,
            buffer.name.as_deref().unwrap_or("_"),
            buffer.access,
            buffer.least_bytes,
            buffer.parameter,
            buffer.parameter + 1
        );
    }
    if interface.immediate_bytes > 0 {
        text += &format!(
            "; {} bytes of immediates: the last parameter\n",
            interface.immediate_bytes
        );
    }
    for object in &translation.data {
        text += &format!(
            "; data %{} of {} bytes\n",
            object.name,
            object.contents.len()
        );
    }
    text += &format!(
        "; kernel shared={}\n{}",
        interface.shared_bytes,
        translation.function.display()
    );
    shader::print(&text)
}
