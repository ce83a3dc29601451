//! Sums, extremes, orders, products of matrices.

use super::cases;
use crate::run::Run;
use burn::tensor::Tensor;

/// Shapes that one cube reduces, that several do, and whose tail is no whole vector.
const SHAPES: [[usize; 2]; 3] = [[4, 64], [300, 7], [3, 1030]];

/// A function of a row or a column.
fn along(run: &mut Run, function: fn(Tensor<2>, usize) -> Tensor<2>) -> Result<(), String> {
    for shape in SHAPES {
        for dimension in [0, 1] {
            let x = run.whole(shape, -2..3);
            run.float(function(x, dimension))?;
        }
    }
    Ok(())
}

/// A function of a row or a column of numbers of which none is there twice.
fn of_distinct(run: &mut Run, function: fn(Tensor<2>, usize) -> Tensor<2>) -> Result<(), String> {
    for shape in [[4, 64], [13, 17]] {
        for dimension in [0, 1] {
            let x = run.distinct(shape);
            run.float(function(x, dimension))?;
        }
    }
    Ok(())
}

/// A product of matrices.
fn product(run: &mut Run, [rows, inner, columns]: [usize; 3]) -> Result<(), String> {
    let a = run.whole([rows, inner], -2..3);
    let b = run.whole([inner, columns], -2..3);
    run.float(a.matmul(b))
}

cases! {
    sum(run, 0.0, 0.0) {
        for shape in SHAPES {
            let x = run.whole(shape, -2..3);
            run.float(x.sum())?;
        }
        Ok(())
    }
    mean(run, 18.0, 1.0) {
        let x = run.floats([7, 33, 5], 0.0..1.0);
        run.float(x.mean())
    }
    sum_dim(run, 0.0, 0.0) { along(run, |x, dimension| x.sum_dim(dimension)) }
    mean_dim(run, 1.0, 1.0) { along(run, |x, dimension| x.mean_dim(dimension)) }
    var(run, 240.0, 11.0) { along(run, |x, dimension| x.var(dimension)) }
    cumsum(run, 0.0, 0.0) {
        for shape in SHAPES {
            for dimension in [0, 1] {
                let x = run.whole(shape, -2..3);
                run.float(x.cumsum(dimension))?;
            }
        }
        Ok(())
     }
    prod(run, 1.0, 1.0) {
        let x = run.floats([9, 5], 0.7..1.4);
        run.float(x.clone().prod())?;
        run.float(x.clone().prod_dim(0))?;
        run.float(x.clone().prod_dim(1))?;
        run.float(x.cumprod(1))
    }
    max_dim(run, 0.0, 0.0) { of_distinct(run, |x, dimension| x.max_dim(dimension)) }
    min_dim(run, 0.0, 0.0) { of_distinct(run, |x, dimension| x.min_dim(dimension)) }
    max_abs_dim(run, 0.0, 0.0) { of_distinct(run, |x, dimension| x.max_abs_dim(dimension)) }
    cummax(run, 0.0, 0.0) { of_distinct(run, |x, dimension| x.cummax(dimension)) }
    cummin(run, 0.0, 0.0) { of_distinct(run, |x, dimension| x.cummin(dimension)) }
    sort(run, 0.0, 0.0) { of_distinct(run, |x, dimension| x.sort(dimension)) }
    topk(run, 0.0, 0.0) { of_distinct(run, |x, dimension| x.topk(3, dimension)) }
    extremes(run, 0.0, 0.0) {
        let x = run.distinct([13, 17]);
        run.float(x.clone().max())?;
        run.float(x.min())
    }
    places(run, 0.0, 0.0) {
        for shape in [[4, 64], [13, 17]] {
            let x = run.distinct(shape);
            for dimension in [0, 1] {
                run.int(x.clone().argmax(dimension))?;
                run.int(x.clone().argmin(dimension))?;
                run.int(x.clone().argsort_descending(dimension))?;
                let (values, places) = x.clone().max_dim_with_indices(dimension);
                run.float(values)?;
                run.int(places)?;
                let (values, places) = x.clone().topk_with_indices(2, dimension);
                run.float(values)?;
                run.int(places)?;
            }
        }
        Ok(())
    }
    any_and_all(run, 0.0, 0.0) {
        let x = run.booleans([5, 40]);
        run.bool(x.clone().any())?;
        run.bool(x.clone().all())?;
        run.bool(x.clone().any_dim(1))?;
        run.bool(x.all_dim(0))
    }
    matmul(run, 0.0, 0.0) { product(run, [16, 32, 24]) }
    matmul_with_tails(run, 0.0, 0.0) { product(run, [7, 13, 5]) }
    matmul_of_many_cubes(run, 0.0, 0.0) { product(run, [130, 70, 129]) }
    matmul_with_vectors(run, 0.0, 0.0) {
        product(run, [1, 300, 9])?;
        product(run, [9, 300, 1])?;
        product(run, [33, 1, 33])
    }
    matmul_transposed(run, 0.0, 0.0) {
        let a = run.whole([3, 20, 12], -2..3);
        let b = run.whole([3, 8, 20], -2..3);
        run.float(a.swap_dims(1, 2).matmul(b.swap_dims(1, 2)))
    }
    matmul_broadcast(run, 0.0, 0.0) {
        let a = run.whole([2, 1, 9, 11], -2..3);
        let b = run.whole([1, 3, 11, 6], -2..3);
        run.float(a.matmul(b))
    }
    dot(run, 0.0, 0.0) {
        let (a, b) = (run.whole([100], -2..3), run.whole([100], -2..3));
        run.float(a.dot(b))
    }
    cross(run, 0.0, 0.0) {
        let (a, b) = (run.whole([5, 3], -2..3), run.whole([5, 3], -2..3));
        run.float(a.cross(b, 1))
    }
}
