//! Puts what a loop hands on behind the last read of what it replaces.
//!
//! The next value of a counter wants the register of this one. Where the counter is still read when the next value is
//! there, each turn copies it. The order pass keeps such an order (`sched::order`) but does not make it, and a test at
//! the end of a block asks for the next value early.

use super::shape::{Body, Uses};
use cranelift_codegen::ir::{Function, Inst, InstructionData, Value};
use std::cmp::Ordering;

/// So many operations may become one (*assumed*): a product and a sum, an extension and a product.
const DEPTH: u32 = 2;

/// Moves additions and the like in the block where `body` comes back to its header; there must be one such block only.
pub(super) fn renew(func: &mut Function, uses: &Uses, body: &Body) {
    let [latch] = body.latches[..] else { return };
    let params = func.dfg.block_params(body.header).to_vec();
    for (old, new) in params.into_iter().zip(latch.args(func)) {
        let Some(update) = func.dfg.value_def(new).inst() else {
            continue;
        };
        let moves = matches!(func.dfg.insts[update], InstructionData::Binary { .. })
            && func.layout.inst_block(update) == Some(latch.from)
            && !func.dfg.insts[update].opcode().can_trap()
            // What reads another result, a carry, is not looked at.
            && func.dfg.inst_results(update).len() == 1
            && func.dfg.inst_args(update).contains(&old);
        if !moves {
            continue;
        }
        if !is_read_behind(func, uses, old, update, DEPTH) {
            continue;
        }
        sink_test(func, uses, latch.branch);
        // What reads it at the end of the block at the earliest. Readers in other blocks are entered from there.
        let there = |inst: &&Inst| func.layout.inst_block(**inst) == Some(latch.from);
        let readers = uses.of_value(new).iter().filter(there);
        let Some(&first) = readers.min_by(|a, b| func.layout.pp_cmp(**a, **b)) else {
            continue;
        };
        func.layout.remove_inst(update);
        func.layout.insert_inst(update, first);
    }
}

/// Whether `value`, or what is computed from it in fewer than `depth` steps, is read behind `inst` in its block.
fn is_read_behind(func: &Function, uses: &Uses, value: Value, inst: Inst, depth: u32) -> bool {
    let block = func.layout.inst_block(inst);
    uses.of_value(value).iter().any(|&reader| {
        if func.layout.inst_block(reader) != block || reader == inst {
            return false;
        }
        let joins = matches!(
            func.dfg.insts[reader],
            InstructionData::Unary { .. } | InstructionData::Binary { .. }
        );
        func.layout.pp_cmp(reader, inst) == Ordering::Greater
            || (joins
                && depth > 1
                && is_read_behind(func, uses, func.dfg.first_result(reader), inst, depth - 1))
    })
}

/// Moves what only `branch` reads in front of it.
fn sink_test(func: &mut Function, uses: &Uses, branch: Inst) {
    let InstructionData::Brif { arg, .. } = func.dfg.insts[branch] else {
        return;
    };
    if let Some(test) = func.dfg.value_def(arg).inst()
        && matches!(func.dfg.insts[test], InstructionData::IntCompare { .. })
        && func.layout.inst_block(test) == func.layout.inst_block(branch)
        && uses.of_value(arg) == [branch]
    {
        func.layout.remove_inst(test);
        func.layout.insert_inst(test, branch);
    }
}
