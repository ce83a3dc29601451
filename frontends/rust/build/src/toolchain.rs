//! Which rustc compiles the kernels.

use crate::environment;
use crate::error::Error;
use std::ffi::OsString;

/// The version that all is tested with, as rustup calls it.
pub const VERSION: &str = "1.95.0";

/// How all versions with its LLVM begin.
const MINOR: &str = "1.95.";

/// What `rustc -vV` says.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The host's triple: what kernels are compiled for.
    pub host: String,
    /// All of it, which is part of what a result depends on.
    pub verbose: String,
}

/// Asks the toolchain that would compile.
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
    match verbose.lines().find_map(|line| line.strip_prefix("host: ")) {
        Some(host) => Ok(Toolchain {
            host: host.to_string(),
            verbose,
        }),
        None => Err(Error::Toolchain {
            wanted: VERSION,
            found: String::from_utf8_lossy(&output.stderr).trim().to_string(),
        }),
    }
}

impl Toolchain {
    /// What to tell who compiles with a version that nobody has tested. The flags are options of its LLVM, which are
    /// looked at by their effect: rustc refuses what it does not know, the check of barriers finds what does not act,
    /// and the reader of LLVM IR names what it does not understand.
    pub fn warning(&self) -> Option<String> {
        let first = self.verbose.lines().next().unwrap_or_default();
        let version = first.strip_prefix("rustc ").unwrap_or(first);
        let is_stable = !version.contains("nightly") && !version.contains("beta");
        (!version.starts_with(MINOR) || !is_stable).then(|| {
            format!(
                "kernels are compiled by rustc {version}, which nobody has tested: {VERSION} is tested. Where barriers \
                 are is checked all the same. If something is refused, run `rustup toolchain install {VERSION}` and \
                 put a `rust-toolchain.toml` with `[toolchain]` and `channel = \"{VERSION}\"` beside the crate"
            )
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_tested_is_told() {
        let of = |first: &str| Toolchain {
            host: "host".into(),
            verbose: format!("{first}\nbinary: rustc\n"),
        };
        assert_eq!(of("rustc 1.95.0 (abc 2026-01-01)").warning(), None);
        assert_eq!(of("rustc 1.95.1 (abc 2026-01-01)").warning(), None);
        for other in [
            "1.94.0 (abc)",
            "1.95.0-beta.3 (abc)",
            "1.95.0-nightly (abc)",
            "1.950.0",
            "",
        ] {
            let told = of(&format!("rustc {other}")).warning().expect("a warning");
            assert!(told.contains(other) && told.contains(VERSION), "{told}");
        }
    }
}
