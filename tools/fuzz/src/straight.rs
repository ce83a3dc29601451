//! Functions of integer operations without control flow: what can be proven, for `--prove`.
//!
//! Every operation alone at each of its types, and random sequences of a few of them on parameters and constants.

use crate::operation::{Operand, Operation, TYPES};
use crate::random::Random;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{
    AbiParam, Function, InstBuilder, Opcode, Signature, Type, UserFuncName, Value, types,
};
use cranelift_codegen::isa::CallConv;

/// Fewest and most operations of a random function.
const LENGTH: (usize, usize) = (2, 7);
/// One operand in so many is a constant.
const CONSTANTS: usize = 4;

/// The operations on integers and vectors of them that read and write no memory.
pub fn operations() -> Vec<Operation> {
    let is_integer = |ty: &Type| ty.lane_type().is_int();
    let integers: Vec<Type> = TYPES.into_iter().filter(is_integer).collect();
    let fits = |operation: &Operation| {
        let operands = operation.operands();
        !operands.contains(&Operand::Address)
            && !operation.results().is_empty()
            && operation.within(&integers)
            && is_of_one_size(*operation)
    };
    Operation::all().into_iter().filter(fits).collect()
}

/// All operations with results or accesses, floats and memory among them, at each of their types.
pub fn all_operations() -> Vec<Operation> {
    let known = Operation::all().into_iter();
    known
        .filter(|&operation| is_of_one_size(operation))
        .collect()
}

/// False for bit casts between types of different sizes, which the table of opcodes lets through.
fn is_of_one_size(operation: Operation) -> bool {
    operation.opcode != Opcode::Bitcast
        || types_of(operation)
            .iter()
            .all(|ty| ty.bits() == operation.control.bits())
}

/// A function that computes an operation of its parameters.
pub fn alone(operation: Operation, random: &mut Random) -> Function {
    let parameters = types_of(operation);
    function(&parameters, |pos, arguments| {
        let inst = operation.insert(pos, arguments, false, random);
        pos.func.dfg.inst_results(inst).to_vec()
    })
}

/// A function that computes an operation of its parameters and, at one operand, of a constant.
pub fn with_constant(
    operation: Operation,
    operand: usize,
    number: i64,
    random: &mut Random,
) -> Function {
    let mut parameters = types_of(operation);
    let ty = parameters.remove(operand);
    function(&parameters, |pos, arguments| {
        let mut operands = arguments.to_vec();
        operands.insert(operand, integer(pos, ty, number));
        let inst = operation.insert(pos, &operands, false, random);
        pos.func.dfg.inst_results(inst).to_vec()
    })
}

/// Divisions by constants: by all of i8, and by so many of each other type up to 64 bits, each with its name.
pub fn divisions(count: usize, random: &mut Random) -> Vec<(String, Function)> {
    let is_division = |operation: &Operation| {
        let opcodes = [Opcode::Udiv, Opcode::Sdiv, Opcode::Urem, Opcode::Srem];
        opcodes.contains(&operation.opcode) && operation.control.bits() <= 64
    };
    let mut all = Vec::new();
    for ty in [types::I8, types::I16, types::I32, types::I64] {
        let numbers: Vec<i64> = match ty {
            types::I8 => (1..256).collect(),
            _ => {
                let ends = (1..=32).chain([100, 1000, -1, -3, -7, -10, 1 << (ty.bits() - 1)]);
                let others = std::iter::repeat_with(|| random.scalar_bits(ty) as i64);
                let others = others.filter(|&n| n & ((1i128 << ty.bits()) - 1) as i64 != 0);
                ends.chain(others).take(count).collect()
            }
        };
        let operations = operations().into_iter();
        for operation in operations.filter(|o| is_division(o) && o.control == ty) {
            for &number in &numbers {
                let name = format!("{operation} by {number:#x}");
                all.push((name, with_constant(operation, 1, number, random)));
            }
        }
    }
    all
}

/// A number as a scalar constant, its sign extended.
fn integer(pos: &mut FuncCursor<'_>, ty: Type, number: i64) -> Value {
    if ty == types::I128 {
        let low = integer(pos, types::I64, number);
        let high = integer(pos, types::I64, number >> 63);
        return pos.ins().iconcat(low, high);
    }
    let number = Imm64::new(number).zero_extend_from_width(ty.bits());
    pos.ins().iconst(ty, number)
}

/// A function that computes a few random operations of parameters, constants and what was computed before.
pub fn random(all: &[Operation], random: &mut Random) -> Function {
    let first = random.pick(all);
    let mut parameters = types_of(first);
    for _ in 0..random.below(3) {
        let other = types_of(random.pick(all));
        parameters.push(random.pick(&other));
    }
    let length = random.between(LENGTH.0, LENGTH.1);
    function(&parameters, |pos, arguments| {
        let mut values = arguments.to_vec();
        let mut last = values.clone();
        for _ in 0..length {
            let operation = fitting(all, pos.func, &values, random);
            let operands: Vec<Value> = types_of(operation)
                .into_iter()
                .map(|ty| operand(pos, ty, &values, random))
                .collect();
            let inst = operation.insert(pos, &operands, false, random);
            last = pos.func.dfg.inst_results(inst).to_vec();
            values.extend_from_slice(&last);
        }
        last
    })
}

/// An operation of which most operands are there.
fn fitting(all: &[Operation], func: &Function, values: &[Value], random: &mut Random) -> Operation {
    let is_there = |ty: &Type| values.iter().any(|&v| func.dfg.value_type(v) == *ty);
    (0..200)
        .map(|_| random.pick(all))
        .find(|operation| types_of(*operation).iter().all(is_there))
        .unwrap_or_else(|| random.pick(all))
}

/// A value of a type: one that is there, or a constant.
fn operand(pos: &mut FuncCursor<'_>, ty: Type, values: &[Value], random: &mut Random) -> Value {
    let dfg = &pos.func.dfg;
    // The latest are read more often.
    let fitting: Vec<Value> = (values.iter().copied())
        .filter(|&v| dfg.value_type(v) == ty)
        .collect();
    if !fitting.is_empty() && !random.once_in(CONSTANTS) {
        let index = random.below(fitting.len()).max(random.below(fitting.len()));
        return fitting[index];
    }
    constant(pos, ty, random)
}

/// A constant.
fn constant(pos: &mut FuncCursor<'_>, ty: Type, random: &mut Random) -> Value {
    if ty.is_vector() {
        let lane = constant(pos, ty.lane_type(), random);
        return pos.ins().splat(ty, lane);
    }
    if ty == types::I128 {
        let [low, high] = [0, 1].map(|_| constant(pos, types::I64, random));
        return pos.ins().iconcat(low, high);
    }
    let bits = random.scalar_bits(ty) as i64;
    let number = Imm64::new(bits).zero_extend_from_width(ty.bits());
    pos.ins().iconst(ty, number)
}

fn types_of(operation: Operation) -> Vec<Type> {
    let operands = operation.operands().into_iter();
    operands
        .map(|operand| match operand {
            Operand::Value(ty) => ty,
            Operand::Address => types::I64,
        })
        .collect()
}

/// A function of parameters that returns what `body` makes of them.
fn function(
    parameters: &[Type],
    body: impl FnOnce(&mut FuncCursor<'_>, &[Value]) -> Vec<Value>,
) -> Function {
    let mut signature = Signature::new(CallConv::SystemV);
    let all = parameters.iter().map(|&ty| AbiParam::new(ty));
    signature.params.extend(all);
    let mut func = Function::with_name_signature(UserFuncName::testcase("f"), signature);
    let block = func.dfg.make_block();
    let arguments: Vec<Value> = parameters
        .iter()
        .map(|&ty| func.dfg.append_block_param(block, ty))
        .collect();
    let mut pos = FuncCursor::new(&mut func);
    pos.insert_block(block);
    let results = body(&mut pos, &arguments);
    pos.ins().return_(&results);
    let returned: Vec<AbiParam> = results
        .iter()
        .map(|&v| AbiParam::new(func.dfg.value_type(v)))
        .collect();
    func.signature.returns.extend(returned);
    debug_assert_eq!(func.layout.blocks().count(), 1, "no control flow");
    func
}
