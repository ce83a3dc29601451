//! Programs that are run without what an outer cargo has put into the environment.
//!
//! A build script's variables describe the crate that is built around the kernels: its flags, target, features. None of
//! them is meant for the kernels, and some would make cargo compile them for another target or with flags that move
//! barriers.

use std::ffi::{OsStr, OsString};
use std::process::Command;

/// Variables that are removed, as they are called or by how they begin.
const NAMES: &[&str] = &[
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "RUSTDOCFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_LINKER",
    "RUSTC_BOOTSTRAP",
    "TARGET",
    "HOST",
    "OUT_DIR",
    "OPT_LEVEL",
    "PROFILE",
    "DEBUG",
    "NUM_JOBS",
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_MANIFEST_LINKS",
    "CARGO_CRATE_NAME",
    "CARGO_BIN_NAME",
    "CARGO_PRIMARY_PACKAGE",
    "CARGO_TARGET_DIR",
    "CARGO_TARGET_TMPDIR",
    "CARGO_INCREMENTAL",
];
const BEGINNINGS: &[&str] = &[
    "CARGO_CFG_",
    "CARGO_FEATURE_",
    "CARGO_PKG_",
    "CARGO_BUILD_",
    "CARGO_PROFILE_",
    "CARGO_TARGET_",
    "DEP_",
];

/// A command with the environment cleaned, of a toolchain if one is named.
pub fn command(program: &OsStr, toolchain: Option<&str>) -> Command {
    let mut command = Command::new(program);
    for name in std::env::vars_os().map(|variable| variable.0).filter(leaks) {
        command.env_remove(name);
    }
    // A wrapper out of a configuration file would not know of the IR beside what it keeps.
    for wrapper in ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
        command.env(wrapper, "");
    }
    if let Some(toolchain) = toolchain {
        command.env("RUSTUP_TOOLCHAIN", toolchain);
        for chosen in ["RUSTC", "CARGO", "RUSTDOC"] {
            command.env_remove(chosen);
        }
    }
    command
}

fn leaks(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    NAMES.contains(&name.as_ref())
        || BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_describes_the_outer_crate_is_removed() {
        for name in [
            "RUSTFLAGS",
            "CARGO_FEATURE_STD",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
            "TARGET",
        ] {
            assert!(leaks(&name.into()), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "CARGO_HOME",
            "RUSTUP_HOME",
            "RUSTUP_TOOLCHAIN",
            "CARGO_MAKEFLAGS",
            "CARGO_NET_OFFLINE",
            "CARGO",
            "RUSTC",
        ] {
            assert!(!leaks(&name.into()), "{name}");
        }
    }
}
