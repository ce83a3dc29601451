//! Words: logic by truth table, sums with carries, shifts, extensions – the pieces that wider sequences are made of.

use super::Lower;
use super::source::{Base, Outputs, PSrc, Regs, Source, Src};
use crate::isa::generated::{
    BMBF, BoolOp, CWMode, CompOp, EXBool, IExt, IType, LOHI, PRMTMode, SHFDType, SHFDir, iadd,
    imad, imnmx, imul, iset, isetp, lop3, prmt, shf,
};
use crate::isa::{Optype, Role, VReg};
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};

/// Truth-table inputs of LOP3 (document 002, LOP3): F(a, b, c) is the table with these for a, b and c.
pub const TABLE_A: u8 = 0xf0;
/// See [`TABLE_A`].
pub const TABLE_B: u8 = 0xcc;
/// See [`TABLE_A`].
pub const TABLE_C: u8 = 0xaa;

/// The truth table when inputs change places: input `order[i]` of the old table is at place i now.
fn permuted(table: u8, order: [usize; 3]) -> u8 {
    (0..8u8).fold(0, |new, index| {
        let now = [index >> 2 & 1, index >> 1 & 1, index & 1];
        let mut old = [0; 3];
        for (place, &input) in order.iter().enumerate() {
            old[input] = now[place];
        }
        new | (table >> (old[0] << 2 | old[1] << 1 | old[2]) & 1) << index
    })
}

/// The truth table with an input complemented.
fn complemented(table: u8, input: usize) -> u8 {
    let bit = 4 >> input;
    (0..8u8).fold(0, |new, index| new | (table >> (index ^ bit) & 1) << index)
}

/// The truth table when an input is known; it does not depend on it any more.
fn known(table: u8, input: usize, value: u8) -> u8 {
    let bit = 4 >> input;
    (0..8u8).fold(0, |new, index| {
        let read = if value == 0 {
            index & !bit
        } else {
            index | bit
        };
        new | (table >> read & 1) << index
    })
}

impl Lower<'_> {
    /// LOP3: one word from three by truth table. Complements fold into the table, an immediate or constant goes to slot B.
    pub fn logic3(&mut self, a: Src, b: Src, c: Src, mut table: u8) -> VReg {
        let inputs = [a, b, c].map(|input| self.below_copies(input));
        for (i, input) in inputs.iter().enumerate() {
            // Inputs of all zeros or all ones are known to the table.
            match input.as_imm() {
                Some(0) => table = known(table, i, 0),
                Some(0xffff_ffff) => table = known(table, i, 1),
                _ => {}
            }
        }
        let copied = [TABLE_A, TABLE_B, TABLE_C].iter().position(|&t| t == table);
        match (table, copied) {
            (0, _) => self.gpr(Src::ZERO).word(0),
            (0xff, _) => self.gpr(Src::imm(u32::MAX)).word(0),
            (_, Some(input)) if inputs[input].is_plain() => self.gpr(inputs[input]).word(0),
            _ => {
                let [a, b, c] = inputs;
                self.logic3_with(a, b, c, table, EXBool::Por, PSrc::FALSE)
                    .reg()
            }
        }
    }

    /// LOP3 whose `pu` says whether the result is not zero.
    pub fn logic3_test(&mut self, a: Src, b: Src, c: Src, table: u8) -> PSrc {
        self.logic3_with(a, b, c, table, EXBool::Por, PSrc::FALSE)
            .pu()
    }

    fn logic3_with(
        &mut self,
        a: Src,
        b: Src,
        c: Src,
        mut table: u8,
        exbool: EXBool,
        pp: PSrc,
    ) -> Outputs {
        let mut inputs = [a, b, c];
        for (i, input) in inputs.iter_mut().enumerate() {
            if input.not {
                *input = Src {
                    not: false,
                    whole: None,
                    ..*input
                };
                table = complemented(table, i);
            }
        }
        let special = |s: &Src| {
            matches!(s.base, Base::Imm(v) if v != 0) || matches!(s.base, Base::Constant { .. })
        };
        if !special(&inputs[1])
            && let Some(from) = [0, 2].into_iter().find(|&i| special(&inputs[i]))
        {
            inputs.swap(1, from);
            let mut order = [0, 1, 2];
            order.swap(1, from);
            table = permuted(table, order);
        }
        let [a, b, c] = inputs;
        self.operation(
            Optype::LOP3,
            lop3::Options::new(exbool).word(),
            &[
                (Role::A, Source::Value(a)),
                (Role::B, Source::Value(b)),
                (Role::C, Source::Value(c)),
                (Role::Lut, Source::Number(i64::from(table))),
                (Role::Pp, Source::Predicate(pp)),
            ],
        )
    }

    /// `-x` of one word.
    pub(super) fn negate(&mut self, src: Src) -> Regs {
        Regs::one(self.add(Src::ZERO, src.negated()))
    }

    /// a + b of one word.
    pub fn add(&mut self, a: Src, b: Src) -> VReg {
        // A special operand belongs in B; so does a negated zero-cost one.
        let (a, b) = if matches!(a.base, Base::Imm(v) if v != 0)
            || matches!(a.base, Base::Constant { .. })
        {
            (b, a)
        } else {
            (a, b)
        };
        self.operation(
            Optype::IADD,
            iadd::Options::new(IExt::NoX).word(),
            &[
                (Role::A, Source::Value(a)),
                (Role::B, Source::Value(b)),
                (Role::Pp, Source::Predicate(PSrc::FALSE)),
            ],
        )
        .reg()
    }

    /// a + b + carry of one word, and the carry out. `not` of an operand is `~`, the only modifier that `.X` knows.
    pub fn add_carry(&mut self, a: Src, b: Src, carry: PSrc) -> (VReg, PSrc) {
        // Under .X the bit of `-` means `~`, so an immediate must have its complement applied before a form is chosen.
        let inverted = |s: Src| {
            let s = self.below_copies(s);
            let plain = Src {
                not: false,
                whole: None,
                ..s
            };
            match s.base {
                Base::Imm(_) if s.not => plain.complemented(),
                Base::Imm(_) => s,
                _ => Src {
                    neg: s.not,
                    ..plain
                },
            }
        };
        let (a, b) = (inverted(a), inverted(b));
        let (a, b) = if matches!(a.base, Base::Imm(v) if v != 0)
            || matches!(a.base, Base::Constant { .. })
        {
            (b, a)
        } else {
            (a, b)
        };
        let out = self.operation(
            Optype::IADD,
            iadd::Options::new(IExt::X).word(),
            &[
                (Role::A, Source::Value(a)),
                (Role::B, Source::Value(b)),
                (Role::Pp, Source::Predicate(carry)),
            ],
        );
        (out.reg(), out.pu())
    }

    /// The sum of two wide values: a carry chain.
    pub fn add_wide(&mut self, a: Src, b: Src) -> Regs {
        self.add_chain(a, b, PSrc::FALSE).0
    }

    /// The difference of two wide values: the chain of a + ~b with carry in.
    pub fn subtract_wide(&mut self, a: Src, b: Src) -> Regs {
        self.subtract_chain(a, b, PSrc::TRUE).0
    }

    /// a + b + carry over all words, and the carry out.
    pub fn add_chain(&mut self, a: Src, b: Src, mut carry: PSrc) -> (Regs, PSrc) {
        let mut regs = smallvec::SmallVec::<[VReg; 4]>::new();
        for i in 0..a.words {
            let (word, out) = self.add_carry(a.slice(i, 1), b.slice(i, 1), carry);
            regs.push(word);
            carry = out;
        }
        (Regs::new(&regs), carry)
    }

    /// a + ~b + carry over all words, and the carry out (set: no borrow).
    pub fn subtract_chain(&mut self, a: Src, b: Src, mut carry: PSrc) -> (Regs, PSrc) {
        let mut regs = smallvec::SmallVec::<[VReg; 4]>::new();
        for i in 0..a.words {
            let (word, out) = self.add_carry(a.slice(i, 1), b.slice(i, 1).complemented(), carry);
            regs.push(word);
            carry = out;
        }
        (Regs::new(&regs), carry)
    }

    /// a * b + c, low word.
    pub fn multiply_add(&mut self, a: Src, b: Src, c: Src) -> VReg {
        if c.as_imm() == Some(0) {
            return self
                .operation(
                    Optype::IMUL,
                    imul::Options::new(LOHI::Lo, IType::U32).word(),
                    &[(Role::A, Source::Value(a)), (Role::B, Source::Value(b))],
                )
                .reg();
        }
        self.operation(
            Optype::IMAD,
            imad::Options::new(LOHI::Lo, IExt::NoX, IType::U32).word(),
            &[
                (Role::A, Source::Value(a)),
                (Role::B, Source::Value(b)),
                (Role::C, Source::Value(c)),
                (Role::Pp, Source::Predicate(PSrc::FALSE)),
            ],
        )
        .reg()
    }

    /// The high word of a * b.
    pub fn multiply_high(&mut self, a: Src, b: Src, itype: IType) -> VReg {
        self.operation(
            Optype::IMUL,
            imul::Options::new(LOHI::Hi, itype).word(),
            &[(Role::A, Source::Value(a)), (Role::B, Source::Value(b))],
        )
        .reg()
    }

    /// a * b + c with words a, b and a 64-bit c; and the carry out (meaningful for U32).
    pub fn multiply_wide(&mut self, itype: IType, a: Src, b: Src, c: Src) -> (Regs, PSrc) {
        let out = self.operation(
            Optype::IMAD_WIDE,
            crate::isa::generated::imad_wide::Options::new(IExt::NoX, itype).word(),
            &[
                (Role::A, Source::Value(a)),
                (Role::B, Source::Value(b)),
                (Role::C, Source::Value(c)),
                (Role::Pp, Source::Predicate(PSrc::FALSE)),
            ],
        );
        (out.d(), out.pu())
    }

    /// The product of two 64-bit values, low 64 bits: one wide product and two words added to its high half.
    pub fn multiply64(&mut self, a: Src, b: Src) -> Regs {
        let (low, _) = self.multiply_wide(IType::U32, a.low(), b.low(), Src::wide_imm(0, 2));
        let mut high = Src::reg(low.word(1));
        if b.high().as_imm() != Some(0) {
            high = Src::reg(self.multiply_add(a.low(), b.high(), high));
        }
        if a.high().as_imm() != Some(0) {
            high = Src::reg(self.multiply_add(a.high(), b.low(), high));
        }
        let high = self.gpr(high);
        Regs::new(&[low.word(0), high.word(0)])
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
        self.operation(
            Optype::SHF,
            shf::Options::new(part, itype, mode, direction).word(),
            &[
                (Role::A, Source::Value(low)),
                (Role::B, Source::Value(amount)),
                (Role::C, Source::Value(high)),
            ],
        )
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

    /// The low `bits` of a word sign-extended to a word.
    pub fn sign_extend_word(&mut self, src: Src, bits: u32) -> VReg {
        match bits {
            8 => self.permute(src, Src::ZERO, Src::imm(0x8880)),
            16 => self.permute(src, Src::ZERO, Src::imm(0x9910)),
            _ => {
                let up = self.shift_left(src, Src::imm(32 - bits), false);
                self.shift_right(Src::reg(up), Src::imm(32 - bits), true, false)
            }
        }
    }

    /// PRMT.IDX: bytes of `{b, a}` by the nibbles of the selector.
    pub fn permute(&mut self, a: Src, b: Src, selector: Src) -> VReg {
        self.operation(
            Optype::PRMT,
            prmt::Options::new(PRMTMode::Idx).word(),
            &[
                (Role::A, Source::Value(a)),
                (Role::B, Source::Value(b)),
                (Role::C, Source::Value(selector)),
            ],
        )
        .reg()
    }

    /// The sign word of a word: all ones when negative.
    pub fn sign_word(&mut self, src: Src) -> VReg {
        self.shift_right(src, Src::imm(31), true, false)
    }

    /// Minimum (pp true) or maximum of two words.
    pub fn min_max(&mut self, a: Src, b: Src, itype: IType, minimum: bool) -> VReg {
        let pp = if minimum { PSrc::TRUE } else { PSrc::FALSE };
        self.operation(
            Optype::IMNMX,
            imnmx::Options::new(itype).word(),
            &[
                (Role::A, Source::Value(a)),
                (Role::B, Source::Value(b)),
                (Role::Pp, Source::Predicate(pp)),
            ],
        )
        .reg()
    }

    /// SEL: a word by a predicate.
    pub fn select_word(&mut self, p: PSrc, a: Src, b: Src) -> VReg {
        // SrcB takes the special operand.
        let special = |s: &Src| {
            matches!(s.base, Base::Imm(v) if v != 0) || matches!(s.base, Base::Constant { .. })
        };
        let (p, a, b) = if special(&a) && !special(&b) {
            (p.negate(), b, a)
        } else {
            (p, a, b)
        };
        self.operation(
            Optype::SEL,
            0,
            &[
                (Role::A, Source::Value(a)),
                (Role::B, Source::Value(b)),
                (Role::Pp, Source::Predicate(p)),
            ],
        )
        .reg()
    }

    /// SEL on every word.
    pub fn select_wide(&mut self, p: PSrc, a: Src, b: Src) -> Regs {
        let mut regs = smallvec::SmallVec::<[VReg; 4]>::new();
        for i in 0..a.words {
            regs.push(self.select_word(p, a.slice(i, 1), b.slice(i, 1)));
        }
        Regs::new(&regs)
    }

    /// ISETP of one word: `(a op b) bool pp`.
    pub fn compare_word(
        &mut self,
        op: CompOp,
        itype: IType,
        a: Src,
        b: Src,
        lower: Option<PSrc>,
    ) -> PSrc {
        let (ext, pq) = match lower {
            Some(p) => (IExt::X, p),
            None => (IExt::NoX, PSrc::TRUE),
        };
        self.operation(
            Optype::ISETP,
            isetp::Options::new(ext, itype, op, BoolOp::And).word(),
            &[
                (Role::A, Source::Value(a)),
                (Role::B, Source::Value(b)),
                (Role::Pp, Source::Predicate(PSrc::TRUE)),
                (Role::Pq, Source::Predicate(pq)),
            ],
        )
        .pu()
    }

    /// The operands of a comparison, extended as it reads them.
    fn compared(&mut self, cc: IntCC, x: Value, y: Value) -> (Src, Src) {
        let signed = matches!(
            cc,
            IntCC::SignedLessThan
                | IntCC::SignedLessThanOrEqual
                | IntCC::SignedGreaterThan
                | IntCC::SignedGreaterThanOrEqual
        );
        if signed {
            (self.sign_extended(x), self.sign_extended(y))
        } else {
            (self.zero_extended(x), self.zero_extended(y))
        }
    }

    /// ISET: a comparison of words as a mask.
    pub fn compare_mask(&mut self, cc: IntCC, x: Value, y: Value) -> VReg {
        let (a, b) = self.compared(cc, x, y);
        let (cc, a, b) = special_second(cc, a, b);
        let (op, signed) = condition(cc);
        let itype = if signed { IType::S32 } else { IType::U32 };
        self.operation(
            Optype::ISET,
            iset::Options::new(IExt::NoX, itype, op, BoolOp::And, BMBF::Bm).word(),
            &[
                (Role::A, Source::Value(a)),
                (Role::B, Source::Value(b)),
                (Role::Pp, Source::Predicate(PSrc::TRUE)),
                // Without .X the field is not read and holds its default.
                (Role::Pq, Source::Predicate(PSrc::FALSE)),
            ],
        )
        .reg()
    }

    /// An integer comparison of any width: the low word unsigned, the others by ISETP.X (errata I-48).
    pub fn compare(&mut self, cc: IntCC, x: Value, y: Value) -> PSrc {
        let (a, b) = self.compared(cc, x, y);
        self.compare_wide(cc, a, b)
    }

    /// [`Lower::compare`] of operands that are extended already.
    pub fn compare_wide(&mut self, cc: IntCC, a: Src, b: Src) -> PSrc {
        let (cc, a, b) = special_second(cc, a, b);
        let (op, signed) = condition(cc);
        // The sign alone decides x < 0 and x >= 0.
        if b.as_imm() == Some(0) && signed && matches!(op, CompOp::Lt | CompOp::Ge) {
            return self.compare_word(op, IType::S32, a.slice(a.words - 1, 1), Src::ZERO, None);
        }
        let mut result = None;
        for i in 0..a.words {
            let top = i + 1 == a.words;
            let itype = if top && signed {
                IType::S32
            } else {
                IType::U32
            };
            result = Some(self.compare_word(op, itype, a.slice(i, 1), b.slice(i, 1), result));
        }
        result.expect("at least one word")
    }
}

/// A comparison with the immediate or constant operand, if there is one, on the right, where forms take it.
fn special_second(cc: IntCC, a: Src, b: Src) -> (IntCC, Src, Src) {
    let special = |s: &Src| {
        matches!(s.base, Base::Imm(v) if v != 0) || matches!(s.base, Base::Constant { .. })
    };
    if special(&a) && !special(&b) {
        (cc.swap_args(), b, a)
    } else {
        (cc, a, b)
    }
}

/// The comparison of a condition code and whether it is signed.
pub fn condition(cc: IntCC) -> (CompOp, bool) {
    match cc {
        IntCC::Equal => (CompOp::Eq, false),
        IntCC::NotEqual => (CompOp::Ne, false),
        IntCC::SignedLessThan => (CompOp::Lt, true),
        IntCC::SignedGreaterThanOrEqual => (CompOp::Ge, true),
        IntCC::SignedGreaterThan => (CompOp::Gt, true),
        IntCC::SignedLessThanOrEqual => (CompOp::Le, true),
        IntCC::UnsignedLessThan => (CompOp::Lt, false),
        IntCC::UnsignedGreaterThanOrEqual => (CompOp::Ge, false),
        IntCC::UnsignedGreaterThan => (CompOp::Gt, false),
        IntCC::UnsignedLessThanOrEqual => (CompOp::Le, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table's function on bits, as the document defines it.
    fn apply(table: u8, [a, b, c]: [u8; 3]) -> u8 {
        table >> (a << 2 | b << 1 | c) & 1
    }

    #[test]
    fn tables_permute_and_complement() {
        for table in 0..=255u8 {
            for bits in 0..8u8 {
                let x = [bits >> 2 & 1, bits >> 1 & 1, bits & 1];
                for order in [
                    [0, 1, 2],
                    [1, 0, 2],
                    [0, 2, 1],
                    [2, 1, 0],
                    [1, 2, 0],
                    [2, 0, 1],
                ] {
                    let moved = [x[order[0]], x[order[1]], x[order[2]]];
                    assert_eq!(
                        apply(permuted(table, order), moved),
                        apply(table, x),
                        "{table:#x} {order:?} {x:?}"
                    );
                }
                for input in 0..3 {
                    let mut z = x;
                    z[input] = 1;
                    assert_eq!(apply(known(table, input, 1), x), apply(table, z));
                    z[input] = 0;
                    assert_eq!(apply(known(table, input, 0), x), apply(table, z));
                    let mut y = x;
                    y[input] ^= 1;
                    assert_eq!(apply(complemented(table, input), y), apply(table, x));
                }
            }
        }
    }
}
