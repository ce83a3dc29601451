//! Operations of a subgroup, which is a warp, on the invocations that are active there.
//!
//! A reduction goes through blocks of 1, 2, 4, 8 and 16 lanes: each lane adds what the first active lane of the block
//! beside its own has, which is the sum of that block, so lanes that are not active are never read. A scan does the
//! same with the last active lane of the block below.

use super::builtins::SUBGROUP;
use super::values::{Lanes, Value};
use super::{Result, Translator};
use crate::error::{invalid, unsupported};
use crate::mistakes::{Mistake, planted};
use cranelift_codegen::ir;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_thisgpu::build::GpuBuilder;
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
        let own = self.builder.intrinsic("gpu_laneid", &[]);
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
        let mask = self.builder.intrinsic("gpu_activemask", &[]);
        let source = match (mode, number) {
            (GatherMode::BroadcastFirst, _) => self.builder.ins().ctz(mask),
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
        let source = self.readable(source, own, mask);
        let lanes = self.read(&lanes, source)?;
        self.frame.values[result.index()] = Some(Value::Lanes(lanes));
        Ok(())
    }

    /// A lane that may be read: the own one in the place of one that is none or is not active.
    fn readable(&mut self, source: ir::Value, own: ir::Value, mask: ir::Value) -> ir::Value {
        let limit = self.integer(I32, SUBGROUP.into());
        let exists = (self.builder.ins()).icmp(IntCC::UnsignedLessThan, source, limit);
        let bit = self.builder.ins().ushr(mask, source);
        let bit = self.builder.ins().band_imm_u(bit, 1);
        let bit = self.builder.ins().ireduce(I8, bit);
        let is_active = self.builder.ins().band(exists, bit);
        self.builder.ins().select(is_active, source, own)
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
                let mask = self.builder.intrinsic("gpu_activemask", &[]);
                let own = self.builder.intrinsic("gpu_laneid", &[]);
                match kind {
                    CollectiveOperation::Reduce => self.reduction(op, scalar, lanes, mask, own)?,
                    CollectiveOperation::InclusiveScan => {
                        self.scan(op, scalar, lanes, mask, own)?
                    }
                    CollectiveOperation::ExclusiveScan => {
                        let sums = self.scan(op, scalar, lanes, mask, own)?;
                        self.shifted(op, scalar, &sums, mask, own)?
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
        mask: ir::Value,
        own: ir::Value,
    ) -> Result<Lanes> {
        for step in 0..SUBGROUP.ilog2() {
            let width = 1i64 << step;
            let beside = self.builder.ins().bxor_imm_u(own, width);
            let start = self.builder.ins().band_imm_u(beside, -width & 31);
            let shifted = self.builder.ins().ushr(mask, start);
            let there = self.builder.ins().band_imm_u(shifted, (1 << width) - 1);
            let first = self.builder.ins().ctz(there);
            let source = self.builder.ins().iadd(start, first);
            // Lower lanes stand in front, so that sums of floats are the same in all lanes.
            let is_upper = self.builder.ins().band_imm_u(own, width);
            lanes = self.step(op, scalar, &lanes, there, source, own, Some(is_upper))?;
        }
        Ok(lanes)
    }

    fn scan(
        &mut self,
        op: SubgroupOperation,
        scalar: Scalar,
        mut lanes: Lanes,
        mask: ir::Value,
        own: ir::Value,
    ) -> Result<Lanes> {
        let mask = match planted(Mistake::InactiveScan) {
            true => self.integer(I32, -1),
            false => mask,
        };
        for step in 0..SUBGROUP.ilog2() {
            let width = 1i64 << step;
            let start = self.builder.ins().band_imm_u(own, -(2 * width) & 31);
            let shifted = self.builder.ins().ushr(mask, start);
            let below = self.builder.ins().band_imm_u(shifted, (1 << width) - 1);
            // Only the upper half takes something.
            let is_upper = self.builder.ins().band_imm_u(own, width);
            let zero = self.integer(I32, 0);
            let there = self.builder.ins().select(is_upper, below, zero);
            let last = self.last_of(there);
            let source = self.builder.ins().iadd(start, last);
            lanes = self.step(op, scalar, &lanes, there, source, own, None)?;
        }
        Ok(lanes)
    }

    /// The number of the highest bit of a mask that has one.
    fn last_of(&mut self, mask: ir::Value) -> ir::Value {
        let zeros = self.builder.ins().clz(mask);
        let highest = self.integer(I32, 31);
        self.builder.ins().isub(highest, zeros)
    }

    /// The lanes combined with those of `source`, if anybody is `there`. The other's stand in front, but where
    /// `is_upper` is given and 0.
    #[expect(
        clippy::too_many_arguments,
        reason = "all of them differ from step to step"
    )]
    fn step(
        &mut self,
        op: SubgroupOperation,
        scalar: Scalar,
        lanes: &[ir::Value],
        there: ir::Value,
        source: ir::Value,
        own: ir::Value,
        is_upper: Option<ir::Value>,
    ) -> Result<Lanes> {
        let zero = self.integer(I32, 0);
        let any = self.builder.ins().icmp(IntCC::NotEqual, there, zero);
        let source = self.builder.ins().select(any, source, own);
        let others = self.read(lanes, source)?;
        let mut results = Vec::with_capacity(lanes.len());
        for (&lane, other) in lanes.iter().zip(others) {
            let (front, behind) = match is_upper {
                Some(is_upper) if scalar.kind == ScalarKind::Float => (
                    self.builder.ins().select(is_upper, other, lane),
                    self.builder.ins().select(is_upper, lane, other),
                ),
                _ => (other, lane),
            };
            let combined = self.combined(op, scalar, front, behind)?;
            results.push(self.builder.ins().select(any, combined, lane));
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
        mask: ir::Value,
        own: ir::Value,
    ) -> Result<Lanes> {
        let one = self.integer(I32, 1);
        let bit = self.builder.ins().ishl(one, own);
        let lower = self.builder.ins().isub(bit, one);
        let before = self.builder.ins().band(mask, lower);
        let zero = self.integer(I32, 0);
        let any = self.builder.ins().icmp(IntCC::NotEqual, before, zero);
        let last = self.last_of(before);
        let source = self.builder.ins().select(any, last, own);
        let others = self.read(lanes, source)?;
        let mut results = Vec::with_capacity(lanes.len());
        for other in others {
            let neutral = match (op, scalar.kind) {
                (SubgroupOperation::Add, _) => self.constant(scalar, 0)?,
                (SubgroupOperation::Mul, ScalarKind::Float) => self.float_constant(scalar, 1.0)?,
                (SubgroupOperation::Mul, _) => self.constant(scalar, 1)?,
                _ => return Err(unsupported(format!("an exclusive scan by {op:?}"))),
            };
            results.push(self.builder.ins().select(any, other, neutral));
        }
        Ok(results)
    }
}
