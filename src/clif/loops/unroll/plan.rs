//! What is done with a loop.
//!
//! Takes a loop, what is known of the function and what was asked for; gives a [`Plan`], or why there is none. Nothing
//! is changed.

use super::super::LoopContext;
use super::super::affine::Steady;
use super::super::count::{
    Bound, Counter, FOLLOWED, Limit, bottom, compares, is_uniform_count, starts, turns,
};
use super::super::hints::Hints;
use super::super::shape::Body;
use super::super::size::size;
use crate::analysis::bounds::greatest;
use crate::constants::signed;
use crate::intrinsics::Effect;
use crate::settings::{OptLevel, Unroll};
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, types};

/// Most machine instructions of all copies together (*assumed*: a tenth of the smallest instruction cache that GPUs of
/// the kind have).
const LARGEST: u32 = 128;
/// The same where a number of copies is asked for.
const LARGEST_ASKED: u32 = 1024;
/// Copies by default (*assumed*: as many loads as hide a third of the latency of memory with eight warps).
const COPIES: u32 = 4;
/// Loads of a turn that are enough without copies, where nothing says how many turns there are (*measured*: a sum over
/// rows of a sparse matrix that is written four times takes 1.1 to 1.3 times as long with four copies of that).
const ENOUGH_LOADS: usize = 8;
/// What is done with a loop.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan {
    Complete(u32),
    /// In the copies the parameter is steady.
    Divisor(u32, Option<Steady>),
    /// The rolled loop makes the rest; the counter says how much that is.
    Rest(u32, Counter, Limit),
}

impl Plan {
    pub(super) fn copies(self) -> u32 {
        match self {
            Plan::Complete(copies) | Plan::Divisor(copies, _) | Plan::Rest(copies, ..) => copies,
        }
    }

    /// The counter that does not wrap from the first copy to the last.
    pub(super) fn steady(self) -> Option<Steady> {
        match self {
            Plan::Complete(_) => None,
            Plan::Divisor(_, steady) => steady,
            Plan::Rest(_, counter, limit) => match limit {
                // If the value before the step is tested, the last copy's was not, and may have wrapped.
                Limit::Moved { .. } if counter.tested == counter.param => None,
                Limit::Moved { signed, .. } => Some(Steady {
                    counter: counter.param,
                    signed,
                    unsigned: !signed,
                }),
                Limit::Distance { .. } => None,
            },
        }
    }
}

/// What to do with `body`, or why nothing; without a reason if nobody asked for anything.
pub(super) fn plan(
    context: &Context,
    given: &LoopContext<'_>,
    hints: &Hints,
    body: &Body,
) -> Result<Plan, Option<&'static str>> {
    let func = &context.func;
    let asked = match (given.settings.unroll, hints.of(body.header)) {
        (Unroll::Off, _) | (_, Some(0 | 1)) => return Err(None),
        (_, Some(times)) | (Unroll::Times(times), None) => Some(u32::from(times)),
        (Unroll::Auto, None) if given.settings.opt_level == OptLevel::Speed => None,
        (Unroll::Auto, None) => return Err(None),
    };
    let Some((latch, _)) = bottom(body) else {
        return Err(Some(
            "it has more than one way out, or is not left at its end",
        ));
    };
    if !body.plain {
        return Err(Some("it has a branch with many targets"));
    }
    let mut total = 0;
    let mut loads = 0;
    let mut convergent = false;
    for inst in body.insts(func) {
        let row = given.intrinsics.of_call(func, inst);
        if row.is_none() && func.dfg.insts[inst].opcode().is_call() {
            return Err(Some("it calls a function"));
        }
        convergent |= row.is_some_and(|row| row.effect == Effect::Convergent);
        loads += usize::from(func.dfg.insts[inst].opcode().can_load());
        total += size(func, given.intrinsics, inst);
    }
    // The branch is not copied, and the test mostly is not.
    let turn = total.saturating_sub(2).max(1);
    let largest = match asked {
        Some(_) => LARGEST_ASKED,
        None => LARGEST,
    };
    let room = largest / turn;
    if room < if asked.is_some() { 2 } else { COPIES } {
        return Err(Some("its body is long"));
    }
    let start = starts(context, body);
    let known = turns(func, body, latch, &start, FOLLOWED);
    if let Some(turns) = known {
        if turns <= asked.unwrap_or(room).min(room) {
            return Ok(Plan::Complete(turns));
        }
        let copies = asked.unwrap_or(2 * COPIES).min(room);
        let divides = |copies: &u32| turns % copies == 0;
        let least = if asked.is_some() { copies } else { 3 };
        if let Some(copies) = (least..=copies).rev().find(divides) {
            let counter = Counter::of(func, body, latch);
            return Ok(Plan::Divisor(
                copies,
                counter.and_then(|counter| steady(func, body, &counter, &start, turns)),
            ));
        }
    }
    let copies = asked.unwrap_or(COPIES).min(room);
    let counter =
        Counter::of(func, body, latch).ok_or(Some("no counter decides how often it turns"))?;
    if convergent && known.is_none() && !is_uniform_count(context, given, body, &counter) {
        return Err(Some(
            "lanes may take different numbers of turns, and it has operations on the active lanes",
        ));
    }
    if asked.is_none() && loads >= ENOUGH_LOADS {
        return Err(Some("each turn has many loads already"));
    }
    let limit = counter.limit(copies - 1).ok_or(Some(
        "its test and its step do not say how many turns are left",
    ))?;
    if limit.never(&counter, || {
        starts_above_zero(context, given, body, &counter)
    }) {
        return Err(Some("it makes too few turns"));
    }
    Ok(Plan::Rest(copies, counter, limit))
}

/// `counter` if it does not wrap in so many turns.
pub(super) fn steady(
    func: &Function,
    body: &Body,
    counter: &Counter,
    start: &[Option<i64>],
    turns: u32,
) -> Option<Steady> {
    let mut params = func.dfg.block_params(body.header).iter();
    let first = start[params.position(|param| *param == counter.param)?]?;
    let last = first.checked_add(counter.step.checked_mul(i64::from(turns))?)?;
    let [_, largest] = range(counter, true);
    let inside = |value: i64| (0..=largest).contains(&value);
    (inside(first) && inside(last)).then_some(Steady {
        counter: counter.param,
        signed: true,
        unsigned: true,
    })
}

impl Limit {
    /// Whether it is known that there are never so many turns; `above_zero` says whether the counter starts at zero or
    /// above, read with a sign.
    fn never(self, counter: &Counter, above_zero: impl FnOnce() -> bool) -> bool {
        match (self, counter.bound) {
            (Limit::Moved { less, signed }, Bound::Constant(bound)) => {
                !stays(counter, bound, less, signed)
                    || signed && less > 0 && bound < less && above_zero()
            }
            _ => false,
        }
    }
}

/// Whether `counter`, a word, is not negative when the loop is entered.
fn starts_above_zero(
    context: &Context,
    given: &LoopContext<'_>,
    body: &Body,
    counter: &Counter,
) -> bool {
    let func = &context.func;
    let mut params = func.dfg.block_params(body.header).iter();
    let Some(index) = params.position(|param| *param == counter.param) else {
        return false;
    };
    let most = |value| greatest(func, given.intrinsics, value);
    let mut entries = body.entries(context).into_iter();
    counter.ty == types::I32 && entries.all(|entry| most(entry.args(func)[index]) < 1 << 31)
}

/// The least and the largest value of the counter's type, sign-extended.
fn range(counter: &Counter, is_signed: bool) -> [i64; 2] {
    let ty = counter.ty;
    let [least, largest] = match is_signed {
        true => [
            1i64 << (ty.bits() - 1),
            (1i64 << (ty.bits() - 1)).wrapping_sub(1),
        ],
        false => [0, -1],
    };
    [signed(ty, least), signed(ty, largest)]
}

/// Whether `bound` minus `less` does not wrap.
fn stays(counter: &Counter, bound: i64, less: i64, is_signed: bool) -> bool {
    let (condition, edge) = edge(counter, less, is_signed);
    compares(condition, counter.ty, bound, edge)
}

/// How a bound compares with what if it minus `less` does not wrap.
pub(super) fn edge(counter: &Counter, less: i64, is_signed: bool) -> (IntCC, i64) {
    let [least, largest] = range(counter, is_signed);
    let end = if less > 0 { least } else { largest };
    let condition = match (less > 0, is_signed) {
        (true, true) => IntCC::SignedGreaterThanOrEqual,
        (true, false) => IntCC::UnsignedGreaterThanOrEqual,
        (false, true) => IntCC::SignedLessThanOrEqual,
        (false, false) => IntCC::UnsignedLessThanOrEqual,
    };
    (condition, signed(counter.ty, end.wrapping_add(less)))
}
