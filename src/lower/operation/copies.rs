//! What an operand is a copy of.

use crate::lower::source::{Base, Src};
use crate::lower::state::Lower;
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
