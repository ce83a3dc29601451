//! Registers that a text leaves free for what it becomes: `R40-R47,P5`.

use super::{Named, Need};
use cranelift_thisgpu::asm::Diagnostic;
use cranelift_thisgpu::unstable::isa::{PReg, Register, RegisterClass};
use std::str::FromStr;

/// Registers that may be overwritten, in the order in which they are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scratch {
    general: Vec<PReg>,
    predicates: Vec<PReg>,
}

/// Why a text lists no registers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScratchError {
    /// A part is no register and no range of them.
    #[error("`{0}` is no register; expected registers and ranges of them: R40-R47,P5")]
    NoRegister(String),
    /// A range goes backwards, or from one class to another.
    #[error("`{0}` is no range: the first register is of the same kind and below the last")]
    NoRange(String),
    /// A register is there twice.
    #[error("{0} is listed twice")]
    Twice(String),
}

impl Scratch {
    /// The general registers.
    pub fn registers(&self) -> &[PReg] {
        &self.general
    }

    /// What is wrong with them for a text: too few, or some that it names.
    pub(super) fn errors(&self, need: Need, named: &Named) -> Vec<Diagnostic> {
        let needed = need.registers;
        let needs = match needed {
            0 => "the text needs no scratch register".to_owned(),
            1 => "the text needs 1 scratch register".to_owned(),
            _ => format!("the text needs {needed} scratch registers"),
        };
        let note = format!("{needs}; {}", free(named, needed));
        let all = self.general.iter().chain(&self.predicates);
        let taken = all.filter(|r| named.holds(**r)).map(|r| r.to_string());
        let taken: Vec<String> = taken.collect();
        let mut errors = Vec::new();
        if !taken.is_empty() {
            let message = format!("the text names scratch registers: {}", taken.join(","));
            errors.push(Diagnostic::new(need.span, message).note(note));
        }
        if self.general.len() < needed && errors.is_empty() {
            let message = format!("{needs}, and {} are given", self.general.len());
            errors.push(Diagnostic::new(need.span, message).note(free(named, needed)));
        }
        errors
    }
}

/// Registers that the text does not name.
fn free(named: &Named, needed: usize) -> String {
    let free: Vec<String> = named
        .free()
        .take(needed.max(1))
        .map(|r| r.to_string())
        .collect();
    match free.len() < needed {
        true => "no so many are free".to_owned(),
        false => format!("free are for example {}", free.join(",")),
    }
}

impl FromStr for Scratch {
    type Err = ScratchError;

    fn from_str(text: &str) -> Result<Self, ScratchError> {
        let mut scratch = Scratch::default();
        for part in text.split(',').map(str::trim) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (register(first)?, register(last)?);
            if first.class() != last.class() || first > last {
                return Err(ScratchError::NoRange(part.to_owned()));
            }
            for number in first.number()..=last.number() {
                let register = PReg::new(first.class(), number);
                let list = match register.class() {
                    RegisterClass::Gpr => &mut scratch.general,
                    _ => &mut scratch.predicates,
                };
                if list.contains(&register) {
                    return Err(ScratchError::Twice(register.to_string()));
                }
                list.push(register);
            }
        }
        Ok(scratch)
    }
}

/// A general register or a predicate.
fn register(text: &str) -> Result<PReg, ScratchError> {
    let text = text.trim();
    let classes = [RegisterClass::Gpr, RegisterClass::Predicate];
    let register = |class: RegisterClass| {
        let digits = text.strip_prefix(class.prefix())?;
        let plain = digits == "0" || !digits.starts_with(['0', '+']);
        let number: u8 = digits.parse().ok()?;
        (plain && number < class.hardwired()).then(|| PReg::new(class, number))
    };
    let found = classes.into_iter().find_map(register);
    found.ok_or_else(|| ScratchError::NoRegister(text.to_owned()))
}
