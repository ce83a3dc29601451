//! The softmax of the rows of a matrix: a plane takes a row, and looks for its maximum first, so that nothing
//! overflows.

use cubecl_core as cubecl;
use cubecl_core::prelude::*;
use cubecl_thisgpu::{Runtime, ThisgpuRuntime};

const ROWS: usize = 24;
const COLUMNS: usize = 100;

#[cube(launch)]
fn softmax(input: &[f32], output: &mut [f32], #[comptime] columns: usize) {
    let first = CUBE_POS * columns;
    let unit = UNIT_POS as usize;
    let mut largest = f32::min_value();
    for column in range_stepped(unit, columns, 32usize) {
        let value = input[first + column];
        if value > largest {
            largest = value;
        }
    }
    let largest = plane_max(largest);
    let mut sum = 0.0f32;
    for column in range_stepped(unit, columns, 32usize) {
        let weight = (input[first + column] - largest).exp();
        output[first + column] = weight;
        sum += weight;
    }
    let sum = plane_sum(sum);
    for column in range_stepped(unit, columns, 32usize) {
        output[first + column] /= sum;
    }
}

fn main() {
    let client = ThisgpuRuntime::client(&Default::default());
    let elements = ROWS * COLUMNS;
    let input: Vec<f32> = (0..elements)
        .map(|i| ((i * 7919) % 1000) as f32 / 50.0 - 5.0)
        .collect();
    let on_device = client.create_from_slice(f32::as_bytes(&input));
    let output = client.empty(size_of_val(&input[..]));
    softmax::launch(
        &client,
        CubeCount::Static(ROWS as u32, 1, 1),
        CubeDim::new_1d(32),
        // SAFETY: the handles have so many elements.
        unsafe { BufferArg::from_raw_parts(on_device, elements) },
        unsafe { BufferArg::from_raw_parts(output.clone(), elements) },
        COLUMNS,
    );
    let bytes = client.read_one(output).expect("the kernel has run");
    let found = f32::from_bytes(&bytes);
    for (row, found) in input.chunks(COLUMNS).zip(found.chunks(COLUMNS)) {
        let largest = row
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, |a, b| a.max(b.into()));
        let weights: Vec<f64> = row
            .iter()
            .map(|&x| (f64::from(x) - largest).exp())
            .collect();
        let sum: f64 = weights.iter().sum();
        for (weight, &found) in weights.iter().zip(found) {
            let error = (weight / sum - f64::from(found)).abs();
            assert!(error < 1e-6, "{found} is not {}", weight / sum);
        }
    }
    println!("{ROWS} rows are right");
}
