//! Equal values behind Cranelift's mid-end.
//!
//! The mid-end replaces pure values by better or earlier ones and does not say by which. Two things are left to see in
//! the function behind it: unions of values that it found to be equal, and the instructions that it left out, with
//! their operands. Values are numbered: those of a union have one number, and so have instructions that do the same
//! with operands of the same numbers. A value that was left out is what one of its number is that still stands in the
//! code.
//!
//! Equal means: for the same operands, so in the same turn of every loop around. Whether it is computed where somebody
//! looks is asked later, of the code.

use super::tracking::{Names, add_names, defining_block, original};
use cranelift_codegen::entity::{EntityRef, SecondaryMap};
use cranelift_codegen::ir::{
    Function, Inst, InstructionData, Opcode, Type, Value, ValueDef, ValueListPool,
};
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Operands of operands that are looked at, at most.
const DEPTH: u32 = 32;
/// No number yet.
const NONE: u32 = u32::MAX;

/// Gives the names of values that are not computed any more to equal ones that are.
pub(super) fn recover(func: &Function, names: &mut SecondaryMap<Value, Names>) {
    let values = || (0..func.dfg.num_values()).map(Value::new);
    let is_lost = |value: &Value| {
        !names[*value].is_empty()
            && func.dfg.value_is_real(*value)
            && defining_block(func, *value).is_none()
    };
    let lost: Vec<Value> = values().filter(is_lost).collect();
    if lost.is_empty() {
        return;
    }
    let mut numbering = Numbering::of(func, &lost);
    let numbers: Vec<u32> = (lost.iter())
        .map(|value| numbering.number(*value, DEPTH))
        .collect();
    let mut is_wanted = vec![false; numbering.next as usize];
    for &number in &numbers {
        is_wanted[number as usize] = true;
    }
    let mut standing: Vec<(u32, Value)> = Vec::new();
    for block in func.layout.blocks() {
        let results = (func.layout.block_insts(block))
            .flat_map(|inst| func.dfg.inst_results(inst).iter().copied());
        for value in func.dfg.block_params(block).iter().copied().chain(results) {
            if !numbering.may_be_equal(value) {
                continue;
            }
            let number = numbering.number(value, DEPTH);
            // Numbers that came up since are of no value that was left out.
            if is_wanted.get(number as usize) == Some(&true) {
                standing.push((number, value));
            }
        }
    }
    standing.sort_by_key(|(number, _)| *number);
    for (value, number) in lost.into_iter().zip(numbers) {
        let first = standing.partition_point(|(other, _)| *other < number);
        let equal = standing[first..]
            .iter()
            .take_while(|(other, _)| *other == number);
        for (_, equal) in equal {
            add_names(names, value, *equal);
        }
    }
}

/// Whether the result follows from the operands alone.
fn only_computes(opcode: Opcode) -> bool {
    !opcode.can_load() && !opcode.can_store() && !opcode.other_side_effects() && !opcode.is_call()
}

struct Numbering<'a> {
    func: &'a Function,
    /// By value: another one of its union that is nearer to the one that stands for all.
    towards: Vec<Value>,
    /// By value, the next one of its union; the last one's is the first.
    next_of_union: Vec<Value>,
    /// By value, of those that stand for a union.
    numbers: Vec<u32>,
    operations: HashMap<(Type, InstructionData), u32>,
    /// By opcode, whether a value that was left out is computed by it, or from one that is. No other value is equal to
    /// one of those.
    is_asked: [bool; 256],
    next: u32,
}

impl<'a> Numbering<'a> {
    /// To find what `lost` values are equal to.
    fn of(func: &'a Function, lost: &[Value]) -> Self {
        let count = func.dfg.num_values();
        let mut numbering = Numbering {
            func,
            towards: (0..count).map(Value::new).collect(),
            next_of_union: (0..count).map(Value::new).collect(),
            numbers: vec![NONE; count],
            operations: HashMap::with_capacity(2 * lost.len()),
            is_asked: [false; 256],
            next: 0,
        };
        for value in (0..count).map(Value::new) {
            if func.dfg.value_is_real(value)
                && let ValueDef::Union(a, b) = func.dfg.value_def(value)
            {
                for part in [a, b] {
                    let (one, other) = (numbering.find(part), numbering.find(value));
                    if one != other {
                        numbering.towards[other.index()] = one;
                        // Two rings become one.
                        numbering.next_of_union.swap(one.index(), other.index());
                    }
                }
            }
        }
        numbering.ask(lost.to_vec());
        numbering
    }

    /// Finds the opcodes that values and all that they are computed from have.
    fn ask(&mut self, mut values: Vec<Value>) {
        let mut was_seen = vec![false; self.towards.len()];
        while let Some(value) = values.pop() {
            let first = self.find(value);
            if std::mem::replace(&mut was_seen[first.index()], true) {
                continue;
            }
            let mut member = first;
            loop {
                let dfg = &self.func.dfg;
                let is_real = dfg.value_is_real(member);
                if let Some(inst) = is_real.then(|| dfg.value_def(member).inst()).flatten() {
                    self.is_asked[usize::from(dfg.insts[inst].opcode() as u8)] = true;
                    values.extend_from_slice(dfg.inst_args(inst));
                }
                member = self.next_of_union[member.index()];
                if member == first {
                    break;
                }
            }
        }
    }

    /// The value that stands for the union of a value.
    fn find(&mut self, value: Value) -> Value {
        let mut first = original(self.func, value).unwrap_or(value);
        while self.towards[first.index()] != first {
            let next = self.towards[first.index()];
            self.towards[first.index()] = self.towards[next.index()];
            first = next;
        }
        first
    }

    /// Whether a value may be equal to one that was left out: it has been looked at already, is one of a union, or is
    /// computed by an operation that is asked for.
    fn may_be_equal(&mut self, value: Value) -> bool {
        let first = self.find(value);
        let dfg = &self.func.dfg;
        let is_asked = |inst: Inst| self.is_asked[usize::from(dfg.insts[inst].opcode() as u8)];
        self.numbers[first.index()] != NONE
            || first != value
            || self.next_of_union[first.index()] != first
            || dfg.value_def(value).inst().is_some_and(is_asked)
    }

    fn number(&mut self, value: Value, depth: u32) -> u32 {
        let first = self.find(value);
        if self.numbers[first.index()] != NONE {
            return self.numbers[first.index()];
        }
        // What comes round to itself is equal to nothing else.
        let fresh = self.next;
        self.next += 1;
        self.numbers[first.index()] = fresh;
        let mut keys: SmallVec<[(Type, InstructionData); 2]> = SmallVec::new();
        let mut member = first;
        loop {
            keys.extend(self.operation(member, depth));
            member = self.next_of_union[member.index()];
            if member == first {
                break;
            }
        }
        let known = keys
            .iter()
            .find_map(|key| self.operations.get(key).copied());
        let number = known.unwrap_or(fresh);
        self.numbers[first.index()] = number;
        for key in keys {
            self.operations.entry(key).or_insert(number);
        }
        number
    }

    /// What a value is computed by, with numbers in place of its operands; none of what depends on more than those.
    fn operation(&mut self, value: Value, depth: u32) -> Option<(Type, InstructionData)> {
        let func = self.func;
        let inst = func
            .dfg
            .value_is_real(value)
            .then(|| func.dfg.value_def(value).inst())??;
        let data = func.dfg.insts[inst];
        // Lists of operands are compared by where they stand.
        let is_listed = matches!(data, InstructionData::MultiAry { .. });
        let is_one = func.dfg.inst_results(inst) == [value];
        let opcode = data.opcode();
        let is_asked = self.is_asked[usize::from(opcode as u8)];
        if !is_asked || depth == 0 || !is_one || is_listed || !only_computes(opcode) {
            return None;
        }
        let mut data = data;
        let mut no_lists = ValueListPool::new();
        for operand in data.arguments_mut(&mut no_lists) {
            *operand = Value::from_u32(self.number(*operand, depth - 1));
        }
        Some((func.dfg.value_type(value), data))
    }
}
