//! y = a * x + y by `FunctionBuilder`: from an empty function to results that are checked against the host.

use cranelift_thisgpu::build::{self, GpuBuilder};
use cranelift_thisgpu::cranelift::prelude::{types::*, *};
use cranelift_thisgpu::{Compiler, Device, Grid, KernelOptions, Options, SimConfig};
use std::error::Error;

/// Builds, compiles, launches, checks: one thread an element.
pub fn main() -> Result<(), Box<dyn Error>> {
    let saxpy = build::function("saxpy", &[F32, I64, I64, I32], &[], |b, p| {
        let i = b.thread_number();
        let inside = b.ins().icmp(IntCC::UnsignedLessThan, i, p[3]);
        b.if_then(inside, |b| {
            let [x, y] = [p[1], p[2]].map(|base| b.load_element(F32, base, i));
            let sum = b.ins().fma(p[0], x, y);
            b.store_element(sum, p[2], i);
        });
        b.ins().return_(&[]);
    });
    let kernel = Some(KernelOptions::default());
    let code = Compiler::new(Options::default()).function(&saxpy, kernel)?;
    println!("{}", code.kernel("saxpy")?.resources());

    let device = Device::simulator(SimConfig::default());
    let (n, a) = (10_000u32, 3.0f32);
    let xs: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
    let ys: Vec<f32> = (0..n).map(|i| 1000.0 - i as f32).collect();
    let (x, y) = (device.upload(&xs)?, device.upload(&ys)?);
    let kernel = device.load(&code)?.kernel("saxpy")?;
    let launch = kernel.launch(Grid::for_elems(n, 256));
    let report = launch.args(&[&a, &x, &y, &n]).run()?;

    for (i, result) in y.to_vec()?.into_iter().enumerate() {
        assert_eq!(result, xs[i].mul_add(a, ys[i]), "element {i}");
    }
    let instructions = report.stats.warp_instructions;
    println!("{n} elements, {instructions} warp instructions");
    Ok(())
}
