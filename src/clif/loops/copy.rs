//! Copies of instructions, with other values in the places of those that they read.

use super::shape::Uses;
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use hashbrown::HashMap;

/// What takes the places of values in a copy.
#[derive(Default)]
pub(super) struct Copied {
    values: HashMap<Value, Value>,
}

impl Copied {
    /// A copy in which `new` take the places of `old`.
    pub(super) fn with(old: &[Value], new: &[Value]) -> Self {
        Copied {
            values: old.iter().copied().zip(new.iter().copied()).collect(),
        }
    }

    /// What takes the place of `value`.
    pub(super) fn value(&self, value: Value) -> Value {
        self.values.get(&value).copied().unwrap_or(value)
    }

    /// Copies `inst` to the end of `block`.
    pub(super) fn inst(
        &mut self,
        func: &mut Function,
        uses: &mut Uses,
        inst: Inst,
        block: Block,
    ) -> Inst {
        let copy = func.dfg.clone_inst(inst);
        func.dfg.map_inst_values(copy, |value| self.value(value));
        func.layout.append_inst(copy, block);
        func.srclocs[copy] = func.srclocs[inst];
        uses.add(func, copy);
        for index in 0..func.dfg.inst_results(inst).len() {
            let (old, new) = (
                func.dfg.inst_results(inst)[index],
                func.dfg.inst_results(copy)[index],
            );
            self.values.insert(old, new);
        }
        copy
    }
}
