//! Values that are bytes of others, moved: whether a tree of shifts, masks and the like takes fewer instructions when
//! PRMT puts its bytes together.
//!
//! [`Walk`] follows the definition of a value downwards, a bounded way, until every byte is zero, a byte of some value
//! or the sign of one. PRMT puts a word together from the bytes of two words, so so many words need one PRMT less than
//! they are, and one at least. [`Fuser::moved_bytes`] compares that with what the operations of the tree would take
//! that nobody else reads. Bytes that are computed (sums with carries, masks within a byte) are leaves.
//!
//! The costs are those of the rules for single operations: estimates, right for common types (*assumed*: what they miss
//! costs an instruction at most).

use super::Fuser;
use super::word::{BYTES, Byte, Bytes, Source, is_in_place, sources, values, word};
use crate::abi::is_representable;
use crate::analysis::definitions::words_of_bits;
use cranelift_codegen::ir::{InstructionData, Opcode, Type, Value};

/// How far a tree is followed.
const DEPTH: u32 = 8;
/// How many operations of it are looked at (*assumed*: a word of four bytes, each shifted, masked, extended and joined,
/// has twenty).
const OPERATIONS: u32 = 32;

/// A value as its bytes, and what it takes to compute it otherwise.
pub(super) struct Part {
    pub(super) bytes: Bytes,
    /// Instructions for everything below, other than the joining ones at the top.
    pub(super) cost: u32,
    /// Operands of the bitwise operations at the top; one when there are none.
    pub(super) operands: u32,
    pub(super) words: u32,
}

impl Part {
    /// Instructions for all of it: LOP3 joins three operands, and so two more each.
    pub(super) fn whole(&self) -> u32 {
        self.cost + self.operands / 2 * self.words
    }
}

/// All bytes of a type; of one that is too large none.
pub(super) fn count(ty: Type) -> usize {
    match ty.bits() {
        bits if is_representable(ty) && bits <= 64 => bits as usize / 8,
        _ => 0,
    }
}

/// A bit for each byte from `bits` bits on.
fn above(bits: u32) -> u32 {
    !0u32 << bits.div_ceil(8)
}

/// A walk down a tree.
pub(super) struct Walk<'a> {
    pub(super) fuser: &'a Fuser<'a>,
    /// Operations that may still be looked at.
    pub(super) budget: u32,
}

impl Fuser<'_> {
    /// The bytes of a value, if moving them takes fewer instructions than its definition.
    pub(super) fn moved_bytes(&self, value: Value) -> Option<Bytes> {
        let ty = self.type_of(value);
        if !(2..=BYTES).contains(&count(ty)) {
            return None;
        }
        let mut part = self.walk().operation(value, DEPTH, true)?;
        let unused = match self.has_zeros_above(value) {
            true => Byte::Zero,
            false => Byte::Any,
        };
        part.bytes[count(ty)..].fill(unused);
        let taken: u32 = (0..words_of_bits(ty.bits()))
            .map(|i| self.cost_of_word(word(&part.bytes, i)))
            .sum();
        (taken < part.whole()).then_some(part.bytes)
    }

    /// The bytes of a value as far as its definition moves them; its own where it does not.
    pub(super) fn bytes_of(&self, value: Value) -> Bytes {
        self.walk().part(value, DEPTH, false).bytes
    }

    fn walk(&self) -> Walk<'_> {
        Walk {
            fuser: self,
            budget: OPERATIONS,
        }
    }

    /// PRMT takes two registers; what is in none is moved first.
    fn cost_of_word(&self, bytes: [Byte; 4]) -> u32 {
        if let Some(limits) = self.limits(bytes) {
            // The limits would take an instruction each.
            return limits.parts.len() as u32 / 2 - 1;
        }
        if is_in_place(bytes) {
            return 0;
        }
        let sources = sources(bytes);
        let moved =
            |source: &&Source| source.is_some_and(|(value, _)| self.is_in_no_register(value));
        let moves = sources.iter().filter(moved).count();
        (sources.len().saturating_sub(1).max(1) + moves) as u32
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
        match self.def_data(value) {
            Some(InstructionData::Load { opcode, .. }) => match opcode {
                Opcode::Uload8 => above(8),
                Opcode::Uload16 => above(16),
                _ => 0,
            },
            Some(InstructionData::Binary { opcode, args }) => self.zeros_of(value, opcode, args),
            _ => 0,
        }
    }

    /// The same of an operation on two values.
    fn zeros_of(&self, value: Value, opcode: Opcode, [x, y]: [Value; 2]) -> u32 {
        let limit = |value: Value| self.signed_constant_of(value).filter(|&n| n >= 0);
        let below = |n: i128| above(128 - n.leading_zeros());
        let bytes = count(self.type_of(value)) as u32;
        let number = self.constant_of(y);
        match (opcode, number) {
            // What is too large to be followed has no bytes here.
            _ if bytes == 0 => 0,
            (Opcode::Band, Some(mask)) => (0..bytes).fold(0, |zeros, byte| {
                let clear = mask >> (8 * byte) & 0xff == 0;
                zeros | u32::from(clear) << byte
            }),
            (Opcode::Ushr, Some(n)) if !self.type_of(value).is_vector() => {
                above(8 * bytes - n as u32 % (8 * bytes))
            }
            (Opcode::Umin, Some(n)) if n < 1 << 64 => below(n as i128),
            // Between zero and a limit.
            (Opcode::Smin, Some(_)) if self.is_at_least_zero(x) => limit(y).map_or(0, below),
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

    fn is_at_least_zero(&self, value: Value) -> bool {
        matches!(self.def_data(value), Some(InstructionData::Binary { opcode: Opcode::Smax, args: [_, least] })
            if self.signed_constant_of(least).is_some_and(|n| n >= 0))
    }
}

impl Walk<'_> {
    /// The bytes of a value. `alone`: nobody else reads what reads it, so that need not be computed.
    pub(super) fn part(&mut self, value: Value, depth: u32, alone: bool) -> Part {
        let fuser = self.fuser;
        let alone = alone && fuser.is_used_once(value);
        let stays = self.budget == 0 || depth == 0 || fuser.is_truth(value);
        let Some(part) = (!stays)
            .then(|| self.operation(value, depth, alone))
            .flatten()
        else {
            return fuser.leaf_of_bytes(value);
        };
        // What others read too is there already. To look through it must not join more words.
        if alone || values(&part.bytes) <= 1 {
            return part;
        }
        let mut leaf = fuser.leaf_of_bytes(value);
        for (byte, moved) in leaf.bytes.iter_mut().zip(part.bytes) {
            if moved == Byte::Zero {
                *byte = Byte::Zero;
            }
        }
        leaf
    }
}
