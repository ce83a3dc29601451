//! Instructions whose result depends on the lanes that run together: SHFL, VOTE, MATCH (companion rows, assigned).

use crate::isa::Role;
use crate::isa::generated::{ShuffleMode, VoteMode};
use crate::launch::FaultKind;
use crate::sim::decode::program::Op;
use crate::sim::execute::stop::Stop;
use crate::sim::warp::Warp;
use crate::sim::warp::registers::{Column, LANES, lanes};

impl ShuffleMode {
    /// The lane whose value a lane gets; none outside of the warp.
    pub(in crate::sim) fn source(self, lane: usize, selector: u32) -> Option<usize> {
        let n = (selector & 31) as usize;
        match self {
            ShuffleMode::Idx => Some(n),
            ShuffleMode::Up => lane.checked_sub(n),
            ShuffleMode::Down => Some(lane + n).filter(|source| *source < LANES),
            ShuffleMode::Bfly => Some(lane ^ n),
        }
    }
}

impl Warp {
    /// SHFL: another lane's value. A source outside of the warp is the lane itself, and `pu` is false.
    pub(in crate::sim) fn shuffle(
        &mut self,
        op: &Op,
        mode: ShuffleMode,
        mask: u32,
    ) -> Result<(), Box<Stop>> {
        let values = *self.registers.column(op.operand(Role::A).column);
        let selectors = *self.registers.column(op.operand(Role::B).column);
        let mut results: Column = [0; LANES];
        let mut inside = 0;
        for lane in lanes(mask) {
            let source = mode.source(lane, selectors[lane]);
            inside |= u32::from(source.is_some()) << lane;
            let source = source.unwrap_or(lane);
            if mask >> source & 1 == 0 {
                return Err(Stop::new(
                    FaultKind::InactiveLane {
                        source_lane: source as u8,
                    },
                    lane,
                ));
            }
            results[lane] = values[source];
        }
        self.set_column(op, &results, mask);
        self.registers
            .set_predicate(op.operand(Role::Pu), mask, inside);
        Ok(())
    }

    /// VOTE: the lanes in which the predicate holds, and whether it holds in all or any.
    pub(in crate::sim) fn vote(&mut self, op: &Op, mode: VoteMode, mask: u32) {
        let ballot = self.registers.holds(op.operand(Role::Pp)) & mask;
        let agreed = match mode {
            VoteMode::All => ballot == mask,
            VoteMode::Any => ballot != 0,
        };
        self.set_column(op, &[ballot; LANES], mask);
        self.registers
            .set_predicate(op.operand(Role::Pu), mask, if agreed { mask } else { 0 });
    }

    /// MATCH.ANY: the active lanes that hold the same value.
    pub(in crate::sim) fn match_any(&mut self, op: &Op, mask: u32) {
        let values = *self.registers.column(op.operand(Role::A).column);
        let mut results: Column = [0; LANES];
        for lane in lanes(mask) {
            results[lane] = lanes(mask)
                .filter(|other| values[*other] == values[lane])
                .fold(0, |m, other| m | 1 << other);
        }
        self.set_column(op, &results, mask);
    }

    fn set_column(&mut self, op: &Op, results: &Column, mask: u32) {
        let d = self.registers.column_mut(op.operand(Role::D).column);
        for lane in lanes(mask) {
            d[lane] = results[lane];
        }
    }
}
