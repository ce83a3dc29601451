//! Runs `.clif` test files for the thisgpu target.
//!
//! A file begins with a header: `test KIND` lines, `set NAME=VALUE`, `target thisgpu NAME=VALUE`. The kinds are `run`
//! ([`execute`]), `interpret` ([`interpret`]), `compile` and `pass` ([`compiled`]) and those of [`checks`]. With
//! `precise-output` the expected lines stand in comments after each function and can be rewritten ([`expectation`]).
//! [`file`](mod@file) reads the header and puts the outcome into a [`report`]. [`operations`] says what there is to
//! test. Files made for other targets can be forced onto this one ([`applicability`]). The kernels of
//! `filetests/kernels` have launches and references besides ([`kernels`]). [`stepping`] is a device that makes every
//! launch in the debugger too. [`shard`] divides the work between machines.

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
pub mod report_path;
pub mod shard;
pub mod stepping;
pub mod trampoline;

use std::collections::HashSet;
use std::io::Error;
use std::path::{Path, PathBuf};

/// The `.clif` files at `path`: itself, or all below it, sorted. A folder that links lead to again is looked into once.
///
/// # Errors
/// When a folder cannot be read, with its name.
pub fn find_files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    find_files_with(path, "clif")
}

/// The files with an extension at `path`, as [`find_files`].
///
/// # Errors
/// When a folder cannot be read, with its name.
pub fn find_files_with(path: &Path, extension: &str) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let named =
            |error: Error| Error::new(error.kind(), format!("{}: {error}", folder.display()));
        if !seen.insert(folder.canonicalize().map_err(named)?) {
            continue;
        }
        for entry in std::fs::read_dir(&folder).map_err(named)? {
            let path = entry.map_err(named)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The text that the bytes of a file are; `name` is the file's.
///
/// # Errors
/// The first byte that no text has, with its line.
pub fn text_of(name: &str, bytes: Vec<u8>) -> Result<String, String> {
    let (at, bytes, reason) = match String::from_utf8(bytes) {
        Ok(text) => match text.bytes().position(|byte| byte == 0) {
            None => return Ok(text),
            Some(at) => (at, text.into_bytes(), "no part of a text"),
        },
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            (at, error.into_bytes(), "not UTF-8")
        }
    };
    let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    Err(format!(
        "{name}:{line}: this is no text: byte {at} is {:#04x}, which is {reason}",
        bytes[at]
    ))
}

#[cfg(test)]
mod tests {
    use super::text_of;

    #[test]
    fn what_is_no_text_is_named_with_its_line() {
        assert_eq!(text_of("x", b"a\n\xc3\xa4".to_vec()), Ok("a\nä".to_owned()));
        for (bytes, place) in [(&b"a\nb\xff"[..], "x:2: "), (b"\0\n\0", "x:1: ")] {
            let error = text_of("x", bytes.to_vec()).unwrap_err();
            assert!(error.starts_with(place), "{error}");
        }
    }
}
