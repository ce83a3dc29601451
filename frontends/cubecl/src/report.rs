//! A line about every launch, for who asks for it.

use crate::compiler::CompiledKernel;
use crate::environment::settings;
use cranelift_thisgpu::{DeviceError, Grid, Report};

/// Writes the line of a launch, also of one that came to no end.
pub fn report(kernel: &CompiledKernel, grid: Grid, outcome: Result<&Report, &DeviceError>) {
    if !settings().has_reports {
        return;
    }
    let name = kernel.name();
    let Ok(compiled) = kernel.code().kernel(name) else {
        return;
    };
    let (failed, did) = match outcome {
        Ok(Report { stats, .. }) => {
            let cycles = match stats.cycles {
                0 => String::new(),
                cycles => format!(" in {cycles} cycles"),
            };
            let ran = stats.warp_instructions;
            ("", format!("; ran {ran} instructions of warps{cycles}"))
        }
        Err(_) => ("failed ", String::new()),
    };
    let needs = compiled.resources();
    eprintln!(
        "{failed}launch {name}: {:?} cubes of {:?} units, {} instructions, {} registers, {} bytes spilled, {} bytes \
         of shared memory{did}",
        grid.blocks,
        grid.threads,
        needs.instructions,
        needs.registers,
        needs.spill_bytes,
        needs.shared_bytes,
    );
}
