//! Operations of a plane: the lanes of a warp that are active together.
//!
//! A plane may be short of units, at the end of a cube whose size is no multiple of 32 or in a branch that only some
//! take, and a shuffle from a lane that is not active is a fault. So every lane asks [`gpu_activemask`] who is there
//! and reads only from those:
//!
//! - a *reduction* takes five steps; in step k a lane has the value of all active lanes of its block of 2^k lanes and
//!   adds that of the neighbouring block, which its lowest active lane has. All lanes end with the same value, and all
//!   add the same two numbers in each step.
//! - a *scan* (Sklansky) takes five steps; in step k the lanes in the upper half of a block of 2^(k+1) add what the
//!   last active lane of the lower half has.
//! - a shuffle whose source is not active gives the lane's own value.

use super::types::{self, Scalar};
use super::{Lanes, Result, Translator, unsupported};
use crate::properties::PLANE_UNITS;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_thisgpu::build::GpuBuilder;
use cubecl_core::ir::dialect::{OperationPtrExt, plane::BroadcastOp};
use pliron::context::Ptr;
use pliron::operation::Operation;

/// How two values become one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Combine {
    Sum,
    Product,
    Min,
    Max,
}

impl Translator<'_, '_, '_> {
    /// The `plane` dialect.
    pub(super) fn plane(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        match name {
            "elect" => {
                let (mask, lane) = (self.active(), self.lane());
                let first = self.builder.ins().ctz(mask);
                let elected = self.builder.ins().icmp(IntCC::Equal, lane, first);
                self.define(op, vec![elected]);
            }
            "all" => {
                return self.map(op, |t, [a], _| {
                    Ok(t.builder.intrinsic("gpu_vote_all", &[a]))
                });
            }
            "any" => {
                return self.map(op, |t, [a], _| {
                    Ok(t.builder.intrinsic("gpu_vote_any", &[a]))
                });
            }
            "ballot" => {
                let condition = self.single(op, 0)?;
                let mask = self.builder.intrinsic("gpu_ballot", &[condition]);
                let zero = self.integer(I32, 0);
                self.define(op, vec![mask, zero, zero, zero]);
            }
            "broadcast" => {
                let broadcast = super::metadata::required(op.as_op::<BroadcastOp>(self.context))?;
                let lane = self.integer(I32, broadcast.lane(self.context).0 as i64);
                self.shuffle(op, lane)?;
            }
            "shuffle" => {
                let lane = self.single(op, 1)?;
                self.shuffle(op, lane)?;
            }
            "shuffle_xor" => {
                let (lane, mask) = (self.lane(), self.single(op, 1)?);
                let source = self.builder.ins().bxor(lane, mask);
                self.shuffle(op, source)?;
            }
            "shuffle_up" => {
                let (lane, delta) = (self.lane(), self.single(op, 1)?);
                let source = self.builder.ins().isub(lane, delta);
                self.shuffle(op, source)?;
            }
            "shuffle_down" => {
                let (lane, delta) = (self.lane(), self.single(op, 1)?);
                let source = self.builder.ins().iadd(lane, delta);
                self.shuffle(op, source)?;
            }
            // All units of the cube read the same: nobody writes before the last has read.
            "uniform_load" => {
                self.builder.call_intrinsic("gpu_bar_sync", &[]);
                let lanes = self.load_from(op.operand(self.context, 0))?;
                self.builder.call_intrinsic("gpu_bar_sync", &[]);
                self.define(op, lanes);
            }
            "atomic_uniform_load" => {
                self.builder.call_intrinsic("gpu_bar_sync", &[]);
                self.atomic(op, "load")?;
                self.builder.call_intrinsic("gpu_bar_sync", &[]);
            }
            "i_sum" | "f_sum" => self.reduce(op, Combine::Sum)?,
            "i_prod" | "f_prod" => self.reduce(op, Combine::Product)?,
            "s_min" | "u_min" | "f_min" => self.reduce(op, Combine::Min)?,
            "s_max" | "u_max" | "f_max" => self.reduce(op, Combine::Max)?,
            "inclusive_i_sum" | "inclusive_f_sum" => self.scan(op, Combine::Sum, true)?,
            "exclusive_i_sum" | "exclusive_f_sum" => self.scan(op, Combine::Sum, false)?,
            "inclusive_i_prod" | "inclusive_f_prod" => self.scan(op, Combine::Product, true)?,
            "exclusive_i_prod" | "exclusive_f_prod" => self.scan(op, Combine::Product, false)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn active(&mut self) -> Value {
        self.builder.intrinsic("gpu_activemask", &[])
    }

    fn lane(&mut self) -> Value {
        self.hardware("gpu_laneid", I32)
    }

    /// The operand of the lane `source`, or the own one where that lane is none or not active.
    fn shuffle(&mut self, op: Ptr<Operation>, source: Value) -> Result<()> {
        let source = self.resize(source, I32);
        let (mask, own) = (self.active(), self.lane());
        let limit = self.integer(I32, PLANE_UNITS.into());
        let exists = self
            .builder
            .ins()
            .icmp(IntCC::UnsignedLessThan, source, limit);
        let is_active = self.is_active(mask, source);
        let readable = self.builder.ins().band(exists, is_active);
        let source = self.builder.ins().select(readable, source, own);
        let scalars = types::lanes(self.context, self.result_type(op))?;
        let lanes = self.operand(op, 0)?;
        let lanes = self.read(&lanes, &scalars, source)?;
        self.define(op, lanes);
        Ok(())
    }

    fn is_active(&mut self, mask: Value, lane: Value) -> Value {
        let bit = self.builder.ins().ushr(mask, lane);
        let bit = self.builder.ins().band_imm_u(bit, 1);
        let zero = self.integer(I32, 0);
        self.builder.ins().icmp(IntCC::NotEqual, bit, zero)
    }

    /// The lanes of the unit `source`, which is active.
    fn read(&mut self, lanes: &[Value], scalars: &[Scalar], source: Value) -> Result<Lanes> {
        let mut result = Vec::with_capacity(lanes.len());
        for (&lane, &scalar) in lanes.iter().zip(scalars) {
            if matches!(scalar, Scalar::Pointer(_)) {
                return Err(unsupported("pointers of another unit"));
            }
            let bytes = scalar.bytes().min(4);
            let pieces = self.pieces(&[lane], &[scalar], bytes);
            let mut moved = Vec::with_capacity(pieces.len());
            for piece in pieces {
                let word = self.resize(piece, I32);
                let word = self.builder.intrinsic("gpu_shfl_idx", &[word, source]);
                let ty = self.builder.func.dfg.value_type(piece);
                moved.push(self.resize(word, ty));
            }
            result.extend(self.joined(&moved, &[scalar], bytes));
        }
        Ok(result)
    }

    fn reduce(&mut self, op: Ptr<Operation>, combine: Combine) -> Result<()> {
        let scalars = types::lanes(self.context, self.result_type(op))?;
        let mut values = self.operand(op, 0)?;
        let (mask, own) = (self.active(), self.lane());
        for step in 0..PLANE_UNITS.ilog2() {
            let width = 1i64 << step;
            // The first lane of the block beside the own one, and who of that is active.
            let beside = self.builder.ins().bxor_imm_u(own, width);
            let start = self.builder.ins().band_imm_u(beside, -width & 31);
            let shifted = self.builder.ins().ushr(mask, start);
            let block = self.integer(I32, low_bits(width));
            let there = self.builder.ins().band(shifted, block);
            let first = self.builder.ins().ctz(there);
            let first = self.builder.ins().iadd(start, first);
            values = self.step(&values, &scalars, there, first, own, combine)?;
        }
        self.define(op, values);
        Ok(())
    }

    /// The values combined with those of `source`, if anybody is `there`.
    fn step(
        &mut self,
        values: &[Value],
        scalars: &[Scalar],
        there: Value,
        source: Value,
        own: Value,
        combine: Combine,
    ) -> Result<Lanes> {
        let zero = self.integer(I32, 0);
        let any = self.builder.ins().icmp(IntCC::NotEqual, there, zero);
        let source = self.builder.ins().select(any, source, own);
        let others = self.read(values, scalars, source)?;
        let mut result = Vec::with_capacity(values.len());
        for ((&value, other), &scalar) in values.iter().zip(others).zip(scalars) {
            let combined = self.combined(value, other, scalar, combine);
            result.push(self.builder.ins().select(any, combined, value));
        }
        Ok(result)
    }

    fn combined(&mut self, a: Value, b: Value, scalar: Scalar, combine: Combine) -> Value {
        let is_float = scalar.is_float();
        match combine {
            Combine::Sum if is_float => self.float_add(a, b, scalar),
            Combine::Sum => self.builder.ins().iadd(a, b),
            Combine::Product if is_float => self.float_mul(a, b, scalar),
            Combine::Product => self.builder.ins().imul(a, b),
            Combine::Min if is_float => self.smaller(a, b, scalar),
            Combine::Max if is_float => self.larger(a, b, scalar),
            Combine::Min if scalar.is_signed() => self.builder.ins().smin(a, b),
            Combine::Max if scalar.is_signed() => self.builder.ins().smax(a, b),
            Combine::Min => self.builder.ins().umin(a, b),
            Combine::Max => self.builder.ins().umax(a, b),
        }
    }

    fn scan(&mut self, op: Ptr<Operation>, combine: Combine, inclusive: bool) -> Result<()> {
        let scalars = types::lanes(self.context, self.result_type(op))?;
        let mut values = self.operand(op, 0)?;
        let (mask, own) = (self.active(), self.lane());
        for step in 0..PLANE_UNITS.ilog2() {
            let width = 1i64 << step;
            let start = self.builder.ins().band_imm_u(own, -(2 * width) & 31);
            let shifted = self.builder.ins().ushr(mask, start);
            let block = self.integer(I32, low_bits(width));
            let below = self.builder.ins().band(shifted, block);
            // Only the upper half takes something.
            let upper = self.builder.ins().band_imm_u(own, width);
            let zero = self.integer(I32, 0);
            let there = self.builder.ins().select(upper, below, zero);
            let last = self.last_of(there);
            let last = self.builder.ins().iadd(start, last);
            values = self.step(&values, &scalars, there, last, own, combine)?;
        }
        if !inclusive {
            values = self.shifted_up(&values, &scalars, mask, own, combine)?;
        }
        self.define(op, values);
        Ok(())
    }

    /// The number of the highest bit of a mask that has one.
    fn last_of(&mut self, mask: Value) -> Value {
        let zeros = self.builder.ins().clz(mask);
        let highest = self.integer(I32, 31);
        self.builder.ins().isub(highest, zeros)
    }

    /// The values of the active lane before, in the first lane what changes nothing.
    fn shifted_up(
        &mut self,
        values: &[Value],
        scalars: &[Scalar],
        mask: Value,
        own: Value,
        combine: Combine,
    ) -> Result<Lanes> {
        let one = self.integer(I32, 1);
        let bit = self.builder.ins().ishl(one, own);
        let lower = self.builder.ins().isub(bit, one);
        let before = self.builder.ins().band(mask, lower);
        let zero = self.integer(I32, 0);
        let any = self.builder.ins().icmp(IntCC::NotEqual, before, zero);
        let last = self.last_of(before);
        let source = self.builder.ins().select(any, last, own);
        let others = self.read(values, scalars, source)?;
        let mut result = Vec::with_capacity(values.len());
        for (other, &scalar) in others.into_iter().zip(scalars) {
            let neutral = match (combine, scalar.is_float()) {
                (Combine::Product, true) => self.float_constant(1.0, scalar),
                (Combine::Product, false) => self.integer(scalar.clif(), 1),
                _ => self.zero(scalar),
            };
            result.push(self.builder.ins().select(any, other, neutral));
        }
        Ok(result)
    }
}

/// A mask of so many lanes from the first on.
fn low_bits(count: i64) -> i64 {
    (1 << count) - 1
}
