//! What an operand is without an instruction: an immediate with its modifiers applied.

use crate::isa::table::{FieldInfo, FieldType};
use crate::lower::source::{Base, Halves, Src};

/// The bits of an immediate field with the source's modifiers applied; none when it is no immediate or does not fit.
pub(super) fn fold(field: &FieldInfo, src: &Src) -> Option<u64> {
    let Base::Imm(value) = src.base else {
        return None;
    };
    // A 32-bit field for a 64-bit operand holds its high word (the DALU rows).
    match (field.ty, src.words) {
        (FieldType::Unsigned, 2) => {
            let sign = 1u64 << 63;
            let value = value as u64;
            let value = if src.abs { value & !sign } else { value };
            let value = if src.neg { value ^ sign } else { value };
            (value as u32 == 0).then_some(value >> 32)
        }
        // An immediate of the uniform datapath is sign-extended to 64 bits.
        (FieldType::Signed, 2) => {
            let value = if src.neg {
                (value as u64 as i64).wrapping_neg()
            } else {
                value as u64 as i64
            };
            let fits = !src.abs && !src.not && i32::try_from(value).is_ok();
            fits.then_some(u64::from(value as u32))
        }
        (FieldType::Unsigned, 1) if field.width < 32 => {
            let fits = src.is_plain() && value >> field.width == 0;
            fits.then_some(value as u64)
        }
        (_, 1) => {
            let value = value as u32;
            Some(u64::from(match field.ty {
                FieldType::Half2 => {
                    let value = match src.halves {
                        Halves::Both => value,
                        Halves::Low => (value & 0xffff) * 0x1_0001,
                        Halves::High => (value >> 16) * 0x1_0001,
                    };
                    let value = if src.abs { value & 0x7fff_7fff } else { value };
                    if src.neg { value ^ 0x8000_8000 } else { value }
                }
                FieldType::Float32 => {
                    let value = if src.abs { value & 0x7fff_ffff } else { value };
                    if src.neg { value ^ 0x8000_0000 } else { value }
                }
                FieldType::Signed | FieldType::Unsigned if field.width == 32 => {
                    if src.abs || src.halves != Halves::Both {
                        return None;
                    }
                    let value = if src.not { !value } else { value };
                    if src.neg { value.wrapping_neg() } else { value }
                }
                _ => return None,
            }))
        }
        _ => None,
    }
}

/// A source of an operation that writes `-` where it means `~`. An immediate has its complement applied before a form
/// is chosen.
pub(super) fn as_negated(src: Src) -> Src {
    let plain = Src {
        not: false,
        whole: None,
        ..src
    };
    match (src.not, src.base) {
        (false, _) => src,
        (true, Base::Imm(_)) => plain.complemented(),
        (true, _) => Src { neg: true, ..plain },
    }
}
