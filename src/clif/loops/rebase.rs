//! Lets pointers that walk through a loop begin where they are computed.
//!
//! A front end that unrolls a loop, or a programmer who writes one by hand, begins with `base + 256` and accesses
//! `p - 256` to `p + 128` in each turn. The sum takes two instructions on 64 bits in front of the loop, while an offset
//! of an access costs nothing. So the pointer begins with `base`, and its readers add the constant, which later goes to
//! the offsets of their accesses. Everything is modulo 2^64, so wrapping changes nothing.
//!
//! Takes innermost loops with one way in and one way back, and pointers that nothing but accesses and sums with
//! constants read.

use super::shape::{Body, Edge, Uses, passed};
use crate::constants::integer;
use crate::values::tracking::Tracking;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Value, types};

/// Most bytes of the constant and of an access's own offset (*assumed*): together they fit the field of 24 bits.
const FAR: i64 = 1 << 20;

/// Rebases what is worth it.
pub(super) fn rebase(context: &mut Context, uses: &mut Option<Uses>, tracking: &Tracking) {
    for body in Body::innermost(context) {
        let Some((entry, latch)) = body.only_ways(context) else {
            continue;
        };
        let func = &mut context.func;
        for index in 0..func.dfg.block_params(body.header).len() {
            let Some(begin) = sum(func, entry.args(func)[index]) else {
                continue;
            };
            let uses = uses.get_or_insert_with(|| Uses::of(func));
            let walk = Walk::of(func, uses, &body, (entry, latch), index);
            if let Some(walk) = walk.filter(|_| begin.constant.abs() < FAR) {
                walk.begin_with(func, uses, begin, tracking);
            }
        }
    }
}

/// A value and a constant.
#[derive(Clone, Copy)]
struct Sum {
    /// The addition.
    inst: Inst,
    base: Value,
    constant: i64,
}

/// The sum of 64 bits that a value is.
fn sum(func: &Function, value: Value) -> Option<Sum> {
    let inst = func.dfg.value_def(value).inst()?;
    let InstructionData::Binary {
        opcode: Opcode::Iadd,
        args: [a, b],
    } = func.dfg.insts[inst]
    else {
        return None;
    };
    if func.dfg.value_type(value) != types::I64 {
        return None;
    }
    let with = |base, constant| {
        let constant = integer(func, constant)?;
        Some(Sum {
            inst,
            base,
            constant,
        })
    };
    with(a, b).or_else(|| with(b, a))
}

/// A pointer that each turn moves on by a constant.
struct Walk {
    entry: Edge,
    latch: Edge,
    /// Which parameter of the header it is.
    index: usize,
    pointer: Value,
    /// The sum that is the pointer of the next turn.
    next: Value,
}

impl Walk {
    fn of(
        func: &Function,
        uses: &Uses,
        body: &Body,
        (entry, latch): (Edge, Edge),
        index: usize,
    ) -> Option<Self> {
        let pointer = func.dfg.block_params(body.header)[index];
        let (begin, next) = (entry.args(func)[index], latch.args(func)[index]);
        let step = sum(func, next)?;
        let is_passed_once = |edge: Edge, value: Value| {
            let decides = func.dfg.inst_args(edge.branch).contains(&value);
            passed(func, edge, value) == 1 && !decides
        };
        // Whoever else reads the sum in front of the loop keeps it alive.
        let is_alone = uses.of_value(begin) == [entry.branch] && is_passed_once(entry, begin);
        let reads_addresses = |value: Value, besides: Inst| {
            let mut readers = uses.of_value(value).iter();
            readers.all(|&reader| reader == besides || is_offset_there(func, uses, reader, value))
        };
        let may = step.base == pointer
            && is_alone
            && reads_addresses(pointer, step.inst)
            && reads_addresses(next, latch.branch)
            && is_passed_once(latch, next);
        may.then_some(Walk {
            entry,
            latch,
            index,
            pointer,
            next,
        })
    }

    /// Lets it begin with the base of a sum. What was read as the pointer is the pointer and the constant.
    fn begin_with(self, func: &mut Function, uses: &mut Uses, begin: Sum, tracking: &Tracking) {
        let mut args = self.entry.args(func);
        args[self.index] = begin.base;
        let header = self.entry.to(func);
        self.entry.redirect(func, header, &args);
        uses.add(func, self.entry.branch);
        let update = func.dfg.value_def(self.next).inst();
        for (value, keeps) in [(self.pointer, update), (self.next, Some(self.latch.branch))] {
            let readers = uses
                .of_value(value)
                .iter()
                .filter(|&&reader| Some(reader) != keeps);
            let readers: Vec<Inst> = readers.copied().collect();
            if readers.is_empty() {
                continue;
            }
            let mut pos = FuncCursor::new(func);
            match pos.func.dfg.value_def(value).inst() {
                Some(def) => pos.goto_after_inst(def),
                None => pos.goto_first_insertion_point(header),
            }
            let place = update.map(|update| pos.func.srcloc(update));
            pos.set_srcloc(place.unwrap_or_default());
            let constant = pos.ins().iconst(types::I64, begin.constant);
            let other = pos.ins().iadd(value, constant);
            for reader in readers {
                let renamed = |read| if read == value { other } else { read };
                func.dfg.map_inst_values(reader, renamed);
                uses.add(func, reader);
            }
            if let Some(made) = func.dfg.value_def(other).inst() {
                uses.add(func, made);
            }
            tracking.moves(value, other);
        }
    }
}

/// Whether an instruction accesses memory at a value, or adds a constant to it for those that do.
fn is_offset_there(func: &Function, uses: &Uses, inst: Inst, value: Value) -> bool {
    let InstructionData::Binary {
        opcode: Opcode::Iadd,
        ..
    } = func.dfg.insts[inst]
    else {
        return is_access_at(func, inst, value);
    };
    let result = func.dfg.first_result(inst);
    let mut readers = uses.of_value(result).iter();
    sum(func, result).is_some_and(|sum| sum.base == value && sum.constant.abs() < FAR)
        && readers.all(|&reader| is_access_at(func, reader, result))
}

/// Whether an instruction accesses memory at a value, a constant away.
fn is_access_at(func: &Function, inst: Inst, value: Value) -> bool {
    match func.dfg.insts[inst] {
        InstructionData::Load { arg, offset, .. } => arg == value && i64::from(offset).abs() < FAR,
        InstructionData::Store { args, offset, .. } => {
            args[0] != value && args[1] == value && i64::from(offset).abs() < FAR
        }
        _ => false,
    }
}
