//! Lanes of 8 and 16 bits, all lanes of a word at once.
//!
//! A sum or difference of words is one of lanes as long as no carry leaves a lane, so the sign bits are kept out of it
//! and put right afterwards (Warren, "Hacker's Delight", 2-18 and 2-13). Every question about lanes ends in the sign
//! bits of a vector; `sshr` by all other bits makes masks of them, which lowering does in one PRMT a word.

use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{
    Endianness, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value,
};

/// Types whose lanes are narrower than the words that they fill.
pub(super) fn has_lanes_in_words(ty: Type) -> bool {
    ty.is_vector() && ty.lane_type().is_int() && ty.lane_bits() < 32 && ty.bits() >= 32
}

/// The value of an instruction on vectors of such a type; none where there is no way without single lanes.
pub(super) fn expand(pos: &mut FuncCursor<'_>, inst: Inst, ty: Type) -> Option<Value> {
    let data = pos.func.dfg.insts[inst];
    let args = pos.func.dfg.inst_args(inst);
    let (a, b) = (args[0], args.get(1).copied());
    let words = I32.by(ty.bits() / 32)?;
    let mut lanes = Lanes { pos, ty, words };
    match (data, b) {
        (InstructionData::IntCompare { cond, .. }, Some(b)) => Some(lanes.compare(cond, a, b)),
        (
            InstructionData::Unary {
                opcode: Opcode::Iabs,
                ..
            },
            _,
        ) => {
            let sign = lanes.masks(a);
            let flipped = lanes.pos.ins().bxor(a, sign);
            Some(lanes.pos.ins().isub(flipped, sign))
        }
        (InstructionData::Binary { opcode, .. }, Some(b)) => lanes.binary(opcode, a, b),
        _ => None,
    }
}

struct Lanes<'a, 'f> {
    pos: &'a mut FuncCursor<'f>,
    ty: Type,
    /// The words of the type.
    words: Type,
}

impl Lanes<'_, '_> {
    fn cast(&mut self, ty: Type, value: Value) -> Value {
        let little = MemFlagsData::new().with_endianness(Endianness::Little);
        self.pos.ins().bitcast(ty, little, value)
    }

    /// A constant with `lane` in every lane.
    fn constant(&mut self, lane: u32) -> Value {
        let word = match self.ty.lane_bits() {
            8 => lane * 0x0101_0101,
            _ => lane * 0x1_0001,
        };
        let word = self.pos.ins().iconst(I32, i64::from(word as i32));
        if self.words.is_vector() {
            self.pos.ins().splat(self.words, word)
        } else {
            word
        }
    }

    /// All bits of a lane but the sign.
    fn below_sign(&mut self) -> Value {
        self.constant((1 << (self.ty.lane_bits() - 1)) - 1)
    }

    /// Lanes of ones where the sign is set, of zeros elsewhere.
    fn masks(&mut self, value: Value) -> Value {
        let amount = i64::from(self.ty.lane_bits()) - 1;
        let amount = self.pos.ins().iconst(I32, amount);
        self.pos.ins().sshr(value, amount)
    }

    /// The same for words whose sign bits count.
    fn masks_of_words(&mut self, words: Value) -> Value {
        let lanes = self.cast(self.ty, words);
        self.masks(lanes)
    }

    fn compare(&mut self, cond: IntCC, a: Value, b: Value) -> Value {
        let (a, b) = (self.cast(self.words, a), self.cast(self.words, b));
        let signs = match cond {
            IntCC::Equal => {
                let differs = self.differs(a, b);
                self.pos.ins().bnot(differs)
            }
            IntCC::NotEqual => self.differs(a, b),
            IntCC::SignedLessThan => self.less(a, b, true),
            IntCC::UnsignedLessThan => self.less(a, b, false),
            IntCC::SignedGreaterThan => self.less(b, a, true),
            IntCC::UnsignedGreaterThan => self.less(b, a, false),
            IntCC::SignedGreaterThanOrEqual | IntCC::UnsignedGreaterThanOrEqual => {
                let less = self.less(a, b, cond == IntCC::SignedGreaterThanOrEqual);
                self.pos.ins().bnot(less)
            }
            IntCC::SignedLessThanOrEqual | IntCC::UnsignedLessThanOrEqual => {
                let greater = self.less(b, a, cond == IntCC::SignedLessThanOrEqual);
                self.pos.ins().bnot(greater)
            }
        };
        self.masks_of_words(signs)
    }

    /// Sign bits of lanes that differ: adding all ones below the sign carries into it from any bit.
    fn differs(&mut self, a: Value, b: Value) -> Value {
        let low = self.below_sign();
        let difference = self.pos.ins().bxor(a, b);
        let below = self.pos.ins().band(difference, low);
        let carried = self.pos.ins().iadd(below, low);
        self.pos.ins().bor(carried, difference)
    }

    /// Sign bits of lanes with a < b. Below the sign a difference with a one in the place of the sign tells; the signs
    /// decide first.
    fn less(&mut self, a: Value, b: Value, signed: bool) -> Value {
        let low = self.below_sign();
        let high = self.pos.ins().bnot(low);
        let minuend = self.pos.ins().bor(a, high);
        let subtrahend = self.pos.ins().band(b, low);
        let not_less_below = self.pos.ins().isub(minuend, subtrahend);
        let (least, most) = if signed { (a, b) } else { (b, a) };
        let decided = self.pos.ins().band_not(least, most);
        let different = self.pos.ins().bxor(a, b);
        let undecided = self.pos.ins().bor(different, not_less_below);
        let less_below = self.pos.ins().bnot(undecided);
        self.pos.ins().bor(decided, less_below)
    }

    fn binary(&mut self, opcode: Opcode, a: Value, b: Value) -> Option<Value> {
        let choose = |cond| Some((cond, a, b));
        let choice = match opcode {
            Opcode::Umin => choose(IntCC::UnsignedLessThan),
            Opcode::Umax => choose(IntCC::UnsignedGreaterThan),
            Opcode::Smin => choose(IntCC::SignedLessThan),
            Opcode::Smax => choose(IntCC::SignedGreaterThan),
            _ => None,
        };
        if let Some((cond, a, b)) = choice {
            let first = self.compare(cond, a, b);
            return Some(self.pos.ins().bitselect(first, a, b));
        }
        match opcode {
            // (a | b) - ((a ^ b) >> 1): what is in both or one, less half of what is in one; never below zero.
            Opcode::AvgRound => {
                let (a, b) = (self.cast(self.words, a), self.cast(self.words, b));
                let one = self.pos.ins().iconst(I32, 1);
                let low = self.below_sign();
                let either = self.pos.ins().bor(a, b);
                let different = self.pos.ins().bxor(a, b);
                let half = self.pos.ins().ushr(different, one);
                let half = self.pos.ins().band(half, low);
                let average = self.pos.ins().isub(either, half);
                Some(self.cast(self.ty, average))
            }
            Opcode::UaddSat => {
                let sum = self.pos.ins().iadd(a, b);
                let both = self.pos.ins().band(a, b);
                let either = self.pos.ins().bor(a, b);
                let lost = self.pos.ins().band_not(either, sum);
                let carry = self.pos.ins().bor(both, lost);
                let full = self.masks(carry);
                Some(self.pos.ins().bor(sum, full))
            }
            Opcode::UsubSat => {
                let difference = self.pos.ins().isub(a, b);
                let below = self.pos.ins().band_not(b, a);
                let different = self.pos.ins().bxor(a, b);
                let kept = self.pos.ins().band_not(difference, different);
                let borrow = self.pos.ins().bor(below, kept);
                let empty = self.masks(borrow);
                Some(self.pos.ins().band_not(difference, empty))
            }
            Opcode::SaddSat => {
                let sum = self.pos.ins().iadd(a, b);
                let (x, y) = (self.pos.ins().bxor(a, sum), self.pos.ins().bxor(b, sum));
                Some(self.limited(a, sum, (x, y)))
            }
            Opcode::SsubSat => {
                let difference = self.pos.ins().isub(a, b);
                let x = self.pos.ins().bxor(a, b);
                let y = self.pos.ins().bxor(a, difference);
                Some(self.limited(a, difference, (x, y)))
            }
            _ => None,
        }
    }

    /// `result`, or where both signs of `overflow` are set the limit on the side of `a`.
    fn limited(&mut self, a: Value, result: Value, overflow: (Value, Value)) -> Value {
        let overflow = self.pos.ins().band(overflow.0, overflow.1);
        let overflow = self.masks(overflow);
        let greatest = self.below_sign();
        let greatest = self.cast(self.ty, greatest);
        let sign = self.masks(a);
        let limit = self.pos.ins().bxor(sign, greatest);
        self.pos.ins().bitselect(overflow, limit, result)
    }
}
