//! Parts of tensors, by place and by mask.

use super::cases;
use crate::run::Run;
use burn::tensor::{IndexingUpdateOp, Tensor, s};

/// Rows and columns by number, some more than once, read and added to. More than one cube works on them.
fn selected<const D: usize>(
    run: &mut Run,
    shape: [usize; D],
    dimension: usize,
) -> Result<(), String> {
    let x = run.whole(shape, -2..3);
    let places = run.integers([shape[dimension]], 0..shape[dimension] as i32);
    run.float(x.clone().select(dimension, places.clone()))?;
    let values = run.whole(shape, -2..3);
    run.float(x.select_assign(dimension, places, values, IndexingUpdateOp::Add))
}

/// Elements along a dimension by number, some more than once, read and added to. More than one cube works on them.
fn gathered<const D: usize>(
    run: &mut Run,
    shape: [usize; D],
    dimension: usize,
) -> Result<(), String> {
    let x = run.whole(shape, -2..3);
    let places = run.integers(shape, 0..shape[dimension] as i32);
    run.float(x.clone().gather(dimension, places.clone()))?;
    let values = run.whole(shape, -2..3);
    run.float(x.scatter(dimension, places, values, IndexingUpdateOp::Add))
}

/// Each row once, with every way to change it.
fn changed(run: &mut Run, update: IndexingUpdateOp) -> Result<(), String> {
    let (x, values) = (run.floats([40, 9], 0.5..2.0), run.floats([40, 9], 0.5..2.0));
    let places = run.order(40);
    run.float(
        x.clone()
            .select_assign(0, places.clone(), values.clone(), update),
    )?;
    let places = places.reshape([40, 1]).expand([40, 9]);
    run.float(x.scatter(0, places, values, update))
}

cases! {
    slice(run, 0.0, 0.0) {
        let x = run.floats([9, 14], -1.0..1.0);
        run.float(x.clone().slice(s![2..7, 3..14]))?;
        run.float(x.clone().slice(s![..;2, -5..]))?;
        run.float(x.slice(s![..;-3, 1..13;4]))
    }
    slice_assign(run, 0.0, 0.0) {
        let (x, y) = (run.floats([9, 14], -1.0..1.0), run.floats([3, 5], -1.0..1.0));
        run.float(x.clone().slice_assign(s![2..5, 8..13], y.clone()))?;
        run.float(x.slice_assign(s![0..9;4, 0..10;2], y))
    }
    slice_fill(run, 0.0, 0.0) {
        let x = run.floats([9, 14], -1.0..1.0);
        run.float(x.slice_fill(s![1..4, 2..], 7.0))
    }
    narrow_and_split(run, 0.0, 0.0) {
        let x = run.floats([9, 14], -1.0..1.0);
        run.float(x.clone().narrow(1, 3, 7))?;
        for part in x.clone().chunk(3, 0) {
            run.float(part)?;
        }
        for part in x.split(5, 1) {
            run.float(part)?;
        }
        Ok(())
    }
    select_rows(run, 0.0, 0.0) { selected(run, [256, 6], 0) }
    select_columns(run, 0.0, 0.0) { selected(run, [6, 256], 1) }
    select_planes(run, 0.0, 0.0) { selected(run, [256, 6, 6], 0) }
    select_in_the_middle(run, 0.0, 0.0) { selected(run, [6, 256, 6], 1) }
    select_at_the_end(run, 0.0, 0.0) { selected(run, [6, 6, 256], 2) }
    scatter_rows(run, 0.0, 0.0) { gathered(run, [256, 32], 0) }
    scatter_columns(run, 0.0, 0.0) { gathered(run, [32, 256], 1) }
    scatter_planes(run, 0.0, 0.0) { gathered(run, [256, 6, 6], 0) }
    scatter_in_the_middle(run, 0.0, 0.0) { gathered(run, [6, 256, 6], 1) }
    scatter_at_the_end(run, 0.0, 0.0) { gathered(run, [6, 6, 256], 2) }
    scatter_into_more(run, 0.0, 0.0) {
        let x = run.whole([32, 128], -2..3);
        let places = run.integers([32, 1], 0..128);
        let values = run.whole([32, 1], -2..3);
        run.float(x.scatter(1, places, values, IndexingUpdateOp::Add))
    }
    assign(run, 0.0, 0.0) { changed(run, IndexingUpdateOp::Assign) }
    multiply(run, 1.0, 1.0) { changed(run, IndexingUpdateOp::Mul) }
    minimum(run, 0.0, 0.0) { changed(run, IndexingUpdateOp::Min) }
    maximum(run, 0.0, 0.0) { changed(run, IndexingUpdateOp::Max) }
    gather_nd(run, 0.0, 0.0) {
        let x = run.floats([7, 9, 5], -1.0..1.0);
        // No place twice: the gradient's kernel adds without atomics (`devices.rs`).
        let (rows, columns) = (run.order(7).slice([0..6]), run.integers([6], 0..9));
        run.float::<2>(x.gather_nd(Tensor::stack::<2>(vec![rows, columns], 1)))
    }
    scatter_nd(run, 0.0, 0.0) {
        let x = run.whole([8, 9], -2..3);
        let places = run.order(8).reshape([8, 1]);
        let values = run.whole([8, 9], -2..3);
        run.float(x.scatter_nd(places, values, IndexingUpdateOp::Add))
    }
    mask_where(run, 0.0, 0.0) {
        let (x, y) = (run.floats([9, 14], -1.0..1.0), run.floats([9, 14], -1.0..1.0));
        let mask = run.booleans([9, 14]);
        run.float(x.mask_where(mask, y))
    }
    mask_fill(run, 0.0, 0.0) {
        let x = run.floats([9, 14], -1.0..1.0);
        let mask = run.booleans([9, 14]);
        run.float(x.mask_fill(mask, 0.25))
    }
    triangles(run, 0.0, 0.0) {
        let x = run.floats([9, 9], -1.0..1.0);
        run.float(x.clone().tril(1))?;
        run.float(x.triu(-2))
    }
    places_of_true(run, 0.0, 0.0) {
        let mask = run.booleans([7, 30]);
        run.int(mask.argwhere())
    }
    one_hot(run, 0.0, 0.0) {
        let places = run.integers([20], 0..9);
        run.int(places.one_hot::<2>(9))
    }
    embedding(run, 0.0, 0.0) {
        let table = run.floats([12, 10], -1.0..1.0);
        let rows = run.integers([3, 8], 0..12);
        run.float(burn::tensor::module::embedding(table, rows))
    }
    grid_sample(run, 2.0, 2.0) {
        let image = run.floats([2, 3, 7, 6], -1.0..1.0);
        // Places between elements that every type has.
        let grid = run.eighths([2, 4, 5, 2], -7..8);
        run.float::<4>(Tensor::grid_sample_2d(image, grid, burn::tensor::ops::GridSampleOptions::default()))
    }
}
