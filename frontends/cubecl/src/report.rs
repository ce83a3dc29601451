//! A line about every launch, for who asks for it.

use crate::compiler::CompiledKernel;
use crate::environment::settings;
use cranelift_thisgpu::Report;

/// Writes the line of a launch.
pub fn report(kernel: &CompiledKernel, cubes: [u32; 3], units: [u32; 3], report: &Report) {
    if !settings().has_reports {
        return;
    }
    let name = kernel.name();
    let Ok(compiled) = kernel.code().kernel(name) else {
        return;
    };
    let (needs, did) = (compiled.resources(), &report.stats);
    eprintln!(
        "launch {name}: {cubes:?} cubes of {units:?} units, {} instructions, {} registers, {} bytes spilled, {} bytes \
         of shared memory; ran {} instructions of warps{}",
        needs.instructions,
        needs.registers,
        needs.spill_bytes,
        needs.shared_bytes,
        did.warp_instructions,
        match did.cycles {
            0 => String::new(),
            cycles => format!(" in {cycles} cycles"),
        }
    );
}
