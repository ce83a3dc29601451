//! What the shims of `fuzz_targets` share. The targets are in [`fuzz::targets`]; those of front ends and of programs
//! are here.

#[cfg(feature = "symbols")]
mod coverage;
pub mod exec;
pub mod texts;

use std::panic::PanicHookInfo;

/// Before the first input: from now on only a panic that leaves the target counts.
///
/// The engine's runtime ends the process at every panic, also at those that are caught: of Cranelift's interpreter,
/// whose known mistakes are answers and no findings. One that is not caught ends it all the same.
pub fn begin() {
    let report = |panic: &PanicHookInfo<'_>| eprintln!("{panic}");
    std::panic::set_hook(Box::new(report));
}
