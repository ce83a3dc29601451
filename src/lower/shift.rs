//! Shifts and rotates of values of several words, by any amount.
//!
//! An amount is split: its multiples of a word move whole words (selected by the amount's bits where it is not constant, one
//! halving after the other), its low five bits are funnel shifts of neighbouring words.

use super::Lower;
use super::integer::{TABLE_A, TABLE_B};
use super::source::{Regs, Src};
use crate::isa::VReg;
use crate::isa::generated::{CWMode, LOHI, SHFDType, SHFDir};
use cranelift_codegen::ir::Value;
use smallvec::SmallVec;

/// A way to shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    /// To the left, zeros come in.
    Left,
    /// To the right, zeros come in.
    Right,
    /// To the right, the sign comes in.
    RightSigned,
    /// To the left, what goes out comes in again.
    RotateLeft,
    /// To the right, what goes out comes in again.
    RotateRight,
}

impl Shift {
    fn is_left(self) -> bool {
        matches!(self, Self::Left | Self::RotateLeft)
    }

    fn rotates(self) -> bool {
        matches!(self, Self::RotateLeft | Self::RotateRight)
    }
}

/// The words of a value while it is shifted.
type Words = SmallVec<[Src; 4]>;

impl Lower<'_> {
    /// `x` shifted by `n` modulo its width; any number of words that is a power of two.
    pub(super) fn shift_words(&mut self, x: Value, n: Value, shift: Shift) -> Regs {
        let src = self.src(x);
        let mut words: Words = (0..src.words).map(|i| src.slice(i, 1)).collect();
        let fill = match shift {
            Shift::RightSigned => {
                let top = words[words.len() - 1];
                Src::reg(self.sign_word(top))
            }
            _ => Src::ZERO,
        };
        let bits = 32 * words.len() as u32;
        let amount = match self.constant_of(n) {
            Some(c) => {
                let c = c as u32 & (bits - 1);
                words = moved(&words, (c / 32) as usize, shift, fill);
                Src::imm(c % 32)
            }
            None => {
                let n = Src::regs(self.regs_of(n)).low();
                let mut distance = words.len() / 2;
                while distance > 0 {
                    let bit = Src::imm(32 * distance as u32);
                    let far = self.logic3_test(n, bit, Src::ZERO, TABLE_A & TABLE_B);
                    let there = moved(&words, distance, shift, fill);
                    for (word, other) in words.iter_mut().zip(there) {
                        if *word != other {
                            *word = Src::reg(self.select_word(far, other, *word));
                        }
                    }
                    distance /= 2;
                }
                n
            }
        };
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        if amount.as_imm() == Some(0) {
            for word in words {
                regs.push(self.gpr(word).word(0));
            }
            return Regs::new(&regs);
        }
        // The neighbours that the bits come from.
        let neighbours = moved(&words, 1, shift, fill);
        for (&word, neighbour) in words.iter().zip(neighbours) {
            if !shift.rotates() && word == fill && neighbour == fill {
                regs.push(self.gpr(fill).word(0));
                continue;
            }
            let (direction, part, low, high) = if shift.is_left() {
                (SHFDir::L, LOHI::Hi, neighbour, word)
            } else {
                (SHFDir::R, LOHI::Lo, word, neighbour)
            };
            regs.push(self.funnel(direction, part, CWMode::W, SHFDType::U32, low, amount, high));
        }
        Regs::new(&regs)
    }
}

/// The words after a shift by `distance` words.
fn moved(words: &[Src], distance: usize, shift: Shift, fill: Src) -> Words {
    let count = words.len();
    (0..count)
        .map(|i| {
            let from = if shift.is_left() {
                i as isize - distance as isize
            } else {
                (i + distance) as isize
            };
            if shift.rotates() {
                words[from.rem_euclid(count as isize) as usize]
            } else if (0..count as isize).contains(&from) {
                words[from as usize]
            } else {
                fill
            }
        })
        .collect()
}
