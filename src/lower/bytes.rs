//! Values that are bytes of others, moved: what a tree of shifts, masks and the like is when every byte of it is zero,
//! a byte of some value or the sign of one.
//!
//! [`Lower::bytes_of`] follows the definition of a value downwards, a bounded way; PRMT puts a word together from the
//! bytes of two words, so so many words need one PRMT less than they are, and one at least. [`Lower::byte_map`]
//! compares that with what the operations of the tree would take that nobody else reads, and gives the map where it is
//! less. Bytes that are computed (sums with carries, masks within a byte) are leaves.
//!
//! The costs are those of the rules for single operations: estimates, right for common types (*assumed*: what they miss
//! costs an instruction at most).

mod limits;
mod word;

pub use word::ByteMap;
pub(super) use word::{Byte, Bytes, picks};

use super::state::Lower;
use super::typed::{Operand, Word};
use super::vector::Picks;
use crate::analysis::definitions::{is_representable, words_of_bits};
use crate::isa::generated::I2IPDType;
use cranelift_codegen::ir::{InstructionData, Opcode, Type, Value};
use word::{BYTES, Source, sources, values};

/// How far a tree is followed.
const DEPTH: u32 = 8;
/// How many operations of it are looked at (*assumed*: a word of four bytes, each shifted, masked, extended and joined,
/// has twenty).
const OPERATIONS: u32 = 32;

/// A value as its bytes, and what it takes to compute it otherwise.
struct Part {
    bytes: Bytes,
    /// Instructions for everything below, other than the joining ones at the top.
    cost: u32,
    /// Operands of the bitwise operations at the top; one when there are none.
    operands: u32,
    words: u32,
}

impl Part {
    /// Instructions for all of it: LOP3 joins three operands, and so two more each.
    fn whole(&self) -> u32 {
        self.cost + self.operands / 2 * self.words
    }
}

/// All bytes of a type; of one that is too large none.
fn count(ty: Type) -> usize {
    match ty.bits() {
        bits if is_representable(ty) && bits <= 64 => bits as usize / 8,
        _ => 0,
    }
}

impl Lower<'_> {
    /// The bytes of a value, if moving them takes fewer instructions than its definition.
    pub(super) fn moved_bytes(&self, value: Value) -> Option<ByteMap> {
        let ty = self.type_of(value);
        if !(2..=BYTES).contains(&count(ty)) {
            return None;
        }
        let mut part = self.operation(value, DEPTH, &mut OPERATIONS.clone(), true)?;
        let above = match self.has_zeros_above(value) {
            true => Byte::Zero,
            false => Byte::Any,
        };
        part.bytes[count(ty)..].fill(above);
        let map = ByteMap { bytes: part.bytes };
        let taken: u32 = (0..words_of_bits(ty.bits()))
            .map(|word| self.cost_of_word(map.word(word)))
            .sum();
        (taken < part.whole()).then_some(map)
    }

    /// PRMT takes two registers; what is in none is moved first.
    fn cost_of_word(&self, bytes: [Byte; 4]) -> u32 {
        if let Some(limits) = self.limits(bytes) {
            // The limits would take an instruction each.
            return limits.parts.len() as u32 / 2 - 1;
        }
        let sources = sources(bytes);
        let moved =
            |source: &&Source| source.is_some_and(|(value, _)| self.src(value).is_special());
        let moves = sources.iter().filter(moved).count();
        let in_place = |(place, byte): (usize, &Byte)| match byte {
            Byte::Any => true,
            Byte::Zero => sources[..] == [None],
            Byte::Of { byte, sign, .. } => !sign && usize::from(byte % 4) == place,
        };
        match sources.len() {
            0 | 1 if bytes.iter().enumerate().all(in_place) => 0,
            len => (len.saturating_sub(1).max(1) + moves) as u32,
        }
    }

    /// The bytes of a value as far as its definition moves them; its own where it does not.
    pub(super) fn bytes_of(&self, value: Value) -> Bytes {
        self.part(value, DEPTH, &mut OPERATIONS.clone(), false)
            .bytes
    }

    fn part(&self, value: Value, depth: u32, budget: &mut u32, alone: bool) -> Part {
        let alone = alone && self.is_used_once(value);
        let stays = *budget == 0 || depth == 0 || self.is_truth(value);
        let Some(part) = (!stays)
            .then(|| self.operation(value, depth, budget, alone))
            .flatten()
        else {
            return self.leaf_of_bytes(value);
        };
        // What others read too is there already. To look through it must not join more words.
        if alone || values(&part.bytes) <= 1 {
            return part;
        }
        let mut leaf = self.leaf_of_bytes(value);
        for (byte, moved) in leaf.bytes.iter_mut().zip(part.bytes) {
            if moved == Byte::Zero {
                *byte = Byte::Zero;
            }
        }
        leaf
    }

    /// A value as a leaf: its own bytes, but for those that are known to be zero.
    fn leaf_of_bytes(&self, value: Value) -> Part {
        let ty = self.type_of(value);
        let zeros = self.zero_bytes(value);
        let mut bytes = [Byte::Zero; BYTES];
        for (index, byte) in bytes.iter_mut().enumerate().take(count(ty)) {
            if zeros >> index & 1 == 0 {
                *byte = Byte::Of {
                    value,
                    byte: index as u8,
                    sign: false,
                };
            }
        }
        Part {
            bytes,
            cost: 0,
            operands: 1,
            words: words_of_bits(ty.bits()) as u32,
        }
    }

    /// A bit for each byte that is known to be zero by the definition alone.
    fn zero_bytes(&self, value: Value) -> u32 {
        let bytes = count(self.type_of(value)) as u32;
        if bytes == 0 {
            return 0;
        }
        let above = |bits: u32| !0u32 << bits.div_ceil(8);
        let limit = |value: Value| self.signed_constant_of(value).filter(|&n| n >= 0);
        let below = |n: i128| above(128 - n.leading_zeros());
        match self.def_data(value) {
            Some(InstructionData::Load { opcode, .. }) => match opcode {
                Opcode::Uload8 => above(8),
                Opcode::Uload16 => above(16),
                _ => 0,
            },
            Some(InstructionData::Binary {
                opcode,
                args: [x, y],
            }) => {
                let number = self.constant_of(y);
                match (opcode, number) {
                    (Opcode::Band, Some(mask)) => (0..bytes).fold(0, |zeros, byte| {
                        let clear = mask >> (8 * byte) & 0xff == 0;
                        zeros | u32::from(clear) << byte
                    }),
                    (Opcode::Ushr, Some(n)) if !self.type_of(value).is_vector() => {
                        above(8 * bytes - n as u32 % (8 * bytes))
                    }
                    (Opcode::Umin, Some(n)) if n < 1 << 64 => below(n as i128),
                    // Between zero and a limit.
                    (Opcode::Smin, Some(_)) if self.is_at_least_zero(x) => {
                        limit(y).map_or(0, below)
                    }
                    (Opcode::Smax, Some(0)) => match self.def_data(x) {
                        Some(InstructionData::Binary {
                            opcode: Opcode::Smin,
                            args: [_, limited],
                        }) => limit(limited).map_or(0, below),
                        _ => 0,
                    },
                    _ => 0,
                }
            }
            _ => 0,
        }
    }

    /// Whether a look at the definition leaves room for bytes of zero: most sums and conjunctions end here.
    fn may_have_zeros(&self, value: Value) -> bool {
        self.def_data(value).is_some_and(|data| {
            matches!(
                data.opcode(),
                Opcode::Iconst
                    | Opcode::Band
                    | Opcode::Bor
                    | Opcode::Bxor
                    | Opcode::Iadd
                    | Opcode::Bitselect
                    | Opcode::Ishl
                    | Opcode::Ushr
                    | Opcode::Sshr
                    | Opcode::Imul
                    | Opcode::Uextend
                    | Opcode::Bswap
                    | Opcode::Uload8
                    | Opcode::Uload16
                    | Opcode::Umin
                    | Opcode::Smin
                    | Opcode::Smax
            )
        })
    }

    fn is_at_least_zero(&self, value: Value) -> bool {
        matches!(self.def_data(value), Some(InstructionData::Binary { opcode: Opcode::Smax, args: [_, least] })
            if self.signed_constant_of(least).is_some_and(|n| n >= 0))
    }

    /// A value as what its operation makes of the bytes of others. `alone`: nobody else reads it, so it need not be
    /// computed.
    fn operation(&self, value: Value, depth: u32, budget: &mut u32, alone: bool) -> Option<Part> {
        *budget = budget.saturating_sub(1);
        let ty = self.type_of(value);
        let size = count(ty);
        let words = words_of_bits(ty.bits()) as u32;
        let mut of = |value: Value, budget: &mut u32| self.part(value, depth - 1, budget, alone);
        // An operation on one value, with so many instructions; when it stays it costs nothing more.
        let one = |x: Part, bytes: Bytes, instructions: u32| Part {
            bytes,
            cost: if alone { x.whole() + instructions } else { 0 },
            operands: 1,
            words,
        };
        match self.def_data(value)? {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                ..
            } if self.constant_of(value) == Some(0) => Some(Part {
                bytes: [Byte::Zero; BYTES],
                cost: 0,
                operands: 1,
                words,
            }),
            InstructionData::Unary { opcode, arg } => {
                let from = count(self.type_of(arg));
                if from == 0 || size == 0 {
                    return None;
                }
                match opcode {
                    Opcode::Uextend => {
                        let x = of(arg, budget);
                        let bytes = std::array::from_fn(|i| match i < from {
                            true => x.bytes[i],
                            false => Byte::Zero,
                        });
                        let masked = u32::from(!self.has_zeros_above(arg));
                        Some(one(x, bytes, masked))
                    }
                    Opcode::Sextend => {
                        let x = of(arg, budget);
                        let sign = x.bytes[from - 1].sign();
                        let bytes =
                            std::array::from_fn(|i| if i < from { x.bytes[i] } else { sign });
                        let extended =
                            from >= 4 || self.has_signs_above(arg) || self.is_lane_moved_down(arg);
                        let signs = u32::from(!extended) + (words - 1);
                        Some(one(x, bytes, signs))
                    }
                    Opcode::Ireduce => {
                        let x = of(arg, budget);
                        let bytes = x.bytes;
                        Some(one(x, bytes, 0))
                    }
                    Opcode::Bswap => {
                        let x = of(arg, budget);
                        let bytes = std::array::from_fn(|i| match size.checked_sub(i + 1) {
                            Some(from) => x.bytes[from],
                            None => Byte::Any,
                        });
                        Some(one(x, bytes, words))
                    }
                    Opcode::Splat => {
                        let x = of(arg, budget);
                        let bytes = std::array::from_fn(|i| x.bytes[i % from]);
                        Some(one(x, bytes, 1))
                    }
                    _ => None,
                }
            }
            InstructionData::LoadNoOffset {
                opcode: Opcode::Bitcast,
                arg,
                flags,
            } => {
                let little = self.func.dfg.mem_flags[flags].explicit_endianness()
                    != Some(cranelift_codegen::ir::Endianness::Big);
                let x = (little && count(self.type_of(arg)) == size).then(|| of(arg, budget))?;
                let bytes = x.bytes;
                Some(one(x, bytes, 0))
            }
            InstructionData::BinaryImm8 {
                opcode: Opcode::Extractlane,
                arg,
                imm,
            } => {
                let first = imm as usize * size;
                let lanes = count(self.type_of(arg));
                if size == 0 || !is_representable(self.type_of(arg)) {
                    return None;
                }
                if lanes == 0 {
                    // A lane of a vector that is too large to be followed.
                    let bytes = std::array::from_fn(|i| Byte::Of {
                        value: arg,
                        byte: (first + i.min(size - 1)) as u8,
                        sign: false,
                    });
                    let moved = u32::from(!first.is_multiple_of(4));
                    return Some(Part {
                        bytes,
                        cost: if alone { moved } else { 0 },
                        operands: 1,
                        words,
                    });
                }
                let x = of(arg, budget);
                let bytes = std::array::from_fn(|i| x.bytes[(first + i).min(lanes - 1)]);
                Some(one(x, bytes, u32::from(!first.is_multiple_of(4))))
            }
            InstructionData::TernaryImm8 {
                opcode: Opcode::Insertlane,
                args: [vector, lane],
                imm,
            } if size == 4 && alone => {
                let lane_size = count(self.type_of(lane));
                let (x, y) = (of(vector, budget), of(lane, budget));
                let first = imm as usize * lane_size;
                let bytes = std::array::from_fn(|i| match i.checked_sub(first) {
                    Some(from) if from < lane_size => y.bytes[from],
                    _ => x.bytes[i],
                });
                Some(Part {
                    bytes,
                    cost: x.whole() + y.whole() + 1,
                    operands: 1,
                    words,
                })
            }
            InstructionData::Ternary {
                opcode: Opcode::Bitselect,
                args: [mask, x, y],
            } if size > 0 => {
                let mask = self.constant_of(mask)?;
                let of_mask = |byte: usize| mask >> (8 * byte) & 0xff;
                if !(0..size).all(|byte| matches!(of_mask(byte), 0 | 0xff)) {
                    return None;
                }
                let (a, b) = (of(x, budget), of(y, budget));
                let bytes = std::array::from_fn(|i| match of_mask(i.min(size - 1)) {
                    0 => b.bytes[i],
                    _ => a.bytes[i],
                });
                Some(Part {
                    bytes,
                    cost: if alone {
                        a.whole() + b.whole() + words
                    } else {
                        0
                    },
                    operands: 1,
                    words,
                })
            }
            InstructionData::Binary {
                opcode: Opcode::Iconcat,
                args: [low, high],
            } => {
                let half = size / 2;
                let (x, y) = (of(low, budget), of(high, budget));
                let bytes = std::array::from_fn(|i| match i.checked_sub(half) {
                    Some(i) => y.bytes[i],
                    None => x.bytes[i],
                });
                let joined = u32::from(half < 4);
                (size > 0 && alone).then(|| Part {
                    bytes,
                    cost: x.whole() + y.whole() + joined,
                    operands: 1,
                    words,
                })
            }
            InstructionData::Binary { opcode, args } if !ty.is_vector() && ty.is_int() => {
                self.binary(opcode, args, (size, words), alone, &mut of, budget)
            }
            _ => None,
        }
    }

    /// A lane that PRMT takes out of its word; the same PRMT may repeat its sign.
    fn is_lane_moved_down(&self, value: Value) -> bool {
        matches!(
            self.def_data(value),
            Some(InstructionData::BinaryImm8 { opcode: Opcode::Extractlane, imm, .. })
                if !(u32::from(imm) * self.type_of(value).bits()).is_multiple_of(32)
        )
    }

    /// The same of an operation on two integers.
    fn binary(
        &self,
        opcode: Opcode,
        [x, y]: [Value; 2],
        (size, words): (usize, u32),
        alone: bool,
        of: &mut dyn FnMut(Value, &mut u32) -> Part,
        budget: &mut u32,
    ) -> Option<Part> {
        if size == 0 {
            return None;
        }
        let number = self.constant_of(y);
        let bits = 8 * size as u32;
        let fitting = |bytes: &mut Bytes| bytes[size..].fill(Byte::Any);
        let moved = |part: Part, mut bytes: Bytes, instructions: u32| {
            fitting(&mut bytes);
            Some(Part {
                bytes,
                cost: if alone {
                    part.whole() + instructions
                } else {
                    0
                },
                operands: 1,
                words,
            })
        };
        match (opcode, number) {
            (Opcode::Band, Some(mask)) => {
                let whole = |byte: u32| matches!(mask >> (8 * byte) & 0xff, 0 | 0xff);
                if !(0..size as u32).all(whole) {
                    return None;
                }
                let part = of(x, budget);
                let mut bytes = std::array::from_fn(|i| match mask >> (8 * i as u32) & 0xff {
                    0 => Byte::Zero,
                    _ => part.bytes[i],
                });
                fitting(&mut bytes);
                Some(Part {
                    bytes,
                    cost: if alone { part.cost } else { 0 },
                    operands: if alone { part.operands + 1 } else { 1 },
                    words,
                })
            }
            (Opcode::Bor | Opcode::Bxor | Opcode::Iadd, _) => {
                if !self.may_have_zeros(x) || !self.may_have_zeros(y) {
                    return None;
                }
                let (a, b) = (of(x, budget), of(y, budget));
                let mut bytes = [Byte::Any; BYTES];
                for (i, byte) in bytes.iter_mut().enumerate().take(size) {
                    *byte = match (a.bytes[i], b.bytes[i]) {
                        (Byte::Zero, other) | (other, Byte::Zero) => other,
                        (one, other) if one == other && opcode == Opcode::Bor => one,
                        _ => return None,
                    };
                }
                Some(match opcode {
                    _ if !alone => Part {
                        bytes,
                        cost: 0,
                        operands: 1,
                        words,
                    },
                    // A shift goes with the sum.
                    Opcode::Iadd => Part {
                        bytes,
                        cost: (a.whole() + b.whole()).saturating_sub(1) + words,
                        operands: 1,
                        words,
                    },
                    _ => Part {
                        bytes,
                        cost: a.cost + b.cost,
                        operands: a.operands + b.operands,
                        words,
                    },
                })
            }
            (Opcode::Ishl | Opcode::Ushr | Opcode::Sshr | Opcode::Rotl | Opcode::Rotr, Some(n)) => {
                let n = n as u32 % bits;
                if !n.is_multiple_of(8) {
                    return None;
                }
                let part = of(x, budget);
                let by = n as usize / 8;
                let from = part.bytes;
                let top = from[size - 1];
                let bytes = std::array::from_fn(|i| match opcode {
                    _ if i >= size => Byte::Any,
                    Opcode::Ishl => i.checked_sub(by).map_or(Byte::Zero, |i| from[i]),
                    Opcode::Ushr if i + by >= size => Byte::Zero,
                    Opcode::Sshr if i + by >= size => top.sign(),
                    Opcode::Ushr | Opcode::Sshr => from[i + by],
                    Opcode::Rotl => from[(i + size - by) % size],
                    _ => from[(i + by) % size],
                });
                let rotates = matches!(opcode, Opcode::Rotl | Opcode::Rotr);
                let narrow = opcode == Opcode::Sshr
                    || rotates
                    || (opcode == Opcode::Ushr && !self.has_zeros_above(x));
                let instructions = match size {
                    8 if n == 32 => 0,
                    8 if n > 32 && !rotates => 1,
                    8 => 2,
                    4 => 1,
                    _ => 1 + u32::from(narrow),
                };
                moved(part, bytes, instructions)
            }
            // A copy of the value for every byte of the factor that is one.
            (Opcode::Imul, Some(factor)) if size == 4 => {
                let part = of(x, budget);
                let mut bytes = [Byte::Zero; BYTES];
                for up in 0..4 {
                    match factor >> (8 * up) & 0xff {
                        0 => continue,
                        1 => {}
                        _ => return None,
                    }
                    for i in 0..4 - up as usize {
                        let place = &mut bytes[i + up as usize];
                        match (*place, part.bytes[i]) {
                            (_, Byte::Zero) => {}
                            (Byte::Zero, byte) => *place = byte,
                            _ => return None,
                        }
                    }
                }
                moved(part, bytes, 1)
            }
            _ => None,
        }
    }
}

/// Values that are the bytes of others.
impl Lower<'_> {
    pub(super) fn byte_map(&mut self, value: Value) -> Option<ByteMap> {
        self.moved_bytes(value)
    }

    pub(super) fn picks_of_bytes(&mut self, map: ByteMap, word: u32) -> Picks {
        picks(map.word(word as usize), |source| match source {
            Some((value, word)) => Word::new(self.src(value).slice(word, 1)),
            None => Word::imm(0),
        })
    }

    pub(super) fn narrowed_half(&mut self, map: ByteMap, word: u32, half: u32) -> Option<Value> {
        self.narrowed(map.halves(word as usize)?[half as usize])
    }

    pub(super) fn limits_of_parts(&mut self, map: ByteMap, word: u32) -> Option<I2IPDType> {
        let limits = self.limits(map.word(word as usize))?;
        Some(match (limits.bits, limits.signed) {
            (8, true) => I2IPDType::S8,
            (8, false) => I2IPDType::U8,
            (_, true) => I2IPDType::S16,
            (_, false) => I2IPDType::U16,
        })
    }

    pub(super) fn limited_part(&mut self, map: ByteMap, word: u32, part: u32) -> Option<Value> {
        let limits = self.limits(map.word(word as usize))?;
        limits.parts.get(part as usize).copied()
    }
}
