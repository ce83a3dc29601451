//! How often each byte value occurs: atomics in shared memory, then one for each value and block in global memory.

use cranelift_thisgpu::{Compiler, Device, Grid, Options, SimConfig};
use std::error::Error;

/// `histogram(n, bytes, counts)` for blocks of 256 threads: each counts in 256 words of shared memory.
const KERNEL: &str = "
; kernel shared=1024
function %histogram(i32, i64, i64) {
    gv0 = symbol %gpu_shared
    gv1 = symbol %gpu_tid_x
    gv2 = symbol %gpu_ctaid_x
    gv3 = symbol %gpu_nctaid_x
    fn0 = %gpu_bar_sync()

block0(v0: i32, v1: i64, v2: i64):
    v3 = symbol_value.i32 gv1
    v4 = symbol_value.i32 gv2
    v5 = symbol_value.i32 gv3
    v6 = symbol_value.i32 gv0
    v7 = iconst.i32 2
    v8 = ishl v3, v7
    v9 = iadd v6, v8
    v10 = iconst.i32 0
    store aligned v10, v9
    call fn0()
    v11 = iconst.i32 8
    v12 = ishl v4, v11
    v13 = iadd v12, v3
    v14 = iconst.i32 8
    v15 = ishl v5, v14
    v16 = iconst.i32 1
    jump block1(v13)

block1(v17: i32):
    v18 = icmp ult v17, v0
    brif v18, block2, block3

block2:
    v19 = uextend.i64 v17
    v20 = iadd v1, v19
    v21 = uload8.i32 aligned v20
    v22 = iconst.i32 2
    v23 = ishl v21, v22
    v24 = iadd v6, v23
    v25 = atomic_rmw.i32 add v24, v16
    v26 = iadd v17, v15
    jump block1(v26)

block3:
    call fn0()
    v27 = load.i32 aligned v9
    v28 = uextend.i64 v8
    v29 = iadd v2, v28
    v30 = atomic_rmw.i32 add v29, v27
    return
}
";

/// Counts on the device and on the host.
pub fn main() -> Result<(), Box<dyn Error>> {
    let code = Compiler::new(Options::default()).compile_clif(KERNEL)?;
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&code)?;

    let bytes: Vec<u8> = (0..20_000u32).map(|i| (i * i / 7) as u8).collect();
    let (input, counts) = (device.upload(&bytes)?, device.allocate_zeroed(4 * 256)?);
    let kernel = module.kernel("histogram")?;
    let launch = kernel.launch(Grid::new([4, 1, 1], [256, 1, 1]));
    launch
        .arg(bytes.len() as u32)
        .arg(&input)
        .arg(&counts)
        .run()?;

    let counts: Vec<u32> = device.download(&counts)?;
    let mut expected = vec![0; 256];
    bytes
        .iter()
        .for_each(|&byte| expected[usize::from(byte)] += 1);
    assert_eq!(counts, expected);
    println!("{} bytes, {} of them 0", bytes.len(), counts[0]);
    Ok(())
}
