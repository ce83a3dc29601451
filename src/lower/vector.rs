//! What rules ask of lanes that are put together: chains of insertions, and the bytes that a shuffle picks.

use super::source::Src;
use super::state::Lower;
use super::typed::{Operand, Word, Word64};
use crate::isa::generated::I2IPDType;
use cranelift_codegen::ir::{Immediate, InstructionData, Opcode, Value};
use smallvec::SmallVec;

/// PRMT: the bytes of the first register in place.
pub(super) const IDENTITY: u32 = 0x3210;

/// What a chain of insertions puts together: the inserted lanes over a vector that has the others.
#[derive(Clone, Copy, Debug)]
pub struct Insertions {
    /// The vector below; none: zeros.
    pub(super) below: Option<Value>,
    /// What is inserted, by lane.
    pub(super) lanes: [Option<Value>; 16],
    /// Number of lanes.
    pub(super) count: u32,
    /// Bits of a lane.
    pub(super) bits: u32,
}

/// Where the bytes of one word of a shuffle come from: PRMT joins two words, each further one adds another.
#[derive(Clone, Copy, Debug)]
pub enum Picks {
    /// One word.
    One { a: Word, selector: u32 },
    /// Two words.
    Two { a: Word, b: Word, selector: u32 },
    /// Three words.
    Three {
        a: Word,
        b: Word,
        first: u32,
        c: Word,
        second: u32,
    },
    /// Four words.
    Four {
        a: Word,
        b: Word,
        first: u32,
        c: Word,
        second: u32,
        d: Word,
        third: u32,
    },
}

impl Lower<'_> {
    /// Words of the vector below the insertions.
    pub(super) fn words_below(&self, lanes: Insertions, first: u32, words: u8) -> Src {
        match lanes.below {
            Some(vector) => self.src(vector).slice(first as u8, words),
            None => Src::wide_imm(0, words),
        }
    }

    /// The value that an inserted lane is the limited form of, and whether the limits are those of signed lanes.
    pub(super) fn limited(&self, lanes: Insertions, lane: u32) -> Option<(Value, bool)> {
        let Some(InstructionData::Unary {
            opcode: Opcode::Ireduce,
            arg,
        }) = self.def_data(lanes.lanes[lane as usize]?)
        else {
            return None;
        };
        self.limited_value(arg, lanes.bits)
    }
}

/// Chains of insertions, and the bytes that a shuffle picks.
impl Lower<'_> {
    /// The chain of `insertlane` and `scalar_to_vector` that ends at a vector, as far as nobody else sees it.
    pub(super) fn insertions(&mut self, vector: Value) -> Insertions {
        let ty = self.type_of(vector);
        let mut lanes = [None; 16];
        let mut value = vector;
        let below = loop {
            let own = value == vector || self.is_used_in_one_effect(value);
            match self.def_data(value) {
                Some(InstructionData::TernaryImm8 {
                    opcode: Opcode::Insertlane,
                    args: [below, lane],
                    imm,
                }) if own => {
                    lanes[imm as usize].get_or_insert(lane);
                    value = below;
                }
                Some(InstructionData::Unary {
                    opcode: Opcode::ScalarToVector,
                    arg,
                }) if own => {
                    lanes[0].get_or_insert(arg);
                    break None;
                }
                _ => break Some(value),
            }
        };
        Insertions {
            below,
            lanes,
            count: ty.lane_count(),
            bits: ty.lane_bits(),
        }
    }

    pub(super) fn inserted(&mut self, lanes: Insertions, lane: u32) -> Option<Value> {
        lanes.lanes[lane as usize]
    }

    pub(super) fn word_below(&mut self, lanes: Insertions, word: u32) -> Word {
        Word::new(self.words_below(lanes, word, 1))
    }

    pub(super) fn pair_below(&mut self, lanes: Insertions, word: u32) -> Word64 {
        Word64::new(self.words_below(lanes, word, 2))
    }

    /// I2IP's format for the lanes of a word, if each is inserted and the limited form of a word, all with limits of
    /// one signedness.
    pub(super) fn limits_of_lanes(&mut self, lanes: Insertions, word: u32) -> Option<I2IPDType> {
        let per_word = 32 / lanes.bits;
        let first = word * per_word;
        let signed = self.limited(lanes, first)?.1;
        for lane in first + 1..(first + per_word).min(lanes.count) {
            if self.limited(lanes, lane)?.1 != signed {
                return None;
            }
        }
        Some(match (lanes.bits, signed) {
            (8, true) => I2IPDType::S8,
            (8, false) => I2IPDType::U8,
            (_, true) => I2IPDType::S16,
            (_, false) => I2IPDType::U16,
        })
    }

    pub(super) fn limited_lane(&mut self, lanes: Insertions, lane: u32) -> Option<Value> {
        self.limited(lanes, lane).map(|(value, _)| value)
    }

    /// Where a word of the `shuffle` of two vectors comes from.
    pub(super) fn picks(&mut self, a: Value, b: Value, mask: Immediate, word: u32) -> Picks {
        let list = &self.func.dfg.immediates[mask].as_slice()[4 * word as usize..][..4];
        let source = |place: usize| (list[place] & 31) / 4;
        let mut sources: SmallVec<[u8; 4]> = SmallVec::new();
        for place in 0..4 {
            if !sources.contains(&source(place)) {
                sources.push(source(place));
            }
        }
        // PRMT numbers the bytes of its second register from 4 on.
        let picked = |place: usize, base: u32| (u32::from(list[place]) % 4 + base) << (4 * place);
        let joined = (0..4).fold(0, |selector, place| {
            let second = sources.get(1) == Some(&source(place));
            selector | picked(place, if second { 4 } else { 0 })
        });
        let added = |from: u8| {
            (0..4).fold(0, |selector, place| {
                selector
                    | if source(place) == from {
                        picked(place, 4)
                    } else {
                        IDENTITY & 0xf << (4 * place)
                    }
            })
        };
        let word = |source: u8| {
            let (vector, word) = if source < 4 {
                (a, source)
            } else {
                (b, source - 4)
            };
            Word::new(self.src(vector).slice(word, 1))
        };
        match sources[..] {
            [a, b, c, d] => Picks::Four {
                a: word(a),
                b: word(b),
                first: joined,
                c: word(c),
                second: added(c),
                d: word(d),
                third: added(d),
            },
            [a, b, c] => Picks::Three {
                a: word(a),
                b: word(b),
                first: joined,
                c: word(c),
                second: added(c),
            },
            [a, b] => Picks::Two {
                a: word(a),
                b: word(b),
                selector: joined,
            },
            _ => Picks::One {
                a: word(sources[0]),
                selector: joined,
            },
        }
    }
}
