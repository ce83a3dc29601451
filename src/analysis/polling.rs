//! Cycles that threads leave only when another thread has written what they read by an atomic operation.
//!
//! Strongly connected components first. In each the atomic reads taint what is computed from them; a tainted branch taints the parameters of the
//! blocks on its ways and where they meet. If one of its ways comes back to a tainted branch before it comes to where the ways meet (the
//! branch's immediate post-dominator), a thread may go round there for as long as memory says so: these blocks poll. A branch whose ways
//! always meet before it is reached again only chooses what a turn does.
//!
//! Edges on which a turn surely got somewhere do not count ([`Exempt`]), and additions of constants are no reads in this sense where nothing
//! moves the place back: a loop that counts up in memory comes to its end by itself.

use super::components::components;
use super::control_flow::ControlFlow;
use super::graph::{Graph, PostDominators};
use super::taint::{Accesses, Exempt, Taint};
use super::uses::Users;
use crate::constants::integer;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef};

/// A cycle that polls.
#[derive(Clone, Debug)]
pub struct Cycle {
    /// Its blocks.
    pub blocks: Vec<Block>,
    /// The atomic reads, and calls, in it.
    pub atomics: Vec<Inst>,
}

/// All cycles of `func` that poll.
pub fn polled_cycles(func: &Function, flow: &ControlFlow, accesses: &Accesses<'_>) -> Vec<Cycle> {
    let graph = graph_of(flow);
    let mut finder = Finder {
        func,
        flow,
        post: &post_dominators(&graph),
        graph: &graph,
        accesses,
        users: None,
        found: Vec::new(),
    };
    finder.look();
    finder.found
}

/// The graph of the blocks, by their order.
fn graph_of(flow: &ControlFlow) -> Graph {
    let blocks = flow.reverse_postorder();
    let number = |block| flow.order(block).expect("a reachable block");
    let edges = blocks.iter().flat_map(|&block| {
        let targets = flow.successors(block);
        targets.map(move |target| (number(block), number(target)))
    });
    Graph::from_edges(blocks.len(), edges)
}

/// Post-dominators over all paths: unlike those of [`ControlFlow`], which leaves out where lanes only end.
fn post_dominators(graph: &Graph) -> PostDominators {
    let exits = (0..graph.len()).filter(|&node| graph.successors(node).len() == 0);
    PostDominators::new(graph, exits)
}

struct Finder<'a> {
    func: &'a Function,
    flow: &'a ControlFlow,
    graph: &'a Graph,
    post: &'a PostDominators,
    accesses: &'a Accesses<'a>,
    users: Option<Users>,
    found: Vec<Cycle>,
}

impl Finder<'_> {
    /// Finds the polling cycles of the function.
    fn look(&mut self) {
        for members in self.cyclic_components() {
            let atomics: Vec<Inst> = members
                .iter()
                .flat_map(|&block| self.func.layout.block_insts(block))
                .filter(|&inst| (self.accesses.observes)(inst) && !(self.accesses.counts_up)(inst))
                .collect();
            if atomics.is_empty() {
                continue;
            }
            let mut within: EntitySet<Block> = EntitySet::new();
            within.extend(members.iter().copied());
            let exempt = self.exempt(&within, &atomics);
            let func = self.func;
            let users = self.users.get_or_insert_with(|| Users::compute(func));
            let mut taint = Taint::new(func, self.flow, self.post, users, &within, self.accesses);
            taint.exempt = exempt;
            taint.spread(&members, &atomics);
            let blocks: Vec<Block> = match taint.visits_left {
                0 => members,
                _ => (members.into_iter())
                    .filter(|block| taint.polled.contains(*block))
                    .collect(),
            };
            if !blocks.is_empty() {
                self.found.push(Cycle { blocks, atomics });
            }
        }
    }

    /// The strongly connected components of the function that have a cycle.
    fn cyclic_components(&self) -> Vec<Vec<Block>> {
        let blocks = self.flow.reverse_postorder();
        let mut found: Vec<Vec<Block>> = Vec::new();
        for component in components(self.graph) {
            let cyclic = match component[..] {
                [only] => self.graph.successors(only).any(|target| target == only),
                _ => true,
            };
            if cyclic {
                found.push(component.into_iter().map(|index| blocks[index]).collect());
            }
        }
        found
    }

    /// The edges of a component on which a turn got somewhere.
    fn exempt(&self, within: &EntitySet<Block>, atomics: &[Inst]) -> Exempt {
        let mut found = Exempt::default();
        for &inst in atomics {
            if self.func.dfg.insts[inst].opcode() == Opcode::AtomicCas
                && let Some(edge) = self.failure_edge(inst)
                && within.contains(edge.0)
                && within.contains(edge.1)
                && self.reads_anew(inst, edge, within)
            {
                found.edges.insert(edge);
            }
        }
        found
    }

    /// The edge on which lanes leave whose compare-and-swap failed: out of a `brif` on whether its result is what it expected.
    fn failure_edge(&self, cas: Inst) -> Option<(Block, Block)> {
        let dfg = &self.func.dfg;
        let [_, expected, _] = *dfg.inst_args(cas) else {
            return None;
        };
        let result = dfg.first_result(cas);
        let home = self.func.layout.inst_block(cas)?;
        // The branch may stand behind blocks that only pass on.
        let mut block = home;
        let branch = loop {
            let last = self.func.layout.last_inst(block)?;
            match dfg.insts[last] {
                InstructionData::Brif { .. } => break last,
                InstructionData::Jump { destination, .. } => {
                    let next = destination.block(&dfg.value_lists);
                    if self.flow.predecessors(next).count() != 1 || next == home {
                        return None;
                    }
                    block = next;
                }
                _ => return None,
            }
        };
        let InstructionData::Brif { arg, blocks, .. } = dfg.insts[branch] else {
            return None;
        };
        let equal = self.compares(arg, result, expected)?;
        let [then, otherwise] = blocks.map(|call| call.block(&dfg.value_lists));
        let failure = if equal { otherwise } else { then };
        (then != otherwise).then_some((block, failure))
    }

    /// Whether `condition` is true when the two are equal, or when they differ; none if it says neither.
    fn compares(&self, condition: Value, result: Value, expected: Value) -> Option<bool> {
        let dfg = &self.func.dfg;
        let ValueDef::Result(inst, _) = dfg.value_def(condition) else {
            return None;
        };
        let pair =
            |a: Value, b: Value| (a == result && b == expected) || (a == expected && b == result);
        match dfg.insts[inst] {
            InstructionData::IntCompare { cond, args, .. } if pair(args[0], args[1]) => {
                match cond {
                    IntCC::Equal => Some(true),
                    IntCC::NotEqual => Some(false),
                    _ => None,
                }
            }
            InstructionData::Binary {
                opcode: Opcode::Bxor | Opcode::Isub,
                args,
            } if pair(args[0], args[1]) => Some(false),
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                arg,
            } => self.compares(arg, result, expected),
            _ => None,
        }
    }

    /// Whether every turn that comes back over the failure edge of `cas` expects what was read from its place since.
    fn reads_anew(&self, cas: Inst, edge: (Block, Block), within: &EntitySet<Block>) -> bool {
        let dfg = &self.func.dfg;
        let [place, expected, _] = *dfg.inst_args(cas) else {
            return false;
        };
        let reading = |value: Value| match dfg.value_def(value) {
            ValueDef::Result(inst, _) => {
                let home = self.func.layout.inst_block(inst);
                let from = read_from(self.func, inst);
                home.is_some_and(|home| within.contains(home))
                    && from.is_some_and(|from| is_same(self.func, from, place, SAME_DEPTH))
            }
            _ => false,
        };
        let fresh = match dfg.value_def(expected) {
            ValueDef::Result(inst, _) if reading(expected) => self.func.layout.inst_block(inst),
            ValueDef::Param(block, index) if within.contains(block) => {
                let passed = self.flow.cfg().pred_iter(block).all(|pred| {
                    !within.contains(pred.block)
                        || dfg.insts[pred.inst]
                            .branch_destination(&dfg.jump_tables, &dfg.exception_tables)
                            .iter()
                            .filter(|call| call.block(&dfg.value_lists) == block)
                            .all(|call| {
                                let argument = call.args(&dfg.value_lists).nth(index);
                                argument
                                    .and_then(|argument| argument.as_value())
                                    .is_some_and(reading)
                            })
                });
                passed.then_some(block)
            }
            _ => None,
        };
        let Some(fresh) = fresh else {
            return false;
        };
        // Without the block that reads anew nothing leads from the failure back to the swap.
        let (from, to) = edge;
        let mut seen: EntitySet<Block> = EntitySet::new();
        let mut stack = vec![to];
        while let Some(block) = stack.pop() {
            if block == fresh || !within.contains(block) || !seen.insert(block) {
                continue;
            }
            if block == from {
                return false;
            }
            stack.extend(self.flow.successors(block));
        }
        true
    }
}

/// What depends in a device function on what `accesses` observe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// What it returns, or stores where its caller may look.
    pub result: bool,
    /// Whether, or with which arguments, it calls itself.
    pub recursion: bool,
}

/// Finds out what depends on observations in `func`; `recurs` says which calls lead back to it.
pub fn observed(
    func: &Function,
    flow: &ControlFlow,
    accesses: &Accesses<'_>,
    recurs: &dyn Fn(Inst) -> bool,
) -> Observed {
    let members = flow.reverse_postorder();
    let insts = || {
        let blocks = members.iter();
        blocks.flat_map(|&block| func.layout.block_insts(block))
    };
    let atomics: Vec<Inst> = insts().filter(|&inst| (accesses.observes)(inst)).collect();
    if atomics.is_empty() {
        return Observed::default();
    }
    let mut within: EntitySet<Block> = EntitySet::new();
    within.extend(members.iter().copied());
    let users = Users::compute(func);
    let post = post_dominators(&graph_of(flow));
    let mut taint = Taint::new(func, flow, &post, &users, &within, accesses);
    taint.spread(members, &atomics);
    let unknown = taint.through_memory || taint.visits_left == 0;
    let tainted = |inst: Inst| {
        let mut args = func.dfg.inst_args(inst).iter();
        args.any(|value| taint.tainted.contains(*value))
    };
    let returned = |inst: Inst| func.dfg.insts[inst].opcode().is_return() && tainted(inst);
    let again = |inst: Inst| {
        let home = func.layout.inst_block(inst);
        recurs(inst)
            && (unknown || tainted(inst) || home.is_some_and(|home| taint.decided.contains(home)))
    };
    Observed {
        result: unknown || taint.open_end || insts().any(returned),
        recursion: insts().any(again),
    }
}

/// How many operations deep two addresses are compared (*assumed*: the mid-end computes an address anew in each block that uses it).
const SAME_DEPTH: u32 = 6;

/// The address that `inst` reads, without an offset.
fn read_from(func: &Function, inst: Inst) -> Option<Value> {
    match func.dfg.insts[inst] {
        InstructionData::Load { arg, offset, .. } if i32::from(offset) == 0 => Some(arg),
        InstructionData::LoadNoOffset { arg, .. } => Some(arg),
        InstructionData::AtomicRmw { args, .. } => Some(args[0]),
        InstructionData::AtomicCas { args, .. } => Some(args[0]),
        _ => None,
    }
}

/// Whether two values are computed in the same way.
fn is_same(func: &Function, a: Value, b: Value, depth: u32) -> bool {
    if a == b {
        return true;
    }
    let dfg = &func.dfg;
    let (ValueDef::Result(a, _), ValueDef::Result(b, _)) = (dfg.value_def(a), dfg.value_def(b))
    else {
        return false;
    };
    if depth == 0 {
        return false;
    }
    match (dfg.insts[a], dfg.insts[b]) {
        (
            InstructionData::UnaryImm { opcode: a, imm: x },
            InstructionData::UnaryImm { opcode: b, imm: y },
        ) => a == b && x == y,
        (
            InstructionData::Unary { opcode: a, arg: x },
            InstructionData::Unary { opcode: b, arg: y },
        ) => a == b && is_same(func, x, y, depth - 1),
        (
            InstructionData::Binary { opcode: a, args: x },
            InstructionData::Binary { opcode: b, args: y },
        ) => a == b && (0..2).all(|i| is_same(func, x[i], y[i], depth - 1)),
        (
            InstructionData::UnaryGlobalValue {
                opcode: a,
                global_value: x,
            },
            InstructionData::UnaryGlobalValue {
                opcode: b,
                global_value: y,
            },
        ) => a == b && x == y,
        _ => false,
    }
}

/// In which direction `inst` moves what it reads: 1 or -1 for an atomic addition or subtraction of a constant that is not zero.
pub fn counting(func: &Function, inst: Inst) -> Option<i64> {
    use cranelift_codegen::ir::AtomicRmwOp::{Add, Sub};
    let InstructionData::AtomicRmw { op, args, .. } = func.dfg.insts[inst] else {
        return None;
    };
    let amount = integer(func, args[1])?.signum();
    let direction = match op {
        Add => amount,
        Sub => -amount,
        _ => 0,
    };
    (direction != 0).then_some(direction)
}

#[cfg(test)]
#[path = "polling_tests.rs"]
mod tests;
