//! A module of many functions on several threads: the same bytes as on one.

use cranelift_thisgpu::{Compiler, Device, Grid, Options, SimConfig, SourceFile};
use std::error::Error;
use std::thread;

/// Kernels, each with a function of its own.
const KERNELS: u32 = 40;

/// Kernel i stores a polynomial of the thread's number.
fn text() -> String {
    let kernel = |i: u32| {
        format!(
            "
function %poly{i}(i32) -> i32 {{
block0(v0: i32):
    v1 = iconst.i32 {i}
    v2 = imul v0, v1
    v3 = iconst.i32 7
    v4 = iadd v2, v3
    v5 = imul v4, v0
    v6 = iconst.i32 {i}
    v7 = iadd v5, v6
    return v7
}}

; kernel
function %kernel{i}(i64) {{
    fn0 = %gpu_tid_x() -> i32
    fn1 = %poly{i}(i32) -> i32
block0(v0: i64):
    v1 = call fn0()
    v2 = call fn1(v1)
    v3 = uextend.i64 v1
    v4 = iconst.i32 2
    v5 = ishl v3, v4
    v6 = iadd v0, v5
    store aligned v2, v6
    return
}}
"
        )
    };
    (0..KERNELS).map(kernel).collect()
}

/// Compiles on one thread and on all, and runs a kernel.
pub fn main() -> Result<(), Box<dyn Error>> {
    let file = SourceFile::parse("generated.clif", &text())?;
    let threads = thread::available_parallelism()?.get().max(2);
    let mut compiler = Compiler::new(Options::default());
    let one = compiler.file_on(&file, 1)?.to_elf()?;
    let many = compiler.file_on(&file, threads)?;
    assert_eq!(one, many.to_elf()?);

    let device = Device::simulator(SimConfig::default());
    let module = device.load(&many)?;
    let out = device.allocate(4 * 32)?;
    let grid = Grid::new([1, 1, 1], [32, 1, 1]);
    module.kernel("kernel9")?.launch(grid).arg(&out).run()?;
    let results: Vec<u32> = device.download(&out)?;
    assert!(
        results
            .iter()
            .zip(0..)
            .all(|(&result, i)| result == (9 * i + 7) * i + 9)
    );
    println!("{} bytes of code, the same on {threads} threads", one.len());
    Ok(())
}
