//! `cargo thisgpu run`: one launch.

use crate::arguments::{self, Ready};
use crate::build::type_of;
use crate::options::Compilation;
use anyhow::{Result, anyhow, bail};
use clap::Args;
use thisgpu_build::{Class, Device, Grid, SimConfig};

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    compilation: Compilation,
    /// Blocks: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "BLOCKS", default_value = "1", value_parser = extents)]
    grid: [u32; 3],
    /// Threads of a block: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "THREADS", default_value = "32", value_parser = extents)]
    block: [u32; 3],
    /// Bytes of dynamic shared memory.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared: u32,
    /// Count cycles.
    #[arg(long)]
    timed: bool,
    /// Look for races, reads of what nobody wrote, and barriers that a part of a block reaches.
    #[arg(long)]
    check: bool,
    /// Instructions that a warp may issue.
    #[arg(long, value_name = "COUNT", default_value_t = SimConfig::default().budget)]
    budget: u64,
    /// Instructions that blocks may issue together without ending.
    #[arg(long, value_name = "COUNT", default_value_t = SimConfig::default().launch_budget)]
    launch_budget: u64,
    /// Elements that are shown of what the kernel may write.
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    show: usize,
    /// The kernel.
    kernel: Option<String>,
    /// An argument for each parameter: a number; for memory COUNT, COUNT:VALUE, COUNT:ramp, A,B,C or @FILE.
    #[arg(allow_negative_numbers = true)]
    arguments: Vec<String>,
}

fn extents(text: &str) -> Result<[u32; 3], String> {
    let mut extents = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("at most three extents".into());
    }
    for (extent, part) in extents.iter_mut().zip(parts) {
        *extent = part
            .trim()
            .parse()
            .map_err(|_| "an extent is a number".to_string())?;
    }
    Ok(extents)
}

impl Options {
    pub fn run(&self) -> Result<()> {
        let compiled = self.compilation.compile(false)?;
        let device = Device::simulator(SimConfig {
            timed: self.timed,
            check: self.check,
            budget: self.budget,
            launch_budget: self.launch_budget,
            ..SimConfig::default()
        });
        let module = compiled.load(&device)?;
        let kernels = &compiled.description().kernels;
        let name = match (&self.kernel, kernels.as_slice()) {
            (Some(name), _) => name.clone(),
            (None, [only]) => only.name.clone(),
            (None, _) => {
                let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
                bail!("which kernel? there are {}", names.join(", "));
            }
        };
        let kernel = module.kernel(&name)?;
        let parameters = &kernel.description().parameters;
        if parameters.len() != self.arguments.len() {
            let wanted: Vec<String> = parameters
                .iter()
                .map(|parameter| format!("{}: {}", parameter.name, type_of(parameter)))
                .collect();
            bail!(
                "kernel `{name}` takes {} arguments ({}), {} given",
                parameters.len(),
                wanted.join(", "),
                self.arguments.len()
            );
        }
        let arguments = parameters
            .iter()
            .zip(&self.arguments)
            .map(|(parameter, text)| arguments::read(&device, parameter, text));
        let mut arguments = arguments.collect::<Result<Vec<_>>>()?;
        let mut launch = kernel
            .launch(Grid::new(self.grid, self.block))
            .shared(self.shared);
        for (parameter, argument) in parameters.iter().zip(&mut arguments) {
            launch = arguments::pass(launch, parameter, argument)?;
        }
        let report = launch.run()?;
        for (parameter, argument) in parameters.iter().zip(&arguments) {
            if let Ready::Memory(buffer) = argument
                && (parameter.class == Class::Disjoint || self.kernel.is_none())
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
