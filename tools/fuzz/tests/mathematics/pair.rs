//! Numbers of about 106 digits as sums of two f64 (T. J. Dekker, "A floating-point technique for extending the
//! available precision", 1971), with the functions that the exact results are made of. Nothing here is shared with the
//! library; `doubles.rs` compares it with a third arithmetic.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// high + low, of which low is at most half a unit in the last place of high.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    pub high: f64,
    pub low: f64,
}

/// A pair from the bits of its parts.
const fn constant(high: u64, low: u64) -> Pair {
    Pair {
        high: f64::from_bits(high),
        low: f64::from_bits(low),
    }
}

pub const LN_2: Pair = constant(0x3fe6_2e42_fefa_39ef, 0x3c7a_bc9e_3b39_803f);
pub const LN_10: Pair = constant(0x4002_6bb1_bbb5_5516, 0xbcaf_48ad_494e_a3e9);
pub const HALF_PI: [f64; 4] = [
    f64::from_bits(0x3ff9_21fb_5444_2d18),
    f64::from_bits(0x3c91_a626_3314_5c07),
    f64::from_bits(0xb91f_1976_b7ed_8fbc),
    f64::from_bits(0x35b4_cf98_e804_177d),
];
pub const TWO_OVER_ROOT_PI: Pair = constant(0x3ff2_0dd7_5042_9b6d, 0x3c71_ae3a_914f_ed80);

fn two_sum(a: f64, b: f64) -> Pair {
    let high = a + b;
    let part = high - a;
    let low = (a - (high - part)) + (b - part);
    Pair { high, low }
}

fn quick_two_sum(a: f64, b: f64) -> Pair {
    let high = a + b;
    let low = b - (high - a);
    Pair { high, low }
}

fn two_product(a: f64, b: f64) -> Pair {
    let high = a * b;
    let low = libm::fma(a, b, -high);
    Pair { high, low }
}

impl From<f64> for Pair {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl Neg for Pair {
    type Output = Self;
    fn neg(self) -> Self {
        Self {
            high: -self.high,
            low: -self.low,
        }
    }
}

impl<T: Into<Pair>> Add<T> for Pair {
    type Output = Self;
    fn add(self, other: T) -> Self {
        let other = other.into();
        let high = two_sum(self.high, other.high);
        let low = two_sum(self.low, other.low);
        let sum = quick_two_sum(high.high, high.low + low.high);
        quick_two_sum(sum.high, sum.low + low.low)
    }
}

impl<T: Into<Pair>> Sub<T> for Pair {
    type Output = Self;
    fn sub(self, other: T) -> Self {
        self + -other.into()
    }
}

impl<T: Into<Pair>> Mul<T> for Pair {
    type Output = Self;
    fn mul(self, other: T) -> Self {
        let other = other.into();
        let product = two_product(self.high, other.high);
        let cross = self.high * other.low + self.low * other.high;
        quick_two_sum(product.high, product.low + cross)
    }
}

impl<T: Into<Pair>> Div<T> for Pair {
    type Output = Self;
    fn div(self, other: T) -> Self {
        let other = other.into();
        let first = self.high / other.high;
        let rest = self - other * first;
        let second = rest.high / other.high;
        let rest = rest - other * second;
        quick_two_sum(first, second) + rest.high / other.high
    }
}

impl Pair {
    /// Times a power of two.
    pub fn scaled(self, exponent: i32) -> Self {
        Self {
            high: libm::ldexp(self.high, exponent),
            low: libm::ldexp(self.low, exponent),
        }
    }

    pub fn sqrt(self) -> Self {
        if self.high == 0.0 {
            return self;
        }
        let root = Self::from(self.high.sqrt());
        root + (self - root * root) / (root * 2.0)
    }

    /// e^x - 1 for |x| up to 0.4.
    fn expm1_small(self) -> Self {
        const HALVINGS: i32 = 9;
        let r = self.scaled(-HALVINGS);
        let mut sum = Self::from(0.0);
        // (1 + r/2 (1 + r/3 (…))) r
        for n in (2..=10).rev() {
            sum = (sum + 1.0) * r / f64::from(n);
        }
        let mut sum = (sum + 1.0) * r;
        for _ in 0..HALVINGS {
            sum = sum * 2.0 + sum * sum;
        }
        sum
    }

    /// e^x = value * 2^exponent; of |x| above 10^5 what is as far out of all ranges.
    pub fn exp(self) -> (Self, i32) {
        const FAR: f64 = 1e5;
        if self.high.abs() > FAR {
            return Self::from(FAR.copysign(self.high)).exp();
        }
        let n = (self.high / LN_2.high).round();
        let r = self - LN_2 * n;
        (r.expm1_small() + 1.0, n as i32)
    }

    /// e^x - 1 for |x| up to 700.
    pub fn expm1(self) -> Self {
        if self.high.abs() < 0.4 {
            return self.expm1_small();
        }
        let (value, exponent) = self.exp();
        value.scaled(exponent) - 1.0
    }

    /// log(1 + x).
    pub fn log1p(self) -> Self {
        if self.high.abs() > 0.25 {
            return (self + 1.0).log();
        }
        let s = self / (self + 2.0);
        let square = s * s;
        let mut sum = Self::from(0.0);
        for n in (1..22).rev() {
            sum = sum * square + Self::from(1.0) / f64::from(2 * n + 1);
        }
        (sum * square + 1.0) * s * 2.0
    }

    /// log x of a positive number.
    pub fn log(self) -> Self {
        if (self.high - 1.0).abs() < 0.25 {
            return (self - 1.0).log1p();
        }
        // Newton's step, from a result of 53 digits.
        let start = libm::log(self.high);
        let (value, exponent) = Self::from(-start).exp();
        let rest = self.scaled(exponent) * value - 1.0;
        Self::from(start) + (rest - rest * rest * 0.5)
    }

    /// Sine and cosine for |x| up to 1.6.
    fn sin_cos_small(self) -> (Self, Self) {
        let square = self * self;
        let (mut sine, mut cosine) = (Self::from(0.0), Self::from(0.0));
        for n in (1..17).rev() {
            let n = f64::from(2 * n);
            sine = (sine + 1.0) * -square / (n * (n + 1.0));
            cosine = (cosine + 1.0) * -square / (n * (n - 1.0));
        }
        ((sine + 1.0) * self, cosine + 1.0)
    }

    /// Sine and cosine for |x| up to 2^30.
    pub fn sin_cos(self) -> (Self, Self) {
        let n = (self.high / HALF_PI[0]).round();
        let mut r = self;
        for part in HALF_PI {
            r = r - two_product(part, n);
        }
        let (sine, cosine) = r.sin_cos_small();
        match n.rem_euclid(4.0) as u32 {
            0 => (sine, cosine),
            1 => (cosine, -sine),
            2 => (-sine, -cosine),
            _ => (-cosine, sine),
        }
    }

    pub fn atan(self) -> Self {
        let start = libm::atan(self.high);
        let (sine, cosine) = Self::from(start).sin_cos_small();
        let difference = (self * cosine - sine) / (cosine + self * sine);
        Self::from(start) + difference
    }

    pub fn half_pi() -> Self {
        two_sum(HALF_PI[0], HALF_PI[1])
    }

    /// erf x for 0 <= x < 7: 2 / root of pi e^(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + …), without cancellation.
    pub fn erf(self) -> Self {
        let square = self * self;
        let mut term = self;
        let mut sum = term;
        let mut n = 1.0;
        while term.high > sum.high * 1e-34 {
            n += 2.0;
            term = term * square * 2.0 / n;
            sum = sum + term;
        }
        let (value, exponent) = (-square).exp();
        TWO_OVER_ROOT_PI * sum * value.scaled(exponent)
    }
}
