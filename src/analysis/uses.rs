//! Who uses a value, and how often it counts.
//!
//! [`Users`] answers "which instructions read this value", which CLIF does not record. [`UseCounts`] answers
//! Cranelift's lowering question: is a value used once, so that its instruction may be folded into the user, or more
//! often? Only uses that come from an effect count, directly or through other values; an instruction that is used
//! several times makes everything below it used several times, since folding it would duplicate them.

use super::control_flow::{ControlFlow, destinations};
use crate::intrinsics::resolve::Intrinsics;
use cranelift_codegen::entity::packed_option::PackedOption;
use cranelift_codegen::entity::{EntityRef, SecondaryMap};
use cranelift_codegen::ir::{Function, Inst, InstructionData, Value};

/// The instruction that computes each value, and those that read it, block arguments included.
#[derive(Default)]
pub struct Users {
    /// By value, what computes it; none for parameters.
    definitions: Vec<PackedOption<Inst>>,
    /// By value, where its users start in `insts`; the last entry is where those of the last value end.
    starts: Vec<u32>,
    insts: Vec<Inst>,
    /// Every use, as they are found.
    found: Vec<(Value, Inst)>,
}

impl Users {
    /// Collects the users of all values in the layout. Aliases must be resolved.
    pub fn compute(func: &Function) -> Self {
        let mut users = Self::default();
        users.recompute(func);
        users
    }

    /// The same in the memory of the function before.
    pub fn recompute(&mut self, func: &Function) {
        // The users of a value are counted two entries behind its own. Summed up, the entry behind its own says where
        // they start, and when all have been put in their places, where they end.
        self.starts.clear();
        self.starts.resize(func.dfg.num_values() + 2, 0);
        self.found.clear();
        self.definitions.clear();
        (self.definitions).resize(func.dfg.num_values(), None.into());
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                for result in func.dfg.inst_results(inst) {
                    self.definitions[result.index()] = inst.into();
                }
                for_each_operand(func, inst, |value| {
                    self.starts[value.index() + 2] += 1;
                    self.found.push((value, inst));
                });
            }
        }
        let mut total = 0;
        for start in &mut self.starts {
            total += *start;
            *start = total;
        }
        self.insts.clear();
        self.insts.resize(self.found.len(), Inst::new(0));
        for &(value, inst) in &self.found {
            let next = &mut self.starts[value.index() + 1];
            self.insts[*next as usize] = inst;
            *next += 1;
        }
        self.starts.pop();
    }

    /// The instruction that computes `value`; none for a parameter.
    pub fn definition(&self, value: Value) -> Option<Inst> {
        self.definitions[value.index()].expand()
    }

    /// The instructions that read `value`, in layout order; an instruction that reads it twice appears twice. None of a
    /// value that was made later.
    pub fn of(&self, value: Value) -> &[Inst] {
        match self.starts.get(value.index()..) {
            Some(&[start, end, ..]) => &self.insts[start as usize..end as usize],
            _ => &[],
        }
    }
}

/// Hands every value that `inst` reads or passes on to `visit`: what `DataFlowGraph::inst_values` iterates over, at
/// half its cost where nothing is passed on (*measured*).
pub fn for_each_operand(func: &Function, inst: Inst, visit: impl FnMut(Value)) {
    let dfg = &func.dfg;
    let data = &dfg.insts[inst];
    if destinations(func, inst).is_empty() {
        let operands = data.arguments(&dfg.value_lists);
        operands.iter().copied().for_each(visit);
    } else {
        dfg.inst_values(inst).for_each(visit);
    }
}

/// How often a value is used, counted from the effects of the function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum UseCount {
    /// No effect depends on it.
    #[default]
    Unused,
    /// One instruction uses it, once, and that one is itself used at most once or has an effect.
    Once,
    /// More than that.
    Multiple,
}

impl UseCount {
    /// The uses of both.
    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unused, count) | (count, Self::Unused) => count,
            _ => Self::Multiple,
        }
    }
}

/// The use count of every value.
pub struct UseCounts(SecondaryMap<Value, UseCount>);

impl UseCounts {
    /// Counts the uses in `func`. Aliases must be resolved. Calls of pure intrinsics have no effect.
    pub fn compute(func: &Function, flow: &ControlFlow, intrinsics: &Intrinsics) -> Self {
        let mut counts: SecondaryMap<Value, UseCount> = SecondaryMap::new();
        counts.resize(func.dfg.num_values());
        // Backwards, so that all uses of a value are known when its own instruction passes them on.
        for block in flow.postorder() {
            for inst in func.layout.block_insts(block).rev() {
                let passed = if has_effect(func, inst, intrinsics) {
                    UseCount::Once
                } else {
                    let results = func.dfg.inst_results(inst).iter();
                    results.fold(UseCount::Unused, |sum, &result| sum.plus(counts[result]))
                };
                if passed != UseCount::Unused {
                    for_each_operand(func, inst, |value| {
                        counts[value] = counts[value].plus(passed);
                    });
                }
            }
        }
        Self(counts)
    }

    /// How often `value` is used.
    pub fn of(&self, value: Value) -> UseCount {
        self.0[value]
    }
}

/// True if `inst` must stay although nothing uses its results: it writes, branches, traps, calls, or reads memory that
/// may not be mapped.
pub fn has_effect(func: &Function, inst: Inst, intrinsics: &Intrinsics) -> bool {
    if let Some(intrinsic) = intrinsics.of_call(func, inst) {
        return !intrinsic.is_pure();
    }
    let data = &func.dfg.insts[inst];
    let opcode = data.opcode();
    let trapping_load = opcode.can_load()
        && match data {
            InstructionData::Load { flags, .. } => !func.dfg.mem_flags[*flags].notrap(),
            _ => true,
        };
    trapping_load
        || opcode.is_call()
        || opcode.is_branch()
        || opcode.is_terminator()
        || opcode.can_trap()
        || opcode.other_side_effects()
        || opcode.can_store()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::calls::Callees;
    use crate::analysis::testing::{Rng, random_function};
    use hashbrown::HashMap;

    #[test]
    fn users_agree_with_a_search() {
        for seed in 0..100 {
            let func = random_function(&mut Rng::new(seed), 8);
            let users = Users::compute(&func);
            let mut expected: HashMap<Value, Vec<Inst>> = HashMap::new();
            for block in func.layout.blocks() {
                for inst in func.layout.block_insts(block) {
                    for value in func.dfg.inst_values(inst) {
                        expected.entry(value).or_default().push(inst);
                    }
                }
            }
            for value in func.dfg.values() {
                assert_eq!(
                    users.of(value),
                    expected.remove(&value).unwrap_or_default(),
                    "seed {seed}: {value}\n{func}"
                );
                assert_eq!(users.definition(value), func.dfg.value_def(value).inst());
            }
        }
    }

    #[test]
    fn counts_come_from_effects_only() {
        let func = cranelift_reader::parse_functions(
            "function %f(i32, i64) {
            block0(v0: i32, v1: i64):
                v2 = iadd v0, v0
                v3 = imul v2, v2
                v4 = bnot v0
                v5 = iadd v3, v4
                v6 = ineg v5
                store v5, v1
                return
            }",
        )
        .unwrap()
        .remove(0);
        let flow = ControlFlow::compute(&func, false, &Callees::default());
        let counts = UseCounts::compute(&func, &flow, &Intrinsics::default());
        let of = |number| counts.of(Value::from_u32(number));
        assert_eq!(
            [of(6), of(5), of(4), of(3)],
            [
                UseCount::Unused,
                UseCount::Once,
                UseCount::Once,
                UseCount::Once
            ]
        );
        assert_eq!([of(2), of(0)], [UseCount::Multiple, UseCount::Multiple]);
    }
}
