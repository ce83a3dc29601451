//! What an operand is without an instruction: a copy of another value, or an immediate with its modifiers applied.

use crate::isa::table::{FieldInfo, FieldType};
use crate::lower::Lower;
use crate::lower::source::{Base, Halves, Src};
use cranelift_codegen::ir::{InstructionData, Opcode, Value, types};

impl Lower<'_> {
    /// An operand with copies looked through, its modifiers as they are: the words of extensions, concatenations,
    /// truncations and shifts by a word are words of their operands.
    pub(in crate::lower) fn below_copies(&self, mut src: Src) -> Src {
        self.look_through_copies(&mut src);
        src
    }

    /// The same in place.
    pub(super) fn look_through_copies(&self, src: &mut Src) {
        while let Base::Value { value, word } = src.base
            && let Some(base) = self.copied_words(value, word, src.words)
        {
            src.base = base;
        }
    }

    /// Where words of a value that is put together from others come from.
    fn copied_words(&self, value: Value, word: u8, words: u8) -> Option<Base> {
        let data = self.def_data(value)?;
        let within = |this: &Self, arg: Value| word + words <= this.words_of(arg) as u8;
        match data {
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                arg,
            } if self.type_of(arg).bits() >= 32 => {
                if within(self, arg) {
                    Some(self.base_of(arg, word))
                } else {
                    (word >= self.words_of(arg) as u8).then_some(Base::Imm(0))
                }
            }
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                ..
            } => (word >= 1).then_some(Base::Imm(0)),
            InstructionData::Unary {
                opcode: Opcode::Ireduce,
                arg,
            } => Some(self.base_of(arg, word)),
            InstructionData::Binary {
                opcode: opcode @ (Opcode::Ushr | Opcode::Sshr | Opcode::Ishl),
                args: [arg, amount],
            } if self.type_of(value) == types::I64 && words == 1 => {
                // A shift by a word or more leaves a word of zeros, or of signs; one by a word the other as it is.
                let n = self.constant_of(amount)? & 63;
                let (kept, from) = if opcode == Opcode::Ishl {
                    (1, 0)
                } else {
                    (0, 1)
                };
                if word == kept {
                    (n == 32).then(|| self.base_of(arg, from))
                } else {
                    (n >= 32 && opcode != Opcode::Sshr).then_some(Base::Imm(0))
                }
            }
            InstructionData::Binary {
                opcode: Opcode::Iconcat,
                args: [low, high],
            } if self.type_of(low).bits() >= 32 => {
                let half = self.words_of(low) as u8;
                if word + words <= half {
                    Some(self.base_of(low, word))
                } else {
                    (word >= half && half > 0).then(|| self.base_of(high, word - half))
                }
            }
            _ => None,
        }
    }

    /// Words of a value from `word` on: of an immediate, a parameter or registers.
    fn base_of(&self, value: Value, word: u8) -> Base {
        let src = self.src(value);
        src.slice(word, src.words - word).base
    }
}

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
