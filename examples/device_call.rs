//! Functions on the device: one that calls itself, and one that is called by its address.

use cranelift_thisgpu::{Compiler, Device, Grid, Options, SimConfig};
use std::error::Error;

/// `run(out)`: thread i stores gcd(i, 36) if it is even, else i squared, by the address of the function.
const KERNEL: &str = "
; kernel
function %run(i64) {
    sig0 = (i32, i32) -> i32
    fn0 = %gpu_tid_x() -> i32
    fn1 = %gcd(i32, i32) -> i32
    fn2 = %product(i32, i32) -> i32
block0(v0: i64):
    v1 = call fn0()
    v2 = iconst.i32 1
    v3 = band v1, v2
    v4 = func_addr.i64 fn2
    v5 = func_addr.i64 fn1
    v6 = select v3, v4, v5
    v7 = iconst.i32 36
    v8 = select v3, v1, v7
    v9 = call_indirect sig0, v6(v1, v8)
    v10 = uextend.i64 v1
    v11 = iconst.i32 2
    v12 = ishl v10, v11
    v13 = iadd v0, v12
    store aligned v9, v13
    return
}

function %gcd(i32, i32) -> i32 {
    fn0 = %gcd(i32, i32) -> i32
block0(v0: i32, v1: i32):
    brif v1, block1, block2
block1:
    v2 = urem v0, v1
    v3 = call fn0(v1, v2)
    return v3
block2:
    return v0
}

function %product(i32, i32) -> i32 {
block0(v0: i32, v1: i32):
    v2 = imul v0, v1
    return v2
}
";

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Calls on the device and on the host.
pub fn main() -> Result<(), Box<dyn Error>> {
    let code = Compiler::new(Options::default()).compile_clif(KERNEL)?;
    println!("{}", code.kernel("run")?.resources());
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&code)?;
    let out = device.allocate(4 * 100)?;
    let grid = Grid::new([1, 1, 1], [100, 1, 1]);
    module.kernel("run")?.launch(grid).arg(&out).run()?;

    let results: Vec<u32> = device.download(&out)?;
    let expected: Vec<u32> = (0..100)
        .map(|i| if i % 2 == 1 { i * i } else { gcd(i, 36) })
        .collect();
    assert_eq!(results, expected);
    println!("100 threads called two functions by address");
    Ok(())
}
