//! A generator of Rust functions: `fn fN(x: &[u64; 6]) -> u64`.
//!
//! Every function is made of statements that compute numbers in one of many ways and mix them into the result. What a
//! host and a device may do differently and both be right (the bits of a NaN, the sign of the lesser of two zeros) is
//! never mixed.

use super::expressions::{Scope, Ty};
use super::rng::Rng;
use super::snippets;
use std::fmt::Write;

/// Numbers that a function gets.
pub const INPUTS: usize = 6;

/// What all functions use.
const PRELUDE: &str = "
#[allow(unused_imports)]
use core::sync::atomic::{AtomicI8, AtomicU16, AtomicU32, AtomicU64, Ordering};
unsafe extern \"C\" {
    safe fn sqrtf(x: f32) -> f32;
    safe fn sqrt(x: f64) -> f64;
    safe fn fmaf(x: f32, y: f32, z: f32) -> f32;
    safe fn fma(x: f64, y: f64, z: f64) -> f64;
    safe fn floorf(x: f32) -> f32;
    safe fn ceil(x: f64) -> f64;
    safe fn truncf(x: f32) -> f32;
    safe fn rint(x: f64) -> f64;
}
#[inline]
fn mix(h: &mut u64, v: u64) {
    *h = (*h ^ v).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
}
fn b32(x: f32) -> u32 { if x.is_nan() { 7 } else { x.to_bits() } }
fn b64(x: f64) -> u64 { if x.is_nan() { 7 } else { x.to_bits() } }
fn n32(x: f32) -> f32 { if x.is_nan() { 1.5 } else { x } }
fn n64(x: f64) -> f64 { if x.is_nan() { 1.5 } else { x } }
static TABLE: [u32; 16] = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 0xffff_fff0];
static WORDS: [&str; 5] = [\"\", \"warp\", \"lane\\u{e9}\", \"block of threads\", \"0x1F\"];
static NESTED: [(u8, &[i16]); 3] = [(1, &[1, -2]), (200, &[]), (7, &[30000, -30000, 5])];
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Point { x: i32, y: u8, z: i64 }
#[derive(Clone, Copy)]
enum Shape { Empty, Line(u16), Box { w: u32, h: i8 }, Far(i128) }
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind { A, B, C = 40, D }
fn kind(x: u32) -> Kind { match x % 4 { 0 => Kind::A, 1 => Kind::B, 2 => Kind::C, _ => Kind::D } }
fn shape(k: u32, v: u64) -> Shape {
    match k % 4 { 0 => Shape::Empty, 1 => Shape::Line(v as u16), 2 => Shape::Box { w: v as u32, h: (v >> 9) as i8 }, _ => Shape::Far((v as i128) << 40) }
}
trait Step { fn step(&self, x: u64) -> u64; fn twice(&self, x: u64) -> u64 { self.step(self.step(x)) } }
struct Add(u32);
struct Rot(u8);
struct Neg;
impl Step for Add { fn step(&self, x: u64) -> u64 { x.wrapping_add(u64::from(self.0)) } }
impl Step for Rot { fn step(&self, x: u64) -> u64 { x.rotate_left(u32::from(self.0) & 63) } }
impl Step for Neg { fn step(&self, x: u64) -> u64 { !x } fn twice(&self, x: u64) -> u64 { x ^ 5 } }
fn apply<S: Step + ?Sized>(s: &S, x: u64) -> u64 { s.twice(x) ^ s.step(1) }
fn ackermann(m: u32, n: u32) -> u32 { match (m, n) { (0, n) => n + 1, (m, 0) => ackermann(m - 1, 1), (m, n) => ackermann(m - 1, ackermann(m, n - 1)) } }
fn parse(text: &str) -> Result<u32, u8> {
    let mut n = 0_u32;
    for c in text.bytes() {
        let d = (c as char).to_digit(16).ok_or(c)?;
        n = n.checked_mul(16).and_then(|n| n.checked_add(d)).ok_or(0)?;
    }
    Ok(n)
}
fn gcd(a: u64, b: u64) -> u64 { if b == 0 { a } else { gcd(b, a % b) } }
struct Fib(u32, u32);
impl Iterator for Fib { type Item = u32; fn next(&mut self) -> Option<u32> { let n = self.0; self.0 = self.1; self.1 = n.checked_add(self.1)?; Some(n) } }
";

/// The functions as a file, numbered from 0.
pub fn functions(rng: &mut Rng, count: usize) -> String {
    let mut text = PRELUDE.to_owned();
    for number in 0..count {
        function(rng, number, &mut text);
    }
    text
}

fn function(rng: &mut Rng, number: usize, text: &mut String) {
    let mut scope = Scope::new(rng);
    let mut body = String::new();
    for index in 0..INPUTS {
        let ty = scope.any();
        let value = match ty {
            Ty::Int(bits, _) if bits <= 64 => format!("x[{index}] as {ty}"),
            Ty::Int(..) => format!(
                "((x[{index}] as u128) << 64 | x[{}] as u128) as {ty}",
                (index + 1) % INPUTS
            ),
            Ty::Bool => format!("x[{index}] & 1 == 1"),
            Ty::F32 => format!("f32::from_bits(x[{index}] as u32)"),
            Ty::F64 => format!("f64::from_bits(x[{index}])"),
        };
        let name = scope.declare(ty);
        writeln!(body, "    let mut {name}: {ty} = {value};").unwrap();
    }
    let statements = 2 + scope.rng.below(6);
    for _ in 0..statements {
        body.push_str(&snippets::statement(&mut scope, 3));
    }
    writeln!(
        text,
        "#[allow(unused, arithmetic_overflow, unconditional_panic)]\n#[inline(never)]\n\
         pub fn f{number}(x: &[u64; {INPUTS}]) -> u64 {{\n    let mut h = {number}_u64;\n{body}    h\n}}"
    )
    .unwrap();
}

/// The file for the device: kernel `kN` calls function N for each thread.
pub fn device(functions: &str, count: usize) -> String {
    let mut text = format!(
        "#![no_std]\n#![crate_type = \"lib\"]\n{functions}\n\
         unsafe extern \"C\" {{ safe fn __thisgpu_tid_x() -> u32; }}\n"
    );
    for number in 0..count {
        writeln!(
            text,
            "#[unsafe(no_mangle)]\n\
             pub unsafe extern \"C\" fn k{number}(x: *const [u64; {INPUTS}], out: *mut u64) {{\n    \
             let i = __thisgpu_tid_x() as usize;\n    unsafe {{ *out.add(i) = f{number}(&*x.add(i)) }}\n}}"
        )
        .unwrap();
    }
    text
}

/// The file for the host: a program that prints what each function gives for each input, or that it panicked.
pub fn host(functions: &str, count: usize, inputs: &[[u64; INPUTS]]) -> String {
    let names: Vec<String> = (0..count).map(|number| format!("f{number}")).collect();
    format!(
        "{functions}\nconst INPUTS: [[u64; {INPUTS}]; {}] = {inputs:?};\nfn main() {{\n    \
         std::panic::set_hook(Box::new(|_| {{}}));\n    \
         let functions: [fn(&[u64; {INPUTS}]) -> u64; {count}] = [{}];\n    \
         for f in functions {{\n        for x in &INPUTS {{\n            \
         match std::panic::catch_unwind(|| f(x)) {{ \
         Ok(v) => println!(\"{{v}}\"), Err(_) => println!(\"panic\") }}\n        }}\n    }}\n}}\n",
        inputs.len(),
        names.join(", ")
    )
}
