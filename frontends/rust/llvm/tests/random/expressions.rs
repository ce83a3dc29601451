//! Expressions of every scalar type.

use super::rng::Rng;
use std::fmt;

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    /// So many bits, with a sign or without.
    Int(u32, bool),
    Bool,
    F32,
    F64,
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Int(bits, true) => write!(f, "i{bits}"),
            Ty::Int(bits, false) => write!(f, "u{bits}"),
            Ty::Bool => f.write_str("bool"),
            Ty::F32 => f.write_str("f32"),
            Ty::F64 => f.write_str("f64"),
        }
    }
}

pub const U8: Ty = Ty::Int(8, false);
pub const U32: Ty = Ty::Int(32, false);
pub const U64: Ty = Ty::Int(64, false);
pub const I64: Ty = Ty::Int(64, true);

/// The variables of a function, and the random numbers.
pub struct Scope<'a> {
    pub rng: &'a mut Rng,
    variables: Vec<(String, Ty)>,
    count: usize,
    /// Whether operations that may panic are used.
    pub panics: bool,
}

impl<'a> Scope<'a> {
    pub fn new(rng: &'a mut Rng) -> Self {
        let panics = rng.one_in(12);
        Self {
            rng,
            variables: Vec::new(),
            count: 0,
            panics,
        }
    }

    /// Any type.
    pub fn any(&mut self) -> Ty {
        match self.rng.below(16) {
            0 => Ty::Bool,
            1 | 2 => Ty::F32,
            3 => Ty::F64,
            _ => self.int(),
        }
    }

    /// A type of integers.
    pub fn int(&mut self) -> Ty {
        let bits = self.rng.pick(&[8, 16, 32, 32, 64, 64, 128]);
        Ty::Int(bits, self.rng.one_in(2))
    }

    /// A name that no other variable has.
    pub fn fresh(&mut self) -> String {
        self.count += 1;
        format!("v{}", self.count)
    }

    /// A variable that is there from now on.
    pub fn declare(&mut self, ty: Ty) -> String {
        let name = self.fresh();
        self.variables.push((name.clone(), ty));
        name
    }

    /// A named variable that is there from now on.
    pub fn introduce(&mut self, name: &str, ty: Ty) {
        self.variables.push((name.to_owned(), ty));
    }

    /// How many variables there are, to come back to.
    pub fn mark(&self) -> usize {
        self.variables.len()
    }

    /// Forgets the variables declared since.
    pub fn release(&mut self, mark: usize) {
        self.variables.truncate(mark);
    }

    /// A variable that may be assigned.
    pub fn assignable(&mut self) -> Option<(String, Ty)> {
        let all: Vec<(String, Ty)> = (self.variables.iter())
            .filter(|(name, _)| name.starts_with('v'))
            .cloned()
            .collect();
        let index = self.rng.below(all.len().max(1));
        all.into_iter().nth(index)
    }

    fn variable(&mut self, ty: Ty) -> Option<String> {
        let fitting: Vec<&String> = (self.variables.iter())
            .filter(|(_, of)| *of == ty)
            .map(|(name, _)| name)
            .collect();
        if fitting.is_empty() {
            return None;
        }
        let index = self.rng.below(fitting.len());
        Some(fitting[index].clone())
    }

    fn literal(&mut self, ty: Ty) -> String {
        let number = self.rng.number();
        match ty {
            Ty::Int(bits, _) if bits <= 64 => format!("(0x{number:x}_u64 as {ty})"),
            Ty::Int(..) => format!("(0x{number:x}{:08x}_u128 as {ty})", self.rng.next() as u32),
            Ty::Bool => format!("{}", number & 1 == 1),
            Ty::F32 => match self.rng.below(3) {
                0 => format!("f32::from_bits(0x{:x})", number as u32),
                _ => format!("{:?}_f32", (number as i32 as f32) / 64.0),
            },
            Ty::F64 => match self.rng.below(3) {
                0 => format!("f64::from_bits(0x{number:x})"),
                _ => format!("{:?}_f64", (number as i32 as f64) / 1024.0),
            },
        }
    }

    fn leaf(&mut self, ty: Ty) -> String {
        match self.rng.below(4) {
            0 => self.literal(ty),
            _ => match self.variable(ty) {
                Some(name) => name,
                None if self.rng.one_in(2) => self.literal(ty),
                None => self.converted(ty, 0),
            },
        }
    }

    /// A value of another type, converted.
    fn converted(&mut self, ty: Ty, depth: usize) -> String {
        let from = match self.variables.len() {
            0 => U32,
            _ => {
                let index = self.rng.below(self.variables.len());
                self.variables[index].1
            }
        };
        let value = match depth {
            0 => match self.variable(from) {
                Some(name) => name,
                None => self.literal(from),
            },
            depth => self.expression(from, depth - 1),
        };
        match (from, ty) {
            (from, ty) if from == ty => value,
            (Ty::Bool, Ty::F32 | Ty::F64) => format!("(({value}) as u8 as {ty})"),
            (_, Ty::Bool) => match from {
                Ty::F32 | Ty::F64 => format!("(({value}) > 0.5)"),
                _ => format!("(({value}) as u8 & 4 == 0)"),
            },
            _ => format!("(({value}) as {ty})"),
        }
    }

    /// An expression of a type.
    pub fn expression(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 {
            return self.leaf(ty);
        }
        if self.rng.one_in(8) {
            return self.converted(ty, depth);
        }
        if self.rng.one_in(10) {
            let condition = self.expression(Ty::Bool, depth - 1);
            let (a, b) = (
                self.expression(ty, depth - 1),
                self.expression(ty, depth - 1),
            );
            return format!("(if {condition} {{ {a} }} else {{ {b} }})");
        }
        match ty {
            Ty::Int(bits, signed) => self.integer(ty, bits, signed, depth - 1),
            Ty::Bool => self.truth(depth - 1),
            Ty::F32 | Ty::F64 => self.float(ty, depth - 1),
        }
    }

    fn integer(&mut self, ty: Ty, bits: u32, signed: bool, depth: usize) -> String {
        let a = self.expression(ty, depth);
        let b = self.expression(ty, depth);
        let amount = self.expression(U32, depth.min(1));
        let choice = self.rng.below(if self.panics { 33 } else { 29 });
        let a = format!("({a})");
        match choice {
            0 => format!("{a}.wrapping_add({b})"),
            1 => format!("{a}.wrapping_sub({b})"),
            2 => format!("{a}.wrapping_mul({b})"),
            3 => format!("({a} & ({b}))"),
            4 => format!("({a} | ({b}))"),
            5 => format!("({a} ^ ({b}))"),
            6 => format!("{a}.wrapping_shl({amount})"),
            7 => format!("{a}.wrapping_shr({amount})"),
            8 => format!("{a}.checked_div({b}).unwrap_or(3)"),
            9 => format!("{a}.checked_rem({b}).unwrap_or(5)"),
            10 => format!("{a}.saturating_add({b})"),
            11 => format!("{a}.saturating_sub({b})"),
            12 => format!("{a}.saturating_mul({b})"),
            13 => format!(
                "{a}.overflowing_{}({b}).0",
                self.rng.pick(&["add", "sub", "mul"])
            ),
            14 => format!(
                "{a}.checked_{}({b}).unwrap_or({a})",
                self.rng.pick(&["add", "sub", "mul"])
            ),
            15 => format!("{a}.rotate_left({amount} % {bits})"),
            16 => format!("{a}.rotate_right({amount} % {bits})"),
            17 => {
                let method = self.rng.pick(&["swap_bytes", "reverse_bits", "to_be"]);
                format!("{a}.{method}()")
            }
            18 => {
                let method = self.rng.pick(&[
                    "count_ones",
                    "count_zeros",
                    "leading_zeros",
                    "trailing_zeros",
                    "leading_ones",
                    "trailing_ones",
                ]);
                format!("({a}.{method}() as {ty})")
            }
            19 => format!("(!{a})"),
            20 => format!("{a}.wrapping_neg()"),
            21 => format!("core::cmp::{}({a}, {b})", self.rng.pick(&["min", "max"])),
            22 => format!("({a}.abs_diff({b}) as {ty})"),
            23 => format!("{a}.wrapping_pow({amount} % 9)"),
            24 => format!("({a}.cmp(&({b})) as i8 as {ty})"),
            25 => match signed {
                true => format!("{a}.wrapping_abs().wrapping_add({a}.signum())"),
                false => format!("({a} >> 1).wrapping_add({a}.is_power_of_two() as {ty})"),
            },
            26 => format!("{ty}::from_le_bytes({a}.to_be_bytes())"),
            27 => match signed {
                true => format!("{a}.checked_rem_euclid({b}).unwrap_or(1)"),
                false => format!("{a}.checked_next_power_of_two().unwrap_or(0)"),
            },
            28 => format!("({a}.overflowing_mul({b}).1 as {ty})"),
            29 => format!("({a} / ({b}))"),
            30 => format!("({a} % ({b}))"),
            31 => format!("{a}.checked_add({b}).unwrap()"),
            _ => format!("{a}.checked_mul({b}).expect(\"product\")"),
        }
    }

    fn truth(&mut self, depth: usize) -> String {
        match self.rng.below(7) {
            0 => {
                let (a, b) = (
                    self.expression(Ty::Bool, depth),
                    self.expression(Ty::Bool, depth),
                );
                format!(
                    "(({a}) {} ({b}))",
                    self.rng.pick(&["&&", "||", "^", "&", "|", "=="])
                )
            }
            1 => format!("(!({}))", self.expression(Ty::Bool, depth)),
            2 => {
                let ty = self.rng.pick(&[Ty::F32, Ty::F64]);
                let (a, b) = (self.expression(ty, depth), self.expression(ty, depth));
                format!(
                    "(({a}) {} ({b}))",
                    self.rng.pick(&["<", ">", "<=", ">=", "==", "!="])
                )
            }
            3 => {
                let ty = self.int();
                let (a, b) = (self.expression(ty, depth), self.expression(ty, depth));
                format!(
                    "({a}).checked_{}({b}).is_some()",
                    self.rng.pick(&["add", "sub", "mul"])
                )
            }
            4 => {
                let a = self.expression(U8, depth);
                let method = self.rng.pick(&[
                    "is_ascii_alphabetic",
                    "is_ascii_digit",
                    "is_ascii_uppercase",
                    "is_ascii_punctuation",
                    "is_ascii_hexdigit",
                ]);
                format!("({a}).{method}()")
            }
            _ => {
                let ty = self.int();
                let (a, b) = (self.expression(ty, depth), self.expression(ty, depth));
                format!(
                    "(({a}) {} ({b}))",
                    self.rng.pick(&["<", ">", "<=", ">=", "==", "!="])
                )
            }
        }
    }

    fn float(&mut self, ty: Ty, depth: usize) -> String {
        let single = ty == Ty::F32;
        let a = format!("({})", self.expression(ty, depth));
        let b = self.expression(ty, depth);
        let n = if single { "n32" } else { "n64" };
        match self.rng.below(15) {
            0 => format!("({a} + ({b}))"),
            1 => format!("({a} - ({b}))"),
            2 => format!("({a} * ({b}))"),
            3 => format!("({a} / ({b}))"),
            4 => format!("(-{a})"),
            5 => format!("{a}.abs()"),
            6 => format!("{n}{a}.copysign({n}({b}))"),
            7 => format!("({n}{a}.{}({b}) + 0.0)", self.rng.pick(&["min", "max"])),
            8 => format!("({a} % ({b}))"),
            9 => format!("{}({a})", if single { "sqrtf" } else { "sqrt" }),
            10 => {
                let c = self.expression(ty, depth.min(1));
                format!("{}({a}, {b}, {c})", if single { "fmaf" } else { "fma" })
            }
            11 => match single {
                true => format!("{}({a})", self.rng.pick(&["floorf", "truncf"])),
                false => format!("{}({a})", self.rng.pick(&["ceil", "rint"])),
            },
            12 => format!("{n}{a}.clamp(-100.0, 1000.0)"),
            13 => format!("{n}{a}.signum()"),
            _ => match single {
                true => format!("f32::from_bits(b32({a}) ^ 0x{:x})", self.rng.next() as u32),
                false => format!("f64::from_bits(b64({a}) ^ 0x{:x})", self.rng.next() as u32),
            },
        }
    }

    /// What is mixed of a value of a type.
    pub fn mixed(&mut self, ty: Ty, value: &str) -> String {
        match ty {
            Ty::Int(128, _) => {
                format!(
                    "mix(&mut h, ({value}) as u64); mix(&mut h, (({value}) as u128 >> 64) as u64);"
                )
            }
            Ty::Int(..) | Ty::Bool => format!("mix(&mut h, ({value}) as u64);"),
            Ty::F32 => format!("mix(&mut h, b32({value}) as u64);"),
            Ty::F64 => format!("mix(&mut h, b64({value}));"),
        }
    }
}
