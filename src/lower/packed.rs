//! Several lanes in one word at once: sums, differences and shifts of 8- and 16-bit lanes without taking the word apart; lanes of 32
//! and 64 bits next to them.

use super::Lower;
use super::integer::{TABLE_A, TABLE_B, TABLE_C};
use super::source::{PSrc, Regs, Src};
use crate::isa::VReg;
use cranelift_codegen::ir::{Type, Value};
use smallvec::SmallVec;

/// All bits of four bytes but their signs.
const BELOW_SIGNS: u32 = 0x7f7f_7f7f;
/// PRMT: the low half of the first register, the high half of the second.
const LOW_AND_HIGH: u32 = 0x7610;

/// `lane`, a value of `bits` bits, in every lane of a word.
fn repeated(lane: u32, bits: u32) -> u32 {
    (0..32 / bits).fold(0, |word, i| word | lane << (i * bits))
}

impl Lower<'_> {
    /// x + y or x − y in every lane of a vector up to 128 bits.
    pub(super) fn packed_sum(&mut self, ty: Type, x: Src, y: Src, subtract: bool) -> Regs {
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        if ty.lane_bits() == 64 {
            for i in (0..x.words).step_by(2) {
                let (a, b) = (x.slice(i, 2), y.slice(i, 2));
                let lane = if subtract {
                    self.subtract_wide(a, b)
                } else {
                    self.add_chain(a, b, PSrc::FALSE).0
                };
                regs.extend_from_slice(lane.as_slice());
            }
            return Regs::new(&regs);
        }
        for i in 0..x.words {
            let (a, b) = (x.slice(i, 1), y.slice(i, 1));
            regs.push(match ty.lane_bits() {
                8 => self.sum_of_bytes(a, b, subtract),
                16 => self.sum_of_halves(a, b, subtract),
                _ if subtract => self.add(a, b.negated()),
                _ => self.add(a, b),
            });
        }
        Regs::new(&regs)
    }

    /// Four bytes: everything below the signs is added with the signs cleared (for a difference: set on the left), so that nothing
    /// is carried into a neighbour; the signs are put in by exclusive or.
    fn sum_of_bytes(&mut self, a: Src, b: Src, subtract: bool) -> VReg {
        let below = Src::imm(BELOW_SIGNS);
        let (left, signs) = if subtract {
            (TABLE_A | !TABLE_B, !(TABLE_A ^ TABLE_C) & !TABLE_B)
        } else {
            (TABLE_A & TABLE_B, (TABLE_A ^ TABLE_C) & !TABLE_B)
        };
        let low_a = Src::reg(self.logic3(a, below, Src::ZERO, left));
        let low_b = Src::reg(self.logic3(b, below, Src::ZERO, TABLE_A & TABLE_B));
        let low_b = if subtract { low_b.negated() } else { low_b };
        let sum = Src::reg(self.add(low_a, low_b));
        let signs = Src::reg(self.logic3(a, below, b, signs));
        self.logic3(sum, signs, Src::ZERO, TABLE_A ^ TABLE_B)
    }

    /// Two halves: the low one of the whole sum is right; so is the high one when the low bits of one operand let nothing be carried.
    fn sum_of_halves(&mut self, a: Src, b: Src, subtract: bool) -> VReg {
        let (clean, addend) = if subtract {
            let ones = self.logic3(a, Src::imm(0xffff), Src::ZERO, TABLE_A | TABLE_B);
            (ones, b.negated())
        } else {
            let zeros = self.logic3(a, Src::imm(0xffff_0000), Src::ZERO, TABLE_A & TABLE_B);
            (zeros, b)
        };
        let low = self.add(a, addend);
        let high = self.add(Src::reg(clean), addend);
        self.permute(Src::reg(low), Src::reg(high), Src::imm(LOW_AND_HIGH))
    }

    /// `ishl` (left) or `ushr` of lanes of 8, 16 or 32 bits: a shift of the word, without the bits that crossed into a neighbour.
    pub(super) fn packed_shift(&mut self, ty: Type, x: Value, n: Value, left: bool) -> Regs {
        let bits = ty.lane_bits();
        let ones = u32::MAX >> (32 - bits);
        let src = self.src(x);
        let amount = match self.constant_of(n) {
            Some(c) => Src::imm(c as u32 & (bits - 1)),
            None if bits == 32 => Src::regs(self.regs_of(n)).low(),
            None => {
                let n = Src::regs(self.regs_of(n)).low();
                Src::reg(self.logic3(n, Src::imm(bits - 1), Src::ZERO, TABLE_A & TABLE_B))
            }
        };
        let keep = match amount.as_imm() {
            _ if bits == 32 => None,
            Some(c) => {
                let lane = if left { ones << c & ones } else { ones >> c };
                Some(Src::imm(repeated(lane, bits)))
            }
            None => {
                let lane = if left {
                    self.shift_left(Src::imm(ones), amount, true)
                } else {
                    self.shift_right(Src::imm(ones), amount, false, true)
                };
                let selector = Src::imm(if bits == 8 { 0 } else { 0x1010 });
                Some(Src::reg(self.permute(Src::reg(lane), Src::ZERO, selector)))
            }
        };
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        for i in 0..src.words {
            let word = src.slice(i, 1);
            let shifted = if left {
                self.shift_left(word, amount, true)
            } else {
                self.shift_right(word, amount, false, true)
            };
            regs.push(match keep {
                None => shifted,
                Some(keep) => self.logic3(Src::reg(shifted), keep, Src::ZERO, TABLE_A & TABLE_B),
            });
        }
        Regs::new(&regs)
    }

    /// `sshr` of 32-bit lanes, or of narrower ones so far that signs remain.
    pub(super) fn packed_shift_signed(&mut self, x: Value, n: Value) -> Regs {
        let src = self.src(x);
        // Bytes of the sign of their lane (document 002, PRMT.IDX: bit 3 of a selector).
        let signs = match self.type_of(x).lane_bits() {
            8 => Some(0xba98),
            16 => Some(0xbb99),
            _ => None,
        };
        if let Some(selector) = signs {
            let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
            for i in 0..src.words {
                regs.push(self.permute(src.slice(i, 1), Src::ZERO, Src::imm(selector)));
            }
            return Regs::new(&regs);
        }
        let amount = match self.constant_of(n) {
            Some(c) => Src::imm(c as u32 & 31),
            None => Src::regs(self.regs_of(n)).low(),
        };
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        for i in 0..src.words {
            regs.push(self.shift_right(src.slice(i, 1), amount, true, true));
        }
        Regs::new(&regs)
    }
}
