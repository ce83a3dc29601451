//! Two floats of 16 bits in one register, as the machine's packed operations take them.
//!
//! A lane stays a value of its own, so that everything else sees lanes. What comes out of a packed operation, a
//! variable or memory is a pair of which the lanes are taken, and is remembered: where the next operation wants both of
//! them again it has the pair, and nobody needs the lanes.

use super::types::Scalar;
use super::{Lanes, Result, Translator};
use cranelift_codegen::ir::types::{F16X2, I16, I32};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use cranelift_thisgpu::build::GpuBuilder;
use pliron::context::Ptr;
use pliron::operation::Operation;

/// The signs of both halves.
const SIGNS: i64 = 0x8000_8000;

/// The type of two lanes, of those that the machine computes in pairs.
pub(super) fn pair_type(lane: Scalar) -> Option<Type> {
    match lane {
        Scalar::F16 => Some(F16X2),
        Scalar::BF16 => Some(I32),
        _ => None,
    }
}

/// The type of two lanes of a value of these, if they are whole pairs.
pub(super) fn pairs_of(lanes: &[Scalar]) -> Option<Type> {
    let (&first, count) = (lanes.first()?, lanes.len());
    let is_even = count.is_multiple_of(2) && lanes.iter().all(|&lane| lane == first);
    pair_type(first).filter(|_| is_even)
}

impl Translator<'_, '_, '_> {
    /// Sums, differences, products and fused ones of whole pairs.
    pub(super) fn packed(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        let count = match name {
            "f_add" | "f_sub" | "f_mul" => 2,
            "fma" => 3,
            _ => return Ok(false),
        };
        let lanes = self.result_lanes(op)?;
        let Some(ty) = pairs_of(&lanes) else {
            return Ok(false);
        };
        let mut operands = Vec::with_capacity(count);
        for index in 0..count {
            let operand = self.operand(op, index)?;
            operands.push(self.paired(&operand, ty));
        }
        let mut pairs = Vec::with_capacity(lanes.len() / 2);
        for index in 0..lanes.len() / 2 {
            let picked: Vec<_> = operands.iter().map(|pairs| pairs[index]).collect();
            pairs.push(match ty {
                F16X2 => self.packed_f16(name, &picked),
                _ => self.packed_bf16(name, &picked),
            });
        }
        let lanes = self.unpaired(&pairs);
        self.define(op, lanes);
        Ok(true)
    }

    fn packed_f16(&mut self, name: &str, operands: &[Value]) -> Value {
        let insert = self.builder.ins();
        match (name, operands) {
            ("f_add", &[a, b]) => insert.fadd(a, b),
            ("f_sub", &[a, b]) => insert.fsub(a, b),
            ("f_mul", &[a, b]) => insert.fmul(a, b),
            (_, &[a, b, c]) => insert.fma(a, b, c),
            _ => operands[0],
        }
    }

    fn packed_bf16(&mut self, name: &str, operands: &[Value]) -> Value {
        match (name, operands) {
            ("f_sub", &[a, b]) => {
                let negative = self.builder.ins().bxor_imm_u(b, SIGNS);
                self.builder.intrinsic("gpu_hadd2_bf16", &[a, negative])
            }
            ("f_add", _) => self.builder.intrinsic("gpu_hadd2_bf16", operands),
            ("f_mul", _) => self.builder.intrinsic("gpu_hmul2_bf16", operands),
            _ => self.builder.intrinsic("gpu_hfma2_bf16", operands),
        }
    }

    /// Lanes two by two.
    pub(super) fn paired(&mut self, lanes: &[Value], ty: Type) -> Lanes {
        let (pairs, _) = lanes.as_chunks::<2>();
        let pairs = pairs.iter().map(|&[low, high]| self.pair(low, high, ty));
        pairs.collect()
    }

    fn pair(&mut self, low: Value, high: Value, ty: Type) -> Value {
        match (self.halves.get(&low), self.halves.get(&high)) {
            (Some(&(first, 0)), Some(&(second, 1))) if first == second => return first,
            _ => {}
        }
        if low == high && ty == F16X2 {
            return self.builder.ins().splat(ty, low);
        }
        let [low, high] = [low, high].map(|lane| self.bitcast(lane, I16));
        let both = self.builder.ins().iconcat(low, high);
        self.bitcast(both, ty)
    }

    /// The lanes of pairs.
    pub(super) fn unpaired(&mut self, pairs: &[Value]) -> Lanes {
        let mut lanes = Vec::with_capacity(2 * pairs.len());
        for &pair in pairs {
            let halves = if self.builder.func.dfg.value_type(pair) == F16X2 {
                [0, 1].map(|half| self.builder.ins().extractlane(pair, half))
            } else {
                let (low, high) = self.builder.ins().isplit(pair);
                [low, high]
            };
            for (index, half) in halves.into_iter().enumerate() {
                self.halves.insert(half, (pair, index as u8));
                lanes.push(half);
            }
        }
        lanes
    }
}
