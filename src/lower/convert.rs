//! Conversions between float formats and between floats and integers of up to 64 bits (F2F, F2I, I2F).
//!
//! F2I limits to the range of its type and makes NaN zero, which is what the saturating conversions of CLIF mean. The trapping ones check
//! first. 128-bit integers are put together from 64-bit ones before lowering (`clif::conversions`).

use super::Lower;
use super::float::format_of;
use super::source::{Regs, Source, Src};
use crate::isa::generated::{
    FCMPOp, FPFtz, FPRound, FPSat, FloatFormat, IRound, IntFormat, f2f, f2i, i2f,
};
use crate::isa::{Optype, Role};
use cranelift_codegen::ir::{TrapCode, Type, Value, types};

/// The integer type as the conversions know it.
fn integer_format(ty: Type, signed: bool) -> Option<IntFormat> {
    Some(match (ty, signed) {
        (types::I8, true) => IntFormat::S8,
        (types::I8, false) => IntFormat::U8,
        (types::I16, true) => IntFormat::S16,
        (types::I16, false) => IntFormat::U16,
        (types::I32, true) => IntFormat::S32,
        (types::I32, false) => IntFormat::U32,
        (types::I64, true) => IntFormat::S64,
        (types::I64, false) => IntFormat::U64,
        _ => return None,
    })
}

impl Lower<'_> {
    /// F2F.
    pub(super) fn change_format(&mut self, to: FloatFormat, from: FloatFormat, src: Src) -> Regs {
        let options = f2f::Options::new(FPFtz::NoFtz, FPSat::NoSat, FPRound::Rn, to, from).word();
        self.operation(Optype::F2F, options, &[(Role::B, Source::Value(src))])
            .d()
    }

    /// A scalar float as an operand of a conversion.
    fn conversion_source(&mut self, x: Value) -> Option<(FloatFormat, Src)> {
        let format = format_of(self.type_of(x))?;
        let src = match format {
            FloatFormat::F16 => self.one_half(x),
            _ => self.float_src(x),
        };
        Some((format, src))
    }

    /// `fpromote`, `fdemote`.
    pub(super) fn convert_format(&mut self, ty: Type, x: Value) -> Option<Regs> {
        let to = format_of(ty)?;
        if self.type_of(x) == ty {
            let same = self.src(x);
            return Some(self.gpr(same));
        }
        let (from, src) = self.conversion_source(x)?;
        Some(self.change_format(to, from, src))
    }

    /// `fcvt_from_sint`, `fcvt_from_uint`: I2F reads as many bits as the type has.
    pub(super) fn integer_to_float(&mut self, ty: Type, x: Value, signed: bool) -> Option<Regs> {
        let to = format_of(ty)?;
        let from = integer_format(self.type_of(x), signed)?;
        let src = self.src(x);
        let options = i2f::Options::new(FPRound::Rn, to, from).word();
        let out = self.operation(Optype::I2F, options, &[(Role::B, Source::Value(src))]);
        Some(out.d())
    }

    /// `fcvt_to_sint_sat`, `fcvt_to_uint_sat`.
    pub(super) fn float_to_integer(&mut self, ty: Type, x: Value, signed: bool) -> Option<Regs> {
        let to = integer_format(ty, signed)?;
        let (from, src) = self.conversion_source(x)?;
        Some(self.truncate(to, from, src))
    }

    fn truncate(&mut self, to: IntFormat, from: FloatFormat, src: Src) -> Regs {
        let options = f2i::Options::new(FPFtz::NoFtz, IRound::Trunc, to, from).word();
        self.operation(Optype::F2I, options, &[(Role::B, Source::Value(src))])
            .d()
    }

    /// `fcvt_to_sint`, `fcvt_to_uint`: traps first for NaN, then out of range.
    pub(super) fn float_to_integer_checked(
        &mut self,
        ty: Type,
        x: Value,
        signed: bool,
    ) -> Option<Regs> {
        let to = integer_format(ty, signed)?;
        let (mut from, mut src) = self.conversion_source(x)?;
        if from == FloatFormat::F16 {
            // The limits are no numbers of f16.
            src = Src::regs(self.change_format(FloatFormat::F32, from, src));
            from = FloatFormat::F32;
        }
        let (low, inclusive, high) = limits(ty.bits(), signed, from);
        let low_test = if inclusive { FCMPOp::Le } else { FCMPOp::Lt };
        let (nan, outside) = if from == FloatFormat::F64 {
            let [low, high] = [low, high].map(|v| Src::wide_imm(u128::from(v.to_bits()), 2));
            let nan = self.double_test(FCMPOp::Nan, src, src);
            let below = self.double_test(low_test, src, low);
            (nan, self.double_test_or(FCMPOp::Ge, src, high, below))
        } else {
            let [low, high] = [low, high].map(|v| Src::imm((v as f32).to_bits()));
            let nan = self.single_test(FCMPOp::Nan, src, src);
            let below = self.single_test(low_test, src, low);
            (nan, self.single_test_or(FCMPOp::Ge, src, high, below))
        };
        self.guarded_trap(nan, TrapCode::BAD_CONVERSION_TO_INTEGER.as_raw().get());
        self.guarded_trap(outside, TrapCode::INTEGER_OVERFLOW.as_raw().get());
        Some(self.truncate(to, from, src))
    }
}

/// What does not fit an integer of `bits` bits after truncation: numbers at or below the first (below it, when not inclusive), and at or above
/// the last. Both are numbers of the format.
fn limits(bits: u32, signed: bool, format: FloatFormat) -> (f64, bool, f64) {
    let power = |n: u32| 2f64.powi(n as i32);
    if !signed {
        return (-1.0, true, power(bits));
    }
    let precision = match format {
        FloatFormat::F64 => 53,
        _ => 24,
    };
    let lowest = -power(bits - 1);
    // The next integer below the lowest, where the format has it.
    if bits <= precision {
        (lowest - 1.0, true, -lowest)
    } else {
        (lowest, false, -lowest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits against the host's own truncation of numbers around them.
    #[test]
    fn limits_separate_what_fits() {
        for format in [FloatFormat::F32, FloatFormat::F64] {
            for bits in [8, 16, 32, 64] {
                for signed in [false, true] {
                    let (low, inclusive, high) = limits(bits, signed, format);
                    let (min, max) = if signed {
                        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
                    } else {
                        (0, (1i128 << bits) - 1)
                    };
                    let neighbours = |x: f64| match format {
                        FloatFormat::F64 => [x.next_down(), x, x.next_up()],
                        _ => {
                            let x = x as f32;
                            [x.next_down(), x, x.next_up()].map(f64::from)
                        }
                    };
                    for x in neighbours(low).into_iter().chain(neighbours(high)) {
                        let outside = x >= high || x < low || (inclusive && x == low);
                        let fits = (min..=max).contains(&(x.trunc() as i128));
                        assert_eq!(outside, !fits, "{x:e} {bits} {signed} {format:?}");
                    }
                }
            }
        }
    }
}
