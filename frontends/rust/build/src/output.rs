//! Output of kernels, formatted: the records of `thisgpu_gpu::println!`, in the order in which they were written.

use crate::error::Error;
use cranelift_thisgpu::driver::Module;
use std::fmt::Write;

/// The data object that the library calls so.
const BUFFER: &str = "__thisgpu_print_buffer";
/// Bytes in front of the records: words asked for, records lost.
const HEADER: u64 = 8;

/// Takes what was written, and leaves the buffer empty.
pub fn take(module: &Module, formats: &[(u32, String)]) -> Result<String, Error> {
    let text = read(module, formats)?;
    if let Some(buffer) = module.data(BUFFER).filter(|_| !text.is_empty()) {
        let asked: Vec<u8> = buffer.read_range(0..4)?;
        let asked = asked
            .first_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let end = (HEADER + 4 * u64::from(asked)).min(buffer.bytes());
        buffer.slice(0..end)?.clear()?;
    }
    Ok(text)
}

/// What was written.
pub fn read(module: &Module, formats: &[(u32, String)]) -> Result<String, Error> {
    let Some(buffer) = module.data(BUFFER) else {
        return Ok(String::new());
    };
    let header: Vec<u8> = buffer.read_range(0..HEADER)?;
    let word = |bytes: &[u8], index: usize| {
        u32::from_le_bytes(
            [0, 1, 2, 3].map(|byte| bytes.get(4 * index + byte).copied().unwrap_or(0)),
        )
    };
    let (asked, lost) = (u64::from(word(&header, 0)), word(&header, 1));
    if asked == 0 {
        return Ok(String::new());
    }
    let end = (HEADER + 4 * asked).min(buffer.bytes());
    let bytes = buffer.read_range(HEADER..end)?;
    let words: Vec<u32> = (0..bytes.len() / 4)
        .map(|index| word(&bytes, index))
        .collect();
    let mut text = String::new();
    let mut rest = words.as_slice();
    // A record of no words is the room that the first one without room has left.
    while let Some((&length, _)) = rest.split_first().filter(|first| *first.0 >= 2) {
        let (record, behind) = rest.split_at((length as usize).min(rest.len()));
        let arguments: Vec<Argument> = record
            .get(2..)
            .unwrap_or(&[])
            .chunks_exact(3)
            .map(|words| Argument {
                kind: words[0],
                bits: u64::from(words[1]) | u64::from(words[2]) << 32,
            })
            .collect();
        let number = record.get(1).copied().unwrap_or(0);
        match formats.iter().find(|format| format.0 == number) {
            Some((_, format)) => text.push_str(&formatted(format, &arguments)),
            None => {
                let _ = writeln!(text, "(output of an unknown format {number:08x})");
            }
        }
        rest = behind;
    }
    if lost > 0 {
        let _ = writeln!(text, "({lost} more outputs found no room)");
    }
    Ok(text)
}

/// An argument: what it is, and its bits.
#[derive(Clone, Copy, Debug)]
struct Argument {
    kind: u32,
    bits: u64,
}

/// A format's text with its arguments; every placeholder has the form `{number:specification}`.
fn formatted(format: &str, arguments: &[Argument]) -> String {
    let mut text = String::new();
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '{' | '}' if rest.peek() == Some(&c) => {
                rest.next();
                text.push(c);
            }
            '{' => {
                let inner: String = rest.by_ref().take_while(|c| *c != '}').collect();
                let (index, specification) = inner.split_once(':').unwrap_or((&inner, ""));
                match index
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| arguments.get(index))
                {
                    Some(argument) => {
                        text.push_str(&Specification::parse(specification).format(*argument))
                    }
                    None => text.push('?'),
                }
            }
            other => text.push(other),
        }
    }
    text
}

/// What is behind a placeholder's colon.
#[derive(Debug, Default)]
struct Specification {
    fill: Option<char>,
    align: Option<char>,
    plus: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    kind: String,
}

impl Specification {
    fn parse(text: &str) -> Specification {
        let mut specification = Specification::default();
        let mut rest: &[char] = &text.chars().collect::<Vec<_>>();
        let is_align = |c: Option<&char>| matches!(c, Some('<' | '^' | '>'));
        if is_align(rest.get(1)) {
            (specification.fill, specification.align) = (Some(rest[0]), Some(rest[1]));
            rest = &rest[2..];
        } else if is_align(rest.first()) {
            specification.align = Some(rest[0]);
            rest = &rest[1..];
        }
        for (sign, flag) in [
            ('+', &mut specification.plus),
            ('#', &mut specification.alternate),
            ('0', &mut specification.zero),
        ] {
            if rest.first() == Some(&sign) {
                *flag = true;
                rest = &rest[1..];
            }
        }
        let digits = |rest: &mut &[char]| {
            let length = rest.iter().take_while(|c| c.is_ascii_digit()).count();
            let number: String = rest[..length].iter().collect();
            *rest = &rest[length..];
            number.parse().ok()
        };
        specification.width = digits(&mut rest).unwrap_or(0);
        if rest.first() == Some(&'.') {
            rest = &rest[1..];
            specification.precision = digits(&mut rest);
        }
        specification.kind = rest.iter().collect();
        specification
    }

    /// As `std` would.
    fn format(&self, Argument { kind, bits }: Argument) -> String {
        let (is_negative, digits, is_number) = match kind {
            // Of a negative number in another base the bits are printed; how many the type has is not known any more.
            2 if self.base().is_none() => (
                (bits as i64) < 0,
                (bits as i64).unsigned_abs().to_string(),
                true,
            ),
            1 | 2 => (false, self.integer(bits), true),
            3 => self.float(
                f32::from_bits(bits as u32).into(),
                Some(f32::from_bits(bits as u32)),
            ),
            4 => self.float(f64::from_bits(bits), None),
            5 => (false, (bits != 0).to_string(), false),
            6 => {
                let c = char::from_u32(bits as u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                (
                    false,
                    if self.kind == "?" {
                        format!("{c:?}")
                    } else {
                        c.to_string()
                    },
                    false,
                )
            }
            _ => (false, format!("{bits:#x}"), true),
        };
        let sign = match (is_negative, self.plus && is_number) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let prefix = if self.alternate && is_number {
            self.base().unwrap_or("")
        } else {
            ""
        };
        let length = sign.len() + prefix.len() + digits.chars().count();
        let missing = self.width.saturating_sub(length);
        if self.zero && is_number {
            return format!("{sign}{prefix}{}{digits}", "0".repeat(missing));
        }
        let align = self.align.unwrap_or(if is_number { '>' } else { '<' });
        let before = match align {
            '<' => 0,
            '^' => missing / 2,
            _ => missing,
        };
        let fill = |count: usize| self.fill.unwrap_or(' ').to_string().repeat(count);
        format!(
            "{}{sign}{prefix}{digits}{}",
            fill(before),
            fill(missing - before)
        )
    }

    /// What numbers of another base begin with.
    fn base(&self) -> Option<&'static str> {
        match self.kind.as_str() {
            "x" | "X" => Some("0x"),
            "b" => Some("0b"),
            "o" => Some("0o"),
            _ => None,
        }
    }

    fn integer(&self, bits: u64) -> String {
        match self.kind.as_str() {
            "x" => format!("{bits:x}"),
            "X" => format!("{bits:X}"),
            "b" => format!("{bits:b}"),
            "o" => format!("{bits:o}"),
            _ => bits.to_string(),
        }
    }

    /// Sign, digits, whether it is a number; `single` is the value as it was, whose digits are fewer.
    fn float(&self, value: f64, single: Option<f32>) -> (bool, String, bool) {
        let magnitude = value.abs();
        let digits = match (self.precision, self.kind.as_str(), single) {
            (Some(precision), "e", _) => format!("{magnitude:.precision$e}"),
            (None, "e", Some(single)) => format!("{:e}", single.abs()),
            (None, "e", None) => format!("{magnitude:e}"),
            (Some(precision), _, _) => format!("{magnitude:.precision$}"),
            (None, "?", Some(single)) => format!("{:?}", single.abs()),
            (None, "?", None) => format!("{magnitude:?}"),
            (None, _, Some(single)) => single.abs().to_string(),
            (None, _, None) => magnitude.to_string(),
        };
        (value.is_sign_negative() && !value.is_nan(), digits, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_std_prints_them() {
        let single = |x: f32| Argument {
            kind: 3,
            bits: x.to_bits().into(),
        };
        let whole = |x: i64| Argument {
            kind: 2,
            bits: x as u64,
        };
        for (specification, argument, expected) in [
            ("", whole(-5), format!("{}", -5)),
            ("05", whole(-5), format!("{:05}", -5)),
            ("+", whole(5), format!("{:+}", 5)),
            (">6", whole(5), format!("{:>6}", 5)),
            ("*^7", whole(5), format!("{:*^7}", 5)),
            ("<4", whole(5), format!("{:<4}", 5)),
            (
                "#06x",
                Argument { kind: 1, bits: 255 },
                format!("{:#06x}", 255),
            ),
            ("b", Argument { kind: 1, bits: 5 }, format!("{:b}", 5)),
            ("", single(0.1), format!("{}", 0.1f32)),
            ("?", single(-1.0), format!("{:?}", -1.0f32)),
            ("8.3", single(-1.5), format!("{:8.3}", -1.5f32)),
            ("08.3", single(-1.5), format!("{:08.3}", -1.5f32)),
            ("e", single(1500.0), format!("{:e}", 1500.0f32)),
            (
                "",
                Argument {
                    kind: 4,
                    bits: 0.1f64.to_bits(),
                },
                format!("{}", 0.1f64),
            ),
            (
                "?",
                Argument {
                    kind: 6,
                    bits: 0xe9,
                },
                format!("{:?}", 'é'),
            ),
            ("5", Argument { kind: 5, bits: 1 }, format!("{:5}", true)),
            ("", single(f32::NAN), format!("{}", f32::NAN)),
            (
                "",
                single(f32::NEG_INFINITY),
                format!("{}", f32::NEG_INFINITY),
            ),
        ] {
            assert_eq!(
                Specification::parse(specification).format(argument),
                expected,
                "{{:{specification}}}"
            );
        }
    }

    #[test]
    fn placeholders_take_arguments_by_number() {
        let arguments = [1, 2].map(|bits| Argument { kind: 1, bits });
        assert_eq!(formatted("{{{1:}}} {0:02}\n", &arguments), "{2} 01\n");
    }
}
