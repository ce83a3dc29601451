//! `clif-util debug FILES --kernel NAME`: a kernel stopped, looked into, and run backwards.
//!
//! Commands come from a prompt, from a script, or as requests of the Debug Adapter Protocol ([`dap`]). All of them call
//! one [`Session`](cranelift_thisgpu::sim::debug::Session).

mod command;
mod dap;
mod debugger;
mod operand;
mod prompt;

use crate::launch::{Target, Texts};
use crate::{Outcome, input};
use anyhow::{Context, Result};
use clap::Args;
use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::settings::Options as Settings;
use cranelift_thisgpu::sim::SimConfig;
use debugger::Debugger;
use std::io::{IsTerminal, stdin};
use std::path::PathBuf;

/// Options of `debug`.
#[derive(Args)]
#[command(after_help = "Examples:
  clif-util debug k.clif --kernel k --grid 4 --block 64 --arg inout:y.bin
  clif-util debug k.clif --kernel k --grid 4 --block 64 --arg zero:64 --script commands.txt
Commands of the prompt are told by its `help`. Without a terminal they are read from standard input.
Exit status: 0 success, 1 files that cannot be used or a command of a script that fails, 2 a wrong command line.")]
pub struct Options {
    #[command(flatten)]
    target: Target,
    /// Commands, one a line, instead of the prompt; # begins a comment.
    #[arg(long, value_name = "FILE", conflicts_with = "dap")]
    script: Option<PathBuf>,
    /// Speak the Debug Adapter Protocol on standard input and output, or on this port of the loopback interface.
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true)]
    dap: Option<Option<u16>>,
    /// Look for uninitialised reads, races, barriers reached by a part of the block and uniform writes in divergent
    /// code, and stop where one is found.
    #[arg(long)]
    check: bool,
    /// Warp instructions that a warp may issue [default: 16777216].
    #[arg(long, value_name = "N")]
    budget: Option<u64>,
    /// Warp instructions that blocks which have not ended may have issued together [default: 134217728].
    #[arg(long, value_name = "N")]
    launch_budget: Option<u64>,
}

impl Options {
    /// Compiles or reads the files, and debugs the kernel.
    pub fn run(self) -> Result<Outcome> {
        self.target.inputs()?;
        let mut texts = Texts::new();
        let amend = |options: &mut Settings| {
            options.stack_redzones |= self.check;
            options.value_locations = true;
        };
        let object = self.target.object(&amend, &mut texts)?;
        let defaults = SimConfig::default();
        let device = Device::simulator(SimConfig {
            check: self.check,
            budget: self.budget.unwrap_or(defaults.budget),
            launch_budget: self.launch_budget.unwrap_or(defaults.launch_budget),
            ..defaults
        });
        let (kernel, arguments) = self.target.load(&device, &object)?;
        let session = self.target.launch(&kernel, &arguments).debug()?;
        let debugger = Debugger::new(session, device, texts);
        match (self.dap, self.script) {
            (Some(None), _) => dap::on_standard_streams(debugger),
            (Some(Some(port)), _) => dap::on_port(debugger, port),
            (None, Some(script)) => {
                let text = input::text(&script)?;
                prompt::run_script(debugger, text.lines().map(|line| Ok(line.to_owned())))
                    .with_context(|| input::name(&script))
            }
            (None, None) if stdin().is_terminal() => prompt::run(debugger),
            (None, None) => {
                let lines = stdin().lines().map(|line| line.map_err(Into::into));
                prompt::run_script(debugger, lines)
            }
        }
    }
}
