//! A launch as the command line says it: a kernel, its arguments, its grid.

use crate::arguments::{self, Ready};
use crate::build::type_of;
use crate::limits::Limits;
use anyhow::{Result, bail};
use clap::Args;
use thisgpu_build::{Compiled, Device, Grid, Kernel, Launch, SimConfig};

/// What is launched, and how.
#[derive(Args)]
pub struct Target {
    /// Blocks: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "BLOCKS", default_value = "1", value_parser = extents)]
    grid: [u32; 3],
    /// Threads of a block: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "THREADS", default_value = "32", value_parser = extents)]
    block: [u32; 3],
    /// Bytes of dynamic shared memory.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared: u32,
    /// Look for races, reads of what nobody wrote, and barriers that a part of a block reaches.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    limits: Limits,
    /// The kernel.
    pub kernel: Option<String>,
    /// An argument for each parameter: a number; for memory COUNT, COUNT:VALUE, COUNT:ramp, A,B,C or @FILE; for rows
    /// and planes with extents before, 4x3:ramp.
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

impl Target {
    /// The simulator that it runs on.
    pub fn config(&self) -> SimConfig {
        self.limits.config(self.check)
    }

    /// The symbol of the kernel: that of the name, or the only one there is.
    ///
    /// # Errors
    /// No name, and several kernels.
    pub fn symbol(&self, compiled: &Compiled) -> Result<String> {
        let kernels = &compiled.description().kernels;
        match (&self.kernel, kernels.as_slice()) {
            (Some(name), _) => Ok(name.clone()),
            (None, [only]) => Ok(only.name.clone()),
            (None, _) => {
                let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
                bail!("which kernel? there are {}", names.join(", "));
            }
        }
    }

    /// The arguments, in memory of the device.
    ///
    /// # Errors
    /// Others than the kernel takes.
    pub fn arguments(&self, device: &Device, kernel: &Kernel) -> Result<Vec<Ready>> {
        let parameters = &kernel.description().parameters;
        if parameters.len() != self.arguments.len() {
            let wanted: Vec<String> = parameters
                .iter()
                .map(|parameter| format!("{}: {}", parameter.name, type_of(parameter)))
                .collect();
            bail!(
                "kernel `{}` takes {} arguments ({}), {} given",
                kernel.description().name,
                parameters.len(),
                wanted.join(", "),
                self.arguments.len()
            );
        }
        let arguments = parameters
            .iter()
            .zip(&self.arguments)
            .map(|(parameter, text)| arguments::read(device, parameter, text));
        arguments.collect()
    }

    /// The launch.
    ///
    /// # Errors
    /// Arguments that cannot be passed.
    pub fn launch<'k>(&self, kernel: &'k Kernel, arguments: &mut [Ready]) -> Result<Launch<'k>> {
        let parameters = &kernel.description().parameters;
        let grid = Grid::new(self.grid, self.block);
        let mut launch = kernel.launch(grid).shared(self.shared);
        for (parameter, argument) in parameters.iter().zip(arguments) {
            launch = arguments::pass(launch, parameter, argument)?;
        }
        Ok(launch)
    }
}
