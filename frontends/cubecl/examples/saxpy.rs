//! `y = a x + y`, on vectors of four elements.

use cubecl_core as cubecl;
use cubecl_core::prelude::*;
use cubecl_thisgpu::{Runtime, ThisgpuRuntime};

const ELEMENTS: usize = 4096;
const WIDTH: usize = 4;

#[cube(launch)]
fn saxpy<N: Size>(a: f32, x: &[Vector<f32, N>], y: &mut [Vector<f32, N>]) {
    if ABSOLUTE_POS < y.len() {
        y[ABSOLUTE_POS] = Vector::new(a) * x[ABSOLUTE_POS] + y[ABSOLUTE_POS];
    }
}

fn main() {
    let client = ThisgpuRuntime::client(&Default::default());
    let x: Vec<f32> = (0..ELEMENTS).map(|i| i as f32 / 64.0).collect();
    let y: Vec<f32> = (0..ELEMENTS).map(|i| 1.0 - i as f32 / 32.0).collect();
    let on_device = [&x, &y].map(|values| client.create_from_slice(f32::as_bytes(values)));
    let [x_handle, y_handle] = on_device;
    let vectors = (ELEMENTS / WIDTH) as u32;
    saxpy::launch(
        &client,
        CubeCount::Static(vectors.div_ceil(256), 1, 1),
        CubeDim::new_1d(256),
        WIDTH,
        3.0,
        // SAFETY: the handles have so many elements.
        unsafe { BufferArg::from_raw_parts(x_handle, ELEMENTS) },
        unsafe { BufferArg::from_raw_parts(y_handle.clone(), ELEMENTS) },
    );
    let bytes = client.read_one(y_handle).expect("the kernel has run");
    let expected = x.iter().zip(&y).map(|(x, y)| 3.0 * x + y);
    assert_eq!(f32::from_bytes(&bytes), expected.collect::<Vec<_>>());
    println!("{ELEMENTS} elements are right");
}
