//! What CLIF leaves open about floats: which NaN an operation returns.
//!
//! A program's results must not depend on it. [`Use`] says for each opcode what it makes of the bits of a NaN, so that
//! the writer can replace an open NaN by a known one before its bits are seen: before integer and sign operations,
//! stores, calls and returns.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Opcode, Type, types};

/// What an operation does with the NaNs among its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It computes: any NaN gives any NaN.
    Computes,
    /// All NaNs are the same to it, and its results are not open.
    Classifies,
    /// It passes them on.
    Moves,
    /// It sees their bits.
    Bits,
}

impl Use {
    /// The use that an opcode makes of floats.
    pub fn of(opcode: Opcode) -> Use {
        match opcode {
            Opcode::Fadd
            | Opcode::Fsub
            | Opcode::Fmul
            | Opcode::Fdiv
            | Opcode::Sqrt
            | Opcode::Fma
            | Opcode::Fmin
            | Opcode::Fmax
            | Opcode::Ceil
            | Opcode::Floor
            | Opcode::Trunc
            | Opcode::Nearest
            | Opcode::Fpromote
            | Opcode::Fdemote
            | Opcode::Fvdemote
            | Opcode::FvpromoteLow => Use::Computes,
            Opcode::Fcmp
            | Opcode::FcvtToUint
            | Opcode::FcvtToSint
            | Opcode::FcvtToUintSat
            | Opcode::FcvtToSintSat => Use::Classifies,
            Opcode::Select
            | Opcode::SelectSpectreGuard
            | Opcode::Splat
            | Opcode::Extractlane
            | Opcode::Insertlane
            | Opcode::ScalarToVector => Use::Moves,
            _ => Use::Bits,
        }
    }
}

/// One, in every lane.
pub fn one(ty: Type) -> DataValue {
    let bits: u64 = match ty.lane_type() {
        types::F16 => 0x3c00,
        types::F32 => 0x3f80_0000,
        types::F64 => 0x3ff0_0000_0000_0000,
        _ => 1,
    };
    DataValue::read_from_slice_le(&in_every_lane(ty, bits), ty)
}

/// The bytes of a value whose lanes are all `bits`, in a buffer that any value fits.
pub fn in_every_lane(ty: Type, bits: u64) -> [u8; 16] {
    let lane = ty.lane_type().bytes() as usize;
    let bits = u128::from(bits).to_le_bytes();
    let mut bytes = [0; 16];
    for chunk in bytes.chunks_exact_mut(lane) {
        chunk.copy_from_slice(&bits[..lane]);
    }
    bytes
}

/// The bits of the NaN that stands for all.
pub fn canonical(lane: Type) -> u64 {
    match lane {
        types::F16 => 0x7e00,
        types::F32 => 0x7fc0_0000,
        _ => 0x7ff8_0000_0000_0000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nan_that_stands_for_all_is_one() {
        assert!(f32::from_bits(canonical(types::F32) as u32).is_nan());
        assert!(f64::from_bits(canonical(types::F64)).is_nan());
        let bytes = in_every_lane(types::F16X2, canonical(types::F16));
        assert_eq!(bytes[..4], [0, 0x7e, 0, 0x7e]);
    }
}
