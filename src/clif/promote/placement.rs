//! Where the variables of cells need block parameters: where stores of one meet while it is live.
//!
//! For each cell its live blocks are walked from its reads, then its iterated dominance frontier is found by walking
//! down the dominator tree from its stores, deepest first (Sreedhar and Gao, "A Linear Time Algorithm for Placing
//! phi-Nodes"). Only live blocks are gone into: from a block where the cell is dead no value gets to a join without
//! passing another store, whose own walk comes there. No frontier is stored.
//!
//! Two limits keep time and memory in proportion to the function. Parameters of a block take no more words than
//! registers can hold – what does not fit would be sent through memory at every edge. And all walks together make
//! [`STEPS`] steps for each block, beyond which only cells that need next to none are placed. A cell over a limit stays
//! in memory; those with the most accesses go first.

use super::{Cell, Cells, Kind, Params};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::{EntityRef, SecondaryMap};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Type};
use std::collections::BinaryHeap;

/// Steps of all walks for each block (*assumed*: about what the other passes take for it).
const STEPS: usize = 256;
/// Steps that any function may take, and any cell beyond all limits.
const FREE_STEPS: usize = 1 << 16;
const FREE_CELL_STEPS: usize = 16;

/// Decides on the parameters, and takes the accesses of cells that are over a limit out of `cells`. Also gives the
/// number of those that are not.
pub(super) fn place(
    func: &Function,
    cfg: &ControlFlowGraph,
    domtree: &DominatorTree,
    cells: &mut Cells,
    words: u32,
) -> (Params, usize) {
    let mut accesses = Accesses::collect(func, domtree, cells);
    let mut order: Vec<Cell> = (0..cells.types.len()).collect();
    order.sort_by_key(|&cell| std::cmp::Reverse(accesses.counts[cell]));
    let mut walk = Walk::new(cfg, domtree);
    let mut params = Params::new();
    // Words that the parameters of a block leave.
    let mut room: SecondaryMap<Block, Option<u32>> = SecondaryMap::new();
    let room_of = |room: &SecondaryMap<Block, Option<u32>>, block: Block| {
        room[block].unwrap_or_else(|| {
            let params = func.dfg.block_params(block).iter();
            let taken = params.map(|&param| words_of(func.dfg.value_type(param)));
            words.saturating_sub(taken.sum())
        })
    };
    let mut left = STEPS * domtree.cfg_rpo().count() + FREE_STEPS;
    let mut stays = vec![false; cells.types.len()];
    for &cell in &order {
        let size = words_of(cells.types[cell]);
        let mut steps = left.max(FREE_CELL_STEPS);
        let before = steps;
        let (reads, stores) = (&accesses.reads[cell], &accesses.stores[cell]);
        let joins = walk.joins(cell, reads, stores, &mut steps);
        left = left.saturating_sub(before - steps);
        let fits = |joins: &Vec<Block>| joins.iter().all(|&join| room_of(&room, join) >= size);
        match joins.filter(fits) {
            Some(joins) => {
                for join in joins {
                    room[join] = Some(room_of(&room, join) - size);
                    params[join].push(cell);
                }
            }
            None => stays[cell] = true,
        }
        accesses.reads[cell] = Vec::new();
        accesses.stores[cell] = Vec::new();
    }
    let staying = stays.iter().filter(|&&stays| stays).count();
    for &block in domtree.cfg_rpo() {
        params[block].sort_unstable();
        if staying > 0 {
            for inst in func.layout.block_insts(block) {
                if cells.accesses[inst].is_some_and(|(cell, _)| stays[cell]) {
                    cells.accesses[inst] = None;
                }
            }
        }
    }
    (params, cells.types.len() - staying)
}

fn words_of(ty: Type) -> u32 {
    ty.bytes().div_ceil(4)
}

/// By cell: the blocks that store it, those that read it before they store it, and the number of accesses.
struct Accesses {
    stores: Vec<Vec<Block>>,
    reads: Vec<Vec<Block>>,
    counts: Vec<u32>,
}

impl Accesses {
    fn collect(func: &Function, domtree: &DominatorTree, cells: &Cells) -> Self {
        let count = cells.types.len();
        let mut found = Accesses {
            stores: vec![Vec::new(); count],
            reads: vec![Vec::new(); count],
            counts: vec![0; count],
        };
        for &block in domtree.cfg_rpo() {
            for inst in func.layout.block_insts(block) {
                let Some((cell, kind)) = cells.accesses[inst] else {
                    continue;
                };
                found.counts[cell] += 1;
                let stored = found.stores[cell].last() == Some(&block);
                if matches!(kind, Kind::Store | Kind::StoreLow) {
                    if !stored {
                        found.stores[cell].push(block);
                    }
                } else if !stored && found.reads[cell].last() != Some(&block) {
                    found.reads[cell].push(block);
                }
            }
        }
        found
    }
}

/// Walks for one cell after the other. A mark says that a block has a property for the cell whose number, plus one, it
/// is.
struct Walk<'a> {
    cfg: &'a ControlFlowGraph,
    domtree: &'a DominatorTree,
    /// Number of dominators above each block.
    levels: SecondaryMap<Block, u32>,
    live: SecondaryMap<Block, u32>,
    stored: SecondaryMap<Block, u32>,
    joined: SecondaryMap<Block, u32>,
    walked: SecondaryMap<Block, u32>,
    work: Vec<Block>,
    /// Stores and joins whose frontier is to be found, the deepest first.
    roots: BinaryHeap<(u32, usize)>,
}

impl<'a> Walk<'a> {
    fn new(cfg: &'a ControlFlowGraph, domtree: &'a DominatorTree) -> Self {
        let mut levels = SecondaryMap::new();
        for &block in domtree.cfg_rpo() {
            levels[block] = domtree.idom(block).map_or(0, |up| levels[up] + 1);
        }
        Self {
            cfg,
            domtree,
            levels,
            live: SecondaryMap::new(),
            stored: SecondaryMap::new(),
            joined: SecondaryMap::new(),
            walked: SecondaryMap::new(),
            work: Vec::new(),
            roots: BinaryHeap::new(),
        }
    }

    /// The blocks that need a parameter for the cell; none when that takes more than `steps`, of which the steps made
    /// are taken off.
    fn joins(
        &mut self,
        cell: Cell,
        reads: &[Block],
        stores: &[Block],
        steps: &mut usize,
    ) -> Option<Vec<Block>> {
        let mark = cell as u32 + 1;
        for &block in stores {
            self.stored[block] = mark;
        }
        self.find_live(mark, reads, steps)?;
        self.roots.clear();
        for &block in stores {
            self.roots.push((self.levels[block], block.index()));
        }
        let mut joins = Vec::new();
        while let Some((level, root)) = self.roots.pop() {
            self.work.clear();
            self.work.push(Block::new(root));
            while let Some(block) = self.work.pop() {
                *steps = steps.checked_sub(1)?;
                for next in self.cfg.succ_iter(block) {
                    *steps = steps.checked_sub(1)?;
                    let is_new = self.levels[next] <= level
                        && self.live[next] == mark
                        && self.joined[next] != mark;
                    if is_new {
                        self.joined[next] = mark;
                        joins.push(next);
                        if self.stored[next] != mark {
                            self.roots.push((self.levels[next], next.index()));
                        }
                    }
                }
                for child in self.domtree.children(block) {
                    *steps = steps.checked_sub(1)?;
                    if self.live[child] == mark && self.walked[child] != mark {
                        self.walked[child] = mark;
                        self.work.push(child);
                    }
                }
            }
        }
        Some(joins)
    }

    /// Marks the blocks at whose start the cell is live.
    fn find_live(&mut self, mark: u32, reads: &[Block], steps: &mut usize) -> Option<()> {
        self.work.clear();
        self.work.extend_from_slice(reads);
        while let Some(block) = self.work.pop() {
            *steps = steps.checked_sub(1)?;
            if std::mem::replace(&mut self.live[block], mark) == mark {
                continue;
            }
            for before in self.cfg.pred_iter(block).map(|pred| pred.block) {
                *steps = steps.checked_sub(1)?;
                if self.domtree.is_reachable(before) && self.stored[before] != mark {
                    self.work.push(before);
                }
            }
        }
        Some(())
    }
}
