//! Words that are put together from limited ones, which I2IP limits and packs.

use super::Fuser;
use super::word::{Byte, halves};
use crate::isa::generated::I2IPDType;
use cranelift_codegen::ir::{Value, types};
use smallvec::SmallVec;

/// Two or four words that are limited to the range of a narrower type, the lowest first.
pub(super) struct Limits {
    pub(super) format: I2IPDType,
    pub(super) parts: SmallVec<[Value; 4]>,
}

impl Fuser<'_> {
    /// What a word is put together from, if that is two or four limited words, with nothing else but zeros above.
    pub(super) fn limits(&self, bytes: [Byte; 4]) -> Option<Limits> {
        if let Some(parts) = halves(bytes) {
            return self.limited(&parts, 16, [I2IPDType::U16, I2IPDType::S16]);
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
        fits.then(|| self.limited(&parts, 8, [I2IPDType::U8, I2IPDType::S8]))?
    }

    /// The words that `parts` are limited forms of, all with limits of one signedness. Nobody else may read a part.
    fn limited(&self, parts: &[Value], bits: u32, formats: [I2IPDType; 2]) -> Option<Limits> {
        let mut words = SmallVec::new();
        let mut signedness = None;
        for &part in parts {
            let (word, signed) = self.limited_value(part, bits)?;
            let same = *signedness.get_or_insert(signed) == signed;
            if !same || !self.is_used_once(part) || self.type_of(word) != types::I32 {
                return None;
            }
            words.push(word);
        }
        let format = formats[usize::from(signedness?)];
        Some(Limits {
            format,
            parts: words,
        })
    }
}
