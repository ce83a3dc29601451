//! Operands that keep operations from trapping.
//!
//! The host's traps would end the process, so every operation that may trap gets an operand for which it does not: the
//! operand itself wherever that is fine, chosen by a comparison that both sides compute.

use super::Writer;
use crate::catalogue::Oracle;
use crate::operation::Operation;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Opcode, Type, Value, types};

impl Writer<'_> {
    /// Replaces operands with which `operation` would trap.
    pub(super) fn guard(&mut self, operation: Operation, args: &mut [Value]) {
        match operation.opcode {
            Opcode::Udiv | Opcode::Urem | Opcode::Sdiv | Opcode::Srem => {
                // The interpreter also traps where only the quotient of a remainder overflows.
                let overflows = operation.opcode == Opcode::Sdiv
                    || operation.opcode == Opcode::Srem && self.oracle == Oracle::Interpreter;
                args[1] = self.divisor(operation.control, args[0], args[1], overflows);
            }
            Opcode::FcvtToUint | Opcode::FcvtToSint => {
                let signed = operation.opcode == Opcode::FcvtToSint;
                args[0] = self.convertible(args[0], operation.control, signed);
            }
            Opcode::UaddOverflowTrap => {
                let zero = self.constant_of(operation.control, [0; 16]);
                let (x, y) = (args[0], args[1]);
                let mut pos = self.pos();
                let (_, carry) = pos.ins().uadd_overflow(x, y);
                args[1] = pos.ins().select(carry, zero, y);
            }
            // Carries other than 0 and 1 mean nothing.
            Opcode::UaddOverflowCin
            | Opcode::SaddOverflowCin
            | Opcode::UsubOverflowBin
            | Opcode::SsubOverflowBin => {
                let zero = self.number(types::I8, 0);
                let carry = args[2];
                args[2] = self.pos().ins().icmp(IntCC::NotEqual, carry, zero);
            }
            Opcode::Trapz => args[0] = self.odd(args[0]),
            Opcode::Trapnz => {
                let odd = self.odd(args[0]);
                let zero = self.constant_of(self.value_type(odd), [0; 16]);
                args[0] = self.pos().ins().icmp(IntCC::Equal, odd, zero);
            }
            _ => {}
        }
    }

    fn odd(&mut self, x: Value) -> Value {
        let one = self.number(self.value_type(x), 1);
        self.pos().ins().bor(x, one)
    }

    pub(super) fn number(&mut self, ty: Type, number: i64) -> Value {
        self.constant_of(ty, i128::from(number).to_le_bytes())
    }

    /// `y`, or another divisor where it is 0 or, if that matters, where the quotient overflows.
    fn divisor(&mut self, ty: Type, x: Value, y: Value, overflows: bool) -> Value {
        // Division by a constant is compiled in another way.
        if self.random.once_in(3) {
            loop {
                let bytes = self.random.bytes(ty);
                let bits = u128::from_le_bytes(bytes);
                let mask = u128::MAX >> (128 - ty.bits());
                if bits != 0 && !(overflows && bits == mask) {
                    return self.constant_of(ty, bytes);
                }
            }
        }
        let (zero, other) = (self.number(ty, 0), self.random.between(1, 100));
        let other = self.number(ty, other as i64);
        let mut bad = self.pos().ins().icmp(IntCC::Equal, y, zero);
        if overflows {
            let minus_one = self.number(ty, -1);
            let least = self.constant_of(ty, (1u128 << (ty.bits() - 1)).to_le_bytes());
            let mut pos = self.pos();
            let negates = pos.ins().icmp(IntCC::Equal, y, minus_one);
            let is_least = pos.ins().icmp(IntCC::Equal, x, least);
            let both = pos.ins().band(negates, is_least);
            bad = pos.ins().bor(bad, both);
        }
        self.pos().ins().select(bad, other, y)
    }

    /// `x`, or a number that fits the integer where it may not.
    fn convertible(&mut self, x: Value, to: Type, signed: bool) -> Value {
        let from = self.value_type(x);
        // The interpreter converts to i128 through a signed one.
        let half = signed || to == types::I128 && self.oracle == Oracle::Interpreter;
        let bits = to.bits() - u32::from(half);
        let (low, high) = (if signed { -power(bits) } else { 0.0 }, power(bits));
        // Minus infinity would be as good as minus infinity.
        let low = if from == types::F16 {
            low.max(LEAST_HALF)
        } else {
            low
        };
        let low = self.float(from, low);
        let high = self.float(from, high);
        let other = self.random.below(100) as f64;
        let other = self.float(from, other);
        let mut pos = self.pos();
        let above = pos.ins().fcmp(FloatCC::GreaterThanOrEqual, x, low);
        let below = pos.ins().fcmp(FloatCC::LessThan, x, high);
        let fits = pos.ins().band(above, below);
        pos.ins().select(fits, x, other)
    }

    /// A float constant; what is too large is infinite.
    fn float(&mut self, ty: Type, number: f64) -> Value {
        let bits: u64 = match ty {
            // Zero, powers of two and small whole numbers are exact.
            types::F16 => half_bits(number),
            types::F32 => u64::from((number as f32).to_bits()),
            _ => number.to_bits(),
        };
        self.constant_of(ty, u128::from(bits).to_le_bytes())
    }
}

/// The least finite f16.
const LEAST_HALF: f64 = -65504.0;

fn power(exponent: u32) -> f64 {
    f64::from(exponent).exp2()
}

/// The bits of a number that f16 has exactly; infinity if it is beyond.
fn half_bits(number: f64) -> u64 {
    let sign = u64::from(number.is_sign_negative()) << 15;
    let magnitude = number.abs();
    if magnitude == 0.0 {
        return sign;
    }
    if magnitude >= 65536.0 {
        return sign | 0x7c00;
    }
    let bits = magnitude.to_bits();
    let exponent = (bits >> 52) - 1023 + 15;
    sign | exponent << 10 | bits >> 42 & 0x3ff
}

#[cfg(test)]
mod tests {
    use super::{LEAST_HALF, half_bits};

    #[test]
    fn halves() {
        for (number, bits) in [
            (0.0, 0),
            (1.0, 0x3c00),
            (-128.0, 0xd800),
            (LEAST_HALF, 0xfbff),
            (99.0, 0x5630),
            (32768.0, 0x7800),
            (65536.0, 0x7c00),
        ] {
            assert_eq!(half_bits(number), bits, "{number}");
        }
    }
}
