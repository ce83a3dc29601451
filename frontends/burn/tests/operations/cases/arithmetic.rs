//! Functions of one and two numbers, comparisons, and what activates.

use super::cases;
use crate::run::Run;
use burn::tensor::{Tensor, activation};
use std::ops::Range;

/// Numbers at the ends of a type, and both zeros.
const ENDS: [f64; 7] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -2.0,
];

/// A function of one number, on shapes with and without a tail.
fn one(
    run: &mut Run,
    range: Range<f64>,
    function: fn(Tensor<2>) -> Tensor<2>,
) -> Result<(), String> {
    for shape in [[4, 64], [13, 7]] {
        let x = run.floats(shape, range.clone());
        run.float(function(x))?;
    }
    Ok(())
}

/// A function of two numbers: of equal shapes, and with a dimension that one of them has not.
fn two(
    run: &mut Run,
    left: Range<f64>,
    right: Range<f64>,
    function: fn(Tensor<2>, Tensor<2>) -> Tensor<2>,
) -> Result<(), String> {
    for (a, b) in [([9, 32], [9, 32]), ([5, 1], [5, 13]), ([6, 8], [1, 8])] {
        let (a, b) = (run.floats(a, left.clone()), run.floats(b, right.clone()));
        run.float(function(a, b))?;
    }
    Ok(())
}

cases! {
    abs(run, 0.0, 0.0) { one(run, -3.0..3.0, Tensor::abs) }
    neg(run, 0.0, 0.0) { one(run, -3.0..3.0, Tensor::neg) }
    sign(run, 0.0, 0.0) { one(run, -3.0..3.0, Tensor::sign) }
    exp(run, 2.0, 1.0) { one(run, -3.0..3.0, Tensor::exp) }
    log(run, 2.0, 1.0) { one(run, 0.1..9.0, Tensor::log) }
    log1p(run, 2.0, 2.0) { one(run, -0.5..9.0, Tensor::log1p) }
    sqrt(run, 1.0, 1.0) { one(run, 0.1..9.0, Tensor::sqrt) }
    square(run, 1.0, 1.0) { one(run, -3.0..3.0, |x| x.square()) }
    recip(run, 1.0, 1.0) { one(run, 0.2..3.0, Tensor::recip) }
    erf(run, 2.0, 1.0) { one(run, -3.0..3.0, Tensor::erf) }
    sin(run, 2.0, 1.0) { one(run, -3.0..3.0, Tensor::sin) }
    cos(run, 2.0, 1.0) { one(run, -3.0..3.0, Tensor::cos) }
    tan(run, 1.0, 1.0) { one(run, -1.0..1.0, Tensor::tan) }
    sinh(run, 1.0, 1.0) { one(run, -3.0..3.0, Tensor::sinh) }
    cosh(run, 2.0, 1.0) { one(run, -3.0..3.0, Tensor::cosh) }
    tanh(run, 12.0, 10.0) { one(run, -3.0..3.0, Tensor::tanh) }
    asin(run, 2.0, 2.0) { one(run, -0.8..0.8, Tensor::asin) }
    acos(run, 2.0, 2.0) { one(run, -0.8..0.8, Tensor::acos) }
    atan(run, 2.0, 1.0) { one(run, -3.0..3.0, Tensor::atan) }
    asinh(run, 2.0, 2.0) { one(run, -3.0..3.0, Tensor::asinh) }
    acosh(run, 2.0, 1.0) { one(run, 1.5..4.0, Tensor::acosh) }
    atanh(run, 2.0, 1.0) { one(run, -0.8..0.8, Tensor::atanh) }
    floor(run, 0.0, 0.0) { one(run, -9.0..9.0, Tensor::floor) }
    ceil(run, 0.0, 0.0) { one(run, -9.0..9.0, Tensor::ceil) }
    round(run, 0.0, 0.0) { one(run, -9.0..9.0, Tensor::round) }
    trunc(run, 0.0, 0.0) { one(run, -9.0..9.0, Tensor::trunc) }
    deg2rad(run, 1.0, 1.0) { one(run, -9.0..9.0, Tensor::deg2rad) }
    clamp(run, 0.0, 0.0) { one(run, -3.0..3.0, |x| x.clamp(-1.0, 1.5)) }
    clamp_min(run, 0.0, 0.0) { one(run, -3.0..3.0, |x| x.clamp_min(-1.0)) }
    powf_scalar(run, 2.0, 2.0) { one(run, 0.2..3.0, |x| x.powf_scalar(1.7)) }
    powi_scalar(run, 0.0, 0.0) {
        let x = run.whole([13, 7], -3..4);
        run.float(x.powi_scalar(3))
    }
    scalars(run, 3.0, 3.0) { one(run, -2.0..2.0, |x| ((x + 1.5) * 0.75 - 0.25) / 1.25) }
    remainder_scalar(run, 0.0, 0.0) {
        // Whole numbers, so that no quotient is near a whole number that it is not.
        let x = run.whole([13, 7], -99..100);
        run.float(x.remainder_scalar(2.5))
    }

    add(run, 1.0, 1.0) { two(run, -3.0..3.0, -3.0..3.0, |a, b| a + b) }
    sub(run, 1.0, 1.0) { two(run, -3.0..3.0, -3.0..3.0, |a, b| a - b) }
    mul(run, 2.0, 1.0) { two(run, -3.0..3.0, -3.0..3.0, |a, b| a * b) }
    div(run, 3.0, 1.0) { two(run, -3.0..3.0, 0.5..3.0, |a, b| a / b) }
    powf(run, 2.0, 1.0) { two(run, 0.5..2.0, -2.0..2.0, Tensor::powf) }
    atan2(run, 2.0, 2.0) { two(run, 0.5..3.0, 0.5..3.0, Tensor::atan2) }
    hypot(run, 3.0, 2.0) { two(run, 0.5..3.0, 0.5..3.0, Tensor::hypot) }
    max_pair(run, 0.0, 0.0) { two(run, -3.0..3.0, -3.0..3.0, Tensor::max_pair) }
    min_pair(run, 0.0, 0.0) { two(run, -3.0..3.0, -3.0..3.0, Tensor::min_pair) }

    comparisons(run, 0.0, 0.0) {
        let (a, b) = (run.whole([12, 17], -4..5), run.whole([12, 17], -4..5));
        run.bool(a.clone().greater(b.clone()))?;
        run.bool(a.clone().greater_equal(b.clone()))?;
        run.bool(a.clone().lower(b.clone()))?;
        run.bool(a.clone().lower_equal(b.clone()))?;
        run.bool(a.clone().equal(b.clone()))?;
        run.bool(a.clone().not_equal(b))?;
        run.bool(a.clone().greater_elem(3.0))?;
        run.bool(a.lower_equal_elem(-2.0))
    }
    classes(run, 0.0, 0.0) {
        let x = run.constant_of(ENDS.to_vec(), [ENDS.len()]);
        run.bool(x.clone().is_nan())?;
        run.bool(x.clone().is_inf())?;
        run.bool(x.is_finite())
    }
    ends(run, 0.0, 0.0) {
        let x = run.constant_of(ENDS.to_vec(), [ENDS.len(), 1]);
        let y = x.clone().transpose();
        run.plain(x.clone() + y.clone())?;
        run.plain(x.clone() - y.clone())?;
        run.plain(x.clone() * y.clone())?;
        run.bool(x.clone().equal(y.clone()))?;
        run.bool(x.clone().not_equal(y.clone()))?;
        run.bool(x.clone().lower(y.clone()))?;
        run.bool(x.greater_equal(y))
    }
    // The reciprocal tells zeros apart.
    zeros_with_signs(run, 0.0, 0.0) {
        let x = run.constant_of(vec![0.0, -0.0, 1.0, -1.0], [4]);
        run.plain(x.clone().recip())?;
        run.plain(x.clone().neg().recip())?;
        run.plain(x.clone().abs().recip())?;
        run.plain((x.clone() * -1.0).recip())?;
        run.plain(x.clone().floor().recip())?;
        run.plain(x.trunc().recip())
    }

    relu(run, 0.0, 0.0) { one(run, -3.0..3.0, activation::relu) }
    leaky_relu(run, 2.0, 1.0) { one(run, -3.0..3.0, |x| activation::leaky_relu(x, 0.1)) }
    // Burn's kernels have an approximation by tanh as the gradient, up to 1e-3 apart from flex's, which is exact. And
    // they compute 1 + erf(x), of which nothing is left in halves for small numbers.
    gelu(run, 3.0, 3.0) {
        let x = run.constant([13, 7], -1.0..3.0);
        run.plain(activation::gelu(x))
    }
    gelu_approximate(run, 17.0, 12.0) { one(run, -3.0..3.0, activation::gelu_approximate) }
    sigmoid(run, 6.0, 3.0) { one(run, -3.0..3.0, activation::sigmoid) }
    log_sigmoid(run, 6.0, 6.0) { one(run, -3.0..3.0, activation::log_sigmoid) }
    // By a quarter, which is exact in halves: where its gradient jumps, a rounding would decide.
    hard_sigmoid(run, 0.0, 1.0) { one(run, -3.0..3.0, |x| activation::hard_sigmoid(x, 0.25, 0.5)) }
    silu(run, 3.0, 2.0) { one(run, -3.0..3.0, activation::silu) }
    mish(run, 4.0, 3.0) { one(run, -3.0..3.0, activation::mish) }
    softplus(run, 2.0, 2.0) { one(run, -3.0..3.0, |x| activation::softplus(x, 1.0)) }
    softmax(run, 6.0, 3.0) { one(run, -3.0..3.0, |x| activation::softmax(x, 1)) }
    softmax_of_columns(run, 22.0, 18.0) { one(run, -3.0..3.0, |x| activation::softmax(x, 0)) }
    softmin(run, 4.0, 3.0) { one(run, -3.0..3.0, |x| activation::softmin(x, 1)) }
    log_softmax(run, 8.0, 3.0) { one(run, -3.0..3.0, |x| activation::log_softmax(x, 1)) }
    quiet_softmax(run, 6.0, 3.0) { one(run, -3.0..3.0, |x| activation::quiet_softmax(x, 1)) }
    glu(run, 4.0, 2.0) {
        let x = run.floats([6, 14], -3.0..3.0);
        run.float(activation::glu(x, 1))
    }
    prelu(run, 2.0, 1.0) {
        let (x, slope) = (run.floats([5, 6, 7], -3.0..3.0), run.floats([6], 0.1..0.5));
        run.float(activation::prelu(x, slope))
    }
}
