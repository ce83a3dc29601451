//! The functions of f64 and what they compute, with about 100 digits.

use super::pair::{LN_2, LN_10, Pair};
use astro_float::{BigFloat, Consts, RoundingMode};
use std::cell::RefCell;

/// value * 2^exponent.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    pub value: Pair,
    pub exponent: i32,
}

impl From<Pair> for Exact {
    fn from(value: Pair) -> Self {
        let exponent = 0;
        Self { value, exponent }
    }
}

impl From<f64> for Exact {
    fn from(value: f64) -> Self {
        Pair::from(value).into()
    }
}

impl From<(Pair, i32)> for Exact {
    fn from((value, exponent): (Pair, i32)) -> Self {
        Self { value, exponent }
    }
}

/// A function. Those of one argument ignore the second.
pub struct Double {
    /// Its name.
    pub name: &'static str,
    /// The greatest error in units of the last place.
    pub bound: f64,
    /// The result in f64, for the special cases.
    pub near: fn(f64, f64) -> f64,
    /// The result where there is no special case.
    pub exact: fn(f64, f64) -> Exact,
}

macro_rules! doubles {
    ($($name:literal, $bound:literal, $near:expr, $exact:expr;)*) => {
        /// All of them.
        pub const DOUBLES: &[Double] = &[$(Double {
            name: $name,
            bound: $bound,
            near: $near,
            exact: $exact,
        }),*];
    };
}

doubles! {
    "exp", 1.0, |x, _| libm::exp(x), |x, _| Pair::from(x).exp().into();
    "exp2", 1.0, |x, _| libm::exp2(x), |x, _| exp2(x);
    "exp10", 1.0, |x, _| libm::exp10(x), |x, _| (LN_10 * x.clamp(-1e4, 1e4)).exp().into();
    "expm1", 1.2, |x, _| libm::expm1(x), |x, _| expm1(x);
    "sinh", 1.0, |x, _| libm::sinh(x), |x, _| sinh(x);
    "cosh", 1.0, |x, _| libm::cosh(x), |x, _| cosh(x);
    "tanh", 1.0, |x, _| libm::tanh(x), |x, _| tanh(x);
    "log", 1.0, |x, _| libm::log(x), |x, _| log(x).into();
    "log2", 1.0, |x, _| libm::log2(x), |x, _| (log(x) / LN_2).into();
    "log10", 1.0, |x, _| libm::log10(x), |x, _| (log(x) / LN_10).into();
    "log1p", 1.0, |x, _| libm::log1p(x), |x, _| log1p(x);
    "asinh", 1.0, |x, _| libm::asinh(x), |x, _| asinh(x);
    "acosh", 1.0, |x, _| if x < 1.0 { f64::NAN } else { libm::acosh(x) }, |x, _| acosh(x);
    "atanh", 1.0, |x, _| libm::atanh(x), |x, _| atanh(x);
    "sin", 1.0, |x, _| libm::sin(x), |x, _| sin_cos_tan(x, |x, p, rm, c| x.sin(p, rm, c), |x| x.sin_cos().0, Some(x));
    "cos", 1.0, |x, _| libm::cos(x), |x, _| sin_cos_tan(x, |x, p, rm, c| x.cos(p, rm, c), |x| x.sin_cos().1, None);
    "tan", 1.3, |x, _| libm::tan(x), |x, _| sin_cos_tan(x, |x, p, rm, c| x.tan(p, rm, c), tan, Some(x));
    "asin", 1.0, |x, _| libm::asin(x), |x, _| asin(x);
    "acos", 1.0, |x, _| libm::acos(x), |x, _| acos(x).into();
    "atan", 1.2, |x, _| libm::atan(x), |x, _| atan(x);
    "atan2", 1.1, libm::atan2, atan2;
    "pow", 1.0, libm::pow, pow;
    "__powidf2", 1.0, libm::pow, pow;
    "ldexp", 0.5, |x, n| libm::ldexp(x, n as i32), |x, n| ldexp(x, n as i32);
    "rhypot", 1.0, |x, y| 1.0 / libm::hypot(x, y), rhypot;
    "hypot", 1.0, libm::hypot, hypot;
    "rsqrt", 1.0, |x, _| 1.0 / libm::sqrt(x), |x, _| rsqrt(x);
    "cbrt", 1.0, |x, _| libm::cbrt(x), |x, _| cbrt(x);
    "erf", 1.1, |x, _| libm::erf(x), |x, _| erf(x);
    "fmod", 0.0, libm::fmod, |x, y| (x % y).into();
    "round", 0.0, |x, _| libm::round(x), |x, _| x.round().into();
    "rint", 0.0, |x, _| libm::rint(x), |x, _| x.round_ties_even().into();
    "floor", 0.0, |x, _| libm::floor(x), |x, _| x.floor().into();
    "ceil", 0.0, |x, _| libm::ceil(x), |x, _| x.ceil().into();
    "trunc", 0.0, |x, _| libm::trunc(x), |x, _| x.trunc().into();
    "sqrt", 0.501, |x, _| libm::sqrt(x), |x, _| sqrt(x);
    "fabs", 0.0, |x, _| libm::fabs(x), |x, _| x.abs().into();
    "copysign", 0.0, libm::copysign, |x, y| x.copysign(y).into();
    "fmin", 0.0, super::singles::least, |x, y| super::singles::least(x, y).into();
    "fmax", 0.0, super::singles::greatest, |x, y| super::singles::greatest(x, y).into();
}

/// Below this x^3 does not count beside x, nor x^2 in the second part.
const TINY: f64 = 1e-100;

/// A number as one between 1 and 2 and an exponent.
fn parts(x: f64) -> (Pair, i32) {
    let exponent = libm::ilogb(x);
    // In two steps: 2^1074 is not a number.
    let half = exponent / 2;
    (
        Pair::from(libm::ldexp(libm::ldexp(x, -half), half - exponent)),
        exponent,
    )
}

/// x - factor x^2 + … where the rest does not count.
fn tiny(x: f64) -> Option<Exact> {
    (x.abs() < TINY).then(|| parts(x).into())
}

fn exp2(x: f64) -> Exact {
    let n = x.round().clamp(-5000.0, 5000.0);
    let (value, exponent) = (LN_2 * (x - n).clamp(-0.5, 0.5)).exp();
    (value, exponent + n as i32).into()
}

fn expm1(x: f64) -> Exact {
    if x > 100.0 {
        return Pair::from(x.min(1e5)).exp().into();
    }
    tiny(x).unwrap_or_else(|| Pair::from(x.max(-100.0)).expm1().into())
}

fn sinh(x: f64) -> Exact {
    if x.abs() > 100.0 {
        let (value, exponent) = Pair::from(x.abs().min(1e5)).exp();
        return (if x < 0.0 { -value } else { value }, exponent - 1).into();
    }
    tiny(x).unwrap_or_else(|| {
        let e = Pair::from(x.abs()).expm1();
        let value = (e + e / (e + 1.0)) * 0.5;
        (if x < 0.0 { -value } else { value }).into()
    })
}

fn cosh(x: f64) -> Exact {
    let x = x.abs().min(1e5);
    let (value, exponent) = Pair::from(x).exp();
    if x > 100.0 {
        return (value, exponent - 1).into();
    }
    let (other, other_exponent) = Pair::from(-x).exp();
    ((value.scaled(exponent) + other.scaled(other_exponent)) * 0.5).into()
}

fn tanh(x: f64) -> Exact {
    tiny(x).unwrap_or_else(|| {
        let e = Pair::from(2.0 * x.abs().min(100.0)).expm1();
        let value = e / (e + 2.0);
        (if x < 0.0 { -value } else { value }).into()
    })
}

fn log(x: f64) -> Pair {
    if (0.5..2.0).contains(&x) {
        return Pair::from(x).log();
    }
    let (value, exponent) = parts(x);
    value.log() + LN_2 * f64::from(exponent)
}

fn log1p(x: f64) -> Exact {
    if x == -1.0 {
        return f64::NEG_INFINITY.into();
    }
    if x > 1e30 {
        return log(x).into();
    }
    tiny(x).unwrap_or_else(|| Pair::from(x).log1p().into())
}

fn asinh(x: f64) -> Exact {
    if x.abs() > 1e40 {
        let value = log(x.abs()) + LN_2;
        return (if x < 0.0 { -value } else { value }).into();
    }
    tiny(x).unwrap_or_else(|| {
        let a = Pair::from(x.abs());
        let square = a * a;
        let value = (a + square / ((square + 1.0).sqrt() + 1.0)).log1p();
        (if x < 0.0 { -value } else { value }).into()
    })
}

fn acosh(x: f64) -> Exact {
    if x > 1e40 {
        return (log(x) + LN_2).into();
    }
    let t = Pair::from(x) - 1.0;
    (t + (t * (t + 2.0)).sqrt()).log1p().into()
}

fn atanh(x: f64) -> Exact {
    if x.abs() == 1.0 {
        return (x * f64::INFINITY).into();
    }
    tiny(x).unwrap_or_else(|| {
        let quotient = Pair::from(2.0 * x) / (Pair::from(1.0) - x);
        (quotient.log1p() * 0.5).into()
    })
}

thread_local! {
    static CONSTANTS: RefCell<Consts> = RefCell::new(Consts::new().expect("memory"));
}

/// A number of many digits as a pair.
fn pair_of(x: &BigFloat) -> Exact {
    let Some((words, _, sign, exponent, _)) = x.as_raw_parts() else {
        panic!("{x} is no number");
    };
    let Some([.., next, first]) = words.get(words.len().wrapping_sub(2)..) else {
        return 0.0.into();
    };
    let high = (first >> 11) as f64;
    let low = (first << 53 | next >> 11) as f64 * 2f64.powi(-64);
    let value = Pair::from(high) + low;
    let value = if sign.is_negative() { -value } else { value };
    (value, exponent - 53).into()
}

/// A function of a third arithmetic, of 192 digits.
fn large(
    x: f64,
    function: impl Fn(&BigFloat, usize, RoundingMode, &mut Consts) -> BigFloat,
) -> Exact {
    const DIGITS: usize = 192;
    CONSTANTS.with_borrow_mut(|constants| {
        let x = BigFloat::from_f64(x, DIGITS);
        pair_of(&function(&x, DIGITS, RoundingMode::ToEven, constants))
    })
}

fn tan(x: Pair) -> Pair {
    let (sine, cosine) = x.sin_cos();
    sine / cosine
}

/// `itself` where the function is x for tiny x.
fn sin_cos_tan(
    x: f64,
    big: fn(&BigFloat, usize, RoundingMode, &mut Consts) -> BigFloat,
    pair: fn(Pair) -> Pair,
    itself: Option<f64>,
) -> Exact {
    if x.abs() > 2f64.powi(30) {
        return large(x, big);
    }
    let tiny = itself.and_then(tiny);
    tiny.unwrap_or_else(|| pair(Pair::from(x)).into())
}

fn asin(x: f64) -> Exact {
    if x.abs() == 1.0 {
        return (Pair::half_pi() * x).into();
    }
    tiny(x).unwrap_or_else(|| {
        let other = ((Pair::from(1.0) - x) * (Pair::from(1.0) + x)).sqrt();
        (Pair::from(x) / other).atan().into()
    })
}

fn acos(x: f64) -> Pair {
    if x == -1.0 {
        return Pair::half_pi() * 2.0;
    }
    let one = Pair::from(1.0);
    ((one - x) / (one + x)).sqrt().atan() * 2.0
}

fn atan(x: f64) -> Exact {
    if x.abs() > 1e20 {
        let value = Pair::half_pi() - 1.0 / x.abs();
        return (if x < 0.0 { -value } else { value }).into();
    }
    tiny(x).unwrap_or_else(|| Pair::from(x).atan().into())
}

fn atan2(y: f64, x: f64) -> Exact {
    let ((a, a_exponent), (b, b_exponent)) = (parts(y.abs()), parts(x.abs()));
    let difference = a_exponent - b_exponent;
    let quarter = Pair::half_pi();
    let angle: Exact = if difference.abs() > 200 {
        match (difference > 0, x > 0.0) {
            (true, _) => quarter.into(),
            (false, false) => (quarter * 2.0).into(),
            (false, true) => (a / b, difference).into(),
        }
    } else {
        let quotient = (a / b).scaled(difference);
        let acute = if difference > 60 {
            quarter - Pair::from(1.0) / quotient
        } else {
            quotient.atan()
        };
        let acute = if difference < -100 { quotient } else { acute };
        (if x < 0.0 {
            quarter * 2.0 - acute
        } else {
            acute
        })
        .into()
    };
    let value = if y < 0.0 { -angle.value } else { angle.value };
    (value, angle.exponent).into()
}

fn pow(x: f64, y: f64) -> Exact {
    let base = log(x.abs());
    let about = base.high * y;
    let product = if about.abs() > 2000.0 {
        about.into()
    } else {
        base * y
    };
    let (value, exponent) = product.exp();
    let odd = y.abs() < 2f64.powi(53) && y % 2.0 != 0.0;
    (if x < 0.0 && odd { -value } else { value }, exponent).into()
}

fn hypot(x: f64, y: f64) -> Exact {
    let larger = x.abs().max(y.abs());
    let (_, exponent) = parts(larger);
    let [a, b] = [x, y].map(|side| {
        let half = exponent / 2;
        Pair::from(libm::ldexp(libm::ldexp(side, -half), half - exponent))
    });
    ((a * a + b * b).sqrt(), exponent).into()
}

fn rhypot(x: f64, y: f64) -> Exact {
    let exact = hypot(x, y);
    (Pair::from(1.0) / exact.value, -exact.exponent).into()
}

fn ldexp(x: f64, n: i32) -> Exact {
    let (value, exponent) = parts(x);
    (value, exponent + n.clamp(-10_000, 10_000)).into()
}

/// A number as one between 1/2^step and 2^step, and an exponent that is a multiple of a step.
fn parts_of_step(x: f64, step: i32) -> (Pair, i32) {
    let (value, exponent) = parts(x);
    let part = exponent.rem_euclid(step);
    (value.scaled(part), (exponent - part) / step)
}

fn sqrt(x: f64) -> Exact {
    let (value, half) = parts_of_step(x, 2);
    (value.sqrt(), half).into()
}

fn rsqrt(x: f64) -> Exact {
    let (value, half) = parts_of_step(x, 2);
    (Pair::from(1.0) / value.sqrt(), -half).into()
}

fn cbrt(x: f64) -> Exact {
    let (value, third) = parts_of_step(x, 3);
    let mut root = Pair::from(libm::cbrt(value.high));
    let square = root * root;
    root = root - (square * root - value) / (square * 3.0);
    (root, third).into()
}

fn erf(x: f64) -> Exact {
    if x.abs() > 7.0 {
        return x.signum().into();
    }
    if x.abs() < TINY {
        let (value, exponent) = parts(x);
        return (value * super::pair::TWO_OVER_ROOT_PI, exponent).into();
    }
    let value = Pair::from(x.abs()).erf();
    (if x < 0.0 { -value } else { value }).into()
}

/// What the suite calls exact is what a third arithmetic says.
#[test]
fn exact_results_are_exact() {
    type Big = fn(&BigFloat, usize, RoundingMode, &mut Consts) -> BigFloat;
    let functions: &[(&str, Big)] = &[
        ("exp", |x, p, rm, c| x.exp(p, rm, c)),
        ("log", |x, p, rm, c| x.ln(p, rm, c)),
        ("log2", |x, p, rm, c| x.log2(p, rm, c)),
        ("log10", |x, p, rm, c| x.log10(p, rm, c)),
        ("sinh", |x, p, rm, c| x.sinh(p, rm, c)),
        ("cosh", |x, p, rm, c| x.cosh(p, rm, c)),
        ("tanh", |x, p, rm, c| x.tanh(p, rm, c)),
        ("asinh", |x, p, rm, c| x.asinh(p, rm, c)),
        ("acosh", |x, p, rm, c| x.acosh(p, rm, c)),
        ("atanh", |x, p, rm, c| x.atanh(p, rm, c)),
        ("sin", |x, p, rm, c| x.sin(p, rm, c)),
        ("cos", |x, p, rm, c| x.cos(p, rm, c)),
        ("tan", |x, p, rm, c| x.tan(p, rm, c)),
        ("asin", |x, p, rm, c| x.asin(p, rm, c)),
        ("acos", |x, p, rm, c| x.acos(p, rm, c)),
        ("atan", |x, p, rm, c| x.atan(p, rm, c)),
        ("cbrt", |x, p, rm, _| x.cbrt(p, rm)),
    ];
    let mut random = super::Random::new(7);
    for (name, big) in functions {
        let double = DOUBLES.iter().find(|double| double.name == *name);
        let double = double.expect("a function of the suite");
        let mut compared = 0;
        for _ in 0..400 {
            let x = f64::from_bits(super::inputs::random(
                cranelift_codegen::ir::types::F64,
                &mut random,
            ));
            let near = (double.near)(x, 1.0);
            if !(1e-300..1e300).contains(&near.abs()) {
                continue;
            }
            let (exact, wanted) = ((double.exact)(x, 1.0), large(x, big));
            let difference = exact.value.scaled(exact.exponent - wanted.exponent) - wanted.value;
            let relative = (difference.high / wanted.value.high).abs();
            assert!(relative < 1e-24, "{name}({x:e}) = {exact:?}, {wanted:?}");
            compared += 1;
        }
        assert!(compared > 50, "{name}: {compared}");
    }
}
