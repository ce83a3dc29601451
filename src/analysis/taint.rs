//! What depends on atomic reads: the values computed from them, the branches that they decide, and what depends on those.
//!
//! Takes the reads and the blocks to look at; follows values along their users, along edges, and through memory that is the thread's own. A
//! branch that is decided by a tainted value taints the parameters of the blocks on its ways and where they meet.

use super::control_flow::ControlFlow;
use super::graph::PostDominators;
use super::uses::Users;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use std::collections::BTreeSet;

/// Block visits, per block of the function, that following tainted branches may take (*assumed*: generous).
const VISITS_PER_BLOCK: usize = 16;

/// What instructions do to memory.
pub struct Accesses<'a> {
    /// Whether one reads, by an atomic operation, what other threads may write.
    pub observes: &'a dyn Fn(Inst) -> bool,
    /// Whether one adds a constant to what nothing in the function moves the other way: who leaves a cycle by what it gives waits for
    /// nobody.
    pub counts_up: &'a dyn Fn(Inst) -> bool,
    /// Whether a load or store may reach memory that no other thread sees.
    pub may_be_private: &'a dyn Fn(Inst) -> bool,
}

/// Edges of one cycle on which a turn got somewhere, so that they do not count as waiting.
#[derive(Clone, Debug, Default)]
pub(super) struct Exempt {
    /// From and to.
    pub(super) edges: BTreeSet<(Block, Block)>,
}

/// What depends on atomic reads in a component.
pub(super) struct Taint<'a> {
    func: &'a Function,
    flow: &'a ControlFlow,
    post: &'a PostDominators,
    users: &'a Users,
    within: &'a EntitySet<Block>,
    accesses: &'a Accesses<'a>,
    pub(super) exempt: Exempt,
    pub(super) tainted: EntitySet<Value>,
    work: Vec<Value>,
    /// Blocks that a tainted branch may lead to again and again before its ways come together.
    pub(super) polled: EntitySet<Block>,
    /// Blocks on the ways of tainted branches.
    pub(super) decided: EntitySet<Block>,
    /// The ways of a tainted branch do not come together.
    pub(super) open_end: bool,
    /// A tainted value was stored in the thread's own memory: every load from there may give it. What is in memory that others see is
    /// not followed: who waits for it uses atomics.
    pub(super) through_memory: bool,
    pub(super) visits_left: usize,
}

impl<'a> Taint<'a> {
    pub(super) fn new(
        func: &'a Function,
        flow: &'a ControlFlow,
        post: &'a PostDominators,
        users: &'a Users,
        within: &'a EntitySet<Block>,
        accesses: &'a Accesses<'a>,
    ) -> Self {
        Taint {
            func,
            flow,
            post,
            users,
            within,
            accesses,
            exempt: Exempt::default(),
            tainted: EntitySet::new(),
            work: Vec::new(),
            polled: EntitySet::new(),
            decided: EntitySet::new(),
            open_end: false,
            through_memory: false,
            visits_left: flow.reverse_postorder().len() * VISITS_PER_BLOCK,
        }
    }

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

    /// Taints what is loaded from memory that may be the thread's own.
    fn taint_loads(&mut self, members: &[Block]) {
        if std::mem::replace(&mut self.through_memory, true) {
            return;
        }
        for &block in members {
            for inst in self.func.layout.block_insts(block) {
                let loads = self.func.dfg.insts[inst].opcode().can_load();
                if loads && (self.accesses.may_be_private)(inst) {
                    self.results(inst);
                }
            }
        }
    }

    /// Follows what `atomics` give through the component.
    pub(super) fn spread(&mut self, members: &[Block], atomics: &[Inst]) {
        for &inst in atomics {
            self.results(inst);
            // A call may have left it in memory of the thread's own.
            if self.func.dfg.insts[inst].opcode().is_call() {
                self.taint_loads(members);
            }
        }
        while let Some(value) = self.work.pop() {
            for index in 0..self.users.of(value).len() {
                let user = self.users.of(value)[index];
                let home = self.func.layout.inst_block(user);
                if let Some(home) = home.filter(|home| self.within.contains(*home)) {
                    self.read(user, home, value, members);
                }
            }
        }
    }

    /// `user` reads the tainted `value`.
    fn read(&mut self, user: Inst, home: Block, value: Value, members: &[Block]) {
        let dfg = &self.func.dfg;
        let opcode = dfg.insts[user].opcode();
        // A call may store what it is passed.
        let stores = opcode.can_store() && (self.accesses.may_be_private)(user);
        if stores || opcode.is_call() {
            self.taint_loads(members);
        }
        if !opcode.is_branch() {
            self.results(user);
            return;
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
        if dfg.inst_fixed_args(user).contains(&value) {
            self.decide(home, members);
        }
    }

    /// The branch at the end of `home` is tainted. If one of its ways comes back to it before the ways come together, the threads wait there;
    /// what comes together behind it is tainted.
    fn decide(&mut self, home: Block, members: &[Block]) {
        let ways: Vec<Block> = self.ways(home).collect();
        // Of a retry that does not count the other way is taken in the end.
        if ways.len() < 2 {
            return;
        }
        let meeting = (self.flow.order(home))
            .and_then(|home| self.post.immediate(home))
            .map(|meeting| self.flow.reverse_postorder()[meeting]);
        self.open_end |= meeting.is_none();
        let mut seen: EntitySet<Block> = EntitySet::new();
        let mut stack = ways;
        while let Some(block) = stack.pop() {
            if Some(block) == meeting || !self.within.contains(block) || !seen.insert(block) {
                continue;
            }
            if self.visits_left == 0 {
                return;
            }
            self.visits_left -= 1;
            for &param in self.func.dfg.block_params(block) {
                self.value(param);
            }
            // What is stored on one of the ways only says which one was taken.
            let stores = |inst: Inst| {
                let opcode = self.func.dfg.insts[inst].opcode();
                (opcode.can_store() && (self.accesses.may_be_private)(inst)) || opcode.is_call()
            };
            if !self.through_memory && self.func.layout.block_insts(block).any(stores) {
                self.taint_loads(members);
            }
            stack.extend(self.ways(block));
        }
        if seen.contains(home) {
            self.polled.extend(seen.iter());
        }
        self.decided.extend(seen.iter());
        if let Some(meeting) = meeting.filter(|meeting| self.within.contains(*meeting)) {
            for &param in self.func.dfg.block_params(meeting) {
                self.value(param);
            }
        }
    }

    /// The successors of a block but for retries that do not count.
    fn ways(&self, block: Block) -> impl Iterator<Item = Block> + use<'_, 'a> {
        (self.flow.successors(block)).filter(move |to| !self.exempt.edges.contains(&(block, *to)))
    }
}
