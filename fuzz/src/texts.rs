//! Texts of front ends: LLVM IR and WGSL. What comes of them is not looked at.

use cranelift_thisgpu::{KernelOptions, Options};
use thisgpu_llvm::{Kernel, Program};
use thisgpu_naga::{Shader, TranslateOptions};

/// LLVM IR is read, linked, translated and compiled, a function of the name `k` as a kernel.
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
    _ = thisgpu_llvm::translate(&program, &[kernel], &Options::default());
}

/// WGSL is read, and each entry point translated and compiled.
pub fn wgsl(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(shader) = Shader::wgsl("input.wgsl", &text) else {
        return;
    };
    for entry in &shader.module.entry_points {
        if let Ok(translation) = shader.translate(&entry.name, &TranslateOptions::default()) {
            _ = translation.compile(&Options::default());
        }
    }
}
