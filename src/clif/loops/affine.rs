//! Addresses that grow by the same constant in each turn.
//!
//! In copy k of a turn such an address is that of the first copy plus k times the constant, which the access takes as
//! its offset. Sums, differences, and products with constants keep this modulo their width. An extension keeps it only
//! if what it extends does not wrap from copy to copy, which [`Steady`] says of the counter.

use super::count::{is_invariant, step};
use super::shape::Body;
use crate::constants::integer;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value};
use hashbrown::HashMap;

/// A counter that does not wrap from the first copy to the last, taken as a number with or without sign.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steady {
    pub(super) counter: Value,
    pub(super) signed: bool,
    pub(super) unsigned: bool,
}

/// The strides of the addresses of a loop.
#[derive(Default)]
pub(super) struct Affine {
    strides: HashMap<Inst, i64>,
}

impl Affine {
    /// Of `body`.
    pub(super) fn of(context: &Context, body: &Body, steady: Option<Steady>) -> Self {
        let func = &context.func;
        let [latch] = body.latches[..] else {
            return Self::default();
        };
        let mut known: HashMap<Value, i64> = HashMap::new();
        let params = func.dfg.block_params(body.header).iter().copied();
        for (param, next) in params.zip(latch.args(func)) {
            if let Some(step) = step(func, body, param, next) {
                known.insert(param, step);
            }
        }
        let mut found = Self::default();
        if known.is_empty() {
            return found;
        }
        let mut strides: Vec<(Inst, i64)> = Vec::new();
        for &block in &body.blocks {
            for inst in func.layout.block_insts(block) {
                if let Some(stride) = stride(func, body, &known, steady, inst) {
                    known.insert(func.dfg.first_result(inst), stride);
                    // The first copy's must have been computed whatever happens in a turn.
                    if context.domtree.block_dominates(block, latch.from) {
                        strides.push((inst, stride));
                    }
                }
            }
        }
        let mut addresses: Vec<Value> = Vec::new();
        for inst in body.insts(func) {
            match func.dfg.insts[inst] {
                InstructionData::Load { arg, .. } => addresses.push(arg),
                InstructionData::Store { args, .. } => addresses.push(args[1]),
                _ => {}
            }
        }
        addresses.sort_unstable();
        strides.retain(|(inst, _)| {
            addresses
                .binary_search(&func.dfg.first_result(*inst))
                .is_ok()
        });
        found.strides.extend(strides);
        found
    }

    /// By how much the address that `inst` computes grows in a turn.
    pub(super) fn stride(&self, inst: Inst) -> Option<i64> {
        self.strides.get(&inst).copied()
    }
}

fn stride(
    func: &Function,
    body: &Body,
    known: &HashMap<Value, i64>,
    steady: Option<Steady>,
    inst: Inst,
) -> Option<i64> {
    let of = |value: Value| {
        known
            .get(&value)
            .copied()
            .or_else(|| is_invariant(func, body, value).then_some(0))
    };
    let stride = match func.dfg.insts[inst] {
        InstructionData::Binary {
            opcode,
            args: [a, b],
        } => match opcode {
            Opcode::Iadd => of(a)?.wrapping_add(of(b)?),
            Opcode::Isub => of(a)?.wrapping_sub(of(b)?),
            Opcode::Imul => of(a)?.wrapping_mul(integer(func, b)?),
            Opcode::Ishl => {
                let bits = func.dfg.value_type(a).bits();
                let amount = integer(func, b)? as u32 & (bits - 1);
                of(a)?.wrapping_shl(amount)
            }
            _ => return None,
        },
        InstructionData::Unary { opcode, arg } => match (opcode, steady) {
            (Opcode::Uextend, Some(steady)) if steady.unsigned && steady.counter == arg => of(arg)?,
            (Opcode::Sextend, Some(steady)) if steady.signed && steady.counter == arg => of(arg)?,
            _ => return None,
        },
        _ => return None,
    };
    let ty = func.dfg.value_type(func.dfg.first_result(inst));
    (stride != 0 && ty.is_int() && ty.bits() <= 64).then_some(stride)
}
