//! An instruction of SPA 5.3 as a sequence of this set's.
//!
//! In: an [`Instruction`]. Out: instructions whose intermediate results are [`Place::Value`]s, each written once; the last one with a
//! result writes the destination. Where this set has the inputs and modifiers it is one instruction. Else:
//!
//! | what | becomes |
//! | --- | --- |
//! | inputs of single precision, constants | F2F or F2FP with `.RZ`; without `.FTZ` a product with 1 that flushes |
//! | `.FMZ` of two registers | the product, and a mask of the lanes where the smaller magnitude is no zero (HMNMX2, HSET2, LOP3) |
//! | `.FMZ` of a register with itself or with finite immediates | HFMA2 with +0: an exact −0 becomes +0, and no other result changes |
//! | `.MRG_H0`, `.MRG_H1` | LOP3 that chooses by halves |
//! | `.F32` results | the flush, F2F, and a NOP that waits for it |
//! | HSET2 `.F`, `.T` | a comparison of zeros |
//! | `.FMZ` of RZ or of two zeros | no product: +0, merged if need be |
//!
//! RZ as a number of single precision is RZ as halves.

use super::super::{
    Bop, Bval, Cmp, Fmz, Ftz, Input, Instruction, Iswz, Ofmt, Operation, Predicate, Sat, Sign,
    Source,
};
use crate::isa::generated::*;
use crate::isa::operand::{self, Constant, PT, RZ};
use crate::isa::{Inst, PReg, Register, RegisterClass, build};
use crate::sim::semantics::softfloat::F16;
use std::fmt;

/// A register of a sequence before it is known which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Place {
    /// A register that the instruction names.
    Named(PReg),
    /// An intermediate result.
    Value(u8),
}

impl Register for Place {
    fn class(self) -> RegisterClass {
        match self {
            Place::Named(register) => register.class(),
            Place::Value(_) => RegisterClass::Gpr,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Named(register) => register.fmt(f),
            Place::Value(number) => write!(f, "%{number}"),
        }
    }
}

/// Two halves of a register.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Halves {
    register: Option<Place>,
    select: HSel2,
    sign: Sign,
}

/// The second source once it holds halves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Second {
    Register(Halves),
    Immediate([u16; 2]),
}

/// A source of single precision.
#[derive(Clone, Copy)]
enum Single {
    Register(Place),
    Constant(Constant),
}

/// The instructions that compute the same, without guards and control.
pub(super) fn sequence(instruction: &Instruction) -> Vec<Inst<Place>> {
    let mut sequence = Sequence {
        instruction,
        steps: Vec::new(),
        values: 0,
    };
    match instruction.rd {
        Some(_) => sequence.operation(),
        None => sequence.nothing(),
    }
    sequence.steps
}

struct Sequence<'i> {
    instruction: &'i Instruction,
    steps: Vec<Inst<Place>>,
    values: u8,
}

/// 1.0 in both lanes.
const ONES: [u16; 2] = [F16.one() as u16; 2];
/// `a & b` of LOP3.
const AND: u8 = 0xf0 & 0xcc;
/// `a & b & c` of LOP3.
const AND3: u8 = AND & 0xaa;
/// `b ? a : c` of LOP3, bit by bit.
const SELECT: u8 = AND | (!0xcc & 0xaa);

impl Sequence<'_> {
    fn value(&mut self) -> Place {
        self.values += 1;
        Place::Value(self.values - 1)
    }

    fn destination(&self) -> Option<Place> {
        self.instruction.rd.map(Place::Named)
    }

    /// Without a result only the read of constant memory is left, which may fault.
    fn nothing(&mut self) {
        let step = match constant(self.instruction.b) {
            Some(constant) => build::mov_c(word(), RZ, constant),
            None => build::nop_x(),
        };
        self.steps.push(step);
    }

    fn operation(&mut self) {
        let m = self.instruction.modifiers;
        match self.instruction.line.operation {
            Operation::Hset2 if matches!(m.cmp, Cmp::F | Cmp::T) => self.constant_comparison(),
            Operation::Hset2 => {
                let (a, b) = self.inputs(m.ftz == Ftz::On);
                let d = self.destination();
                self.compare(d, a, b);
            }
            Operation::Hmul2 => self.product(),
        }
    }

    /// `.F` and `.T` depend on no input, but a constant that is not there is a fault.
    fn constant_comparison(&mut self) {
        if let Some(constant) = constant(self.instruction.b) {
            self.steps.push(build::mov_c(word(), RZ, constant));
        }
        let zeros = Halves {
            register: None,
            select: HSel2::H1H0,
            sign: Sign::default(),
        };
        let d = self.destination();
        self.compare(d, zeros, Second::Register(zeros));
    }

    /// HSET2 with the instruction's modifiers.
    fn compare(&mut self, d: Option<Place>, a: Halves, b: Second) {
        let m = self.instruction.modifiers;
        let cmp = comparison(m.cmp);
        let bop = match m.bop {
            Bop::And => LOPOp::And,
            Bop::Or => LOPOp::Or,
            Bop::Xor => LOPOp::Xor,
        };
        let bval = match m.bval {
            Bval::Bm => BVal::Bm,
            Bval::Bf => BVal::Bf,
        };
        let ftz = if m.ftz == Ftz::On {
            FPFtz::Ftz
        } else {
            FPFtz::NoFtz
        };
        let Predicate { register, not } = self.instruction.pp;
        let pp = operand::Predicate {
            reg: register.map(Place::Named),
            negated: not,
        };
        let options = hset2::Options::new(ftz, bop, cmp, bval, HFmtV2::F16V2);
        let step = match b {
            Second::Register(b) => {
                let step = build::hset2_rr(options, d, a.register, b.register, pp);
                with_halves(with_halves(step, Role::A, a), Role::B, b)
            }
            Second::Immediate(halves) => with_halves(
                build::hset2_ri(options, d, a.register, halves, pp),
                Role::A,
                a,
            ),
        };
        self.steps.push(step);
    }

    /// HMUL2 and HMUL2_32I: the product, then the form of its result.
    fn product(&mut self) {
        let m = self.instruction.modifiers;
        if self.is_zero() {
            return self.zero();
        }
        let flushes = m.fmz != Fmz::Off;
        let (a, b) = self.inputs(flushes);
        let d = self.destination();
        match m.ofmt {
            Ofmt::F16V2 => self.multiply(d, a, b),
            Ofmt::MrgH0 | Ofmt::MrgH1 => {
                let product = Some(self.value());
                self.multiply(product, a, b);
                let half = merged(m.ofmt).unwrap_or(u32::MAX);
                self.steps
                    .push(build::lop3_rir(por(), PT, d, product, half, d, SELECT, !PT));
            }
            Ofmt::F32 => {
                let mut product = self.value();
                self.multiply(Some(product), a, b);
                if !flushes {
                    product = self.flush(product);
                }
                let options = f2f::Options::new(
                    FPFtz::NoFtz,
                    FPSat::NoSat,
                    FPRound::Rn,
                    FloatFormat::F32,
                    FloatFormat::F16,
                );
                self.steps.push(build::f2f_r(options, d, product));
                self.steps.push(build::nop_x());
            }
        }
    }

    /// Whether `.FMZ` makes both lanes +0, be the other source what it may.
    fn is_zero(&self) -> bool {
        let Instruction {
            a, b, modifiers, ..
        } = self.instruction;
        let zero = match b {
            Source::Register(input) => input.register.is_none(),
            Source::Constant { .. } => false,
            Source::Immediate(halves) => zeros(*halves) == [true, true],
        };
        modifiers.fmz == Fmz::Fmz && (zero || a.register.is_none())
    }

    /// +0 as the result, merged if need be.
    fn zero(&mut self) {
        if let Some(constant) = constant(self.instruction.b) {
            self.steps.push(build::mov_c(word(), RZ, constant));
        }
        let d = self.destination();
        let step = match merged(self.instruction.modifiers.ofmt) {
            Some(half) => build::lop3_rir(por(), PT, d, RZ, half, d, SELECT, !PT),
            None => build::mov_r(word(), d, RZ),
        };
        self.steps.push(step);
    }

    /// The product in both lanes, with the instruction's `.fmz` and `.SAT`.
    fn multiply(&mut self, d: Option<Place>, a: Halves, b: Second) {
        if self.instruction.modifiers.fmz != Fmz::Fmz {
            return self.multiply_plainly(d, a, b);
        }
        match b {
            // Infinity times zero cannot happen: only the sign of a zero is wrong.
            Second::Register(b) if (a.register, a.select) == (b.register, b.select) => {
                self.multiply_and_add_zero(d, a, Second::Register(b));
            }
            Second::Register(other) => {
                let smaller = Some(self.value());
                let options = hmnmx2::Options::new(FPFtz::Ftz, NAN::NoNan, HFmtV2::F16V2);
                let magnitude = |halves: Halves| Halves {
                    sign: Sign {
                        negate: false,
                        absolute: true,
                    },
                    ..halves
                };
                let step = build::hmnmx2_rr(options, smaller, a.register, other.register, PT);
                let step = with_halves(step, Role::A, magnitude(a));
                self.steps
                    .push(with_halves(step, Role::B, magnitude(other)));
                let mask = self.nonzero(Halves {
                    register: smaller,
                    select: HSel2::H1H0,
                    sign: Sign::default(),
                });
                self.masked_product(d, a, b, mask, u32::MAX);
            }
            Second::Immediate(halves) => {
                let finite = |half: u16| u64::from(half & 0x7fff) < F16.infinity();
                match (zeros(halves), halves.map(finite)) {
                    ([false, false], [true, true]) => self.multiply_and_add_zero(d, a, b),
                    ([low, high], _) => {
                        let mask = self.nonzero(a);
                        let kept = match (low, high) {
                            (true, _) => 0xffff_0000,
                            (_, true) => 0xffff,
                            _ => u32::MAX,
                        };
                        self.masked_product(d, a, b, mask, kept);
                    }
                }
            }
        }
    }

    /// All ones in the lanes that are no zero after the flush; NaN is none.
    fn nonzero(&mut self, a: Halves) -> Place {
        let mask = self.value();
        let options =
            hset2::Options::new(FPFtz::Ftz, LOPOp::And, FCMPOp::Neu, BVal::Bm, HFmtV2::F16V2);
        let step = build::hset2_rr(options, mask, a.register, RZ, PT);
        self.steps.push(with_halves(step, Role::A, a));
        mask
    }

    /// The product in the lanes of a mask and of `kept`, +0 in the others.
    fn masked_product(&mut self, d: Option<Place>, a: Halves, b: Second, mask: Place, kept: u32) {
        let product = self.value();
        self.multiply_plainly(Some(product), a, b);
        let step = match kept {
            u32::MAX => build::lop3_rrr(por(), PT, d, product, mask, RZ, AND, !PT),
            _ => build::lop3_rir(por(), PT, d, product, kept, mask, AND3, !PT),
        };
        self.steps.push(step);
    }

    fn multiply_plainly(&mut self, d: Option<Place>, a: Halves, b: Second) {
        let options = hmul2::Options::new(self.flushing(), self.saturation(), HFmtV2::F16V2);
        let step = match b {
            Second::Register(b) => {
                let step = build::hmul2_rr(options, d, a.register, b.register);
                with_halves(with_halves(step, Role::A, a), Role::B, b)
            }
            Second::Immediate(b) => {
                with_halves(build::hmul2_ri(options, d, a.register, b), Role::A, a)
            }
        };
        self.steps.push(step);
    }

    /// A fused sum with +0: it differs from the product where that is exactly −0.
    fn multiply_and_add_zero(&mut self, d: Option<Place>, a: Halves, b: Second) {
        let options = hfma2::Options::new(
            self.flushing(),
            self.saturation(),
            HFmtV2::F16V2,
            RELU::NoRelu,
        );
        let step = match b {
            Second::Register(b) => {
                let step = build::hfma2_rrr(options, d, a.register, b.register, RZ);
                with_halves(with_halves(step, Role::A, a), Role::B, b)
            }
            Second::Immediate(b) => {
                with_halves(build::hfma2_rir(options, d, a.register, b, RZ), Role::A, a)
            }
        };
        self.steps.push(step);
    }

    fn flushing(&self) -> FPFtz {
        match self.instruction.modifiers.fmz {
            Fmz::Off => FPFtz::NoFtz,
            Fmz::Ftz | Fmz::Fmz => FPFtz::Ftz,
        }
    }

    fn saturation(&self) -> FPSat {
        match self.instruction.modifiers.sat {
            Sat::Off => FPSat::NoSat,
            Sat::On => FPSat::Sat,
        }
    }

    /// Both sources as halves. What was of single precision is truncated; where the operation itself `flushes` its inputs, it need not be
    /// done here.
    fn inputs(&mut self, flushes: bool) -> (Halves, Second) {
        let Instruction { a, b, .. } = *self.instruction;
        let halves = |input: Input| Halves {
            register: input.register.map(Place::Named),
            select: select(input.format),
            sign: input.sign,
        };
        // RZ holds the same halves as a number of single precision.
        let single = |input: Input| {
            let register = input.register.filter(|_| input.format == Iswz::F32)?;
            Some(Single::Register(Place::Named(register)))
        };
        let first = single(a);
        let (second, sign) = match b {
            Source::Register(input) => (single(input), input.sign),
            Source::Constant { sign, .. } => (constant(b).map(Single::Constant), sign),
            Source::Immediate(_) => (None, Sign::default()),
        };
        let truncated = match (first, second) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(self.truncate(one)),
            (Some(Single::Register(a)), Some(b)) => Some(self.truncate_both(a, b)),
            (Some(Single::Constant(_)), Some(_)) => unreachable!("the first source is a register"),
        };
        let truncated = truncated.map(|value| if flushes { value } else { self.flush(value) });
        let half = |select: HSel2, sign: Sign| Halves {
            register: truncated,
            select,
            sign,
        };
        let both = first.is_some() && second.is_some();
        let a = match first {
            None => halves(a),
            Some(_) if both => half(HSel2::H1H1, a.sign),
            Some(_) => half(HSel2::H0H0, a.sign),
        };
        let b = match (b, second) {
            (Source::Immediate(halves), _) => Second::Immediate(halves),
            (Source::Register(input), None) => Second::Register(halves(input)),
            _ => Second::Register(half(HSel2::H0H0, sign)),
        };
        (a, b)
    }

    /// A number of single precision, truncated to the low half.
    fn truncate(&mut self, single: Single) -> Place {
        let value = self.value();
        let options = f2f::Options::new(
            FPFtz::NoFtz,
            FPSat::NoSat,
            FPRound::Rz,
            FloatFormat::F16,
            FloatFormat::F32,
        );
        self.steps.push(match single {
            Single::Register(register) => build::f2f_r(options, value, register),
            Single::Constant(constant) => build::f2f_c(options, value, constant),
        });
        value
    }

    /// Two numbers of single precision, truncated to the high and the low half.
    fn truncate_both(&mut self, high: Place, low: Single) -> Place {
        let value = self.value();
        let options = f2fp::Options::new(FPFtz::NoFtz, FPRound::Rz, HFmtV2::F16V2);
        self.steps.push(match low {
            Single::Register(low) => build::f2fp_rr(options, value, high, low),
            Single::Constant(low) => build::f2fp_rc(options, value, high, low),
        });
        value
    }

    /// Both halves, subnormal ones replaced by zeros of their signs.
    fn flush(&mut self, halves: Place) -> Place {
        let value = self.value();
        let options = hmul2::Options::new(FPFtz::Ftz, FPSat::NoSat, HFmtV2::F16V2);
        self.steps
            .push(build::hmul2_ri(options, value, halves, ONES));
        value
    }
}

fn word() -> mov::Options {
    mov::Options::new(MOVW::W32)
}

fn por() -> lop3::Options {
    lop3::Options::new(EXBool::Por)
}

fn constant(source: Source) -> Option<Constant> {
    match source {
        Source::Constant { bank, offset, .. } => Some(Constant {
            bank,
            offset: offset.into(),
        }),
        _ => None,
    }
}

/// The halves of an input; those of single precision have been put into place before.
fn select(format: Iswz) -> HSel2 {
    match format {
        Iswz::H1H0 | Iswz::F32 => HSel2::H1H0,
        Iswz::H0H0 => HSel2::H0H0,
        Iswz::H1H1 => HSel2::H1H1,
    }
}

/// The bits that a merged result has of the product.
fn merged(ofmt: Ofmt) -> Option<u32> {
    match ofmt {
        Ofmt::MrgH0 => Some(0xffff),
        Ofmt::MrgH1 => Some(0xffff_0000),
        Ofmt::F16V2 | Ofmt::F32 => None,
    }
}

/// Which halves are zeros once they are flushed.
fn zeros(halves: [u16; 2]) -> [bool; 2] {
    halves.map(|half| F16.flush(half.into()) << 1 & 0xffff == 0)
}

/// The comparison of this set; `.F` and `.T` compare zeros.
fn comparison(cmp: Cmp) -> FCMPOp {
    match cmp {
        Cmp::F => FCMPOp::Ne,
        Cmp::T => FCMPOp::Eq,
        Cmp::Lt => FCMPOp::Lt,
        Cmp::Eq => FCMPOp::Eq,
        Cmp::Le => FCMPOp::Le,
        Cmp::Gt => FCMPOp::Gt,
        Cmp::Ne => FCMPOp::Ne,
        Cmp::Ge => FCMPOp::Ge,
        Cmp::Num => FCMPOp::Num,
        Cmp::Nan => FCMPOp::Nan,
        Cmp::Ltu => FCMPOp::Ltu,
        Cmp::Equ => FCMPOp::Equ,
        Cmp::Leu => FCMPOp::Leu,
        Cmp::Gtu => FCMPOp::Gtu,
        Cmp::Neu => FCMPOp::Neu,
        Cmp::Geu => FCMPOp::Geu,
    }
}

/// The instruction with the halves and the sign of a source.
fn with_halves(mut step: Inst<Place>, role: Role, halves: Halves) -> Inst<Place> {
    let Some(operand) = step.operand(role) else {
        return step;
    };
    let fields = [
        (operand.negate, u64::from(halves.sign.negate)),
        (operand.absolute, u64::from(halves.sign.absolute)),
        (operand.select, halves.select as u64),
    ];
    for (field, value) in fields {
        if let Some(field) = field {
            step.set_field(field, value);
        }
    }
    step
}
