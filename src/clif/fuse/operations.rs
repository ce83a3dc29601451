//! What operations make of the bytes of their operands, one family after the other.

use super::bytes::{Part, Walk, count};
use super::word::{BYTES, Byte, Bytes};
use crate::abi::is_representable;
use crate::analysis::definitions::words_of_bits;
use cranelift_codegen::ir::{Endianness, InstructionData, Opcode, Value};

/// An operation that is looked through.
#[derive(Clone, Copy)]
struct Operation {
    /// Its bytes, and its words.
    size: usize,
    words: u32,
    /// How far its operands are followed.
    depth: u32,
    /// Nobody else reads it, so it need not be computed.
    alone: bool,
}

impl Operation {
    /// It with these bytes, in so many instructions with those below; when it stays it costs nothing more.
    fn part(&self, bytes: Bytes, cost: u32) -> Part {
        Part {
            bytes,
            cost: if self.alone { cost } else { 0 },
            operands: 1,
            words: self.words,
        }
    }

    /// The bytes with what is above the type unused.
    fn fitting(&self, mut bytes: Bytes) -> Bytes {
        bytes[self.size..].fill(Byte::Any);
        bytes
    }
}

impl Walk<'_> {
    /// A value as what its operation makes of the bytes of others. `alone`: nobody else reads it.
    pub(super) fn operation(&mut self, value: Value, depth: u32, alone: bool) -> Option<Part> {
        self.budget = self.budget.saturating_sub(1);
        let ty = self.fuser.type_of(value);
        let op = Operation {
            size: count(ty),
            words: words_of_bits(ty.bits()) as u32,
            depth: depth - 1,
            alone,
        };
        match self.fuser.def_data(value)? {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                ..
            } if self.fuser.constant_of(value) == Some(0) => Some(op.part([Byte::Zero; BYTES], 0)),
            InstructionData::Unary { opcode, arg } => self.unary(op, opcode, arg),
            InstructionData::LoadNoOffset {
                opcode: Opcode::Bitcast,
                arg,
                flags,
            } => {
                let order = self.fuser.func.dfg.mem_flags[flags].explicit_endianness();
                let same = count(self.fuser.type_of(arg)) == op.size;
                let x = (same && order != Some(Endianness::Big)).then(|| self.below(op, arg))?;
                Some(op.part(x.bytes, x.whole()))
            }
            InstructionData::BinaryImm8 {
                opcode: Opcode::Extractlane,
                arg,
                imm,
            } => self.lane(op, arg, imm.into()),
            InstructionData::TernaryImm8 {
                opcode: Opcode::Insertlane,
                args,
                imm,
            } if op.size == 4 && alone => Some(self.inserted(op, args, imm.into())),
            InstructionData::Ternary {
                opcode: Opcode::Bitselect,
                args,
            } if op.size > 0 => self.choice(op, args),
            InstructionData::Binary {
                opcode: Opcode::Iconcat,
                args,
            } => self.concatenation(op, args),
            InstructionData::Binary { opcode, args }
                if op.size > 0 && !ty.is_vector() && ty.is_int() =>
            {
                self.binary(op, opcode, args)
            }
            _ => None,
        }
    }

    fn below(&mut self, op: Operation, value: Value) -> Part {
        self.part(value, op.depth, op.alone)
    }

    /// Extensions, truncation, bytes turned around, copies of a lane.
    fn unary(&mut self, op: Operation, opcode: Opcode, arg: Value) -> Option<Part> {
        let fuser = self.fuser;
        let from = count(fuser.type_of(arg));
        if from == 0 || op.size == 0 {
            return None;
        }
        let is_known = matches!(
            opcode,
            Opcode::Uextend | Opcode::Sextend | Opcode::Ireduce | Opcode::Bswap | Opcode::Splat
        );
        let x = is_known.then(|| self.below(op, arg))?;
        let bytes: Bytes = std::array::from_fn(|i| match opcode {
            Opcode::Uextend if i >= from => Byte::Zero,
            Opcode::Sextend if i >= from => x.bytes[from - 1].sign(),
            Opcode::Bswap if i >= op.size => Byte::Any,
            Opcode::Bswap => x.bytes[op.size - 1 - i],
            Opcode::Splat => x.bytes[i % from],
            _ => x.bytes[i],
        });
        let instructions = match opcode {
            Opcode::Uextend => u32::from(!fuser.has_zeros_above(arg)),
            Opcode::Sextend => {
                let extended = from >= 4 || fuser.has_signs_above(arg) || self.moves_down(arg);
                u32::from(!extended) + (op.words - 1)
            }
            Opcode::Bswap => op.words,
            Opcode::Splat => 1,
            _ => 0,
        };
        Some(op.part(bytes, x.whole() + instructions))
    }

    /// Whether a value is a lane that PRMT takes out of its word; the same PRMT may repeat its sign.
    fn moves_down(&self, value: Value) -> bool {
        matches!(
            self.fuser.def_data(value),
            Some(InstructionData::BinaryImm8 { opcode: Opcode::Extractlane, imm, .. })
                if !(u32::from(imm) * self.fuser.type_of(value).bits()).is_multiple_of(32)
        )
    }

    fn lane(&mut self, op: Operation, vector: Value, lane: usize) -> Option<Part> {
        let ty = self.fuser.type_of(vector);
        let first = lane * op.size;
        if op.size == 0 || !is_representable(ty) {
            return None;
        }
        let moved = u32::from(!first.is_multiple_of(4));
        let size = count(ty);
        if size == 0 {
            // A lane of a vector that is too large to be followed.
            let bytes = std::array::from_fn(|i| Byte::Of {
                value: vector,
                byte: (first + i.min(op.size - 1)) as u8,
                sign: false,
            });
            return Some(op.part(bytes, moved));
        }
        let x = self.below(op, vector);
        let bytes = std::array::from_fn(|i| x.bytes[(first + i).min(size - 1)]);
        Some(op.part(bytes, x.whole() + moved))
    }

    fn inserted(&mut self, op: Operation, [vector, lane]: [Value; 2], index: usize) -> Part {
        let size = count(self.fuser.type_of(lane));
        let (x, y) = (self.below(op, vector), self.below(op, lane));
        let bytes = std::array::from_fn(|i| match i.checked_sub(index * size) {
            Some(from) if from < size => y.bytes[from],
            _ => x.bytes[i],
        });
        op.part(bytes, x.whole() + y.whole() + 1)
    }

    /// One or the other of whole bytes.
    fn choice(&mut self, op: Operation, [mask, x, y]: [Value; 3]) -> Option<Part> {
        let mask = self.fuser.constant_of(mask)?;
        let of_mask = |byte: usize| mask >> (8 * byte) & 0xff;
        if !(0..op.size).all(|byte| matches!(of_mask(byte), 0 | 0xff)) {
            return None;
        }
        let (a, b) = (self.below(op, x), self.below(op, y));
        let bytes = std::array::from_fn(|i| match of_mask(i.min(op.size - 1)) {
            0 => b.bytes[i],
            _ => a.bytes[i],
        });
        Some(op.part(bytes, a.whole() + b.whole() + op.words))
    }

    fn concatenation(&mut self, op: Operation, [low, high]: [Value; 2]) -> Option<Part> {
        let half = op.size / 2;
        let (x, y) = (self.below(op, low), self.below(op, high));
        let bytes = std::array::from_fn(|i| match i.checked_sub(half) {
            Some(i) => y.bytes[i],
            None => x.bytes[i],
        });
        let joined = u32::from(half < 4);
        (op.size > 0 && op.alone).then(|| op.part(bytes, x.whole() + y.whole() + joined))
    }

    /// Operations on two integers.
    fn binary(&mut self, op: Operation, opcode: Opcode, [x, y]: [Value; 2]) -> Option<Part> {
        match (opcode, self.fuser.constant_of(y)) {
            (Opcode::Band, Some(mask)) => self.mask(op, x, mask),
            (Opcode::Bor | Opcode::Bxor | Opcode::Iadd, _) => self.sum(op, opcode, [x, y]),
            (Opcode::Ishl | Opcode::Ushr | Opcode::Sshr | Opcode::Rotl | Opcode::Rotr, Some(n)) => {
                let bits = 8 * op.size as u32;
                self.shift(op, opcode, x, n as u32 % bits)
            }
            (Opcode::Imul, Some(factor)) if op.size == 4 => self.product(op, x, factor),
            _ => None,
        }
    }

    /// Some of the bytes.
    fn mask(&mut self, op: Operation, x: Value, mask: u128) -> Option<Part> {
        let of_mask = |byte: usize| mask >> (8 * byte) & 0xff;
        if !(0..op.size).all(|byte| matches!(of_mask(byte), 0 | 0xff)) {
            return None;
        }
        let part = self.below(op, x);
        let bytes = std::array::from_fn(|i| match of_mask(i) {
            0 => Byte::Zero,
            _ => part.bytes[i],
        });
        Some(Part {
            operands: if op.alone { part.operands + 1 } else { 1 },
            ..op.part(op.fitting(bytes), part.cost)
        })
    }

    /// Bytes that do not meet.
    fn sum(&mut self, op: Operation, opcode: Opcode, [x, y]: [Value; 2]) -> Option<Part> {
        if !self.may_have_zeros(x) || !self.may_have_zeros(y) {
            return None;
        }
        // Two equal bytes are one for a disjunction; every other sum has a zero for each byte.
        if opcode != Opcode::Bor && !self.fuser.zeros().may_complement([x, y], op.size) {
            return None;
        }
        let (a, b) = (self.below(op, x), self.below(op, y));
        let mut bytes = [Byte::Any; BYTES];
        for (i, byte) in bytes.iter_mut().enumerate().take(op.size) {
            *byte = match (a.bytes[i], b.bytes[i]) {
                (Byte::Zero, other) | (other, Byte::Zero) => other,
                (one, other) if one == other && opcode == Opcode::Bor => one,
                _ => return None,
            };
        }
        Some(match opcode {
            _ if !op.alone => op.part(bytes, 0),
            // A shift goes with the sum.
            Opcode::Iadd => {
                let below = (a.whole() + b.whole()).saturating_sub(1);
                op.part(bytes, below + op.words)
            }
            _ => Part {
                operands: a.operands + b.operands,
                ..op.part(bytes, a.cost + b.cost)
            },
        })
    }

    /// Whether a look at the definition leaves room for bytes of zero: most sums and conjunctions end here.
    fn may_have_zeros(&self, value: Value) -> bool {
        self.fuser.def_data(value).is_some_and(|data| {
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

    /// Bytes further up or down.
    fn shift(&mut self, op: Operation, opcode: Opcode, x: Value, n: u32) -> Option<Part> {
        if !n.is_multiple_of(8) {
            return None;
        }
        let part = self.below(op, x);
        let (by, size, from) = (n as usize / 8, op.size, part.bytes);
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
            || (opcode == Opcode::Ushr && !self.fuser.has_zeros_above(x));
        let instructions = match size {
            8 if n == 32 => 0,
            8 if n > 32 && !rotates => 1,
            8 => 2,
            4 => 1,
            _ => 1 + u32::from(narrow),
        };
        Some(op.part(bytes, part.whole() + instructions))
    }

    /// A copy of the value for every byte of the factor that is one.
    fn product(&mut self, op: Operation, x: Value, factor: u128) -> Option<Part> {
        let part = self.below(op, x);
        let mut bytes = [Byte::Zero; BYTES];
        for up in 0..4 {
            match factor >> (8 * up) & 0xff {
                0 => continue,
                1 => {}
                _ => return None,
            }
            for (place, &byte) in bytes[up..4].iter_mut().zip(&part.bytes) {
                match (*place, byte) {
                    (_, Byte::Zero) => {}
                    (Byte::Zero, byte) => *place = byte,
                    _ => return None,
                }
            }
        }
        Some(op.part(op.fitting(bytes), part.whole() + 1))
    }
}
