//! `clif-util completions SHELL` and `clif-util man [DIR]`: what shells and `man` want to know of the commands, made of
//! their definitions.

use crate::{Outcome, input};
use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use std::path::{Path, PathBuf};

/// Options of `completions`.
#[derive(Args)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

/// Options of `man`.
#[derive(Args)]
pub struct Pages {
    /// Write a page for each command into this folder, not only that of the whole to standard output.
    directory: Option<PathBuf>,
}

impl Completions {
    /// Prints the script that the shell sources.
    pub fn run(&self, mut command: Command) -> Result<Outcome> {
        let name = command.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        input::write(Path::new("-"), &script)?;
        Ok(Outcome::Success)
    }
}

impl Pages {
    /// Prints the page, or writes all.
    pub fn run(&self, command: Command) -> Result<Outcome> {
        match &self.directory {
            Some(directory) => {
                let cannot = || format!("cannot write into {}", directory.display());
                std::fs::create_dir_all(directory).with_context(cannot)?;
                clap_mangen::generate_to(command, directory).with_context(cannot)?;
            }
            None => {
                let mut page = Vec::new();
                // As among the pages of all commands, where `help` has none.
                Man::new(command.disable_help_subcommand(true)).render(&mut page)?;
                input::write(Path::new("-"), &page)?;
            }
        }
        Ok(Outcome::Success)
    }
}
