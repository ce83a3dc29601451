//! Operations that no machine sequence is worth having for, rewritten in CLIF: after the mid-end, before the analyses.
//!
//! - [`wide`]: division, remainder and high products of 128 bits. Division becomes a loop, so blocks are added.
//! - [`bytes`]: operations on lanes of 8 and 16 bits that can be done on whole words.
//! - [`lanes`]: operations on vectors whose lanes the machine treats one at a time. They become the scalar operation on
//!   each lane.
//!
//! What is left has a lowering rule, or is unsupported and says so there. Shapes over 128 bits are left alone.

mod bytes;
mod known;
mod lanes;
mod wide;

use super::contents::Contents;
use crate::values::tracking::Tracking;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, Inst, Opcode, Value};

/// What became of an instruction.
enum Expansion {
    /// It stays.
    None,
    /// This value takes the place of its result.
    Value(Value),
    /// As before, and the block was split before it.
    Split(Value),
}

/// Rewrites what needs it; true if blocks were added. Aliases are resolved in the end.
pub fn legalize(func: &mut Function, contents: &Contents, tracking: &Tracking) -> bool {
    // `blendv` of scalars is the one operation on other types.
    if !contents.has_vectors() && !contents.has_wide_integers() && !contents.has(&[Opcode::Blendv])
    {
        return false;
    }
    let (mut changed, mut split) = (false, false);
    let mut insts: Vec<Inst> = Vec::new();
    let mut next_block = func.layout.entry_block();
    while let Some(mut block) = next_block {
        next_block = func.layout.next_block(block);
        insts.clear();
        insts.extend(func.layout.block_insts(block));
        let mut alone = false;
        for (index, &inst) in insts.iter().enumerate() {
            if alone {
                func.layout.append_inst(inst, block);
            }
            let location = func.srcloc(inst);
            let mut pos = FuncCursor::new(func).at_inst(inst).with_srcloc(location);
            let value = match expand(&mut pos, inst) {
                Expansion::None => continue,
                Expansion::Value(value) => value,
                Expansion::Split(value) => {
                    split = true;
                    value
                }
            };
            changed = true;
            // Those behind go where this one is now, one by one. What is inserted before the last instruction of a
            // block costs the same however much it is; with others behind it those would have to be numbered again and
            // again.
            block = func.layout.inst_block(inst).unwrap_or(block);
            replace(func, inst, value);
            if !std::mem::replace(&mut alone, true) {
                let behind = &insts[index + 1..];
                behind
                    .iter()
                    .for_each(|&inst| func.layout.remove_inst(inst));
            }
        }
    }
    if changed {
        tracking.resolve(func);
    }
    split
}

fn expand(pos: &mut FuncCursor<'_>, inst: Inst) -> Expansion {
    if let Some(expansion) = wide::expand(pos, inst) {
        return expansion;
    }
    match lanes::expand(pos, inst) {
        Some(value) => Expansion::Value(value),
        None => Expansion::None,
    }
}

/// Makes the result of `inst` an alias of `value` and removes it.
fn replace(func: &mut Function, inst: Inst, value: Value) {
    let result = func.dfg.first_result(inst);
    func.dfg.clear_results(inst);
    func.dfg.change_to_alias(result, value);
    func.layout.remove_inst(inst);
}

#[cfg(test)]
mod tests;
