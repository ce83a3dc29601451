//! `c = a b` of matrices of f16, two columns of `c` at a time: tiles of `a` and `b` in shared memory, sums in pairs of
//! f16.

use cubecl_core as cubecl;
use cubecl_core::prelude::*;
use cubecl_thisgpu::{Runtime, ThisgpuRuntime};
use half::f16;

/// Rows and columns of the matrices.
const SIZE: usize = 64;
/// Rows and columns of a tile.
const TILE: usize = 16;

type Pair = Vector<f16, Const<2>>;

#[cube(launch)]
fn matmul(a: &[f16], b: &[Pair], c: &mut [Pair], #[comptime] size: usize, #[comptime] tile: usize) {
    let pairs = comptime!(tile / 2);
    let mut of_a = Shared::new_slice(comptime!(tile * tile));
    let mut of_b = Shared::new_slice(comptime!(tile * tile / 2));
    let (column, row) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);
    let c_row = CUBE_POS_Y as usize * tile + row;
    let c_pair = CUBE_POS_X as usize * pairs + column;
    let mut sum = Pair::new(f16::new(0.0));
    for step in 0..comptime!(size / tile) {
        // A unit brings a pair of each: two elements of a row of `a`, one pair of `b`.
        let from = c_row * size + step * tile + 2 * column;
        of_a[row * tile + 2 * column] = a[from];
        of_a[row * tile + 2 * column + 1] = a[from + 1];
        of_b[row * pairs + column] = b[(step * tile + row) * comptime!(size / 2) + c_pair];
        sync_cube();
        #[unroll]
        for k in 0..tile {
            let factor = Pair::new(of_a[row * tile + k]);
            sum = fma(factor, of_b[k * pairs + column], sum);
        }
        sync_cube();
    }
    c[c_row * comptime!(size / 2) + c_pair] = sum;
}

fn main() {
    let client = ThisgpuRuntime::client(&Default::default());
    let matrix = |factor: usize| -> Vec<f16> {
        let elements = 0..SIZE * SIZE;
        elements
            .map(|i| f16::from_f32((i * factor % 9) as f32 / 4.0 - 1.0))
            .collect()
    };
    let (a, b) = (matrix(5), matrix(7));
    let [a_handle, b_handle] =
        [&a, &b].map(|values| client.create_from_slice(f16::as_bytes(values)));
    let c_handle = client.empty(SIZE * SIZE * size_of::<f16>());
    let (pairs, tiles) = (SIZE * SIZE / 2, (SIZE / TILE) as u32);
    matmul::launch(
        &client,
        CubeCount::Static(tiles, tiles, 1),
        CubeDim::new_2d(TILE as u32 / 2, TILE as u32),
        // SAFETY: the handles have so many elements.
        unsafe { BufferArg::from_raw_parts(a_handle, SIZE * SIZE) },
        unsafe { BufferArg::from_raw_parts(b_handle, pairs) },
        unsafe { BufferArg::from_raw_parts(c_handle.clone(), pairs) },
        SIZE,
        TILE,
    );
    let bytes = client.read_one(c_handle).expect("the kernel has run");
    let found = f16::from_bytes(&bytes);
    for row in 0..SIZE {
        for column in 0..SIZE {
            // The device's order, with a rounding to f16 after each step.
            let mut sum = f16::ZERO;
            for k in 0..SIZE {
                let product = a[row * SIZE + k].to_f64() * b[k * SIZE + column].to_f64();
                sum = f16::from_f64(product + sum.to_f64());
            }
            assert_eq!(
                found[row * SIZE + column],
                sum,
                "row {row}, column {column}"
            );
        }
    }
    println!("{SIZE} x {SIZE} elements are right");
}
