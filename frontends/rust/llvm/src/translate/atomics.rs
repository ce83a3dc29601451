//! Atomics and volatile accesses.
//!
//! CLIF has two orders: the strongest, which stands for all of Rust's but `Relaxed`, and with `can_move` none with
//! other addresses, which is that. A volatile access is a relaxed one, or several where it is too wide: it is made as
//! often as the program says, in its place among the others.

use super::function::{Body, Parts, Result};
use super::shape::{self, Scalar};
use crate::error::Problem;
use crate::model::{Access, Binary, Operand, Ordering, Type, Update};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AtomicRmwOp, InstBuilder, MemFlagsData};
use smallvec::smallvec;

/// Most bits of an atomic access.
const MAX_BITS: u32 = 64;

/// The flags of an access of this order.
fn flags(ordering: Ordering) -> MemFlagsData {
    let flags = MemFlagsData::new().with_aligned();
    match ordering {
        Ordering::Ordered => flags,
        Ordering::Plain | Ordering::Relaxed => flags.with_can_move(),
    }
}

/// The integer that an atomic access of a scalar is of.
fn pattern(of: Scalar) -> Result<ir::Type> {
    let ty = of.pattern();
    if ty.bits() > MAX_BITS {
        let bits = ty.bits();
        let message = format!("atomics of {bits} bits are not supported: {MAX_BITS} at most");
        return Err(Problem::Unsupported(message.into()));
    }
    Ok(ty)
}

impl Body<'_, '_, '_> {
    pub fn atomic_load(&mut self, ty: &Type, base: ir::Value, access: Access) -> Result<Parts> {
        let mut parts = Parts::new();
        for (part, offset) in shape::placed_parts(ty)? {
            let place = self.add_offset(base, offset as i64);
            if access.ordering == Ordering::Plain && part.bits() > MAX_BITS {
                parts.push(self.halves_loaded(place));
                continue;
            }
            let (pattern, flags) = (pattern(part)?, flags(access.ordering));
            let value = self.builder.ins().atomic_load(pattern, flags, place);
            parts.push(self.of_pattern(value, part));
        }
        Ok(parts)
    }

    /// A volatile load of 128 bits.
    fn halves_loaded(&mut self, place: ir::Value) -> ir::Value {
        let flags = flags(Ordering::Relaxed);
        let high = self.add_offset(place, 8);
        let [low, high] =
            [place, high].map(|place| self.builder.ins().atomic_load(ir::types::I64, flags, place));
        self.builder.ins().iconcat(low, high)
    }

    pub fn atomic_store(
        &mut self,
        ty: &Type,
        parts: Parts,
        base: ir::Value,
        access: Access,
    ) -> Result<()> {
        let placed = shape::placed_parts(ty)?;
        for (value, (part, offset)) in parts.into_iter().zip(placed) {
            let place = self.add_offset(base, offset as i64);
            if access.ordering == Ordering::Plain && part.bits() > MAX_BITS {
                let (low, high) = self.builder.ins().isplit(value);
                let above = self.add_offset(place, 8);
                let flags = flags(access.ordering);
                self.builder.ins().atomic_store(flags, low, place);
                self.builder.ins().atomic_store(flags, high, above);
                continue;
            }
            pattern(part)?;
            let value = self.pattern(value, part);
            let flags = flags(access.ordering);
            self.builder.ins().atomic_store(flags, value, place);
        }
        Ok(())
    }

    pub fn compare_exchange(
        &mut self,
        address: &Operand,
        expected: &Operand,
        new: &Operand,
        access: Access,
    ) -> Result<Parts> {
        let scalar = Scalar::of(&new.ty)?;
        pattern(scalar)?;
        let (place, expected) = (self.single(address)?, self.single(expected)?);
        let new = self.single(new)?;
        let flags = flags(access.ordering);
        let old = (self.builder.ins()).atomic_cas(flags, place, expected, new);
        let equal = self.builder.ins().icmp(IntCC::Equal, old, expected);
        Ok(smallvec![old, equal])
    }

    pub fn update(
        &mut self,
        update: Update,
        address: &Operand,
        operand: &Operand,
        access: Access,
    ) -> Result<Parts> {
        let scalar = Scalar::of(&operand.ty)?;
        let ty = pattern(scalar)?;
        let (place, value) = (self.single(address)?, self.single(operand)?);
        let rmw = match update {
            Update::Xchg => AtomicRmwOp::Xchg,
            Update::Add => AtomicRmwOp::Add,
            Update::Sub => AtomicRmwOp::Sub,
            Update::And => AtomicRmwOp::And,
            Update::Nand => AtomicRmwOp::Nand,
            Update::Or => AtomicRmwOp::Or,
            Update::Xor => AtomicRmwOp::Xor,
            Update::Max => AtomicRmwOp::Smax,
            Update::Min => AtomicRmwOp::Smin,
            Update::UMax => AtomicRmwOp::Umax,
            Update::UMin => AtomicRmwOp::Umin,
            _ => return self.update_loop(update, scalar, place, value, flags(access.ordering)),
        };
        if scalar.pattern().bits() != scalar.bits() && update != Update::Xchg {
            return self.update_loop(update, scalar, place, value, flags(access.ordering));
        }
        let value = self.pattern(value, scalar);
        let old = self
            .builder
            .ins()
            .atomic_rmw(ty, flags(access.ordering), rmw, place, value);
        Ok(smallvec![self.of_pattern(old, scalar)])
    }

    /// A loop around a compare-and-swap with these flags.
    fn update_loop(
        &mut self,
        update: Update,
        of: Scalar,
        place: ir::Value,
        operand: ir::Value,
        flags: MemFlagsData,
    ) -> Result<Parts> {
        let pattern = of.pattern();
        let relaxed = flags.with_can_move();
        let first = self.builder.ins().atomic_load(pattern, relaxed, place);
        let (head, behind) = (self.builder.create_block(), self.builder.create_block());
        let old = self.builder.append_block_param(head, pattern);
        self.builder.ins().jump(head, &[first.into()]);
        self.builder.switch_to_block(head);
        let value = self.of_pattern(old, of);
        let new = self.updated(update, of, value, operand)?;
        let new = self.pattern(new, of);
        let found = self.builder.ins().atomic_cas(flags, place, old, new);
        let done = self.builder.ins().icmp(IntCC::Equal, found, old);
        self.builder
            .ins()
            .brif(done, behind, &[], head, &[found.into()]);
        self.builder.switch_to_block(behind);
        Ok(smallvec![self.of_pattern(old, of)])
    }

    /// What an update makes of a value.
    fn updated(
        &mut self,
        update: Update,
        of: Scalar,
        old: ir::Value,
        by: ir::Value,
    ) -> Result<ir::Value> {
        let bits = of.bits();
        Ok(match update {
            Update::FAdd => self.builder.ins().fadd(old, by),
            Update::FSub => self.builder.ins().fsub(old, by),
            Update::FMax => self.number_of(false, old, by),
            Update::FMin => self.number_of(true, old, by),
            Update::Xchg => by,
            Update::Add => self.int_binary(Binary::Add, bits, old, by)?,
            Update::Sub => self.int_binary(Binary::Sub, bits, old, by)?,
            Update::And => self.builder.ins().band(old, by),
            Update::Or => self.builder.ins().bor(old, by),
            Update::Xor => self.builder.ins().bxor(old, by),
            Update::Nand => {
                let both = self.builder.ins().band(old, by);
                let not = self.builder.ins().bnot(both);
                self.without_excess(not, bits)
            }
            Update::Max => self.choose(IntCC::SignedGreaterThan, bits, old, by),
            Update::Min => self.choose(IntCC::SignedLessThan, bits, old, by),
            Update::UMax => self.choose(IntCC::UnsignedGreaterThan, bits, old, by),
            Update::UMin => self.choose(IntCC::UnsignedLessThan, bits, old, by),
            Update::USubSat => self.saturating(Binary::Sub, false, bits, old, by)?,
            Update::USubCond => {
                let difference = self.builder.ins().isub(old, by);
                let condition = IntCC::UnsignedGreaterThanOrEqual;
                let enough = self.builder.ins().icmp(condition, old, by);
                self.builder.ins().select(enough, difference, old)
            }
            Update::UIncWrap | Update::UDecWrap => {
                let ty = self.type_of(old);
                let (zero, one) = (self.integer(ty, 0), self.integer(ty, 1));
                if update == Update::UIncWrap {
                    let more = self.builder.ins().iadd(old, one);
                    let condition = IntCC::UnsignedGreaterThanOrEqual;
                    let at_end = self.builder.ins().icmp(condition, old, by);
                    self.builder.ins().select(at_end, zero, more)
                } else {
                    let less = self.builder.ins().isub(old, one);
                    let beyond = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, old, by);
                    let is_zero = self.builder.ins().icmp(IntCC::Equal, old, zero);
                    let at_end = self.builder.ins().bor(beyond, is_zero);
                    self.builder.ins().select(at_end, by, less)
                }
            }
        })
    }
}
