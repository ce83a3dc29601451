//! Makes sums of what loops multiply: strength reduction.
//!
//! `base + (i * n + j) * 4`, where `i` counts turns and nothing else changes from turn to turn, grows by `n * 4` in
//! each of them. On 64 bits a product takes three instructions, a sum two; so such a value becomes a counter of its
//! own, which starts as what the value is in the first turn and grows by a stride that is computed in front of the
//! loop. Everything is modulo 2^64, so wrapping changes nothing. Values of 32 bits stay: IMAD computes a product and a
//! sum at once, and IMAD.WIDE an element's address.
//!
//! Takes innermost loops with one way in and one way back. A value is replaced if that saves [`LEAST`] instructions of
//! a turn by the estimate of [`Reduction::cost`], and if registers are left for it. (The method is that of Cocke and
//! Kennedy, An algorithm for reduction of operator strength, 1977, for trees of operations instead of single ones.)

use super::LoopContext;
use super::count::is_invariant;
use super::shape::{Body, Edge, Uses, is_constant, words};
use crate::constants::integer;
use crate::values::tracking::Tracking;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    Function, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef, types,
};
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Fewest instructions of a turn that a new counter must save (*assumed*: it takes registers all the time).
const LEAST: u32 = 2;
/// Machine instructions of a product and of a sum of 64 bits: IMAD.WIDE.U32 with two IMAD, and IADD with IADD.X.
const PRODUCT: u32 = 3;
const SUM: u32 = 2;
/// Most registers that new counters of a loop and their strides take (*assumed*).
const MOST: u32 = 16;

/// Replaces what is worth it; true if anything has changed.
pub(super) fn reduce(
    context: &mut Context,
    given: &LoopContext<'_>,
    uses: &mut Option<Uses>,
) -> bool {
    let mut changed = false;
    for body in Body::innermost(context) {
        let Some((entry, latch)) = body.only_ways(context) else {
            continue;
        };
        let func = &mut context.func;
        let mut found = Reduction::of(func, &body, (entry, latch));
        if found.products == 0 {
            continue;
        }
        let uses = uses.get_or_insert_with(|| Uses::of(func));
        let carried: u32 = func.dfg.block_param_types(body.header).map(words).sum();
        let room = (u32::from(given.settings.registers) / 3).saturating_sub(carried);
        for root in found.roots(func, uses, room.min(MOST)) {
            found.replace(func, uses, root, given.tracking);
            changed = true;
        }
    }
    changed
}

/// An integer in front of the loop.
#[derive(Clone, Copy, Debug)]
enum Front {
    Constant(i64),
    Value(Value),
}

/// The values of a loop that grow alike in every turn.
struct Reduction<'a> {
    body: &'a Body,
    entry: Edge,
    latch: Edge,
    /// Counters: what they start as, and what each turn adds, or takes off.
    counters: HashMap<Value, (Value, Value, bool)>,
    /// Operations on them, in order, and their places in the list.
    operations: Vec<Inst>,
    places: HashMap<Value, usize>,
    /// How many of them multiply.
    products: usize,
    /// What has been computed in front of the loop: the value in the first turn, and the stride.
    firsts: HashMap<Value, Front>,
    strides: HashMap<Value, Front>,
}

impl<'a> Reduction<'a> {
    fn of(func: &Function, body: &'a Body, (entry, latch): (Edge, Edge)) -> Self {
        let mut found = Self {
            body,
            entry,
            latch,
            counters: HashMap::new(),
            operations: Vec::new(),
            places: HashMap::new(),
            products: 0,
            firsts: HashMap::new(),
            strides: HashMap::new(),
        };
        let params = func.dfg.block_params(body.header).iter().copied();
        let ends = entry.args(func).into_iter().zip(latch.args(func));
        for (param, (start, next)) in params.zip(ends) {
            if func.dfg.value_type(param) == types::I64
                && let Some((step, down)) = found.step(func, param, next)
            {
                found.counters.insert(param, (start, step, down));
            }
        }
        if found.counters.is_empty() {
            return found;
        }
        for inst in body.insts(func) {
            if found.grows(func, inst) {
                let result = func.dfg.first_result(inst);
                found.places.insert(result, found.operations.len());
                found.operations.push(inst);
                let opcode = func.dfg.insts[inst].opcode();
                found.products += usize::from(matches!(opcode, Opcode::Imul | Opcode::Ishl));
            }
        }
        found
    }

    /// What each turn adds to `param`, or takes off it.
    fn step(&self, func: &Function, param: Value, next: Value) -> Option<(Value, bool)> {
        let update = func.dfg.value_def(next).inst()?;
        let InstructionData::Binary {
            opcode,
            args: [a, b],
        } = func.dfg.insts[update]
        else {
            return None;
        };
        match opcode {
            Opcode::Iadd if a == param && self.is_invariant(func, b) => Some((b, false)),
            Opcode::Iadd if b == param && self.is_invariant(func, a) => Some((a, false)),
            Opcode::Isub if a == param && self.is_invariant(func, b) => Some((b, true)),
            _ => None,
        }
    }

    fn is_invariant(&self, func: &Function, value: Value) -> bool {
        is_invariant(func, self.body, value)
    }

    /// Whether a value is a counter, or computed from one.
    fn is_known(&self, value: Value) -> bool {
        self.counters.contains_key(&value) || self.places.contains_key(&value)
    }

    /// Whether `inst` computes what grows by the same in every turn.
    fn grows(&self, func: &Function, inst: Inst) -> bool {
        let InstructionData::Binary {
            opcode,
            args: [a, b],
        } = func.dfg.insts[inst]
        else {
            return false;
        };
        if func.dfg.value_type(func.dfg.first_result(inst)) != types::I64 {
            return false;
        }
        let (left, right) = (self.is_known(a), self.is_known(b));
        match opcode {
            Opcode::Iadd | Opcode::Isub => {
                let steady = |known, value| known || self.is_invariant(func, value);
                (left && steady(right, b)) || (right && steady(left, a))
            }
            Opcode::Imul => {
                (left && self.is_invariant(func, b)) || (right && self.is_invariant(func, a))
            }
            Opcode::Ishl => left && integer(func, b).is_some(),
            _ => false,
        }
    }

    /// The values to replace: read by something else than the operations, and worth it.
    fn roots(&self, func: &Function, uses: &Uses, mut room: u32) -> Vec<Value> {
        let updates = self.latch.args(func);
        let mut roots = Vec::new();
        for &inst in self.operations.iter().rev() {
            let value = func.dfg.first_result(inst);
            let readers = uses.of_value(value);
            let inside = |reader: &Inst| self.is_operation(func, *reader);
            if updates.contains(&value) || readers.is_empty() || readers.iter().all(inside) {
                continue;
            }
            // An offset of an access costs nothing, nor does a stride that is a constant.
            let cost = self.cost(func, uses, inst);
            let needed = if self.is_constant_stride(func, inst) {
                2
            } else {
                4
            };
            if cost >= SUM + LEAST && needed <= room {
                room -= needed;
                roots.push(value);
            }
        }
        roots
    }

    fn is_operation(&self, func: &Function, inst: Inst) -> bool {
        matches!(func.dfg.insts[inst], InstructionData::Binary { .. })
            && self.places.contains_key(&func.dfg.first_result(inst))
    }

    fn operation(&self, func: &Function, value: Value) -> Option<(Opcode, [Value; 2])> {
        let inst = self.operations[*self.places.get(&value)?];
        match func.dfg.insts[inst] {
            InstructionData::Binary { opcode, args } => Some((opcode, args)),
            _ => None,
        }
    }

    /// About how many instructions of a turn go with `root`: those that compute it and nothing else. A sum takes a
    /// product or a shift as an operand at no cost of its own (IMAD.WIDE's addend, LEA), and accesses take constants.
    fn cost(&self, func: &Function, uses: &Uses, root: Inst) -> u32 {
        let mut cost = 0;
        let mut work: SmallVec<[(Value, bool); 8]> = SmallVec::new();
        work.push((func.dfg.first_result(root), false));
        while let Some((value, joined)) = work.pop() {
            let Some((opcode, args)) = self.operation(func, value) else {
                continue;
            };
            let alone = |value: &Value| uses.of_value(*value).len() == 1;
            let joins = |value: &Value| {
                alone(value)
                    && (self.operation(func, *value))
                        .is_some_and(|(inner, _)| matches!(inner, Opcode::Imul | Opcode::Ishl))
            };
            let constant = args.iter().any(|&arg| integer(func, arg).is_some());
            let taken = match opcode {
                Opcode::Imul => {
                    cost += PRODUCT;
                    false
                }
                Opcode::Ishl => {
                    cost += if joined { 0 } else { SUM };
                    false
                }
                _ if constant => false,
                _ => {
                    // One of its operands may join.
                    let first = args.iter().find(|arg| joins(arg));
                    let product = first
                        .and_then(|&arg| self.operation(func, arg))
                        .is_some_and(|(inner, _)| inner == Opcode::Imul);
                    cost += if product { 0 } else { SUM };
                    first.is_some()
                }
            };
            let mut left = taken;
            for arg in args {
                if self.places.contains_key(&arg) && alone(&arg) {
                    let joins = left && joins(&arg);
                    left &= !joins;
                    work.push((arg, joins));
                }
            }
        }
        cost
    }

    fn is_constant_stride(&self, func: &Function, root: Inst) -> bool {
        let mut work: SmallVec<[Value; 8]> = SmallVec::new();
        work.push(func.dfg.first_result(root));
        let mut steps = 0;
        while let Some(value) = work.pop() {
            steps += 1;
            if let Some((step, _)) = self.counter(value) {
                if integer(func, step).is_none() || steps > 32 {
                    return false;
                }
            } else if let Some((opcode, args)) = self.operation(func, value) {
                let known = args.into_iter().filter(|arg| self.is_known(*arg));
                let constant = args.iter().any(|&arg| integer(func, arg).is_some());
                if opcode == Opcode::Imul && !constant {
                    return false;
                }
                work.extend(known);
            }
        }
        true
    }

    fn counter(&self, value: Value) -> Option<(Value, bool)> {
        self.counters
            .get(&value)
            .map(|&(_, step, down)| (step, down))
    }

    /// Makes a counter of `root`.
    fn replace(&mut self, func: &mut Function, uses: &mut Uses, root: Value, tracking: &Tracking) {
        self.compute(func, uses, root);
        let stride = self.strides[&root];
        let mut pos = FuncCursor::new(func).at_inst(self.entry.branch);
        let first = value(&mut pos, self.firsts[&root]);
        let param = func.dfg.append_block_param(self.body.header, types::I64);
        let place = func.srcloc(self.operations[self.places[&root]]);
        let mut pos = FuncCursor::new(func).at_inst(self.latch.branch);
        pos.set_srcloc(place);
        let stride = value(&mut pos, stride);
        let next = pos.ins().iadd(param, stride);
        note(pos.func, uses, next);
        for (edge, value) in [(self.entry, first), (self.latch, next)] {
            let mut args = edge.args(pos.func);
            args.push(value);
            edge.redirect(pos.func, self.body.header, &args);
            uses.add(pos.func, edge.branch);
        }
        tracking.also(root, param);
        uses.replace(pos.func, (root, param), |_, _| true);
    }

    /// Computes in front of the loop what `root` is in the first turn, and by how much it grows.
    fn compute(&mut self, func: &mut Function, uses: &mut Uses, root: Value) {
        let last = self.places[&root];
        let mut needed = vec![false; last + 1];
        needed[last] = true;
        for index in (0..=last).rev() {
            if needed[index] {
                for &arg in func.dfg.inst_args(self.operations[index]) {
                    if let Some(&place) = self.places.get(&arg) {
                        needed[place] = true;
                    }
                }
            }
        }
        let mut pos = FuncCursor::new(func).at_inst(self.entry.branch);
        for index in (0..=last).filter(|&index| needed[index]) {
            let inst = self.operations[index];
            let result = pos.func.dfg.first_result(inst);
            if !self.firsts.contains_key(&result) {
                let place = pos.func.srcloc(inst);
                pos.set_srcloc(place);
                self.compute_one(&mut pos, uses, inst);
            }
        }
    }

    fn compute_one(&mut self, pos: &mut FuncCursor<'_>, uses: &mut Uses, inst: Inst) {
        let InstructionData::Binary {
            opcode,
            args: [a, b],
        } = pos.func.dfg.insts[inst]
        else {
            return;
        };
        let result = pos.func.dfg.first_result(inst);
        let [first_a, first_b] = [a, b].map(|arg| self.first(pos, uses, arg));
        let [stride_a, stride_b] = [a, b].map(|arg| self.stride(pos, uses, arg));
        let mut make = |opcode, a, b| binary(pos, uses, opcode, (a, b));
        let (first, stride) = match opcode {
            Opcode::Imul if self.is_known(a) => (
                make(Opcode::Imul, first_a, first_b),
                make(Opcode::Imul, stride_a, first_b),
            ),
            Opcode::Imul => (
                make(Opcode::Imul, first_a, first_b),
                make(Opcode::Imul, first_a, stride_b),
            ),
            Opcode::Ishl => (
                make(Opcode::Ishl, first_a, first_b),
                make(Opcode::Ishl, stride_a, first_b),
            ),
            _ => (
                make(opcode, first_a, first_b),
                make(opcode, stride_a, stride_b),
            ),
        };
        self.firsts.insert(result, first);
        self.strides.insert(result, stride);
    }

    /// What `value` is in the first turn.
    fn first(&self, pos: &mut FuncCursor<'_>, uses: &mut Uses, value: Value) -> Front {
        if let Some(&first) = self.firsts.get(&value) {
            return first;
        }
        match self.counters.get(&value) {
            Some(&(start, ..)) => in_front(pos, uses, start),
            None => in_front(pos, uses, value),
        }
    }

    /// What each turn adds to `value`.
    fn stride(&self, pos: &mut FuncCursor<'_>, uses: &mut Uses, value: Value) -> Front {
        if let Some(&stride) = self.strides.get(&value) {
            return stride;
        }
        match self.counter(value) {
            Some((step, down)) => {
                let step = in_front(pos, uses, step);
                match down {
                    true => binary(pos, uses, Opcode::Isub, (Front::Constant(0), step)),
                    false => step,
                }
            }
            None => Front::Constant(0),
        }
    }
}

/// A value that the loop does not change, readable in front of it: constants are made again.
fn in_front(pos: &mut FuncCursor<'_>, uses: &mut Uses, value: Value) -> Front {
    if let Some(constant) = integer(pos.func, value) {
        return Front::Constant(constant);
    }
    match pos.func.dfg.value_def(value) {
        ValueDef::Result(inst, _) if is_constant(pos.func, inst) => {
            let copy = pos.func.dfg.clone_inst(inst);
            pos.insert_inst(copy);
            uses.add(pos.func, copy);
            Front::Value(pos.func.dfg.first_result(copy))
        }
        _ => Front::Value(value),
    }
}

/// `a` and `b` together; an instruction only where that is needed.
fn binary(
    pos: &mut FuncCursor<'_>,
    uses: &mut Uses,
    opcode: Opcode,
    (a, b): (Front, Front),
) -> Front {
    use Front::{Constant, Value as Computed};
    let folded = match (opcode, a, b) {
        (Opcode::Iadd, Constant(a), Constant(b)) => Some(Constant(a.wrapping_add(b))),
        (Opcode::Isub, Constant(a), Constant(b)) => Some(Constant(a.wrapping_sub(b))),
        (Opcode::Imul, Constant(a), Constant(b)) => Some(Constant(a.wrapping_mul(b))),
        (Opcode::Ishl, Constant(a), Constant(b)) => Some(Constant(a << (b & 63))),
        (Opcode::Iadd | Opcode::Isub | Opcode::Ishl, other, Constant(0))
        | (Opcode::Iadd, Constant(0), other)
        | (Opcode::Imul, other, Constant(1))
        | (Opcode::Imul, Constant(1), other) => Some(other),
        (Opcode::Imul | Opcode::Ishl, Constant(0), _) | (Opcode::Imul, _, Constant(0)) => {
            Some(Constant(0))
        }
        _ => None,
    };
    folded.unwrap_or_else(|| {
        let (a, b) = (value(pos, a), value(pos, b));
        let inst = pos.ins().Binary(opcode, types::I64, a, b).0;
        let result = pos.func.dfg.first_result(inst);
        note(pos.func, uses, result);
        Computed(result)
    })
}

/// The integer as a value.
fn value(pos: &mut FuncCursor<'_>, front: Front) -> Value {
    match front {
        Front::Constant(constant) => pos.ins().iconst(types::I64, constant),
        Front::Value(value) => value,
    }
}

/// Takes note of what makes `value`.
fn note(func: &Function, uses: &mut Uses, value: Value) {
    if let Some(inst) = func.dfg.value_def(value).inst() {
        uses.add(func, inst);
    }
}
