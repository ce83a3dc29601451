//! A front end written against `cranelift_module::Module`: a table and a counter in data, an intrinsic that is imported, a kernel.

use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, AtomicRmwOp, InstBuilder, MemFlagsData};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{DataDescription, Linkage, Module};
use cranelift_thisgpu::KernelOptions;
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::module::GpuModule;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use std::error::Error;

/// What the table holds.
const WEIGHTS: [i32; 8] = [2, 3, 5, 7, 11, 13, 17, 19];

/// `weigh(out: pointer)`: thread i stores weight i mod 8 and adds it to `total`.
fn define(module: &mut GpuModule) -> Result<(), Box<dyn Error>> {
    let weights = module.declare_data("weights", Linkage::Local, false, false)?;
    let mut contents = DataDescription::new();
    contents.define(WEIGHTS.iter().flat_map(|w| w.to_le_bytes()).collect());
    module.define_data(weights, &contents)?;
    let total = module.declare_data("total", Linkage::Export, true, false)?;
    let mut contents = DataDescription::new();
    contents.define_zeroinit(4);
    module.define_data(total, &contents)?;

    let mut signature = module.make_signature();
    signature.returns.push(AbiParam::new(I32));
    let thread = module.declare_function("gpu_tid_x", Linkage::Import, &signature)?;
    let mut context = module.make_context();
    context.func.signature.params.push(AbiParam::new(I64));
    let kernel = module.declare_function("weigh", Linkage::Export, &context.func.signature)?;
    module.declare_kernel(kernel, KernelOptions::default());

    let mut functions = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut functions);
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    let out = builder.block_params(block)[0];
    let thread = module.declare_func_in_func(thread, builder.func);
    let call = builder.ins().call(thread, &[]);
    let index = builder.inst_results(call)[0];

    let entry = builder.ins().band_imm_u(index, 7);
    let entry = builder.ins().uextend(I64, entry);
    let entry = builder.ins().ishl_imm_u(entry, 2);
    let table = module.declare_data_in_func(weights, builder.func);
    let table = builder.ins().symbol_value(I64, table);
    let place = builder.ins().iadd(table, entry);
    let aligned = MemFlagsData::new().with_aligned();
    let weight = builder.ins().load(I32, aligned, place, 0);

    let offset = builder.ins().uextend(I64, index);
    let offset = builder.ins().ishl_imm_u(offset, 2);
    let place = builder.ins().iadd(out, offset);
    builder.ins().store(aligned, weight, place, 0);
    let total = module.declare_data_in_func(total, builder.func);
    let total = builder.ins().symbol_value(I64, total);
    builder
        .ins()
        .atomic_rmw(I32, aligned, AtomicRmwOp::Add, total, weight);
    builder.ins().return_(&[]);
    builder.seal_all_blocks();
    builder.finalize(module.target_config());
    module.define_function(kernel, &mut context)?;
    Ok(())
}

/// Defines, launches, checks what the kernel stored and what it left in the module's data.
pub fn main() -> Result<(), Box<dyn Error>> {
    let mut module = GpuModule::new(Options::default())?;
    define(&mut module)?;
    let code = module.finish()?;

    let device = Device::simulator(SimConfig::default());
    let loaded = device.load(&code)?;
    let out = device.allocate(4 * 64)?;
    let grid = Grid::new([1, 1, 1], [64, 1, 1]);
    loaded.kernel("weigh")?.launch(grid).arg(&out).run()?;

    let stored: Vec<i32> = device.download(&out)?;
    assert!(
        stored
            .iter()
            .zip(WEIGHTS.iter().cycle())
            .all(|(a, b)| a == b)
    );
    let total = loaded
        .data("total")
        .ok_or("the module has no data `total`")?;
    let total: Vec<i32> = device.download(total)?;
    assert_eq!(total, [8 * WEIGHTS.iter().sum::<i32>()]);
    println!("64 threads, total {}", total[0]);
    Ok(())
}
