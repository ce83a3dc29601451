//! The blocks of a function in an order in which each stands before all that it dominates.
//!
//! What a block dominates stands together, so dominance is a comparison of numbers, and what holds wherever a block
//! dominates holds in one range.

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function};
use std::ops::Range;

/// The preorder of the dominator tree; siblings stand as in the layout.
#[derive(Debug, Default)]
pub(crate) struct Preorder {
    blocks: Vec<Block>,
    /// By block, where it and those that it dominates stand; empty for those out of reach.
    subtrees: SecondaryMap<Block, Range<u32>>,
}

impl Preorder {
    pub fn of(func: &Function, domtree: &DominatorTree) -> Self {
        let mut position: SecondaryMap<Block, u32> = SecondaryMap::new();
        for (block, number) in func.layout.blocks().zip(0..) {
            position[block] = number;
        }
        let mut order = Self::default();
        order.subtrees.resize(func.dfg.num_blocks());
        let mut stack: Vec<(Block, bool)> = Vec::new();
        stack.extend(func.layout.entry_block().map(|block| (block, false)));
        while let Some((block, is_done)) = stack.pop() {
            let next = order.blocks.len() as u32;
            if is_done {
                order.subtrees[block].end = next;
                continue;
            }
            order.subtrees[block].start = next;
            order.blocks.push(block);
            stack.push((block, true));
            let first = stack.len();
            stack.extend(domtree.children(block).map(|child| (child, false)));
            stack[first..].sort_by_key(|(child, _)| std::cmp::Reverse(position[*child]));
        }
        order
    }

    /// Those that can be reached.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Whether one block dominates another.
    pub fn dominates(&self, block: Block, other: Block) -> bool {
        let other = &self.subtrees[other];
        !other.is_empty() && self.subtrees[block].contains(&other.start)
    }

    /// Where a block and those that it dominates stand.
    pub fn subtree(&self, block: Block) -> Range<usize> {
        let Range { start, end } = self.subtrees[block];
        start as usize..end as usize
    }
}
