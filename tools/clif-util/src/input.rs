//! Files to read and write; `-` is standard input or output.

use crate::colours::Label;
use anyhow::{Context, Result};
use cranelift_thisgpu::asm::Assembly;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use thisgpu_filetests::report::FileReport;

/// The file's name for messages.
pub fn name(path: &Path) -> String {
    if is_standard(path) {
        "<stdin>".to_string()
    } else {
        path.display().to_string()
    }
}

/// Whether the path is `-`.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The contents of a file.
pub fn bytes(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", name(path)))?;
    Ok(bytes)
}

/// The contents of a text file.
pub fn text(path: &Path) -> Result<String> {
    text_of(&name(path), bytes(path)?)
}

/// The text that bytes are; `name` is their file's.
pub fn text_of(name: &str, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).with_context(|| format!("{name} is no text"))
}

/// The file, to be read line by line.
pub fn open(path: &Path) -> Result<BufReader<Box<dyn Read>>> {
    if is_standard(path) {
        let stdin = Box::new(std::io::stdin().lock());
        return Ok(BufReader::with_capacity(1 << 16, stdin));
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 16, Box::new(file)))
}

/// Prints what is suspicious about an assembled text on standard error.
pub fn print_warnings(assembly: &Assembly) {
    if !assembly.warnings.is_empty() {
        eprintln!("{}", assembly.warnings);
    }
}

/// Prints errors on standard error, each on a line of its own.
pub fn print_errors(errors: &[impl Display]) {
    errors
        .iter()
        .for_each(|error| eprintln!("{} {error}", Label::Error));
}

/// Prints a line on standard output.
pub fn print_line(line: impl Display) -> Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}

/// Prints what the run lines of a file print, and what failed.
pub fn print_report(report: &FileReport) -> Result<()> {
    report.prints.iter().try_for_each(print_line)?;
    report
        .errors
        .iter()
        .for_each(|error| eprintln!("{} {error}", Label::Error));
    Ok(())
}

/// Writes a file as a whole or not at all: a failure leaves what was there before.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if is_standard(path) {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        return Ok(out.flush()?);
    }
    let cannot = || format!("cannot write {}", path.display());
    // Devices and pipes are not replaced.
    if std::fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return std::fs::write(path, bytes).with_context(cannot);
    }
    let mut name = path
        .file_name()
        .with_context(|| format!("{} names no file", path.display()))?
        .to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written =
        std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // What cannot be removed was never made.
        let _ = std::fs::remove_file(&temporary);
    }
    written.with_context(cannot)
}
