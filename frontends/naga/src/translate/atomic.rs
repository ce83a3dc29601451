//! Atomics. WGSL's are relaxed: they order nothing but their own place.

use super::memory::Address;
use super::places::{Place, Storage};
use super::types::clif;
use super::values::Value;
use super::{Result, Translator};
use crate::error::{invalid, unsupported};
use cranelift_codegen::ir;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, MemFlagsData};
use cranelift_thisgpu::build::GpuBuilder;
use naga::{AtomicFunction, Expression, Handle, Scalar, ScalarKind, TypeInner};

/// Relaxed, and aligned as all of WGSL's memory.
fn flags() -> MemFlagsData {
    MemFlagsData::new().with_aligned().with_can_move()
}

impl Translator<'_, '_, '_> {
    /// Where an atomic is: CLIF's atomics take no offset.
    fn atomic_address(&mut self, place: &Place) -> Result<(ir::Value, Address)> {
        let Storage::Memory(address) = place.storage else {
            return Err(invalid("an atomic that is no memory"));
        };
        Ok((self.whole(address), address))
    }

    /// An address without an offset.
    fn whole(&mut self, address: Address) -> ir::Value {
        match address.offset {
            0 => address.base,
            offset => (self.builder.ins()).iadd_imm_u(address.base, i64::from(offset)),
        }
    }

    /// A scalar of a buffer that is `@coherent` or `@volatile`.
    pub(super) fn relaxed_load(&mut self, address: Address, ty: ir::Type) -> Result<ir::Value> {
        let whole = self.whole(address);
        let value = (self.builder.ins()).atomic_load(integer_of(ty)?, flags(), whole);
        Ok(self.bitcast(value, ty))
    }

    /// Stores a scalar to such a buffer.
    pub(super) fn relaxed_store(&mut self, address: Address, value: ir::Value) -> Result<()> {
        let bits = integer_of(self.builder.func.dfg.value_type(value))?;
        let (whole, value) = (self.whole(address), self.bitcast(value, bits));
        self.builder.ins().atomic_store(flags(), value, whole);
        Ok(())
    }

    /// `atomicLoad`.
    pub(super) fn atomic_load(&mut self, place: &Place, scalar: Scalar) -> Result<Value> {
        let (whole, address) = self.atomic_address(place)?;
        let ty = clif(scalar)?;
        let lanes = self.inside(address.inside, |this| {
            let bits = integer_of(ty)?;
            let value = this.builder.ins().atomic_load(bits, flags(), whole);
            Ok(vec![this.bitcast(value, ty)])
        })?;
        Ok(Value::Lanes(lanes))
    }

    /// `atomicStore`.
    pub(super) fn atomic_store(
        &mut self,
        place: &Place,
        scalar: Scalar,
        value: Handle<Expression>,
    ) -> Result<()> {
        let value = self.single(value)?;
        let (whole, address) = self.atomic_address(place)?;
        let bits = integer_of(clif(scalar)?)?;
        self.inside(address.inside, |this| {
            let value = this.bitcast(value, bits);
            this.builder.ins().atomic_store(flags(), value, whole);
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// `Statement::Atomic`.
    pub(super) fn atomic(
        &mut self,
        pointer: Handle<Expression>,
        fun: AtomicFunction,
        value: Handle<Expression>,
        result: Option<Handle<Expression>>,
    ) -> Result<()> {
        let place = self.place(pointer)?;
        let TypeInner::Atomic(scalar) = *self.inner(&place.ty) else {
            return Err(invalid("an atomic operation on what is no atomic"));
        };
        let value = self.single(value)?;
        let compared = match fun {
            AtomicFunction::Exchange { compare } => compare.map(|c| self.single(c)).transpose()?,
            _ => None,
        };
        let (whole, address) = self.atomic_address(&place)?;
        let lanes = self.inside(address.inside, |this| {
            this.atomic_at(whole, scalar, fun, value, compared)
        })?;
        if let Some(result) = result {
            self.frame.values[result.index()] = Some(Value::Lanes(lanes));
        }
        Ok(())
    }

    /// The old value, and of a comparison whether it was exchanged.
    fn atomic_at(
        &mut self,
        address: ir::Value,
        scalar: Scalar,
        fun: AtomicFunction,
        value: ir::Value,
        compared: Option<ir::Value>,
    ) -> Result<Vec<ir::Value>> {
        use AtomicFunction as A;
        let ty = clif(scalar)?;
        let bits = integer_of(ty)?;
        let (is_signed, is_float) = (
            scalar.kind == ScalarKind::Sint,
            scalar.kind == ScalarKind::Float,
        );
        if let Some(compared) = compared {
            let (compared, value) = (self.bitcast(compared, bits), self.bitcast(value, bits));
            let old = self
                .builder
                .ins()
                .atomic_cas(flags(), address, compared, value);
            let exchanged = self.builder.ins().icmp(IntCC::Equal, old, compared);
            return Ok(vec![self.bitcast(old, ty), exchanged]);
        }
        let op = match fun {
            A::Add | A::Subtract if is_float => return self.float_sum(address, scalar, fun, value),
            A::Exchange { .. } => AtomicRmwOp::Xchg,
            _ if is_float => return Err(unsupported(format!("an atomic {fun:?} of floats"))),
            A::Add => AtomicRmwOp::Add,
            A::Subtract => AtomicRmwOp::Sub,
            A::And => AtomicRmwOp::And,
            A::ExclusiveOr => AtomicRmwOp::Xor,
            A::InclusiveOr => AtomicRmwOp::Or,
            A::Min if is_signed => AtomicRmwOp::Smin,
            A::Min => AtomicRmwOp::Umin,
            A::Max if is_signed => AtomicRmwOp::Smax,
            A::Max => AtomicRmwOp::Umax,
        };
        let value = self.bitcast(value, bits);
        let old = (self.builder.ins()).atomic_rmw(bits, flags(), op, address, value);
        Ok(vec![self.bitcast(old, ty)])
    }

    fn float_sum(
        &mut self,
        address: ir::Value,
        scalar: Scalar,
        fun: AtomicFunction,
        value: ir::Value,
    ) -> Result<Vec<ir::Value>> {
        let value = match fun {
            AtomicFunction::Subtract => self.builder.ins().fneg(value),
            _ => value,
        };
        let is_global = self.builder.func.dfg.value_type(address) == I64;
        if scalar.width == 4 && is_global {
            return Ok(vec![
                self.builder
                    .intrinsic("gpu_atomic_add_f32", &[address, value]),
            ]);
        }
        self.exchange_loop(address, scalar, value)
    }

    /// A sum without an instruction: until nobody was faster.
    fn exchange_loop(
        &mut self,
        address: ir::Value,
        scalar: Scalar,
        value: ir::Value,
    ) -> Result<Vec<ir::Value>> {
        let ty = clif(scalar)?;
        let bits = integer_of(ty)?;
        let first = self.builder.ins().atomic_load(bits, flags(), address);
        let [again, behind] = [(); 2].map(|()| self.builder.create_block());
        let seen = self.builder.append_block_param(again, bits);
        self.builder.ins().jump(again, &[first.into()]);
        self.builder.switch_to_block(again);
        let old = self.bitcast(seen, ty);
        let new = self.builder.ins().fadd(old, value);
        let new = self.bitcast(new, bits);
        let found = (self.builder.ins()).atomic_cas(flags(), address, seen, new);
        let is_done = self.builder.ins().icmp(IntCC::Equal, found, seen);
        (self.builder.ins()).brif(is_done, behind, &[], again, &[found.into()]);
        self.builder.switch_to_block(behind);
        Ok(vec![old])
    }
}

/// The integer of the same width.
fn integer_of(ty: ir::Type) -> Result<ir::Type> {
    let bits = ir::Type::int(ty.bits() as u16);
    bits.ok_or_else(|| invalid("an atomic of no scalar"))
}
