//! Operations of a subgroup, which is a warp, on the invocations that are active there.
//!
//! A reduction and a scan take the steps of [`ActiveLanes`], so lanes that are not active are never read.

use super::values::{Lanes, Value};
use super::{Result, Translator};
use crate::error::{invalid, unsupported};
use crate::mistakes::{Mistake, planted};
use cranelift_codegen::ir;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_thisgpu::build::{ActiveLanes, GpuBuilder, Peer};
use naga::{
    CollectiveOperation, Direction, Expression, GatherMode, Handle, Scalar, ScalarKind,
    SubgroupOperation,
};

impl Translator<'_, '_, '_> {
    /// `Statement::SubgroupBallot`.
    pub(super) fn ballot(
        &mut self,
        result: Handle<Expression>,
        predicate: Option<Handle<Expression>>,
    ) -> Result<()> {
        let predicate = match predicate {
            Some(predicate) => self.single(predicate)?,
            None => self.bool(true),
        };
        let mask = self.builder.intrinsic("gpu_ballot", &[predicate]);
        let zero = self.integer(I32, 0);
        self.frame.values[result.index()] = Some(Value::Lanes(vec![mask, zero, zero, zero]));
        Ok(())
    }

    /// `Statement::SubgroupGather`: of a lane that is not active, the own value.
    pub(super) fn gather(
        &mut self,
        mode: GatherMode,
        argument: Handle<Expression>,
        result: Handle<Expression>,
    ) -> Result<()> {
        let lanes = self.lanes(argument)?;
        let number = match mode {
            GatherMode::BroadcastFirst => None,
            GatherMode::Broadcast(number)
            | GatherMode::Shuffle(number)
            | GatherMode::ShuffleDown(number)
            | GatherMode::ShuffleUp(number)
            | GatherMode::ShuffleXor(number)
            | GatherMode::QuadBroadcast(number) => Some(self.single(number)?),
            GatherMode::QuadSwap(direction) => {
                let number = match direction {
                    Direction::X => 1,
                    Direction::Y => 2,
                    Direction::Diagonal => 3,
                };
                Some(self.integer(I32, number))
            }
        };
        let active = ActiveLanes::new(self.builder);
        let own = active.own;
        let source = match (mode, number) {
            (GatherMode::BroadcastFirst, _) => active.first(self.builder),
            (_, None) => return Err(invalid("a lane that is not named")),
            (GatherMode::Broadcast(_) | GatherMode::Shuffle(_), Some(number)) => number,
            (GatherMode::ShuffleDown(_), Some(number)) => self.builder.ins().iadd(own, number),
            (GatherMode::ShuffleUp(_), Some(number)) => self.builder.ins().isub(own, number),
            (GatherMode::QuadBroadcast(_), Some(number)) => {
                let first = self.builder.ins().band_imm_u(own, 28);
                self.builder.ins().bor(first, number)
            }
            (GatherMode::ShuffleXor(_) | GatherMode::QuadSwap(_), Some(number)) => {
                self.builder.ins().bxor(own, number)
            }
        };
        let source = active.readable(self.builder, source);
        let lanes = self.read(&lanes, source)?;
        self.frame.values[result.index()] = Some(Value::Lanes(lanes));
        Ok(())
    }

    /// The lanes of the invocation `source`, which is active, by words.
    fn read(&mut self, lanes: &[ir::Value], source: ir::Value) -> Result<Lanes> {
        let mut results = Vec::with_capacity(lanes.len());
        for &lane in lanes {
            let ty = self.builder.func.dfg.value_type(lane);
            let pattern = self.pattern_of(lane)?;
            let bits = self.builder.func.dfg.value_type(pattern);
            let moved = if bits == I64 {
                let high = self.builder.ins().ushr_imm_u(pattern, 32);
                let words = [pattern, high].map(|word| {
                    let word = self.builder.ins().ireduce(I32, word);
                    let word = self.builder.intrinsic("gpu_shfl_idx", &[word, source]);
                    self.builder.ins().uextend(I64, word)
                });
                let high = self.builder.ins().ishl_imm_u(words[1], 32);
                self.builder.ins().bor(words[0], high)
            } else {
                let word = self.resize(pattern, I32);
                let word = self.builder.intrinsic("gpu_shfl_idx", &[word, source]);
                self.resize(word, bits)
            };
            results.push(self.bitcast(moved, ty));
        }
        Ok(results)
    }

    /// `Statement::SubgroupCollectiveOperation`.
    pub(super) fn collective(
        &mut self,
        op: SubgroupOperation,
        kind: CollectiveOperation,
        argument: Handle<Expression>,
        result: Handle<Expression>,
    ) -> Result<()> {
        let lanes = self.lanes(argument)?;
        let value = match op {
            SubgroupOperation::All | SubgroupOperation::Any => {
                let name = match op {
                    SubgroupOperation::All => "gpu_vote_all",
                    _ => "gpu_vote_any",
                };
                let votes = lanes
                    .iter()
                    .map(|&lane| self.builder.intrinsic(name, &[lane]));
                votes.collect()
            }
            _ => {
                let scalar = self.scalar(&self.type_of(argument))?;
                let active = ActiveLanes::new(self.builder);
                match kind {
                    CollectiveOperation::Reduce => self.reduction(op, scalar, lanes, active)?,
                    CollectiveOperation::InclusiveScan => self.scan(op, scalar, lanes, active)?,
                    CollectiveOperation::ExclusiveScan => {
                        let sums = self.scan(op, scalar, lanes, active)?;
                        let before = active.before(self.builder);
                        self.shifted(op, scalar, &sums, before)?
                    }
                }
            }
        };
        self.frame.values[result.index()] = Some(Value::Lanes(value));
        Ok(())
    }

    fn reduction(
        &mut self,
        op: SubgroupOperation,
        scalar: Scalar,
        mut lanes: Lanes,
        active: ActiveLanes,
    ) -> Result<Lanes> {
        for step in 0..ActiveLanes::STEPS {
            let peer = active.reduction(self.builder, step);
            lanes = self.step(op, scalar, &lanes, peer)?;
        }
        Ok(lanes)
    }

    fn scan(
        &mut self,
        op: SubgroupOperation,
        scalar: Scalar,
        mut lanes: Lanes,
        mut active: ActiveLanes,
    ) -> Result<Lanes> {
        if planted(Mistake::InactiveScan) {
            active.mask = self.integer(I32, -1);
        }
        for step in 0..ActiveLanes::STEPS {
            let peer = active.scan(self.builder, step);
            lanes = self.step(op, scalar, &lanes, peer)?;
        }
        Ok(lanes)
    }

    /// The lanes combined with those of the peer, if there is one. Lower lanes stand in front, so that sums of floats
    /// are the same in all lanes.
    fn step(
        &mut self,
        op: SubgroupOperation,
        scalar: Scalar,
        lanes: &[ir::Value],
        peer: Peer,
    ) -> Result<Lanes> {
        let others = self.read(lanes, peer.lane)?;
        let mut results = Vec::with_capacity(lanes.len());
        for (&lane, other) in lanes.iter().zip(others) {
            let (front, behind) = match peer.is_in_front {
                Some(is_in_front) if scalar.kind == ScalarKind::Float => (
                    self.builder.ins().select(is_in_front, other, lane),
                    self.builder.ins().select(is_in_front, lane, other),
                ),
                _ => (other, lane),
            };
            let combined = self.combined(op, scalar, front, behind)?;
            results.push(self.builder.ins().select(peer.is_there, combined, lane));
        }
        Ok(results)
    }

    fn combined(
        &mut self,
        op: SubgroupOperation,
        scalar: Scalar,
        a: ir::Value,
        b: ir::Value,
    ) -> Result<ir::Value> {
        let is_float = scalar.kind == ScalarKind::Float;
        Ok(match op {
            SubgroupOperation::Add if is_float => self.builder.ins().fadd(a, b),
            SubgroupOperation::Add => self.builder.ins().iadd(a, b),
            SubgroupOperation::Mul if is_float => self.builder.ins().fmul(a, b),
            SubgroupOperation::Mul => self.builder.ins().imul(a, b),
            SubgroupOperation::Min => self.lesser(scalar, a, b),
            SubgroupOperation::Max => self.greater(scalar, a, b),
            SubgroupOperation::And => self.builder.ins().band(a, b),
            SubgroupOperation::Or => self.builder.ins().bor(a, b),
            SubgroupOperation::Xor => self.builder.ins().bxor(a, b),
            SubgroupOperation::All | SubgroupOperation::Any => {
                return Err(invalid("a vote of numbers"));
            }
        })
    }

    /// What the active lane before has; in the first lane what changes nothing.
    fn shifted(
        &mut self,
        op: SubgroupOperation,
        scalar: Scalar,
        lanes: &[ir::Value],
        before: Peer,
    ) -> Result<Lanes> {
        let others = self.read(lanes, before.lane)?;
        let mut results = Vec::with_capacity(lanes.len());
        for other in others {
            let neutral = match (op, scalar.kind) {
                (SubgroupOperation::Add, _) => self.constant(scalar, 0)?,
                (SubgroupOperation::Mul, ScalarKind::Float) => self.float_constant(scalar, 1.0)?,
                (SubgroupOperation::Mul, _) => self.constant(scalar, 1)?,
                _ => return Err(unsupported(format!("an exclusive scan by {op:?}"))),
            };
            results.push(self.builder.ins().select(before.is_there, other, neutral));
        }
        Ok(results)
    }
}
