//! Reading CLIF and compiling it, as several commands do.

use crate::colours::Label;
use crate::input;
use anyhow::Result;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::compile::{Code, Compiler};
use cranelift_thisgpu::error::Errors;
use std::path::Path;
use thisgpu_filetests::panics;

/// Reads a CLIF file and marks the named functions as kernels.
pub fn read(path: &Path, kernels: &[String]) -> Result<SourceFile> {
    parse(&input::name(path), &input::text(path)?, kernels)
}

/// Reads what can be read of a CLIF file: what is wrong with the rest comes out of [`compile`], with what is wrong with the functions.
pub fn read_partly(path: &Path, kernels: &[String]) -> Result<SourceFile> {
    let mut file = SourceFile::parse_partly(&input::name(path), &input::text(path)?);
    let marked = file.mark_kernels(kernels);
    // A function that is missing may be one that cannot be read.
    if !file.is_partial() {
        marked?;
    }
    Ok(file)
}

/// Reads CLIF text; `name` is its file's.
pub fn parse(name: &str, text: &str, kernels: &[String]) -> Result<SourceFile> {
    let mut file = SourceFile::parse(name, text)?;
    file.mark_kernels(kernels)?;
    Ok(file)
}

/// Compiles all functions of a file on so many threads. A mistake of the compiler is an error like others, and so is a file without functions.
pub fn compile(compiler: &mut Compiler, file: &SourceFile, threads: usize) -> Result<Code> {
    if file.functions.is_empty() && !file.is_partial() {
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

/// Prints an error; each of several begins on a line of its own, the line of the text below it.
pub fn print_error(error: &anyhow::Error) {
    match error.downcast_ref::<Errors>() {
        Some(errors) => {
            for error in errors {
                eprintln!("{} {error}", Label::Error);
                if let Some(excerpt) = error.excerpt() {
                    eprintln!("{excerpt}");
                }
            }
        }
        None => eprintln!("{} {error:#}", Label::Error),
    }
}
