//! Conjunctions and disjunctions of a block, by their operands without complements, so that one is found as the
//! complement of another.
//!
//! `a | b` is `!(!a & !b)`: both are kept as conjunctions of operands that may be complemented, with a mark for the
//! ones that are complements themselves. To compute the complement of a value takes no instruction where the next
//! operation is bitwise; but only a value that more than one operation reads is there anyway, as one that is read once
//! becomes a part of its user.

use crate::analysis::uses::for_each_operand;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value};
use hashbrown::HashMap;

/// An operand, and whether it is complemented.
type Literal = (Value, bool);

/// What is known of the block so far.
#[derive(Default)]
pub(super) struct Complements {
    /// By the operands of the conjunction: the value, and whether it is its complement.
    known: HashMap<[Literal; 2], (Value, bool)>,
    /// How often values are used, counted when it is asked for the first time.
    uses: Option<SecondaryMap<Value, u32>>,
}

impl Complements {
    pub(super) fn start_block(&mut self) {
        self.known.clear();
    }

    /// Remembers an instruction that stays.
    pub(super) fn remember(&mut self, func: &Function, inst: Inst) {
        if let Some((key, complemented)) = conjunction(func, func.dfg.insts[inst]) {
            let result = func.dfg.first_result(inst);
            self.known.entry(key).or_insert((result, complemented));
        }
    }

    /// The value before that this operation gives the complement of.
    pub(super) fn find(&mut self, func: &Function, data: InstructionData) -> Option<Value> {
        let (key, complemented) = conjunction(func, data)?;
        let &(value, other) = self.known.get(&key)?;
        let uses = self.uses.get_or_insert_with(|| count(func));
        (complemented != other && uses[value] > 1).then_some(value)
    }
}

/// The operands of an operation as a conjunction, in an order that is the same for all, and whether it is the
/// complement of that.
fn conjunction(func: &Function, data: InstructionData) -> Option<([Literal; 2], bool)> {
    let InstructionData::Binary {
        opcode: opcode @ (Opcode::Band | Opcode::Bor),
        args,
    } = data
    else {
        return None;
    };
    let complemented = opcode == Opcode::Bor;
    let mut literals = args.map(|arg| {
        let (value, not) = literal(func, arg);
        (value, not ^ complemented)
    });
    literals.sort_unstable();
    Some((literals, complemented))
}

fn literal(func: &Function, value: Value) -> Literal {
    let value = func.dfg.resolve_aliases(value);
    let data = (func.dfg.value_def(value).inst()).map(|inst| func.dfg.insts[inst]);
    match data {
        Some(InstructionData::Unary {
            opcode: Opcode::Bnot,
            arg,
        }) => (func.dfg.resolve_aliases(arg), true),
        _ => (value, false),
    }
}

fn count(func: &Function) -> SecondaryMap<Value, u32> {
    let mut uses = SecondaryMap::with_capacity(func.dfg.num_values());
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            for_each_operand(func, inst, |value| {
                uses[func.dfg.resolve_aliases(value)] += 1;
            });
        }
    }
    uses
}
