//! Warps that go round in a circle.
//!
//! A warp that comes back to the same state, with the same registers at the same instructions, while nobody has changed
//! memory, does the same for ever unless another one changes memory. Looked for under checks only, at the beginning of
//! a group's turn, with Brent's algorithm: one state is kept, and replaced after ever longer times. In: every
//! instruction that a warp has issued, and how often memory has changed ([`crate::sim::check`]). Out: the number of
//! changes at which a warp was found going round; the launch ends when that is so of all that are not waiting. What
//! remains of a turn then is counted, not run, with the same outcome: whole rounds leave everything as it is.

use crate::launch::Stats;
use crate::sim::execute::Environment;
use crate::sim::warp::Warp;
use crate::sim::warp::rounds::WarpSnapshot;

/// Turns of groups before a state is kept, at first (assigned): seldom enough to cost nothing, and a small part of a
/// warp's turn.
const FIRST_GAP: u32 = 16;

impl Warp {
    /// After an instruction that ran in so many lanes, under checks; the warp's turn ends when the counts have come to
    /// `end`.
    pub(in crate::sim) fn look_for_rounds(
        &mut self,
        env: &mut Environment,
        lanes: u32,
        stats: &mut Stats,
        end: u64,
    ) {
        let Some(checker) = env.checker.as_deref_mut() else {
            return;
        };
        self.rounds.lanes += u64::from(lanes);
        let seen = checker.activity.settle();
        if seen.reads_clock {
            self.rounds.kept = None;
        }
        if !self.begins_turn() {
            return;
        }
        let changes = seen.changes;
        self.rounds.turns += 1;
        let kept = self.rounds.kept.as_deref();
        if let Some(state) = kept.filter(|state| state.changes == changes)
            && self.is_in(state)
        {
            let period = self.issued - state.issued;
            let round = self.rounds.lanes - state.lanes;
            let left = (end - stats.warp_instructions).min(env.budget.saturating_sub(self.issued));
            let times = left.checked_div(period).unwrap_or(0);
            self.issued += times * period;
            stats.warp_instructions += times * period;
            stats.thread_instructions += times * round;
            self.rounds.lanes += times * round;
            (self.rounds.found, self.rounds.turns) = (Some(changes), 0);
            return;
        }
        let is_old = kept.is_none_or(|state| state.changes != changes);
        if is_old {
            self.rounds.gap = FIRST_GAP;
        }
        // What goes round stays as it was found, however many rounds are run.
        let is_known = self.rounds.found == Some(changes) && !is_old;
        if self.rounds.turns >= self.rounds.gap && !is_known {
            (self.rounds.turns, self.rounds.gap) = (0, self.rounds.gap.saturating_mul(2));
            self.keep(env.program.registers, changes);
            checker.activity.forget_polls(self.index);
        }
    }

    fn is_in(&self, state: &WarpSnapshot) -> bool {
        let columns = (0..).zip(&state.general);
        self.is_standing(&state.standing)
            && self.calls.count() == state.calls
            && self.registers.uniform == state.uniform
            && self.registers.predicates == state.predicates
            && columns
                .into_iter()
                .all(|(index, column)| self.registers.column(index) == column)
    }

    fn keep(&mut self, registers: usize, changes: u64) {
        let mut general = self.rounds.kept.take().map_or(Vec::new(), |s| s.general);
        general.clear();
        general.extend((0..registers as u16).map(|index| *self.registers.column(index)));
        self.rounds.kept = Some(Box::new(WarpSnapshot {
            changes,
            issued: self.issued,
            lanes: self.rounds.lanes,
            calls: self.calls.count(),
            standing: self.standing(),
            general,
            uniform: self.registers.uniform,
            predicates: self.registers.predicates,
        }));
    }
}
