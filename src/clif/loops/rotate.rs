//! Puts the test of a loop at its end.
//!
//! A loop that is left only at its header, and comes back to it from elsewhere, has two branches in each turn, and its
//! test is apart from the work. The header becomes the guard in front of the loop and its copy the end of the body, so
//! that one branch is left, and test and work stand in one block, to be ordered together:
//!
//! ```text
//! header: t = test(i); brif t, body, out     header: t = test(i); brif t, body, out
//! body: i' = work(i); jump header(i')    →   body: i' = work(i); t' = test(i'); brif t', body, out
//! ```
//!
//! What is executed, and in which order, stays the same, so anything may stand in the header, up to [`LARGEST`]
//! instructions; but not operations on the active lanes, whose place says who takes part, nor atomic operations and
//! calls, by which lanes may wait (`analysis/polling.rs` reads such loops as they are written). Only loops that hold no
//! other are looked at, and only those that come back from one place: with more the test would be a block of its own
//! again, and what is gained does not pay for the guard (*measured*: `collatz` 1.3 % fewer cycles for 29 instructions
//! instead of 26).

use super::LoopContext;
use super::copy::Copied;
use super::hints::Hints;
use super::shape::{Body, Edge, Uses, close, definitions, is_constant, jump};
use super::size::size;
use crate::values::tracking::{Copies, Tracking};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode};

/// Most machine instructions of a header that is copied (*assumed*: twice what a branch costs a warp).
const LARGEST: u32 = 8;

/// Rotates what is worth it; true if anything has changed. The graph and what is made from it are not up to date then.
pub(super) fn rotate(
    context: &mut Context,
    given: &LoopContext<'_>,
    hints: &mut Hints,
    uses: &mut Option<Uses>,
) -> bool {
    let mut changed = false;
    for body in Body::innermost(context) {
        let Some(exit) = exit(&context.func, given, &body) else {
            continue;
        };
        let entry = body.only_entry(context);
        let func = &mut context.func;
        let uses = uses.get_or_insert_with(|| Uses::of(func));
        let alone = context.cfg.pred_iter(exit.to(func)).count() == 1;
        let inner = Edge {
            index: 1 - exit.index,
            ..exit
        };
        let entered_once = context.cfg.pred_iter(inner.to(func)).count() == 1;
        close(func, uses, &body, exit, alone, given.tracking);
        let header = turn(func, uses, &body, inner, entered_once, given.tracking);
        if let Some(entry) = entry {
            name(func, uses, body.header, entry, given.tracking);
        }
        hints.moves(body.header, header);
        changed = true;
    }
    changed
}

/// Where a loop is left that can be rotated.
fn exit(func: &Function, given: &LoopContext<'_>, body: &Body) -> Option<Edge> {
    let [exit] = body.exits[..] else { return None };
    let [latch] = body.latches[..] else {
        return None;
    };
    let goes_on = func.dfg.insts[latch.branch].opcode() == Opcode::Jump;
    if exit.from != body.header || latch.from == body.header || !goes_on || !body.plain {
        return None;
    }
    let mut total = 0;
    for inst in func.layout.block_insts(body.header) {
        if !may_be_copied(func, given, inst) {
            return None;
        }
        total += size(func, given.intrinsics, inst);
    }
    (total <= LARGEST).then_some(exit)
}

fn may_be_copied(func: &Function, given: &LoopContext<'_>, inst: Inst) -> bool {
    if let Some(row) = given.intrinsics.of_call(func, inst) {
        return row.is_pure();
    }
    let opcode = func.dfg.insts[inst].opcode();
    let atomic = matches!(
        opcode,
        Opcode::AtomicLoad
            | Opcode::AtomicStore
            | Opcode::AtomicRmw
            | Opcode::AtomicCas
            | Opcode::Fence
    );
    !atomic && !opcode.is_call() && func.dfg.user_stack_map_entries(inst).is_none()
}

/// Copies the header to where the loop comes back to it, and returns the new one. `inner` is the way from it into the
/// rest of the loop, which is `entered_once` or may have others.
fn turn(
    func: &mut Function,
    uses: &mut Uses,
    body: &Body,
    inner: Edge,
    entered_once: bool,
    tracking: &Tracking,
) -> Block {
    let header = body.header;
    let copies = tracking.copies(func, &body.blocks);
    // The header as it is, which becomes the guard, the rest of the loop, and the copy of the header at its end.
    let [guard, copy] = [1, 2].map(|number| copies.number(number));
    guard.mark(func, &[header]);
    copies.mark(func, &body.blocks[1..]);
    let begin = enter(func, uses, body, inner, entered_once, copies);
    let latch = body.latches[0];
    let params = func.dfg.block_params(header).to_vec();
    let insts: Vec<Inst> = func.layout.block_insts(header).collect();
    // The body simply goes on.
    let mut copied = Copied::with(copy, &params, &latch.args(func));
    func.layout.remove_inst(latch.branch);
    for inst in insts {
        copied.inst(func, uses, inst, latch.from);
    }
    begin
}

/// Lets what `entry`, the only way to `header`, hands over take the places of its parameters.
fn name(func: &mut Function, uses: &mut Uses, header: Block, entry: Edge, tracking: &Tracking) {
    let params = func.dfg.block_params(header).to_vec();
    for (param, arg) in params.into_iter().zip(entry.args(func)) {
        tracking.also(param, arg);
        uses.replace(func, (param, arg), |_, _| true);
        func.dfg.remove_block_param(param);
    }
    entry.redirect(func, header, &[]);
}

/// Makes the block behind `inner`, which is returned, one that can be entered from two places: what the header defines
/// and the loop reads becomes its parameters.
fn enter(
    func: &mut Function,
    uses: &mut Uses,
    body: &Body,
    inner: Edge,
    entered_once: bool,
    copies: Copies<'_>,
) -> Block {
    let header = body.header;
    let (target, mut args) = (inner.to(func), inner.args(func));
    let mut block = target;
    if !entered_once {
        // A block of its own in front, which hands on what the target gets.
        block = func.dfg.make_block();
        func.layout.insert_block(block, target);
        let mut passed = Vec::new();
        for &arg in &args {
            let ty = func.dfg.value_type(arg);
            passed.push(func.dfg.append_block_param(block, ty));
        }
        let jump = jump(func, block, target, &passed);
        func.srclocs[jump] = func.srclocs[inner.branch];
        uses.add(func, jump);
    }
    let inside = |at: Block| at != header && body.holds(at);
    for value in definitions(func, header) {
        let readers = uses.of_value(value);
        let read = |&inst: &Inst| func.layout.inst_block(inst).is_some_and(inside);
        if !readers.iter().any(read) {
            continue;
        }
        let constant = func.dfg.value_def(value).inst();
        let new = match constant.filter(|&inst| is_constant(func, inst)) {
            Some(inst) => {
                let copy = func.dfg.clone_inst(inst);
                let first = func.layout.first_inst(block).expect("a block with an end");
                func.layout.insert_inst(copy, first);
                func.dfg.first_result(copy)
            }
            None => {
                args.push(value);
                let ty = func.dfg.value_type(value);
                func.dfg.append_block_param(block, ty)
            }
        };
        copies.value(value, new);
        uses.replace(func, (value, new), |_, at| inside(at));
    }
    inner.redirect(func, block, &args);
    uses.add(func, inner.branch);
    block
}
