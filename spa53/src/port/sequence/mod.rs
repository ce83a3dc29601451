//! An instruction of SPA 5.3 as a sequence of this set's.
//!
//! In: an [`Instruction`]. Out: instructions whose intermediate results are [`Place::Value`]s, each written once; the
//! last one with a result writes the destination. Where this set has the inputs and modifiers it is one instruction.
//! Else:
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

mod compare;
mod inputs;
mod product;

use crate::{Cmp, Ftz, Instruction, Operation, Sign, Source};
use cranelift_thisgpu::unstable::isa::generated::*;
use cranelift_thisgpu::unstable::isa::operand::{Constant, RZ};
use cranelift_thisgpu::unstable::isa::{Inst, PReg, Register, RegisterClass, build};
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
