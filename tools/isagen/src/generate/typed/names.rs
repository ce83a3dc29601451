//! The names of types, and what else the description does not have.

use crate::generate::sources::{Register, ResultType, SourceType};

/// What the description does not say of a kind of sources.
pub(super) struct Kind {
    /// Its name; the bits follow where it has several widths and more than a word.
    pub stem: &'static str,
    /// What follows the names of terms that several kinds have.
    pub suffix: &'static str,
    /// The method of the context that reads a CLIF value so.
    pub reads: &'static str,
    /// What it is; `#` stands for the bits.
    pub about: &'static str,
}

const fn kind(
    stem: &'static str,
    suffix: &'static str,
    reads: &'static str,
    about: &'static str,
) -> Kind {
    Kind {
        stem,
        suffix,
        reads,
        about,
    }
}

/// Terms that put registers together: what they give, and their names.
pub(super) const JOINED: [(&str, &str); 5] = [
    ("Gpr2", "pair"),
    ("Gpr4", "quad"),
    ("Ugpr2", "uniform_pair"),
    ("Gpr2Carry", "pair_sums"),
    ("Gpr4Carry", "quad_sums"),
];

/// Terms that take so many registers of any number.
pub(super) const COUNTED: [(&str, &str); 3] = [
    ("Gpr", "one_register"),
    ("Gpr2", "two_registers"),
    ("Gpr4", "four_registers"),
];

impl SourceType {
    /// None of numbers and members of enumerations, which are no operands in registers, and of predicates.
    pub(super) fn kind(self) -> Option<Kind> {
        Some(match self {
            SourceType::Plain(_) => kind("Word", "", "src", "# bits without modifiers"),
            SourceType::Integer(_) => kind(
                "ISrc",
                "",
                "int_src",
                "An integer of # bits that may be negated",
            ),
            SourceType::Complement(_) => {
                kind("NotSrc", "", "src", "# bits that may be complemented")
            }
            SourceType::Single => kind("FSrc", "_single", "float_src", "An f32 with its signs"),
            SourceType::Double => kind("DSrc", "_double", "float_src", "An f64 with its signs"),
            SourceType::Halves => kind(
                "HSrc",
                "_halves",
                "half_src",
                "Two halves with their signs, in any order; a scalar f16 is read as both",
            ),
            SourceType::Half => kind(
                "HalfSrc",
                "_half",
                "one_half_src",
                "One half of a register, with its signs",
            ),
            SourceType::Uniform(_) => kind(
                "USrc",
                "_uniform",
                "uniform_src",
                "# bits of the uniform datapath: uniform registers, an immediate or constant memory",
            ),
            SourceType::UniformInteger(_) => kind(
                "UISrc",
                "_uniform",
                "uniform_src",
                "An integer of # bits of the uniform datapath that may be negated",
            ),
            SourceType::Data => kind("Src", "", "src", "As many words as the operation says"),
            SourceType::Predicate
            | SourceType::Signed
            | SourceType::Number
            | SourceType::Member(_) => return None,
        })
    }

    /// Words, of those that come in several widths.
    fn counted(self) -> Option<u8> {
        match self {
            SourceType::Plain(words)
            | SourceType::Integer(words)
            | SourceType::Complement(words)
            | SourceType::Uniform(words)
            | SourceType::UniformInteger(words) => Some(words),
            _ => None,
        }
    }

    /// Words; none where the operation says how many.
    pub fn words(self) -> Option<u8> {
        match self {
            SourceType::Single | SourceType::Halves | SourceType::Half => Some(1),
            SourceType::Double => Some(2),
            _ => self.counted(),
        }
    }

    /// Whether it is of the uniform datapath.
    pub fn is_uniform(self) -> bool {
        matches!(self, SourceType::Uniform(_) | SourceType::UniformInteger(_))
    }

    /// Whether it carries no modifiers.
    pub fn is_plain(self) -> bool {
        matches!(self, SourceType::Plain(_) | SourceType::Uniform(_))
    }

    /// Its type in ISLE and in Rust; none for members of enumerations, which the machine names.
    pub fn name(self) -> Option<String> {
        Some(match self {
            SourceType::Predicate => "PSrc".to_string(),
            SourceType::Signed => "i32".to_string(),
            SourceType::Number => "u32".to_string(),
            _ => format!("{}{}", self.kind()?.stem, self.bits()),
        })
    }

    /// The number of bits behind a name; nothing for a word.
    fn bits(self) -> String {
        match self.counted() {
            None | Some(1) => String::new(),
            Some(words) => (32 * u32::from(words)).to_string(),
        }
    }

    /// What follows the names of terms that several types have.
    pub fn suffix(self) -> String {
        let kind = self.kind();
        format!("{}{}", kind.map_or("", |k| k.suffix), self.bits())
    }

    /// The same with so many words.
    pub fn with_words(self, words: u8) -> SourceType {
        match self {
            SourceType::Uniform(_) => SourceType::Uniform(words),
            _ => SourceType::Plain(words),
        }
    }
}

/// What is beside a register result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Beside {
    /// Nothing.
    Nothing,
    /// The carry of a sum.
    Carry,
    /// A predicate.
    Predicate,
}

/// A result in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InRegisters {
    /// What is beside them.
    pub beside: Beside,
    /// Whether they are uniform registers.
    pub uniform: bool,
    /// How many.
    pub words: u8,
}

impl InRegisters {
    /// None of other results.
    pub fn of(result: ResultType) -> Option<InRegisters> {
        let (uniform, words) = match result.register? {
            Register::General(words) => (false, words),
            Register::Uniform(words) => (true, words),
            Register::Data => return None,
        };
        let beside = match (result.predicates, result.carry) {
            (0, _) => Beside::Nothing,
            (_, true) => Beside::Carry,
            (_, false) => Beside::Predicate,
        };
        Some(InRegisters {
            beside,
            uniform,
            words,
        })
    }

    /// Its type.
    pub fn name(self) -> String {
        let file = if self.uniform { "Ugpr" } else { "Gpr" };
        let beside = match self.beside {
            Beside::Nothing => "",
            Beside::Carry => "Carry",
            Beside::Predicate => "Pred",
        };
        format!("{file}{}{beside}", self.count())
    }

    /// The number of registers behind a name; nothing for one.
    pub fn count(self) -> String {
        match self.words {
            1 => String::new(),
            words => words.to_string(),
        }
    }

    /// What it is.
    pub fn about(self) -> String {
        let file = if self.uniform { "uniform" } else { "general" };
        let beside = match self.beside {
            Beside::Nothing => "",
            Beside::Carry => ", and the carry out of their sum",
            Beside::Predicate => ", and a predicate",
        };
        let bits = 32 * u32::from(self.words);
        format!("{bits} bits in {file} registers{beside}")
    }

    /// Its registers without what is beside them.
    pub fn alone(self) -> InRegisters {
        InRegisters {
            beside: Beside::Nothing,
            ..self
        }
    }

    /// The plain source that it is.
    pub fn source(self) -> SourceType {
        match self.uniform {
            true => SourceType::Uniform(self.words),
            false => SourceType::Plain(self.words),
        }
    }

    /// Rust for the registers of `x`.
    pub fn registers(self, x: &str) -> String {
        match self.beside {
            Beside::Nothing => format!("{x}.regs()"),
            _ => format!("{x}.regs.regs()"),
        }
    }
}

impl ResultType {
    /// Its type in ISLE and in Rust.
    pub fn name(self) -> String {
        let name = match (InRegisters::of(self), self.register, self.predicates) {
            (Some(result), ..) => return result.name(),
            (None, Some(_), _) => "Regs",
            (None, None, 0) => "Unit",
            (None, None, 1) => "Pred",
            (None, None, _) => "PredPair",
        };
        name.to_string()
    }
}
