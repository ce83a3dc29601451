//! Options that several commands have.

use crate::source;
use anyhow::Result;
use clap::{Args, ValueEnum};
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::settings::Options;
use std::path::PathBuf;
use thisgpu_filetests::file::{self, TARGET};

/// `--set`.
#[derive(Args)]
pub struct Settings {
    /// A setting, over those of the file.
    #[arg(long = "set", value_name = "K=V")]
    pub settings: Vec<String>,
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
}

/// `-d`.
#[derive(Args)]
pub struct DebugOutput {
    /// Print debug output of the compiler on standard error, as RUST_LOG=debug does.
    #[arg(short)]
    pub debug: bool,
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}
