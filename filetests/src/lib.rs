//! Runs `.clif` test files for the thisgpu target.
//!
//! A file begins with a header: `test KIND` lines, `set NAME=VALUE`, `target thisgpu NAME=VALUE`. The kinds are `run` ([`execute`]),
//! `interpret` ([`interpret`]), `compile` and `pass` ([`compiled`]) and those of [`checks`]. With `precise-output` the expected lines
//! stand in comments after each function and can be rewritten ([`expectation`]). [`file`](mod@file) reads the header and
//! puts the outcome into a [`report`]. [`operations`] says what there is to test. Files made for other targets can be forced onto this one ([`applicability`]). The kernels of
//! `filetests/kernels` have launches and references besides ([`kernels`]).

pub mod applicability;
pub mod checks;
pub mod compiled;
pub mod execute;
pub mod expectation;
pub mod file;
pub mod interpret;
pub mod kernels;
pub mod operations;
pub mod panics;
pub mod program;
pub mod reduce;
pub mod report;
pub mod trampoline;

use std::path::{Path, PathBuf};

/// The `.clif` files at `path`: itself, or all below it, sorted.
///
/// # Errors
/// When a directory cannot be read.
pub fn find_files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(find_files(&path)?);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "clif")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
