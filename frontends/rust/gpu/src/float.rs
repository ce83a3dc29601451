//! Functions of mathematics that `core` lacks, by the names that `std` has for them.

/// Mathematical functions of a float. On the device they are those of the code generator's library, at most 2 units of
/// the last place off; on the host those of the platform's C library.
///
/// `floor`, `ceil`, `trunc`, `sqrt`, `mul_add` and `copysign` are exact on both. The functions of `fast` are the
/// device's approximate instructions.
pub trait Float: Copy {
    /// The greatest whole number that is not greater.
    fn floor(self) -> Self;
    /// The least whole number that is not less.
    fn ceil(self) -> Self;
    /// The whole number towards zero.
    fn trunc(self) -> Self;
    /// The nearest whole number, ties away from zero.
    fn round(self) -> Self;
    /// The nearest whole number, ties to even.
    fn round_ties_even(self) -> Self;
    /// What is behind the point.
    fn fract(self) -> Self;
    /// The square root, rounded once.
    fn sqrt(self) -> Self;
    /// The cube root.
    fn cbrt(self) -> Self;
    /// self · a + b, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// e^self.
    fn exp(self) -> Self;
    /// 2^self.
    fn exp2(self) -> Self;
    /// e^self - 1.
    fn exp_m1(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The logarithm of base 2.
    fn log2(self) -> Self;
    /// The logarithm of base 10.
    fn log10(self) -> Self;
    /// The natural logarithm of 1 + self.
    fn ln_1p(self) -> Self;
    /// self to a power.
    fn powf(self, power: Self) -> Self;
    /// self to a whole power.
    fn powi(self, power: i32) -> Self;
    /// The root of self² + other².
    fn hypot(self, other: Self) -> Self;
    /// The sine of an angle in radians.
    fn sin(self) -> Self;
    /// The cosine of an angle in radians.
    fn cos(self) -> Self;
    /// The tangent of an angle in radians.
    fn tan(self) -> Self;
    /// Sine and cosine.
    fn sin_cos(self) -> (Self, Self) {
        (self.sin(), self.cos())
    }
    /// The angle of a sine.
    fn asin(self) -> Self;
    /// The angle of a cosine.
    fn acos(self) -> Self;
    /// The angle of a tangent.
    fn atan(self) -> Self;
    /// The angle of the point (other, self).
    fn atan2(self, other: Self) -> Self;
    /// The hyperbolic sine.
    fn sinh(self) -> Self;
    /// The hyperbolic cosine.
    fn cosh(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The inverse of [`sinh`](Float::sinh).
    fn asinh(self) -> Self;
    /// The inverse of [`cosh`](Float::cosh).
    fn acosh(self) -> Self;
    /// The inverse of [`tanh`](Float::tanh).
    fn atanh(self) -> Self;
    /// The error function.
    fn erf(self) -> Self;
}

/// Declares the functions of a float, each by the name that the C library has for it.
macro_rules! float {
    ($type:ident $module:ident $suffix:literal: $($method:ident $(($($parameter:ident),*))? = $symbol:literal)*) => {
        mod $module {
            unsafe extern "C" {
                $(
                    #[link_name = concat!($symbol, $suffix)]
                    pub safe fn $method(x: $type $($(, $parameter: $type)*)?) -> $type;
                )*
            }
            /// What the code generator must have.
            #[cfg(test)]
            pub(super) const SYMBOLS: &[&str] = &[$(concat!($symbol, $suffix)),*];
        }

        impl Float for $type {
            $(
                #[inline(always)]
                fn $method(self $($(, $parameter: $type)*)?) -> $type {
                    $module::$method(self $($(, $parameter)*)?)
                }
            )*

            #[inline(always)]
            fn fract(self) -> $type {
                self - Float::trunc(self)
            }

            #[inline(always)]
            fn powi(self, power: i32) -> $type {
                let (mut base, mut left, mut product) = (self, power.unsigned_abs(), 1.0);
                while left != 0 {
                    if left & 1 != 0 {
                        product *= base;
                    }
                    base *= base;
                    left >>= 1;
                }
                if power < 0 { 1.0 / product } else { product }
            }
        }
    };
}

/// The functions of both floats, by the names that the C library has for those of f64.
macro_rules! floats {
    ($($functions:tt)*) => {
        float!(f32 single "f": $($functions)*);
        float!(f64 double "": $($functions)*);
    };
}

floats! {
    floor = "floor"
    ceil = "ceil"
    trunc = "trunc"
    round = "round"
    round_ties_even = "rint"
    sqrt = "sqrt"
    cbrt = "cbrt"
    mul_add(a, b) = "fma"
    exp = "exp"
    exp2 = "exp2"
    exp_m1 = "expm1"
    ln = "log"
    log2 = "log2"
    log10 = "log10"
    ln_1p = "log1p"
    powf(power) = "pow"
    hypot(other) = "hypot"
    sin = "sin"
    cos = "cos"
    tan = "tan"
    asin = "asin"
    acos = "acos"
    atan = "atan"
    atan2(other) = "atan2"
    sinh = "sinh"
    cosh = "cosh"
    tanh = "tanh"
    asinh = "asinh"
    acosh = "acosh"
    atanh = "atanh"
    erf = "erf"
}

#[cfg(test)]
mod tests {
    /// The code generator's functions, which are compared with its library.
    const TABLE: &str = include_str!("../../../../docs/guide/library.md");

    #[test]
    fn the_code_generator_has_every_function() {
        let symbols = super::single::SYMBOLS.iter().chain(super::double::SYMBOLS);
        let unknown: Vec<_> = symbols
            .filter(|symbol| !TABLE.contains(&format!("`{symbol}`")))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
