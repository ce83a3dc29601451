//! Which code `exec` runs.

use cranelift_thisgpu::asm::Assembly;
use cranelift_thisgpu::unstable::isa::decode;
use cranelift_thisgpu::unstable::isa::table::{Effects, OptypeInfo};

/// Why an operation does not belong into straight-line code without memory.
fn reason(optype: &OptypeInfo) -> Option<&'static str> {
    let effects = optype.effects;
    let control = [
        Effects::BRANCH,
        Effects::CALL,
        Effects::RETURN,
        Effects::EXIT,
        Effects::TRAP,
        Effects::CONVERGENCE,
        Effects::BARRIER,
    ];
    if control.iter().any(|e| effects.contains(*e)) {
        return Some("a control instruction");
    }
    let memory = [Effects::LOAD, Effects::STORE, Effects::ATOMIC];
    // A state has constants.
    let constant = effects.contains(Effects::CONSTANT);
    (memory.iter().any(|e| effects.contains(*e)) && !constant).then_some("a memory instruction")
}

/// What in assembly does not belong into straight-line code, and why.
pub fn refused(name: &str, assembly: &Assembly) -> Vec<String> {
    let mut refused = Vec::new();
    for (function, lines) in assembly.object.functions.iter().zip(&assembly.lines) {
        for (word, line) in function.words.iter().zip(lines) {
            let Ok((inst, _)) = decode(*word) else {
                continue;
            };
            if let Some(reason) = reason(inst.optype().info()) {
                let mnemonic = inst.optype().info().mnemonic;
                refused.push(format!(
                    "{name}:{line}: error: {mnemonic} is {reason}; exec runs straight-line code without memory"
                ));
            }
        }
    }
    refused
}
