//! A front end written against `cranelift_module::Module`: a table and a counter in data, a function, a kernel that
//! uses all of them.

use cranelift_thisgpu::build::{self, GpuBuilder};
use cranelift_thisgpu::cranelift::codegen::Context;
use cranelift_thisgpu::cranelift::prelude::{types::*, *};
use cranelift_thisgpu::{Code, Device, GpuModule, Grid, KernelOptions, Options, SimConfig};
use std::error::Error;

/// What the table holds.
const WEIGHTS: [i32; 8] = [2, 3, 5, 7, 11, 13, 17, 19];

/// `weigh(out: pointer)`: thread i stores weight i mod 8, squared, and adds it to `total`.
fn compile() -> Result<Code, Box<dyn Error>> {
    let mut module = GpuModule::new(Options::default())?;
    let weights = module.declare_data("weights", Linkage::Local, false, false)?;
    let mut contents = DataDescription::new();
    contents.define(WEIGHTS.iter().flat_map(|w| w.to_le_bytes()).collect());
    module.define_data(weights, &contents)?;
    let total = module.declare_data("total", Linkage::Export, true, false)?;
    let mut contents = DataDescription::new();
    contents.define_zeroinit(4);
    module.define_data(total, &contents)?;

    let square = build::function("square", &[I32], &[I32], |b, p| {
        let square = b.ins().imul(p[0], p[0]);
        b.ins().return_(&[square]);
    });
    let callee = module.declare_function("square", Linkage::Local, &square.signature)?;
    module.define_function(callee, &mut Context::for_function(square))?;

    let weigh = build::function("weigh", &[I64], &[], |b, p| {
        let thread = b.intrinsic("gpu_tid_x", &[]);
        let index = b.ins().band_imm_u(thread, 7);
        let table = module.declare_data_in_func(weights, b.func);
        let table = b.ins().symbol_value(I64, table);
        let weight = b.load_element(I32, table, index);
        let callee = module.declare_func_in_func(callee, b.func);
        let call = b.ins().call(callee, &[weight]);
        let square = b.inst_results(call)[0];
        b.store_element(square, p[0], thread);
        let total = module.declare_data_in_func(total, b.func);
        let total = b.ins().symbol_value(I64, total);
        let flags = MemFlagsData::trusted();
        b.ins()
            .atomic_rmw(I32, flags, AtomicRmwOp::Add, total, square);
        b.ins().return_(&[]);
    });
    let kernel = module.declare_function("weigh", Linkage::Export, &weigh.signature)?;
    module.declare_kernel(kernel, KernelOptions::default());
    module.define_function(kernel, &mut Context::for_function(weigh))?;
    Ok(module.finish()?)
}

/// Launches, checks what the kernel stored and what it left in the module's data.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&compile()?)?;
    let out = device.zeros::<i32>(64)?;
    let kernel = module.kernel("weigh")?;
    kernel.launch(Grid::for_elems(64, 64)).arg(&out).run()?;

    let squares = WEIGHTS.map(|w| w * w);
    let stored = out.to_vec()?;
    assert!(
        stored
            .iter()
            .zip(squares.iter().cycle())
            .all(|(a, b)| a == b)
    );
    let total = module.data("total").ok_or("the module has no `total`")?;
    let total: Vec<i32> = device.download(total)?;
    assert_eq!(total, [8 * squares.iter().sum::<i32>()]);
    println!("64 threads, total {}", total[0]);
    Ok(())
}
