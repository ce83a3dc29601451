//! Control flow as spilling sees it: predecessors, natural loops, dominators, how often a block runs.

use crate::analysis::graph::{Dominators, Graph};
use crate::isa::Register;
use crate::vcode::{Block, Terminator, VCode};
use cranelift_codegen::entity::EntityRef;

/// No loop.
pub(in crate::regalloc) const OUTSIDE: u32 = u32::MAX;

/// Deepest nesting that makes a difference to weights.
const DEEPEST: u32 = 8;

/// A natural loop.
#[derive(Debug)]
struct Loop {
    header: Block,
    parent: u32,
    depth: u32,
}

/// See the module.
#[derive(Debug)]
pub(in crate::regalloc) struct Flow {
    graph: Graph,
    dominators: Dominators,
    /// Innermost loop by block, or [`OUTSIDE`].
    innermost: Vec<u32>,
    loops: Vec<Loop>,
    frequency: Vec<f32>,
    /// Blocks with several predecessors of which one cannot pass arguments.
    closed: Vec<bool>,
}

impl Flow {
    /// Finds everything for `code`, whose blocks are in reverse postorder.
    pub fn compute<R: Register>(code: &VCode<R>) -> Flow {
        let len = code.blocks.len();
        let edges = code.blocks.iter().flat_map(|(block, data)| {
            let successors = data.terminator.successors();
            successors
                .into_iter()
                .map(move |s| (block.index(), s.index()))
        });
        let graph = Graph::from_edges(len, edges);
        let dominators = Dominators::new(&graph, code.entry_block().index());
        let mut flow = Flow {
            innermost: vec![OUTSIDE; len],
            loops: Vec::new(),
            frequency: Vec::with_capacity(len),
            closed: vec![false; len],
            graph,
            dominators,
        };
        flow.find_loops();
        for (block, data) in code.blocks.iter() {
            let depth = flow.depth(flow.innermost[block.index()]).min(DEEPEST);
            let often = 8f32.powi(depth as i32) * if data.cold { 0.1 } else { 1.0 };
            flow.frequency.push(often);
            let jumps = |p: usize| {
                matches!(
                    code.blocks[Block::new(p)].terminator,
                    Terminator::Jump { .. }
                )
            };
            let mut predecessors = flow.graph.predecessors(block.index());
            flow.closed[block.index()] = predecessors.len() > 1 && !predecessors.all(jumps);
        }
        flow
    }

    /// Inner loops have later headers, so they come first and are found whole when an outer one is flooded.
    fn find_loops(&mut self) {
        let mut work = Vec::new();
        for header in (0..self.graph.len()).rev() {
            if !self.graph.predecessors(header).any(|p| p >= header) {
                continue;
            }
            work.push(header);
            let number = self.loops.len() as u32;
            self.loops.push(Loop {
                header: Block::new(header),
                parent: OUTSIDE,
                depth: 0,
            });
            while let Some(block) = work.pop() {
                // The outermost loop around it that is known so far.
                let mut around = self.innermost[block];
                while around != OUTSIDE && self.loops[around as usize].parent != OUTSIDE {
                    around = self.loops[around as usize].parent;
                }
                if around == number {
                    continue;
                }
                let entrance = match around {
                    OUTSIDE => {
                        self.innermost[block] = number;
                        block
                    }
                    inner => {
                        self.loops[inner as usize].parent = number;
                        self.loops[inner as usize].header.index()
                    }
                };
                // A second entrance of an irreducible loop may lie before its header.
                work.extend(self.graph.predecessors(entrance).filter(|&p| p > header));
            }
        }
        for number in (0..self.loops.len()).rev() {
            let parent = self.loops[number].parent;
            self.loops[number].depth = 1 + self.depth(parent);
        }
    }

    /// Successors; a block may repeat.
    pub fn successors(&self, block: Block) -> impl ExactSizeIterator<Item = Block> + '_ {
        self.graph.successors(block.index()).map(Block::new)
    }

    /// Predecessors; a block may repeat.
    pub fn predecessors(&self, block: Block) -> impl ExactSizeIterator<Item = Block> + '_ {
        self.graph.predecessors(block.index()).map(Block::new)
    }

    /// Whether it has several predecessors.
    pub fn is_join(&self, block: Block) -> bool {
        self.graph.predecessors(block.index()).len() > 1
    }

    /// Whether it has several predecessors, but no way to pass arguments on all edges.
    pub fn is_closed(&self, block: Block) -> bool {
        self.closed[block.index()]
    }

    /// Whether a predecessor comes later.
    pub fn is_header(&self, block: Block) -> bool {
        self.predecessors(block).any(|p| p >= block)
    }

    /// Whether every path to a predecessor that comes later passes through the block itself.
    pub fn is_natural(&self, block: Block) -> bool {
        let mut latches = self.predecessors(block).filter(|p| *p >= block);
        latches.all(|p| self.dominates(block, p))
    }

    /// The innermost loop around a block, or [`OUTSIDE`].
    pub fn innermost(&self, block: Block) -> u32 {
        self.innermost[block.index()]
    }

    /// The loop around a loop, or [`OUTSIDE`].
    pub fn parent(&self, number: u32) -> u32 {
        self.loops[number as usize].parent
    }

    /// Number of loops.
    pub fn loop_count(&self) -> usize {
        self.loops.len()
    }

    fn depth(&self, number: u32) -> u32 {
        match number {
            OUTSIDE => 0,
            number => self.loops[number as usize].depth,
        }
    }

    /// How many loops an edge leaves.
    pub fn loops_left(&self, from: Block, to: Block) -> u32 {
        let start = self.innermost(from);
        let (mut a, mut b) = (start, self.innermost(to));
        while a != b {
            if self.depth(a) >= self.depth(b) {
                a = self.parent(a);
            } else {
                b = self.parent(b);
            }
        }
        self.depth(start) - self.depth(a)
    }

    /// How often a block runs (*assumed*: eight rounds of every loop).
    pub fn frequency(&self, block: Block) -> f32 {
        self.frequency[block.index()]
    }

    /// Whether every path to `block` passes through `dominator`.
    pub fn dominates(&self, dominator: Block, block: Block) -> bool {
        self.dominators.dominates(dominator.index(), block.index())
    }

    /// Whether any path leads to a block.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.dominators.is_reachable(block.index())
    }

    /// The nearest block that dominates both; the first if one cannot be reached.
    pub fn common(&self, a: Block, b: Block) -> Block {
        if !self.is_reachable(a) || !self.is_reachable(b) {
            return Block::new(0);
        }
        Block::new(self.dominators.common(a.index(), b.index()))
    }
}
