//! `clif-util debug FILES --kernel NAME`: a kernel stopped, looked into, and run backwards.
//!
//! Compiles with locations and hands the launch to the debugger ([`thisgpu_debugger`]).

use crate::launch::{Target, Texts};
use crate::{Outcome, input};
use anyhow::Result;
use clap::Args;
use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::settings::Options as Settings;
use cranelift_thisgpu::sim::SimConfig;
use thisgpu_debugger::{Debugger, Sources};

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
    #[command(flatten)]
    commands: thisgpu_debugger::Commands,
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
        let debugger = Debugger::new(session, device, Sources::of_texts(texts));
        self.commands
            .run(debugger, |line| input::print_line(line))?;
        Ok(Outcome::Success)
    }
}
