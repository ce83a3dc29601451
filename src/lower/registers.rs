//! Operands in registers: moves of what is in none, and immediates that a block loads once.

use super::rules::Context;
use super::rules::types::LdcOptions;
use super::source::{Base, Regs, Src, VALUE_CLASS};
use super::state::Lower;
use super::typed::{Operand, USrc, USrc64, Word};
use crate::isa::VReg;
use crate::isa::generated::LoadSize;
use cranelift_codegen::ir::{self, Value};

/// How many immediates of loops are loaded before the loop in one function (assumed: more would cost more registers
/// than it saves).
const HOISTED: u32 = 8;

impl Lower<'_> {
    /// Registers that hold the source, which has no modifiers.
    pub(super) fn gpr(&mut self, src: Src) -> Regs {
        debug_assert!(src.is_plain(), "modifiers of {src:?}");
        self.general(src.base, src.words)
    }

    /// General registers that hold so many words.
    pub(super) fn general(&mut self, base: Base, words: u8) -> Regs {
        match base {
            Base::Regs(regs) => regs,
            Base::Value { value, word } | Base::Uniform { value, word } => {
                self.word_regs(value, word, words)
            }
            Base::Imm(value) if words == 1 => Regs::one(self.shared_immediate(value as u32)),
            // Narrow parameters stand where no operand reaches.
            Base::Constant { bank, offset } if !offset.is_multiple_of(4) => {
                Regs::one(self.load_constant(bank, offset))
            }
            // The words of a wide operand need registers of their own. MOV.64 reads registers only (errata I-66).
            Base::Imm(_) | Base::Pooled(_) | Base::Constant { .. } => {
                Regs::from_fn(words.into(), |word| {
                    self.move_word(Src {
                        base: base.slice(word as u8, 1),
                        ..Src::ZERO
                    })
                })
            }
        }
    }

    /// The register that holds an immediate in the current block: one for all its uses there.
    fn shared_immediate(&mut self, value: u32) -> VReg {
        let Some(block) = self.current else {
            unreachable!("instructions are emitted in blocks")
        };
        if let Some(reg) = self.constants[block].get(value) {
            return reg;
        }
        let reg = self.builder.vreg(VALUE_CLASS);
        self.constants[block].push(value, reg);
        reg
    }

    /// Loads the immediates that the block's instructions asked for, or leaves it to the dominator when the block is in
    /// a loop.
    pub(super) fn load_constants(&mut self, block: ir::Block) {
        let flow = self.input.facts.flow;
        for (value, reg) in std::mem::take(&mut self.constants[block]) {
            let before = flow
                .domtree()
                .idom(block)
                .filter(|_| flow.loop_depth(block) > 0 && !self.frame.has_calls);
            if let Some(before) = before {
                match self.constants[before].get(value) {
                    Some(other) => {
                        self.builder.bind(reg, other);
                        continue;
                    }
                    None if self.hoisted < HOISTED || flow.loop_depth(before) > 0 => {
                        self.hoisted += u32::from(flow.loop_depth(before) == 0);
                        self.constants[before].push(value, reg);
                        continue;
                    }
                    None => {}
                }
            }
            let loaded = self.load_immediate(value);
            self.builder.bind(reg, loaded);
        }
        self.builder.end_unit();
    }

    /// Uniform registers that hold the source, its modifiers aside; none for zero, which is hard-wired.
    pub(super) fn uniform_registers(&mut self, src: Src) -> Option<Regs> {
        let base = match src.base {
            Base::Pooled(bits) => Base::Imm(bits.into()),
            base => base,
        };
        let plain = Src {
            base,
            neg: false,
            whole: None,
            ..src
        };
        let wide = src.words == 2;
        match base {
            Base::Imm(0) => None,
            Base::Regs(regs) => Some(regs),
            Base::Uniform { value, word } => Some(
                self.uniform_of(value)
                    .slice(word as usize, src.words as usize),
            ),
            Base::Imm(value) if wide && i32::try_from(value as u64 as i64).is_err() => {
                let words = [plain.low(), plain.high()];
                let words = words.map(|word| self.emit_umov(USrc::new(word)).regs().word(0));
                Some(Regs::new(&words))
            }
            Base::Imm(_) if wide => Some(self.emit_umov_64(USrc64::new(plain)).regs()),
            Base::Imm(_) => Some(self.emit_umov(USrc::new(plain)).regs()),
            Base::Constant { .. } if wide => Some(self.emit_uldc_64(USrc64::new(plain)).regs()),
            Base::Constant { .. } => Some(self.emit_uldc(USrc::new(plain)).regs()),
            Base::Pooled(_) => unreachable!("such a number is an immediate here"),
            Base::Value { value, .. } => {
                unreachable!("{value} lives in general registers")
            }
        }
    }

    /// The words of a source of the uniform datapath, in registers.
    pub(super) fn uniform_words(&mut self, src: Src) -> Regs {
        match self.uniform_registers(src) {
            Some(regs) => regs,
            // Zero that is passed on needs registers of its own.
            None if src.words == 2 => self.emit_umov_64(USrc64::new(src)).regs(),
            None => self.emit_umov(USrc::new(src)).regs(),
        }
    }

    /// A value in uniform registers, loaded where it is an immediate or constant memory.
    pub(super) fn load_uniform(&mut self, value: Value) -> Regs {
        let src = self.src(value);
        self.uniform_words(src)
    }

    /// MOV of an immediate into a register of its own.
    pub(super) fn load_immediate(&mut self, value: u32) -> VReg {
        self.move_word(Src::imm(value))
    }

    /// LDC of a byte or a half word, as aligned as its offset.
    fn load_constant(&mut self, bank: u8, offset: u32) -> VReg {
        let size = if offset.is_multiple_of(2) {
            LoadSize::U16
        } else {
            LoadSize::U8
        };
        let options = LdcOptions::new(size);
        self.emit_ldc_with(options, bank.into(), Word::imm(0), offset as i32)
            .word(0)
    }

    fn move_word(&mut self, src: Src) -> VReg {
        self.emit_mov(Word::new(src)).reg()
    }
}
