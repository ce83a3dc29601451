//! Reading CLIF and compiling it, as several commands do.

use crate::input;
use anyhow::Result;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::compile::{Code, Compiler};
use std::path::Path;
use thisgpu_filetests::panics;

/// Reads a CLIF file and marks the named functions as kernels.
pub fn read(path: &Path, kernels: &[String]) -> Result<SourceFile> {
    parse(&input::name(path), &input::text(path)?, kernels)
}

/// Reads what can be read of a CLIF file: what is wrong with the rest comes out of [`compile`], with what is wrong with
/// the functions.
pub fn read_partly(path: &Path) -> Result<SourceFile> {
    Ok(SourceFile::parse_partly(
        &input::name(path),
        &input::text(path)?,
    ))
}

/// Marks the named functions of some files as kernels; a function may be in any of them.
pub fn mark_kernels(files: &mut [SourceFile], kernels: &[String]) -> Result<()> {
    // A function that is missing may be one that cannot be read.
    let partial = files.iter().any(SourceFile::is_partial);
    for kernel in kernels {
        let marked = files
            .iter_mut()
            .map(|file| file.mark_kernels(std::slice::from_ref(kernel)));
        let missing: Vec<_> = marked.collect::<Vec<_>>();
        if !partial && missing.iter().all(Result::is_err) {
            missing.into_iter().collect::<Result<(), _>>()?;
        }
    }
    Ok(())
}

/// Reads CLIF text; `name` is its file's.
pub fn parse(name: &str, text: &str, kernels: &[String]) -> Result<SourceFile> {
    let mut file = SourceFile::parse(name, text)?;
    file.mark_kernels(kernels)?;
    Ok(file)
}

/// Compiles all functions of a file on so many threads. A mistake of the compiler is an error like others, and so is a
/// file without functions.
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
