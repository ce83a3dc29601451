//! Hashes what says what CLIF and words mean, and what the compiler is made of: verdicts are kept as long as what they
//! depend on is the same.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The files and folders, below the repository. Conventions of calls and places of memory are in `abi.rs`.
const SOURCES: [&str; 7] = [
    "src/abi.rs",
    "src/bits.rs",
    "src/isa",
    "src/sim/decode",
    "src/sim/memory/atomic.rs",
    "src/sim/semantics",
    "tools/verify/src",
];

/// What the compiler is made of.
const COMPILER: [&str; 3] = ["Cargo.lock", "isle", "src"];

fn main() {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let root = package
        .ancestors()
        .nth(2)
        .expect("the package lies in tools");
    for (name, sources) in [("MEANING", &SOURCES[..]), ("COMPILER", &COMPILER)] {
        let digits = hash(root, sources);
        println!("cargo::rustc-env=THISGPU_{name}_HASH={digits}");
    }
}

/// A hash of files and folders, with their names.
fn hash(root: &Path, sources: &[&str]) -> String {
    let mut files = Vec::new();
    for source in sources {
        let path = root.join(source);
        println!("cargo::rerun-if-changed={}", path.display());
        list(&path, &mut files);
    }
    files.sort();
    let mut hasher = Sha256::new();
    for file in files {
        let name = file
            .strip_prefix(root)
            .unwrap_or(&file)
            .display()
            .to_string();
        let contents = std::fs::read(&file).expect("a file of the repository");
        for part in [name.replace('\\', "/").as_bytes(), &contents] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    let digits = hasher.finalize();
    digits.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The files of a folder and of those in it, or the file.
fn list(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).expect("a folder of the repository") {
            list(&entry.expect("an entry").path(), files);
        }
    } else {
        files.push(path.to_owned());
    }
}
