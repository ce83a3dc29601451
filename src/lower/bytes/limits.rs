//! Words that are put together from limited ones, which one instruction limits and packs.

use super::word::{Byte, halves};
use crate::lower::state::Lower;
use cranelift_codegen::ir::{InstructionData, Opcode, Value, types};
use smallvec::SmallVec;

/// Words that are limited to the range of a narrower type, the lowest first.
pub(in crate::lower) struct Limits {
    pub(in crate::lower) bits: u32,
    pub(in crate::lower) signed: bool,
    pub(in crate::lower) parts: SmallVec<[Value; 4]>,
}

impl Lower<'_> {
    /// The f32 that a half nobody else reads is the nearest one to.
    pub(in crate::lower) fn narrowed(&self, half: Value) -> Option<Value> {
        match self.def_data(half)? {
            InstructionData::Unary {
                opcode: Opcode::Fdemote,
                arg,
            } if self.type_of(arg) == types::F32 && self.is_used_once(half) => Some(arg),
            _ => None,
        }
    }

    /// What a word is put together from, if that is two or four limited words, with nothing else but zeros above.
    pub(in crate::lower) fn limits(&self, bytes: [Byte; 4]) -> Option<Limits> {
        let limited = |parts: &[Value], bits: u32| {
            let mut all = SmallVec::new();
            let mut signs = SmallVec::<[bool; 4]>::new();
            for &part in parts {
                let (value, signed) = self.limited_value(part, bits)?;
                if !self.is_used_once(part) || self.type_of(value) != types::I32 {
                    return None;
                }
                all.push(value);
                signs.push(signed);
            }
            signs.iter().all(|&s| s == signs[0]).then(|| Limits {
                bits,
                signed: signs[0],
                parts: all,
            })
        };
        if let Some(parts) = halves(bytes) {
            return limited(&parts, 16);
        }
        let mut parts: SmallVec<[Value; 4]> = SmallVec::new();
        for byte in bytes {
            match byte {
                Byte::Of {
                    value,
                    byte: 0,
                    sign: false,
                } => parts.push(value),
                Byte::Zero | Byte::Any => break,
                Byte::Of { .. } => return None,
            }
        }
        let zeros = |byte: &Byte| matches!(byte, Byte::Zero | Byte::Any);
        let fits = matches!(parts.len(), 2 | 4) && bytes[parts.len()..].iter().all(zeros);
        fits.then(|| limited(&parts, 8))?
    }
}
