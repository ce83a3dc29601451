//! What the forms of a mode take for each source, worked out when the library is compiled: a choice between forms compares bits.

use crate::isa::table::{FieldType, FormInfo, Modifiers, OperandInfo};
use crate::isa::{Form, Register, RegisterClass, Role};
use crate::lower::source::{Base, Src};

/// Most sources that a constructor has.
pub(super) const MAX_SOURCES: usize = 5;

/// A form of a mode.
#[derive(Debug)]
pub struct Candidate {
    /// The form.
    pub(super) form: Form,
    /// The operand of each source; none where the form has none and takes only zero.
    pub(super) operands: [Option<&'static OperandInfo>; MAX_SOURCES],
    /// What it can be.
    pub(super) takes: [Takes; MAX_SOURCES],
}

impl Candidate {
    /// A form for sources of these roles.
    pub const fn new(form: Form, roles: &[Role]) -> Self {
        let mut candidate = Candidate {
            form,
            operands: [None; MAX_SOURCES],
            takes: [Takes::ANYTHING; MAX_SOURCES],
        };
        let mut index = 0;
        while index < roles.len() {
            let operand = form.info().operand(roles[index]);
            candidate.operands[index] = operand;
            candidate.takes[index] = Takes::by(form.info(), operand);
            index += 1;
        }
        candidate
    }
}

/// What a source is: one of the kinds below, and its modifiers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs(u16);

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

/// Modifiers above the kinds.
const fn modifier_bits(modifiers: Modifiers) -> u16 {
    (modifiers.bits() as u16) << 8
}

impl Needs {
    /// Nothing: a predicate, or a number in the word.
    pub const NOTHING: Needs = Needs(0);

    /// Of a source whose copies are looked through.
    pub fn of(src: &Src) -> Needs {
        let kind = match src.base {
            Base::Value { .. } => GENERAL,
            Base::Regs(regs) if regs.word(0).class() == RegisterClass::Gpr => GENERAL,
            Base::Regs(_) => UNIFORM_REGISTER,
            Base::Uniform { .. } => UNIFORM,
            Base::Imm(0) => ZERO,
            Base::Imm(_) => IMMEDIATE,
            Base::Constant { .. } => CONSTANT,
        };
        Needs(kind | modifier_bits(src.modifiers()))
    }
}

/// What an operand can be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takes {
    /// Kinds and modifiers that it takes as they are.
    free: u16,
    /// Kinds that it never takes. For all others [`super::choice`] looks at the source itself.
    never: u16,
}

impl Takes {
    const ANYTHING: Takes = Takes { free: 0, never: 0 };

    /// What `operand` of `form` takes; without an operand only zero.
    const fn by(form: &'static FormInfo, operand: Option<&'static OperandInfo>) -> Takes {
        let Some(operand) = operand else {
            return Takes {
                free: ZERO,
                never: KINDS & !ZERO,
            };
        };
        let modifiers = modifier_bits(operand.modifiers);
        match operand.class {
            Some(RegisterClass::Gpr) => Takes {
                free: GENERAL | ZERO | modifiers,
                never: UNIFORM_REGISTER,
            },
            Some(RegisterClass::Uniform) => Takes {
                free: UNIFORM | UNIFORM_REGISTER | ZERO | modifiers,
                // Only the uniform datapath stands where uniform registers may be written.
                never: if on_uniform_datapath(form) {
                    GENERAL
                } else {
                    GENERAL | IMMEDIATE | CONSTANT
                },
            },
            Some(RegisterClass::Predicate) => Takes {
                free: 0,
                never: KINDS,
            },
            None => match form.fields[operand.field as usize].ty {
                FieldType::ConstantMemory => Takes {
                    free: 0,
                    never: KINDS & !CONSTANT,
                },
                _ => Takes {
                    free: 0,
                    never: KINDS & !(ZERO | IMMEDIATE),
                },
            },
        }
    }

    /// Whether nothing has to be done for a source before the operand can be it.
    pub fn is_free(self, needs: Needs) -> bool {
        needs.0 & !self.free == 0
    }

    /// Whether the operand cannot be a source at all.
    pub fn never(self, needs: Needs) -> bool {
        needs.0 & self.never != 0
    }
}

/// Whether the form reads and writes no general registers.
const fn on_uniform_datapath(form: &FormInfo) -> bool {
    let mut index = 0;
    while index < form.operands.len() {
        if matches!(form.operands[index].class, Some(RegisterClass::Gpr)) {
            return false;
        }
        index += 1;
    }
    true
}
