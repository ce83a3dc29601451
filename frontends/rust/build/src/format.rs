//! Arguments of `println!`, formatted as `std` does it.

use std::fmt::{Debug, Display, LowerExp, UpperExp};

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

/// A value that is shown by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A number without a sign.
    Unsigned(u128),
    /// A number with its bytes, which other bases show all of.
    Signed(i128, u32),
    /// A float of 32 bits, or of 16.
    Single(f32),
    /// A float of 64 bits.
    Double(f64),
    /// True or false.
    Bool(bool),
    /// A character.
    Char(char),
    /// An address.
    Pointer(u64),
}

impl Scalar {
    /// What the library for kernels writes: what it is, above that its bytes, and two words, or four of 128 bits.
    fn read(kind: u32, low: u32, words: &mut &[u32]) -> Option<Scalar> {
        let (kind, bytes) = (kind & 0xff, kind >> 8);
        let ([second], rest) = words.split_first_chunk()?;
        *words = rest;
        let bits = u64::from(low) | u64::from(*second) << 32;
        let mut wide = u128::from(bits);
        if bytes == 16 {
            let ([third, fourth], rest) = words.split_first_chunk()?;
            *words = rest;
            wide |= u128::from(*third) << 64 | u128::from(*fourth) << 96;
        }
        Some(match kind {
            1 => Scalar::Unsigned(wide),
            2 if bytes == 16 => Scalar::Signed(wide as i128, bytes),
            2 => Scalar::Signed((bits as i64).into(), bytes),
            3 => Scalar::Single(f32::from_bits(low)),
            4 => Scalar::Double(f64::from_bits(bits)),
            5 => Scalar::Bool(bits != 0),
            6 => Scalar::Char(char::from_u32(low).unwrap_or(char::REPLACEMENT_CHARACTER)),
            _ => Scalar::Pointer(bits),
        })
    }
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
            kind => Value::Scalar(Scalar::read(*kind, *second, words)?),
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
            // A tuple of one has a comma, which tells it from brackets.
            Value::Structure(name, fields) if name.is_empty() && fields.len() == 1 => {
                let of_one = if of.alternate { ")" } else { ",)" };
                of.enclosed("(", vec![fields[0].1.debug(of)], of_one)
            }
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
            Value::Text(text) if !self.kind.ends_with('?') => {
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
    fn format(&self, scalar: Scalar) -> String {
        let (is_negative, digits) = match scalar {
            Scalar::Unsigned(number) => (false, self.integer(number)),
            Scalar::Signed(number, _) if self.base().is_none() => {
                (number < 0, self.integer(number.unsigned_abs()))
            }
            // Another base shows the bits of the type.
            Scalar::Signed(number, bytes) => {
                let unused = 128 - 8 * bytes.clamp(1, 16);
                (false, self.integer((number as u128) << unused >> unused))
            }
            // Of a NaN the sign is not shown.
            Scalar::Single(float) => (float.is_sign_negative(), self.float(float.abs())),
            Scalar::Double(float) => (float.is_sign_negative(), self.float(float.abs())),
            Scalar::Bool(truth) => return self.padded(&truth.to_string()),
            Scalar::Char(char) if self.kind.ends_with('?') => return format!("{char:?}"),
            Scalar::Char(char) => return self.padded(&char.to_string()),
            Scalar::Pointer(address) => (false, format!("{address:#x}")),
        };
        let is_nan = match scalar {
            Scalar::Single(float) => float.is_nan(),
            Scalar::Double(float) => float.is_nan(),
            _ => false,
        };
        let sign = match (is_negative, self.plus) {
            _ if is_nan => "",
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let prefix = match scalar {
            Scalar::Unsigned(_) | Scalar::Signed(..) if self.alternate => self.base().unwrap_or(""),
            _ => "",
        };
        let length = sign.len() + prefix.len() + digits.len();
        let missing = self.width.saturating_sub(length);
        if self.zero {
            return format!("{sign}{prefix}{}{digits}", "0".repeat(missing));
        }
        let before = match self.align {
            Some('<') => 0,
            Some('^') => missing / 2,
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
            "x" | "X" | "x?" | "X?" => Some("0x"),
            "b" => Some("0b"),
            "o" => Some("0o"),
            _ => None,
        }
    }

    fn integer(&self, number: u128) -> String {
        match (self.kind.as_str(), self.precision) {
            ("x" | "x?", _) => format!("{number:x}"),
            ("X" | "X?", _) => format!("{number:X}"),
            ("b", _) => format!("{number:b}"),
            ("o", _) => format!("{number:o}"),
            ("e", None) => format!("{number:e}"),
            ("e", Some(precision)) => format!("{number:.precision$e}"),
            ("E", None) => format!("{number:E}"),
            ("E", Some(precision)) => format!("{number:.precision$E}"),
            _ => number.to_string(),
        }
    }

    /// The digits of a float without its sign.
    fn float<F: Display + Debug + LowerExp + UpperExp>(&self, magnitude: F) -> String {
        match (self.kind.as_str(), self.precision) {
            ("e", None) => format!("{magnitude:e}"),
            ("e", Some(precision)) => format!("{magnitude:.precision$e}"),
            ("E", None) => format!("{magnitude:E}"),
            ("E", Some(precision)) => format!("{magnitude:.precision$E}"),
            (_, Some(precision)) => format!("{magnitude:.precision$}"),
            (kind, None) if kind.ends_with('?') => format!("{magnitude:?}"),
            (_, None) => magnitude.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a specification makes of a value, here and by `std`.
    macro_rules! looks_alike {
        ($($specification:literal of $scalar:expr, $value:expr;)*) => {
            $(
                let shown = Specification::parse($specification).format($scalar);
                let expected = format!(concat!("{:", $specification, "}"), $value);
                assert_eq!(shown, expected, "{{:{}}} of {:?}", $specification, $value);
            )*
        };
    }

    #[test]
    fn numbers_look_as_std_prints_them() {
        use Scalar::{Bool, Char, Double, Signed, Single, Unsigned};
        looks_alike! {
            "" of Signed(-5, 4), -5;
            "05" of Signed(-5, 4), -5;
            "+" of Signed(5, 4), 5;
            ">6" of Signed(5, 4), 5;
            "*^7" of Signed(5, 4), 5;
            "<4" of Signed(5, 4), 5;
            "x" of Signed(-5, 1), -5i8;
            "#012b" of Signed(-128, 1), -128i8;
            "o" of Signed(-1, 2), -1i16;
            "#x?" of Signed(-1, 4), -1;
            "X" of Signed(-1, 8), -1i64;
            "x" of Signed(i128::MIN, 16), i128::MIN;
            "" of Signed(i128::MIN, 16), i128::MIN;
            "e" of Signed(-1500, 4), -1500;
            ".1E" of Signed(-1550, 4), -1550;
            "#06x" of Unsigned(255), 255;
            "b" of Unsigned(5), 5;
            "02x?" of Unsigned(10), 10;
            "X?" of Unsigned(255), 255;
            "e" of Unsigned(1500), 1500;
            "" of Unsigned(u128::MAX), u128::MAX;
            "" of Single(0.1), 0.1f32;
            "?" of Single(-1.0), -1.0f32;
            "8.3" of Single(-1.5), -1.5f32;
            "08.3" of Single(-1.5), -1.5f32;
            "e" of Single(1500.0), 1500.0f32;
            "E" of Single(1.5), 1.5f32;
            ".2E" of Single(-0.0), -0.0f32;
            "+" of Single(f32::NAN), f32::NAN;
            "05" of Single(f32::NAN), f32::NAN;
            "05" of Single(f32::INFINITY), f32::INFINITY;
            "+" of Single(f32::INFINITY), f32::INFINITY;
            "" of Single(f32::NEG_INFINITY), f32::NEG_INFINITY;
            "x?" of Single(1.5), 1.5f32;
            "" of Double(0.1), 0.1f64;
            ".0" of Double(0.5), 0.5f64;
            ".3?" of Double(0.5), 0.5f64;
            "?" of Double(1e300), 1e300f64;
            "?" of Char('é'), 'é';
            "<10?" of Char('a'), 'a';
            "*^5" of Char('a'), 'a';
            "5" of Bool(true), true;
            "?" of Bool(false), false;
        }
    }

    #[test]
    fn placeholders_take_arguments_by_number() {
        let arguments = [1, 2].map(|number| Value::Scalar(Scalar::Unsigned(number)));
        assert_eq!(formatted("{{{1:}}} {0:02}\n", &arguments), "{2} 01\n");
    }

    /// As a kernel writes it.
    fn words(value: &Value) -> Vec<u32> {
        let text = |text: &str| words(&Value::Text(text.into()));
        match value {
            Value::Scalar(scalar) => {
                let (kind, bits) = match *scalar {
                    Scalar::Unsigned(number) => (1 | 16 << 8, number),
                    Scalar::Signed(number, bytes) => (2 | bytes << 8, number as u128),
                    Scalar::Single(float) => (3, float.to_bits().into()),
                    Scalar::Bool(truth) => (5, truth.into()),
                    other => panic!("{other:?} is not among what is tested"),
                };
                let count = if kind >> 8 == 16 { 4 } else { 2 };
                let words = (0..count).map(|word| (bits >> (32 * word)) as u32);
                [kind].into_iter().chain(words).collect()
            }
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
        let text = |text: &str| Value::Text(text.into());
        let make = |x: i32, label: &'static str, rest: Option<[bool; 2]>| {
            let list =
                rest.map(|of| Value::List(of.map(|of| Value::Scalar(Scalar::Bool(of))).to_vec()));
            let fields = vec![
                ("x".to_string(), Value::Scalar(Scalar::Signed(x.into(), 4))),
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
            Value::Scalar(Scalar::Single(1.5)),
            Value::Scalar(Scalar::Single(2.0)),
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

    #[test]
    fn tuples_and_wide_numbers_look_as_debug_prints_them() {
        let tuple = |of: Vec<Scalar>| {
            let fields = of.into_iter().map(|of| (String::new(), Value::Scalar(of)));
            let value = Value::Structure(String::new(), fields.collect());
            Value::read(&mut words(&value).as_slice()).expect("whole")
        };
        let (one, two) = (1u128 << 100, -(1i128 << 99));
        let (single, pair) = (
            tuple(vec![Scalar::Unsigned(one)]),
            tuple(vec![Scalar::Unsigned(one), Scalar::Signed(two, 16)]),
        );
        let arguments = [single, pair];
        let shown = formatted("{0:?} {1:?} {0:#?} {1:#?} {1:x?}", &arguments);
        let expected = format!("{0:?} {1:?} {0:#?} {1:#?} {1:x?}", (one,), (one, two));
        assert_eq!(shown, expected);
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
