//! Sums of blocks of 256 numbers: shuffles within a warp, shared memory between warps.

use cranelift_thisgpu::compile::Compiler;
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use std::error::Error;

/// `sum(n, in, out)`: out[block] is the sum of the block's 256 elements of `in`, of which there are `n`. A word of shared memory for each of
/// the block's 8 warps.
const KERNEL: &str = "
; kernel shared=32
function %sum(i32, i64, i64) {
    gv0 = symbol %gpu_shared
    fn0 = %gpu_ctaid_x() -> i32
    fn1 = %gpu_tid_x() -> i32
    fn2 = %gpu_warpid() -> i32
    fn3 = %gpu_laneid() -> i32
    fn4 = %gpu_bar_sync()
    fn5 = %sum_of_lanes(i32, i32) -> i32

block0(v0: i32, v1: i64, v2: i64):
    v3 = call fn0()
    v4 = call fn1()
    v5 = iconst.i32 8
    v6 = ishl v3, v5
    v7 = iadd v6, v4
    v8 = iconst.i32 0
    v9 = icmp ult v7, v0
    brif v9, block1, block2(v8)

block1:
    v10 = uextend.i64 v7
    v11 = iconst.i32 2
    v12 = ishl v10, v11
    v13 = iadd v1, v12
    v14 = load.i32 aligned v13
    jump block2(v14)

block2(v15: i32):
    v16 = iconst.i32 32
    v17 = call fn5(v15, v16)
    v18 = symbol_value.i32 gv0
    v19 = call fn2()
    v20 = iconst.i32 2
    v21 = ishl v19, v20
    v22 = iadd v18, v21
    store aligned v17, v22        ; every lane of the warp stores the same
    call fn4()
    v23 = call fn3()
    v24 = iconst.i32 7
    v25 = band v23, v24
    v26 = iconst.i32 2
    v27 = ishl v25, v26
    v28 = iadd v18, v27
    v29 = load.i32 aligned v28
    v30 = iconst.i32 8
    v31 = call fn5(v29, v30)
    v32 = iconst.i32 0
    v33 = icmp eq v4, v32
    brif v33, block3, block4

block3:
    v34 = uextend.i64 v3
    v35 = iconst.i32 2
    v36 = ishl v34, v35
    v37 = iadd v2, v36
    store aligned v31, v37
    return

block4:
    return
}

; The sum of groups of so many lanes, a power of two, in each of them.
function %sum_of_lanes(i32, i32) -> i32 {
    fn0 = %gpu_shfl_bfly(i32, i32) -> i32
block0(v0: i32, v1: i32):
    jump block1(v0, v1)
block1(v2: i32, v3: i32):
    v4 = iconst.i32 1
    v5 = ushr v3, v4
    brif v5, block2, block3
block2:
    v6 = call fn0(v2, v5)
    v7 = iadd v2, v6
    jump block1(v7, v5)
block3:
    return v2
}
";

/// Sums and compares with the host.
pub fn main() -> Result<(), Box<dyn Error>> {
    let code = Compiler::new(Options::default()).compile_clif(KERNEL)?;
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&code)?;

    let numbers: Vec<i32> = (0..5000).map(|i| i * i % 1009 - 500).collect();
    let grid = Grid::for_elems(numbers.len(), 256);
    let input = device.upload(&numbers)?;
    let output = device.allocate(4 * u64::from(grid.blocks[0]))?;
    let kernel = module.kernel("sum")?;
    let launch = kernel.launch(grid);
    launch
        .arg(numbers.len() as i32)
        .arg(&input)
        .arg(&output)
        .run()?;

    let sums: Vec<i32> = device.download(&output)?;
    let expected: Vec<i32> = numbers.chunks(256).map(|c| c.iter().sum()).collect();
    assert_eq!(sums, expected);
    println!("sums of {} blocks, the first {}", sums.len(), sums[0]);
    Ok(())
}
