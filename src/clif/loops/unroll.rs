//! Copies the turns of a loop, so that fewer tests are made and more loads are on their way at once.
//!
//! Takes loops that hold no other, with one way out, at the end, that a counter decides ([`super::count`]). There are
//! three ways:
//!
//! - *completely*, if the number of turns is known and small: no loop is left, and the mid-end is run again to work the
//!   counters into what is computed from them;
//! - *by a divisor* of a known number of turns: no test is left between the copies;
//! - *with the rolled loop behind*, if the number is only known when it runs. A guard asks whether so many turns are to
//!   come, and so does the test at the end of the copies; else the loop as it was makes those that are left:
//!
//! ```text
//! guard: brif enough(i), copies(i), rolled(i)
//! copies(i): work(i); work(i+1); work(i+2); work(i+3); brif enough(i+4), copies(i+4), ending
//! ending: brif test(i+4), rolled(i+4), out
//! rolled(i): work(i); brif test(i+1), rolled(i+1), out
//! ```
//!
//! A copy is entered only when its turn is sure to come, so nothing is speculated, and every test that is left out
//! would have succeeded: `enough` is exact about wrapping (`Counter::limit`). Additions stay in their order. The
//! counters of all copies are sums of the first one's and a constant, and so are addresses (`super::affine`), which
//! accesses take as their offset.
//!
//! Not unrolled are loops that wait for other threads: those are left by what was read from memory, which is no
//! counter. Operations on the active lanes need all lanes to take the same number of turns; that number must then be a
//! constant or come from a kernel's parameters.

mod build;
mod plan;

use super::LoopContext;
use super::affine::Affine;
use super::hints::Hints;
use super::overlap::overlap;
use super::shape::{Body, Uses, close};
use crate::remarks::{Missed, Remarks};
use build::Unrolling;
use cranelift_codegen::Context;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::Block;
use plan::{Plan, plan};

/// What was done.
#[derive(Clone, Debug, Default)]
pub(super) struct Unrolled {
    /// Some loop was unrolled.
    pub(super) any: bool,
    /// Some loop is gone, so that there is something to fold.
    pub(super) folds: bool,
    /// The headers of rolled loops that make the turns which the copies leave.
    pub(super) rest: EntitySet<Block>,
}

/// Unrolls what is worth it. The graph and what is made from it are not up to date then if anything was.
pub(super) fn unroll(
    context: &mut Context,
    given: &LoopContext<'_>,
    hints: &Hints,
    uses: &mut Option<Uses>,
    remarks: &mut Remarks,
) -> Unrolled {
    let mut done = Unrolled::default();
    let mut planned = Vec::new();
    for body in Body::innermost(context) {
        match plan(context, given, hints, &body) {
            Ok(plan) => planned.push((body, plan)),
            Err(None) => {}
            Err(Some(reason)) => {
                remarks.missed(body.line(&context.func), Missed::Unrolling, || reason)
            }
        }
    }
    if planned.is_empty() {
        return done;
    }
    let uses = uses.get_or_insert_with(|| Uses::of(&context.func));
    for (body, _) in &planned {
        let exit = body.exits[0];
        let alone = context.cfg.pred_iter(exit.to(&context.func)).count() == 1;
        close(&mut context.func, uses, body, exit, alone, given.tracking);
    }
    // The ways into a loop may come from blocks in between now.
    context.compute_cfg();
    for (body, plan) in &planned {
        let entries = body.entries(context);
        let affine = Affine::of(context, body, plan.steady());
        let copies = given.tracking.copies(&context.func, &body.blocks);
        let mut work = Unrolling {
            func: &mut context.func,
            uses,
            body,
            affine,
            copies,
        };
        let copies = work.build(*plan, &entries);
        if let [_] = body.blocks[..] {
            overlap(&mut context.func, given.intrinsics, copies);
        }
        done.any = true;
        done.folds |= matches!(plan, Plan::Complete(_));
        if let Plan::Rest(..) = plan {
            done.rest.insert(body.header);
        }
    }
    done
}
