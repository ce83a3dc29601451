//! Running the commands from outside.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of its own for a test, removed afterwards.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder; `name` tells tests apart.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("clif-util-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file; its path.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, contents).unwrap();
        path.display().to_string()
    }

    /// The path of a file that need not exist.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The path of a kernel of the filetests.
pub fn kernel(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/kernels");
    root.join(format!("{name}.clif")).display().to_string()
}

/// Runs a command.
pub fn clif_util(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_clif-util"))
        .args(arguments)
        .output()
        .unwrap()
}

/// What a command printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs a command that must succeed; its standard output.
pub fn succeed(arguments: &[&str]) -> String {
    let output = clif_util(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Runs a command that must fail with this status; its standard error.
pub fn fail(status: i32, arguments: &[&str]) -> String {
    let output = clif_util(arguments);
    assert_eq!(
        output.status.code(),
        Some(status),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    text(&output.stderr)
}
