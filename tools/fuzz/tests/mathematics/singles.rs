//! The functions of f32 and what they compute, in f64.

/// A function.
pub struct Single {
    /// Its name.
    pub name: &'static str,
    /// The greatest error in units of the last place.
    pub bound: f64,
    /// The result in f64, whose error does not count here.
    pub exact: Exact,
}

/// By the number of arguments.
#[derive(Clone, Copy)]
pub enum Exact {
    One(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
}

const fn one(name: &'static str, exact: fn(f64) -> f64) -> Single {
    let (bound, exact) = (1.0, Exact::One(exact));
    Single { name, bound, exact }
}

const fn two(name: &'static str, exact: fn(f64, f64) -> f64) -> Single {
    let (bound, exact) = (1.0, Exact::Two(exact));
    Single { name, bound, exact }
}

/// libm's, which gives numbers for large negative ones.
fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// The lesser number; -0 is less than 0.
pub fn least(x: f64, y: f64) -> f64 {
    let first = y.is_nan() || x < y || x == y && x.is_sign_negative();
    if first { x } else { y }
}

/// The greater number.
pub fn greatest(x: f64, y: f64) -> f64 {
    -least(-x, -y)
}

/// With a greater bound.
const fn within(bound: f64, single: Single) -> Single {
    Single { bound, ..single }
}

/// All of them.
pub const SINGLES: &[Single] = &[
    one("expf", libm::exp),
    one("exp2f", libm::exp2),
    one("exp10f", libm::exp10),
    one("expm1f", libm::expm1),
    one("sinhf", libm::sinh),
    one("coshf", libm::cosh),
    one("tanhf", libm::tanh),
    one("logf", libm::log),
    one("log2f", libm::log2),
    one("log10f", libm::log10),
    one("log1pf", libm::log1p),
    one("asinhf", libm::asinh),
    one("acoshf", acosh),
    one("atanhf", libm::atanh),
    one("sinf", libm::sin),
    one("cosf", libm::cos),
    within(1.3, one("tanf", libm::tan)),
    one("asinf", libm::asin),
    one("acosf", libm::acos),
    within(1.1, one("atanf", libm::atan)),
    within(1.1, two("atan2f", libm::atan2)),
    two("powf", libm::pow),
    two("__powisf2", libm::pow),
    within(0.5, two("ldexpf", |x, n| libm::ldexp(x, n as i32))),
    two("hypotf", libm::hypot),
    two("rhypotf", |x, y| 1.0 / libm::hypot(x, y)),
    one("rsqrtf", |x| 1.0 / libm::sqrt(x)),
    one("cbrtf", libm::cbrt),
    one("erff", libm::erf),
    two("fmodf", libm::fmod),
    one("roundf", libm::round),
    one("rintf", libm::rint),
    one("floorf", libm::floor),
    one("ceilf", libm::ceil),
    one("truncf", libm::trunc),
    one("sqrtf", libm::sqrt),
    one("fabsf", libm::fabs),
    two("copysignf", libm::copysign),
    two("fminf", least),
    two("fmaxf", greatest),
];
