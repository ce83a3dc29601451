//! Names of registers and symbols.

use crate::isa::generated::HARDWIRED;
use crate::isa::{PReg, Register, RegisterClass, VReg};

/// Register files as the text names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// `R0`, `UR0`, `P0`.
    Class(RegisterClass),
    /// `UP0`.
    UniformPredicate,
    /// `B0`.
    Convergence,
}

impl File {
    /// What the text may say, for messages.
    pub fn description(self) -> String {
        match self {
            File::Class(class) => {
                let (kind, last) = match class {
                    RegisterClass::Gpr => ("a register", class.hardwired() - 1),
                    RegisterClass::Uniform => ("a uniform register", class.hardwired() - 1),
                    RegisterClass::Predicate => ("a predicate", class.hardwired() - 1),
                };
                format!(
                    "{kind} ({0}0 to {0}{last}, {1})",
                    class.prefix(),
                    class.hardwired_name()
                )
            }
            File::UniformPredicate => "a uniform predicate (UP0 to UP6, UPT)".to_string(),
            File::Convergence => "a convergence barrier (B0 to B15)".to_string(),
        }
    }

    /// One more than the highest number that is no hard-wired register.
    pub fn count(self) -> u32 {
        match self {
            File::Class(class) => class.hardwired().into(),
            File::UniformPredicate => crate::isa::print::uniform_true().into(),
            File::Convergence => 16,
        }
    }
}

/// A register as the text names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterName {
    /// `R4`.
    Numbered(u32),
    /// `RZ`.
    Hardwired,
    /// `%v4`.
    Virtual(u32),
}

/// The register that a word names. The number may be too large for the file.
pub(super) fn register(word: &str) -> Option<(File, RegisterName)> {
    for class in RegisterClass::ALL {
        if word == HARDWIRED[class as usize].0 {
            return Some((File::Class(class), RegisterName::Hardwired));
        }
    }
    if word == "UPT" {
        return Some((File::UniformPredicate, RegisterName::Hardwired));
    }
    let digits = word.find(|c: char| c.is_ascii_digit())?;
    let file = file(&word[..digits])?;
    let number = &word[digits..];
    let canonical = number == "0" || !number.starts_with('0');
    let number = number
        .parse()
        .ok()
        .filter(|_| canonical && number.bytes().all(|b| b.is_ascii_digit()))?;
    Some((file, RegisterName::Numbered(number)))
}

/// The file of a prefix.
pub(super) fn file(prefix: &str) -> Option<File> {
    match prefix {
        "UP" => Some(File::UniformPredicate),
        "B" => Some(File::Convergence),
        _ => RegisterClass::ALL
            .into_iter()
            .find(|c| c.prefix() == prefix)
            .map(File::Class),
    }
}

/// The class and number of a virtual register's word behind its `%`: `v4`, `u1`, `p0`.
pub(super) fn virtual_register(word: &str) -> Option<(RegisterClass, u32)> {
    let class = match word.chars().next()? {
        'v' => RegisterClass::Gpr,
        'u' => RegisterClass::Uniform,
        'p' => RegisterClass::Predicate,
        _ => return None,
    };
    word[1..]
        .parse()
        .ok()
        .filter(|n| *n < 1 << 28)
        .map(|n| (class, n))
}

/// Registers of the phase that a text is about.
pub trait NamedRegister: Register {
    /// What messages call them.
    const KIND: &'static str;
    /// The machine's register, if this phase has these and the number exists.
    fn machine(class: RegisterClass, number: u32) -> Option<Self>;
    /// The virtual register, if this phase has these.
    fn virtual_(class: RegisterClass, index: u32) -> Option<Self>;
}

impl NamedRegister for PReg {
    const KIND: &'static str = "a register of the machine";
    fn machine(class: RegisterClass, number: u32) -> Option<PReg> {
        u8::try_from(number)
            .ok()
            .filter(|n| *n < class.hardwired())
            .map(|n| PReg::new(class, n))
    }
    fn virtual_(_: RegisterClass, _: u32) -> Option<PReg> {
        None
    }
}

impl NamedRegister for VReg {
    const KIND: &'static str = "a virtual register";
    fn machine(_: RegisterClass, _: u32) -> Option<VReg> {
        None
    }
    fn virtual_(class: RegisterClass, index: u32) -> Option<VReg> {
        (index < 1 << 28).then(|| VReg::new(class, index))
    }
}

/// Whether a symbol can be written without quotes and is not taken for something else.
pub(super) fn is_plain(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$');
    let continues = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_$.".contains(c));
    begins
        && continues
        && register(name.split('.').next().unwrap_or_default()).is_none()
        && !["PR", "INF", "c", "R", "UR", "lo", "hi"].contains(&name)
}

/// A symbol as the text writes it.
pub(super) fn quoted(name: &str) -> String {
    if is_plain(name) {
        name.to_string()
    } else {
        format!("\"{}\"", name.escape_debug())
    }
}

/// The symbol behind a quoted name; none when an escape is none that [`quoted`] writes.
pub(super) fn unquoted(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        out.push(match c {
            '\\' => match rest.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                '0' => '\0',
                'u' => {
                    let digits = rest.as_str().strip_prefix('{')?.split_once('}')?.0;
                    rest = rest.as_str()[digits.len() + 2..].chars();
                    char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
                }
                c @ ('"' | '\'' | '\\') => c,
                _ => return None,
            },
            c => c,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols() {
        for name in [
            "main",
            "a b",
            "u0:1",
            "R1",
            "P0.x",
            "c",
            "quote\"back\\line\n\u{1}é",
            "",
        ] {
            let text = quoted(name);
            let read = text
                .strip_prefix('"')
                .and_then(|t| t.strip_suffix('"'))
                .map_or(Some(text.clone()), unquoted);
            assert_eq!(read.as_deref(), Some(name));
        }
        assert!(is_plain("core.fmt") && !is_plain("UR3") && !is_plain("B1.x") && is_plain("B1x"));
        assert_eq!(unquoted("\\q"), None);
    }

    #[test]
    fn registers() {
        use RegisterName::*;
        assert_eq!(
            register("R254"),
            Some((File::Class(RegisterClass::Gpr), Numbered(254)))
        );
        assert_eq!(
            register("URZ"),
            Some((File::Class(RegisterClass::Uniform), Hardwired))
        );
        assert_eq!(register("UPT"), Some((File::UniformPredicate, Hardwired)));
        assert_eq!(register("B3"), Some((File::Convergence, Numbered(3))));
        for word in ["R", "R01", "R1x", "X1", "PR", "URx"] {
            assert_eq!(register(word), None, "{word}");
        }
        assert_eq!(virtual_register("v12"), Some((RegisterClass::Gpr, 12)));
    }
}
