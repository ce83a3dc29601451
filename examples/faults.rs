//! What becomes of a kernel that goes wrong: a fault is a value with place, registers and counts, and the device lives
//! on.

use cranelift_thisgpu::{
    Buffer, Compiler, Device, DeviceError, FaultKind, Grid, Kernel, Options, SimConfig,
};
use std::error::Error;

/// `divide(out, d)`: thread i stores 1000 / (d − i), which traps for i = d, and is out of bounds where `out` is too
/// small.
const KERNEL: &str = "
; kernel
function %divide(i64, i32) {
    fn0 = %gpu_tid_x() -> i32
block0(v0: i64, v1: i32):
    v2 = call fn0()
    v3 = iconst.i32 1000
    v4 = isub v1, v2
    v5 = sdiv v3, v4
    v6 = uextend.i64 v2
    v7 = iconst.i32 2
    v8 = ishl v6, v7
    v9 = iadd v0, v8
    store aligned v5, v9
    return
}
";

/// Launches with a divisor; gives the fault if there is one.
fn fault(
    kernel: &Kernel,
    threads: u32,
    out: &Buffer,
    d: i32,
) -> Result<Option<FaultKind>, DeviceError> {
    let launch = kernel.launch(Grid::new([1, 1, 1], [threads, 1, 1]));
    match launch.arg(out).arg(d).run() {
        Ok(_) => Ok(None),
        Err(DeviceError::Fault { fault, report }) => {
            println!(
                "{fault}; after {} instructions",
                report.stats.warp_instructions
            );
            Ok(Some(fault.kind))
        }
        // Wrong arguments, a launch that is not possible: nothing has run.
        Err(other) => Err(other),
    }
}

/// A division by zero, an access out of bounds, and a launch that works.
pub fn main() -> Result<(), Box<dyn Error>> {
    let code = Compiler::new(Options::default()).compile_clif(KERNEL)?;
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&code)?;
    let kernel = module.kernel("divide")?;
    let out = device.allocate(4 * 32)?;

    let divided = fault(&kernel, 32, &out, 5)?;
    assert!(
        matches!(divided, Some(FaultKind::Trap { .. })),
        "{divided:?}"
    );
    let outside = fault(&kernel, 64, &out, 1000)?;
    assert!(
        matches!(outside, Some(FaultKind::OutOfBounds { address, bytes: 4, .. }) if address >= out.address() + 4 * 32),
        "{outside:?}"
    );
    let refused = kernel
        .launch(Grid::new([1, 1, 1], [32, 1, 1]))
        .arg(&out)
        .run();
    assert!(matches!(refused, Err(DeviceError::ArgumentCount { .. })));

    assert_eq!(fault(&kernel, 32, &out, 1000)?, None);
    let results: Vec<i32> = device.download(&out)?;
    assert!(
        results
            .iter()
            .zip(0..)
            .all(|(&result, i)| result == 1000 / (1000 - i))
    );
    println!("the device lives on");
    Ok(())
}
