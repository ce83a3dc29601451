//! Integers and booleans.

use super::cases;
use crate::run::Run;
use burn::tensor::{IndexingUpdateOp, Int, Tensor};

/// A function of two integers, of equal shapes and with a dimension that one of them has not.
fn two(
    run: &mut Run,
    function: fn(Tensor<2, Int>, Tensor<2, Int>) -> Tensor<2, Int>,
) -> Result<(), String> {
    for (a, b) in [([9, 32], [9, 32]), ([5, 1], [5, 13])] {
        let (a, b) = (run.integers(a, -99..99), run.integers(b, 1..20));
        run.int(function(a, b))?;
    }
    Ok(())
}

cases! {
    add(run, 0.0, 0.0) { two(run, |a, b| a + b) }
    sub(run, 0.0, 0.0) { two(run, |a, b| a - b) }
    mul(run, 0.0, 0.0) { two(run, |a, b| a * b) }
    div(run, 0.0, 0.0) { two(run, |a, b| a / b) }
    remainder(run, 0.0, 0.0) { two(run, Tensor::remainder) }
    and(run, 0.0, 0.0) { two(run, Tensor::bitwise_and) }
    or(run, 0.0, 0.0) { two(run, Tensor::bitwise_or) }
    xor(run, 0.0, 0.0) { two(run, Tensor::bitwise_xor) }
    not(run, 0.0, 0.0) { two(run, |a, _| a.bitwise_not()) }
    shift_left(run, 0.0, 0.0) { two(run, Tensor::bitwise_left_shift) }
    shift_right(run, 0.0, 0.0) { two(run, Tensor::bitwise_right_shift) }
    power(run, 0.0, 0.0) { two(run, |a, b| (a.clamp(-3, 3)).powi(b.clamp(0, 5))) }
    abs_and_sign(run, 0.0, 0.0) { two(run, |a, b| a.clone().abs() * b + a.sign()) }
    scalars(run, 0.0, 0.0) { two(run, |a, _| (a * 7 + 3) / 5 - 1) }
    reductions(run, 0.0, 0.0) {
        for shape in [[4, 64], [300, 7]] {
            let x = run.integers(shape, -99..99);
            run.int(x.clone().sum())?;
            for dimension in [0, 1] {
                run.int(x.clone().sum_dim(dimension))?;
                run.int(x.clone().max_dim(dimension))?;
                run.int(x.clone().min_dim(dimension))?;
                run.int(x.clone().cumsum(dimension))?;
                run.int(x.clone().sort(dimension))?;
            }
        }
        Ok(())
    }
    matmul(run, 0.0, 0.0) {
        let (a, b) = (run.integers([9, 33], -9..9), run.integers([33, 7], -9..9));
        run.int(a.matmul(b))
    }
    indexing(run, 0.0, 0.0) {
        let x = run.integers([256, 6], -99..99);
        let values = run.integers([256, 6], -99..99);
        let rows = run.integers([256], 0..256);
        let places = run.integers([256, 6], 0..256);
        run.int(x.clone().select(0, rows.clone()))?;
        run.int(x.clone().select_assign(0, rows, values.clone(), IndexingUpdateOp::Add))?;
        run.int(x.clone().gather(0, places.clone()))?;
        run.int(x.scatter(0, places, values, IndexingUpdateOp::Add))
    }
    comparisons(run, 0.0, 0.0) {
        let (a, b) = (run.integers([9, 32], -5..5), run.integers([9, 32], -5..5));
        run.bool(a.clone().equal(b.clone()))?;
        run.bool(a.clone().lower(b.clone()))?;
        run.bool(a.greater_equal(b))
    }
    booleans(run, 0.0, 0.0) {
        let (a, b) = (run.booleans([9, 32]), run.booleans([9, 32]));
        run.bool(a.clone().bool_and(b.clone()))?;
        run.bool(a.clone().bool_or(b.clone()))?;
        run.bool(a.clone().bool_xor(b.clone()))?;
        run.bool(a.clone().bool_not())?;
        run.bool(a.clone().transpose().slice([3..20, 1..8]))?;
        run.int(a.int())?;
        run.plain(b.float())
    }
}
