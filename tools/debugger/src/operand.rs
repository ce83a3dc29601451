//! Registers, values, variables and numbers as somebody writes them.

use cranelift_thisgpu::sim::debug::{Comparison, Condition, Number, Operand, Path};
use cranelift_thisgpu::values::SourceValue;

/// Reads `12` or `0x1c`.
pub fn number(text: &str) -> Result<u64, String> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    u64::from_str_radix(digits, radix).map_err(|_| format!("`{text}` is no number"))
}

/// Reads a register as assembly text has it: `R4`, `R[4:5]`, `P0`, `UR2`; a value as CLIF has it: `v12`; or a variable
/// and the way to a part of it: `x`, `p.x`, `xs[3]`, `*r`. A variable whose name is that of a register or value is
/// written in brackets: `(v12)`.
pub fn operand(text: &str) -> Result<Operand, String> {
    let read = || {
        if let Some(pair) = text.strip_prefix("R[") {
            let (low, high) = pair.strip_suffix(']')?.split_once(':')?;
            let (low, high): (u8, u8) = (low.parse().ok()?, high.parse().ok()?);
            return (low.checked_add(1) == Some(high)).then_some(Operand::Pair(low));
        }
        if let Some(uniform) = text.strip_prefix("UR") {
            let number = uniform
                .parse()
                .ok()
                .filter(|number| *number < Operand::UNIFORM);
            return Some(Operand::Uniform(number?));
        }
        if let Some(predicate) = text.strip_prefix('P') {
            let number = predicate
                .parse()
                .ok()
                .filter(|number| *number < Operand::PREDICATES);
            return Some(Operand::Predicate(number?));
        }
        let numbered = |prefix| text.strip_prefix(prefix)?.parse().ok();
        if let Some(number) = numbered("v") {
            return Some(Operand::Source(SourceValue::Value(number)));
        }
        if let Some(number) = numbered("label") {
            return Some(Operand::Source(SourceValue::Label(number)));
        }
        let number = text.strip_prefix('R')?.parse().ok();
        Some(Operand::Register(
            number.filter(|number| *number < Operand::REGISTERS)?,
        ))
    };
    // What looks like a register and is none is most often a mistake.
    let is_register =
        text.starts_with(['R', 'P', 'U']) && text.ends_with(|c: char| c.is_ascii_digit());
    let variable = || {
        Path::parse(text)
            .filter(|_| !is_register)
            .map(Operand::Variable)
    };
    read().or_else(variable).ok_or_else(|| {
        format!(
            "`{text}` is no register, value or variable; write R4, R[4:5], P0, UR2, v12 or x.y[3]"
        )
    })
}

/// Reads what a condition compares with: `12`, `-3`, `0x1c`, `1.5`, `true`, `'a'`.
pub fn compared(text: &str) -> Result<Number, String> {
    let integer = || {
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (digits, radix) = match digits.strip_prefix("0x") {
            Some(digits) => (digits, 16),
            None => (digits, 10),
        };
        let number = u128::from_str_radix(digits, radix).ok()?;
        match is_negative {
            true => Some(Number::Integer(0_i128.checked_sub_unsigned(number)?)),
            false => Some(Number::unsigned(number)),
        }
    };
    let word = || match text {
        "true" => Some(Number::Integer(1)),
        "false" => Some(Number::Integer(0)),
        _ => {
            let character = text.strip_prefix('\'')?.strip_suffix('\'')?;
            let mut characters = character.chars();
            let code = u32::from(characters.next()?);
            let is_one = characters.next().is_none();
            is_one.then_some(Number::Integer(code.into()))
        }
    };
    let float = || text.parse().ok().map(Number::Double);
    let read = integer().or_else(word).or_else(float);
    read.ok_or_else(|| format!("`{text}` is no number, truth or character"))
}

/// How conditions compare, as they are written; those of two signs first.
pub const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// Reads `R4 == 7`.
pub fn condition(text: &str) -> Result<Condition, String> {
    let found = text.char_indices().find_map(|(at, _)| {
        let rest = &text[at..];
        let found = COMPARISONS.iter().find(|(sign, _)| rest.starts_with(sign));
        found.map(|(sign, comparison)| (at, at + sign.len(), *comparison))
    });
    let Some((end, start, comparison)) = found else {
        let message =
            format!("`{text}` is no condition; write x == 7, with ==, !=, <, >, <= or >=");
        return Err(message);
    };
    Ok(Condition {
        operand: operand(text[..end].trim())?,
        comparison,
        value: compared(text[start..].trim())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_read_as_assembly_text_has_them() {
        assert_eq!(operand("R4"), Ok(Operand::Register(4)));
        assert_eq!(operand("R[4:5]"), Ok(Operand::Pair(4)));
        assert_eq!(operand("UR12"), Ok(Operand::Uniform(12)));
        let value = Operand::Source(SourceValue::Value(12));
        assert_eq!(operand("v12"), Ok(value));
        assert_eq!(operand("P6"), Ok(Operand::Predicate(6)));
        let path = Path::parse("p.x[3]").unwrap();
        assert_eq!(operand("p.x[3]"), Ok(Operand::Variable(path)));
        for wrong in [
            "",
            "4",
            "R[4:6]",
            "R[255:256]",
            "R255",
            "R256",
            "x.",
            "P-1",
            "P7",
            "UR63",
        ] {
            assert!(operand(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn conditions_say_what_is_missing() {
        let expected = Condition {
            operand: Operand::Register(4),
            comparison: Comparison::Less,
            value: Number::Integer(16),
        };
        assert_eq!(condition("R4 < 0x10"), Ok(expected));
        for (text, number) in [
            ("-3", Number::Integer(-3)),
            ("0x10", Number::Integer(16)),
            ("1.5", Number::Double(1.5)),
            (
                "340282366920938463463374607431768211455",
                Number::Large(u128::MAX),
            ),
            ("' '", Number::Integer(32)),
            ("true", Number::Integer(1)),
            ("'a'", Number::Integer(97)),
        ] {
            assert_eq!(compared(text), Ok(number), "{text}");
        }
        let at_least = condition("p.x>=-3").unwrap();
        assert_eq!(at_least.comparison, Comparison::AtLeast);
        assert_eq!(at_least.value, Number::Integer(-3));
        for wrong in ["R4", "R4 = 1", "R4 == x", "== 1", "R4 == 1 2", "R4 ==="] {
            assert!(condition(wrong).is_err(), "{wrong}");
        }
    }
}
