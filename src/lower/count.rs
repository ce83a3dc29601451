//! Counting and reversing bits: clz, cls, ctz, popcnt, bitrev, bswap, on integers of any width.
//!
//! FLO gives the position of the highest one and all ones (−1) for none, so `31 - FLO` is clz with no special case for zero.
//! BREV is never used (errata X-23): bits are reversed by a byte permutation and three exchanges within bytes.

use super::Lower;
use super::integer::{TABLE_A, TABLE_B, TABLE_C};
use super::source::{PSrc, Regs, Source, Src, words_of_bits};
use crate::isa::generated::{CompOp, FLOSH, IType, flo};
use crate::isa::{Optype, Role, VReg};
use cranelift_codegen::ir::{Type, Value};
use smallvec::SmallVec;

/// The exchanges that reverse the bits of every byte: distance, and where the bits from above go.
const EXCHANGES: [(u32, u32); 3] = [(4, 0x0f0f_0f0f), (2, 0x3333_3333), (1, 0x5555_5555)];

impl Lower<'_> {
    /// FLO: the position of the highest one, or under S32 of the highest bit that differs from the sign; −1 for none.
    fn highest(&mut self, word: Src, itype: IType) -> VReg {
        self.operation(
            Optype::FLO,
            flo::Options::new(itype, FLOSH::NoSh).word(),
            &[(Role::B, Source::Value(word))],
        )
        .reg()
    }

    /// POPC.
    fn ones_of_word(&mut self, word: Src) -> VReg {
        self.operation(Optype::POPC, 0, &[(Role::B, Source::Value(word))])
            .reg()
    }

    /// A small number as a value of type `ty`: zeros above its word.
    fn number(&mut self, ty: Type, word: VReg) -> Regs {
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::from_slice(&[word]);
        let words = words_of_bits(ty.bits());
        if words > 1 {
            let zero = self.gpr(Src::ZERO).word(0);
            regs.resize(words, zero);
        }
        Regs::new(&regs)
    }

    /// `top` − the position of the highest one of several words; `top` + 1 for none.
    fn below_top(&mut self, words: &[Src], top: u32) -> VReg {
        let (mut word, mut base) = (words[0], Src::imm(top));
        for (i, &higher) in words.iter().enumerate().skip(1) {
            let found = self.compare_word(CompOp::Ne, IType::U32, higher, Src::ZERO, None);
            word = Src::reg(self.select_word(found, higher, word));
            let closer = Src::imm(top.wrapping_sub(32 * i as u32));
            base = Src::reg(self.select_word(found, closer, base));
        }
        let position = self.highest(word, IType::U32);
        self.add(base, Src::reg(position).negated())
    }

    fn words(&self, src: Src) -> SmallVec<[Src; 4]> {
        (0..src.words).map(|i| src.slice(i, 1)).collect()
    }

    /// `clz`.
    pub(super) fn leading_zeros(&mut self, ty: Type, x: Value) -> Regs {
        let src = self.zero_extended(x);
        let words = self.words(src);
        let count = self.below_top(&words, ty.bits() - 1);
        self.number(ty, count)
    }

    /// `cls`: the bits below the sign that are equal to it.
    pub(super) fn leading_signs(&mut self, ty: Type, x: Value) -> Regs {
        let src = self.sign_extended(x);
        let mut words = self.words(src);
        let top = ty.bits() - 2;
        let count = if let [word] = words[..] {
            let position = self.highest(word, IType::S32);
            self.add(Src::imm(top), Src::reg(position).negated())
        } else {
            let sign = Src::reg(self.sign_word(words[words.len() - 1]));
            for word in &mut words {
                *word = Src::reg(self.logic3(*word, sign, Src::ZERO, TABLE_A ^ TABLE_B));
            }
            self.below_top(&words, top)
        };
        self.number(ty, count)
    }

    /// `ctz`: the ones of `~x & (x - 1)`.
    pub(super) fn trailing_zeros(&mut self, ty: Type, x: Value) -> Regs {
        let src = self.src(x);
        let less = if src.words == 1 {
            Src::reg(self.add(src, Src::imm(u32::MAX)))
        } else {
            let minus_one = Src::wide_imm(u128::MAX >> (128 - ty.bits()), src.words);
            Src::regs(self.add_chain(src, minus_one, PSrc::FALSE).0)
        };
        let mut words: SmallVec<[Src; 4]> = SmallVec::new();
        for i in 0..src.words {
            let (a, c) = (src.slice(i, 1), less.slice(i, 1));
            let below = if ty.bits() < 32 {
                let mask = Src::imm((1 << ty.bits()) - 1);
                self.logic3(a, mask, c, !TABLE_A & TABLE_B & TABLE_C)
            } else {
                self.logic3(a, Src::ZERO, c, !TABLE_A & TABLE_C)
            };
            words.push(Src::reg(below));
        }
        let count = self.ones_of_words(&words);
        self.number(ty, count)
    }

    /// `popcnt`.
    pub(super) fn ones(&mut self, ty: Type, x: Value) -> Regs {
        let src = self.zero_extended(x);
        let words = self.words(src);
        let count = self.ones_of_words(&words);
        self.number(ty, count)
    }

    fn ones_of_words(&mut self, words: &[Src]) -> VReg {
        let mut count = self.ones_of_word(words[0]);
        for &word in &words[1..] {
            let more = self.ones_of_word(word);
            count = self.add(Src::reg(count), Src::reg(more));
        }
        count
    }

    /// `bitrev`.
    pub(super) fn reverse_bits(&mut self, ty: Type, x: Value) -> Regs {
        let bytes = if ty.bits() == 8 {
            self.src(x)
        } else {
            let src = self.src(x);
            Src::regs(self.reverse_bytes(src, ty.bytes()))
        };
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        for mut word in self.words(bytes) {
            for (distance, low) in EXCHANGES {
                let down = self.shift_right(word, Src::imm(distance), false, false);
                let up = self.shift_left(word, Src::imm(distance), false);
                let table = (TABLE_A & TABLE_B) | (!TABLE_B & TABLE_C);
                word = Src::reg(self.logic3(Src::reg(down), Src::imm(low), Src::reg(up), table));
            }
            regs.push(self.gpr(word).word(0));
        }
        Regs::new(&regs)
    }
}
