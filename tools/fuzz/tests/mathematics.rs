//! The library's mathematics: its CLIF, compiled for the host, against exact results, and the simulator against the
//! host.
//!
//! The seed of the random inputs is printed. `MATHEMATICS_SEED` chooses another one, `MATHEMATICS_FUNCTIONS` some
//! functions by name. The heavy tests are ignored: `cargo test --release -p fuzz --test mathematics -- --ignored
//! --nocapture`.

#[path = "mathematics/doubles.rs"]
mod doubles;
#[path = "mathematics/function.rs"]
mod function;
#[path = "mathematics/inputs.rs"]
mod inputs;
#[path = "mathematics/pair.rs"]
mod pair;
#[path = "mathematics/singles.rs"]
mod singles;

use cranelift_codegen::ir::{Type, types};
use doubles::{DOUBLES, Double, Exact as Wide};
use function::{OnHost, signature, simulated};
use inputs::Random;
use rayon::prelude::*;
use singles::{Exact, SINGLES, Single};
use std::sync::Mutex;

/// Random inputs of a function when nobody asks for more.
const RANDOM_INPUTS: usize = 20_000;
/// Of these the simulator gets so many.
const SIMULATED: usize = 5_000;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

fn seed() -> u64 {
    let seed = number("MATHEMATICS_SEED", 1);
    println!("MATHEMATICS_SEED={seed}");
    seed
}

/// The functions that are asked for.
fn wanted(name: &str) -> bool {
    std::env::var("MATHEMATICS_FUNCTIONS")
        .map_or(true, |names| names.split(',').any(|wanted| wanted == name))
}

/// A list of arguments each.
fn inputs(params: &[Type], count: usize, seed: u64) -> Vec<Vec<u64>> {
    let mut lists = match *params {
        [ty] => vec![inputs::corners(ty)],
        [first, second] => inputs::pairs(first, second).into(),
        _ => panic!("{params:?}"),
    };
    let mut random = Random::new(seed);
    for _ in 0..count {
        for (list, &ty) in lists.iter_mut().zip(params) {
            list.push(inputs::random(ty, &mut random));
        }
    }
    lists
}

/// The greatest error found, and where.
#[derive(Clone, Debug, Default)]
struct Worst {
    error: f64,
    at: String,
}

impl Worst {
    fn take(&mut self, error: f64, at: impl FnOnce() -> String) {
        if error > self.error || error.is_nan() {
            *self = Self { error, at: at() };
        }
    }

    fn merge(self, other: Self) -> Self {
        if other.error > self.error || other.error.is_nan() {
            other
        } else {
            self
        }
    }
}

/// The distance from the exact result in units of the last place of f32; infinite where the class or the sign of zero
/// is wrong.
fn single_error(actual: u32, exact: f64) -> f64 {
    let actual = f64::from(f32::from_bits(actual));
    if exact.is_nan() || actual.is_nan() {
        return if exact.is_nan() && actual.is_nan() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    if exact == 0.0 {
        let same = actual == 0.0 && actual.is_sign_negative() == exact.is_sign_negative();
        return if same { 0.0 } else { f64::INFINITY };
    }
    if actual.is_infinite() && exact.is_infinite() {
        return if actual == exact { 0.0 } else { f64::INFINITY };
    }
    if actual == 0.0 && actual.is_sign_negative() != exact.is_sign_negative() {
        return f64::INFINITY;
    }
    let bound = 2f64.powi(128);
    if exact.abs() >= 2.0 * bound && actual.is_infinite() {
        return if actual.signum() == exact.signum() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    // What the format would have next: an infinite result is as far from the exact one as that.
    let [actual, exact] = [actual, exact].map(|value: f64| value.clamp(-bound, bound));
    let exponent = ((exact.to_bits() >> 52 & 0x7ff) as i32 - 1023).clamp(-126, 127);
    (actual - exact).abs() * 2f64.powi(23 - exponent)
}

/// The greatest error of a function of f32 over inputs.
fn single_worst(single: &Single, host: &OnHost, arguments: &[Vec<u64>]) -> Worst {
    let results = host.results(arguments);
    let mut worst = Worst::default();
    let integers = signature(single.name).0.last() == Some(&types::I32);
    for (index, &result) in results.iter().enumerate() {
        let x = f32::from_bits(arguments[0][index] as u32);
        match single.exact {
            Exact::One(exact) => {
                let error = single_error(result as u32, exact(f64::from(x)));
                worst.take(error, || {
                    let actual = f32::from_bits(result as u32);
                    format!(
                        "{}({x:e} = {:#x}) = {actual:e}, not {:e}",
                        single.name,
                        x.to_bits(),
                        exact(f64::from(x))
                    )
                });
            }
            Exact::Two(exact) => {
                let y = arguments[1][index] as u32;
                let y = if integers {
                    f64::from(y as i32)
                } else {
                    f64::from(f32::from_bits(y))
                };
                let error = single_error(result as u32, exact(f64::from(x), y));
                worst.take(error, || {
                    let actual = f32::from_bits(result as u32);
                    format!(
                        "{}({x:e}, {y:e}) = {actual:e}, not {:e}",
                        single.name,
                        exact(f64::from(x), y)
                    )
                });
            }
        }
    }
    worst
}

/// Prints what was found of a function, and how many instructions it has.
fn report(name: &str, worst: &Worst) {
    let [own, all] = function::instructions(name);
    println!(
        "{name}: {:.3} ulp, {own} instructions, {all} with what it calls; {}",
        worst.error, worst.at
    );
}

/// Fails if one is worse than it may be.
fn judge(found: impl IntoIterator<Item = (&'static str, f64, Worst)>) {
    let mut failures = Vec::new();
    for (name, bound, worst) in found {
        if worst.error.is_nan() || worst.error > bound {
            failures.push(format!(
                "{name}: {} ulp instead of {bound}: {}",
                worst.error, worst.at
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn single_precision_is_within_its_bounds() {
    let seed = seed();
    let found: Vec<_> = SINGLES
        .par_iter()
        .filter(|single| wanted(single.name))
        .map(|single| {
            let (params, _) = signature(single.name);
            let host = OnHost::new(single.name);
            let worst = single_worst(single, &host, &inputs(&params, RANDOM_INPUTS, seed));
            (single.name, single.bound, worst)
        })
        .collect();
    for (name, _, worst) in &found {
        report(name, worst);
    }
    judge(found);
}

/// The distance from the exact result in units of the last place of f64.
fn double_error(actual: f64, exact: Wide) -> f64 {
    let value = exact.value;
    if value.high == 0.0 || !value.high.is_finite() {
        let same =
            actual.to_bits() == value.high.to_bits() || actual.is_nan() && value.high.is_nan();
        return if same { 0.0 } else { f64::INFINITY };
    }
    if actual.is_nan() || actual.is_sign_negative() != value.high.is_sign_negative() {
        return f64::INFINITY;
    }
    let exponent = libm::ilogb(value.high) + exact.exponent;
    if exponent >= 1024 && actual.is_infinite() {
        return 0.0;
    }
    // In units of the last place; infinity is what the format would have next.
    let scale = 52 - exponent.clamp(-1022, 1023);
    let actual = if actual.is_infinite() {
        libm::ldexp(actual.signum(), 1024 + scale)
    } else {
        libm::ldexp(actual, scale)
    };
    (value.scaled(exact.exponent + scale) - actual).high.abs()
}

/// The greatest error of a function of f64 over inputs.
fn double_worst(double: &Double, host: &OnHost, arguments: &[Vec<u64>]) -> Worst {
    let results = host.results(arguments);
    let mut worst = Worst::default();
    let (params, _) = signature(double.name);
    for (index, &result) in results.iter().enumerate() {
        let x = f64::from_bits(arguments[0][index]);
        let y = match params.get(1) {
            None => 1.0,
            Some(&types::I32) => f64::from(arguments[1][index] as i32),
            Some(_) => f64::from_bits(arguments[1][index]),
        };
        let actual = f64::from_bits(result);
        let near = (double.near)(x, y);
        let ordinary = [x, y].iter().all(|v| v.is_finite() && *v != 0.0) && !near.is_nan();
        let exact = if ordinary {
            (double.exact)(x, y)
        } else {
            near.into()
        };
        let error = double_error(actual, exact);
        worst.take(error, || {
            format!(
                "{}({x:e}, {y:e}) = {actual:e}, not {near:e} ({exact:?})",
                double.name
            )
        });
    }
    worst
}

#[test]
fn double_precision_is_within_its_bounds() {
    let seed = seed();
    let found: Vec<_> = DOUBLES
        .par_iter()
        .filter(|double| wanted(double.name))
        .map(|double| {
            let (params, _) = signature(double.name);
            let host = OnHost::new(double.name);
            let worst = double_worst(double, &host, &inputs(&params, RANDOM_INPUTS, seed));
            (double.name, double.bound, worst)
        })
        .collect();
    for (name, _, worst) in &found {
        report(name, worst);
    }
    judge(found);
}

/// Ten million random inputs of each.
#[test]
#[ignore = "a minute or more for each function"]
fn double_precision_is_within_its_bounds_for_ten_million() {
    const CHUNK: usize = 100_000;
    let seed = seed();
    let found = DOUBLES
        .iter()
        .filter(|double| wanted(double.name))
        .map(|double| {
            let (params, _) = signature(double.name);
            let worst = (0..100u64)
                .into_par_iter()
                .map_init(
                    || OnHost::new(double.name),
                    |host, chunk| double_worst(double, host, &inputs(&params, CHUNK, seed + chunk)),
                )
                .reduce(Worst::default, Worst::merge);
            report(double.name, &worst);
            (double.name, double.bound, worst)
        });
    let found: Vec<_> = found.collect();
    judge(found);
}

/// What a function of f16 becomes that calls the one of f32 and rounds its result.
#[test]
fn half_precision_is_nearly_rounded_once() {
    let found: Vec<_> = SINGLES
        .par_iter()
        .filter(|single| wanted(single.name))
        .filter_map(|single| {
            let Exact::One(exact) = single.exact else {
                return None;
            };
            let all: Vec<half::f16> = (0..=u16::MAX).map(half::f16::from_bits).collect();
            let arguments = all.iter().map(|x| u64::from(x.to_f32().to_bits()));
            let results = OnHost::new(single.name).results(&[arguments.collect()]);
            let mut worst = Worst::default();
            for (x, result) in all.iter().zip(results) {
                let result = half::f16::from_f32(f32::from_bits(result as u32));
                let exact = exact(x.to_f64());
                let rounded = half::f16::from_f64(exact);
                let error = if result == rounded || result.is_nan() && rounded.is_nan() {
                    0.0
                } else {
                    let exponent = (libm::ilogb(exact)).clamp(-14, 15);
                    (result.to_f64() - exact).abs() * 2f64.powi(10 - exponent)
                };
                worst.take(error, || {
                    format!("{}({x:e}) = {result:e}, not {exact:e}", single.name)
                });
            }
            Some((single.name, 0.501, worst))
        })
        .collect();
    for (name, _, worst) in &found {
        report(name, worst);
    }
    judge(found);
}

/// Every function of the library whose results are numbers.
fn all_names() -> Vec<&'static str> {
    let singles = SINGLES.iter().map(|single| single.name);
    singles
        .chain(DOUBLES.iter().map(|double| double.name))
        .collect()
}

fn simulator_equals_host(random_inputs: usize, most: usize) {
    let seed = seed();
    let failures = Mutex::new(Vec::new());
    all_names()
        .par_iter()
        .filter(|name| wanted(name))
        .for_each(|name| {
            let (params, result) = signature(name);
            let mut arguments = inputs(&params, random_inputs, seed);
            for list in &mut arguments {
                let step = list.len().div_ceil(most);
                *list = list.iter().copied().step_by(step).collect();
            }
            let host = OnHost::new(name).results(&arguments);
            let simulator = simulated(name, &arguments);
            let is_nan = |bits: u64| match result {
                types::F32 => f32::from_bits(bits as u32).is_nan(),
                _ => f64::from_bits(bits).is_nan(),
            };
            for (index, (&wanted, &actual)) in host.iter().zip(&simulator).enumerate() {
                if wanted != actual && !(is_nan(wanted) && is_nan(actual)) {
                    let arguments: Vec<u64> = arguments.iter().map(|list| list[index]).collect();
                    let text =
                        format!("{name}({arguments:#x?}): host {wanted:#x}, simulator {actual:#x}");
                    failures.lock().expect("no panic").push(text);
                    break;
                }
            }
        });
    let failures = failures.into_inner().expect("no panic");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_simulator_gives_the_hosts_bits() {
    simulator_equals_host(RANDOM_INPUTS, SIMULATED);
}

#[test]
#[ignore = "a million inputs each"]
fn the_simulator_gives_the_hosts_bits_for_a_million() {
    simulator_equals_host(1_000_000, usize::MAX);
}

/// All 2^32 of each function of one argument, or every nth with `MATHEMATICS_STRIDE`; a hundred million pairs of the
/// others.
#[test]
#[ignore = "minutes for each function"]
fn single_precision_is_within_its_bounds_everywhere() {
    const CHUNK: u64 = 1 << 20;
    let seed = seed();
    let stride = number("MATHEMATICS_STRIDE", 1);
    let singles = SINGLES.iter().filter(|single| wanted(single.name));
    let found = singles.map(|single| {
        let (params, _) = signature(single.name);
        let chunks = match single.exact {
            Exact::One(_) => (1 << 32) / CHUNK / stride,
            Exact::Two(_) => 100,
        };
        let worst = (0..chunks)
            .into_par_iter()
            .map_init(
                || OnHost::new(single.name),
                |host, chunk| {
                    let arguments = match single.exact {
                        Exact::One(_) => {
                            let numbers = chunk * CHUNK..(chunk + 1) * CHUNK;
                            vec![numbers.map(|n| n * stride + seed % stride).collect()]
                        }
                        Exact::Two(_) => inputs(&params, CHUNK as usize, seed + chunk),
                    };
                    single_worst(single, host, &arguments)
                },
            )
            .reduce(Worst::default, Worst::merge);
        report(single.name, &worst);
        (single.name, single.bound, worst)
    });
    let found: Vec<_> = found.collect();
    judge(found);
}
