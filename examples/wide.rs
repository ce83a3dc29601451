//! Integers of 64 and 128 bits are ordinary types: products, differences and quotients, and an argument of 128 bits.

use cranelift_thisgpu::build::{self, GpuBuilder};
use cranelift_thisgpu::cranelift::prelude::{types::*, *};
use cranelift_thisgpu::{Compiler, Device, Grid, KernelOptions, Options, SimConfig};
use std::error::Error;

/// `wide(a, b, x, out)`: x = x * b − i in 128 bits, out = a / x in 64, of the x before.
pub fn main() -> Result<(), Box<dyn Error>> {
    let wide = build::function("wide", &[I64, I128, I64, I64], &[], |b, p| {
        let i = b.thread_number();
        let x = b.load_element(I128, p[2], i);
        let product = b.ins().imul(x, p[1]);
        let number = b.ins().uextend(I128, i);
        let difference = b.ins().isub(product, number);
        b.store_element(difference, p[2], i);
        let divisor = b.ins().ireduce(I64, x);
        let quotient = b.ins().udiv(p[0], divisor);
        b.store_element(quotient, p[3], i);
        b.ins().return_(&[]);
    });
    let kernel = Some(KernelOptions::default());
    let code = Compiler::new(Options::default()).function(&wide, kernel)?;

    let device = Device::simulator(SimConfig::default());
    let (a, b) = (u64::MAX / 3, 0x1234_5678_9abc_def0_u128 << 50);
    let xs: Vec<u128> = (1..=100).map(|i| i * 0x1_0000_0001_0003).collect();
    let (x, out) = (device.upload(&xs)?, device.zeros::<u64>(100)?);
    let kernel = device.load(&code)?.kernel("wide")?;
    let launch = kernel.launch(Grid::for_elems(100, 100));
    launch.args(&[&a, &b, &x, &out]).run()?;

    let (products, quotients) = (x.to_vec()?, out.to_vec()?);
    for (i, x) in xs.iter().enumerate() {
        assert_eq!(products[i], x.wrapping_mul(b).wrapping_sub(i as u128));
        assert_eq!(quotients[i], a / *x as u64);
    }
    println!("100 products of 128 bits, the last {:#x}", products[99]);
    Ok(())
}
