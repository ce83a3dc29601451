//! Shifts of 64 bits; signs of lanes.

use super::Lower;
use super::logic::{TABLE_A, TABLE_B};
use super::source::{Regs, Src, words_of_bits};
use crate::isa::VReg;
use crate::isa::generated::{CWMode, LOHI, SHFDType, SHFDir};
use cranelift_codegen::ir::{Type, Value};
use smallvec::SmallVec;

impl Lower<'_> {
    /// A shift amount modulo the width of the shifted type.
    pub(super) fn shift_amount(&mut self, ty: Type, n: Value) -> Src {
        let mask = ty.bits() - 1;
        if let Some(c) = self.constant_of(n) {
            return Src::imm(c as u32 & mask);
        }
        let low = self.src(n).low();
        Src::reg(self.logic3(low, Src::imm(mask), Src::ZERO, TABLE_A & TABLE_B))
    }

    /// `ishl.i64`.
    pub(super) fn shift_left64(&mut self, x: Value, n: Value) -> Regs {
        let src = self.src(x);
        if let Some(c) = self.constant_of(n) {
            let c = c as u32 & 63;
            if c >= 32 {
                let high = self.shift_left(src.low(), Src::imm(c - 32), false);
                return Regs::new(&[self.gpr(Src::ZERO).word(0), high]);
            }
        }
        let n = self.shift_amount64(n);
        let (low, high) = (src.low(), src.high());
        let mode = CWMode::W;
        let low_word = self.funnel(SHFDir::L, LOHI::Lo, mode, SHFDType::U64, low, n, Src::ZERO);
        let high_word = self.funnel(SHFDir::L, LOHI::Hi, mode, SHFDType::U64, low, n, high);
        Regs::new(&[low_word, high_word])
    }

    /// `ushr.i64`, `sshr.i64`.
    pub(super) fn shift_right64(&mut self, x: Value, n: Value, signed: bool) -> Regs {
        let src = self.src(x);
        let (low, high) = (src.low(), src.high());
        if let Some(c) = self.constant_of(n) {
            let c = c as u32 & 63;
            if c >= 32 {
                let word = self.shift_right(high, Src::imm(c - 32), signed, false);
                let fill = if signed {
                    self.sign_word(high)
                } else {
                    self.gpr(Src::ZERO).word(0)
                };
                return Regs::new(&[word, fill]);
            }
        }
        let n = self.shift_amount64(n);
        let itype = if signed { SHFDType::S64 } else { SHFDType::U64 };
        let low_word = self.funnel(SHFDir::R, LOHI::Lo, CWMode::W, itype, low, n, high);
        let high_word = self.funnel(SHFDir::R, LOHI::Hi, CWMode::W, itype, Src::ZERO, n, high);
        Regs::new(&[low_word, high_word])
    }

    /// The low word of an amount; SHF.W on 64-bit types takes it modulo 64.
    fn shift_amount64(&mut self, n: Value) -> Src {
        match self.constant_of(n) {
            Some(c) => Src::imm(c as u32 & 63),
            None => self.src(n).low(),
        }
    }

    /// `rotl.i64`, `rotr.i64`: two funnel shifts for a constant; else the words change places first when the amount has bit 5.
    pub(super) fn rotate64(&mut self, x: Value, n: Value, left: bool) -> Regs {
        let src = self.src(x);
        let (mut low, mut high) = (src.low(), src.high());
        let amount = if let Some(c) = self.constant_of(n) {
            let c = c as u32 & 63;
            if c >= 32 {
                std::mem::swap(&mut low, &mut high);
            }
            Src::imm(c & 31)
        } else {
            let n = self.src(n).low();
            let swap = self.logic3_test(n, Src::imm(32), Src::ZERO, TABLE_A & TABLE_B);
            let (l, h) = (Src::regs(self.gpr(low)), Src::regs(self.gpr(high)));
            low = Src::reg(self.select_word(swap, h, l));
            high = Src::reg(self.select_word(swap, l, h));
            n
        };
        let low = Src::regs(self.gpr(low));
        let high = Src::regs(self.gpr(high));
        let (direction, part) = if left {
            (SHFDir::L, LOHI::Hi)
        } else {
            (SHFDir::R, LOHI::Lo)
        };
        // Each word is shifted with its neighbour on the side that the bits come from.
        let (for_low, for_high) = if left {
            ((high, low), (low, high))
        } else {
            ((low, high), (high, low))
        };
        let low_word = self.funnel(
            direction,
            part,
            CWMode::W,
            SHFDType::U32,
            for_low.0,
            amount,
            for_low.1,
        );
        let high_word = self.funnel(
            direction,
            part,
            CWMode::W,
            SHFDType::U32,
            for_high.0,
            amount,
            for_high.1,
        );
        Regs::new(&[low_word, high_word])
    }

    /// The sign bits of every lane combined by a table: a is the word, b the mask of signs, or of all else when `keep`.
    pub(super) fn change_sign(&mut self, ty: Type, x: Value, table: u8, keep: bool) -> Regs {
        let lane = ty.lane_bits();
        let src = self.src(x);
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        for word in 0..words_of_bits(ty.bits()) as u32 {
            let signs: u32 = (0..32)
                .filter(|bit| (word * 32 + bit) % lane == lane - 1)
                .fold(0, |m, bit| m | 1 << bit);
            let mask = if keep { !signs } else { signs };
            let piece = src.slice(word as u8, 1);
            regs.push(if signs == 0 {
                self.gpr(piece).word(0)
            } else {
                self.logic3(piece, Src::imm(mask), Src::ZERO, table)
            });
        }
        Regs::new(&regs)
    }
}
