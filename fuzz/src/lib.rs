//! What the shims of `fuzz_targets` share. The targets are in [`fuzz::targets`]; those of front ends are here.

use cranelift_thisgpu::KernelOptions;
use std::panic::PanicHookInfo;
use thisgpu_llvm::{Kernel, Program};

/// Before the first input: from now on only a panic that leaves the target counts.
///
/// The engine's runtime ends the process at every panic, also at those that are caught: of Cranelift's interpreter,
/// whose known mistakes are answers and no findings. One that is not caught ends it all the same.
pub fn begin() {
    let report = |panic: &PanicHookInfo<'_>| eprintln!("{panic}");
    std::panic::set_hook(Box::new(report));
}

/// LLVM IR is read, linked and translated, a function of the name `k` as a kernel. What comes of it is not looked at.
pub fn llvm(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(module) = thisgpu_llvm::Module::parse("input.ll", &text) else {
        return;
    };
    let Ok(program) = Program::link(vec![module]) else {
        return;
    };
    let kernel = Kernel {
        name: "k".into(),
        options: KernelOptions::default(),
    };
    _ = thisgpu_llvm::clif(&program, &[kernel]);
}
