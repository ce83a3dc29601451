//! A generator of Rust functions full of variables, with marks.
//!
//! At a mark the host prints every variable that is in scope, as `{:?}` does; the device calls `mark`, where a debugger
//! stops.

use super::rng::Rng;
use std::fmt::Write;

/// Types of variables. Each has a number, and `value` writes an expression of it.
const TYPES: [&str; 24] = [
    "u8",
    "i16",
    "u32",
    "i64",
    "u64",
    "usize",
    "i128",
    "f32",
    "f64",
    "bool",
    "char",
    "(u8, i32)",
    "[u16; 3]",
    "Pair",
    "Wrapped",
    "Shape",
    "Kind",
    "Option<u32>",
    "Option<char>",
    "Option<&'static u64>",
    "&'static str",
    "&'static [i32]",
    "Either<f32, Pair>",
    "Result<(bool, u16), Kind>",
];

const PRELUDE: &str = r#"
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair { first: i16, second: f32 }
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wrapped(u64);
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape { Empty, Line(u16), Area { pair: Pair, sides: [u8; 2] } }
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(i16)]
pub enum Kind { Negative = -5, Zero = 0, Large = 300 }
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Either<A, B> { Left(A), Right(B), Neither }
static NUMBERS: [u64; 4] = [1, 20, 300, u64::MAX];
static SIGNED: [i32; 5] = [-1, 2, -3, 4, i32::MIN];
static WORDS: [&str; 4] = ["", "warp", "a \"quoted\" word", "lane\u{e9}\n"];
pub fn kind(x: u64) -> Kind { match x % 3 { 0 => Kind::Negative, 1 => Kind::Zero, _ => Kind::Large } }
pub fn pair(x: u64) -> Pair { Pair { first: x as i16, second: (x % 1000) as f32 / 8.0 } }
pub fn shape(x: u64) -> Shape {
    match x % 3 {
        0 => Shape::Empty,
        1 => Shape::Line((x >> 3) as u16),
        _ => Shape::Area { pair: pair(x >> 2), sides: [x as u8, (x >> 8) as u8] },
    }
}
"#;

/// An expression of a type from a number `x`.
fn value(ty: usize, x: &str) -> String {
    match TYPES[ty] {
        name @ ("u8" | "i16" | "u32" | "i64" | "u64" | "usize") => format!("({x}) as {name}"),
        "i128" => format!("(({x}) as i128) << 30"),
        "f32" => format!("(({x}) % 4096) as f32 / 16.0"),
        "f64" => format!("(({x}) >> 3) as f64 * 0.1"),
        "bool" => format!("({x}) & 4 != 0"),
        "char" => format!("char::from_u32((({x}) % 0xd800) as u32).unwrap_or('?')"),
        "(u8, i32)" => format!("(({x}) as u8, (({x}) >> 5) as i32)"),
        "[u16; 3]" => format!("[({x}) as u16, (({x}) >> 7) as u16, 9]"),
        "Pair" => format!("pair({x})"),
        "Wrapped" => format!("Wrapped({x})"),
        "Shape" => format!("shape({x})"),
        "Kind" => format!("kind({x})"),
        "Option<u32>" => format!("if ({x}) & 1 == 0 {{ None }} else {{ Some(({x}) as u32) }}"),
        "Option<char>" => format!("char::from_u32(({x}) as u32)"),
        "Option<&'static u64>" => format!("NUMBERS.get((({x}) % 6) as usize)"),
        "&'static str" => format!("WORDS[(({x}) % 4) as usize]"),
        "&'static [i32]" => format!("&SIGNED[(({x}) % 5) as usize..]"),
        "Either<f32, Pair>" => format!(
            "match ({x}) % 3 {{ 0 => Either::Left(({x}) as u8 as f32), 1 => Either::Right(pair({x})), \
             _ => Either::Neither }}"
        ),
        _ => format!(
            "if ({x}) & 2 == 0 {{ Ok((({x}) & 8 == 0, ({x}) as u16)) }} else {{ Err(kind({x})) }}"
        ),
    }
}

/// A function while it is written.
struct Writer<'r> {
    rng: &'r mut Rng,
    text: String,
    /// Names in scope and their types.
    names: Vec<(String, usize)>,
    next: u32,
    marks: u32,
    depth: usize,
    /// Whether names are used again.
    shadows: bool,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", 4 * (self.depth + 1));
    }

    /// The type of what a name means: of several of one name the innermost.
    fn type_of(&self, name: &str) -> Option<usize> {
        let known = self.names.iter().rev().find(|known| known.0 == name);
        known.map(|known| known.1)
    }

    /// A number made of what is in scope.
    fn number(&mut self) -> String {
        let constant = self.rng.number();
        let is_number =
            |ty: usize| matches!(TYPES[ty], "u8" | "i16" | "u32" | "i64" | "u64" | "usize");
        let numbers: Vec<&String> = (self.names.iter())
            .filter(|(name, _)| self.type_of(name).is_some_and(is_number))
            .map(|(name, _)| name)
            .collect();
        match numbers.len() {
            0 => format!("x ^ {constant}"),
            count => {
                let name = numbers[self.rng.below(count)];
                format!(
                    "x.rotate_left({}) ^ ({name} as u64) ^ {constant}",
                    self.rng.below(64)
                )
            }
        }
    }

    /// All variables in scope, each by its name.
    fn mark(&mut self) {
        self.marks += 1;
        let mut shown: Vec<&String> = self.names.iter().map(|(name, _)| name).collect();
        shown.sort_unstable();
        shown.dedup();
        let values: Vec<String> = shown
            .iter()
            .map(|name| format!("({name:?}, &{name} as &dyn Show)"))
            .collect();
        let line = format!("mark!({}, [{}]);", self.marks, values.join(", "));
        self.line(&line);
    }

    fn statements(&mut self, count: usize) {
        let in_scope = self.names.len();
        for _ in 0..count {
            self.statement();
        }
        self.mark();
        self.names.truncate(in_scope);
    }

    fn statement(&mut self) {
        let number = self.number();
        match self.rng.below(9) {
            0..=2 => {
                let ty = self.rng.below(TYPES.len());
                // Now and then a name that is there already.
                let shadowed = self.shadows && self.names.len() > 2 && self.rng.one_in(6);
                let name = match shadowed {
                    // Never `x`, which numbers are made of.
                    true => self.names[1 + self.rng.below(self.names.len() - 1)]
                        .0
                        .clone(),
                    false => {
                        self.next += 1;
                        format!("a{}", self.next)
                    }
                };
                let line = format!("let mut {name}: {} = {};", TYPES[ty], value(ty, &number));
                self.line(&line);
                self.names.push((name, ty));
            }
            3 | 4 if !self.names.is_empty() => {
                let (name, _) = self.names[self.rng.below(self.names.len())].clone();
                let ty = self.type_of(&name).unwrap_or(0);
                let line = format!("{name} = {};", value(ty, &number));
                self.line(&line);
            }
            5 if self.depth < 3 => {
                let line = format!("if ({number}) % 3 != 0 {{");
                self.line(&line);
                self.depth += 1;
                self.statements(2);
                self.depth -= 1;
                self.line("} else {");
                self.depth += 1;
                self.statements(2);
                self.depth -= 1;
                self.line("}");
            }
            6 if self.depth < 2 => {
                self.next += 1;
                let name = format!("n{}", self.next);
                let line = format!("for mut {name} in 0..({number}) % 4 {{");
                self.line(&line);
                self.depth += 1;
                self.names.push((name, 4));
                self.statements(3);
                self.names.pop();
                self.depth -= 1;
                self.line("}");
            }
            7 if self.depth < 3 => {
                let line =
                    format!("if let Some(found) = NUMBERS.get((({number}) % 7) as usize) {{");
                self.line(&line);
                self.depth += 1;
                let copy = self.next;
                let line = format!("let mut c{copy} = *found;");
                self.line(&line);
                self.names.push((format!("c{copy}"), 4));
                self.statements(1);
                self.names.pop();
                self.depth -= 1;
                self.line("}");
            }
            _ => self.mark(),
        }
    }
}

/// Functions `k0`, `k1`, …, the same for host and device but for what `mark!` is. With `shadows` names are used again.
pub fn functions(rng: &mut Rng, count: usize, shadows: bool) -> String {
    let mut text = PRELUDE.to_owned();
    for number in 0..count {
        let mut writer = Writer {
            rng,
            text: String::new(),
            names: vec![("x".to_owned(), 4)],
            next: 0,
            marks: 0,
            depth: 0,
            shadows,
        };
        writer.statements(14);
        let _ = write!(
            text,
            "#[unsafe(no_mangle)]\npub extern \"C\" fn k{number}(x: u64) {{\n    let mut x = x;\n{}}}\n",
            writer.text
        );
    }
    text
}

/// The file for the device, where a mark is a call.
pub fn device(functions: &str) -> String {
    let call = |line: &str| match line.split_once("mark!(") {
        Some((before, rest)) => {
            let number = rest.split(',').next().unwrap_or_default();
            format!("{before}mark({number});\n")
        }
        None => format!("{line}\n"),
    };
    let functions: String = functions.lines().map(call).collect();
    format!(
        "#![no_std]\n#![crate_type = \"lib\"]\n\
         static mut MARKED: u32 = 0;\n\
         #[inline(never)]\nfn mark(number: u32) {{\n    \
         unsafe {{ core::ptr::write_volatile(&raw mut MARKED, number) }}\n}}\n{functions}\n"
    )
}

/// The file for the host: prints a line `number name value` for each variable at each mark, and one without a name
/// before them.
pub fn host(functions: &str, count: usize, inputs: &[u64]) -> String {
    let mut main = String::from("fn main() {\n");
    for number in 0..count {
        for input in inputs {
            let _ = writeln!(
                main,
                "    println!(\"= {number} {input}\");\n    k{number}({input});"
            );
        }
    }
    main.push_str("}\n");
    format!(
        "trait Show {{ fn show(&self) -> String; }}\n\
         impl<T: std::fmt::Debug> Show for T {{ fn show(&self) -> String {{ format!(\"{{self:?}}\") }} }}\n\
         macro_rules! mark {{ ($number:expr, $values:tt) => {{ mark($number, &$values) }} }}\n\
         fn mark(number: u32, values: &[(&str, &dyn Show)]) {{\n    println!(\"@ {{number}}\");\n    \
         for (name, value) in values {{ println!(\"{{name}} {{}}\", value.show()); }}\n}}\n{functions}{main}"
    )
}
