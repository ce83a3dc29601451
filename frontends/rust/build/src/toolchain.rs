//! Which rustc compiles the kernels.

use crate::environment;
use crate::error::Error;
use std::ffi::OsString;

/// The version whose LLVM the flags of [`thisgpu_llvm::flags`] are made for, as rustup calls it.
pub const VERSION: &str = "1.95.0";

/// How all versions with that LLVM begin.
const MINOR: &str = "1.95.";

/// What `rustc -vV` says.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The host's triple: what kernels are compiled for.
    pub host: String,
    /// All of it, which is part of what a result depends on.
    pub verbose: String,
}

/// Asks the toolchain that would compile, and refuses other versions.
pub fn find(name: Option<&str>) -> Result<Toolchain, Error> {
    let program = rustc(name);
    let output = environment::command(&program, name)
        .arg("-vV")
        .output()
        .map_err(|error| Error::Program {
            program: program.to_string_lossy().into_owned(),
            error,
        })?;
    let verbose = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = verbose.lines().next().unwrap_or_default().to_string();
    let is_wanted = first
        .strip_prefix("rustc ")
        .is_some_and(|rest| rest.starts_with(MINOR));
    let is_stable = !first.contains("nightly") && !first.contains("beta");
    match verbose.lines().find_map(|line| line.strip_prefix("host: ")) {
        Some(host) if is_wanted && is_stable => Ok(Toolchain {
            host: host.to_string(),
            verbose,
        }),
        _ => Err(Error::Toolchain {
            wanted: VERSION,
            found: if first.is_empty() {
                String::from_utf8_lossy(&output.stderr).trim().to_string()
            } else {
                first
            },
        }),
    }
}

/// The compiler: cargo's choice inside of a build script, unless a toolchain is named.
pub fn rustc(name: Option<&str>) -> OsString {
    let chosen = if name.is_none() {
        std::env::var_os("RUSTC")
    } else {
        None
    };
    chosen.unwrap_or_else(|| "rustc".into())
}

/// Cargo, by the same rule.
pub fn cargo(name: Option<&str>) -> OsString {
    let chosen = if name.is_none() {
        std::env::var_os("CARGO")
    } else {
        None
    };
    chosen.unwrap_or_else(|| "cargo".into())
}
