//! Options that several commands have.

use crate::messages::Usage;
use crate::source;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use cranelift_thisgpu::compile::{Pass, SourceFile};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::unstable::text::did_you_mean;
use std::path::PathBuf;
use thisgpu_filetests::file::{self, TARGET};

/// `--set`.
#[derive(Args)]
pub struct Settings {
    /// A setting, over those of the file.
    #[arg(long = "set", value_name = "K=V", value_parser = parse_setting)]
    pub settings: Vec<String>,
}

/// A setting as it is written. It is looked at before any file is.
pub fn parse_setting(text: &str) -> Result<String, String> {
    match Options::default().set(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Settings {
    /// The settings of a file's header, and these over them.
    pub fn over(&self, file: &SourceFile) -> Result<Options> {
        file::settings_of(file, &self.settings, true).map_err(anyhow::Error::msg)
    }
}

/// A file for the compiler: `FILE TARGET --set K=V`.
#[derive(Args)]
pub struct Subject {
    /// A CLIF file.
    file: PathBuf,
    /// The target.
    #[arg(value_parser = [TARGET])]
    target: String,
    #[command(flatten)]
    settings: Settings,
}

impl Subject {
    /// The file, and the settings to compile it with.
    pub fn read(&self) -> Result<(SourceFile, Options)> {
        let file = source::read(&self.file, &[])?;
        let settings = self.settings.over(&file)?;
        Ok((file, settings))
    }

    /// The file with a function marked as a kernel, and what its header and the command line set, one by one.
    pub fn marked(&self, kernel: &str) -> Result<(SourceFile, Vec<String>)> {
        let file = source::read(&self.file, &[kernel.to_owned()])?;
        // Before anything is tried.
        self.settings.over(&file)?;
        let target = file::target_line(&file).map(|line| &line.words[1..]);
        let of_file = file.header.settings.iter().flat_map(|line| &line.words);
        let all = of_file
            .chain(target.unwrap_or_default())
            .chain(&self.settings.settings);
        let settings = all.cloned().collect();
        Ok((file, settings))
    }
}

/// `-d`.
#[derive(Args)]
pub struct DebugOutput {
    /// Print debug output of the compiler on standard error, as RUST_LOG=debug does.
    #[arg(short, long)]
    pub debug: bool,
}

/// A pass by its name.
pub fn parse_pass(text: &str) -> Result<Pass, String> {
    let names = Pass::ALL.map(Pass::name);
    Pass::from_name(text).ok_or_else(|| {
        let known = names.join(", ");
        format!("passes are {known}{}", did_you_mean(text, names))
    })
}

/// A pass that may be left out, by its name.
pub fn parse_optional_pass(text: &str) -> Result<Pass, String> {
    let pass = parse_pass(text)?;
    pass.check_optional().map(|()| pass)
}

/// A file's target where the command line has none: its header has to name it.
///
/// # Errors
/// [`Usage`].
pub fn check_header_target(file: &SourceFile) -> Result<()> {
    if file::target_line(file).is_some() {
        return Ok(());
    }
    let place = match file.header.targets.first() {
        Some(line) => format!(
            "{}:{}: the file is for {}",
            file.name,
            line.line,
            line.words.join(" ")
        ),
        None => format!("{}: the file names no target", file.name),
    };
    bail!(Usage(format!("{place}; write --target {TARGET}")));
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}
