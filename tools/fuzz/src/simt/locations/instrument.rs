//! The values that are followed, and the instructions that write them down.

use super::{STRIDE, TIMES, VALUES};
use crate::random::Random;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{
    AbiParam, Block, ExtFuncData, ExternalName, Function, Inst, InstBuilder, InstructionData,
    MemFlagsData, Opcode, Signature, Type, Value, types,
};

/// Some values that follow from the parameters, the inputs and the place of the thread.
pub(super) fn chosen(func: &Function, random: &mut Random) -> Vec<Value> {
    let tainted = tainted(func);
    let mut values: Vec<Value> = Vec::new();
    for block in func.layout.blocks() {
        let results = func.layout.block_insts(block);
        let results = results.flat_map(|inst| func.dfg.inst_results(inst).iter().copied());
        let all = func.dfg.block_params(block).iter().copied().chain(results);
        values.extend(all.filter(|value| {
            !tainted.contains(*value) && as_integer(func.dfg.value_type(*value)).is_some()
        }));
    }
    while values.len() > VALUES {
        values.swap_remove(random.below(values.len()));
    }
    values
}

/// The integer type that holds the bits of a value that can be written down.
fn as_integer(ty: Type) -> Option<Type> {
    (ty.is_int() || ty.is_float())
        .then(|| Type::int(ty.bits() as u16))?
        .filter(|ty| ty.bits() <= 64)
}

/// Values that may depend on what other threads do.
pub(super) fn tainted(func: &Function) -> EntitySet<Value> {
    let mut tainted = EntitySet::new();
    let inputs = func
        .dfg
        .block_params(func.layout.entry_block().expect("a block"))[2];
    loop {
        let mut changed = false;
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                let args = func.dfg.inst_args(inst);
                let reads = args
                    .iter()
                    .any(|arg| tainted.contains(func.dfg.resolve_aliases(*arg)));
                if reads || is_source(func, inst, inputs) {
                    for &result in func.dfg.inst_results(inst) {
                        changed |= tainted.insert(result);
                    }
                }
                for call in func.dfg.insts[inst]
                    .branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables)
                {
                    let params = func.dfg.block_params(call.block(&func.dfg.value_lists));
                    for (param, arg) in params.iter().zip(call.args(&func.dfg.value_lists)) {
                        if arg
                            .as_value()
                            .is_some_and(|v| tainted.contains(func.dfg.resolve_aliases(v)))
                        {
                            changed |= tainted.insert(*param);
                        }
                    }
                }
            }
        }
        if !changed {
            return tainted;
        }
    }
}

/// Whether an instruction gives something that others decide: loads from what is common, atomics, calls.
fn is_source(func: &Function, inst: Inst, inputs: Value) -> bool {
    let opcode = func.dfg.insts[inst].opcode();
    // Addresses of functions and of the frame are others in other code.
    if matches!(opcode, Opcode::FuncAddr | Opcode::StackAddr) {
        return true;
    }
    if opcode.is_call() {
        return !own_place(func, inst);
    }
    if !opcode.can_load() {
        return false;
    }
    // An address that is computed from the inputs only.
    let mut work: Vec<Value> = func
        .dfg
        .inst_args(inst)
        .last()
        .copied()
        .into_iter()
        .collect();
    while let Some(value) = work.pop() {
        let value = func.dfg.resolve_aliases(value);
        if value == inputs {
            return opcode != Opcode::Load;
        }
        if let Some(def) = func.dfg.value_def(value).inst()
            && func.dfg.insts[def].opcode() == Opcode::Iadd
        {
            work.extend_from_slice(func.dfg.inst_args(def));
        }
    }
    true
}

/// Names of the functions that tell a thread its place.
const PLACES: [&str; 4] = ["gpu_tid_x", "gpu_ntid_x", "gpu_ctaid_x", "gpu_laneid"];

fn own_place(func: &Function, inst: Inst) -> bool {
    let dfg = &func.dfg;
    let callee = match dfg.insts[inst] {
        InstructionData::Call { func_ref, .. } => func_ref,
        _ => return false,
    };
    match &dfg.ext_funcs[callee].name {
        ExternalName::TestCase(name) => PLACES.iter().any(|place| place.as_bytes() == name.raw()),
        _ => false,
    }
}

/// Adds a parameter, the address of memory of which each thread has so many bytes; the thread's own address, and the
/// instruction that gives it.
pub(super) fn add_memory(func: &mut Function, bytes: usize) -> (Value, Inst) {
    func.signature.params.push(AbiParam::new(types::I64));
    let entry = func.layout.entry_block().expect("a block");
    let memory = func.dfg.append_block_param(entry, types::I64);
    let call_conv = func.signature.call_conv;
    let place = |func: &mut Function, name: &str| {
        let mut signature = Signature::new(call_conv);
        signature.returns.push(AbiParam::new(types::I32));
        let signature = func.import_signature(signature);
        func.import_function(ExtFuncData {
            name: ExternalName::testcase(name),
            signature,
            colocated: false,
            patchable: false,
        })
    };
    let [tid, ntid, ctaid] =
        ["gpu_tid_x", "gpu_ntid_x", "gpu_ctaid_x"].map(|name| place(func, name));
    let first = func.layout.first_inst(entry).expect("an instruction");
    let mut pos = FuncCursor::new(func).at_inst(first);
    let ask = |pos: &mut FuncCursor<'_>, callee| {
        let call = pos.ins().call(callee, &[]);
        pos.func.dfg.first_result(call)
    };
    let (tid, ntid, ctaid) = (
        ask(&mut pos, tid),
        ask(&mut pos, ntid),
        ask(&mut pos, ctaid),
    );
    let before = pos.ins().imul(ctaid, ntid);
    let thread = pos.ins().iadd(before, tid);
    let thread = pos.ins().uextend(types::I64, thread);
    let bytes = pos.ins().iconst(types::I64, bytes as i64);
    let own = pos.ins().imul(thread, bytes);
    let own = pos.ins().iadd(memory, own);
    (own, func.dfg.value_def(own).unwrap_inst())
}

/// Adds stores of values behind their definitions.
pub(super) fn write_down(func: &mut Function, values: &[Value]) {
    let (own, ready) = add_memory(func, VALUES * STRIDE);
    let entry = func.layout.entry_block().expect("a block");
    for (number, &value) in values.iter().enumerate() {
        let at = match func.dfg.value_def(value).inst() {
            // What the entry block has defined before the memory is known.
            Some(inst)
                if func.layout.inst_block(inst) == Some(entry)
                    && func.layout.pp_cmp(inst, ready).is_lt() =>
            {
                func.layout.next_inst(ready).expect("an end")
            }
            Some(inst) => func.layout.next_inst(inst).expect("an end"),
            None => first_behind(func, value, entry, ready),
        };
        store(func, at, own, number, value);
    }
}

/// The bits of a value as 64 of an integer.
pub(super) fn bits_of(pos: &mut FuncCursor<'_>, value: Value) -> Value {
    let ty = pos.func.dfg.value_type(value);
    let integer = as_integer(ty).expect("it was chosen");
    let bits = match ty == integer {
        true => value,
        false => pos.ins().bitcast(integer, MemFlagsData::new(), value),
    };
    match integer == types::I64 {
        true => bits,
        false => pos.ins().uextend(types::I64, bits),
    }
}

/// The place behind the parameters of a block.
fn first_behind(func: &Function, param: Value, entry: Block, ready: Inst) -> Inst {
    let block = func.dfg.value_def(param).unwrap_block();
    let first = match block == entry {
        true => func.layout.next_inst(ready),
        false => func.layout.first_inst(block),
    };
    first.expect("a block has an end")
}

fn store(func: &mut Function, at: Inst, own: Value, number: usize, value: Value) {
    let flags = MemFlagsData::trusted();
    let mut pos = FuncCursor::new(func).at_inst(at);
    let offset = pos.ins().iconst(types::I64, (number * STRIDE) as i64);
    let base = pos.ins().iadd(own, offset);
    let count = pos.ins().load(types::I64, flags, base, 0);
    let most = pos.ins().iconst(types::I64, TIMES as i64 - 1);
    let index = pos.ins().umin(count, most);
    let eight = pos.ins().iconst(types::I64, 8);
    let offset = pos.ins().imul(index, eight);
    let place = pos.ins().iadd(base, offset);
    let bits = bits_of(&mut pos, value);
    pos.ins().store(flags, bits, place, 8);
    let one = pos.ins().iconst(types::I64, 1);
    let next = pos.ins().iadd(count, one);
    pos.ins().store(flags, next, base, 0);
}
