//! The kernel that calls a test's function: arguments come from a buffer, results go to another one.
//!
//! Every argument and every result has a [`SLOT_BYTES`] slot, aligned to its size, and holds its value little-endian
//! from the slot's start. Thread `ctaid.x * ntid.x + tid.x` takes its own row of slots, so one launch can run many
//! lines, in one lane each or side by side in a warp.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, Function, InstBuilder, MemFlagsData, SigRef,
    Signature, Type, UserFuncName, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_thisgpu::intrinsics;

/// Bytes of a slot: the widest value that CLIF passes in one piece on this target.
pub const SLOT_BYTES: usize = 16;

/// Bytes of shared memory that every kernel has. The lines of a function that run side by side share them, so such a
/// function keeps to its lane's part.
pub const SHARED_BYTES: u32 = 4096;

/// Why a function cannot be called by a run line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// A value that is wider than a slot.
    #[error("{0} is wider than 128 bits")]
    TooWide(Type),
    /// The command gives another number of values than the function takes.
    #[error("{given} arguments are given, the function takes {expected}")]
    ArgumentCount {
        /// In the command.
        given: usize,
        /// In the signature.
        expected: usize,
    },
    /// A value of the command has another type than the parameter.
    #[error("argument {index} is {given}, the function takes {expected}")]
    ArgumentType {
        /// Position from 0.
        index: usize,
        /// In the command.
        given: Type,
        /// In the signature.
        expected: Type,
    },
}

/// Checks that values of these types fit the slots.
///
/// # Errors
/// Names the first type that does not fit.
pub fn check_signature(signature: &Signature) -> Result<(), CallError> {
    let wide = |param: &&AbiParam| {
        param.value_type.bytes() as usize > SLOT_BYTES || param.value_type.is_dynamic_vector()
    };
    let found = signature.params.iter().chain(&signature.returns).find(wide);
    found.map_or(Ok(()), |param| Err(CallError::TooWide(param.value_type)))
}

/// Bytes of a row of slots for these parameters or results, at least one slot.
pub fn row_bytes(params: &[AbiParam]) -> usize {
    params.len().max(1) * SLOT_BYTES
}

/// The arguments of one call as a row of slots.
///
/// # Errors
/// When number or types differ from the signature's.
pub fn encode_arguments(
    signature: &Signature,
    arguments: &[DataValue],
) -> Result<Vec<u8>, CallError> {
    let params = &signature.params;
    if arguments.len() != params.len() {
        return Err(CallError::ArgumentCount {
            given: arguments.len(),
            expected: params.len(),
        });
    }
    let mut row = vec![0; row_bytes(params)];
    for (index, (param, value)) in params.iter().zip(arguments).enumerate() {
        if !fits(value, param.value_type) {
            return Err(CallError::ArgumentType {
                index,
                given: value.ty(),
                expected: param.value_type,
            });
        }
        value.write_to_slice_le(&mut row[index * SLOT_BYTES..]);
    }
    Ok(row)
}

/// True if `value` can stand for the type: vectors of a command know their size but not their lanes.
fn fits(value: &DataValue, ty: Type) -> bool {
    value.ty() == ty || value.is_vector() && ty.is_vector() && value.ty().bytes() == ty.bytes()
}

/// The results in a row of slots.
pub fn decode_results(signature: &Signature, row: &[u8]) -> Vec<DataValue> {
    let slots = row.chunks_exact(SLOT_BYTES);
    let read =
        |(param, slot): (&AbiParam, &[u8])| DataValue::read_from_slice_le(slot, param.value_type);
    signature.returns.iter().zip(slots).map(read).collect()
}

/// A kernel `name(arguments: i64, results: i64)` that calls `callee` once in every thread.
///
/// # Errors
/// See [`check_signature`].
pub fn kernel(name: &str, callee: &Function) -> Result<Function, CallError> {
    let signature = &callee.signature;
    check_signature(signature)?;
    let mut kernel_signature = Signature::new(CallConv::Fast);
    kernel_signature.params.extend([AbiParam::new(I64); 2]);
    let mut func = Function::with_name_signature(UserFuncName::testcase(name), kernel_signature);
    let sig = func.import_signature(signature.clone());
    let target = import(&mut func, &callee.name, sig);
    let thread_parts = ["ctaid_x", "ntid_x", "tid_x"].map(|part| import_intrinsic(&mut func, part));

    let block = func.dfg.make_block();
    let [arguments, results] = [I64; 2].map(|ty| func.dfg.append_block_param(block, ty));
    let mut pos = FuncCursor::new(&mut func);
    pos.insert_block(block);
    let [ctaid, ntid, tid] = thread_parts.map(|part| {
        let call = pos.ins().call(part, &[]);
        pos.func.dfg.first_result(call)
    });
    let first = pos.ins().imul(ctaid, ntid);
    let thread = pos.ins().iadd(first, tid);
    let thread = pos.ins().uextend(I64, thread);
    let arguments = row_address(&mut pos, arguments, thread, row_bytes(&signature.params));
    let results = row_address(&mut pos, results, thread, row_bytes(&signature.returns));

    let flags = MemFlagsData::new().with_aligned();
    let values: Vec<Value> = signature
        .params
        .iter()
        .enumerate()
        .map(|(index, param)| {
            pos.ins()
                .load(param.value_type, flags, arguments, slot_offset(index))
        })
        .collect();
    let call = pos.ins().call(target, &values);
    let returned: Vec<Value> = pos.func.dfg.inst_results(call).to_vec();
    for (index, value) in returned.into_iter().enumerate() {
        pos.ins().store(flags, value, results, slot_offset(index));
    }
    pos.ins().return_(&[]);
    Ok(func)
}

/// Offset of a slot in its row.
fn slot_offset(index: usize) -> i32 {
    i32::try_from(index * SLOT_BYTES).expect("a signature has less than 2^27 values")
}

/// `base + thread * bytes`.
fn row_address(pos: &mut FuncCursor<'_>, base: Value, thread: Value, bytes: usize) -> Value {
    let bytes = i64::try_from(bytes).expect("a row is small");
    let size = pos.ins().iconst(I64, bytes);
    let offset = pos.ins().imul(thread, size);
    pos.ins().iadd(base, offset)
}

/// Declares the function called `name` in `func`.
fn import(func: &mut Function, name: &UserFuncName, signature: SigRef) -> FuncRef {
    let name = match name {
        UserFuncName::Testcase(name) => ExternalName::TestCase(name.clone()),
        UserFuncName::User(name) => {
            ExternalName::User(func.declare_imported_user_function(name.clone()))
        }
    };
    func.import_function(ExtFuncData {
        name,
        signature,
        colocated: true,
        patchable: false,
    })
}

/// Declares an intrinsic without operands that gives an i32.
fn import_intrinsic(func: &mut Function, name: &str) -> FuncRef {
    let mut signature = Signature::new(CallConv::Fast);
    signature.returns.push(AbiParam::new(I32));
    let signature = func.import_signature(signature);
    let name = ExternalName::testcase(format!("{}{name}", intrinsics::PREFIX));
    func.import_function(ExtFuncData {
        name,
        signature,
        colocated: false,
        patchable: false,
    })
}
