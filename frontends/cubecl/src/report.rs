//! A line about every launch, for who asks for it.

use crate::compiler::CompiledKernel;
use cranelift_thisgpu::Report;
use std::sync::LazyLock;

/// With this in the environment, every launch writes a line to standard error: kernel, cubes, units, what it needs and
/// what it did.
pub const REPORT_VARIABLE: &str = "CUBECL_THISGPU_REPORT";

static IS_WANTED: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os(REPORT_VARIABLE).is_some_and(|value| value != "0"));

/// Writes the line of a launch.
pub fn report(kernel: &CompiledKernel, cubes: [u32; 3], units: [u32; 3], report: &Report) {
    if !*IS_WANTED {
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
