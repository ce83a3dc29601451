//! y = a * x + y by `FunctionBuilder`: from an empty function to results that are checked against the host.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, I32, I64};
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, Function, InstBuilder, MemFlagsData, Signature,
    UserFuncName, Value,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_thisgpu::KernelOptions;
use cranelift_thisgpu::compile::Compiler;
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use std::error::Error;
use target_lexicon::PointerWidth;

/// What a front end asks of the target: addresses have 64 bits.
const TARGET: TargetFrontendConfig = TargetFrontendConfig {
    default_call_conv: CallConv::Fast,
    pointer_width: PointerWidth::U64,
    page_size_align_log2: 12,
};

/// A call of an intrinsic without operands, such as `gpu_tid_x`.
fn intrinsic(builder: &mut FunctionBuilder, name: &str) -> Value {
    let mut signature = Signature::new(CallConv::Fast);
    signature.returns.push(AbiParam::new(I32));
    let signature = builder.import_signature(signature);
    let function = builder.import_function(ExtFuncData {
        name: ExternalName::testcase(name),
        signature,
        colocated: false,
        patchable: false,
    });
    let call = builder.ins().call(function, &[]);
    builder.inst_results(call)[0]
}

/// `saxpy(a: f32, x: pointer, y: pointer, n: i32)`: one thread an element.
fn saxpy() -> Function {
    let mut signature = Signature::new(CallConv::Fast);
    signature
        .params
        .extend([F32, I64, I64, I32].map(AbiParam::new));
    let mut func = Function::with_name_signature(UserFuncName::testcase("saxpy"), signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut func, &mut context);
    let [entry, body, end] = [(); 3].map(|()| builder.create_block());

    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let [a, x, y, n] = [0, 1, 2, 3].map(|i| builder.block_params(entry)[i]);
    let block = intrinsic(&mut builder, "gpu_ctaid_x");
    let threads = intrinsic(&mut builder, "gpu_ntid_x");
    let thread = intrinsic(&mut builder, "gpu_tid_x");
    let first = builder.ins().imul(block, threads);
    let index = builder.ins().iadd(first, thread);
    let inside = builder.ins().icmp(IntCC::UnsignedLessThan, index, n);
    builder.ins().brif(inside, body, &[], end, &[]);

    builder.switch_to_block(body);
    let index = builder.ins().uextend(I64, index);
    let offset = builder.ins().ishl_imm_u(index, 2);
    let x = builder.ins().iadd(x, offset);
    let y = builder.ins().iadd(y, offset);
    let aligned = MemFlagsData::new().with_aligned();
    let x = builder.ins().load(F32, aligned, x, 0);
    let old = builder.ins().load(F32, aligned, y, 0);
    let new = builder.ins().fma(a, x, old);
    builder.ins().store(aligned, new, y, 0);
    builder.ins().jump(end, &[]);

    builder.switch_to_block(end);
    builder.ins().return_(&[]);
    builder.seal_all_blocks();
    builder.finalize(TARGET);
    func
}

/// Compiles, launches, checks.
pub fn main() -> Result<(), Box<dyn Error>> {
    let kernel = Some(KernelOptions::default());
    let code = Compiler::new(Options::default()).function(&saxpy(), kernel)?;
    println!("{}", code.kernel("saxpy")?.resources());

    let device = Device::simulator(SimConfig::default());
    let module = device.load(&code)?;
    let n = 10_000u32;
    let xs: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
    let ys: Vec<f32> = (0..n).map(|i| 1000.0 - i as f32).collect();
    let (x, y) = (device.upload(&xs)?, device.upload(&ys)?);
    let kernel = module.kernel("saxpy")?;
    let launch = kernel.launch(Grid::for_elems(n, 256));
    let report = launch.arg(3.0f32).arg(&x).arg(&y).arg(n).run()?;

    let results: Vec<f32> = device.download(&y)?;
    let expected: Vec<f32> = (xs.iter().zip(&ys))
        .map(|(x, y)| x.mul_add(3.0, *y))
        .collect();
    assert_eq!(results, expected);
    println!(
        "{n} elements, {} warp instructions",
        report.stats.warp_instructions
    );
    Ok(())
}
