//! Functions by `FunctionBuilder` with less writing: the frame of a function, and what kernels are made of.
//!
//! Nothing here is needed, and nothing is hidden: [`function`] makes what `FunctionBuilder` makes, and the methods of
//! [`GpuBuilder`] insert ordinary calls, symbols and sums. They work in functions of a [`GpuModule`](crate::GpuModule)
//! as well, where intrinsics that are called through them need no declaration. [`ActiveLanes`] says which lane reads
//! which in an operation of a warp.
//!
//! ```
//! use cranelift_thisgpu::build::{self, GpuBuilder};
//! use cranelift_thisgpu::cranelift::prelude::{types::*, *};
//! use cranelift_thisgpu::{Compiler, KernelOptions, Options};
//!
//! // y[i] = 1 / x[i], approximately, where i is the number of the thread
//! let inverse = build::function("inverse", &[I64, I64], &[], |b, params| {
//!     let thread = b.thread_number();
//!     let x = b.load_element(F32, params[0], thread);
//!     let inverse = b.intrinsic("gpu_rcp_f32", &[x]);
//!     b.store_element(inverse, params[1], thread);
//!     b.ins().return_(&[]);
//! });
//! let code = Compiler::new(Options::default()).function(&inverse, Some(KernelOptions::default()))?;
//! assert_eq!(code.kernel("inverse")?.resources().spill_bytes, 0);
//! # Ok::<(), cranelift_thisgpu::Errors>(())
//! ```

mod lanes;

pub use lanes::{ActiveLanes, Peer};

use crate::intrinsics::{self, PREFIX, SHARED};
use crate::target;
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, Function, GlobalValueData, Inst, InstBuilder,
    MemFlagsData, Signature, Type, UserFuncName, Value,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

/// A function of this name, without `%`: `body` fills it, beginning in a block whose parameters are those of the
/// function, which it gets beside the builder. All blocks are sealed when it returns. A kernel has no results. What is
/// wrong with the function is an error of the compiler.
pub fn function(
    name: &str,
    parameters: &[Type],
    results: &[Type],
    body: impl FnOnce(&mut FunctionBuilder<'_>, &[Value]),
) -> Function {
    let signature = signature(parameters.iter().copied(), results);
    let mut function = Function::with_name_signature(UserFuncName::testcase(name), signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let parameters = builder.block_params(entry).to_vec();
    body(&mut builder, &parameters);
    builder.seal_all_blocks();
    // `FunctionBuilder::finalize` would assert in debug builds what the compiler reports, and insert stack maps, which
    // the target has none of.
    function
}

/// What kernels are made of, for Cranelift's `FunctionBuilder`.
pub trait GpuBuilder {
    /// The result of the intrinsic `%gpu_NAME` for these operands; `name` is as in the table of intrinsics,
    /// `gpu_tid_x`.
    ///
    /// Here nothing is checked: an unknown name, and operands that are not the intrinsic's, are errors of the compiler,
    /// with the place that `set_srcloc` has given.
    fn intrinsic(&mut self, name: &str, operands: &[Value]) -> Value;

    /// As [`GpuBuilder::intrinsic`], for those without a result: `gpu_bar_sync`.
    fn call_intrinsic(&mut self, name: &str, operands: &[Value]) -> Inst;

    /// A call of a function by its symbol, as the linker finds it: a function of another object, or of the same
    /// [`Unit`](crate::compile::Unit).
    fn call_symbol(&mut self, name: &str, operands: &[Value], results: &[Type]) -> Inst;

    /// The number of the thread along x in the whole grid, an i32: `ctaid_x * ntid_x + tid_x`.
    fn thread_number(&mut self) -> Value;

    /// The address of an element of an array of `element`. `base` is an i64, or an i32 in shared memory, and so is the
    /// result; an `index` of i32 has no sign where it is extended to i64.
    fn element(&mut self, base: Value, index: Value, element: Type) -> Value;

    /// A load of [`GpuBuilder::element`], marked `aligned`: of an array that begins at a multiple of its elements'
    /// size, as those of Rust do.
    fn load_element(&mut self, element: Type, base: Value, index: Value) -> Value;

    /// A store to [`GpuBuilder::element`], marked `aligned`.
    fn store_element(&mut self, value: Value, base: Value, index: Value) -> Inst;

    /// Does what `body` inserts if `condition` is not 0, and goes on behind it: a bounds check. Where `body` ends with
    /// a terminator, such as `return_`, only those go on for whom it is 0.
    fn if_then(&mut self, condition: Value, body: impl FnOnce(&mut Self));

    /// The beginning of the kernel's shared memory: as i32 its offset, as i64 the generic address.
    fn shared_memory(&mut self, address: Type) -> Value;
}

impl GpuBuilder for FunctionBuilder<'_> {
    fn intrinsic(&mut self, name: &str, operands: &[Value]) -> Value {
        let row = name.strip_prefix(PREFIX).and_then(intrinsics::lookup);
        // One without a result is declared wrongly, which the compiler says with the declaration that is right.
        let result = row.and_then(|row| row.result).unwrap_or(I32);
        let call = self.call_symbol(name, operands, &[result]);
        self.inst_results(call)[0]
    }

    fn call_intrinsic(&mut self, name: &str, operands: &[Value]) -> Inst {
        let row = name.strip_prefix(PREFIX).and_then(intrinsics::lookup);
        let result = row.and_then(|row| row.result);
        self.call_symbol(name, operands, result.as_slice())
    }

    fn call_symbol(&mut self, name: &str, operands: &[Value], results: &[Type]) -> Inst {
        let operand_types = operands.iter().map(|&v| self.func.dfg.value_type(v));
        let signature = signature(operand_types, results);
        let signature = self.import_signature(signature);
        let function = self.import_function(ExtFuncData {
            name: ExternalName::testcase(name),
            signature,
            colocated: false,
            patchable: false,
        });
        self.ins().call(function, operands)
    }

    fn thread_number(&mut self) -> Value {
        let [block, size, thread] =
            ["gpu_ctaid_x", "gpu_ntid_x", "gpu_tid_x"].map(|name| self.intrinsic(name, &[]));
        let first = self.ins().imul(block, size);
        self.ins().iadd(first, thread)
    }

    fn element(&mut self, base: Value, index: Value, element: Type) -> Value {
        let address = self.func.dfg.value_type(base);
        let index = if self.func.dfg.value_type(index) == address {
            index
        } else {
            self.ins().uextend(address, index)
        };
        let size = self.ins().iconst(address, i64::from(element.bytes()));
        let offset = self.ins().imul(index, size);
        self.ins().iadd(base, offset)
    }

    fn load_element(&mut self, element: Type, base: Value, index: Value) -> Value {
        let place = self.element(base, index, element);
        let flags = MemFlagsData::new().with_aligned();
        self.ins().load(element, flags, place, 0)
    }

    fn store_element(&mut self, value: Value, base: Value, index: Value) -> Inst {
        let place = self.element(base, index, self.func.dfg.value_type(value));
        let flags = MemFlagsData::new().with_aligned();
        self.ins().store(flags, value, place, 0)
    }

    fn if_then(&mut self, condition: Value, body: impl FnOnce(&mut Self)) {
        let [inside, behind] = [self.create_block(), self.create_block()];
        self.ins().brif(condition, inside, &[], behind, &[]);
        self.switch_to_block(inside);
        self.seal_block(inside);
        body(self);
        let last = self
            .current_block()
            .and_then(|block| self.func.layout.last_inst(block));
        if last.is_none_or(|inst| !self.func.dfg.insts[inst].opcode().is_terminator()) {
            self.ins().jump(behind, &[]);
        }
        self.switch_to_block(behind);
        self.seal_block(behind);
    }

    fn shared_memory(&mut self, address: Type) -> Value {
        let symbol = self.create_global_value(GlobalValueData::Symbol {
            name: ExternalName::testcase(format!("{PREFIX}{SHARED}")),
            offset: Imm64::new(0),
            colocated: true,
            tls: false,
        });
        self.ins().symbol_value(address, symbol)
    }
}

/// A signature with the target's calling convention.
fn signature(parameters: impl Iterator<Item = Type>, results: &[Type]) -> Signature {
    let mut signature = Signature::new(target::CALL_CONV);
    signature.params.extend(parameters.map(AbiParam::new));
    signature
        .returns
        .extend(results.iter().copied().map(AbiParam::new));
    signature
}
