//! Sums of blocks of 256 numbers: shuffles within a warp, shared memory between warps.

use cranelift_thisgpu::build::{self, GpuBuilder};
use cranelift_thisgpu::cranelift::prelude::{types::*, *};
use cranelift_thisgpu::{Compiler, Device, Grid, KernelOptions, Options, SimConfig};
use std::error::Error;

/// In each lane the sum of `value` over the lanes whose numbers differ in the bits of `masks`.
fn sum_of_lanes(b: &mut FunctionBuilder, value: Value, masks: &[i64]) -> Value {
    masks.iter().fold(value, |sum, &mask| {
        let mask = b.ins().iconst(I32, mask);
        let other = b.intrinsic("gpu_shfl_bfly", &[sum, mask]);
        b.ins().iadd(sum, other)
    })
}

/// `sum(x, sums)`: sums[block] is the sum of the block's 256 elements. A word of shared memory for each of the block's
/// 8 warps.
pub fn main() -> Result<(), Box<dyn Error>> {
    let sum = build::function("sum", &[I64, I64], &[], |b, p| {
        let [thread, shared] = [b.thread_number(), b.shared_memory(I32)];
        let [warp, lane, block] =
            ["gpu_warpid", "gpu_laneid", "gpu_ctaid_x"].map(|name| b.intrinsic(name, &[]));
        let value = b.load_element(I32, p[0], thread);
        let of_warp = sum_of_lanes(b, value, &[16, 8, 4, 2, 1]);
        // Every lane of the warp stores the same.
        b.store_element(of_warp, shared, warp);
        b.call_intrinsic("gpu_bar_sync", &[]);
        let lane = b.ins().band_imm_u(lane, 7);
        let value = b.load_element(I32, shared, lane);
        let of_block = sum_of_lanes(b, value, &[4, 2, 1]);
        b.store_element(of_block, p[1], block);
        b.ins().return_(&[]);
    });
    let kernel = Some(KernelOptions::default().with_shared(4 * 8));
    let code = Compiler::new(Options::default()).function(&sum, kernel)?;

    let device = Device::simulator(SimConfig::default());
    let xs: Vec<i32> = (0..2048).map(|i| i * i % 101 - 50).collect();
    let (x, sums) = (device.upload(&xs)?, device.zeros::<i32>(8)?);
    let kernel = device.load(&code)?.kernel("sum")?;
    let grid = Grid::for_elems(2048, 256);
    kernel.launch(grid).args(&[&x, &sums]).run()?;
    let expected = xs.chunks(256).map(|block| block.iter().sum());
    assert_eq!(sums.to_vec()?, expected.collect::<Vec<i32>>());
    println!("sums of 8 blocks, the first {}", sums.to_vec()?[0]);
    Ok(())
}
