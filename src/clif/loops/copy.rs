//! Copies of instructions and blocks, with other values in the places of those that they read.

use super::shape::{Body, Uses};
use crate::values::tracking::Copies;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstructionData, Value};
use hashbrown::HashMap;

/// What takes the places of values and blocks in a copy.
pub(super) struct Copied<'a> {
    values: HashMap<Value, Value>,
    blocks: HashMap<Block, Block>,
    /// Which copy it is, for those who follow the values of the source.
    copy: Copies<'a>,
}

impl<'a> Copied<'a> {
    /// A copy in which `new` take the places of `old`.
    pub(super) fn with(copy: Copies<'a>, old: &[Value], new: &[Value]) -> Self {
        let mut copied = Copied {
            values: HashMap::with_capacity(old.len()),
            blocks: HashMap::new(),
            copy,
        };
        for (&old, &new) in old.iter().zip(new) {
            copied.put(old, new);
        }
        copied
    }

    /// `new` takes the place of `old`.
    fn put(&mut self, old: Value, new: Value) {
        self.copy.value(old, new);
        self.values.insert(old, new);
    }

    /// What takes the place of `value`.
    pub(super) fn value(&self, value: Value) -> Value {
        self.values.get(&value).copied().unwrap_or(value)
    }

    /// What take the places of `values`.
    pub(super) fn values(&self, values: &[Value]) -> Vec<Value> {
        values.iter().map(|&value| self.value(value)).collect()
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
        for index in 0..self.destinations(func, copy) {
            self.retarget(func, copy, index);
        }
        func.layout.append_inst(copy, block);
        func.srclocs[copy] = func.srclocs[inst];
        self.copy.inst(func, inst, copy);
        uses.add(func, copy);
        for index in 0..func.dfg.inst_results(inst).len() {
            let (old, new) = (
                func.dfg.inst_results(inst)[index],
                func.dfg.inst_results(copy)[index],
            );
            self.put(old, new);
        }
        copy
    }

    /// `value` takes the place of what `inst` gives.
    fn copied_as(&mut self, func: &mut Function, inst: Inst, value: Value) {
        self.put(func.dfg.first_result(inst), value);
        if let Some(made) = func.dfg.value_def(value).inst() {
            self.copy.inst(func, inst, made);
        }
    }

    fn destinations(&self, func: &Function, inst: Inst) -> usize {
        match func.dfg.insts[inst] {
            InstructionData::Jump { .. } => 1,
            InstructionData::Brif { .. } => 2,
            _ => 0,
        }
    }

    fn retarget(&self, func: &mut Function, branch: Inst, index: usize) {
        let dfg = &mut func.dfg;
        let call = match dfg.insts[branch] {
            InstructionData::Jump { destination, .. } => destination,
            InstructionData::Brif { blocks, .. } => blocks[index],
            _ => return,
        };
        let Some(&block) = self.blocks.get(&call.block(&dfg.value_lists)) else {
            return;
        };
        let args: Vec<BlockArg> = call.args(&dfg.value_lists).collect();
        let call = dfg.block_call(block, &args);
        match &mut dfg.insts[branch] {
            InstructionData::Jump { destination, .. } => *destination = call,
            InstructionData::Brif { blocks, .. } => blocks[index] = call,
            _ => {}
        }
    }

    /// Copies the blocks of `body`, the header's instructions to the end of `at`, whose parameters must have their
    /// places already, and the others to new blocks before `before`. The branch of its one latch is left out; the block
    /// where it would stand is returned. `instead` may give the result of an instruction of its own.
    pub(super) fn turn(
        &mut self,
        func: &mut Function,
        uses: &mut Uses,
        body: &Body,
        (at, before): (Block, Block),
        instead: &mut dyn FnMut(&mut Function, &mut Uses, Inst, Block) -> Option<Value>,
    ) -> Block {
        for &block in &body.blocks[1..] {
            let copy = func.dfg.make_block();
            func.layout.insert_block(copy, before);
            for index in 0..func.dfg.block_params(block).len() {
                let old = func.dfg.block_params(block)[index];
                let ty = func.dfg.value_type(old);
                let new = func.dfg.append_block_param(copy, ty);
                self.put(old, new);
            }
            self.blocks.insert(block, copy);
        }
        let latch = body.latches[0];
        let mut end = at;
        for &block in &body.blocks {
            let to = self.blocks.get(&block).copied().unwrap_or(at);
            let insts: Vec<Inst> = func.layout.block_insts(block).collect();
            for inst in insts {
                if inst == latch.branch {
                    end = to;
                } else if let Some(value) = instead(func, uses, inst, to) {
                    self.copied_as(func, inst, value);
                } else {
                    self.inst(func, uses, inst, to);
                }
            }
        }
        end
    }
}
