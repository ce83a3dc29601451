//! Operands before a form is chosen: values with peeled modifiers, and the registers that come out.

use crate::isa::table::Modifiers;
use crate::isa::{RegisterClass, VReg};
use cranelift_codegen::ir::{Value, ValueList};

/// A list of values from a position on.
pub type ValueSlice = (ValueList, usize);

/// Up to four registers of one value, low word first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Regs {
    len: u8,
    regs: [VReg; 4],
}

impl std::fmt::Debug for Regs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl Regs {
    /// The registers of `regs`.
    ///
    /// # Panics
    /// When there are none or more than four.
    pub(super) fn new(regs: &[VReg]) -> Regs {
        let mut all = [regs[0]; 4];
        all[..regs.len()].copy_from_slice(regs);
        Regs {
            len: regs.len() as u8,
            regs: all,
        }
    }

    /// So many registers, low word first.
    ///
    /// # Panics
    /// When there are none or more than four.
    pub(super) fn from_fn(len: usize, mut reg: impl FnMut(usize) -> VReg) -> Regs {
        assert!(len > 0, "a value has registers");
        let mut regs = Regs {
            len: len as u8,
            regs: [reg(0); 4],
        };
        for (index, place) in regs.regs[..len].iter_mut().enumerate().skip(1) {
            *place = reg(index);
        }
        regs
    }

    /// One register.
    pub(super) fn one(reg: VReg) -> Regs {
        Regs {
            len: 1,
            regs: [reg; 4],
        }
    }

    /// The registers, low word first.
    pub(super) fn as_slice(&self) -> &[VReg] {
        &self.regs[..self.len as usize]
    }

    /// Number of words.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The register of a word.
    ///
    /// # Panics
    /// When the value is narrower.
    pub(super) fn word(&self, index: usize) -> VReg {
        self.as_slice()[index]
    }

    /// These registers and then those.
    pub(super) fn concat(self, high: Regs) -> Regs {
        let low = self.len();
        Regs::from_fn(low + high.len(), |index| match index.checked_sub(low) {
            Some(index) => high.word(index),
            None => self.word(index),
        })
    }

    /// Words `first .. first + len`.
    pub(super) fn slice(self, first: usize, len: usize) -> Regs {
        if first == 0 && len == self.len() {
            return self;
        }
        Regs::from_fn(len, |index| self.word(first + index))
    }
}

/// What an operand is before its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// An immediate of one, two or four words; 0 is the hard-wired register.
    Imm(u128),
    /// An immediate of two words that is an operand in the function's own constants where a form takes one. Only while
    /// a form is chosen.
    Pooled(u64),
    /// Constant memory: bank and byte offset.
    Constant {
        /// Bank.
        bank: u8,
        /// Byte offset.
        offset: u32,
    },
    /// Words of a CLIF value, starting at this one.
    Value {
        /// The value.
        value: Value,
        /// First word.
        word: u8,
    },
    /// Words of a CLIF value that lives in uniform registers, starting at this one.
    Uniform {
        /// The value.
        value: Value,
        /// First word.
        word: u8,
    },
    /// Registers of the machine function.
    Regs(Regs),
}

impl Base {
    /// Words `first .. first + words`.
    pub(super) fn slice(self, first: u8, words: u8) -> Base {
        match self {
            Base::Imm(v) => Base::Imm(
                (v >> (32 * u32::from(first))) & (u128::MAX >> (128 - 32 * u32::from(words))),
            ),
            Base::Pooled(v) => Base::Imm(v.into()).slice(first, words),
            Base::Constant { bank, offset } => Base::Constant {
                bank,
                offset: offset + 4 * u32::from(first),
            },
            Base::Value { value, word } => Base::Value {
                value,
                word: word + first,
            },
            Base::Uniform { value, word } => Base::Uniform {
                value,
                word: word + first,
            },
            Base::Regs(r) => Base::Regs(r.slice(first as usize, words as usize)),
        }
    }
}

/// Which halves of a register a packed half operation reads (`hsel2`); for conversions which half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Halves {
    /// Low half to lane 0, high half to lane 1; the low half.
    #[default]
    Both,
    /// The low half to both lanes.
    Low,
    /// The high half to both lanes; the high half.
    High,
}

/// An operand: a value with the modifiers peeled off that an instruction can apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Src {
    /// The value below the modifiers.
    pub base: Base,
    /// 32-bit words.
    pub words: u8,
    /// `-`: integer, or the sign of a float, as the instruction reads it.
    pub neg: bool,
    /// `|x|`, applied before `neg`.
    pub abs: bool,
    /// `~`.
    pub not: bool,
    /// Halves selected.
    pub halves: Halves,
    /// The value with its modifiers, when it exists as one: what to read when no form can apply them.
    pub whole: Option<Value>,
}

impl Src {
    /// What stands between the operand and its base.
    pub(super) fn modifiers(&self) -> Modifiers {
        Modifiers::new(self.neg, self.abs, self.not, self.halves != Halves::Both)
    }

    /// Zero: the hard-wired register.
    pub const ZERO: Src = Src::imm(0);

    /// A 32-bit immediate.
    pub const fn imm(value: u32) -> Src {
        Src::wide_imm(value as u128, 1)
    }

    /// An immediate of `words` words.
    pub const fn wide_imm(value: u128, words: u8) -> Src {
        Src {
            base: Base::Imm(value),
            words,
            neg: false,
            abs: false,
            not: false,
            halves: Halves::Both,
            whole: None,
        }
    }

    /// Registers.
    pub const fn regs(regs: Regs) -> Src {
        Src {
            base: Base::Regs(regs),
            words: regs.len,
            ..Src::ZERO
        }
    }

    /// One register.
    pub(super) fn reg(reg: VReg) -> Src {
        Src::regs(Regs::one(reg))
    }

    /// Words `first .. first + words` of an operand without modifiers.
    pub(super) fn slice(self, first: u8, words: u8) -> Src {
        debug_assert!(!self.neg && !self.abs, "a part of a negated value");
        Src {
            base: self.base.slice(first, words),
            words,
            whole: None,
            ..self
        }
    }

    /// The low word.
    pub(super) fn low(self) -> Src {
        self.slice(0, 1)
    }

    /// The second word.
    pub(super) fn high(self) -> Src {
        self.slice(1, 1)
    }

    /// The operand negated (`-`).
    pub(super) fn negated(self) -> Src {
        Src {
            neg: !self.neg,
            whole: None,
            ..self
        }
    }

    /// The operand complemented (`~`).
    pub(super) fn complemented(self) -> Src {
        match self.base {
            Base::Imm(v) => Src {
                base: Base::Imm(!v & (u128::MAX >> (128 - 32 * u32::from(self.words)))),
                ..self
            },
            _ => Src {
                not: !self.not,
                whole: None,
                ..self
            },
        }
    }

    /// The operand without its sign (`|x|`).
    pub(super) fn absolute(self) -> Src {
        Src {
            neg: false,
            abs: true,
            whole: None,
            ..self
        }
    }

    /// Whether it has no modifiers.
    pub(super) fn is_plain(&self) -> bool {
        !self.neg && !self.abs && !self.not && self.halves == Halves::Both
    }

    /// Whether it takes the one slot of an instruction for operands that are no general registers.
    pub(super) fn is_special(&self) -> bool {
        match self.base {
            Base::Imm(value) => value != 0,
            Base::Pooled(_) | Base::Constant { .. } | Base::Uniform { .. } => true,
            Base::Value { .. } | Base::Regs(_) => false,
        }
    }

    /// The value of an immediate without modifiers.
    pub(super) fn as_imm(&self) -> Option<u128> {
        match self.base {
            Base::Imm(v) if self.is_plain() => Some(v),
            _ => None,
        }
    }
}

/// A predicate operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PSrc {
    /// The register; none for PT.
    pub reg: Option<VReg>,
    /// `!`.
    pub negated: bool,
}

impl PSrc {
    /// PT.
    pub const TRUE: PSrc = PSrc {
        reg: None,
        negated: false,
    };
    /// !PT.
    pub const FALSE: PSrc = PSrc {
        reg: None,
        negated: true,
    };

    /// A predicate register.
    pub(super) fn new(reg: VReg) -> PSrc {
        PSrc {
            reg: Some(reg),
            negated: false,
        }
    }

    /// The opposite.
    pub(super) fn negate(self) -> PSrc {
        PSrc {
            negated: !self.negated,
            ..self
        }
    }
}

/// A result of a CLIF instruction as a rule returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Registers.
    Regs(Regs),
    /// A truth value in a predicate; its i8 form is made when it is asked for.
    Predicate(PSrc),
}

/// All results of a CLIF instruction.
pub type InstOutput = smallvec::SmallVec<[Output; 2]>;

/// Registers as the only result.
pub(super) fn output(regs: Regs) -> InstOutput {
    smallvec::smallvec![Output::Regs(regs)]
}

/// The register class of values that are not truth values.
pub const VALUE_CLASS: RegisterClass = RegisterClass::Gpr;
