//! Functions of the bits of integers.

use super::types::clif;
use super::{Result, Translator};
use crate::mistakes::{Mistake, planted};
use cranelift_codegen::ir;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use naga::{MathFunction, Scalar, ScalarKind};

impl Translator<'_, '_, '_> {
    /// A function of bits; none if it is no such.
    pub(super) fn bit_function(
        &mut self,
        fun: MathFunction,
        scalar: Scalar,
        operands: &[ir::Value],
    ) -> Result<Option<ir::Value>> {
        use MathFunction as M;
        if scalar.kind == ScalarKind::Float {
            return Ok(None);
        }
        let ty = clif(scalar)?;
        let is_signed = scalar.kind == ScalarKind::Sint;
        Ok(Some(match (fun, operands) {
            (M::CountTrailingZeros, &[a]) => self.builder.ins().ctz(a),
            (M::CountLeadingZeros, &[a]) => self.builder.ins().clz(a),
            (M::CountOneBits, &[a]) => self.builder.ins().popcnt(a),
            (M::ReverseBits, &[a]) => self.builder.ins().bitrev(a),
            (M::FirstTrailingBit, &[a]) => {
                let (zero, none) = (self.integer(ty, 0), self.integer(ty, -1));
                let is_zero = self.builder.ins().icmp(IntCC::Equal, a, zero);
                let place = self.builder.ins().ctz(a);
                self.builder.ins().select(is_zero, none, place)
            }
            (M::FirstLeadingBit, &[a]) => {
                // Of a negative number the first bit that is not the sign.
                let bits = match is_signed {
                    true => {
                        let sign = self.builder.ins().sshr_imm_u(a, i64::from(ty.bits()) - 1);
                        self.builder.ins().bxor(a, sign)
                    }
                    false => a,
                };
                let zeros = self.builder.ins().clz(bits);
                let last = self.integer(ty, i64::from(ty.bits()) - 1);
                self.builder.ins().isub(last, zeros)
            }
            (M::ExtractBits, &[a, offset, count]) => {
                let (offset, count) = self.field(ty, offset, count);
                let width = self.integer(I32, ty.bits().into());
                let above = self.builder.ins().isub(width, count);
                let left = self.builder.ins().isub(above, offset);
                let raised = self.builder.ins().ishl(a, left);
                let field = match is_signed {
                    true => self.builder.ins().sshr(raised, above),
                    false => self.builder.ins().ushr(raised, above),
                };
                let (none, zero) = (self.integer(I32, 0), self.integer(ty, 0));
                let is_empty = self.builder.ins().icmp(IntCC::Equal, count, none);
                if planted(Mistake::EmptyField) {
                    return Ok(Some(field));
                }
                self.builder.ins().select(is_empty, zero, field)
            }
            (M::InsertBits, &[a, new, offset, count]) => {
                let (offset, count) = self.field(ty, offset, count);
                let width = self.integer(I32, ty.bits().into());
                let above = self.builder.ins().isub(width, count);
                let all = self.integer(ty, -1);
                let ones = self.builder.ins().ushr(all, above);
                let (none, zero) = (self.integer(I32, 0), self.integer(ty, 0));
                let is_empty = self.builder.ins().icmp(IntCC::Equal, count, none);
                let ones = self.builder.ins().select(is_empty, zero, ones);
                let mask = self.builder.ins().ishl(ones, offset);
                let new = self.builder.ins().ishl(new, offset);
                let new = self.builder.ins().band(new, mask);
                let kept = self.builder.ins().band_not(a, mask);
                self.builder.ins().bor(kept, new)
            }
            _ => return Ok(None),
        }))
    }

    /// Offset and length of a field, cut to what there is.
    fn field(
        &mut self,
        ty: ir::Type,
        offset: ir::Value,
        count: ir::Value,
    ) -> (ir::Value, ir::Value) {
        let width = self.integer(I32, ty.bits().into());
        let offset = self.builder.ins().umin(offset, width);
        let rest = self.builder.ins().isub(width, offset);
        let count = self.builder.ins().umin(count, rest);
        (offset, count)
    }
}
