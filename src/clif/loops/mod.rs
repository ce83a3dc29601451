//! Loops, rewritten in CLIF: behind Cranelift's mid-end, before operations are legalized.
//!
//! [`improve`] runs, one after the other:
//!
//! - [`invariants`]: what a turn need not compute again moves in front of the loop;
//! - [`reduce`]: products with a counter become counters;
//! - [`rebase`]: pointers begin without the constants that accesses add anyway;
//! - [`rotate`]: a test at the head of a loop moves to its end;
//! - [`scale`]: counters that are offsets of memory and nothing else count in bytes;
//! - [`unroll`]: turns are copied whose number is known, or can be asked for;
//! - [`overlap`]: loads of several copies are under way at once;
//! - [`preload`]: loads of the next turn are under way while this one works;
//! - [`renew`]: the next value of a counter is computed when this one is not needed any more.
//!
//! A function without loops is not looked at. Only natural loops are; what may be entered at several blocks stays as it
//! is.

mod affine;
mod copy;
mod count;
mod hints;
mod invariants;
mod overlap;
mod preload;
mod rebase;
mod reduce;
mod renew;
mod rotate;
mod scale;
mod shape;
mod size;
mod sorted_set;
mod uniform;
mod unroll;

pub(super) use hints::Hints;

use super::merge;
use crate::intrinsics::resolve::Intrinsics;
use crate::remarks::Remarks;
use crate::settings::Options;
use crate::values::tracking::Tracking;
use cranelift_codegen::Context;
use shape::{Body, Uses};

/// What the passes know besides the function.
#[derive(Clone, Copy)]
pub struct LoopContext<'a> {
    /// Its intrinsics.
    pub intrinsics: &'a Intrinsics,
    /// Whether it is a kernel.
    pub kernel: bool,
    /// Which passes run.
    pub settings: &'a Options,
    /// Registers that a thread may have.
    pub registers: u8,
    /// What became of the values of the source.
    pub tracking: &'a Tracking,
}

/// Improves the loops of the function in `context`, whose graph and dominator tree are up to date and stay so. Aliases
/// are resolved before and after. If it returns true, the mid-end has something to fold; [`settle`] belongs behind it
/// then.
pub(super) fn improve(
    context: &mut Context,
    given: &LoopContext<'_>,
    hints: &mut Hints,
    remarks: &mut Remarks,
) -> bool {
    // Left by the mid-end. What it did since can only have removed loops.
    if context.loop_analysis.loops().next().is_none() {
        return false;
    }
    context.compute_loop_analysis();
    hoist(context, given);
    let mut uses = None;
    if given.settings.reduce_strength && reduce::reduce(context, given, &mut uses) {
        drop_unused(context, given);
    }
    if given.settings.reduce_strength {
        rebase::rebase(context, &mut uses, given.tracking);
    }
    if given.settings.rotate && rotate::rotate(context, given, hints, &mut uses) {
        recompute(context);
    }
    if given.settings.reduce_strength && scale::scale(context, given, &mut uses) {
        drop_unused(context, given);
    }
    let unrolled = unroll::unroll(context, given, hints, &mut uses, remarks);
    if unrolled.any {
        recompute(context);
        // What the copies compute for tests that are left out.
        drop_unused(context, given);
    }
    if preload::preload(context, given, hints, &unrolled.rest, &mut uses) {
        recompute(context);
        drop_unused(context, given);
    }
    if !unrolled.folds {
        renew(context, uses);
    }
    unrolled.folds
}

/// Does again what the mid-end may have undone.
pub(super) fn settle(context: &mut Context, given: &LoopContext<'_>) {
    if context.loop_analysis.loops().next().is_some() {
        context.compute_loop_analysis();
        hoist(context, given);
        renew(context, None);
    }
}

fn hoist(context: &mut Context, given: &LoopContext<'_>) {
    if given.settings.hoist {
        invariants::hoist(context, given);
    }
}

fn renew(context: &mut Context, uses: Option<Uses>) {
    let uses = uses.unwrap_or_else(|| Uses::of(&context.func));
    for body in Body::innermost(context) {
        renew::renew(&mut context.func, &uses, &body);
    }
}

/// Drops what no effect depends on.
fn drop_unused(context: &mut Context, given: &LoopContext<'_>) {
    let postorder = context.domtree.cfg_postorder().iter().copied();
    merge::drop_unused(&mut context.func, given.intrinsics, postorder);
}

fn recompute(context: &mut Context) {
    context.compute_cfg();
    context.compute_domtree();
    context.compute_loop_analysis();
}
