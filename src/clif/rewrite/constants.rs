//! Constants that rules read and compute.

use cranelift_codegen::ir::{InstructionData, Opcode, Type, types};

/// All bits of an integer type of at most 64 bits.
pub(super) fn all_ones(ty: Type) -> u64 {
    u64::MAX >> (64 - ty.lane_bits().min(64))
}

/// The bits of an integer constant of at most 64 bits.
pub(super) fn bits(ty: Type, data: InstructionData) -> Option<u64> {
    match data {
        InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm,
        } if ty.bits() <= 64 => Some(imm.bits() as u64 & all_ones(ty)),
        _ => None,
    }
}

/// How a float format lays its exponent out: bits of the fraction, and of the exponent.
fn layout(ty: Type) -> Option<(u32, u32)> {
    match ty {
        types::F16 => Some((10, 5)),
        types::F32 => Some((23, 8)),
        types::F64 => Some((52, 11)),
        _ => None,
    }
}

/// The bits of the reciprocal of a float, if both are powers of two and normal.
pub(super) fn exact_reciprocal(ty: Type, float: u64) -> Option<u64> {
    let (fraction, exponent_bits) = layout(ty)?;
    let largest = (1u64 << exponent_bits) - 1;
    let sign = float >> (fraction + exponent_bits) << (fraction + exponent_bits);
    let magnitude = float ^ sign;
    let exponent = magnitude >> fraction;
    // Twice the bias less the exponent: of a normal number 1 to `largest` − 1.
    let reciprocal = (largest - 1).checked_sub(exponent)?;
    let is_power = magnitude == exponent << fraction && exponent > 0;
    (is_power && reciprocal > 0).then_some(sign | reciprocal << fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reciprocals_of_powers_of_two_are_exact() {
        for bits in (0..=u16::MAX).map(|high| u32::from(high) << 16) {
            let x = f32::from_bits(bits);
            let exact = exact_reciprocal(types::F32, bits.into());
            let expected = (x.is_normal() && bits & 0x7f_ffff == 0)
                .then(|| 1.0 / x)
                .filter(|r| r.is_normal())
                .map(|r| u64::from(r.to_bits()));
            assert_eq!(exact, expected, "{x:e}");
        }
        assert_eq!(
            exact_reciprocal(types::F64, 8f64.to_bits()),
            Some(0.125f64.to_bits())
        );
        assert_eq!(exact_reciprocal(types::F16, 0xc000), Some(0xb800));
        assert_eq!(exact_reciprocal(types::F32, 3f32.to_bits().into()), None);
    }
}
