//! Operands as arguments of the generated builders, [`crate::isa::build`].
//!
//! A register operand takes a register, or registers, low word first, or the name of the one that is hard-wired:
//! [`RZ`], [`URZ`], [`PT`]. A predicate that is read takes these with their negation. Which class and how many
//! registers an operand has is in the type of the argument; where the number depends on a modifier, [`Inst::set_regs`]
//! checks it.
//!
//! ```text
//! build::iadd_ri(iadd::Options::new(IExt::NoX), a, PT, b, -1, !PT)        IADD R4, R5, -1
//! build::sel_rr(a, a, b, not(p))                                          SEL R4, R4, R5, !P0
//! build::mov_r(mov::Options::new(MOVW::W64), [a, b], [c, d])              MOV.64 R[4:5], R[8:9]
//! ```

use super::inst::Inst;
use super::register::{Register, RegisterClass};
use super::table::{FieldType, OperandInfo};
use super::{Form, Role};

/// The GPR that reads 0 and drops what is written to it, in every word of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RZ;

/// The same among the uniform registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::upper_case_acronyms,
    reason = "the register is written so in assembly"
)]
pub struct URZ;

/// The predicate that always holds; `!PT` never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PT;

/// `!PT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPT;

impl std::ops::Not for PT {
    type Output = NotPT;

    fn not(self) -> NotPT {
        NotPT
    }
}

/// What an argument of type `T` may be given as. `Copy`, so that the builders have nothing to drop and stay small.
pub trait Argument<T>: Copy {
    /// The operand.
    fn argument(self) -> T;
}

impl<T, A: Copy + Into<T>> Argument<T> for A {
    fn argument(self) -> T {
        self.into()
    }
}

/// `N` registers of a class, or its hard-wired register (none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reg<R, const CLASS: u8, const N: usize>(Option<[R; N]>);

/// `N` GPRs or RZ.
pub type Gpr<R, const N: usize = 1> = Reg<R, { RegisterClass::Gpr as u8 }, N>;
/// `N` uniform registers or URZ.
pub type Uniform<R, const N: usize = 1> = Reg<R, { RegisterClass::Uniform as u8 }, N>;
/// A predicate that is written, or PT.
pub type PredicateResult<R> = Reg<R, { RegisterClass::Predicate as u8 }, 1>;

impl<R: Register, const CLASS: u8> From<R> for Reg<R, CLASS, 1> {
    fn from(reg: R) -> Self {
        Reg(Some([reg]))
    }
}

/// None is the hard-wired register.
impl<R: Register, const CLASS: u8> From<Option<R>> for Reg<R, CLASS, 1> {
    fn from(reg: Option<R>) -> Self {
        Reg(reg.map(|r| [r]))
    }
}

impl<R: Register, const CLASS: u8, const N: usize> From<[R; N]> for Reg<R, CLASS, N> {
    fn from(regs: [R; N]) -> Self {
        Reg(Some(regs))
    }
}

impl<R: Register, const N: usize> From<RZ> for Gpr<R, N> {
    fn from(_: RZ) -> Self {
        Reg(None)
    }
}

impl<R: Register, const N: usize> From<URZ> for Uniform<R, N> {
    fn from(_: URZ) -> Self {
        Reg(None)
    }
}

impl<R: Register> From<PT> for PredicateResult<R> {
    fn from(_: PT) -> Self {
        Reg(None)
    }
}

/// The most registers of one operand.
const MOST: usize = 4;

/// As many registers of a class as the modifiers ask for, or its hard-wired register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regs<R, const CLASS: u8> {
    regs: [Option<R>; MOST],
    /// 0: hard-wired.
    count: u8,
}

/// GPRs or RZ.
pub type Gprs<R> = Regs<R, { RegisterClass::Gpr as u8 }>;
/// Uniform registers or URZ.
pub type Uniforms<R> = Regs<R, { RegisterClass::Uniform as u8 }>;

/// # Panics
/// When no operand has so many registers, or there is none.
impl<R: Register, const CLASS: u8> From<&[R]> for Regs<R, CLASS> {
    fn from(list: &[R]) -> Self {
        assert!((1..=MOST).contains(&list.len()), "{} registers", list.len());
        let mut regs = [None; MOST];
        for (entry, reg) in regs.iter_mut().zip(list) {
            *entry = Some(*reg);
        }
        let count = list.len() as u8;
        Regs { regs, count }
    }
}

impl<R: Register, const CLASS: u8, const N: usize> From<[R; N]> for Regs<R, CLASS> {
    fn from(regs: [R; N]) -> Self {
        const { assert!(N >= 1 && N <= MOST) };
        Self::from(&regs[..])
    }
}

impl<R: Register, const CLASS: u8> From<R> for Regs<R, CLASS> {
    fn from(reg: R) -> Self {
        Self::from([reg])
    }
}

/// None is the hard-wired register.
impl<R: Register, const CLASS: u8> From<Option<R>> for Regs<R, CLASS> {
    fn from(reg: Option<R>) -> Self {
        reg.map_or(
            Regs {
                regs: [None; MOST],
                count: 0,
            },
            Self::from,
        )
    }
}

impl<R: Register> From<RZ> for Gprs<R> {
    fn from(_: RZ) -> Self {
        Regs {
            regs: [None; MOST],
            count: 0,
        }
    }
}

impl<R: Register> From<URZ> for Uniforms<R> {
    fn from(_: URZ) -> Self {
        Regs {
            regs: [None; MOST],
            count: 0,
        }
    }
}

/// A predicate that is read, or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate<R> {
    /// None: PT.
    pub reg: Option<R>,
    /// Whether `!` stands before it.
    pub negated: bool,
}

/// `!predicate`.
pub fn not<R: Register>(predicate: impl Into<Predicate<R>>) -> Predicate<R> {
    let Predicate { reg, negated } = predicate.into();
    Predicate {
        reg,
        negated: !negated,
    }
}

impl<R: Register> From<R> for Predicate<R> {
    fn from(reg: R) -> Self {
        Predicate::from(Some(reg))
    }
}

/// None is PT.
impl<R: Register> From<Option<R>> for Predicate<R> {
    fn from(reg: Option<R>) -> Self {
        Predicate {
            reg,
            negated: false,
        }
    }
}

impl<R: Register> From<PT> for Predicate<R> {
    fn from(_: PT) -> Self {
        Predicate::from(None)
    }
}

impl<R: Register> From<NotPT> for Predicate<R> {
    fn from(_: NotPT) -> Self {
        Predicate {
            reg: None,
            negated: true,
        }
    }
}

/// The bits of a 32-bit integer, signed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imm32(u32);

impl From<u32> for Imm32 {
    fn from(value: u32) -> Self {
        Imm32(value)
    }
}

impl From<i32> for Imm32 {
    fn from(value: i32) -> Self {
        Imm32(value as u32)
    }
}

impl Imm32 {
    pub(super) fn number(self) -> i64 {
        i64::from(self.0)
    }
}

/// A place in constant memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Bank, 5 bits.
    pub bank: u8,
    /// Byte offset, 17 bits.
    pub offset: u32,
}

impl Constant {
    /// Bits of an offset in a field of type `CMem`; assigned (`docs/assigned.md`).
    pub(crate) const OFFSET_BITS: u32 = 17;

    /// As in the field of an operand: the bank above the offset.
    pub const fn bits(self) -> u64 {
        debug_assert!(self.bank < 32 && self.offset >> Self::OFFSET_BITS == 0);
        (self.bank as u64) << Self::OFFSET_BITS | self.offset as u64
    }
}

/// What the generated builders are made of. Operands and fields are indices into the form's tables.
impl<R: Register> Inst<R> {
    /// The form with its modifiers.
    pub(super) fn with_options(form: Form, options: u128) -> Self {
        let mut inst = Inst::new(form);
        inst.set_options(inst.optype().info().options_mask, options);
        inst
    }

    fn set_operand(&mut self, operand: usize, class: u8, regs: &[Option<R>]) {
        debug_assert!(
            regs.iter().flatten().all(|r| r.class() as u8 == class),
            "{} with {regs:?}",
            self.info().name
        );
        self.set_regs(&self.info().operands[operand], regs);
    }

    /// Sets a register operand of one width.
    pub(super) fn with_reg<const CLASS: u8, const N: usize>(
        mut self,
        operand: usize,
        reg: impl Argument<Reg<R, CLASS, N>>,
    ) -> Self {
        let regs = reg.argument().0.map_or([None; N], |regs| regs.map(Some));
        self.set_operand(operand, CLASS, &regs);
        self
    }

    /// Sets a register operand whose width depends on the modifiers.
    pub(super) fn with_regs<const CLASS: u8>(
        mut self,
        operand: usize,
        regs: impl Argument<Regs<R, CLASS>>,
    ) -> Self {
        let Regs { regs, count } = regs.argument();
        let count = match count {
            0 => self.register_count(&self.info().operands[operand]),
            count => count.into(),
        };
        self.set_operand(operand, CLASS, &regs[..count]);
        self
    }

    /// Sets a predicate that is read, with its negation.
    pub(super) fn with_predicate(
        mut self,
        operand: usize,
        predicate: impl Argument<Predicate<R>>,
    ) -> Self {
        let Predicate { reg, negated } = predicate.argument();
        self.set_operand(operand, RegisterClass::Predicate as u8, &[reg]);
        let not = self.info().operands[operand].not;
        self.set_field(not.expect("the operand can be negated"), u64::from(negated));
        self
    }

    /// Sets a field that holds no register; `value` must fit, as a signed number or as an unsigned one.
    pub(super) fn with_number(mut self, field: u8, value: i64) -> Self {
        let info = &self.info().fields[field as usize];
        let (low, high) = (value >> (info.width - 1), value >> info.width);
        debug_assert!(
            low == -1 || high == 0,
            "{}.{}: {value}",
            self.info().name,
            info.name
        );
        self.set_field(field, value as u64);
        self
    }
}

/// Operands that hold no register, and signs.
impl<R: Register> Inst<R> {
    /// The raw value of the operand of a role; none when the form has no such operand, or it is a register.
    pub fn number(&self, role: Role) -> Option<u64> {
        let operand = self.number_operand(role)?;
        Some(self.field(operand.field))
    }

    /// Sets the raw value of the operand of a role.
    ///
    /// # Panics
    /// When the form has no such operand, or it is a register.
    pub fn set_number(&mut self, role: Role, value: u64) {
        let operand = self
            .number_operand(role)
            .unwrap_or_else(|| panic!("{} has no number {role:?}", self.info().name));
        self.set_field(operand.field, value);
    }

    /// The operand of a role if it holds no register but a number: an immediate, an address, a label, a place in
    /// constant memory.
    pub fn number_operand(&self, role: Role) -> Option<&'static OperandInfo> {
        let has_field = |o: &&OperandInfo| usize::from(o.field) < self.info().fields.len();
        self.operand(role)
            .filter(|o| o.class.is_none())
            .filter(has_field)
    }

    /// The operand that is a label.
    pub fn label(&self) -> Option<&'static OperandInfo> {
        let is_label = |o: &&OperandInfo| {
            let field = self.info().fields.get(usize::from(o.field));
            field.is_some_and(|f| matches!(f.ty, FieldType::Label))
        };
        self.info().operands.iter().find(is_label)
    }

    /// Whether the operand of a role has a sign, and it is `-`.
    pub fn is_negated(&self, role: Role) -> bool {
        let sign = self.operand(role).and_then(|o| o.negate);
        sign.is_some_and(|field| self.field(field) != 0)
    }

    /// This instruction with the sign of an operand set: `-`.
    ///
    /// # Panics
    /// When the form has no such operand, or it has no sign.
    pub fn with_negated(mut self, role: Role, negated: bool) -> Self {
        let field = self
            .operand(role)
            .and_then(|o| o.negate)
            .unwrap_or_else(|| panic!("{} has no sign of {role:?}", self.info().name));
        self.set_field(field, u64::from(negated));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::generated::*;
    use crate::isa::{PInst, PReg, VReg};

    /// The builders against the assembler, which knows operands by the lines of the syntax.
    #[cfg(feature = "asm")]
    #[test]
    fn built_and_assembled_instructions_are_the_same() {
        let r = PReg::gpr;
        let u = PReg::uniform;
        let p = PReg::predicate;
        let word = mov::Options::new(MOVW::W32);
        let pair = mov::Options::new(MOVW::W64);
        let load = |size| ldg::Options::new(size, AccessOrder::Weak);
        let unsigned_less = isetp::Options::new(IExt::NoX, IType::U32, CompOp::Lt, BoolOp::And);
        let or = lop3::Options::new(EXBool::Por);
        let bank = |offset| Constant { bank: 3, offset };
        let cases: Vec<(PInst, &str)> = vec![
            (build::mov_r(word, r(1), RZ), "MOV R1, RZ"),
            (build::mov_r(pair, [r(2), r(3)], RZ), "MOV.64 R[2:3], RZ"),
            (build::mov_i(word, r(1), -2), "MOV R1, -0x2"),
            (build::mov_i(word, r(1), 0xffff_fffe_u32), "MOV R1, -0x2"),
            (build::mov_c(word, r(1), bank(0x40)), "MOV R1, c[0x3][0x40]"),
            (build::mov_u(word, r(1), URZ), "MOV R1, URZ"),
            (
                build::umov_u(umov::Options::new(MOVW::W32), u(4), u(5)),
                "UMOV UR4, UR5",
            ),
            (
                build::iadd_rr(
                    iadd::Options::new(IExt::X),
                    r(1),
                    p(2),
                    r(3),
                    r(4),
                    not(p(5)),
                ),
                "IADD.X R1, P2, R3, R4, !P5",
            ),
            (
                build::isetp_ri(unsigned_less, p(0), None, r(3), 7, Some(p(1)), PT),
                "ISETP.LT.U32.AND P0, R3, 0x7, P1",
            ),
            (
                build::lop3_rrr(or, PT, r(0), r(1), r(2), r(3), 0x96, !PT),
                "LOP3.POR R0, R1, R2, R3, 0x96, !PT",
            ),
            (
                build::plop3_u(p(0), p(1), not(p(2)), false, 0x80),
                "PLOP3 P0, P1, !P2, !UPT, 0x80",
            ),
            (
                build::ldg_r(load(LoadSize::W128), [4, 5, 6, 7].map(r), [r(2), r(3)], -16),
                "LDG.128 R[4:7], [R[2:3]-0x10]",
            ),
            (
                build::ldc_r(ldc::Options::new(LoadSize::W32), r(4), 3, r(5), 8),
                "LDC R4, 0x3, [R5+0x8]",
            ),
            (build::getgpr_u(r(0), u(1), -3), "GETGPR R0, R[UR1-0x3]"),
            (build::s2r_x(r(0), SReg::SrTidY), "S2R R0, SR_TID_Y"),
            (build::bmov_r(3, r(0)), "BMOV B3, R0"),
            (
                build::call_r([r(2), r(3)], [r(4), r(5)]),
                "CALL R[2:3], R[4:5]",
            ),
        ];
        for (built, text) in cases {
            let assembled = crate::asm::instruction::<PReg>(text);
            let (assembled, _) = assembled.unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(built, assembled, "{built} // {text}");
        }
    }

    #[test]
    fn immediates_are_at_their_bits() {
        let half = hfma2::Options::new(FPFtz::NoFtz, FPSat::NoSat, HFmtV2::F16V2, RELU::NoRelu);
        let r = PReg::gpr;
        let halves: PInst = build::hfma2_rri(half, r(0), r(1), r(2), [0x3c00, 0xbc00]);
        assert_eq!(halves.number(Role::C), Some(0xbc00_3c00));
        let mut label: PInst = build::bra_x();
        let operand = label.label().expect("BRA has a label");
        label.set_number(operand.role, -32_i64 as u64);
        assert_eq!(label.number(Role::Label), Some(0xffff_ffe0));
        let sum: PInst = build::iadd_rr(iadd::Options::new(IExt::NoX), r(0), PT, r(1), r(2), !PT);
        assert_eq!(sum.number(Role::B), None, "a register");
        let difference = sum.with_negated(Role::B, true);
        assert!(difference.is_negated(Role::B) && !difference.is_negated(Role::A));
        assert_eq!(difference.with_negated(Role::B, false), sum);
    }

    fn wide_load(results: &[VReg], size: LoadSize) -> Inst<VReg> {
        let v = |n| VReg::new(RegisterClass::Gpr, n);
        let options = ldg::Options::new(size, AccessOrder::Weak);
        build::ldg_r(options, results, [v(0), v(1)], 0)
    }

    #[test]
    #[should_panic(expected = "LDG_R.rd: width")]
    fn as_many_registers_as_the_modifiers_say() {
        let v = [2, 3].map(|n| VReg::new(RegisterClass::Gpr, n));
        assert_eq!(wide_load(&v, LoadSize::W64).definitions().count(), 2);
        wide_load(&v, LoadSize::W128);
    }

    #[test]
    fn builders_take_names_and_registers() {
        use crate::isa::generated::{IExt, MOVW, iadd, mov};
        use crate::isa::{PInst, PReg, build};
        let [a, b, p] = [PReg::gpr(4), PReg::gpr(5), PReg::predicate(0)];
        let sum: PInst = build::iadd_ri(iadd::Options::new(IExt::NoX), a, PT, b, -1, !PT);
        assert_eq!(sum.to_string(), "IADD R4, R5, -1");
        let choice: PInst = build::sel_rr(a, a, b, not(p));
        assert_eq!(choice.to_string(), "SEL R4, R4, R5, !P0");
        let pair = [PReg::gpr(8), PReg::gpr(9)];
        let both: PInst = build::mov_r(mov::Options::new(MOVW::W64), [a, b], pair);
        assert_eq!(both.to_string(), "MOV.64 R[4:5], R[8:9]");
    }
}
