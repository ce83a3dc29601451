//! Conversions.

use super::function::{Body, Parts, Result};
use super::shape::{Scalar, container};
use crate::error::Problem;
use crate::model::{Cast, Operand, Type};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, types};

impl Body<'_, '_, '_> {
    /// A conversion of a value, lane by lane.
    pub fn cast(&mut self, cast: Cast, of: &Operand, to: &Type) -> Result<Parts> {
        let parts = self.operand(of)?;
        if cast == Cast::BitCast {
            return self.bitcast(&of.ty, to, parts);
        }
        let (from, to) = (Scalar::of(of.ty.lane())?, Scalar::of(to.lane())?);
        let mut converted = Parts::new();
        for part in parts {
            converted.push(self.cast_lane(cast, part, from, to)?);
        }
        Ok(converted)
    }

    fn cast_lane(
        &mut self,
        cast: Cast,
        value: ir::Value,
        from: Scalar,
        to: Scalar,
    ) -> Result<ir::Value> {
        let target = to.clif();
        Ok(match cast {
            Cast::Trunc => {
                let value = self.resized(value, target);
                self.without_excess(value, to.bits())
            }
            Cast::ZExt | Cast::PtrToInt | Cast::IntToPtr => {
                let value = self.resized(value, target);
                self.without_excess(value, to.bits())
            }
            Cast::SExt => {
                let value = self.with_sign(value, from.bits());
                let value = self.resized_signed(value, target);
                self.without_excess(value, to.bits())
            }
            Cast::FpToSi => self.float_to_int(value, to.bits(), true),
            Cast::FpToUi => self.float_to_int(value, to.bits(), false),
            Cast::SiToFp => {
                let value = self.with_sign(value, from.bits());
                self.builder.ins().fcvt_from_sint(target, value)
            }
            Cast::UiToFp => self.builder.ins().fcvt_from_uint(target, value),
            Cast::FpTrunc => self.builder.ins().fdemote(target, value),
            Cast::FpExt => self.builder.ins().fpromote(target, value),
            Cast::AddressSpace => {
                let message = "address spaces are not supported";
                return Err(Problem::Unsupported(message.into()));
            }
            Cast::BitCast => value,
        })
    }

    /// The integer nearest to zero from a float, the least or greatest that there is beyond them, and 0 of a NaN. LLVM
    /// asks for that of `fptosi.sat` and leaves the rest open otherwise.
    pub fn float_to_int(&mut self, value: ir::Value, bits: u32, signed: bool) -> ir::Value {
        let ty = container(bits);
        let whole = match signed {
            true => self.builder.ins().fcvt_to_sint_sat(ty, value),
            false => self.builder.ins().fcvt_to_uint_sat(ty, value),
        };
        if ty.bits() == bits {
            return whole;
        }
        if !signed {
            let most = self.integer(ty, crate::data::mask(bits));
            return self.builder.ins().umin(whole, most);
        }
        let most = self.integer(ty, crate::data::mask(bits - 1));
        let least = self.integer(ty, !crate::data::mask(bits - 1));
        let value = self.builder.ins().smin(whole, most);
        let value = self.builder.ins().smax(value, least);
        self.without_excess(value, bits)
    }

    /// Whether a float is one of the kinds that LLVM's `is.fpclass` numbers.
    pub fn is_class(&mut self, of: Scalar, value: ir::Value, classes: u32) -> ir::Value {
        let pattern = of.pattern();
        let (exponent, fraction) = match of {
            Scalar::F16 => (5, 10),
            Scalar::F32 => (8, 23),
            _ => (11, 52),
        };
        let bits = self
            .builder
            .ins()
            .bitcast(pattern, ir::MemFlagsData::new(), value);
        let number = |body: &mut Self, number: u128| body.integer(pattern, number);
        let infinity = ((1_u128 << exponent) - 1) << fraction;
        let magnitude_mask = number(self, crate::data::mask(exponent + fraction));
        let magnitude = self.builder.ins().band(bits, magnitude_mask);
        let zero = number(self, 0);
        let negative = self.builder.ins().icmp(IntCC::SignedLessThan, bits, zero);
        // By class, the range of magnitudes, and whether the sign matters: None, or negative.
        let quiet = infinity + (1 << (fraction - 1));
        let least_normal = 1_u128 << fraction;
        let all = crate::data::mask(exponent + fraction);
        let ranges = [
            (infinity + 1, quiet - 1, None),
            (quiet, all, None),
            (infinity, infinity, Some(true)),
            (least_normal, infinity - 1, Some(true)),
            (1, least_normal - 1, Some(true)),
            (0, 0, Some(true)),
            (0, 0, Some(false)),
            (1, least_normal - 1, Some(false)),
            (least_normal, infinity - 1, Some(false)),
            (infinity, infinity, Some(false)),
        ];
        let mut any = self.builder.ins().iconst(types::I8, 0);
        for (class, (least, most, sign)) in ranges.into_iter().enumerate() {
            if classes >> class & 1 == 0 {
                continue;
            }
            let start = number(self, least);
            let offset = self.builder.ins().isub(magnitude, start);
            let length = number(self, most - least);
            let condition = IntCC::UnsignedLessThanOrEqual;
            let mut inside = self.builder.ins().icmp(condition, offset, length);
            if let Some(sign) = sign {
                let right = match sign {
                    true => negative,
                    false => self.builder.ins().bxor_imm_u(negative, 1),
                };
                inside = self.builder.ins().band(inside, right);
            }
            any = self.builder.ins().bor(any, inside);
        }
        any
    }

    /// The truth of a comparison of floats.
    pub fn compare_floats(
        &mut self,
        predicate: crate::model::FloatPredicate,
        a: ir::Value,
        b: ir::Value,
    ) -> ir::Value {
        use crate::model::FloatPredicate as P;
        let condition = match predicate {
            P::False => return self.builder.ins().iconst(types::I8, 0),
            P::True => return self.builder.ins().iconst(types::I8, 1),
            P::Oeq => FloatCC::Equal,
            P::Ogt => FloatCC::GreaterThan,
            P::Oge => FloatCC::GreaterThanOrEqual,
            P::Olt => FloatCC::LessThan,
            P::Ole => FloatCC::LessThanOrEqual,
            P::One => FloatCC::OrderedNotEqual,
            P::Ord => FloatCC::Ordered,
            P::Ueq => FloatCC::UnorderedOrEqual,
            P::Ugt => FloatCC::UnorderedOrGreaterThan,
            P::Uge => FloatCC::UnorderedOrGreaterThanOrEqual,
            P::Ult => FloatCC::UnorderedOrLessThan,
            P::Ule => FloatCC::UnorderedOrLessThanOrEqual,
            P::Une => FloatCC::NotEqual,
            P::Uno => FloatCC::Unordered,
        };
        self.builder.ins().fcmp(condition, a, b)
    }
}
