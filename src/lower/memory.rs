//! Loads and stores in pieces of proven alignment.

use super::address::Address;
use super::rules::{
    constructor_join_bytes, constructor_join_halves, constructor_load_piece,
    constructor_shift_right, constructor_store_piece,
};
use super::source::{Regs, Src};
use super::state::Lower;
use super::typed::{Gpr, Operand, Unit, Word};
use crate::isa::VReg;
use crate::isa::generated::{LoadSize, StoreSize};
use crate::remarks::Missed;
use cranelift_codegen::ir::Type;
use smallvec::SmallVec;

impl Lower<'_> {
    /// Bytes of the widest access that is known to be aligned, in an access of `bytes` bytes.
    pub(super) fn piece(&mut self, address: Address, bytes: u32) -> u32 {
        let whole = bytes.min(16);
        let piece = address.align.min(whole);
        if piece < whole {
            let line = self.builder.line();
            let space = address.space;
            self.remarks.missed(line, Missed::WholeAccess, || {
                let pieces = bytes / piece;
                format!(
                    "{bytes} bytes of {space} memory are {pieces} accesses, as their address is known to be a multiple \
                     of {piece} only; \
                     the flag `aligned` or %gpu_assume_aligned can promise more"
                )
            });
        }
        piece
    }

    /// A word of `bytes` bytes from pieces of one or two bytes.
    pub(super) fn load_split_word(&mut self, address: Address, piece: u32, bytes: u32) -> Gpr {
        let (size, step) = if piece == 1 {
            (LoadSize::U8, 1)
        } else {
            (LoadSize::U16, 2)
        };
        let mut parts: SmallVec<[Gpr; 4]> = SmallVec::new();
        for at in (0..bytes).step_by(step) {
            parts.push(constructor_load_piece(self, address.plus(at), &size).into());
        }
        match *parts {
            [one] => one,
            [low, high] if step == 2 => constructor_join_halves(self, low.source(), high.source()),
            [low, high] => constructor_join_bytes(self, low.source(), high.source()),
            [a, b, c, d] => {
                let low = constructor_join_bytes(self, a.source(), b.source());
                let high = constructor_join_bytes(self, c.source(), d.source());
                constructor_join_halves(self, low.source(), high.source())
            }
            _ => unreachable!("a word has one, two or four parts"),
        }
    }
}

/// Accesses in pieces.
impl Lower<'_> {
    pub(super) fn load_bytes(&mut self, address: Address, ty: Type) -> Regs {
        let bytes = ty.bytes();
        let piece = self.piece(address, bytes);
        let mut words: SmallVec<[VReg; 4]> = SmallVec::new();
        let mut at = 0;
        while at < bytes {
            let here = address.plus(at);
            let (size, step) = match piece.min(bytes - at) {
                16 => (LoadSize::W128, 16),
                8.. => (LoadSize::W64, 8),
                4.. => (LoadSize::W32, 4),
                small => {
                    let step = (bytes - at).min(4);
                    words.push(self.load_split_word(here, small, step).reg());
                    at += step;
                    continue;
                }
            };
            words.extend_from_slice(constructor_load_piece(self, here, &size).as_slice());
            at += step;
        }
        Regs::new(&words)
    }

    pub(super) fn store_bytes(&mut self, address: Address, ty: Type, data: Src) -> Unit {
        let bytes = ty.bytes();
        let piece = self.piece(address, bytes);
        let mut at = 0;
        while at < bytes {
            let here = address.plus(at);
            let word = (at / 4) as u8;
            let (size, step, part) = match piece.min(bytes - at) {
                16 => (StoreSize::W128, 16, data.slice(word, 4)),
                8.. => (StoreSize::W64, 8, data.slice(word, 2)),
                4.. => (StoreSize::W32, 4, data.slice(word, 1)),
                small => {
                    let (size, step) = if small == 1 {
                        (StoreSize::U8, 1)
                    } else {
                        (StoreSize::U16, 2)
                    };
                    let part = data.slice(word, 1);
                    let part = match at % 4 * 8 {
                        0 => part,
                        shift => {
                            let amount = Word::imm(shift);
                            constructor_shift_right(self, Word::new(part), amount)
                                .source()
                                .src()
                        }
                    };
                    (size, step, part)
                }
            };
            constructor_store_piece(self, here, &size, part);
            at += step;
        }
        Unit
    }
}
