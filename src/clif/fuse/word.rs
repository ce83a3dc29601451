//! Bytes of words: where each comes from, and how PRMT puts them together.

use cranelift_codegen::ir::Value;
use smallvec::SmallVec;

/// Most bytes of a value that is followed.
pub(super) const BYTES: usize = 8;

/// PRMT: the bytes of the first register in place.
const IDENTITY: u32 = 0x3210;

/// What a byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Byte {
    /// Nobody reads it.
    Any,
    /// Zero.
    Zero,
    /// The byte of a value with this number, or all ones where that is negative.
    Of { value: Value, byte: u8, sign: bool },
}

/// The bytes of a value, the lowest first.
pub(super) type Bytes = [Byte; BYTES];

/// Where bytes come from: a word of a value; none: zeros.
pub(super) type Source = Option<(Value, u8)>;

impl Byte {
    fn source(self) -> Option<Source> {
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
    pub(super) fn sign(self) -> Byte {
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

/// The bytes of a word of a value.
pub(super) fn word(bytes: &Bytes, word: usize) -> [Byte; 4] {
    std::array::from_fn(|i| bytes[4 * word + i])
}

/// The words that bytes come from, in the order in which they appear, zeros last.
pub(super) fn sources(bytes: [Byte; 4]) -> SmallVec<[Source; 4]> {
    let mut sources: SmallVec<[Source; 4]> = SmallVec::new();
    for source in bytes.into_iter().filter_map(Byte::source) {
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    sources.sort_by_key(Option::is_none);
    sources
}

/// Whether all bytes are where their only source has them.
pub(super) fn is_in_place(bytes: [Byte; 4]) -> bool {
    let sources = sources(bytes);
    let stays = |(place, byte): (usize, &Byte)| match byte {
        Byte::Any => true,
        Byte::Zero => sources[..] == [None],
        Byte::Of { byte, sign, .. } => !sign && usize::from(byte % 4) == place,
    };
    sources.len() <= 1 && bytes.iter().enumerate().all(stays)
}

/// The two values whose low halves these bytes are.
pub(super) fn halves([a, b, c, d]: [Byte; 4]) -> Option<[Value; 2]> {
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
pub(super) fn values(bytes: &Bytes) -> usize {
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

/// How a word is put together: the word that it starts from, and the further ones with the selectors that join them.
pub(super) struct Steps {
    pub(super) first: Source,
    pub(super) joined: SmallVec<[(Source, u32); 3]>,
}

/// The steps that give these bytes. `size`: of how many bytes a source is the low ones of a word.
pub(super) fn steps(bytes: [Byte; 4], size: impl Fn(Source) -> usize) -> Steps {
    let sources = sources(bytes);
    let first = sources.first().copied().unwrap_or(None);
    let in_place = |place: usize| IDENTITY >> (4 * place) & 0xf;
    // What nobody reads, or a later step brings, is a byte that the first word has.
    let any = |place: usize| match place < size(first) {
        true => in_place(place),
        false => 0,
    };
    let selector = |take: &dyn Fn(usize, Byte) -> u32| {
        let nibbles = bytes.iter().enumerate();
        nibbles.fold(0, |all, (place, &byte)| {
            all | take(place, byte) << (4 * place)
        })
    };
    let mut joined = SmallVec::new();
    if !is_in_place(bytes) {
        let second = sources.get(1).copied().unwrap_or(None);
        let both = selector(&|place, byte| match byte.source() {
            Some(source) if source == first => byte.selector(false),
            Some(source) if source == second => byte.selector(true),
            _ => any(place),
        });
        joined.push((second, both));
    }
    for &added in sources.iter().skip(2) {
        let over = selector(&|place, byte| match byte.source() == Some(added) {
            true => byte.selector(true),
            false => in_place(place),
        });
        joined.push((added, over));
    }
    Steps { first, joined }
}
