//! Parameters of blocks: what is passed for them, and whether what a loop carries from round to round arrives in time.

use super::Search;
use crate::analysis::control_flow::ControlFlow;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{BlockArg, Function, Value};
use cranelift_codegen::loop_analysis::Loop;
use smallvec::SmallVec;

/// Cycles until a result of the uniform datapath can be used (latency.isa, *assumed*).
const LATENCY: usize = 6;
/// Cycles of the shortest loop: a counter, its comparison and the branch (*assumed*).
const SHORTEST_LOOP: usize = 2 * LATENCY;
/// Operations in a chain and values side by side in it that are looked at: what is longer or wider counts as too long
/// (*assumed*: generous).
const DEEPEST: usize = 6;
const WIDEST: usize = 16;

/// What jumps pass for the parameters of blocks.
#[derive(Default)]
pub(super) struct Passing {
    arguments: SecondaryMap<Value, SmallVec<[Value; 2]>>,
    receivers: SecondaryMap<Value, SmallVec<[Value; 2]>>,
    /// Parameters for which something else than a value is passed.
    others: EntitySet<Value>,
}

impl Passing {
    /// Of the values in `among`, all that is passed for them and all that they are passed to.
    pub fn new(func: &Function, flow: &ControlFlow, among: &EntitySet<Value>) -> Self {
        let mut passing = Passing::default();
        for last in (flow.reverse_postorder().iter()).filter_map(|&b| func.layout.last_inst(b)) {
            let calls = func.dfg.insts[last]
                .branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
            for call in calls {
                let parameters = func.dfg.block_params(call.block(&func.dfg.value_lists));
                for (argument, &parameter) in call.args(&func.dfg.value_lists).zip(parameters) {
                    passing.add(argument, parameter, among);
                }
            }
        }
        passing
    }

    fn add(&mut self, argument: BlockArg, parameter: Value, among: &EntitySet<Value>) {
        let BlockArg::Value(argument) = argument else {
            self.others.insert(parameter);
            return;
        };
        if among.contains(parameter) {
            self.arguments[parameter].push(argument);
        }
        if among.contains(argument) {
            self.receivers[argument].push(parameter);
        }
    }

    /// What is passed for a parameter; nothing when something else than a value is.
    pub fn arguments(&self, parameter: Value) -> &[Value] {
        if self.others.contains(parameter) {
            return &[];
        }
        &self.arguments[parameter]
    }

    /// The parameters that a value is passed for.
    pub fn receivers(&self, value: Value) -> &[Value] {
        &self.receivers[value]
    }
}

/// Instructions of each loop, those of loops in it too.
pub(super) fn loop_sizes(func: &Function, flow: &ControlFlow) -> SecondaryMap<Loop, usize> {
    let mut sizes: SecondaryMap<Loop, usize> = SecondaryMap::new();
    for &block in flow.reverse_postorder() {
        if let Some(lp) = flow.innermost_loop(block) {
            sizes[lp] += func.layout.block_insts(block).count();
        }
    }
    for lp in flow.loops().rev() {
        if let Some(outer) = flow.loop_parent(lp) {
            sizes[outer] += sizes[lp];
        }
    }
    sizes
}

impl Search<'_> {
    /// Whether the chain that computes a loop's next value of a parameter is hidden by the loop's instructions.
    pub(super) fn is_hidden(&self, parameter: Value, sizes: &SecondaryMap<Loop, usize>) -> bool {
        let lp = self
            .block(parameter)
            .and_then(|block| self.input.facts.flow.innermost_loop(block));
        lp.is_none_or(|lp| {
            let chain = self.chain(parameter, lp) * LATENCY;
            chain <= SHORTEST_LOOP || chain <= sizes[lp]
        })
    }

    /// The longest chain of operations in a loop from a parameter to what is passed for it.
    fn chain(&self, parameter: Value, lp: Loop) -> usize {
        let flow = self.input.facts.flow;
        let mut longest = 0;
        let mut level: SmallVec<[Value; WIDEST]> =
            SmallVec::from_slice(self.passing.arguments(parameter));
        for length in 0..=DEEPEST {
            let mut next: SmallVec<[Value; WIDEST]> = SmallVec::new();
            // Operations that are no instruction only lead on to their operands, in the same level.
            let mut at = 0;
            while let Some(&value) = level.get(at) {
                at += 1;
                if value == parameter {
                    longest = length;
                    continue;
                }
                let within = |v: Value| self.block(v).is_some_and(|b| flow.is_in_loop(b, lp));
                if !self.is_candidate(value) || !within(value) {
                    continue;
                }
                let Some(operation) = self.operation(value) else {
                    continue;
                };
                let to = if operation.uniform == 0 {
                    &mut level
                } else {
                    &mut next
                };
                for operand in operation.operands {
                    if !to.contains(&operand) {
                        to.push(operand);
                    }
                }
                if level.len() > WIDEST || next.len() > WIDEST {
                    return DEEPEST + 1;
                }
            }
            level = next;
        }
        // Something is left, which may lead to the parameter.
        if level.is_empty() {
            longest
        } else {
            DEEPEST + 1
        }
    }
}
