//! What depends on atomic reads: the values computed from them, the branches that they decide, and what depends on
//! those.
//!
//! Takes the reads and the blocks to look at; follows values along their users, along edges, and through memory. A
//! branch that is decided by a tainted value taints the parameters of the blocks on its ways and where they meet,
//! what is stored on its ways, and what operations on the active lanes give there.
//!
//! Memory is followed by kinds ([`Places`]), not by objects: two parameters may point to one buffer, and to follow
//! too much costs only that lanes meet later.

use super::control_flow::{ControlFlow, destinations};
use super::graph::PostDominators;
use super::uses::Users;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use std::cell::Cell;
use std::collections::BTreeSet;

/// Block visits, per block of the function, that following tainted branches may take (*assumed*: generous).
const VISITS_PER_BLOCK: usize = 32;

/// Kinds of memory in which a write and a read may meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places(u8);

impl Places {
    /// None.
    pub const NONE: Places = Places(0);
    /// The thread's own memory.
    pub const OWN: Places = Places(1);
    /// Shared memory of the block.
    pub const SHARED: Places = Places(2);
    /// Global memory.
    pub const GLOBAL: Places = Places(4);
    /// Any memory.
    pub const ALL: Places = Places(7);

    /// All kinds of both.
    #[must_use]
    pub const fn or(self, other: Places) -> Places {
        Places(self.0 | other.0)
    }

    /// Whether both have a kind in common.
    pub const fn meet(self, other: Places) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether all kinds of `other` are among these.
    const fn hold(self, other: Places) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What instructions do to memory.
pub trait Accesses {
    /// Whether one reads, by an atomic operation, what other threads may write.
    fn observes(&self, inst: Inst) -> bool;
    /// Where one that observes may have left what it read, beside its results.
    fn leaves(&self, inst: Inst) -> Places;
    /// Whether one adds a constant to what nothing in the function moves the other way.
    fn counts_up(&self, inst: Inst) -> bool;
    /// Whether one may change what `on`, an atomic operation, works on.
    fn overwrites(&self, inst: Inst, on: Inst) -> bool;
    /// Where one may write; calls, too.
    fn writes(&self, inst: Inst) -> Places;
    /// From where what one gives may come; calls, too.
    fn reads(&self, inst: Inst) -> Places;
    /// Whether one gives something that depends on which lanes are active.
    fn convergent(&self, inst: Inst) -> bool;
}

/// What depends on atomic reads in a component.
pub(super) struct Taint<'a> {
    func: &'a Function,
    flow: &'a ControlFlow,
    post: &'a PostDominators,
    users: &'a Users,
    within: &'a EntitySet<Block>,
    accesses: &'a dyn Accesses,
    /// Edges on which a turn got somewhere, from and to: who goes round over one of them does not wait.
    pub(super) advancing: BTreeSet<(Block, Block)>,
    /// The block through which all cycles lead that are looked for; without it they are all cycles of the blocks.
    pub(super) header: Option<Block>,
    pub(super) tainted: EntitySet<Value>,
    work: Vec<Value>,
    /// Blocks that a tainted branch may lead to again and again before its ways come together.
    pub(super) polled: EntitySet<Block>,
    /// Blocks on the ways of tainted branches.
    pub(super) decided: EntitySet<Block>,
    /// The ways of a tainted branch do not come together.
    pub(super) open_end: bool,
    /// Where tainted values were stored: every load from there may give them.
    pub(super) stored: Places,
    visits_left: Cell<usize>,
}

impl<'a> Taint<'a> {
    pub(super) fn new(
        func: &'a Function,
        flow: &'a ControlFlow,
        post: &'a PostDominators,
        users: &'a Users,
        within: &'a EntitySet<Block>,
        accesses: &'a dyn Accesses,
    ) -> Self {
        Taint {
            func,
            flow,
            post,
            users,
            within,
            accesses,
            advancing: BTreeSet::new(),
            header: None,
            tainted: EntitySet::new(),
            work: Vec::new(),
            polled: EntitySet::new(),
            decided: EntitySet::new(),
            open_end: false,
            stored: Places::NONE,
            visits_left: Cell::new(flow.reverse_postorder().len() * VISITS_PER_BLOCK),
        }
    }

    /// Whether it was given up: more may be tainted, and poll, than was found.
    pub(super) fn gave_up(&self) -> bool {
        self.visits_left.get() == 0
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

    /// Taints what is loaded from `places`. That happens at most once for each kind of memory.
    fn store(&mut self, places: Places, members: &[Block]) {
        if self.stored.hold(places) {
            return;
        }
        self.stored = self.stored.or(places);
        for &block in members {
            for inst in self.func.layout.block_insts(block) {
                if self.accesses.reads(inst).meet(self.stored) {
                    self.results(inst);
                }
            }
        }
    }

    /// Follows what `atomics` give through the component.
    pub(super) fn spread(&mut self, members: &[Block], atomics: &[Inst]) {
        for &inst in atomics {
            self.results(inst);
            self.store(self.accesses.leaves(inst), members);
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
        self.store(self.accesses.writes(user), members);
        if !dfg.insts[user].opcode().is_branch() {
            self.results(user);
            return;
        }
        let calls = destinations(self.func, user);
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

    /// The branch at the end of `home` is tainted. If one of its ways comes back to it before the ways come together,
    /// the threads wait there; what comes together behind it is tainted.
    fn decide(&mut self, home: Block, members: &[Block]) {
        let meeting = (self.flow.order(home))
            .and_then(|home| self.post.immediate(home))
            .map(|meeting| self.flow.reverse_postorder()[meeting]);
        self.open_end |= meeting.is_none();
        let Some(seen) = self.reached(home, meeting, |_| true) else {
            return;
        };
        for block in seen.iter() {
            if !self.decided.insert(block) {
                continue;
            }
            for &param in self.func.dfg.block_params(block) {
                self.value(param);
            }
            for inst in self.func.layout.block_insts(block) {
                // What is stored on one of the ways says which one was taken, as do the lanes that are there.
                self.store(self.accesses.writes(inst), members);
                if self.accesses.convergent(inst) {
                    self.results(inst);
                }
            }
        }
        if let Some(meeting) = meeting.filter(|meeting| self.within.contains(*meeting)) {
            for &param in self.func.dfg.block_params(meeting) {
                self.value(param);
            }
        }
        self.look_for_cycle(home, meeting);
    }

    /// Adds the blocks on the ways of the branch at the end of `home` that may go round there before they come
    /// together at `meeting`, each turn without an edge on which it gets somewhere.
    fn look_for_cycle(&mut self, home: Block, meeting: Option<Block>) {
        let waits = |edge: &(Block, Block)| !self.advancing.contains(edge);
        let Some(seen) = self.reached(home, meeting, waits) else {
            return;
        };
        let through = match self.header {
            Some(header) if header != home && seen.contains(home) && seen.contains(header) => {
                match self.reached(header, meeting, waits) {
                    Some(turned) => turned.contains(home),
                    None => return,
                }
            }
            Some(header) => header == home && seen.contains(home),
            None => seen.contains(home),
        };
        if through {
            self.polled.extend(seen.iter());
        }
    }

    /// The blocks that can be reached from the end of `home` over edges that `follow` names before `meeting`; none
    /// when the visits are used up.
    fn reached(
        &self,
        home: Block,
        meeting: Option<Block>,
        follow: impl Fn(&(Block, Block)) -> bool,
    ) -> Option<EntitySet<Block>> {
        let mut seen: EntitySet<Block> = EntitySet::new();
        let mut from = Some(home);
        let mut stack: Vec<Block> = Vec::new();
        while let Some(block) = from {
            let next = |to: &Block| Some(*to) != meeting && self.within.contains(*to);
            let ways = self.flow.successors(block).filter(next);
            for to in ways.filter(|to| follow(&(block, *to))) {
                if seen.insert(to) {
                    let left = self.visits_left.get();
                    if left == 0 {
                        return None;
                    }
                    self.visits_left.set(left - 1);
                    stack.push(to);
                }
            }
            from = stack.pop();
        }
        Some(seen)
    }
}
