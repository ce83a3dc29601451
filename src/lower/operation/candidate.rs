//! What the forms of a mode take for each source, worked out when the library is compiled: a choice between forms
//! compares bits.

use crate::isa::table::{FieldType, FormInfo, Modifiers, OperandInfo};
use crate::isa::{Form, Register, RegisterClass, Role};
use crate::lower::source::{Base, Src};

/// Most sources that a constructor has.
const MAX_SOURCES: usize = 5;

/// A form of a mode.
#[derive(Debug)]
pub struct Candidate {
    /// The form.
    pub(super) form: Form,
    /// The operand of each source; none where the form has none and takes only zero.
    pub(super) operands: [Option<&'static OperandInfo>; MAX_SOURCES],
    /// What each source may be without anything to be done for it.
    free: Needs,
    /// The same, if a look at the source itself agrees: whether an immediate fits.
    direct: Needs,
    /// What it can never be.
    never: Needs,
}

impl Candidate {
    /// A form for sources of these roles.
    pub const fn new(form: Form, roles: &[Role]) -> Self {
        let mut candidate = Candidate {
            form,
            operands: [None; MAX_SOURCES],
            free: Needs::NOTHING,
            direct: Needs::NOTHING,
            never: Needs::NOTHING,
        };
        let mut index = 0;
        while index < roles.len() {
            let operand = form.info().operand(roles[index]);
            let taken = Taken::by(form.info(), operand);
            candidate.operands[index] = operand;
            candidate.free.add(index, taken.free);
            candidate.direct.add(index, taken.direct);
            candidate.never.add(index, taken.never);
            index += 1;
        }
        candidate
    }

    /// Whether nothing has to be done for any source.
    pub(super) fn is_free(&self, needs: Needs) -> bool {
        needs.0 & !self.free.0 == 0
    }

    /// Whether this may be so, which the sources themselves must tell.
    pub(super) fn may_be_free(&self, needs: Needs) -> bool {
        needs.0 & !self.direct.0 == 0
    }

    /// Whether the form cannot take one of the sources.
    pub(super) fn never_takes(&self, needs: Needs) -> bool {
        needs.0 & self.never.0 != 0
    }
}

/// What the sources of an operation are: [`LANE`] bits for each, one of the kinds below and the modifiers. Nothing for
/// a predicate, or a number in the word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs(u64);

/// Bits of one source.
const LANE: usize = 12;

/// A general register, or a value that lives in general registers.
const GENERAL: u16 = 1;
/// A value that lives in uniform registers.
const UNIFORM: u16 = 1 << 1;
/// A uniform register.
const UNIFORM_REGISTER: u16 = 1 << 2;
/// The immediate that every register file has a hard-wired register for.
const ZERO: u16 = 1 << 3;
/// Another immediate.
const IMMEDIATE: u16 = 1 << 4;
/// Constant memory.
const CONSTANT: u16 = 1 << 5;
/// All kinds.
const KINDS: u16 = (1 << 6) - 1;

/// All modifiers.
const MODIFIERS: u16 = 0xf << 6;

/// Modifiers above the kinds.
const fn modifier_bits(modifiers: Modifiers) -> u16 {
    (modifiers.bits() as u16) << 6
}

impl Needs {
    /// Of no sources.
    pub const NOTHING: Needs = Needs(0);

    const fn add(&mut self, index: usize, bits: u16) {
        self.0 |= (bits as u64) << (LANE * index);
    }

    /// Adds a source, whose copies are looked through.
    #[inline]
    pub fn push(&mut self, index: usize, src: &Src) {
        let kind = match src.base {
            Base::Value { .. } => GENERAL,
            Base::Regs(regs) if regs.word(0).class() == RegisterClass::Gpr => GENERAL,
            Base::Regs(_) => UNIFORM_REGISTER,
            Base::Uniform { .. } => UNIFORM,
            Base::Imm(0) => ZERO,
            Base::Imm(_) => IMMEDIATE,
            Base::Pooled(_) | Base::Constant { .. } => CONSTANT,
        };
        self.add(index, kind | modifier_bits(src.modifiers()));
    }

    /// Those of one source.
    fn of(self, index: usize) -> u16 {
        (self.0 >> (LANE * index)) as u16 & ((1 << LANE) - 1)
    }

    /// The same with two sources in each other's place.
    pub fn swap(self, a: usize, b: usize) -> Needs {
        let different = u64::from(self.of(a) ^ self.of(b));
        Needs(self.0 ^ different << (LANE * a) ^ different << (LANE * b))
    }
}

/// What an operand takes.
struct Taken {
    /// Kinds and modifiers that it takes as they are.
    free: u16,
    /// Those of which it takes some as they are.
    direct: u16,
    /// Kinds that it never takes.
    never: u16,
}

impl Taken {
    /// Of an operand of `form`; without an operand zero is taken.
    const fn by(form: &'static FormInfo, operand: Option<&'static OperandInfo>) -> Taken {
        let Some(operand) = operand else {
            return Taken {
                free: ZERO,
                direct: ZERO,
                never: KINDS & !ZERO,
            };
        };
        let modifiers = modifier_bits(operand.modifiers);
        match operand.class {
            Some(RegisterClass::Gpr) => Taken {
                free: GENERAL | ZERO | modifiers,
                direct: GENERAL | ZERO | modifiers,
                never: UNIFORM_REGISTER,
            },
            Some(RegisterClass::Uniform) => Taken {
                free: UNIFORM | UNIFORM_REGISTER | ZERO | modifiers,
                direct: UNIFORM | UNIFORM_REGISTER | ZERO | MODIFIERS,
                // Only the uniform datapath stands where uniform registers may be written.
                never: match form.has_general_registers() {
                    true => GENERAL | IMMEDIATE | CONSTANT,
                    false => GENERAL,
                },
            },
            Some(RegisterClass::Predicate) => Taken {
                free: 0,
                direct: 0,
                never: KINDS,
            },
            None => match form.fields[operand.field as usize].ty {
                FieldType::ConstantMemory => Taken {
                    free: 0,
                    direct: CONSTANT | modifiers,
                    never: KINDS & !CONSTANT,
                },
                _ => Taken {
                    free: 0,
                    direct: ZERO | IMMEDIATE | MODIFIERS,
                    never: KINDS & !(ZERO | IMMEDIATE),
                },
            },
        }
    }
}
