//! Words by the rules' terms, for sequences that are still Rust.

use super::Lower;
use super::context::generated_code::{
    Context, ShfOptions, constructor_add64, constructor_add128, constructor_compare_above,
    constructor_compare_word, constructor_compare64, constructor_compare128,
    constructor_comparison, constructor_maximum, constructor_minimum, constructor_multiply,
    constructor_multiply_add, constructor_select64, constructor_select128,
    constructor_sign_extended_low, constructor_sign_word, constructor_signedness,
    constructor_subtract64, constructor_subtract128,
};
pub use super::logic::{TABLE_A, TABLE_B, TABLE_C};
use super::source::{PSrc, Regs, Src};
use super::typed::{ISrc, NotSrc, Word, Word64, Word128};
use crate::isa::VReg;
use crate::isa::generated::{CWMode, CompOp, IType, LOHI, SHFDType, SHFDir};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types;

impl Lower<'_> {
    /// LOP3: one word from three by truth table.
    pub fn logic3(&mut self, a: Src, b: Src, c: Src, table: u8) -> VReg {
        self.logic_word(a, b, c, table).reg()
    }

    /// LOP3 whose `pu` says whether the result is not zero.
    pub fn logic3_test(&mut self, a: Src, b: Src, c: Src, table: u8) -> PSrc {
        self.logic_predicate(a, b, c, table)
    }

    /// a + b of one word.
    pub fn add(&mut self, a: Src, b: Src) -> VReg {
        self.emit_iadd(ISrc::new(a), ISrc::new(b)).reg()
    }

    /// The sum of two wide values.
    pub fn add_wide(&mut self, a: Src, b: Src) -> Regs {
        self.add_chain(a, b, PSrc::FALSE).0
    }

    /// The difference of two wide values.
    pub fn subtract_wide(&mut self, a: Src, b: Src) -> Regs {
        match a.words {
            1 => {
                let complement = NotSrc::new(b.complemented());
                self.emit_iadd_x(NotSrc::new(a), complement, PSrc::TRUE)
                    .regs
                    .regs()
            }
            2 => constructor_subtract64(self, Word64::new(a), Word64::new(b), PSrc::TRUE)
                .regs
                .regs(),
            _ => constructor_subtract128(self, Word128::new(a), Word128::new(b), PSrc::TRUE)
                .regs
                .regs(),
        }
    }

    /// a + b + carry over all words, and the carry out.
    pub fn add_chain(&mut self, a: Src, b: Src, carry: PSrc) -> (Regs, PSrc) {
        match a.words {
            1 => {
                let sum = self.emit_iadd_x(NotSrc::new(a), NotSrc::new(b), carry);
                (sum.regs.regs(), sum.predicate.source())
            }
            2 => {
                let sum = constructor_add64(self, Word64::new(a), Word64::new(b), carry);
                (sum.regs.regs(), sum.predicate.source())
            }
            _ => {
                let sum = constructor_add128(self, Word128::new(a), Word128::new(b), carry);
                (sum.regs.regs(), sum.predicate.source())
            }
        }
    }

    /// a * b + c, low word.
    pub fn multiply_add(&mut self, a: Src, b: Src, c: Src) -> VReg {
        let (a, b) = (Word::new(a), Word::new(b));
        if c.as_imm() == Some(0) {
            return constructor_multiply(self, a, b).reg();
        }
        constructor_multiply_add(self, a, b, ISrc::new(c)).reg()
    }

    /// SHF: the word of `{high, low}` shifted; see document 002, SHF.
    #[expect(
        clippy::too_many_arguments,
        reason = "the four modifiers of SHF and its three operands"
    )]
    pub fn funnel(
        &mut self,
        direction: SHFDir,
        part: LOHI,
        mode: CWMode,
        itype: SHFDType,
        low: Src,
        amount: Src,
        high: Src,
    ) -> VReg {
        let options = ShfOptions::new(direction, part, mode, itype);
        self.emit_shf_with(options, Word::new(low), Word::new(amount), Word::new(high))
            .reg()
    }

    /// x << n of one word; n is taken modulo 32 when `wrap`.
    pub fn shift_left(&mut self, x: Src, n: Src, wrap: bool) -> VReg {
        let mode = if wrap { CWMode::W } else { CWMode::C };
        self.funnel(SHFDir::L, LOHI::Lo, mode, SHFDType::U32, x, n, Src::ZERO)
    }

    /// x >> n, zeros or the sign shifted in; n is taken modulo 32 when `wrap`.
    pub fn shift_right(&mut self, x: Src, n: Src, signed: bool, wrap: bool) -> VReg {
        let mode = if wrap { CWMode::W } else { CWMode::C };
        let itype = if signed { SHFDType::S32 } else { SHFDType::U32 };
        self.funnel(SHFDir::R, LOHI::Hi, mode, itype, Src::ZERO, n, x)
    }

    /// The low 8 or 16 bits of a word sign-extended to a word.
    pub fn sign_extend_word(&mut self, src: Src, bits: u32) -> VReg {
        let ty = if bits == 8 { types::I8 } else { types::I16 };
        constructor_sign_extended_low(self, ty, Word::new(src)).reg()
    }

    /// PRMT.IDX: bytes of `{b, a}` by the nibbles of the selector.
    pub fn permute(&mut self, a: Src, b: Src, selector: Src) -> VReg {
        self.emit_prmt(Word::new(a), Word::new(b), Word::new(selector))
            .reg()
    }

    /// The sign word of a word: all ones when negative.
    pub fn sign_word(&mut self, src: Src) -> VReg {
        constructor_sign_word(self, Word::new(src)).reg()
    }

    /// Minimum or maximum of two words.
    pub fn min_max(&mut self, a: Src, b: Src, itype: IType, minimum: bool) -> VReg {
        let (a, b) = (Word::new(a), Word::new(b));
        if minimum {
            constructor_minimum(self, &itype, a, b).reg()
        } else {
            constructor_maximum(self, &itype, a, b).reg()
        }
    }

    /// SEL: a word by a predicate.
    pub fn select_word(&mut self, p: PSrc, a: Src, b: Src) -> VReg {
        self.emit_sel(Word::new(a), Word::new(b), p).reg()
    }

    /// SEL on every word.
    pub fn select_wide(&mut self, p: PSrc, a: Src, b: Src) -> Regs {
        match a.words {
            1 => Regs::one(self.select_word(p, a, b)),
            2 => constructor_select64(self, p, Word64::new(a), Word64::new(b)).regs(),
            _ => constructor_select128(self, p, Word128::new(a), Word128::new(b)).regs(),
        }
    }

    /// ISETP of one word, by itself or above the words that `lower` compares.
    pub fn compare_word(
        &mut self,
        op: CompOp,
        itype: IType,
        a: Src,
        b: Src,
        lower: Option<PSrc>,
    ) -> PSrc {
        let (a, b) = (Word::new(a), Word::new(b));
        match lower {
            Some(lower) => constructor_compare_above(self, &op, &itype, a, b, lower),
            None => constructor_compare_word(self, &op, &itype, a, b),
        }
    }

    /// An integer comparison of any width.
    pub fn compare_wide(&mut self, cc: IntCC, a: Src, b: Src) -> PSrc {
        match a.words {
            1 => {
                let op = constructor_comparison(self, &cc);
                let itype = constructor_signedness(self, &cc);
                self.compare_word(op, itype, a, b, None)
            }
            2 => constructor_compare64(self, &cc, Word64::new(a), Word64::new(b)),
            _ => constructor_compare128(self, &cc, Word128::new(a), Word128::new(b)),
        }
    }
}
