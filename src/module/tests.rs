//! Modules of several functions, kernels and data.

use super::*;
use crate::driver::{Device, Grid};
use crate::sim::SimConfig;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, InstBuilder, MemFlagsData};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

/// A module with a table in data, a function that reads it, and a kernel that calls the function for every thread.
fn module() -> GpuModule {
    module_marked(true).0
}

/// The module, and its kernel, which is made one before it is defined or not at all.
fn module_marked(before: bool) -> (GpuModule, FuncId) {
    let mut module = GpuModule::new(Options::default()).unwrap();
    let table = module
        .declare_data("table", Linkage::Local, false, false)
        .unwrap();
    let mut contents = DataDescription::new();
    contents.define(
        (1..=8i32)
            .flat_map(|i| (i * i).to_le_bytes())
            .collect::<Vec<u8>>()
            .into(),
    );
    module.define_data(table, &contents).unwrap();

    let mut signature = module.make_signature();
    signature.params.push(AbiParam::new(I32));
    signature.returns.push(AbiParam::new(I32));
    let square = module
        .declare_function("square", Linkage::Local, &signature)
        .unwrap();
    let mut tid = module.make_signature();
    tid.returns.push(AbiParam::new(I32));
    let tid = module
        .declare_function("gpu_tid_x", Linkage::Import, &tid)
        .unwrap();
    let mut signature = module.make_signature();
    signature.params.push(AbiParam::new(I64));
    let kernel = module
        .declare_function("squares", Linkage::Export, &signature)
        .unwrap();
    if before {
        module.declare_kernel(kernel, KernelOptions::default());
    }

    let mut functions = FunctionBuilderContext::new();
    let mut context = module.make_context();
    context.func.signature = module
        .declarations()
        .get_function_decl(square)
        .signature
        .clone();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut functions);
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    let base = module.declare_data_in_func(table, builder.func);
    let base = builder.ins().symbol_value(I64, base);
    let index = builder.block_params(block)[0];
    let index = builder.ins().uextend(I64, index);
    let four = builder.ins().iconst(I64, 4);
    let offset = builder.ins().imul(index, four);
    let address = builder.ins().iadd(base, offset);
    let value = builder
        .ins()
        .load(I32, MemFlagsData::new().with_aligned(), address, 0);
    builder.ins().return_(&[value]);
    builder.seal_all_blocks();
    builder.finalize(module.target_config());
    module.define_function(square, &mut context).unwrap();

    module.clear_context(&mut context);
    context.func.signature = signature;
    let mut builder = FunctionBuilder::new(&mut context.func, &mut functions);
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    let tid = module.declare_func_in_func(tid, builder.func);
    let square = module.declare_func_in_func(square, builder.func);
    let call = builder.ins().call(tid, &[]);
    let index = builder.inst_results(call)[0];
    let call = builder.ins().call(square, &[index]);
    let value = builder.inst_results(call)[0];
    let out = builder.block_params(block)[0];
    let index = builder.ins().uextend(I64, index);
    let four = builder.ins().iconst(I64, 4);
    let offset = builder.ins().imul(index, four);
    let address = builder.ins().iadd(out, offset);
    builder
        .ins()
        .store(MemFlagsData::new().with_aligned(), value, address, 0);
    builder.ins().return_(&[]);
    builder.seal_all_blocks();
    builder.finalize(module.target_config());
    module.define_function(kernel, &mut context).unwrap();
    (module, kernel)
}

#[test]
fn a_front_end_for_other_modules_makes_a_kernel_that_runs() {
    let code = module().finish().unwrap();
    let device = Device::simulator(SimConfig::default());
    let loaded = device.load(&code).unwrap();
    let out = device.allocate(32).unwrap();
    let kernel = loaded.kernel("squares").unwrap();
    kernel
        .launch(Grid::new([1, 1, 1], [8, 1, 1]))
        .arg(&out)
        .run()
        .unwrap();
    assert_eq!(
        device.download::<i32>(&out).unwrap(),
        [1, 4, 9, 16, 25, 36, 49, 64]
    );
}

#[test]
fn a_kernel_is_the_same_whether_it_is_marked_before_or_after_its_definition() {
    let (mut module, kernel) = module_marked(false);
    module.declare_kernel(kernel, KernelOptions::default());
    let before = module_marked(true).0.finish().unwrap();
    assert_eq!(module.finish().unwrap(), before);
    let (mut module, kernel) = module_marked(true);
    let options = KernelOptions {
        shared_bytes: 64,
        ..KernelOptions::default()
    };
    module.declare_kernel(kernel, options);
    let code = module.finish().unwrap();
    assert_eq!(code.kernels()[0].shared_bytes, 64);
}

#[test]
fn a_function_with_results_is_no_kernel_later_either() {
    let mut module = module();
    let FuncOrDataId::Func(square) = module.get_name("square").unwrap() else {
        panic!("a function")
    };
    module.declare_kernel(square, KernelOptions::default());
    let errors = module.finish().unwrap_err().to_string();
    assert!(
        errors.contains("a kernel returns nothing") && errors.contains("%square"),
        "{errors}"
    );
}

#[test]
fn what_is_declared_must_be_defined_once() {
    let mut module = module();
    let FuncOrDataId::Func(squares) = module.get_name("squares").unwrap() else {
        panic!("a function")
    };
    let again = module.define_function(squares, &mut Context::new());
    assert!(matches!(again, Err(ModuleError::DuplicateDefinition(name)) if name == "squares"));
    let signature = module.make_signature();
    module
        .declare_function("late", Linkage::Export, &signature)
        .unwrap();
    let errors = module.finish().unwrap_err().to_string();
    assert_eq!(errors, "function `late` is declared and never defined");
}

#[test]
fn a_name_of_another_module_is_an_error() {
    let mut module = GpuModule::new(Options::default()).unwrap();
    let signature = module.make_signature();
    let id = module
        .declare_function("f", Linkage::Export, &signature)
        .unwrap();
    let mut context = module.make_context();
    let reference = context
        .func
        .declare_imported_user_function(UserExternalName::new(0, 77));
    let signature = context.func.import_signature(signature);
    let stranger = context.func.import_function(ir::ExtFuncData {
        name: ir::ExternalName::user(reference),
        signature,
        colocated: false,
        patchable: false,
    });
    let mut functions = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut functions);
    let block = builder.create_block();
    builder.switch_to_block(block);
    builder.ins().call(stranger, &[]);
    builder.ins().return_(&[]);
    builder.seal_all_blocks();
    builder.finalize(module.target_config());
    module.define_function(id, &mut context).unwrap();
    let code = module.finish().unwrap();
    let loaded = Device::simulator(SimConfig::default()).load(&code);
    let message = loaded.map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("undefined symbol `u0:77`"), "{message}");
}

#[test]
fn thread_local_data_is_refused() {
    let mut module = GpuModule::new(Options::default()).unwrap();
    let error = module
        .declare_data("x", Linkage::Local, true, true)
        .unwrap_err();
    assert!(error.to_string().contains("use stack slots"), "{error}");
}
