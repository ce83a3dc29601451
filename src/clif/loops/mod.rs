//! Loops, rewritten in CLIF: behind Cranelift's mid-end, before operations are legalized.
//!
//! [`improve`] runs, one after the other:
//!
//! - [`invariants`]: what a turn need not compute again moves in front of the loop;
//! - [`rotate`]: a test at the head of a loop moves to its end;
//! - [`renew`]: the next value of a counter is computed when this one is not needed any more.
//!
//! A function without loops is not looked at. Only natural loops are; what may be entered at several blocks stays as it is.

mod copy;
mod invariants;
mod renew;
mod rotate;
mod shape;
mod size;

use super::resolve::Intrinsics;
use cranelift_codegen::Context;
use shape::{Body, Uses};

/// What the passes know besides the function.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// Its intrinsics.
    pub intrinsics: &'a Intrinsics,
    /// General-purpose registers there are.
    pub registers: u8,
}

/// Improves the loops of the function in `context`, whose graph and dominator tree are up to date and stay so. Aliases are resolved before and
/// after.
pub fn improve(context: &mut Context, given: &Given<'_>) {
    // Left by the mid-end. What it did since can only have removed loops.
    if context.loop_analysis.loops().next().is_none() {
        return;
    }
    context.compute_loop_analysis();
    invariants::hoist(context, given);
    let mut uses = None;
    if rotate::rotate(context, given, &mut uses) {
        context.compute_cfg();
        context.compute_domtree();
        context.compute_loop_analysis();
    }
    let uses = uses.unwrap_or_else(|| Uses::of(&context.func));
    for body in Body::innermost(context) {
        renew::renew(&mut context.func, &uses, &body);
    }
}
