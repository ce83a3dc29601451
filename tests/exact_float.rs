//! Division and square root against the host's, which IEEE 754 leaves no choice, with MUFU at its nearest results and
//! moved within its bound.
//!
//! The inputs are the numbers where such code goes wrong: all pairs of corner values, quotients and roots next to the
//! midpoint of two neighbours, results on the edge of and among the subnormal numbers, and random bits. Roots of f16
//! are all there are.

#![cfg(all(feature = "asm", feature = "driver", feature = "sim"))]

mod common;

use cranelift_thisgpu::asm::listing;
use cranelift_thisgpu::compile::Code;
use cranelift_thisgpu::driver::{Device, Grid, Pod};
use cranelift_thisgpu::sim::{Reference, SimConfig};
use cranelift_thisgpu::unstable::isa::random::Random as Sequence;
use half::f16;

/// Reproducible numbers.
struct Random(Sequence);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number of `fraction` bits at an exponent field between `low` and `high`.
    fn number(&mut self, fraction: u32, low: u64, high: u64) -> u64 {
        let exponent = low + self.next() % (high - low + 1);
        exponent << fraction | self.next() & ((1 << fraction) - 1)
    }
}

/// Seeds of the perturbation; none is the nearest result.
const PERTURBATIONS: [Option<u64>; 4] = [None, Some(1), Some(0x5eed), Some(0xdead_beef)];

/// A kernel of `operation` (its CLIF text on v3 and v4) on elements of so many bytes.
fn compile(ty: &str, operation: &str, bytes: usize) -> Code {
    let text = format!(
        "; kernel
function %k(i64, i64, i64, i32) {{
    fn0 = %gpu_ctaid_x() -> i32
    fn1 = %gpu_ntid_x() -> i32
    fn2 = %gpu_tid_x() -> i32
    fn3 = %gpu_rcp_f32(f32) -> f32
block0(v0: i64, v1: i64, v2: i64, v20: i32):
    v10 = call fn0()
    v11 = call fn1()
    v12 = call fn2()
    v13 = imul v10, v11
    v14 = iadd v13, v12
    v15 = icmp ult v14, v20
    brif v15, block1, block2
block1:
    v16 = uextend.i64 v14
    v17 = iconst.i64 {bytes}
    v18 = imul v16, v17
    v21 = iadd v0, v18
    v22 = iadd v1, v18
    v23 = iadd v2, v18
    v3 = load.{ty} aligned v21
    v4 = load.{ty} aligned v22
    v5 = {operation}
    store aligned v5, v23
    jump block2
block2:
    return
}}
"
    );
    common::compile(&text)
}

/// Runs `operation` (its CLIF text on v3 and v4) on all pairs.
fn run<T: Pod>(ty: &str, operation: &str, x: &[T], y: &[T]) -> Vec<(Option<u64>, Vec<T>)> {
    let code = compile(ty, operation, size_of::<T>());
    let launch = |perturbation| {
        let device = Device::simulator(SimConfig {
            semantics: Reference {
                perturbation,
                ..Reference::default()
            },
            check: perturbation == PERTURBATIONS[0],
            ..SimConfig::default()
        });
        let (dx, dy) = (device.upload(x).unwrap(), device.upload(y).unwrap());
        let out = device.allocate(size_of_val(x) as u64).unwrap();
        let n = x.len() as u32;
        let grid = Grid::for_elems(n, 128);
        common::run(&device, &code, "k", grid, &[&dx, &dy, &out, &n], operation);
        (perturbation, device.download(&out).unwrap())
    };
    PERTURBATIONS.map(launch).into()
}

/// All pairs of `values`.
fn pairs(values: &[u64]) -> Vec<(u64, u64)> {
    values
        .iter()
        .flat_map(|&x| values.iter().map(move |&y| (x, y)))
        .collect()
}

/// Corner values of a format: zeros, the smallest and largest subnormal and normal numbers, one and its neighbours,
/// infinity, NaN; both signs.
fn corners(fraction: u32, exponent: u32) -> Vec<u64> {
    let one = ((1u64 << (exponent - 1)) - 1) << fraction;
    let infinity = ((1u64 << exponent) - 1) << fraction;
    let step = 1u64 << fraction;
    let positive = [
        0,
        1,
        2,
        3,
        step / 2,
        step - 1,
        step,
        step + 1,
        2 * step - 1,
        2 * step,
        one - step,
        one - 1,
        one,
        one + 1,
        one + step / 2,
        one + step - 1,
        one + step,
        one + 2 * step,
        infinity - step,
        infinity - 1,
        infinity,
        infinity + step / 2,
    ];
    let sign = 1u64 << (fraction + exponent);
    positive.iter().flat_map(|&x| [x, x | sign]).collect()
}

/// Operands of divisions in a format of so many fraction and exponent bits.
fn dividends(fraction: u32, exponent: u32, count: usize, seed: u64) -> Vec<(u64, u64)> {
    let mut random = Random(Sequence::new(seed));
    let mut list = pairs(&corners(fraction, exponent));
    let top = (1u64 << exponent) - 2;
    let bias = (1u64 << (exponent - 1)) - 1;
    let mask = u64::MAX >> (63 - fraction - exponent);
    for i in 0..count {
        let (x, y) = match i % 4 {
            0 => (random.next() & mask, random.next() & mask),
            // Results around and below the smallest normal number.
            1 => {
                let y = random.number(fraction, bias, top);
                let field = y >> fraction;
                let x = random.number(fraction, 0, (field - bias + 3).min(top));
                (x, y)
            }
            // Few bits: exact quotients, and ties among the subnormal ones.
            2 => {
                let few = |r: u64| (r & 0xf) << (fraction - 4);
                let x = random.number(4, 0, 6) << (fraction - 4) | few(random.next());
                (x, random.number(4, bias, bias + 8) << (fraction - 4))
            }
            _ => {
                let (low, high) = (bias - 2, bias + 2);
                (
                    random.number(fraction, low, high),
                    random.number(fraction, low, high),
                )
            }
        };
        list.push((x, y));
    }
    list
}

/// Compares with what the host says; NaN is compared as NaN.
fn check<T: Copy + Into<u64>>(
    what: &str,
    inputs: &[(u64, u64)],
    results: Vec<(Option<u64>, Vec<T>)>,
    expected: impl Fn(u64, u64) -> u64,
    is_nan: impl Fn(u64) -> bool,
) {
    for (seed, results) in results {
        for (&(x, y), actual) in inputs.iter().zip(results) {
            let (actual, expected): (u64, u64) = (actual.into(), expected(x, y));
            assert!(
                actual == expected || is_nan(actual) && is_nan(expected),
                "{what} of {x:#x}, {y:#x} is {actual:#x} instead of {expected:#x}, perturbation {seed:?}"
            );
        }
    }
}

fn f16_nan(bits: u64) -> bool {
    f16::from_bits(bits as u16).is_nan()
}

fn f32_nan(bits: u64) -> bool {
    f32::from_bits(bits as u32).is_nan()
}

fn f64_nan(bits: u64) -> bool {
    f64::from_bits(bits).is_nan()
}

#[test]
fn division_f16() {
    let inputs = dividends(10, 5, 20_000, 1);
    let x: Vec<u16> = inputs.iter().map(|p| p.0 as u16).collect();
    let y: Vec<u16> = inputs.iter().map(|p| p.1 as u16).collect();
    // A quotient of 53 bits rounds to the right one of 11.
    let expected = |x: u64, y: u64| {
        let [x, y] = [x, y].map(|bits| f64::from(f16::from_bits(bits as u16)));
        u64::from(f16::from_f64(x / y).to_bits())
    };
    check(
        "f16 division",
        &inputs,
        run("f16", "fdiv v3, v4", &x, &y),
        expected,
        f16_nan,
    );
}

#[test]
fn division_f32() {
    let inputs = dividends(23, 8, 20_000, 2);
    let x: Vec<u32> = inputs.iter().map(|p| p.0 as u32).collect();
    let y: Vec<u32> = inputs.iter().map(|p| p.1 as u32).collect();
    let expected =
        |x: u64, y: u64| u64::from((f32::from_bits(x as u32) / f32::from_bits(y as u32)).to_bits());
    check(
        "f32 division",
        &inputs,
        run("f32", "fdiv v3, v4", &x, &y),
        expected,
        f32_nan,
    );
}

#[test]
fn division_f64() {
    let mut inputs = dividends(52, 11, 20_000, 3);
    // Quotients next to the midpoint of two neighbours: a divisor times a midpoint, and its neighbours.
    let mut random = Random(Sequence::new(4));
    for _ in 0..4_000 {
        let y = random.number(52, 1023, 1023);
        let q = 1u128 << 53 | u128::from(random.next() >> 11) << 1 | 1;
        let product = q * u128::from(y & ((1 << 52) - 1) | 1 << 52);
        let shift = 128 - product.leading_zeros() - 53;
        let x = (product >> shift) as u64 & ((1 << 52) - 1) | 1023 << 52;
        inputs.extend([(x, y), (x + 1, y), (x - 1, y)]);
    }
    // Divisors next to a power of two.
    for i in 1..40 {
        for j in 1..40 {
            inputs.push(((1024 << 52) - i, (1024 << 52) - j));
            inputs.push(((1023 << 52) + i, (1024 << 52) - j));
        }
    }
    let x: Vec<u64> = inputs.iter().map(|p| p.0).collect();
    let y: Vec<u64> = inputs.iter().map(|p| p.1).collect();
    let expected = |x, y| (f64::from_bits(x) / f64::from_bits(y)).to_bits();
    check(
        "f64 division",
        &inputs,
        run("f64", "fdiv v3, v4", &x, &y),
        expected,
        f64_nan,
    );
}

/// Operands of roots; the second of each pair is not looked at.
fn radicands(fraction: u32, exponent: u32, count: usize, seed: u64) -> Vec<(u64, u64)> {
    let mut random = Random(Sequence::new(seed));
    let mut list: Vec<(u64, u64)> = corners(fraction, exponent)
        .into_iter()
        .map(|x| (x, 0))
        .collect();
    let top = (1u64 << exponent) - 2;
    let bias = (1u64 << (exponent - 1)) - 1;
    for i in 0..count {
        let x = match i % 3 {
            0 => random.number(fraction, 0, top),
            1 => random.number(fraction, 0, 0) >> (random.next() % u64::from(fraction)),
            _ => random.number(fraction, bias, bias + 1),
        };
        list.push((x, 0));
    }
    list
}

#[test]
fn roots_f16() {
    let inputs: Vec<(u64, u64)> = (0..=0xffff).map(|x| (x, 0)).collect();
    let x: Vec<u16> = inputs.iter().map(|p| p.0 as u16).collect();
    let expected =
        |x: u64, _| u64::from(f16::from_f64(f64::from(f16::from_bits(x as u16)).sqrt()).to_bits());
    check(
        "f16 root",
        &inputs,
        run("f16", "sqrt v3", &x, &x),
        expected,
        f16_nan,
    );
}

#[test]
fn roots_f32() {
    let inputs = radicands(23, 8, 20_000, 5);
    let x: Vec<u32> = inputs.iter().map(|p| p.0 as u32).collect();
    let expected = |x: u64, _| u64::from(f32::from_bits(x as u32).sqrt().to_bits());
    check(
        "f32 root",
        &inputs,
        run("f32", "sqrt v3", &x, &x),
        expected,
        f32_nan,
    );
}

#[test]
fn roots_f64() {
    let mut inputs = radicands(52, 11, 20_000, 6);
    // Squares of midpoints and their neighbours, and numbers next to powers of two.
    let mut random = Random(Sequence::new(7));
    for _ in 0..4_000 {
        let root = 1u128 << 53 | u128::from(random.next() >> 11) << 1 | 1;
        let square = root * root;
        let shift = 128 - square.leading_zeros() - 53;
        let odd = u64::from(square.leading_zeros().is_multiple_of(2));
        let x = (square >> shift) as u64 & ((1 << 52) - 1) | (1023 + odd) << 52;
        inputs.extend([(x, 0), (x + 1, 0), (x - 1, 0)]);
    }
    for i in 1..100 {
        inputs.extend([
            ((1025 << 52) - i, 0),
            ((1024 << 52) - i, 0),
            ((1023 << 52) + i, 0),
        ]);
    }
    let x: Vec<u64> = inputs.iter().map(|p| p.0).collect();
    let expected = |x, _| f64::from_bits(x).sqrt().to_bits();
    check(
        "f64 root",
        &inputs,
        run("f64", "sqrt v3", &x, &x),
        expected,
        f64_nan,
    );
}

/// The perturbation is there: MUFU itself moves for many operands, and stays where it is without a seed.
#[test]
fn mufu_moves() {
    let y: Vec<u32> = (0..2000u32)
        .map(|i| (1.0 + i as f32 / 7.0).to_bits())
        .collect();
    for (seed, results) in run("f32", "call fn3(v4)", &y, &y) {
        let moved = y
            .iter()
            .zip(&results)
            .filter(|&(&y, &result)| (1.0 / f32::from_bits(y)).to_bits() != result)
            .count();
        let enough = if seed.is_none() {
            moved == 0
        } else {
            moved > y.len() / 4
        };
        assert!(
            enough,
            "{moved} of {} moved, perturbation {seed:?}",
            y.len()
        );
    }
}

/// Divisions and roots begin with MUFU, so that moving it means something.
#[test]
fn operations_use_mufu() {
    for (ty, bytes) in [("f16", 2), ("f32", 4), ("f64", 8)] {
        for (operation, function) in [("fdiv v3, v4", "MUFU.RCP"), ("sqrt v3", "MUFU.RSQ")] {
            let (text, _) = listing(compile(ty, operation, bytes).object());
            assert!(text.contains(function), "{operation} of {ty}:\n{text}");
        }
    }
}
