//! What all commands that compile have in common.

use anyhow::{Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use thisgpu_build::{Compiled, Kernels, OptLevel};

/// How a crate of kernels is compiled.
#[derive(Args, Clone, Debug)]
pub struct Compilation {
    /// The crate with the kernels [default: this directory, or `kernels` in it]
    #[arg(long = "crate", value_name = "DIR")]
    crate_dir: Option<PathBuf>,
    /// 0 to 3, s or z [default: 3, of `debug` 0].
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    opt_level: Option<OptLevel>,
    /// Compile debug_assert! in.
    #[arg(long)]
    debug_assertions: bool,
    /// Let arithmetic that overflows panic.
    #[arg(long)]
    overflow_checks: bool,
    /// Let a panic say its kind and place alone, which needs no registers and no stack.
    #[arg(long)]
    no_panic_messages: bool,
    /// Features of the crate.
    #[arg(long, value_name = "FEATURES", value_delimiter = ',')]
    features: Vec<String>,
    /// Leave out the crate's default features.
    #[arg(long)]
    no_default_features: bool,
    /// Require Cargo.lock to be up to date.
    #[arg(long)]
    locked: bool,
    /// Do not use the network.
    #[arg(long)]
    offline: bool,
    /// A toolchain as rustup calls it.
    #[arg(long, value_name = "NAME")]
    toolchain: Option<String>,
    /// Where cargo builds.
    #[arg(long, value_name = "DIR")]
    target_dir: Option<PathBuf>,
    /// A setting of the back end, NAME=VALUE.
    #[arg(long = "set", value_name = "SETTING")]
    settings: Vec<String>,
}

/// What a crate is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Run,
    Test,
    Debug,
    DebugTest,
}

impl Purpose {
    fn is_test(self) -> bool {
        matches!(self, Purpose::Test | Purpose::DebugTest)
    }

    fn is_debug(self) -> bool {
        matches!(self, Purpose::Debug | Purpose::DebugTest)
    }
}

/// Settings of the back end with which a debugger shows every variable, and goes from line to line.
const READABLE: [&str; 4] = [
    "opt_level=none",
    "keep_slots=true",
    "reorder=false",
    "if_convert=false",
];

fn level(text: &str) -> Result<OptLevel, String> {
    OptLevel::parse(text).ok_or_else(|| "there are 0, 1, 2, 3, s and z".into())
}

impl Compilation {
    /// The crate's directory: the one named, this one if its manifest names the library of kernels, else `kernels`.
    fn directory(&self) -> Result<PathBuf> {
        if let Some(directory) = &self.crate_dir {
            return Ok(directory.clone());
        }
        let has_kernels = |directory: &Path| {
            let manifest = std::fs::read_to_string(directory.join("Cargo.toml"));
            manifest.is_ok_and(|text| {
                text.lines()
                    .any(|line| line.trim_start().starts_with("thisgpu-gpu"))
            })
        };
        match [".", "kernels"]
            .map(Path::new)
            .into_iter()
            .find(|directory| has_kernels(directory))
        {
            Some(directory) => Ok(directory.into()),
            None => bail!(
                "neither this directory nor `kernels` in it has a Cargo.toml that depends on thisgpu-gpu; name the \
                 crate with `--crate DIR`, or make one with `cargo thisgpu new`"
            ),
        }
    }

    /// Compiles it.
    pub fn compile(&self, purpose: Purpose) -> Result<Compiled> {
        let features: Vec<&str> = self.features.iter().map(String::as_str).collect();
        let mut options = thisgpu_build::Options::default();
        let test = purpose.is_test();
        let level = match self.opt_level {
            Some(level) => level,
            None if purpose.is_debug() => OptLevel::None,
            None => OptLevel::default(),
        };
        if purpose.is_debug() {
            options.value_locations = true;
            if level == OptLevel::None {
                READABLE
                    .iter()
                    .try_for_each(|setting| options.set(setting))?;
            }
        }
        // What is asked for goes before what is meant.
        for setting in &self.settings {
            options.set(setting)?;
        }
        let mut kernels = Kernels::new()
            .crate_dir(self.directory()?)
            .opt_level(level)
            .debug_assertions(self.debug_assertions || test)
            .panic_messages(!self.no_panic_messages)
            .overflow_checks(self.overflow_checks || test)
            .features(&features)
            .locked(self.locked)
            .offline(self.offline)
            .options(options)
            .test(test);
        if self.no_default_features {
            kernels = kernels.no_default_features();
        }
        if let Some(name) = &self.toolchain {
            kernels = kernels.toolchain(name);
        }
        if let Some(directory) = &self.target_dir {
            kernels = kernels.target_dir(directory);
        }
        let compiled = kernels.compile()?;
        for warning in compiled.warnings() {
            eprintln!("warning: {warning}");
        }
        Ok(compiled)
    }
}
