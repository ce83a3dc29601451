//! What CLIF can say in fewer instructions of the machine, and Cranelift's own rules leave as it is.
//!
//! Takes an optimised function without aliases and unreachable blocks. Every instruction is visited once, definitions
//! before their users; a rule (`isle/clif_opt.isle`, by its root `rewrite`) gives another value for its result, made of
//! new instructions in front of it. The new value is looked at again, [`AGAIN`] times at most. In the end nothing
//! unused is left and aliases are resolved. Blocks and effects stay as they are.
//!
//! Rules are pure patterns; what they ask of constants, types and definitions is in [`context`], what they need of
//! other instructions of the same block (a sum that becomes one with a carry, the complement of what is there, a shift
//! that is a part of another) in [`carries`], [`complements`] and [`shifts`].

mod carries;
mod complements;
mod constants;
mod context;
mod rules;
mod shifts;

use super::contents::Contents;
use super::merge;
use crate::intrinsics::resolve::Intrinsics;
use carries::Carries;
use complements::Complements;
use context::Rewriter;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::ir::{Function, Inst, Opcode};
use shifts::Shifts;

/// How often a new value is looked at again (*assumed*: no chain of rules is longer).
const AGAIN: usize = 3;

/// The roots of the rules.
const ROOTS: [Opcode; 24] = [
    Opcode::Popcnt,
    Opcode::Iabs,
    Opcode::Clz,
    Opcode::Ctz,
    Opcode::Bitrev,
    Opcode::Fdiv,
    Opcode::Fdemote,
    Opcode::Ishl,
    Opcode::Ushr,
    Opcode::Sshr,
    Opcode::Rotl,
    Opcode::Rotr,
    Opcode::Bor,
    Opcode::Bxor,
    Opcode::Band,
    Opcode::Iadd,
    Opcode::Isub,
    Opcode::Icmp,
    Opcode::Ireduce,
    Opcode::Sextend,
    Opcode::Smax,
    Opcode::Insertlane,
    Opcode::FcvtFromUint,
    Opcode::FcvtFromSint,
];

/// What is known of the block so far.
struct BlockFacts<'a> {
    carries: Carries<'a>,
    complements: Complements,
    shifts: Shifts,
}

/// Applies the rules to the whole function. True if anything has changed.
pub fn rewrite(
    func: &mut Function,
    domtree: &DominatorTree,
    contents: &Contents,
    intrinsics: &Intrinsics,
    is_kernel: bool,
) -> bool {
    if !contents.has(&ROOTS) {
        return false;
    }
    let mut changed = false;
    let mut facts = BlockFacts {
        carries: Carries::new(intrinsics, is_kernel),
        complements: Complements::default(),
        shifts: Shifts::default(),
    };
    for &block in domtree.cfg_postorder().iter().rev() {
        facts.carries.start_block();
        facts.complements.start_block();
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            changed |= visit(func, &mut facts, inst);
        }
    }
    if changed {
        func.dfg.resolve_all_aliases();
        merge::drop_unused(func, intrinsics, domtree.cfg_postorder().iter().copied());
    }
    changed
}

/// Replaces the result of an instruction, if a rule gives another value for it.
fn visit(func: &mut Function, block: &mut BlockFacts<'_>, inst: Inst) -> bool {
    if !ROOTS.contains(&func.dfg.insts[inst].opcode()) {
        return false;
    }
    let old = func.dfg.first_result(inst);
    crate::rules::trace("rewrite", func, inst);
    let mut new = old;
    for _ in 0..=AGAIN {
        let location = func.srcloc(inst);
        let pos = FuncCursor::new(func).at_inst(inst).with_srcloc(location);
        let mut rewriter = Rewriter { pos, block };
        match rules::constructor_rewrite(&mut rewriter, new) {
            Some(value) => new = func.dfg.resolve_aliases(value),
            None => break,
        }
    }
    if new == old {
        block.carries.remember(func, inst);
        block.complements.remember(func, inst);
        return false;
    }
    debug_assert_eq!(func.dfg.value_type(new), func.dfg.value_type(old));
    func.dfg.clear_results(inst);
    func.dfg.change_to_alias(old, new);
    func.layout.remove_inst(inst);
    true
}

#[cfg(test)]
mod tests;
