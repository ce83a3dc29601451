//! `cargo thisgpu run`: one launch.

use crate::arguments::{self, Ready};
use crate::launch::Target;
use crate::options::{Compilation, Purpose};
use anyhow::{Result, anyhow};
use clap::Args;
use thisgpu_build::{Access, Device, SimConfig};

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    compilation: Compilation,
    #[command(flatten)]
    target: Target,
    /// Count cycles.
    #[arg(long)]
    timed: bool,
    /// Elements that are shown of what the kernel may write.
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    show: usize,
}

impl Options {
    pub fn run(&self) -> Result<()> {
        let compiled = self.compilation.compile(Purpose::Run)?;
        let device = Device::simulator(SimConfig {
            timed: self.timed,
            ..self.target.config()
        });
        let module = compiled.load(&device)?;
        let kernel = module.kernel(&self.target.symbol(&compiled)?)?;
        let mut arguments = self.target.arguments(&device, &kernel)?;
        let report = self.target.launch(&kernel, &mut arguments)?.run()?;
        for (parameter, argument) in kernel.description().parameters.iter().zip(&arguments) {
            if let Ready::Memory(buffer, _) = argument
                && (matches!(parameter.access, Access::Write | Access::Atomic)
                    || self.target.kernel.is_none())
            {
                println!(
                    "{}",
                    arguments::show(parameter, &buffer.to_vec()?, self.show)
                );
            }
        }
        let cycles = if self.timed {
            format!(", {} cycles", report.stats.cycles)
        } else {
            String::new()
        };
        println!(
            "{} instructions of threads{cycles}",
            report.stats.thread_instructions
        );
        for hazard in &report.hazards {
            println!("hazard: {hazard}");
        }
        for finding in &report.findings {
            println!("finding: {finding}");
        }
        let findings = report.hazards.len() + report.findings.len();
        if findings > 0 {
            Err(anyhow!("{findings} findings"))
        } else {
            Ok(())
        }
    }
}
