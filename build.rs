//! Generates the instruction tables from `src/isa/description`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    match generate(&root, &out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn generate(root: &Path, out: &Path) -> Result<(), String> {
    let description = root.join("src/isa/description");
    println!("cargo::rerun-if-changed={}", description.display());
    let mut sources = isagen::source::SourceMap::default();
    for file in isagen::description_files(&description).map_err(|e| e.to_string())? {
        let text =
            std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let name = file
            .strip_prefix(root)
            .unwrap_or(&file)
            .display()
            .to_string();
        sources.add(name, text);
    }
    let machine = isagen::load(&sources).map_err(|errors| {
        errors
            .iter()
            .map(|e| isagen::diagnostic::render(e, &sources, false))
            .collect::<Vec<_>>()
            .join("\n")
    })?;
    std::fs::write(out.join("isa.rs"), isagen::generate::rust(&machine)).map_err(|e| e.to_string())
}
