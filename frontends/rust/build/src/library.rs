//! The bodies of `core` and `alloc`, and what they need on the device.
//!
//! A crate's LLVM IR has what is generic or inline of `core` and `alloc`; all else is a declaration. The bodies are in
//! rustc's own distribution, as LLVM's bitcode beside the machine code of the standard library, so that programs can be
//! optimised as a whole (`-C lto`). So a library that uses all of it, linked by rustc that way, is all bodies as one
//! module of LLVM IR: real ones, compiled from the real sources, of the version that the crates were compiled with.
//! LLVM runs no passes over it, for the distribution's have run.
//!
//! What the library adds is `library/lib.rs`: the message of a panic, and a heap.
//!
//! A crate that links `std` may name instances of generic functions that `std` or what it depends on has made. They
//! come from a second library, the same of all of `std`, which is looked at only if a symbol is still missing. What
//! calls the host's system has no body there either.

use crate::cache::Cache;
use crate::environment;
use crate::error::Error;
use crate::toolchain::{self, Toolchain};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use thisgpu_llvm::{Module, Panics, Program};

/// A crate and its source.
type Source = (&'static str, &'static str);

/// What the device adds, which is optimised.
const RUNTIME: Source = ("thisgpu_runtime", include_str!("../library/lib.rs"));
/// What is linked with `core` and `alloc`, without passes.
const CORE: Source = (
    "thisgpu_core",
    "#![no_std]\nextern crate thisgpu_runtime;\n",
);
/// What is linked with `std`.
const STD: Source = ("thisgpu_std", "extern crate alloc;\n");

/// How the symbols end of what the runtime does, which `std` does for the host.
const RUNTIME_SYMBOLS: &[&str] = &[
    "___rust_alloc",
    "___rust_dealloc",
    "___rust_realloc",
    "___rust_alloc_zeroed",
    "rust_begin_unwind",
];

/// Flags of all.
const COMMON: &[&str] = &[
    "--edition=2024",
    "-Cpanic=abort",
    "-Cdebuginfo=1",
    "-Crelocation-model=static",
    "-Cforce-unwind-tables=no",
    "-Csymbol-mangling-version=v0",
    "-Ccodegen-units=1",
];

/// The libraries of a toolchain, which are made once and kept in a folder.
pub struct Libraries<'a> {
    /// The toolchain.
    pub toolchain: &'a Toolchain,
    /// Its name, if it is not the one that cargo runs with.
    pub name: Option<&'a str>,
    /// Where cargo builds.
    pub target: &'a Path,
}

impl Libraries<'_> {
    /// A program with the bodies that it lacks.
    ///
    /// # Errors
    /// A compiler that fails; files that cannot be written or read.
    pub fn add_to(&self, mut program: Program, panics: Panics) -> Result<Program, Error> {
        // What an instance of `std` needs of the runtime is the device's.
        for source in [CORE, STD, CORE] {
            let wanted = program.undefined(panics);
            if wanted.is_empty() {
                break;
            }
            let text = self.text(source)?;
            let module = Module::parse_part(source.0, &text, wanted.iter().copied());
            let mut module = module.map_err(|error| Error::Translation(vec![error]))?;
            if source == STD {
                module.forget(|symbol| RUNTIME_SYMBOLS.iter().any(|end| symbol.ends_with(end)));
            }
            program = program.with_library(module);
        }
        Ok(program.with_panics(panics))
    }

    /// The text of a library. What is there is whole, since it got its name last.
    fn text(&self, source: Source) -> Result<String, Error> {
        let mut hasher = DefaultHasher::new();
        (&self.toolchain.verbose, RUNTIME, CORE, STD, COMMON).hash(&mut hasher);
        let folder = self
            .target
            .join(format!("library-{:016x}", hasher.finish()));
        let _lock = Cache::new(&folder).lock()?;
        let text = folder.join(format!("{}.ll", source.0));
        if !text.exists() {
            if source == CORE {
                self.compile(&folder, RUNTIME, &["--crate-type=rlib", "-Copt-level=3"])?;
            }
            let unfinished = folder.join(format!("{}.new", source.0));
            let emit = format!("--emit=llvm-ir={}", unfinished.display());
            let whole = [
                "--crate-type=staticlib",
                "-Clto=fat",
                "-Copt-level=0",
                &emit,
                "--emit=link",
                "-L.",
            ];
            self.compile(&folder, source, &whole)?;
            // Only its text is wanted.
            let _ = fs::remove_file(folder.join(format!("lib{}.a", source.0)));
            fs::rename(&unfinished, &text).map_err(Error::file(&text))?;
        }
        fs::read_to_string(&text).map_err(Error::file(&text))
    }

    /// Compiles a crate in a folder.
    fn compile(&self, folder: &Path, (name, text): Source, flags: &[&str]) -> Result<(), Error> {
        let source = PathBuf::from(format!("{name}.rs"));
        let path = folder.join(&source);
        fs::write(&path, text).map_err(Error::file(&path))?;
        let program = toolchain::rustc(self.name);
        let output = environment::command(&program, self.name)
            .current_dir(folder)
            .args(COMMON)
            .args(flags)
            .arg(format!("--remap-path-prefix={}=thisgpu", folder.display()))
            .arg(source)
            .output()
            .map_err(|error| Error::Program {
                program: program.to_string_lossy().into_owned(),
                error,
            })?;
        match output.status.success() {
            true => Ok(()),
            false => Err(Error::Unexpected(format!(
                "rustc could not compile the bodies of the standard library: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            ))),
        }
    }
}
