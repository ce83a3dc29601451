//! `cargo thisgpu new`: files to begin with.

use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    /// The directory to make.
    path: PathBuf,
    /// A crate of kernels alone, without a program around it.
    #[arg(long)]
    lib: bool,
}

const PROGRAM_MANIFEST: &str = include_str!("../template/Cargo.toml.in");
const PROGRAM: &str = include_str!("../template/src/main.rs");
const BUILD_SCRIPT: &str = include_str!("../template/build.rs");
const TOOLCHAIN: &str = include_str!("../template/rust-toolchain.toml");
const KERNELS_MANIFEST: &str = include_str!("../template/kernels/Cargo.toml.in");
const KERNELS: &str = include_str!("../template/kernels/src/lib.rs");
const LAUNCHES: &str = include_str!("../template/vscode/launch.json");
const EXTENSION: &str = include_str!("../template/vscode/package.json");

impl Options {
    pub fn run(&self) -> Result<()> {
        let name = self
            .path
            .file_name()
            .and_then(|name| name.to_str())
            .context("the directory has no name")?;
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if !is_name {
            bail!("`{name}` cannot be the name of a package: letters, digits, `-` and `_`");
        }
        if self.path.exists() {
            bail!("{} exists", self.path.display());
        }
        let ignored = "/target\n/kernels/target\n";
        if self.lib {
            write(&self.path, "Cargo.toml", &filled(KERNELS_MANIFEST, name))?;
            write(&self.path, "src/lib.rs", KERNELS)?;
        } else {
            write(&self.path, "Cargo.toml", &filled(PROGRAM_MANIFEST, name))?;
            write(&self.path, "build.rs", BUILD_SCRIPT)?;
            write(&self.path, "src/main.rs", PROGRAM)?;
            write(
                &self.path,
                "kernels/Cargo.toml",
                &filled(KERNELS_MANIFEST, &format!("{name}-kernels")),
            )?;
            write(&self.path, "kernels/src/lib.rs", KERNELS)?;
        }
        write(&self.path, "rust-toolchain.toml", TOOLCHAIN)?;
        write(&self.path, ".gitignore", ignored)?;
        // VS Code offers an extension that stands in the workspace to be installed there.
        write(&self.path, ".vscode/launch.json", LAUNCHES)?;
        write(
            &self.path,
            ".vscode/extensions/thisgpu-debug/package.json",
            EXTENSION,
        )?;
        let path = self.path.display();
        if self.lib {
            println!(
                "Made a crate of kernels in {path}. There: `cargo thisgpu run saxpy 2 8:ramp 8:1`, `cargo thisgpu test`"
            );
        } else {
            println!(
                "Made a program in {path}, its kernels in {path}/kernels. There: `cargo run`, `cargo thisgpu test`"
            );
        }
        Ok(())
    }
}

fn write(root: &Path, file: &str, text: &str) -> Result<()> {
    let path = root.join(file);
    let place = || path.display().to_string();
    fs::create_dir_all(path.parent().unwrap_or(root)).with_context(place)?;
    fs::write(&path, text).with_context(place)
}

/// A manifest with names filled in. The packages are those that this command was built beside, as long as they are
/// there.
fn filled(manifest: &str, name: &str) -> String {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let source = |package: &str| match beside
        .map(|folder| folder.join(package))
        .filter(|folder| folder.is_dir())
    {
        Some(folder) => format!("{{ path = {:?} }}", folder.display().to_string()),
        None => format!("{:?}", env!("CARGO_PKG_VERSION")),
    };
    manifest
        .replace("@NAME@", name)
        .replace("@GPU@", &source("gpu"))
        .replace("@BUILD@", &source("build"))
}
