//! What is left of an address without its constants.
//!
//! Takes an address and the constants in it ([`Split`]); computes the rest where the address was, or takes what
//! computes the same already.

use super::{Split, operation};
use crate::clif::accesses::AccessContext;
use crate::constants::{definition, integer};
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, InstructionData, Opcode, Value};

impl Split<'_> {
    /// `value` without its constants; none where nothing is left.
    pub(super) fn rest(
        &mut self,
        pos: &mut FuncCursor<'_>,
        given: &AccessContext,
        block: Block,
        value: Value,
    ) -> Option<Value> {
        if integer(pos.func, value).is_some() {
            return None;
        }
        // Constants that cancel each other out stay.
        if self.constants.get(&value).is_none_or(|(sum, _)| *sum == 0) {
            return Some(value);
        }
        let ty = pos.func.dfg.value_type(value);
        let (opcode, a, b) = match definition(pos.func, value)? {
            InstructionData::Binary {
                opcode: opcode @ (Opcode::Ishl | Opcode::Imul),
                args: [a, b],
            } => (opcode, self.rest(pos, given, block, a)?, Some(b)),
            InstructionData::Binary {
                opcode,
                args: [a, b],
            } => {
                let (a, b) = (
                    self.rest(pos, given, block, a),
                    self.rest(pos, given, block, b),
                );
                match (a, b) {
                    (Some(a), Some(b)) => (opcode, a, Some(b)),
                    (None, Some(b)) if opcode == Opcode::Isub => (Opcode::Ineg, b, None),
                    (a, b) => return a.or(b),
                }
            }
            // A word that is extended with its sign has none, or it would not be here.
            InstructionData::Unary { arg, .. } => match definition(pos.func, arg)? {
                InstructionData::Binary {
                    args: [word, _], ..
                } => (Opcode::Uextend, word, None),
                _ => return None,
            },
            _ => return None,
        };
        let operation = operation(pos.func, opcode, ty, a, b);
        if let Some(&(home, known)) = self.known.get(&operation)
            && given.flow.dominates(home, block)
        {
            return Some(known);
        }
        let made = match (opcode, b) {
            (Opcode::Iadd, Some(b)) => pos.ins().iadd(a, b),
            (Opcode::Isub, Some(b)) => pos.ins().isub(a, b),
            (Opcode::Imul, Some(b)) => pos.ins().imul(a, b),
            (_, Some(b)) => pos.ins().ishl(a, b),
            (Opcode::Uextend, None) => pos.ins().uextend(ty, a),
            (_, None) => pos.ins().ineg(a),
        };
        self.known.insert(operation, (block, made));
        self.made.insert(made);
        Some(made)
    }

    /// Takes notice of an operation of the function. What this pass has made already takes its place.
    pub(super) fn remember(
        &mut self,
        func: &mut Function,
        given: &AccessContext,
        block: Block,
        inst: Inst,
    ) {
        let (opcode, a, b) = match func.dfg.insts[inst] {
            InstructionData::Binary {
                opcode: opcode @ (Opcode::Iadd | Opcode::Isub | Opcode::Imul | Opcode::Ishl),
                args: [a, b],
            } => (opcode, a, Some(b)),
            InstructionData::Unary {
                opcode: opcode @ (Opcode::Uextend | Opcode::Ineg),
                arg,
            } => (opcode, arg, None),
            _ => return,
        };
        let result = func.dfg.first_result(inst);
        let operation = operation(func, opcode, func.dfg.value_type(result), a, b);
        let known = self.known.get(&operation).copied();
        match known.filter(|(home, _)| given.flow.dominates(*home, block)) {
            Some((_, known)) if self.made.contains(known) => {
                func.dfg.clear_results(inst);
                func.dfg.change_to_alias(result, known);
                func.layout.remove_inst(inst);
            }
            Some(_) => {}
            None => _ = self.known.insert(operation, (block, result)),
        }
    }
}
