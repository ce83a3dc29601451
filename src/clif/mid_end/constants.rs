//! Constants numbered without gaps.
//!
//! A new constant gets the number of those there are. Where a text numbers its constants with gaps that number may be
//! taken, which Cranelift's pool of constants asserts against: in the mid-end, in legalisation, wherever one is made.

use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::constant::ConstantPool;
use cranelift_codegen::ir::{Constant, Function, InstructionData};

/// Numbers the constants of `func` from zero on, if they are not.
pub fn renumber(func: &mut Function) {
    let constants = &func.dfg.constants;
    let count = constants.len();
    let is_dense = |(constant, _): (&Constant, _)| constant.index() < count;
    if constants.iter().all(is_dense) {
        return;
    }
    let before = std::mem::replace(&mut func.dfg.constants, ConstantPool::new());
    let insts: Vec<_> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .collect();
    let dfg = &mut func.dfg;
    for inst in insts {
        if let InstructionData::UnaryConst {
            constant_handle, ..
        } = &mut dfg.insts[inst]
        {
            let data = before.get(*constant_handle).clone();
            *constant_handle = dfg.constants.insert(data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_closed() {
        let text = "function %f() -> i32x4, i32x4 {
            const7 = 0x00000001000000020000000300000004
            const9 = 0x00000000000000000000000000000000
            block0:
                v0 = vconst.i32x4 const7
                v1 = vconst.i32x4 const9
                return v0, v1
            }";
        let mut func = cranelift_reader::parse_functions(text).unwrap().remove(0);
        renumber(&mut func);
        let numbers: Vec<usize> = func
            .dfg
            .constants
            .iter()
            .map(|(key, _)| key.index())
            .collect();
        assert_eq!(numbers, [0, 1]);
        crate::clif::verify(&func).unwrap_or_else(|errors| panic!("{errors}\n{func}"));
        let renumbered = func.to_string();
        renumber(&mut func);
        assert_eq!(func.to_string(), renumbered);
    }
}
