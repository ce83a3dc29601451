//! What atomic operations compute.
//!
//! Lanes of an instruction come one after another, in the order of their numbers.

use crate::bits::Bits;
use crate::isa::generated::{AtomOp, AtomType, CASType};
use half::f16;

/// Bytes that an operation of a type changes.
pub fn bytes(ty: AtomType) -> u8 {
    match ty {
        AtomType::U8 => 1,
        AtomType::U16 => 2,
        AtomType::U32 | AtomType::S32 | AtomType::F32 | AtomType::F16V2 => 4,
        AtomType::U64 | AtomType::S64 => 8,
    }
}

/// Bytes that a compare-and-swap of a type compares and changes.
pub fn swapped_bytes(ty: CASType) -> u8 {
    match ty {
        CASType::U8 => 1,
        CASType::U16 => 2,
        CASType::U32 => 4,
        CASType::U64 => 8,
    }
}

/// The new value in memory from the old one, both zero-extended, and the operand, whose register may hold more.
pub fn apply(op: AtomOp, ty: AtomType, old: u64, operand: u64) -> u64 {
    match (op, ty) {
        (AtomOp::Add, AtomType::F32) => u64::from(add_f32(old as u32, operand as u32)),
        (AtomOp::Add, AtomType::F16V2) => u64::from(add_halves(old as u32, operand as u32)),
        _ => match bytes(ty) {
            1 => u64::from(combined(op, ty, &(old as u8), &(operand as u8))),
            2 => u64::from(combined(op, ty, &(old as u16), &(operand as u16))),
            4 => u64::from(combined(op, ty, &(old as u32), &(operand as u32))),
            _ => combined(op, ty, &old, &operand),
        },
    }
}

/// The new value of an operation on integers, from the old one and the operand, of the bits of their type.
pub fn combined<B: Bits>(op: AtomOp, ty: AtomType, old: &B, operand: &B) -> B {
    let is_signed = matches!(ty, AtomType::S32 | AtomType::S64);
    let is_below = |a: &B, b: &B| {
        if is_signed {
            a.is_less(b)
        } else {
            a.is_below(b)
        }
    };
    match op {
        AtomOp::Add => old.plus(operand),
        AtomOp::Min => B::choose(&is_below(operand, old), operand, old),
        AtomOp::Max => B::choose(&is_below(old, operand), operand, old),
        AtomOp::And => old.and(operand),
        AtomOp::Or => old.or(operand),
        AtomOp::Xor => old.xor(operand),
        AtomOp::Exch => operand.clone(),
    }
}

/// The sum rounded to nearest even; a NaN is the QNAN of the instruction set (errata H).
fn add_f32(a: u32, b: u32) -> u32 {
    let sum = f32::from_bits(a) + f32::from_bits(b);
    if sum.is_nan() {
        0x7FFF_FFFF
    } else {
        sum.to_bits()
    }
}

/// The same in both halves. The sum of two halves in f32 has no double rounding: 24 bits are at least twice 11 and two.
fn add_halves(a: u32, b: u32) -> u32 {
    let add = |shift: u32| {
        let half = |value: u32| f16::from_bits((value >> shift) as u16).to_f32();
        let sum = f16::from_f32(half(a) + half(b));
        let bits = if sum.is_nan() { 0x7FFF } else { sum.to_bits() };
        u32::from(bits) << shift
    };
    add(0) | add(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        use AtomType::*;
        let cases = [
            (AtomOp::Add, U32, 0xFFFF_FFFF, 1, 0),
            (AtomOp::Add, U64, 0xFFFF_FFFF, 1, 0x1_0000_0000),
            (AtomOp::Min, U32, 0xFFFF_FFFF, 1, 1),
            (AtomOp::Min, S32, 0xFFFF_FFFF, 1, 0xFFFF_FFFF),
            (AtomOp::Max, S32, 0xFFFF_FFFF, 1, 1),
            (AtomOp::Max, U64, 1 << 63, 1, 1 << 63),
            (AtomOp::Max, S64, 1 << 63, 1, 1),
            (AtomOp::Min, S64, 1 << 63, 1, 1 << 63),
            (AtomOp::And, U32, 0b1100, 0b1010, 0b1000),
            (AtomOp::Or, U32, 0b1100, 0b1010, 0b1110),
            (AtomOp::Xor, U64, 0b1100, 0b1010, 0b0110),
            (AtomOp::Exch, U32, 5, 7, 7),
            (AtomOp::Add, U8, 0xFF, 1, 0),
            (AtomOp::Add, U16, 0xFFFF, 0xFFFF_FF02, 0xFF01),
            (AtomOp::Min, U8, 0x7F, 0x180, 0x7F),
            (AtomOp::Max, U16, 0x7FFF, 0x1_0001, 0x7FFF),
            (AtomOp::Xor, U8, 0x0F, 0xFFFF, 0xF0),
            (AtomOp::Exch, U16, 5, 0x12_3456, 0x3456),
        ];
        for (op, ty, old, operand, expected) in cases {
            assert_eq!(
                apply(op, ty, old, operand),
                expected,
                "{op:?} {ty:?} {old:#x} {operand:#x}"
            );
        }
    }

    #[test]
    fn floating_point() {
        let f = |v: f32| u64::from(v.to_bits());
        assert_eq!(apply(AtomOp::Add, AtomType::F32, f(1.5), f(-0.25)), f(1.25));
        assert_eq!(
            apply(
                AtomOp::Add,
                AtomType::F32,
                f(f32::INFINITY),
                f(f32::NEG_INFINITY)
            ),
            0x7FFF_FFFF
        );
        // 2048 + 1 is a tie in f16 and stays even; 0x3C00 is 1.
        assert_eq!(
            apply(AtomOp::Add, AtomType::F16V2, 0x3C00_6800, 0x3C00_3C00),
            0x4000_6800
        );
    }
}
