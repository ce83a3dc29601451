//! The debugger of kernels: a [`Session`](cranelift_thisgpu::sim::debug::Session) at a prompt, with a script, or behind
//! the Debug Adapter Protocol (`dap`).
//!
//! `clif-util debug` and `cargo thisgpu debug` make the session and hand it over as a [`Debugger`]; [`Commands`] are
//! the command line that both have in common. Prompt, script and protocol call the same session.

#![forbid(unsafe_code)]

mod command;
mod dap;
mod debugger;
mod operand;
mod prompt;
mod sources;
mod text;

pub use debugger::{Debugger, Library};
pub use sources::Sources;

use anyhow::{Context, Result};
use clap::Args;
use std::fs;
use std::io::{IsTerminal, stdin};
use std::path::PathBuf;

/// Makes the session that the arguments of a launch request of the protocol ask for.
pub type Launcher = Box<dyn Fn(&serde_json::Value) -> Result<Debugger>>;

/// Speaks the Debug Adapter Protocol on standard input and output, and makes the session when a client asks for the
/// launch: what an editor starts.
///
/// # Errors
/// When nobody reads the answers.
pub fn run_adapter(launch: Launcher) -> Result<()> {
    dap::as_adapter(launch)
}

/// Prints a line on standard output.
pub type Print = fn(&str) -> Result<()>;

/// Where commands come from.
#[derive(Args, Clone, Debug)]
pub struct Commands {
    /// Commands, one a line, instead of the prompt; # begins a comment; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "dap")]
    script: Option<PathBuf>,
    /// Speak the Debug Adapter Protocol on standard input and output, or on this port of the loopback interface.
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true)]
    dap: Option<Option<u16>>,
}

impl Commands {
    /// Whether standard output belongs to the protocol.
    pub fn speaks_on_standard_output(&self) -> bool {
        self.dap == Some(None)
    }

    /// Debugs until the end.
    ///
    /// # Errors
    /// A script that cannot be read, its first command that cannot be run, with its line; a terminal or connection that
    /// fails.
    pub fn run(self, debugger: Debugger, print: Print) -> Result<()> {
        let from_input = || stdin().lines().map(|line| line.map_err(Into::into));
        match (self.dap, self.script) {
            (Some(None), _) => dap::on_standard_streams(debugger),
            (Some(Some(port)), _) => dap::on_port(debugger, port),
            (None, Some(script)) if script.as_os_str() != "-" => {
                let name = script.display().to_string();
                let text = fs::read_to_string(&script).with_context(|| name.clone())?;
                let lines = text.lines().map(|line| Ok(line.to_owned()));
                prompt::run_script(debugger, lines, print).context(name)
            }
            (None, None) if stdin().is_terminal() => prompt::run(debugger, print),
            (None, _) => prompt::run_script(debugger, from_input(), print),
        }
    }
}
