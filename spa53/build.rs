//! Generates the tables of SPA 5.3 from `description`.

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
    let description = root.join("description");
    println!("cargo::rerun-if-changed={}", description.display());
    let mut sources = isagen::source::SourceMap::default();
    for file in isagen::description_files(&description).map_err(|e| e.to_string())? {
        let text =
            std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file);
        sources.add(name.display().to_string(), text);
    }
    let machine = isagen::load(&sources).map_err(|errors| {
        let lines = errors
            .iter()
            .map(|e| isagen::diagnostic::plain(e, &sources));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    let [set] = &machine.unencoded[..] else {
        return Err(format!(
            "{} is of one instruction set",
            description.display()
        ));
    };
    let tables = out.join("spa53.rs");
    std::fs::write(&tables, isagen::unencoded::generate::rust(set))
        .map_err(|e| format!("{}: {e}", tables.display()))
}
