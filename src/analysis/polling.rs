//! Cycles that threads leave only when another thread has written what they read by an atomic operation.
//!
//! Strongly connected components first. From each the edges are taken away on which a turn surely got somewhere
//! ([`Exempt`]); what remains cyclic is looked at again. A remaining cycle polls if its exits depend on an atomic read: the reads taint what is
//! computed from them, a tainted branch taints the parameters of the blocks where its ways meet and every exit on the ways. An addition
//! of a constant is no read in this sense: a loop that counts up in memory comes to its end by itself.

use super::components::components;
use super::control_flow::ControlFlow;
use super::graph::Graph;
use super::uses::Users;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
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

/// Block visits, per block of a cycle, that following its tainted branches may take (*assumed*: generous); beyond them the cycle polls.
const VISITS_PER_BLOCK: usize = 16;

/// What instructions do to memory.
pub struct Accesses<'a> {
    /// Whether one reads, by an atomic operation, what other threads may write.
    pub observes: &'a dyn Fn(Inst) -> bool,
    /// Whether a load or store may reach memory that no other thread sees.
    pub may_be_private: &'a dyn Fn(Inst) -> bool,
}

/// All cycles of `func` that poll.
pub fn polled_cycles(func: &Function, flow: &ControlFlow, accesses: &Accesses<'_>) -> Vec<Cycle> {
    let mut finder = Finder {
        func,
        flow,
        accesses,
        users: None,
        found: Vec::new(),
    };
    let all: Vec<Block> = flow.reverse_postorder().to_vec();
    finder.look(&all, &Exempt::default(), 0);
    finder.found
}

/// Edges of one cycle on which a turn got somewhere, so that they do not count as waiting.
#[derive(Clone, Debug, Default)]
struct Exempt {
    /// From and to.
    edges: Vec<(Block, Block)>,
}

/// How often components are taken apart again (*assumed*: one for each level of nesting of retry loops).
const LEVELS: usize = 8;

struct Finder<'a> {
    func: &'a Function,
    flow: &'a ControlFlow,
    accesses: &'a Accesses<'a>,
    users: Option<Users>,
    found: Vec<Cycle>,
}

impl Finder<'_> {
    /// Finds the polling cycles among `blocks` without the exempt edges.
    fn look(&mut self, blocks: &[Block], exempt: &Exempt, level: usize) {
        for members in self.cyclic_components(blocks, exempt) {
            let atomics: Vec<Inst> = members
                .iter()
                .flat_map(|&block| self.func.layout.block_insts(block))
                .filter(|&inst| (self.accesses.observes)(inst) && !adds_constant(self.func, inst))
                .collect();
            if atomics.is_empty() {
                continue;
            }
            let mut within: EntitySet<Block> = EntitySet::new();
            within.extend(members.iter().copied());
            let more = self.exempt(&within, &atomics, exempt);
            if more.edges.len() > exempt.edges.len() && level < LEVELS {
                self.look(&members, &more, level + 1);
            } else if self.exit_depends(&members, &within, &atomics, exempt) {
                self.found.push(Cycle {
                    blocks: members,
                    atomics,
                });
            }
        }
    }

    /// The strongly connected components among `blocks` that have a cycle, without the exempt edges.
    fn cyclic_components(&self, blocks: &[Block], exempt: &Exempt) -> Vec<Vec<Block>> {
        let mut number: SecondaryMap<Block, Option<u32>> = SecondaryMap::new();
        for (index, &block) in blocks.iter().enumerate() {
            number[block] = Some(index as u32);
        }
        let mut graph = Graph::new(blocks.len());
        for (from, &block) in blocks.iter().enumerate() {
            for target in self.flow.successors(block) {
                if let Some(to) = number[target]
                    && !exempt.edges.contains(&(block, target))
                {
                    graph.add_edge(from, to as usize);
                }
            }
        }
        let mut found: Vec<Vec<Block>> = Vec::new();
        for component in components(&graph) {
            let cyclic = match component[..] {
                [only] => graph.successors(only).any(|target| target == only),
                _ => true,
            };
            if cyclic {
                found.push(component.into_iter().map(|index| blocks[index]).collect());
            }
        }
        found
    }

    /// What of the cycle `members` is exempt, with what is already.
    fn exempt(&self, within: &EntitySet<Block>, atomics: &[Inst], known: &Exempt) -> Exempt {
        let mut found = known.clone();
        for &inst in atomics {
            if self.func.dfg.insts[inst].opcode() == Opcode::AtomicCas
                && let Some(edge) = self.failure_edge(inst)
                && within.contains(edge.0)
                && within.contains(edge.1)
                && !found.edges.contains(&edge)
                && self.reads_anew(inst, edge, within)
            {
                found.edges.push(edge);
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

    /// Whether every turn that comes back over the failure edge of `cas` expects a value that was read since.
    fn reads_anew(&self, cas: Inst, edge: (Block, Block), within: &EntitySet<Block>) -> bool {
        let dfg = &self.func.dfg;
        let expected = dfg.inst_args(cas)[1];
        let reading = |value: Value| match dfg.value_def(value) {
            ValueDef::Result(inst, _) => {
                let home = self.func.layout.inst_block(inst);
                dfg.insts[inst].opcode().can_load()
                    && home.is_some_and(|home| within.contains(home))
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

    /// Whether an exit of the cycle depends on what `atomics` gave.
    fn exit_depends(
        &mut self,
        members: &[Block],
        within: &EntitySet<Block>,
        atomics: &[Inst],
        exempt: &Exempt,
    ) -> bool {
        let func = self.func;
        let users = self.users.get_or_insert_with(|| Users::compute(func));
        let mut taint = Taint {
            func,
            flow: self.flow,
            users,
            within,
            exempt,
            accesses: self.accesses,
            tainted: EntitySet::new(),
            work: Vec::new(),
            through_memory: false,
            visits_left: members.len() * VISITS_PER_BLOCK,
        };
        taint.begin(members, atomics);
        taint.spread(members)
    }
}

/// Whether what `func` returns, or stores where its caller may look, depends on what `accesses` observe.
pub fn returns_observed(func: &Function, flow: &ControlFlow, accesses: &Accesses<'_>) -> bool {
    let members = flow.reverse_postorder();
    let atomics: Vec<Inst> = members
        .iter()
        .flat_map(|&block| func.layout.block_insts(block))
        .filter(|&inst| (accesses.observes)(inst) && !adds_constant(func, inst))
        .collect();
    if atomics.is_empty() {
        return false;
    }
    let mut within: EntitySet<Block> = EntitySet::new();
    within.extend(members.iter().copied());
    let mut taint = Taint {
        func,
        flow,
        users: &Users::compute(func),
        within: &within,
        exempt: &Exempt::default(),
        accesses,
        tainted: EntitySet::new(),
        work: Vec::new(),
        through_memory: false,
        visits_left: members.len() * VISITS_PER_BLOCK,
    };
    taint.begin(members, &atomics);
    if taint.spread(members) || taint.through_memory {
        return true;
    }
    let returned = |&block: &Block| {
        let last = func.layout.last_inst(block)?;
        let returns = func.dfg.insts[last].opcode().is_return();
        returns.then(|| func.dfg.inst_args(last))
    };
    (members.iter().filter_map(returned).flatten()).any(|value| taint.tainted.contains(*value))
}

/// Whether `inst` adds or subtracts a constant that is not zero: who leaves a cycle by what it gives waits for nobody.
fn adds_constant(func: &Function, inst: Inst) -> bool {
    use cranelift_codegen::ir::AtomicRmwOp::{Add, Sub};
    let InstructionData::AtomicRmw { op, args, .. } = func.dfg.insts[inst] else {
        return false;
    };
    let ValueDef::Result(operand, _) = func.dfg.value_def(args[1]) else {
        return false;
    };
    matches!(op, Add | Sub)
        && matches!(func.dfg.insts[operand], InstructionData::UnaryImm { imm, .. } if imm.bits() != 0)
}

/// What depends on atomic reads in a cycle.
struct Taint<'a> {
    func: &'a Function,
    flow: &'a ControlFlow,
    users: &'a Users,
    within: &'a EntitySet<Block>,
    exempt: &'a Exempt,
    accesses: &'a Accesses<'a>,
    tainted: EntitySet<Value>,
    work: Vec<Value>,
    /// A tainted value was stored in the thread's own memory: every load from there may give it. What is in memory that others see is
    /// not followed: who waits for it uses atomics.
    through_memory: bool,
    visits_left: usize,
}

impl Taint<'_> {
    fn value(&mut self, value: Value) {
        if self.tainted.insert(value) {
            self.work.push(value);
        }
    }

    fn results(&mut self, inst: Inst) {
        for &result in self.func.dfg.inst_results(inst) {
            self.value(result);
        }
    }

    /// Taints what `atomics` give. A call may have left it in memory of the thread's own.
    fn begin(&mut self, members: &[Block], atomics: &[Inst]) {
        for &inst in atomics {
            self.results(inst);
            if self.func.dfg.insts[inst].opcode().is_call() {
                self.taint_loads(members);
            }
        }
    }

    /// Taints what is loaded from memory that may be the thread's own.
    fn taint_loads(&mut self, members: &[Block]) {
        if std::mem::replace(&mut self.through_memory, true) {
            return;
        }
        for &block in members {
            for inst in self.func.layout.block_insts(block) {
                let loads = self.func.dfg.insts[inst].opcode() == Opcode::Load;
                if loads && (self.accesses.may_be_private)(inst) {
                    self.results(inst);
                }
            }
        }
    }

    /// Follows the taint through the cycle; true if it reaches an exit.
    fn spread(&mut self, members: &[Block]) -> bool {
        while let Some(value) = self.work.pop() {
            for index in 0..self.users.of(value).len() {
                let user = self.users.of(value)[index];
                let home = self.func.layout.inst_block(user);
                let Some(home) = home.filter(|home| self.within.contains(*home)) else {
                    continue;
                };
                if self.reaches_exit(user, home, value, members) {
                    return true;
                }
            }
        }
        false
    }

    /// `user` reads the tainted `value`.
    fn reaches_exit(&mut self, user: Inst, home: Block, value: Value, members: &[Block]) -> bool {
        let dfg = &self.func.dfg;
        let opcode = dfg.insts[user].opcode();
        if opcode == Opcode::Store && (self.accesses.may_be_private)(user) {
            self.taint_loads(members);
        }
        if !opcode.is_branch() {
            self.results(user);
            return false;
        }
        let calls = dfg.insts[user].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
        for call in calls {
            let block = call.block(&dfg.value_lists);
            if !self.within.contains(block) {
                continue;
            }
            let params: Vec<Value> = call
                .args(&dfg.value_lists)
                .zip(dfg.block_params(block))
                .filter(|(argument, _)| argument.as_value() == Some(value))
                .map(|(_, param)| *param)
                .collect();
            params.into_iter().for_each(|param| self.value(param));
        }
        dfg.inst_fixed_args(user).contains(&value) && self.decides_exit(home)
    }

    /// The branch at the end of `home` is tainted: whether it decides over an exit; taints what meets behind it.
    fn decides_exit(&mut self, home: Block) -> bool {
        let kept = |flow: &ControlFlow, exempt: &Exempt, from: Block| -> Vec<Block> {
            flow.successors(from)
                .filter(|to| !exempt.edges.contains(&(from, *to)))
                .collect()
        };
        let ways = kept(self.flow, self.exempt, home);
        let exempted = ways.len() < self.flow.successors(home).count();
        if ways.len() < 2 {
            // One way is a retry that does not count: the other one is taken in the end.
            return false;
        }
        if ways.iter().any(|way| !self.within.contains(*way)) && !exempted {
            return true;
        }
        let Some(meeting) = self
            .flow
            .immediate_post_dominator(home)
            .filter(|meeting| self.within.contains(*meeting))
        else {
            return true;
        };
        let mut seen: EntitySet<Block> = EntitySet::new();
        let mut stack = ways;
        while let Some(block) = stack.pop() {
            if block == meeting || !seen.insert(block) {
                continue;
            }
            if self.visits_left == 0 || !self.within.contains(block) {
                return true;
            }
            self.visits_left -= 1;
            for &param in self.func.dfg.block_params(block) {
                self.value(param);
            }
            stack.extend(self.flow.successors(block));
        }
        for &param in self.func.dfg.block_params(meeting) {
            self.value(param);
        }
        false
    }
}
