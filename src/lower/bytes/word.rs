//! Bytes of words: where each comes from, and how PRMT puts them together.

use crate::lower::typed::Word;
use crate::lower::vector::{IDENTITY, Picks};
use cranelift_codegen::ir::Value;
use smallvec::SmallVec;

/// Most bytes of a value that is followed.
pub(in crate::lower) const BYTES: usize = 8;

/// What a byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) enum Byte {
    /// Nobody reads it.
    Any,
    /// Zero.
    Zero,
    /// The byte of a value with this number, or all ones where that is negative.
    Of { value: Value, byte: u8, sign: bool },
}

/// The bytes of a value, the lowest first.
pub(in crate::lower) type Bytes = [Byte; BYTES];

/// The bytes of the words of a value of one or two words.
#[derive(Clone, Copy, Debug)]
pub struct ByteMap {
    pub(in crate::lower) bytes: Bytes,
}

/// Where bytes come from: a word of a value; none: zeros.
pub(in crate::lower) type Source = Option<(Value, u8)>;

impl Byte {
    pub(in crate::lower) fn source(self) -> Option<Source> {
        match self {
            Byte::Any => None,
            Byte::Zero => Some(None),
            Byte::Of { value, byte, .. } => Some(Some((value, byte / 4))),
        }
    }

    /// The nibble of PRMT for it, in the first or in the second register.
    fn selector(self, second: bool) -> u32 {
        let place = if second { 4 } else { 0 };
        match self {
            Byte::Of { byte, sign, .. } => u32::from(byte % 4) + place + if sign { 8 } else { 0 },
            Byte::Any | Byte::Zero => place,
        }
    }

    /// The sign of it.
    pub(in crate::lower) fn sign(self) -> Byte {
        match self {
            Byte::Of { value, byte, .. } => Byte::Of {
                value,
                byte,
                sign: true,
            },
            other => other,
        }
    }
}

/// The words that bytes come from, in the order in which they appear, zeros last.
pub(in crate::lower) fn sources(bytes: [Byte; 4]) -> SmallVec<[Source; 4]> {
    let mut sources: SmallVec<[Source; 4]> = SmallVec::new();
    for source in bytes.into_iter().filter_map(Byte::source) {
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    sources.sort_by_key(Option::is_none);
    sources
}

impl ByteMap {
    /// The bytes of a word.
    pub(in crate::lower) fn word(&self, word: usize) -> [Byte; 4] {
        std::array::from_fn(|i| self.bytes[4 * word + i])
    }

    /// The two values whose low halves a word is.
    pub(in crate::lower) fn halves(&self, word: usize) -> Option<[Value; 2]> {
        halves(self.word(word))
    }
}

/// The two values whose low halves these bytes are.
pub(in crate::lower) fn halves([a, b, c, d]: [Byte; 4]) -> Option<[Value; 2]> {
    let low = |bytes: [Byte; 2]| match bytes {
        [
            Byte::Of {
                value,
                byte: 0,
                sign: false,
            },
            Byte::Of {
                value: other,
                byte: 1,
                sign: false,
            },
        ] => (value == other).then_some(value),
        _ => None,
    };
    Some([low([a, b])?, low([c, d])?])
}

/// Of how many values bytes are.
pub(in crate::lower) fn values(bytes: &Bytes) -> usize {
    let mut found: SmallVec<[Value; BYTES]> = SmallVec::new();
    for byte in bytes {
        if let Byte::Of { value, .. } = *byte
            && !found.contains(&value)
        {
            found.push(value);
        }
    }
    found.len()
}

/// How a word is put together.
pub(in crate::lower) fn picks(bytes: [Byte; 4], word: impl Fn(Source) -> Word) -> Picks {
    let sources = sources(bytes);
    let join = |second: Source, take: &dyn Fn(Byte, usize) -> Option<u32>| {
        bytes
            .iter()
            .enumerate()
            .fold(0, |selector, (place, &byte)| {
                let nibble = match byte.source() {
                    Some(source) if source == second => byte.selector(true),
                    _ => take(byte, place).unwrap_or(IDENTITY >> (4 * place) & 0xf),
                };
                selector | nibble << (4 * place)
            })
    };
    let first = sources.first().copied().unwrap_or(None);
    let joined = |second| {
        join(second, &|byte, _| {
            (byte.source() == Some(first)).then(|| byte.selector(false))
        })
    };
    let added = |source| join(source, &|_, _| None);
    match sources[..] {
        [a, b, c, d] => Picks::Four {
            a: word(a),
            b: word(b),
            first: joined(b),
            c: word(c),
            second: added(c),
            d: word(d),
            third: added(d),
        },
        [a, b, c] => Picks::Three {
            a: word(a),
            b: word(b),
            first: joined(b),
            c: word(c),
            second: added(c),
        },
        [a, b] => Picks::Two {
            a: word(a),
            b: word(b),
            selector: joined(b),
        },
        _ => Picks::One {
            a: word(first),
            selector: bytes
                .iter()
                .enumerate()
                .fold(0, |selector, (place, &byte)| {
                    let nibble = match byte {
                        Byte::Any => IDENTITY >> (4 * place) & 0xf,
                        byte => byte.selector(false),
                    };
                    selector | nibble << (4 * place)
                }),
        },
    }
}
