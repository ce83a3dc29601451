//! What the documentation promises of itself: every entry of the errata that something names is in the table, every
//! link and every file that a text names exists, and lists that repeat what the code says are complete.

#[path = "documents/errata.rs"]
mod errata;
#[path = "documents/guide.rs"]
mod guide;
#[path = "documents/links.rs"]
mod links;

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file of the repository.
fn text(path: &str) -> String {
    read(&root().join(path))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files below `folder`, a path in the repository, with one of these extensions, in order of their names.
fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.expect("a folder that can be read").path());
        for path in entries {
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|e| extensions.iter().any(|&wanted| e == wanted))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A path of the repository as messages name it.
fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}
