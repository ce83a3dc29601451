//! Parameters of blocks that are truths: i8 values that every edge passes a truth or a constant 0 or 1.
//!
//! Such a parameter lives in a predicate, so that a condition which a loop carries is never made a number in each turn.
//! All parameters of i8 are taken for truths at first. One that some edge passes anything else is none, nor is one that
//! nobody reads as a truth, directly or through other parameters; both are taken out until nothing changes. Few of a
//! block are truths, as there are seven predicates.

use super::control_flow::ControlFlow;
use super::definitions::Definitions;
use super::uses::Users;
use crate::intrinsics::resolve::Intrinsics;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{BlockArg, Function, InstructionData, Opcode, Value, types};

/// The parameters that are truths.
#[derive(Default)]
pub struct Truths(EntitySet<Value>);

/// Most of one block (*assumed*): comparisons need predicates too.
const OF_A_BLOCK: usize = 3;

/// What an edge passes to a parameter.
struct Passed {
    parameter: Value,
    /// None where it is no value.
    argument: Option<Value>,
}

impl Truths {
    /// Finds those of a function.
    pub fn compute(
        func: &Function,
        users: &Users,
        intrinsics: &Intrinsics,
        flow: &ControlFlow,
    ) -> Self {
        let mut truths = Self::default();
        truths.recompute(func, users, intrinsics, flow);
        truths
    }

    /// The same in the memory of the function before.
    pub fn recompute(
        &mut self,
        func: &Function,
        users: &Users,
        intrinsics: &Intrinsics,
        flow: &ControlFlow,
    ) {
        self.0.clear();
        let entry = func.layout.entry_block();
        for block in func.layout.blocks().filter(|&block| Some(block) != entry) {
            let of_i8 = |value: &&Value| func.dfg.value_type(**value) == types::I8;
            let parameters = func.dfg.block_params(block).iter().filter(of_i8);
            self.0.extend(parameters.take(OF_A_BLOCK).copied());
        }
        if self.0.is_empty() {
            return;
        }
        let passed = self.passed(func);
        // What is wrong spreads forward, what is wanted backward; edges are mostly in the order of the blocks.
        loop {
            let wanted = wanted(&self.definitions(func, users, intrinsics, flow), &passed);
            let mut changed = false;
            loop {
                let mut removed = false;
                for &Passed {
                    parameter,
                    argument,
                } in &passed
                {
                    let known = self.definitions(func, users, intrinsics, flow);
                    let is_truth = |value| is_passed_as_truth(&known, value);
                    let fits = argument.is_some_and(is_truth) && wanted.contains(parameter);
                    if !fits {
                        removed |= self.0.remove(parameter);
                    }
                }
                if !removed {
                    break;
                }
                changed = true;
            }
            if !changed {
                return;
            }
        }
    }

    /// What is known of a function if these are its truths.
    fn definitions<'a>(
        &'a self,
        func: &'a Function,
        users: &'a Users,
        intrinsics: &'a Intrinsics,
        flow: &'a ControlFlow,
    ) -> Definitions<'a> {
        Definitions {
            func,
            users,
            intrinsics,
            flow,
            truths: self,
        }
    }

    /// Whether a parameter of a block is a truth.
    pub fn contains(&self, parameter: Value) -> bool {
        self.0.contains(parameter)
    }

    /// What edges pass to those that may be truths.
    fn passed(&self, func: &Function) -> Vec<Passed> {
        let dfg = &func.dfg;
        let mut found = Vec::new();
        for last in func
            .layout
            .blocks()
            .filter_map(|b| func.layout.last_inst(b))
        {
            let calls = dfg.insts[last].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
            for call in calls {
                let parameters = dfg.block_params(call.block(&dfg.value_lists));
                for (argument, &parameter) in call.args(&dfg.value_lists).zip(parameters) {
                    if self.contains(parameter) {
                        let argument = match argument {
                            BlockArg::Value(value) => Some(value),
                            _ => None,
                        };
                        found.push(Passed {
                            parameter,
                            argument,
                        });
                    }
                }
            }
        }
        found
    }
}

/// Whether an edge can pass a value in a predicate.
fn is_passed_as_truth(definitions: &Definitions<'_>, value: Value) -> bool {
    definitions.is_truth(value) || matches!(definitions.constant_of(value), Some(0 | 1))
}

/// The parameters that somebody reads as truths.
fn wanted(definitions: &Definitions<'_>, passed: &[Passed]) -> EntitySet<Value> {
    let mut wanted = EntitySet::new();
    let parameters = passed.iter().map(|passed| passed.parameter);
    wanted.extend(parameters.filter(|&parameter| is_read_as_truth(definitions, parameter)));
    loop {
        let mut changed = false;
        for Passed {
            parameter,
            argument,
        } in passed.iter().rev()
        {
            if let Some(argument) = argument
                && wanted.contains(*parameter)
            {
                changed |= wanted.insert(*argument);
            }
        }
        if !changed {
            return wanted;
        }
    }
}

fn is_read_as_truth(definitions: &Definitions<'_>, parameter: Value) -> bool {
    let func = definitions.func;
    definitions
        .users
        .of(parameter)
        .iter()
        .any(|&inst| match func.dfg.insts[inst] {
            InstructionData::Brif { arg, .. } => arg == parameter,
            InstructionData::Ternary {
                opcode: Opcode::Select | Opcode::SelectSpectreGuard,
                args,
            } => args[0] == parameter,
            InstructionData::CondTrap { .. } => true,
            InstructionData::Binary {
                opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor,
                ..
            } => definitions.is_truth(func.dfg.first_result(inst)),
            _ => false,
        })
}
