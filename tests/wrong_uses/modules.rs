//! `GpuModule` as it should not be used.

use super::{Outcome, Table};
use cranelift_thisgpu::cranelift::codegen::ir::{AbiParam, InstBuilder, types};
use cranelift_thisgpu::cranelift::frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_thisgpu::cranelift::module::{DataDescription, DataId, FuncId, Linkage, Module};
use cranelift_thisgpu::{GpuModule, KernelOptions, Options};

/// A message. Cranelift's `ModuleError` has the texts of its sources in its own, so these are not asked for.
fn message(error: impl std::error::Error) -> String {
    error.to_string()
}

/// A module with the function `f`, declared.
fn module() -> (GpuModule, FuncId) {
    let mut module = GpuModule::new(Options::default()).unwrap();
    let signature = module.make_signature();
    let f = module
        .declare_function("f", Linkage::Export, &signature)
        .unwrap();
    (module, f)
}

/// Defines a function that only returns.
fn define(module: &mut GpuModule, id: FuncId) -> Outcome {
    let mut context = module.make_context();
    let mut functions = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut functions);
    let block = builder.create_block();
    builder.switch_to_block(block);
    builder.ins().return_(&[]);
    builder.seal_all_blocks();
    builder.finalize(module.target_config());
    module.define_function(id, &mut context).map_err(message)
}

/// What must still be possible behind a mistake: the module's function is defined and the whole put together.
fn still_works(mut module: GpuModule, id: FuncId) {
    define(&mut module, id).unwrap();
    assert!(module.finish().unwrap().to_elf().is_ok());
}

pub fn rows(table: &mut Table) {
    table.row(
        "a function declared and not defined",
        &["`f`", "never defined"],
        || module().0.finish().map(|_| ()).map_err(message),
    );
    table.row("a function defined twice", &["f"], || {
        let (mut module, f) = module();
        define(&mut module, f).unwrap();
        let again = define(&mut module, f);
        assert!(module.finish().is_ok());
        again
    });
    table.row("an import defined", &["puts"], || {
        let (mut module, f) = module();
        let signature = module.make_signature();
        let import = module
            .declare_function("puts", Linkage::Import, &signature)
            .unwrap();
        let result = define(&mut module, import);
        still_works(module, f);
        result
    });
    table.row("a function declared with two signatures", &["f"], || {
        let (mut module, f) = module();
        let mut other = module.make_signature();
        other.params.push(AbiParam::new(types::I32));
        let result = module.declare_function("f", Linkage::Export, &other);
        still_works(module, f);
        result.map(|_| ()).map_err(message)
    });
    table.row("a function declared as data", &["f"], || {
        let (mut module, f) = module();
        let result = module.declare_data("f", Linkage::Export, true, false);
        still_works(module, f);
        result.map(|_| ()).map_err(message)
    });
    table.row("a function given as bytes", &["`f`", "define CLIF"], || {
        let (mut module, f) = module();
        let result = module.define_function_bytes(f, 16, &[0; 16], &[]);
        still_works(module, f);
        result.map_err(message)
    });
    table.row(
        "thread-local data declared",
        &["`x`", "use stack slots"],
        || {
            let (mut module, f) = module();
            let result = module.declare_data("x", Linkage::Local, true, true);
            still_works(module, f);
            result.map(|_| ()).map_err(message)
        },
    );
    table.row("anonymous thread-local data", &["use stack slots"], || {
        let (mut module, _) = module();
        module
            .declare_anonymous_data(true, true)
            .map(|_| ())
            .map_err(message)
    });
    table.row("data without contents", &["x"], || {
        let (mut module, f) = module();
        let x = module
            .declare_data("x", Linkage::Export, true, false)
            .unwrap();
        let result = module.define_data(x, &DataDescription::new());
        let mut zeros = DataDescription::new();
        zeros.define_zeroinit(16);
        module.define_data(x, &zeros).unwrap();
        still_works(module, f);
        result.map_err(message)
    });
    table.row("data aligned to 1 TiB", &["`x`", "256"], || {
        let (mut module, f) = module();
        let x = module
            .declare_data("x", Linkage::Export, true, false)
            .unwrap();
        let mut zeros = DataDescription::new();
        zeros.define_zeroinit(16);
        zeros.set_align(1 << 40);
        let result = module.define_data(x, &zeros);
        zeros.set_align(16);
        module.define_data(x, &zeros).unwrap();
        still_works(module, f);
        result.map_err(message)
    });
    table.row("data defined twice", &["x"], || {
        let (mut module, f) = module();
        let x = module
            .declare_data("x", Linkage::Export, true, false)
            .unwrap();
        let mut zeros = DataDescription::new();
        zeros.define_zeroinit(16);
        module.define_data(x, &zeros).unwrap();
        let result = module.define_data(x, &zeros);
        still_works(module, f);
        result.map_err(message)
    });
    table.row(
        "data declared and not defined",
        &["data object `x`", "never defined"],
        || {
            let (mut module, f) = module();
            module
                .declare_data("x", Linkage::Export, true, false)
                .unwrap();
            define(&mut module, f).unwrap();
            module.finish().map(|_| ()).map_err(message)
        },
    );
    table.row("imported data defined", &["x"], || {
        let (mut module, f) = module();
        let x = module
            .declare_data("x", Linkage::Import, true, false)
            .unwrap();
        let mut zeros = DataDescription::new();
        zeros.define_zeroinit(16);
        let result = module.define_data(x, &zeros);
        still_works(module, f);
        result.map_err(message)
    });
    table.row(
        "a function of a module that is not verified",
        &["%f", "cannot be empty"],
        || {
            let (mut module, f) = module();
            let mut context = module.make_context();
            // A block without an end.
            let block = context.func.dfg.make_block();
            context.func.layout.append_block(block);
            let result = module.define_function(f, &mut context);
            still_works(module, f);
            result.map_err(message)
        },
    );
    table.row("a kernel that is imported", &["`x`", "imported"], || {
        let (mut module, f) = module();
        define(&mut module, f).unwrap();
        let signature = module.make_signature();
        let import = module
            .declare_function("x", Linkage::Import, &signature)
            .unwrap();
        module.declare_kernel(import, KernelOptions::default());
        module.finish().map(|_| ()).map_err(message)
    });
    table.row("a kernel that nobody declared", &["number 7"], || {
        let (mut module, f) = module();
        define(&mut module, f).unwrap();
        module.declare_kernel(FuncId::from_u32(7), KernelOptions::default());
        module.finish().map(|_| ()).map_err(message)
    });
    table.row("a function of another module", &["number 7"], || {
        let (mut module, f) = module();
        let result = define(&mut module, FuncId::from_u32(7));
        still_works(module, f);
        result
    });
    table.row("data of another module", &["number 7"], || {
        let (mut module, f) = module();
        let mut zeros = DataDescription::new();
        zeros.define_zeroinit(16);
        let result = module.define_data(DataId::from_u32(7), &zeros);
        still_works(module, f);
        result.map_err(message)
    });
    table.row("a kernel of a module with a result", &["kernel"], || {
        let mut module = GpuModule::new(Options::default()).unwrap();
        let mut signature = module.make_signature();
        signature.returns.push(AbiParam::new(types::I32));
        let id = module
            .declare_function("k", Linkage::Export, &signature)
            .unwrap();
        module.declare_kernel(id, KernelOptions::default());
        let mut context = module.make_context();
        context.func.signature = signature;
        let mut functions = FunctionBuilderContext::new();
        let mut builder = FunctionBuilder::new(&mut context.func, &mut functions);
        let block = builder.create_block();
        builder.switch_to_block(block);
        let one = builder.ins().iconst(types::I32, 1);
        builder.ins().return_(&[one]);
        builder.seal_all_blocks();
        builder.finalize(module.target_config());
        module.define_function(id, &mut context).map_err(message)
    });
}
