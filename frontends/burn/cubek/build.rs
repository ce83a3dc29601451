//! Finds the tests of CubeK where cargo has the sources of its packages, and writes the modules that name them.

use serde_json::Value;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The packages that have tests, of the version that the manifest asks for.
const PACKAGES: [&str; 10] = [
    "attention",
    "convolution",
    "fft",
    "interpolate",
    "matmul",
    "pool",
    "quant",
    "random",
    "reduce",
    "tile",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=Cargo.toml");
    let output = Command::new(env::var("CARGO")?)
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
        ])
        .arg(env::var("TARGET")?)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let folder = env::var("OUT_DIR")?;
    for package in PACKAGES {
        let root = tests_of(&metadata, &format!("cubek-{package}"))?;
        let file = Path::new(&folder).join(package).with_extension("rs");
        fs::write(file, modules_of(&root)?)?;
    }
    Ok(())
}

/// The root of a package's tests.
fn tests_of(metadata: &Value, package: &str) -> Result<PathBuf, Box<dyn Error>> {
    let packages = metadata["packages"].as_array().ok_or("no packages")?;
    let found = packages.iter().find(|other| other["name"] == package);
    let manifest = found.and_then(|found| found["manifest_path"].as_str());
    let manifest = manifest.ok_or_else(|| format!("{package} is no dependency"))?;
    Ok(Path::new(manifest).with_file_name("tests").join("lib.rs"))
}

/// The modules that a root declares, with the paths of their files.
fn modules_of(root: &Path) -> Result<String, Box<dyn Error>> {
    let text = fs::read_to_string(root)?;
    let mut modules = String::new();
    // Attributes belong to the module behind them; those of the root are the target's here.
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") {
            modules += line;
            modules.push('\n');
        }
        let declared = line.trim_start_matches("pub ").strip_prefix("mod ");
        let Some(name) = declared.and_then(|rest| rest.strip_suffix(';')) else {
            continue;
        };
        let file = root.with_file_name(format!("{name}.rs"));
        let file = match file.exists() {
            true => file,
            false => root.with_file_name(name).join("mod.rs"),
        };
        modules += &format!("#[path = {file:?}]\npub mod {name};\n");
    }
    Ok(modules)
}
