//! Arguments of `println!`, formatted as `std` does it.

/// Arguments within arguments, at most: types are hardly ever so deep, and what is damaged must not be.
const DEEPEST: usize = 64;

/// An argument as a kernel wrote it.
#[derive(Clone, Debug)]
pub enum Value {
    /// A number or the like.
    Scalar(Scalar),
    /// A text.
    Text(String),
    /// A slice or an array.
    List(Vec<Value>),
    /// An option.
    Option(Option<Box<Value>>),
    /// A structure: its name, and its fields with their names, which those of tuples have not.
    Structure(String, Vec<(String, Value)>),
}

/// What is 64 bits: what it is, and those.
#[derive(Clone, Copy, Debug)]
pub struct Scalar {
    kind: u32,
    bits: u64,
}

impl Value {
    /// Takes an argument from the words of a record; `None` where there is no whole one.
    pub fn read(words: &mut &[u32]) -> Option<Value> {
        Value::nested(words, DEEPEST)
    }

    fn nested(words: &mut &[u32], depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        let ([kind, second], rest) = words.split_first_chunk()?;
        *words = rest;
        // Each argument has two words at least, so whatever counts say this ends.
        Some(match kind {
            8 => {
                let (bytes, count) = (*second as usize, second.div_ceil(4) as usize);
                let (text, rest) = words.split_at_checked(count)?;
                *words = rest;
                let text: Vec<u8> = text.iter().flat_map(|word| word.to_le_bytes()).collect();
                Value::Text(String::from_utf8_lossy(&text[..bytes]).into_owned())
            }
            9 => {
                let list = (0..*second).map(|_| Value::nested(words, depth));
                Value::List(list.collect::<Option<_>>()?)
            }
            10 if *second == 0 => Value::Option(None),
            10 => Value::Option(Some(Box::new(Value::nested(words, depth)?))),
            11 => {
                let name = Value::read_text(words)?;
                let field = |_| Some((Value::read_text(words)?, Value::nested(words, depth)?));
                let fields = (0..*second).map(field);
                Value::Structure(name, fields.collect::<Option<_>>()?)
            }
            kind => {
                let (high, rest) = words.split_first()?;
                *words = rest;
                let bits = u64::from(*second) | u64::from(*high) << 32;
                Value::Scalar(Scalar { kind: *kind, bits })
            }
        })
    }

    fn read_text(words: &mut &[u32]) -> Option<String> {
        match Value::read(words)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// As `{:?}` or, over several lines, `{:#?}` with this specification.
    fn debug(&self, of: &Specification) -> String {
        match self {
            Value::Scalar(scalar) => of.format(*scalar),
            Value::Text(text) => format!("{text:?}"),
            Value::List(list) => {
                let items = list.iter().map(|item| item.debug(of));
                of.enclosed("[", items.collect(), "]")
            }
            Value::Option(None) => "None".to_string(),
            Value::Option(Some(value)) => of.enclosed("Some(", vec![value.debug(of)], ")"),
            Value::Structure(name, fields) if fields.is_empty() => name.clone(),
            Value::Structure(name, fields) if fields.iter().all(|field| field.0.is_empty()) => {
                let fields = fields.iter().map(|(_, value)| value.debug(of));
                of.enclosed(&format!("{name}("), fields.collect(), ")")
            }
            Value::Structure(name, fields) => {
                let field =
                    |(name, value): &(String, Value)| format!("{name}: {}", value.debug(of));
                let (open, close) = match of.alternate {
                    true => ("{", "}"),
                    false => ("{ ", " }"),
                };
                let fields = fields.iter().map(field);
                of.enclosed(&format!("{name} {open}"), fields.collect(), close)
            }
        }
    }
}

/// A format's text with its arguments; every placeholder has the form `{number:specification}`.
pub fn formatted(format: &str, arguments: &[Value]) -> String {
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
                        text.push_str(&Specification::parse(specification).value(argument))
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
    fn value(&self, value: &Value) -> String {
        match value {
            Value::Text(text) if self.kind != "?" => {
                let most = self.precision.unwrap_or(usize::MAX);
                self.padded(&text.chars().take(most).collect::<String>())
            }
            value => value.debug(self),
        }
    }

    /// A text, with what the width asks for around it.
    fn padded(&self, text: &str) -> String {
        let missing = self.width.saturating_sub(text.chars().count());
        let before = match self.align {
            Some('^') => missing / 2,
            Some('>') => missing,
            _ => 0,
        };
        let fill = |count: usize| self.fill.unwrap_or(' ').to_string().repeat(count);
        format!("{}{text}{}", fill(before), fill(missing - before))
    }

    /// Parts between brackets, on lines of their own if the specification says so.
    fn enclosed(&self, open: &str, parts: Vec<String>, close: &str) -> String {
        if !self.alternate || parts.is_empty() {
            return format!("{open}{}{close}", parts.join(", "));
        }
        let lines = parts.iter().map(|part| {
            let part = part.replace('\n', "\n    ");
            format!("    {part},\n")
        });
        format!("{open}\n{}{close}", lines.collect::<String>())
    }

    /// As `std` would.
    fn format(&self, Scalar { kind, bits }: Scalar) -> String {
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
        let single = |x: f32| Scalar {
            kind: 3,
            bits: x.to_bits().into(),
        };
        let whole = |x: i64| Scalar {
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
                Scalar { kind: 1, bits: 255 },
                format!("{:#06x}", 255),
            ),
            ("b", Scalar { kind: 1, bits: 5 }, format!("{:b}", 5)),
            ("", single(0.1), format!("{}", 0.1f32)),
            ("?", single(-1.0), format!("{:?}", -1.0f32)),
            ("8.3", single(-1.5), format!("{:8.3}", -1.5f32)),
            ("08.3", single(-1.5), format!("{:08.3}", -1.5f32)),
            ("e", single(1500.0), format!("{:e}", 1500.0f32)),
            (
                "",
                Scalar {
                    kind: 4,
                    bits: 0.1f64.to_bits(),
                },
                format!("{}", 0.1f64),
            ),
            (
                "?",
                Scalar {
                    kind: 6,
                    bits: 0xe9,
                },
                format!("{:?}", 'é'),
            ),
            ("5", Scalar { kind: 5, bits: 1 }, format!("{:5}", true)),
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
        let arguments = [1, 2].map(|bits| Value::Scalar(Scalar { kind: 1, bits }));
        assert_eq!(formatted("{{{1:}}} {0:02}\n", &arguments), "{2} 01\n");
    }

    /// As a kernel writes it.
    fn words(value: &Value) -> Vec<u32> {
        let text = |text: &str| words(&Value::Text(text.into()));
        match value {
            Value::Scalar(Scalar { kind, bits }) => vec![*kind, *bits as u32, (bits >> 32) as u32],
            Value::Text(text) => {
                let mut words = vec![8, text.len() as u32];
                words.extend(text.as_bytes().chunks(4).map(|bytes| {
                    let mut word = [0; 4];
                    word[..bytes.len()].copy_from_slice(bytes);
                    u32::from_le_bytes(word)
                }));
                words
            }
            Value::List(list) => {
                let items = list.iter().flat_map(words);
                [9, list.len() as u32].into_iter().chain(items).collect()
            }
            Value::Option(None) => vec![10, 0],
            Value::Option(Some(value)) => [vec![10, 1], words(value)].concat(),
            Value::Structure(name, fields) => {
                let fields_words = fields
                    .iter()
                    .flat_map(|(name, value)| [text(name), words(value)].concat());
                let begin = [vec![11, fields.len() as u32], text(name)].concat();
                begin.into_iter().chain(fields_words).collect()
            }
        }
    }

    #[derive(Debug)]
    #[allow(dead_code, reason = "what Debug shows is what is wanted")]
    struct Point {
        x: i32,
        label: &'static str,
        rest: Option<[bool; 2]>,
    }

    #[derive(Debug)]
    #[allow(dead_code, reason = "what Debug shows is what is wanted")]
    struct Pair(Point, ());

    #[test]
    fn structures_look_as_debug_prints_them() {
        let scalar = |kind, bits| Value::Scalar(Scalar { kind, bits });
        let text = |text: &str| Value::Text(text.into());
        let make = |x: i32, label: &'static str, rest: Option<[bool; 2]>| {
            let list = rest.map(|of| Value::List(of.map(|of| scalar(5, of.into())).to_vec()));
            let fields = vec![
                ("x".to_string(), scalar(2, x as i64 as u64)),
                ("label".to_string(), text(label)),
                ("rest".to_string(), Value::Option(list.map(Box::new))),
            ];
            (
                Point { x, label, rest },
                Value::Structure("Point".into(), fields),
            )
        };
        for (x, label, rest) in [(-3, "", None), (7, "a \"b\"\nü", Some([true, false]))] {
            let (point, value) = make(x, label, rest);
            let read = Value::read(&mut words(&value).as_slice()).expect("whole");
            let shown = |specification: &str| {
                formatted(
                    &format!("{{0:{specification}}}"),
                    std::slice::from_ref(&read),
                )
            };
            assert_eq!(shown("?"), format!("{point:?}"));
            assert_eq!(shown("#?"), format!("{point:#?}"));
            assert_eq!(shown("5?"), format!("{point:5?}"));
            let pair = Value::Structure("Pair".into(), vec![(String::new(), value)]);
            let expected = format!("{:#?}", Pair(point, ())).replace("    (),\n", "");
            assert_eq!(formatted("{0:#?}", &[pair]), expected);
        }
        let list = Value::List(vec![
            scalar(3, 1.5f32.to_bits().into()),
            scalar(3, 2f32.to_bits().into()),
        ]);
        assert_eq!(
            formatted("{0:6.2?}|{1:?}", &[list, Value::List(vec![])]),
            format!("{:6.2?}|[]", [1.5f32, 2.0])
        );
        let shown =
            |specification: &str| formatted(&format!("{{0:{specification}}}"), &[text("añb")]);
        assert_eq!(shown(">6"), format!("{:>6}", "añb"));
        assert_eq!(shown("*^6.2"), format!("{:*^6.2}", "añb"));
        assert_eq!(shown("?"), "\"añb\"");
    }

    /// Whatever stands in a record, reading it ends.
    #[test]
    fn damaged_records_are_no_arguments() {
        for words in [
            &[8u32, 5, 0][..],
            &[9, u32::MAX, 1, 2, 3],
            &[11, 1, 1, 2, 3],
            &[10, 1],
            &[8, u32::MAX],
            &[1, 2],
            &[9],
        ] {
            assert!(Value::read(&mut { words }).is_none(), "{words:?}");
        }
    }
}
