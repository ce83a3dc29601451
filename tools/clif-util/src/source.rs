//! Reading CLIF and compiling it, as several commands do.

use crate::input;
use anyhow::Result;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::compile::{Code, Compiler};
use cranelift_thisgpu::error::Errors;
use cranelift_thisgpu::settings::Options;
use std::path::Path;
use thisgpu_filetests::{file, panics};

/// Reads a CLIF file and marks the named functions as kernels.
pub fn read(path: &Path, kernels: &[String]) -> Result<SourceFile> {
    parse(&input::name(path), &input::text(path)?, kernels)
}

/// Reads CLIF text; `name` is its file's.
pub fn parse(name: &str, text: &str, kernels: &[String]) -> Result<SourceFile> {
    let mut file = SourceFile::parse(name, text)?;
    file.mark_kernels(kernels)?;
    Ok(file)
}

/// The settings of the file's header, and those of the command line over them.
pub fn settings(file: &SourceFile, settings: &[String]) -> Result<Options> {
    file::settings_of(file, settings, true).map_err(anyhow::Error::msg)
}

/// Compiles all functions of a file on so many threads. A mistake of the compiler is an error like others, and so is a file without functions.
pub fn compile(compiler: &mut Compiler, file: &SourceFile, threads: usize) -> Result<Code> {
    if file.functions.is_empty() {
        anyhow::bail!("{}: there is no function to compile; write one", file.name);
    }
    match panics::catch(|| compiler.file_on(file, threads)) {
        Ok(compiled) => Ok(compiled?),
        Err(message) => anyhow::bail!(
            "{}: internal error: {message}; please report it with the input",
            file.name
        ),
    }
}

/// Prints an error, each of several on a line of its own.
pub fn print_error(error: &anyhow::Error) {
    match error.downcast_ref::<Errors>() {
        Some(errors) => errors
            .as_slice()
            .iter()
            .for_each(|error| eprintln!("error: {error}")),
        None => eprintln!("error: {error:#}"),
    }
}
