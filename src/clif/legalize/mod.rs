//! Operations that no machine sequence is worth having for, rewritten in CLIF: after the mid-end, before the analyses.
//!
//! - [`wide`]: division, remainder and high products of 128 bits. Division becomes a loop, so blocks are added.
//! - [`bytes`]: operations on lanes of 8 and 16 bits that can be done on whole words.
//! - [`lanes`]: operations on vectors whose lanes the machine treats one at a time. They become the scalar operation on each lane.
//!
//! What is left has a lowering rule, or is unsupported and says so there. Shapes over 128 bits are left alone.

mod bytes;
mod known;
mod lanes;
mod wide;

use super::contents::Contents;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, Inst, Opcode, Value};

/// What became of an instruction.
enum Expansion {
    /// It stays.
    None,
    /// These values take the place of its results; the cursor is still at it.
    Values(Vec<Value>),
    /// As before, and the block was split before it.
    Split(Value),
}

/// Rewrites what needs it; true if blocks were added. Aliases are resolved in the end.
pub fn legalize(func: &mut Function, contents: &Contents) -> bool {
    // `blendv` of scalars is the one operation on other types.
    if !contents.has_vectors() && !contents.has_wide_integers() && !contents.has(&[Opcode::Blendv])
    {
        return false;
    }
    let (mut changed, mut split) = (false, false);
    let mut pos = FuncCursor::new(func);
    while pos.next_block().is_some() {
        while let Some(inst) = pos.next_inst() {
            pos.use_srcloc(inst);
            let values = match expand(&mut pos, inst) {
                Expansion::None => continue,
                Expansion::Values(values) => values,
                Expansion::Split(value) => {
                    split = true;
                    vec![value]
                }
            };
            changed = true;
            replace(&mut pos, inst, &values);
        }
    }
    if changed {
        func.dfg.resolve_all_aliases();
    }
    split
}

fn expand(pos: &mut FuncCursor<'_>, inst: Inst) -> Expansion {
    if let Some(expansion) = wide::expand(pos, inst) {
        return expansion;
    }
    match lanes::expand(pos, inst) {
        Some(value) => Expansion::Values(vec![value]),
        None => Expansion::None,
    }
}

/// Makes the results of `inst`, at which the cursor is, aliases of `values` and removes it.
fn replace(pos: &mut FuncCursor<'_>, inst: Inst, values: &[Value]) {
    pos.goto_inst(inst);
    let results = pos.func.dfg.inst_results(inst).to_vec();
    pos.func.dfg.clear_results(inst);
    for (result, &value) in results.into_iter().zip(values) {
        pos.func.dfg.change_to_alias(result, value);
    }
    pos.remove_inst_and_step_back();
}

#[cfg(test)]
mod tests;
