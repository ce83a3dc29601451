//! The sum of many numbers: within a plane by `plane_sum`, between the planes of a cube in shared memory, between cubes
//! by an atomic.

use cubecl_core as cubecl;
use cubecl_core::prelude::*;
use cubecl_thisgpu::{Runtime, ThisgpuRuntime};

const UNITS: u32 = 256;
const PLANES: usize = 8;
const ELEMENTS: usize = 10_000;

#[cube(launch)]
fn sum(input: &[u32], output: &mut [Atomic<u32>]) {
    let mut of_planes = Shared::new_slice(comptime!(PLANES));
    let mut value = 0u32;
    if ABSOLUTE_POS < input.len() {
        value = input[ABSOLUTE_POS];
    }
    let of_plane = plane_sum(value);
    if UNIT_POS_PLANE == 0 {
        of_planes[(UNIT_POS / PLANE_DIM) as usize] = of_plane;
    }
    sync_cube();
    if UNIT_POS == 0 {
        let mut of_cube = 0u32;
        #[unroll]
        for plane in 0..PLANES {
            of_cube += of_planes[plane];
        }
        output[0].fetch_add(of_cube);
    }
}

fn main() {
    let client = ThisgpuRuntime::client(&Default::default());
    let input: Vec<u32> = (0..ELEMENTS as u32).map(|i| i * i % 1009).collect();
    let on_device = client.create_from_slice(u32::as_bytes(&input));
    let output = client.create_from_slice(u32::as_bytes(&[0]));
    sum::launch(
        &client,
        CubeCount::Static((ELEMENTS as u32).div_ceil(UNITS), 1, 1),
        CubeDim::new_1d(UNITS),
        // SAFETY: the handles have so many elements.
        unsafe { BufferArg::from_raw_parts(on_device, ELEMENTS) },
        unsafe { BufferArg::from_raw_parts(output.clone(), 1) },
    );
    let bytes = client.read_one(output).expect("the kernel has run");
    let expected: u32 = input.iter().sum();
    assert_eq!(u32::from_bytes(&bytes), [expected]);
    println!("the sum is {expected}");
}
