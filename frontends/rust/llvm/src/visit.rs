//! Walks over what instructions and constants name.

use crate::model::{Callee, Constant, Expression, Instruction, Operand, Operation, Value};
use std::sync::Arc;

/// Hands every operand of an instruction to `each`.
pub fn operands<'a>(instruction: &'a Instruction, each: &mut dyn FnMut(&'a Operand)) {
    match &instruction.operation {
        Operation::Binary(_, a, b)
        | Operation::CompareInts(_, a, b)
        | Operation::CompareFloats(_, a, b)
        | Operation::InsertValue(a, b, _)
        | Operation::ExtractElement(a, b)
        | Operation::Shuffle(a, b, _) => {
            each(a);
            each(b);
        }
        Operation::Negate(a)
        | Operation::Cast(_, a)
        | Operation::Freeze(a)
        | Operation::Load(a, _)
        | Operation::ExtractValue(a, _)
        | Operation::Return(Some(a))
        | Operation::Branch(a, ..)
        | Operation::Switch { on: a, .. }
        | Operation::Alloca { count: a, .. } => each(a),
        Operation::Select(a, b, c) | Operation::InsertElement(a, b, c) => {
            each(a);
            each(b);
            each(c);
        }
        Operation::Store { value, address, .. } => {
            each(value);
            each(address);
        }
        Operation::CompareExchange {
            address,
            expected,
            new,
            ..
        } => {
            each(address);
            each(expected);
            each(new);
        }
        Operation::Update {
            address, operand, ..
        } => {
            each(address);
            each(operand);
        }
        Operation::Address(address) => {
            each(&address.base);
            address.indices.iter().for_each(each);
        }
        Operation::Call(call) => {
            if let Callee::Address(address) = &call.callee {
                each(address);
            }
            call.arguments.iter().for_each(each);
        }
        Operation::Phi(_)
        | Operation::Return(None)
        | Operation::Jump(_)
        | Operation::Fence(_)
        | Operation::Unreachable
        | Operation::Unsupported(_) => {}
    }
}

/// Hands every value of an instruction to `each`, those of phis too.
pub fn values<'a>(instruction: &'a Instruction, each: &mut dyn FnMut(&'a Value)) {
    if let Operation::Phi(incoming) = &instruction.operation {
        incoming.iter().for_each(|(value, _)| each(value));
    }
    operands(instruction, &mut |operand| each(&operand.value));
}

/// Hands every symbol that an instruction names to `each`.
pub fn symbols<'a>(instruction: &'a Instruction, each: &mut dyn FnMut(&'a Arc<str>)) {
    if let Operation::Call(call) = &instruction.operation
        && let Callee::Symbol(symbol) = &call.callee
    {
        each(symbol);
    }
    values(instruction, &mut |value| {
        if let Value::Constant(constant) = value {
            of_constant(constant, each);
        }
    });
}

/// Hands every symbol that a constant names to `each`.
pub fn of_constant<'a>(constant: &'a Constant, each: &mut dyn FnMut(&'a Arc<str>)) {
    let operand = |operand: &'a Operand, each: &mut dyn FnMut(&'a Arc<str>)| {
        if let Value::Constant(constant) = &operand.value {
            of_constant(constant, each);
        }
    };
    match constant {
        Constant::Symbol(symbol) => each(symbol),
        Constant::Aggregate(elements) => {
            for (_, element) in elements.iter() {
                of_constant(element, each);
            }
        }
        Constant::Splat(lane) => of_constant(lane, each),
        Constant::Expression(expression) => match &**expression {
            Expression::Address(address) => {
                operand(&address.base, each);
                for index in &address.indices {
                    operand(index, each);
                }
            }
            Expression::Cast(_, of, _) => operand(of, each),
            Expression::Binary(_, left, right) => {
                operand(left, each);
                operand(right, each);
            }
            Expression::Unknown(_) => {}
        },
        Constant::Int(_)
        | Constant::Float(_)
        | Constant::Zero
        | Constant::Undefined
        | Constant::Bytes(_) => {}
    }
}
