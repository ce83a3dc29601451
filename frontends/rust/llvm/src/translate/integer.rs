//! Integers of any width.
//!
//! Bits above those of an integer are zero wherever it is at rest. What may set them is followed by a mask; what reads
//! the sign extends it first.

use super::function::{Body, Result};
use super::shape::container;
use crate::data::mask;
use crate::error::Problem;
use crate::model::{Binary, IntPredicate};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Type, types};

impl Body<'_, '_, '_> {
    /// The type of a value.
    pub fn type_of(&self, value: ir::Value) -> Type {
        self.builder.func.dfg.value_type(value)
    }

    /// Clears the bits above an integer's own.
    pub fn without_excess(&mut self, value: ir::Value, bits: u32) -> ir::Value {
        let ty = self.type_of(value);
        if ty.bits() == bits {
            return value;
        }
        let mask = self.integer(ty, mask(bits));
        self.builder.ins().band(value, mask)
    }

    /// Fills the bits above an integer's own with its sign.
    pub fn with_sign(&mut self, value: ir::Value, bits: u32) -> ir::Value {
        let ty = self.type_of(value);
        let unused = ty.bits() - bits;
        if unused == 0 {
            return value;
        }
        if bits == 1 {
            return self.builder.ins().ineg(value);
        }
        let amount = self.builder.ins().iconst(types::I32, i64::from(unused));
        let high = self.builder.ins().ishl(value, amount);
        self.builder.ins().sshr(high, amount)
    }

    /// Changes the type of an integer; bits that come into being are zero.
    pub fn resized(&mut self, value: ir::Value, to: Type) -> ir::Value {
        let from = self.type_of(value);
        match from.bits().cmp(&to.bits()) {
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Less => self.builder.ins().uextend(to, value),
            std::cmp::Ordering::Greater => self.builder.ins().ireduce(to, value),
        }
    }

    /// The same, where bits that come into being are the sign.
    pub fn resized_signed(&mut self, value: ir::Value, to: Type) -> ir::Value {
        match self.type_of(value).bits() < to.bits() {
            true => self.builder.ins().sextend(to, value),
            false => self.resized(value, to),
        }
    }

    /// An operation on integers of so many bits.
    ///
    /// # Errors
    /// An operation on floats.
    pub fn int_binary(
        &mut self,
        binary: Binary,
        bits: u32,
        a: ir::Value,
        b: ir::Value,
    ) -> Result<ir::Value> {
        let value = match binary {
            Binary::Add => self.builder.ins().iadd(a, b),
            Binary::Sub => self.builder.ins().isub(a, b),
            Binary::Mul => self.builder.ins().imul(a, b),
            Binary::And => return Ok(self.builder.ins().band(a, b)),
            Binary::Or => return Ok(self.builder.ins().bor(a, b)),
            Binary::Xor => return Ok(self.builder.ins().bxor(a, b)),
            Binary::UDiv => return Ok(self.builder.ins().udiv(a, b)),
            Binary::URem => return Ok(self.builder.ins().urem(a, b)),
            Binary::SDiv | Binary::SRem => {
                let (a, b) = (self.with_sign(a, bits), self.with_sign(b, bits));
                match binary {
                    Binary::SDiv => self.builder.ins().sdiv(a, b),
                    _ => self.builder.ins().srem(a, b),
                }
            }
            Binary::Shl => self.builder.ins().ishl(a, b),
            Binary::LShr => return Ok(self.builder.ins().ushr(a, b)),
            Binary::AShr => {
                let a = self.with_sign(a, bits);
                self.builder.ins().sshr(a, b)
            }
            Binary::FAdd | Binary::FSub | Binary::FMul | Binary::FDiv | Binary::FRem => {
                let message = "an operation of floats on integers";
                return Err(Problem::Inconsistent(message.into()));
            }
        };
        Ok(self.without_excess(value, bits))
    }

    /// The truth of a comparison.
    pub fn compare_ints(
        &mut self,
        predicate: IntPredicate,
        bits: u32,
        a: ir::Value,
        b: ir::Value,
    ) -> ir::Value {
        let condition = match predicate {
            IntPredicate::Eq => IntCC::Equal,
            IntPredicate::Ne => IntCC::NotEqual,
            IntPredicate::Ugt => IntCC::UnsignedGreaterThan,
            IntPredicate::Uge => IntCC::UnsignedGreaterThanOrEqual,
            IntPredicate::Ult => IntCC::UnsignedLessThan,
            IntPredicate::Ule => IntCC::UnsignedLessThanOrEqual,
            IntPredicate::Sgt => IntCC::SignedGreaterThan,
            IntPredicate::Sge => IntCC::SignedGreaterThanOrEqual,
            IntPredicate::Slt => IntCC::SignedLessThan,
            IntPredicate::Sle => IntCC::SignedLessThanOrEqual,
        };
        self.compare(condition, bits, a, b)
    }

    /// The same by CLIF's condition.
    pub fn compare(
        &mut self,
        condition: IntCC,
        bits: u32,
        a: ir::Value,
        b: ir::Value,
    ) -> ir::Value {
        let signed = condition.unsigned() != condition;
        let (a, b) = match signed {
            true => (self.with_sign(a, bits), self.with_sign(b, bits)),
            false => (a, b),
        };
        self.builder.ins().icmp(condition, a, b)
    }

    /// The lesser or greater of two.
    pub fn choose(&mut self, condition: IntCC, bits: u32, a: ir::Value, b: ir::Value) -> ir::Value {
        let native = self.type_of(a).bits() == bits;
        let ins = self.builder.ins();
        match condition {
            IntCC::SignedLessThan if native => ins.smin(a, b),
            IntCC::SignedGreaterThan if native => ins.smax(a, b),
            IntCC::UnsignedLessThan => ins.umin(a, b),
            IntCC::UnsignedGreaterThan => ins.umax(a, b),
            _ => {
                let first = self.compare(condition, bits, a, b);
                self.builder.ins().select(first, a, b)
            }
        }
    }

    /// The result of an addition, subtraction or multiplication, and whether it does not fit.
    ///
    /// # Errors
    /// Another operation.
    pub fn overflowing(
        &mut self,
        binary: Binary,
        signed: bool,
        bits: u32,
        a: ir::Value,
        b: ir::Value,
    ) -> Result<(ir::Value, ir::Value)> {
        let ty = self.type_of(a);
        if ty == types::I128 && bits == 128 && binary == Binary::Mul {
            return Ok(self.wide_product(signed, a, b));
        }
        if ty.bits() == bits {
            let ins = self.builder.ins();
            return Ok(match (binary, signed) {
                (Binary::Add, false) => ins.uadd_overflow(a, b),
                (Binary::Add, true) => ins.sadd_overflow(a, b),
                (Binary::Sub, false) => ins.usub_overflow(a, b),
                (Binary::Sub, true) => ins.ssub_overflow(a, b),
                (Binary::Mul, false) => ins.umul_overflow(a, b),
                (Binary::Mul, true) => ins.smul_overflow(a, b),
                (other, _) => return Err(no_overflow(other)),
            });
        }
        // The container has at least one bit more, a product of two may not fit it either.
        let (wide_a, wide_b) = match signed {
            true => (self.with_sign(a, bits), self.with_sign(b, bits)),
            false => (a, b),
        };
        let (wide, beyond) = match (binary, signed) {
            (Binary::Add, _) => (self.builder.ins().iadd(wide_a, wide_b), None),
            (Binary::Sub, _) => (self.builder.ins().isub(wide_a, wide_b), None),
            (Binary::Mul, _) => {
                let (product, beyond) = match (ty, signed) {
                    (types::I128, _) => self.wide_product(signed, wide_a, wide_b),
                    (_, false) => self.builder.ins().umul_overflow(wide_a, wide_b),
                    (_, true) => self.builder.ins().smul_overflow(wide_a, wide_b),
                };
                (product, Some(beyond))
            }
            (other, _) => return Err(no_overflow(other)),
        };
        let value = self.without_excess(wide, bits);
        let fits = match signed {
            true => self.with_sign(value, bits),
            false => value,
        };
        let outside = self.builder.ins().icmp(IntCC::NotEqual, fits, wide);
        let outside = match beyond {
            Some(beyond) => self.builder.ins().bor(outside, beyond),
            None => outside,
        };
        Ok((value, outside))
    }

    /// The product of two numbers of 128 bits, and whether it does not fit.
    fn wide_product(&mut self, signed: bool, a: ir::Value, b: ir::Value) -> (ir::Value, ir::Value) {
        let product = self.builder.ins().imul(a, b);
        if !signed {
            return (product, self.is_beyond(a, b));
        }
        // That of the magnitudes may be 2^127 if it is to be negative, and 1 less otherwise.
        let [size_a, size_b] = [a, b].map(|of| self.builder.ins().iabs(of));
        let beyond = self.is_beyond(size_a, size_b);
        let size = self.builder.ins().imul(size_a, size_b);
        let signs = self.builder.ins().bxor(a, b);
        let zero = self.integer(types::I128, 0);
        let negative = self.builder.ins().icmp(IntCC::SignedLessThan, signs, zero);
        let negative = self.builder.ins().uextend(types::I128, negative);
        let most = self.integer(types::I128, mask(127));
        let most = self.builder.ins().iadd(most, negative);
        let larger = self
            .builder
            .ins()
            .icmp(IntCC::UnsignedGreaterThan, size, most);
        (product, self.builder.ins().bor(beyond, larger))
    }

    /// Whether the product of two numbers of 128 bits without signs needs more.
    fn is_beyond(&mut self, a: ir::Value, b: ir::Value) -> ir::Value {
        let (low_a, high_a) = self.builder.ins().isplit(a);
        let (low_b, high_b) = self.builder.ins().isplit(b);
        let zero = self.integer(types::I64, 0);
        let any = |body: &mut Self, value| body.builder.ins().icmp(IntCC::NotEqual, value, zero);
        let (is_a, is_b) = (any(self, high_a), any(self, high_b));
        let both = self.builder.ins().band(is_a, is_b);
        // Otherwise one of the products across is zero.
        let (mut beyond, mut across) = (both, zero);
        for (high, low) in [(high_a, low_b), (high_b, low_a)] {
            let above = self.builder.ins().umulhi(high, low);
            let above = any(self, above);
            beyond = self.builder.ins().bor(beyond, above);
            let product = self.builder.ins().imul(high, low);
            across = self.builder.ins().iadd(across, product);
        }
        let carried = self.builder.ins().umulhi(low_a, low_b);
        let (_, carry) = self.builder.ins().uadd_overflow(across, carried);
        self.builder.ins().bor(beyond, carry)
    }

    /// The result of an addition or subtraction, or the nearest number that there is.
    ///
    /// # Errors
    /// Another operation.
    pub fn saturating(
        &mut self,
        binary: Binary,
        signed: bool,
        bits: u32,
        a: ir::Value,
        b: ir::Value,
    ) -> Result<ir::Value> {
        let (value, outside) = self.overflowing(binary, signed, bits, a, b)?;
        let ty = self.type_of(a);
        let bound = match (signed, binary) {
            (false, Binary::Sub) => self.integer(ty, 0),
            (false, _) => self.integer(ty, mask(bits)),
            (true, _) => {
                // It left on the side that the first operand is on.
                let zero = self.integer(ty, 0);
                let negative = self.compare(IntCC::SignedLessThan, bits, a, zero);
                let least = self.integer(ty, 1 << (bits - 1));
                let most = self.integer(ty, mask(bits - 1));
                self.builder.ins().select(negative, least, most)
            }
        };
        Ok(self.builder.ins().select(outside, bound, value))
    }

    /// The high or low bits of two numbers behind each other, shifted: `fshl` and `fshr`.
    pub fn funnel(&mut self, left: bool, bits: u32, parts: [ir::Value; 3]) -> ir::Value {
        let [high, low, amount] = parts;
        let ty = self.type_of(high);
        let native = ty.bits() == bits;
        if high == low && native {
            let ins = self.builder.ins();
            return match left {
                true => ins.rotl(high, amount),
                false => ins.rotr(high, amount),
            };
        }
        let width = self.integer(ty, u128::from(bits));
        let amount = match bits.is_power_of_two() {
            true => {
                let mask = self.integer(ty, u128::from(bits - 1));
                self.builder.ins().band(amount, mask)
            }
            false => self.builder.ins().urem(amount, width),
        };
        let one = self.integer(ty, 1);
        let most = self.integer(ty, u128::from(bits - 1));
        let rest = self.builder.ins().isub(most, amount);
        // A shift by all bits would be one by none, so one of the two goes in two steps.
        let value = match left {
            true => {
                let half = self.builder.ins().ushr(low, one);
                let below = self.builder.ins().ushr(half, rest);
                let above = self.builder.ins().ishl(high, amount);
                self.builder.ins().bor(above, below)
            }
            false => {
                let twice = self.builder.ins().ishl(high, one);
                let above = self.builder.ins().ishl(twice, rest);
                let below = self.builder.ins().ushr(low, amount);
                self.builder.ins().bor(above, below)
            }
        };
        self.without_excess(value, bits)
    }

    /// How many of the highest bits are zero.
    pub fn leading_zeros(&mut self, value: ir::Value, bits: u32) -> ir::Value {
        let ty = self.type_of(value);
        let count = self.builder.ins().clz(value);
        let unused = self.integer(ty, u128::from(ty.bits() - bits));
        match ty.bits() == bits {
            true => count,
            false => self.builder.ins().isub(count, unused),
        }
    }

    /// How many of the lowest bits are zero.
    pub fn trailing_zeros(&mut self, value: ir::Value, bits: u32) -> ir::Value {
        let ty = self.type_of(value);
        if ty.bits() == bits {
            return self.builder.ins().ctz(value);
        }
        // A one behind the highest bit ends the count.
        let end = self.integer(ty, 1 << bits);
        let ended = self.builder.ins().bor(value, end);
        self.builder.ins().ctz(ended)
    }

    /// The bits or bytes in reverse order.
    pub fn reversed(&mut self, value: ir::Value, bits: u32, bytes: bool) -> ir::Value {
        let ty = self.type_of(value);
        let all = match bytes {
            true if ty == types::I8 => value,
            true => self.builder.ins().bswap(value),
            false => self.builder.ins().bitrev(value),
        };
        if ty.bits() == bits {
            return all;
        }
        let amount = self
            .builder
            .ins()
            .iconst(types::I32, i64::from(ty.bits() - bits));
        self.builder.ins().ushr(all, amount)
    }

    /// -1, 0 or 1, as an integer of so many bits.
    pub fn three_way(
        &mut self,
        signed: bool,
        bits: u32,
        operands: [ir::Value; 2],
        result: u32,
    ) -> ir::Value {
        let [a, b] = operands;
        let (less, greater) = match signed {
            true => (IntCC::SignedLessThan, IntCC::SignedGreaterThan),
            false => (IntCC::UnsignedLessThan, IntCC::UnsignedGreaterThan),
        };
        let [less, greater] = [less, greater].map(|condition| {
            let truth = self.compare(condition, bits, a, b);
            self.resized(truth, container(result))
        });
        let value = self.builder.ins().isub(greater, less);
        self.without_excess(value, result)
    }
}

/// What is said of an operation that does not say whether it overflows.
fn no_overflow(of: Binary) -> Problem {
    Problem::Inconsistent(format!("an overflow of {of:?}").into())
}
