//! Generates the instruction tables from `src/isa/description`, and the lowering rules from `isle/`; hashes what the
//! compiler is made of.

use cranelift_isle::codegen::{CodegenOptions, Prefix};
#[cfg(feature = "cache")]
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    match generate(&root, &out).and_then(|()| hash(&root, &out)) {
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
        let text = read(&file)?;
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
            .map(|e| isagen::diagnostic::plain(e, &sources))
            .collect::<Vec<_>>()
            .join("\n")
    })?;
    write(&out.join("isa.rs"), &isagen::generate::rust(&machine))?;
    write(
        &out.join("reference.md"),
        &isagen::reference::reference(&machine),
    )?;
    write(
        &out.join("modes.rs"),
        &isagen::generate::isle::modes(&machine),
    )?;
    write(
        &out.join("typed.rs"),
        &isagen::generate::typed::rust(&machine),
    )?;
    write(
        &out.join("constructors.isle"),
        &isagen::generate::isle::declarations(&machine),
    )?;
    rules(root, out, &isagen::generate::isle::methods(&machine))
}

/// No cache, no hash.
#[cfg(not(feature = "cache"))]
fn hash(_: &Path, _: &Path) -> Result<(), String> {
    Ok(())
}

/// Sets `THISGPU_BUILD_HASH` to a hash of all sources and of what was generated from them: what it compiles to may
/// differ where they do.
#[cfg(feature = "cache")]
fn hash(root: &Path, out: &Path) -> Result<(), String> {
    let mut files = Vec::new();
    for source in ["src", "isle", "Cargo.toml", "build.rs"] {
        let path = root.join(source);
        println!("cargo::rerun-if-changed={}", path.display());
        list(&path, &mut files).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    list(out, &mut files).map_err(|e| format!("{}: {e}", out.display()))?;
    // Names without the folder, so that the same sources give the same hash everywhere.
    let mut named: Vec<(String, PathBuf)> = Vec::new();
    for file in files {
        let name = file.strip_prefix(out).or_else(|_| file.strip_prefix(root));
        let name = name.unwrap_or(&file).display().to_string();
        named.push((name.replace('\\', "/"), file));
    }
    named.sort();
    let mut hasher = Sha256::new();
    for (name, file) in named {
        let contents = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        for part in [name.as_bytes(), &contents] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    let digits: String = (hasher.finalize().iter())
        .map(|byte| format!("{byte:02x}"))
        .collect();
    println!("cargo::rustc-env=THISGPU_BUILD_HASH={digits}");
    Ok(())
}

/// The files of a folder and of those in it, or the file.
#[cfg(feature = "cache")]
fn list(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            list(&entry?.path(), files)?;
        }
    } else {
        files.push(path.to_owned());
    }
    Ok(())
}

/// Compiles the ISLE rules: of lowering, Cranelift's extractors of CLIF instructions, the machine's constructors, then
/// the rules; of rewriting, Cranelift's terms of CLIF instructions between its own terms and its rules. Overlapping and
/// unreachable rules are errors. `constructors` are the methods behind the machine's.
fn rules(root: &Path, out: &Path, constructors: &str) -> Result<(), String> {
    let isle = root.join("isle");
    println!("cargo::rerun-if-changed={}", isle.display());
    let clif = out.join("clif");
    std::fs::create_dir_all(&clif).map_err(|e| format!("{}: {e}", clif.display()))?;
    cranelift_codegen_meta::generate_isle(&clif).map_err(|e| format!("CLIF extractors: {e:?}"))?;
    let mut files = vec![
        isle.join("prelude.isle"),
        clif.join("clif_lower.isle"),
        clif.join("numerics.isle"),
        out.join("constructors.isle"),
        isle.join("inst.isle"),
    ];
    let directory = isle.join("lower");
    let mut rules: Vec<PathBuf> = std::fs::read_dir(&directory)
        .map_err(|e| format!("{}: {e}", directory.display()))?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "isle"))
        .collect();
    rules.sort();
    files.extend(rules);
    let numerics = clif.join("numerics.isle");
    let both = read(&root.join("src/rules.rs"))?;
    println!(
        "cargo::rerun-if-changed={}",
        root.join("src/rules.rs").display()
    );
    let lowering = Contexts {
        module: "super::rules",
        context: "Lower<'_>",
        methods: constructors,
        functions: &both,
    };
    compile(&files, &numerics, (root, out), "rules", &lowering)?;
    let files = [
        isle.join("clif_prelude.isle"),
        clif.join("clif_opt.isle"),
        numerics.clone(),
        isle.join("clif_opt.isle"),
    ];
    let rewriting = Contexts {
        module: "super::rules",
        context: "Rewriter<'_, '_, '_>",
        methods: "",
        functions: &both,
    };
    compile(&files, &numerics, (root, out), "clif_rules", &rewriting)
}

/// Where compiled rules stand and what implements their context.
struct Contexts<'a> {
    module: &'a str,
    context: &'a str,
    methods: &'a str,
    /// The text of `src/rules.rs`, of which both take functions.
    functions: &'a str,
}

/// Compiles rules to `name`.rs, and writes the implementation of their context beside them. Cranelift has a macro for
/// the methods that its file of numerics declares.
fn compile(
    files: &[PathBuf],
    numerics: &Path,
    (root, out): (&Path, &Path),
    name: &str,
    contexts: &Contexts<'_>,
) -> Result<(), String> {
    // Without the folders of the machine that builds it.
    let prefixes = [(out, "generated/"), (root, "")].map(|(folder, name)| Prefix {
        prefix: format!("{}/", folder.display()),
        name: name.to_owned(),
    });
    let options = CodegenOptions {
        exclude_global_allow_pragmas: true,
        emit_logging: cfg!(feature = "trace-rules"),
        prefixes: prefixes.to_vec(),
        ..Default::default()
    };
    let rules = cranelift_isle::compile::from_files(files, &options).map_err(|e| e.to_string())?;
    let numerics = read(numerics)?;
    let implementation = isagen::generate::context::Implementation {
        rules: &rules,
        module: contexts.module,
        context: contexts.context,
        methods: &format!(
            "{}    cranelift_codegen::isle_numerics_methods!();\n",
            contexts.methods
        ),
        from_macros: (numerics.lines())
            .filter_map(|line| line.strip_prefix("(extern ")?.split(')').next())
            .filter_map(|words| words.split_whitespace().last())
            .collect(),
        functions: ("crate::rules", contexts.functions),
    };
    let implementation = isagen::generate::context::implementation(&implementation)?;
    write(&out.join(format!("{name}_context.rs")), &implementation)?;
    write(&out.join(format!("{name}.rs")), &rules)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
