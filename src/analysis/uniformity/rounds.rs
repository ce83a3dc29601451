//! Values that lanes have from different rounds of a cycle (temporal divergence).
//!
//! Takes the blocks between a divergent branch and where its lanes meet; the uses of what they define are divergent
//! outside of the scope in which every lane computes it anew. Coarsely that scope is the block.

use super::super::control_flow::ControlFlow;
use super::{Analysis, BLOCK_SCOPE};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, InstructionData, Opcode, Value, ValueDef};

/// The cyclic strongly connected components.
pub(super) struct Components {
    /// By block: the number of its component, from 1; 0 for blocks in no cycle.
    numbers: SecondaryMap<Block, u32>,
    /// By number: the blocks in reverse postorder, until the component has been looked at.
    members: Vec<Vec<Block>>,
}

impl Components {
    fn of(flow: &ControlFlow) -> Self {
        let numbers = cyclic_components(flow);
        let mut members: Vec<Vec<Block>> = Vec::new();
        for &block in flow.reverse_postorder() {
            let number = numbers[block] as usize;
            if members.len() <= number {
                members.resize(number + 1, Vec::new());
            }
            members[number].push(block);
        }
        Components { numbers, members }
    }
}

impl Analysis<'_> {
    /// Lanes that `block` parted and that meet at `meeting` may come from different rounds of the cycles just labelled.
    pub(super) fn separate_rounds(&mut self, block: Block, meeting: Option<Block>) {
        // Only what lies in a cycle with the branch runs in several rounds before the lanes meet.
        let Some(outermost) = self.flow.outermost_loop_without(block, None) else {
            return;
        };
        let region = self.search.labelled.clone();
        self.search.visits_left = self.search.visits_left.saturating_sub(region.len());
        for block in region {
            if Some(block) == meeting || !self.flow.is_in_loop(block, outermost) {
                continue;
            }
            let scope = self.flow.outermost_loop_without(block, meeting);
            // Values are live at the meeting point if their block dominates it; out of a loop they may also be passed
            // along an edge.
            let carried = meeting.is_none_or(|meeting| self.flow.dominates(block, meeting));
            if scope.is_none() && !carried {
                continue;
            }
            let depth = scope.map_or(BLOCK_SCOPE, |lp| self.flow.loop_nesting(lp));
            if depth <= self.scopes[block] {
                continue;
            }
            self.scopes[block] = depth;
            match scope {
                Some(lp) => self.taint_outside(block, |flow, user| !flow.is_in_loop(user, lp)),
                None => self.taint_outside(block, |_, user| user != block),
            }
        }
    }

    /// The coarse form of [`Self::separate_rounds`], for any kind of cycle: in the strongly connected component of the
    /// branch, no value is uniform in other blocks than its own.
    pub(super) fn separate_component(&mut self, block: Block) {
        let flow = self.flow;
        let components = (self.coarse.components).get_or_insert_with(|| Components::of(flow));
        let number = components.numbers[block];
        if number == 0 {
            return;
        }
        let members = std::mem::take(&mut components.members[number as usize]);
        for home in members {
            self.taint_outside(home, |_, user| user != home);
        }
    }

    /// The values defined in `home` are divergent for users in blocks that are `outside`.
    pub(super) fn taint_outside(
        &mut self,
        home: Block,
        outside: impl Fn(&ControlFlow, Block) -> bool,
    ) {
        let mut values: Vec<Value> = self.func.dfg.block_params(home).to_vec();
        for inst in self.func.layout.block_insts(home) {
            values.extend_from_slice(self.func.dfg.inst_results(inst));
        }
        values.retain(|value| !self.is_the_same_in_every_round(*value));
        for value in values {
            for index in 0..self.users.of(value).len() {
                let flow = self.flow;
                if self.taint(self.users.of(value)[index], value, |block| {
                    outside(flow, block)
                }) {
                    self.result.escaping[value] = true;
                }
            }
        }
    }

    /// True for values that do not depend on the round of any loop: constants and launch values.
    pub(super) fn is_the_same_in_every_round(&self, value: Value) -> bool {
        let ValueDef::Result(inst, _) = self.func.dfg.value_def(value) else {
            return false;
        };
        matches!(
            self.func.dfg.insts[inst],
            InstructionData::UnaryImm { .. }
                | InstructionData::UnaryIeee16 { .. }
                | InstructionData::UnaryIeee32 { .. }
                | InstructionData::UnaryIeee64 { .. }
                | InstructionData::UnaryConst { .. }
                | InstructionData::UnaryGlobalValue {
                    opcode: Opcode::SymbolValue,
                    ..
                }
                | InstructionData::FuncAddr { .. }
                | InstructionData::StackAddr { .. }
        )
    }
}

/// Numbers the strongly connected components that have a cycle, from 1; blocks in no cycle have 0. Iterative Tarjan.
fn cyclic_components(flow: &ControlFlow) -> SecondaryMap<Block, u32> {
    let mut component: SecondaryMap<Block, u32> = SecondaryMap::new();
    let mut number: SecondaryMap<Block, u32> = SecondaryMap::new();
    let mut low: SecondaryMap<Block, u32> = SecondaryMap::new();
    let mut open: SecondaryMap<Block, bool> = SecondaryMap::new();
    let (mut path, mut next, mut found) = (Vec::new(), 0, 0);
    let Some(&entry) = flow.reverse_postorder().first() else {
        return component;
    };
    let mut stack: Vec<(Block, Vec<Block>)> = Vec::new();
    let enter = |block: Block, next: &mut u32, path: &mut Vec<Block>| {
        *next += 1;
        path.push(block);
        (*next, flow.successors(block).collect::<Vec<_>>())
    };
    let (n, succs) = enter(entry, &mut next, &mut path);
    (number[entry], low[entry], open[entry]) = (n, n, true);
    stack.push((entry, succs));
    while let Some((block, succs)) = stack.last_mut() {
        let block = *block;
        if let Some(succ) = succs.pop() {
            if number[succ] == 0 {
                let (n, succs) = enter(succ, &mut next, &mut path);
                (number[succ], low[succ], open[succ]) = (n, n, true);
                stack.push((succ, succs));
            } else if open[succ] {
                low[block] = low[block].min(number[succ]);
            }
            continue;
        }
        stack.pop();
        if let Some((parent, _)) = stack.last() {
            low[*parent] = low[*parent].min(low[block]);
        }
        if low[block] == number[block] {
            let start = path
                .iter()
                .rposition(|b| *b == block)
                .expect("a block is on the path until it is closed");
            let members = path.split_off(start);
            let cyclic = members.len() > 1 || flow.successors(block).any(|succ| succ == block);
            found += u32::from(cyclic);
            for member in members {
                open[member] = false;
                component[member] = if cyclic { found } else { 0 };
            }
        }
    }
    component
}
