//! Several small numbers in one word.

use super::math::Operands;
use super::values::Lanes;
use super::{Result, Translator};
use cranelift_codegen::ir;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::types::{F16, F32, I16, I32};
use cranelift_thisgpu::build::GpuBuilder;
use naga::{MathFunction, Scalar};

/// How numbers lie in a word.
#[derive(Clone, Copy)]
struct Packed {
    bits: u32,
    is_signed: bool,
    /// Whether a number stands for a fraction of the largest.
    is_fraction: bool,
}

impl Packed {
    fn of(fun: MathFunction) -> Option<Packed> {
        use MathFunction as M;
        let (bits, is_signed, is_fraction) = match fun {
            M::Pack4x8snorm | M::Unpack4x8snorm => (8, true, true),
            M::Pack4x8unorm | M::Unpack4x8unorm => (8, false, true),
            M::Pack2x16snorm | M::Unpack2x16snorm => (16, true, true),
            M::Pack2x16unorm | M::Unpack2x16unorm => (16, false, true),
            M::Pack4xI8 | M::Unpack4xI8 | M::Pack4xI8Clamp => (8, true, false),
            M::Pack4xU8 | M::Unpack4xU8 | M::Pack4xU8Clamp => (8, false, false),
            _ => return None,
        };
        Some(Packed {
            bits,
            is_signed,
            is_fraction,
        })
    }

    fn largest(self) -> i64 {
        (1 << (self.bits - u32::from(self.is_signed))) - 1
    }

    fn least(self) -> i64 {
        match self.is_signed {
            true => -1 - self.largest(),
            false => 0,
        }
    }
}

impl Translator<'_, '_, '_> {
    /// A function that packs or unpacks.
    pub(super) fn packing(&mut self, fun: MathFunction, operands: &Operands) -> Result<Lanes> {
        use MathFunction as M;
        match fun {
            M::Dot4I8Packed | M::Dot4U8Packed => {
                let name = match fun {
                    M::Dot4I8Packed => "gpu_dp4a_s8s8",
                    _ => "gpu_dp4a_u8u8",
                };
                let zero = self.integer(I32, 0);
                let (a, b) = (operands.single(0)?, operands.single(1)?);
                return Ok(vec![self.builder.intrinsic(name, &[a, b, zero])]);
            }
            M::Pack2x16float => {
                let mut words = Vec::new();
                for &lane in operands.get(0)? {
                    let half = self.builder.ins().fdemote(F16, lane);
                    let half = self.bitcast(half, I16);
                    words.push(self.builder.ins().uextend(I32, half));
                }
                return Ok(vec![self.joined(&words, 16)]);
            }
            M::Unpack2x16float => {
                let word = operands.single(0)?;
                let high = self.builder.ins().ushr_imm_u(word, 16);
                let halves = [word, high].map(|word| {
                    let half = self.builder.ins().ireduce(I16, word);
                    let half = self.bitcast(half, F16);
                    self.builder.ins().fpromote(F32, half)
                });
                return Ok(halves.to_vec());
            }
            _ => {}
        }
        let packed = Packed::of(fun).ok_or_else(|| self.undefined(fun))?;
        let is_unpacking = matches!(
            fun,
            M::Unpack4x8snorm
                | M::Unpack4x8unorm
                | M::Unpack2x16snorm
                | M::Unpack2x16unorm
                | M::Unpack4xI8
                | M::Unpack4xU8
        );
        if is_unpacking {
            return self.unpacked(packed, operands.single(0)?);
        }
        let is_clamped = matches!(fun, M::Pack4xI8Clamp | M::Pack4xU8Clamp);
        let mut words = Vec::new();
        for &lane in operands.get(0)? {
            words.push(if packed.is_fraction {
                self.fraction(packed, lane)?
            } else if is_clamped {
                let (low, high) = (
                    self.integer(I32, packed.least()),
                    self.integer(I32, packed.largest()),
                );
                let lane = self.greater(operands.scalar, lane, low);
                self.lesser(operands.scalar, lane, high)
            } else {
                lane
            });
        }
        let mask = (1 << packed.bits) - 1;
        let words: Lanes = words
            .into_iter()
            .map(|word| self.builder.ins().band_imm_u(word, mask))
            .collect();
        Ok(vec![self.joined(&words, packed.bits)])
    }

    /// Words below 2^`bits`, the first at the bottom.
    fn joined(&mut self, words: &[ir::Value], bits: u32) -> ir::Value {
        let mut joined = self.integer(I32, 0);
        for (number, &word) in words.iter().enumerate() {
            let distance = number as i64 * i64::from(bits);
            let word = self.builder.ins().ishl_imm_u(word, distance);
            joined = self.builder.ins().bor(joined, word);
        }
        joined
    }

    /// A fraction as an integer: floor(1/2 + largest * fraction).
    fn fraction(&mut self, packed: Packed, value: ir::Value) -> Result<ir::Value> {
        let low = match packed.is_signed {
            true => -1.0,
            false => 0.0,
        };
        let [low, one, half, largest] = [low, 1.0, 0.5, packed.largest() as f64]
            .map(|number| self.builder.ins().f32const(number as f32));
        let value = self.builder.ins().fmax(value, low);
        let value = self.builder.ins().fmin(value, one);
        let value = self.builder.ins().fmul(value, largest);
        let value = self.builder.ins().fadd(value, half);
        let value = self.builder.ins().floor(value);
        Ok(self.builder.ins().fcvt_to_sint_sat(I32, value))
    }

    fn unpacked(&mut self, packed: Packed, word: ir::Value) -> Result<Lanes> {
        let mut lanes = Vec::new();
        for number in 0..32 / packed.bits {
            // To the top, and down again with what belongs above it.
            let above = i64::from(32 - packed.bits * (number + 1));
            let raised = self.builder.ins().ishl_imm_u(word, above);
            let down = i64::from(32 - packed.bits);
            let integer = match packed.is_signed {
                true => self.builder.ins().sshr_imm_u(raised, down),
                false => self.builder.ins().ushr_imm_u(raised, down),
            };
            lanes.push(match packed.is_fraction {
                true => {
                    let largest = self.float_constant(Scalar::F32, packed.largest() as f64)?;
                    let least = self.float_constant(Scalar::F32, -1.0)?;
                    let number = self.builder.ins().fcvt_from_sint(F32, integer);
                    let number = self.builder.ins().fdiv(number, largest);
                    self.builder.ins().fmax(number, least)
                }
                false => integer,
            });
        }
        Ok(lanes)
    }
}
