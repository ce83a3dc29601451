//! Reads instruction set descriptions in the notation of the vendor's documents, checks them, and generates the tables
//! the code generator is built on. The notation is described in `docs/description.md`.
//!
//! Pipeline: text → [`source::SourceMap`] → parsed definitions ([`ast`]) → [`model::Machine`] → generated Rust and
//! ISLE, references, checks.

#![warn(missing_docs)]

pub mod ast;
pub mod check;
pub mod definitions;
pub mod diagnostic;
pub mod diff;
pub mod expr;
pub mod generate;
pub mod lexer;
pub mod model;
pub mod outline;
pub mod parser;
pub mod provenance;
pub mod reference;
pub mod resolve;
pub mod source;
pub mod syntax;
pub mod unencoded;

pub use resolve::{EFFECTS, load, load_with_warnings};

/// The description files below `directory`, in the order in which they are read: by path, folders after files.
///
/// # Errors
/// When a folder cannot be listed.
pub fn description_files(directory: &std::path::Path) -> std::io::Result<Vec<std::path::PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        } else if path.extension().is_some_and(|e| e == "isa") {
            files.push(path);
        }
    }
    files.sort();
    folders.sort();
    for folder in folders {
        files.extend(description_files(&folder)?);
    }
    Ok(files)
}
