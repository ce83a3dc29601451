//! Control flow: graph, reverse postorder, dominators, post-dominators, loops.
//!
//! Takes a function without unreachable blocks in use (unreachable ones are left out of every answer). The graph and
//! the dominator tree are Cranelift's. The post-dominator tree is computed here, because it must say where a
//! *divergent* branch reconverges, and so differs from the textbook's in two points:
//!
//! - Loops that nothing leaves for elsewhere (endless ones, and those of a kernel that are left by returning) are cut
//!   where a turn ends: edges back to the header lead to the virtual exit. So lanes that part in a turn meet at the
//!   header at the latest; and a branch into such a loop has no post-dominator on its other side, so that nobody waits
//!   there for lanes that never come. If some of these edges surely come behind a barrier of the block, or else may,
//!   only they are cut: lanes that go back before it will come to it, and those that are there need them. An
//!   irreducible cycle that nothing leaves hangs on the virtual exit through one of its blocks, the deepest in
//!   postorder, which says nothing of barriers.
//! - Blocks from which lanes only come to their end (`endings.rs`: traps, early returns of a kernel) are left out as
//!   successors of branches that can also go elsewhere: ended lanes leave every convergence barrier, so they keep
//!   nobody from meeting. The usual `if (i >= n) return;` at the head of a kernel thus divides nothing. So are blocks
//!   behind which no barrier of the block follows, where others may come to one (`barriers.rs`).
//!
//! The tree itself is that of [`super::graph`] over the edges that remain. Loops are the natural loops of Cranelift's
//! analysis.

use super::barriers::Barriers;
use super::calls::Callees;
use super::endings::{self, Ending};
use super::graph::{Graph, PostDominators};
use super::loop_tree::LoopTree;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, BlockCall, Function, Inst, Value};
use cranelift_codegen::loop_analysis::{Loop, LoopAnalysis};

/// Number of a node that is not in the graph.
const ABSENT: u32 = u32::MAX;

/// Where an instruction may go, with what it passes there: of `brif` then and else, of `br_table` the default first.
pub fn destinations(func: &Function, inst: Inst) -> &[BlockCall] {
    let dfg = &func.dfg;
    dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables)
}

/// Which ways there are to a block from the header of its outermost loop.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    /// One with a barrier of the block.
    with: bool,
    /// One without.
    without: bool,
}

/// Where all lanes come to that leave a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostDominator {
    /// A block.
    Block(Block),
    /// The header of a loop that nothing leaves, in the next turn.
    NextTurn(Block),
}

/// The control flow of one function.
pub struct ControlFlow {
    cfg: ControlFlowGraph,
    domtree: DominatorTree,
    loops: LoopAnalysis,
    loop_tree: LoopTree,
    rpo: Vec<Block>,
    rpo_index: SecondaryMap<Block, u32>,
    endings: SecondaryMap<Block, Ending>,
    barriers: Barriers,
    /// Blocks of loops at which lanes leave that go where no barrier follows, since the others may come to one.
    leaving: SecondaryMap<Block, bool>,
    /// Blocks from which lanes can go nowhere but to the end of all of them.
    last: SecondaryMap<Block, bool>,
    /// Headers of the loops that are cut: the end of a turn of the first has the number behind all blocks.
    cuts: Vec<Block>,
    /// Blocks that end a turn of such a loop, with an edge that is cut.
    ends_turn: SecondaryMap<Block, bool>,
    /// Blocks through which irreducible cycles that nothing leaves hang on the exit.
    pseudo_exits: Vec<Block>,
    /// Over the numbers of the reverse postorder, and of cuts; none for a single block.
    post: Option<PostDominators>,
    irreducible: bool,
}

impl Default for ControlFlow {
    /// Of no function.
    fn default() -> Self {
        Self {
            cfg: ControlFlowGraph::new(),
            domtree: DominatorTree::new(),
            loops: LoopAnalysis::new(),
            loop_tree: LoopTree::default(),
            rpo: Vec::new(),
            rpo_index: SecondaryMap::with_default(ABSENT),
            endings: SecondaryMap::new(),
            barriers: Barriers::default(),
            leaving: SecondaryMap::new(),
            last: SecondaryMap::new(),
            cuts: Vec::new(),
            ends_turn: SecondaryMap::new(),
            pseudo_exits: Vec::new(),
            post: None,
            irreducible: false,
        }
    }
}

impl ControlFlow {
    /// Computes everything. In a `kernel` a return ends the lane; in other functions it goes back to the caller.
    /// `callees` says which calls act on the set of active lanes.
    pub fn compute(func: &Function, kernel: bool, callees: &Callees) -> Self {
        let mut flow = Self::default();
        flow.cfg.compute(func);
        flow.domtree.compute(func, &flow.cfg);
        flow.finish(func, kernel, callees);
        flow
    }

    /// The same in the memory of the function before, taking a graph and a dominator tree that are up to date. What was
    /// there before takes their place, so that whoever computes them keeps memory, too.
    pub fn recompute(
        &mut self,
        func: &Function,
        (cfg, domtree): (&mut ControlFlowGraph, &mut DominatorTree),
        kernel: bool,
        callees: &Callees,
    ) {
        std::mem::swap(&mut self.cfg, cfg);
        std::mem::swap(&mut self.domtree, domtree);
        self.finish(func, kernel, callees);
    }

    /// Computes everything but the graph and the dominator tree.
    fn finish(&mut self, func: &Function, kernel: bool, callees: &Callees) {
        let blocks = func.dfg.num_blocks();
        self.loops.compute(func, &self.cfg, &self.domtree);
        self.loop_tree = LoopTree::new(&self.loops);
        self.rpo.clear();
        self.rpo.extend(self.domtree.cfg_rpo());
        self.rpo_index.clear();
        self.rpo_index.resize(blocks);
        for (index, &block) in self.rpo.iter().enumerate() {
            self.rpo_index[block] = index as u32;
        }
        self.endings.clear();
        self.endings.resize(blocks);
        endings::find(
            func,
            (&self.cfg, &self.rpo),
            kernel,
            callees,
            &mut self.endings,
        );
        self.find_irreducible_cycles();
        let graph = (&self.cfg, &self.rpo[..]);
        self.barriers.find(func, graph, callees, &self.endings);
        self.leaving.clear();
        if kernel && self.barriers.any() {
            self.find_leaving();
        }
        self.last.clear();
        self.last.resize(blocks);
        for &block in &self.rpo {
            let goes_on = |to: Block| self.endings[to] != Ending::Here && self.stays(block, to);
            let last = !self.cfg.succ_iter(block).any(goes_on);
            self.last[block] = last;
        }
        self.cuts.clear();
        self.ends_turn.clear();
        self.pseudo_exits.clear();
        self.post = None;
        if self.rpo.len() > 1 {
            self.cut_endless();
            self.post = Some(self.post_dominators());
        }
    }

    /// Cranelift's graph.
    pub fn cfg(&self) -> &ControlFlowGraph {
        &self.cfg
    }

    /// Cranelift's dominator tree.
    pub fn domtree(&self) -> &DominatorTree {
        &self.domtree
    }

    /// The reachable blocks in reverse postorder.
    pub fn reverse_postorder(&self) -> &[Block] {
        &self.rpo
    }

    /// The reachable blocks in postorder: each before those that dominate it.
    pub fn postorder(&self) -> impl Iterator<Item = Block> {
        self.rpo.iter().rev().copied()
    }

    /// Position in the reverse postorder, for a reachable block.
    pub fn order(&self, block: Block) -> Option<usize> {
        let index = self.rpo_index[block];
        (index != ABSENT).then_some(index as usize)
    }

    /// True if the entry reaches the block.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.rpo_index[block] != ABSENT
    }

    /// All successors, in the order of the branch, each once.
    pub fn successors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        self.cfg.succ_iter(block)
    }

    /// The reachable predecessors, once per branch instruction.
    pub fn predecessors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        self.cfg
            .pred_iter(block)
            .map(|pred| pred.block)
            .filter(|pred| self.is_reachable(*pred))
    }

    /// What the parameter `index` of `block` gets from the reachable blocks that lead there, each with what it passes:
    /// none where that is no value, since a call that may throw makes it.
    pub fn arguments(
        &self,
        func: &Function,
        block: Block,
        index: usize,
    ) -> impl Iterator<Item = (Block, Option<Value>)> {
        let lists = &func.dfg.value_lists;
        let preds = self.cfg.pred_iter(block);
        preds
            .filter(|pred| self.is_reachable(pred.block))
            .flat_map(move |pred| {
                let calls = destinations(func, pred.inst).iter();
                let calls = calls.filter(move |call| call.block(lists) == block);
                calls.map(move |call| {
                    let argument = call.args(lists).nth(index);
                    (
                        pred.block,
                        argument.and_then(|argument| argument.as_value()),
                    )
                })
            })
    }

    /// The successors that lanes can go on in: all but those from which they only come to their end, if there are
    /// others.
    pub fn continuing_successors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        self.cfg
            .succ_iter(block)
            .filter(move |succ| self.continues(block, *succ))
    }

    /// The branches for which `block` is a successor in the sense of [`Self::continuing_successors`].
    fn continuing_predecessors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        self.predecessors(block)
            .filter(move |pred| self.continues(*pred, block))
    }

    /// Whether lanes that go from `block` to its successor `to` are kept track of, rather than just ending there.
    pub fn continues(&self, block: Block, to: Block) -> bool {
        self.stays(block, to) && (self.last[block] || self.endings[to] != Ending::Here)
    }

    /// Whether lanes may go from `block` to where they only end, but not at once: they may still be there when the
    /// others are elsewhere.
    pub fn ends_some_later(&self, block: Block) -> bool {
        let mut ended = self
            .cfg
            .succ_iter(block)
            .filter(|succ| !self.continues(block, *succ));
        ended.any(|succ| self.endings[succ] != Ending::Here)
    }

    /// Whether the lanes that go to `to` do not leave those for good that stay in `block`.
    fn stays(&self, block: Block, to: Block) -> bool {
        (self.endings[block] == Ending::Apart || self.endings[to] != Ending::Apart)
            && !(self.leaving[block] && self.barriers.are_past(to))
    }

    fn find_leaving(&mut self) {
        for &block in &self.rpo {
            let may_come =
                |way: Block| self.endings[way] == Ending::Not && self.barriers.are_ahead(way);
            self.leaving[block] = self.loops.innermost_loop(block).is_some()
                && self.cfg.succ_iter(block).any(may_come);
        }
    }

    /// Whether a barrier of the block can be reached from the start of `block`.
    pub fn is_before_barrier(&self, block: Block) -> bool {
        self.barriers.are_ahead(block)
    }

    /// True if lanes that come to the block only end, while others may go on elsewhere: a trap, an early return of a
    /// kernel, and what leads nowhere else.
    pub fn ends_lanes(&self, block: Block) -> bool {
        self.endings[block] != Ending::Not
    }

    /// True if every path from the entry to `b` goes through `a`.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        self.domtree.block_dominates(a, b)
    }

    /// The nearest block that all lanes leaving `block` reach, unless they end before. `None` if there is none; see the
    /// module for what counts.
    pub fn immediate_post_dominator(&self, block: Block) -> Option<PostDominator> {
        let post = self.post.as_ref()?.immediate(self.order(block)?)?;
        Some(match self.rpo.get(post) {
            Some(&block) => PostDominator::Block(block),
            None => PostDominator::NextTurn(self.cuts[post - self.rpo.len()]),
        })
    }

    /// All natural loops, outer before inner.
    pub fn loops(&self) -> impl DoubleEndedIterator<Item = Loop> + '_ {
        self.loops.loops()
    }

    /// Cranelift's loop tree.
    pub fn loop_tree(&self) -> &LoopAnalysis {
        &self.loops
    }

    /// The innermost loop that contains the block.
    pub fn innermost_loop(&self, block: Block) -> Option<Loop> {
        self.loops.innermost_loop(block)
    }

    /// The block that is entered first.
    pub fn loop_header(&self, lp: Loop) -> Block {
        self.loops.loop_header(lp)
    }

    /// The loop around this one.
    pub fn loop_parent(&self, lp: Loop) -> Option<Loop> {
        self.loops.loop_parent(lp)
    }

    /// True if the loop contains the block.
    pub fn is_in_loop(&self, block: Block, lp: Loop) -> bool {
        let innermost = self.innermost_loop(block);
        innermost.is_some_and(|innermost| self.loop_tree.contains(lp, innermost))
    }

    /// How many loops contain the block; counts to 254.
    pub fn loop_depth(&self, block: Block) -> usize {
        self.loops.loop_level(block).level()
    }

    /// The outermost loop that contains `block` but not `other`; without one, the outermost of all.
    pub fn outermost_loop_without(&self, block: Block, other: Option<Block>) -> Option<Loop> {
        let innermost = self.innermost_loop(block)?;
        let other = other.and_then(|other| self.innermost_loop(other));
        self.loop_tree.outermost_without(innermost, other)
    }

    /// Number of loops around the loop, itself included.
    pub fn loop_nesting(&self, lp: Loop) -> usize {
        self.loop_tree.depth(lp)
    }

    /// True if `inner` lies in `outer`, or is the same.
    pub fn loop_contains(&self, outer: Loop, inner: Loop) -> bool {
        self.loop_tree.contains(outer, inner)
    }

    /// True if some block can be reached again from itself.
    pub fn has_cycles(&self) -> bool {
        self.irreducible || self.loops.loops().next().is_some()
    }

    /// True if some cycle can be entered at more than one block; such cycles are no loops of [`Self::loops`].
    pub fn is_irreducible(&self) -> bool {
        self.irreducible
    }

    fn post_dominators(&self) -> PostDominators {
        let number = |block: Block| self.rpo_index[block] as usize;
        let mut turns: SecondaryMap<Block, Option<usize>> = SecondaryMap::new();
        for (cut, &header) in self.cuts.iter().enumerate() {
            turns[header] = Some(self.rpo.len() + cut);
        }
        let turns = &turns;
        let edges = self.rpo.iter().flat_map(|&block| {
            self.continuing_successors(block).map(move |succ| {
                let cut = turns[succ].filter(|_| self.is_cut(block, succ));
                (number(block), cut.unwrap_or(number(succ)))
            })
        });
        let cuts = self.rpo.len()..self.rpo.len() + self.cuts.len();
        let graph = Graph::from_edges(cuts.end, edges);
        let exits = self.exits().chain(self.pseudo_exits.iter().copied());
        PostDominators::new(&graph, exits.map(number).chain(cuts))
    }

    /// Finds where to cut, so that every block reaches an exit or a cut.
    fn cut_endless(&mut self) {
        let mut reaches_exit: SecondaryMap<Block, bool> = SecondaryMap::new();
        let mut stack: Vec<Block> = self.exits().collect();
        let mut passed: SecondaryMap<Block, Passed> = SecondaryMap::new();
        let mut is_cut: SecondaryMap<Block, bool> = SecondaryMap::new();
        let mut postorder = self.rpo.len();
        while postorder > 0 {
            while let Some(block) = stack.pop() {
                if !std::mem::replace(&mut reaches_exit[block], true) {
                    stack.extend(self.continuing_predecessors(block));
                }
            }
            let block = self.rpo[postorder - 1];
            if reaches_exit[block] {
                postorder -= 1;
                continue;
            }
            let outermost = self.outermost_loop_without(block, None);
            let is_new = |lp: &Loop| !std::mem::replace(&mut is_cut[self.loop_header(*lp)], true);
            match outermost.filter(is_new) {
                Some(outermost) => {
                    let ends = self.ends_of_turns(outermost, &mut passed);
                    ends.iter().for_each(|end| self.ends_turn[*end] = true);
                    stack.extend(ends);
                    self.cuts.push(self.loop_header(outermost));
                }
                None => {
                    stack.push(block);
                    self.pseudo_exits.push(block);
                }
            }
        }
    }

    /// Whether the edge from `block` to `header`, of a loop that is cut, is.
    fn is_cut(&self, block: Block, header: Block) -> bool {
        self.ends_turn[block] && self.dominates(header, block)
    }

    /// Where turns of an outermost loop end that is cut: behind barriers of the block for sure, or else perhaps, or
    /// else all.
    fn ends_of_turns(
        &self,
        outermost: Loop,
        passed: &mut SecondaryMap<Block, Passed>,
    ) -> Vec<Block> {
        let header = self.loop_header(outermost);
        let mut ends: Vec<Block> = (self.continuing_predecessors(header))
            .filter(|block| self.dominates(header, *block))
            .collect();
        if self.barriers.any() {
            self.pass_barriers(outermost, passed);
            let surely = |end: &Block| passed[*end].with && !passed[*end].without;
            let perhaps = |end: &Block| passed[*end].with;
            if ends.iter().any(surely) {
                ends.retain(surely);
            } else if ends.iter().any(perhaps) {
                ends.retain(perhaps);
            }
        }
        ends
    }

    /// Which ways there are from the header of an outermost loop to the end of each of its blocks.
    fn pass_barriers(&self, outermost: Loop, passed: &mut SecondaryMap<Block, Passed>) {
        let header = self.loop_header(outermost);
        let stays = |next: &Block| *next != header && self.is_in_loop(*next, outermost);
        // Each block at most twice: without a barrier before it, and behind one.
        let mut work = vec![(header, false)];
        while let Some((block, behind)) = work.pop() {
            let behind = behind || self.barriers.are_in(block);
            let seen = match behind {
                true => &mut passed[block].with,
                false => &mut passed[block].without,
            };
            if !std::mem::replace(seen, true) {
                let next = self.cfg.succ_iter(block).filter(stays);
                work.extend(next.map(|next| (next, behind)));
            }
        }
    }

    /// The blocks without successors.
    fn exits(&self) -> impl Iterator<Item = Block> + '_ {
        self.rpo
            .iter()
            .copied()
            .filter(|block| self.cfg.succ_iter(*block).next().is_none())
    }

    fn find_irreducible_cycles(&mut self) {
        self.irreducible = self.rpo.iter().any(|&block| {
            self.cfg.succ_iter(block).any(|succ| {
                self.rpo_index[succ] <= self.rpo_index[block]
                    && !self.domtree.block_dominates(succ, block)
            })
        });
    }
}

#[cfg(test)]
mod tests;
