//! Truths: values of i8 that are 0 or 1 and live in predicates.
//!
//! Results of comparisons, votes and `vany_true` are, overflows, and what `band`, `bor` and `bxor` make of truths. A
//! parameter of a block is one if every edge passes it a truth or a constant 0 or 1, and if somebody reads it as a
//! truth, directly or through other parameters: so a condition that a loop carries is no number in each turn.
//!
//! One walk finds the results, with all parameters of i8 taken for truths. Those that are none are taken out after it,
//! and what is made of them. Whoever nobody wants as a truth is only passed to others that nobody wants, so they go
//! together. Few parameters of a block are left, as there are seven predicates. All is linear in the function, but for
//! a sort of what edges pass.

use super::control_flow::{ControlFlow, destinations};
use super::uses::Users;
use crate::constants;
use crate::intrinsics::Lowering;
use crate::intrinsics::resolve::Intrinsics;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{
    BlockArg, Function, Inst, InstructionData, Opcode, Value, ValueDef, types,
};

/// The truths of a function.
#[derive(Default)]
pub struct Truths(EntitySet<Value>);

/// Most parameters of one block (*assumed*): comparisons need predicates too.
const OF_A_BLOCK: usize = 3;

/// What an edge passes to a parameter; no argument where it is no value.
type Passed = (Value, Option<Value>);

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
        let mut parameters: Vec<Value> = Vec::new();
        // Definitions come before their users.
        for &block in flow.reverse_postorder() {
            if Some(block) != entry {
                let first = parameters.len();
                let all = func.dfg.block_params(block).iter().copied();
                parameters.extend(all.filter(|&value| func.dfg.value_type(value) == types::I8));
                self.0.extend(parameters[first..].iter().copied());
            }
            for inst in func.layout.block_insts(block) {
                let truth = self.made_by(func, intrinsics, inst);
                self.0.extend(truth);
            }
        }
        if !parameters.is_empty() {
            self.check_parameters(func, users, &parameters);
        }
    }

    /// Whether a value is one.
    pub fn contains(&self, value: Value) -> bool {
        self.0.contains(value)
    }

    /// The result of an instruction that is a truth, by what is known of its operands. No instruction has two.
    fn made_by(&self, func: &Function, intrinsics: &Intrinsics, inst: Inst) -> Option<Value> {
        let results = func.dfg.inst_results(inst);
        let is_truth = match func.dfg.insts[inst] {
            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => true,
            InstructionData::Binary {
                opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor,
                args: [a, b],
            } => self.contains(a) && (self.contains(b) || constants::integer(func, b) == Some(1)),
            InstructionData::Unary {
                opcode: Opcode::VanyTrue,
                ..
            } => true,
            InstructionData::Call { .. } => (intrinsics.of_call(func, inst))
                .is_some_and(|intrinsic| matches!(intrinsic.lowering, Lowering::Vote(_))),
            // The overflow of arithmetic, whatever type the first result has.
            data if results.len() == 2 => {
                let constraints = data.opcode().constraints();
                let overflows = constraints.num_fixed_results() == 2
                    && constraints.result_type(1, types::I64) == types::I8;
                return overflows.then_some(results[1]);
            }
            _ => false,
        };
        let result = results.first().copied().filter(|_| is_truth)?;
        (func.dfg.value_type(result) == types::I8).then_some(result)
    }

    /// Takes out the parameters that are none.
    fn check_parameters(&mut self, func: &Function, users: &Users, parameters: &[Value]) {
        let mut to = passed(func, self);
        to.sort_unstable();
        let mut from = to.clone();
        from.sort_unstable_by_key(|&(_, argument)| argument);
        let is_passed = |truths: &Self, &(_, argument): &Passed| {
            argument.is_some_and(|value| {
                truths.contains(value) || matches!(constants::integer(func, value), Some(0 | 1))
            })
        };
        let wrong = to.iter().filter(|passed| !is_passed(self, passed));
        let wrong: Vec<Value> = wrong.map(|passed| passed.0).collect();
        self.remove(func, users, &from, wrong);
        self.remove_unwanted(func, users, &to, parameters);
        let (mut of_block, mut crowding) = ((None, 0), Vec::new());
        for &parameter in parameters.iter().filter(|&&value| self.contains(value)) {
            let ValueDef::Param(block, _) = func.dfg.value_def(parameter) else {
                continue;
            };
            of_block = match of_block {
                (Some(last), count) if last == block => (Some(block), count + 1),
                _ => (Some(block), 1),
            };
            if of_block.1 > OF_A_BLOCK {
                crowding.push(parameter);
            }
        }
        if !crowding.is_empty() {
            self.remove(func, users, &from, crowding);
            self.remove_unwanted(func, users, &to, parameters);
        }
    }

    /// Takes values out, and what is made of them and passed them; `from` is in the order of arguments.
    fn remove(&mut self, func: &Function, users: &Users, from: &[Passed], values: Vec<Value>) {
        let mut work = values;
        while let Some(value) = work.pop() {
            if !self.0.remove(value) {
                continue;
            }
            let joined = users
                .of(value)
                .iter()
                .filter_map(|&user| match func.dfg.insts[user] {
                    InstructionData::Binary { .. } => Some(func.dfg.first_result(user)),
                    _ => None,
                });
            work.extend(joined.filter(|&result| self.contains(result)));
            let passed = range(from, |&(_, argument)| argument, Some(value));
            work.extend(passed.iter().map(|&(parameter, _)| parameter));
        }
    }

    /// Takes out the parameters that nobody reads as truths; `to` is in the order of parameters.
    fn remove_unwanted(
        &mut self,
        func: &Function,
        users: &Users,
        to: &[Passed],
        parameters: &[Value],
    ) {
        let mut wanted: EntitySet<Value> = EntitySet::new();
        let is_read = |&value: &Value| self.contains(value) && self.is_read(func, users, value);
        let mut work: Vec<Value> = parameters.iter().copied().filter(is_read).collect();
        while let Some(value) = work.pop() {
            if wanted.insert(value) {
                let arguments = range(to, |&(parameter, _)| parameter, value).iter();
                work.extend(arguments.filter_map(|&(_, argument)| argument));
            }
        }
        for &parameter in parameters.iter().filter(|&&value| !wanted.contains(value)) {
            self.0.remove(parameter);
        }
    }

    /// Whether an instruction reads a parameter as a truth.
    fn is_read(&self, func: &Function, users: &Users, parameter: Value) -> bool {
        users
            .of(parameter)
            .iter()
            .any(|&inst| match func.dfg.insts[inst] {
                InstructionData::Brif { arg, .. } => arg == parameter,
                InstructionData::Ternary {
                    opcode: Opcode::Select | Opcode::SelectSpectreGuard,
                    args,
                } => args[0] == parameter,
                InstructionData::CondTrap { .. } => true,
                InstructionData::Binary { .. } => self.contains(func.dfg.first_result(inst)),
                _ => false,
            })
    }
}

/// The part of a sorted list that has a key.
fn range<K: Ord>(passed: &[Passed], key: impl Fn(&Passed) -> K, wanted: K) -> &[Passed] {
    let start = passed.partition_point(|passed| key(passed) < wanted);
    let rest = &passed[start..];
    &rest[..rest.partition_point(|passed| key(passed) == wanted)]
}

/// What edges pass to the parameters among `truths`.
fn passed(func: &Function, truths: &Truths) -> Vec<Passed> {
    let dfg = &func.dfg;
    let mut found = Vec::new();
    for last in func
        .layout
        .blocks()
        .filter_map(|b| func.layout.last_inst(b))
    {
        let calls = destinations(func, last);
        for call in calls {
            let parameters = dfg.block_params(call.block(&dfg.value_lists));
            let pairs = call.args(&dfg.value_lists).zip(parameters);
            found.extend(
                pairs
                    .filter(|(_, parameter)| truths.contains(**parameter))
                    .map(|(argument, &parameter)| match argument {
                        BlockArg::Value(value) => (parameter, Some(value)),
                        _ => (parameter, None),
                    }),
            );
        }
    }
    found
}
