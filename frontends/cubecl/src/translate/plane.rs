//! Operations of a plane: the lanes of a warp that are active together.
//!
//! A plane may be short of units, at the end of a cube whose size is no multiple of 32 or in a branch that only some
//! take, and a shuffle from a lane that is not active is a fault. So every lane asks who is there and reads only from
//! those, in the steps of [`ActiveLanes`]. A shuffle whose source is not active gives the lane's own value.

use super::types::{self, Scalar};
use super::{Lanes, Result, Translator, unsupported};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_thisgpu::build::{ActiveLanes, GpuBuilder, Peer};
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
                let active = self.active();
                let first = active.first(self.builder);
                let elected = self.builder.ins().icmp(IntCC::Equal, active.own, first);
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
                let (lane, mask) = (self.hardware("gpu_laneid", I32), self.single(op, 1)?);
                let source = self.builder.ins().bxor(lane, mask);
                self.shuffle(op, source)?;
            }
            "shuffle_up" => {
                let (lane, delta) = (self.hardware("gpu_laneid", I32), self.single(op, 1)?);
                let source = self.builder.ins().isub(lane, delta);
                self.shuffle(op, source)?;
            }
            "shuffle_down" => {
                let (lane, delta) = (self.hardware("gpu_laneid", I32), self.single(op, 1)?);
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

    /// The operand of the lane `source`, or the own one where that lane is none or not active.
    fn shuffle(&mut self, op: Ptr<Operation>, source: Value) -> Result<()> {
        let source = self.resize(source, I32);
        let source = self.active().readable(self.builder, source);
        let scalars = types::lanes(self.context, self.result_type(op))?;
        let lanes = self.operand(op, 0)?;
        let lanes = self.read(&lanes, &scalars, source)?;
        self.define(op, lanes);
        Ok(())
    }

    fn active(&mut self) -> ActiveLanes {
        ActiveLanes::new(self.builder)
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
        let active = self.active();
        for step in 0..ActiveLanes::STEPS {
            let peer = active.reduction(self.builder, step);
            values = self.step(&values, &scalars, peer, combine)?;
        }
        self.define(op, values);
        Ok(())
    }

    /// The values combined with those of the peer, if there is one. All operations give the same for either order.
    fn step(
        &mut self,
        values: &[Value],
        scalars: &[Scalar],
        peer: Peer,
        combine: Combine,
    ) -> Result<Lanes> {
        let others = self.read(values, scalars, peer.lane)?;
        let mut result = Vec::with_capacity(values.len());
        for ((&value, other), &scalar) in values.iter().zip(others).zip(scalars) {
            let combined = self.combined(value, other, scalar, combine);
            let taken = self.builder.ins().select(peer.is_there, combined, value);
            result.push(taken);
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
        let active = self.active();
        for step in 0..ActiveLanes::STEPS {
            let peer = active.scan(self.builder, step);
            values = self.step(&values, &scalars, peer, combine)?;
        }
        if !inclusive {
            let before = active.before(self.builder);
            values = self.shifted_up(&values, &scalars, before, combine)?;
        }
        self.define(op, values);
        Ok(())
    }

    /// The values of the active lane before, in the first lane what changes nothing.
    fn shifted_up(
        &mut self,
        values: &[Value],
        scalars: &[Scalar],
        before: Peer,
        combine: Combine,
    ) -> Result<Lanes> {
        let others = self.read(values, scalars, before.lane)?;
        let mut result = Vec::with_capacity(values.len());
        for (other, &scalar) in others.into_iter().zip(scalars) {
            let neutral = match (combine, scalar.is_float()) {
                (Combine::Product, true) => self.float_constant(1.0, scalar),
                (Combine::Product, false) => self.integer(scalar.clif(), 1),
                _ => self.zero(scalar),
            };
            let taken = self.builder.ins().select(before.is_there, other, neutral);
            result.push(taken);
        }
        Ok(result)
    }
}
