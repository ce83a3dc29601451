//! Registers and numbers as somebody writes them.

use cranelift_thisgpu::sim::debug::{Comparison, Condition, Operand};
use cranelift_thisgpu::values::SourceValue;

/// Reads `12` or `0x1c`.
pub fn number(text: &str) -> Result<u64, String> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    u64::from_str_radix(digits, radix).map_err(|_| format!("`{text}` is no number"))
}

/// Reads a register as assembly text has it: `R4`, `R[4:5]`, `P0`, `UR2`; or a value as CLIF has it: `v12`.
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
    read().ok_or_else(|| {
        format!("`{text}` is no register and no value; write R4, R[4:5], P0, UR2 or v12")
    })
}

/// Reads `R4 == 7`.
pub fn condition(text: &str) -> Result<Condition, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [left, comparison, value] = words[..] else {
        return Err(format!(
            "`{text}` is no condition; write R4 == 7, with blanks"
        ));
    };
    Ok(Condition {
        operand: operand(left)?,
        comparison: match comparison {
            "==" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            ">" => Comparison::Greater,
            _ => {
                return Err(format!(
                    "`{comparison}` does not compare; write ==, !=, < or >"
                ));
            }
        },
        value: number(value)?,
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
        for wrong in [
            "",
            "R",
            "4",
            "R[4:6]",
            "R[255:256]",
            "R255",
            "R256",
            "X1",
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
            value: 16,
        };
        assert_eq!(condition("R4 < 0x10"), Ok(expected));
        for wrong in ["R4", "R4 = 1", "R4 == x", "R4==1", "R4 == 1 2"] {
            assert!(condition(wrong).is_err(), "{wrong}");
        }
    }
}
