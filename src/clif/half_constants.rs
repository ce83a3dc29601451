//! Minimum and maximum of half-precision constants, which Cranelift's mid-end gets wrong.
//!
//! In Cranelift 0.135 a constant zero of f16 compares equal to every f16 constant that is no NaN, so folding takes `fmin -0.0, -7.75` for -0.0. A
//! function in which the mid-end may come to that is compiled without it. Few functions are: one operand of a minimum or maximum is nearly always a
//! value that nobody knows before.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Inst, Opcode, Value, types};

/// True if the mid-end may compare two f16 constants: those written in the function, and what is computed from constants alone.
pub fn may_be_compared(func: &Function) -> bool {
    let has_halves = |inst: &Inst| {
        let dfg = &func.dfg;
        let args = dfg.inst_args(*inst);
        takes_one_of_two(dfg.insts[*inst].opcode())
            && args.iter().all(|arg| dfg.value_type(*arg) == types::F16)
    };
    let insts = || {
        func.layout
            .blocks()
            .flat_map(|block| func.layout.block_insts(block))
    };
    if !insts().any(|inst| has_halves(&inst)) {
        return false;
    }
    let mut constant: SecondaryMap<Value, bool> = SecondaryMap::new();
    // Blocks may stand in any order: what a round learns may serve an earlier place in the next.
    loop {
        let mut changed = false;
        for inst in insts() {
            let dfg = &func.dfg;
            let opcode = dfg.insts[inst].opcode();
            let known = |arg: &Value| constant[dfg.resolve_aliases(*arg)];
            let pure = !opcode.can_load()
                && !opcode.is_call()
                && !opcode.other_side_effects()
                && opcode != Opcode::StackAddr
                && opcode != Opcode::SymbolValue
                && opcode != Opcode::FuncAddr;
            if !pure || !dfg.inst_args(inst).iter().all(known) {
                continue;
            }
            for &result in dfg.inst_results(inst) {
                changed |= !std::mem::replace(&mut constant[result], true);
            }
        }
        if !changed {
            break;
        }
    }
    insts().any(|inst| {
        let known = |arg: &Value| constant[func.dfg.resolve_aliases(*arg)];
        has_halves(&inst) && func.dfg.inst_args(inst).iter().all(known)
    })
}

fn takes_one_of_two(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Fmin | Opcode::Fmax)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(body: &str) -> bool {
        let text =
            format!("function %f(f16) -> f16 {{\nblock0(v0: f16):\n v1 = f16const 0.0\n{body}\n}}");
        may_be_compared(&cranelift_reader::parse_functions(&text).unwrap()[0])
    }

    #[test]
    fn both_operands_must_be_known() {
        assert!(found("v2 = fadd v1, v1\n v3 = fmin v2, v1\n return v3"));
        assert!(!found("v2 = fadd v0, v1\n v3 = fmin v2, v1\n return v3"));
        assert!(!found("v2 = fadd v1, v1\n return v2"));
    }

    #[test]
    fn cranelift_still_gets_it_wrong() {
        use cranelift_codegen::ir::immediates::Ieee16;
        let (zero, less) = (Ieee16::with_bits(0x8000), Ieee16::with_bits(0xc7c2));
        let least = zero.minimum(less);
        assert_eq!(least.bits(), 0x8000, "it is right now; this module can go");
    }
}
