//! Guards, stalls and waits of a sequence.
//!
//! In: instructions with registers, and what stood around the one they replace. Out: the same with its guard on each,
//! its waits on the first, its signals and its stall on the last. Between them stalls cover fixed latencies by the
//! table of latencies; an instruction of variable latency signals a scoreboard that is used nowhere else, and whatever
//! touches its result waits for it, so that none is outstanding when the sequence ends.

use super::super::Predicate;
use cranelift_thisgpu::unstable::isa::{Control, Inst, PInst, PReg, Register, Scoreboard};

/// Whether a sequence needs a scoreboard of its own. No sequence ends with an instruction of variable latency: what
/// stood around the original may not wait for it.
pub(super) fn needs_scoreboard<R: Register>(steps: &[Inst<R>]) -> bool {
    let is_variable = |step: &Inst<R>| step.optype().info().latency.variable;
    debug_assert!(!steps.last().is_some_and(is_variable));
    steps.iter().any(is_variable)
}

/// Adds guards and control.
///
/// # Panics
/// When the sequence [needs a scoreboard](needs_scoreboard) and has none.
pub(super) fn timed(
    steps: &[PInst],
    guard: Predicate,
    around: Control,
    spare: Option<Scoreboard>,
) -> Vec<(PInst, Control)> {
    let mut timed: Vec<(PInst, Control)> = steps
        .iter()
        .map(|step| {
            let mut step = *step;
            step.set_guard(guard.register, guard.not);
            (step, Control::default())
        })
        .collect();
    if let Some((_, first)) = timed.first_mut() {
        first.set_wait(around.wait());
    }
    // Cycles of issue, and the results on their way.
    let mut issue = 0;
    let mut outstanding: Vec<PReg> = Vec::new();
    let mut ready: Vec<(PReg, u32)> = Vec::new();
    for index in 0..timed.len() {
        let (step, _) = timed[index];
        let touched: Vec<PReg> = step.uses().chain(step.definitions()).collect();
        let is_last = index + 1 == timed.len();
        let waits = touched.iter().any(|r| outstanding.contains(r)) || is_last;
        if waits && !outstanding.is_empty() {
            let spare = spare.expect("a sequence with variable latencies has a scoreboard");
            let control = &mut timed[index].1;
            control.set_wait(control.wait() | 1 << spare.number());
            outstanding.clear();
        }
        let at = |register: &PReg| ready.iter().rev().find(|(r, _)| r == register);
        let earliest = touched.iter().filter_map(at).map(|(_, cycle)| *cycle).max();
        if let Some(previous) = index.checked_sub(1) {
            let stall = earliest.map_or(1, |cycle| cycle.saturating_sub(issue).max(1));
            // Fixed latencies are below the largest stall.
            timed[previous].1.set_stall(stall as u8);
            issue += stall;
        }
        let latency = step.optype().info().latency;
        if latency.variable {
            outstanding.extend(step.definitions());
            timed[index].1.write = spare;
        } else {
            let result = u32::from(latency.result);
            ready.extend(step.definitions().map(|r| (r, issue + result)));
        }
    }
    if let Some((_, last)) = timed.last_mut() {
        last.set_stall(around.stall());
        last.write = around.write;
        last.read = around.read;
    }
    timed
}
