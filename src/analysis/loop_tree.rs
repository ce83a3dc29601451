//! Which loops lie in which, asked without walking from loop to loop.
//!
//! Takes Cranelift's loops. Whether a loop holds another is read off their numbers in the tree, parents first; the
//! outermost loop of some kind is found by links that skip ancestors (Myers, *An Applicative Random-Access Stack*) in
//! steps that grow with the logarithm of the depth.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::loop_analysis::{Loop, LoopAnalysis};
use std::ops::Range;

/// The tree of the loops of a function.
#[derive(Default)]
pub struct LoopTree {
    nodes: SecondaryMap<Loop, Node>,
}

#[derive(Clone, Default)]
struct Node {
    parent: Option<Loop>,
    /// An ancestor further up, or the parent.
    skip: Option<Loop>,
    /// Number of loops around it, itself included.
    depth: u32,
    /// Where it and the loops in it stand when the tree is written down parents first.
    below: Range<u32>,
}

impl LoopTree {
    /// The tree of `loops`, which come outer before inner.
    pub fn new(loops: &LoopAnalysis) -> Self {
        let mut sizes: SecondaryMap<Loop, u32> = SecondaryMap::new();
        for lp in loops.loops().rev() {
            sizes[lp] += 1;
            if let Some(parent) = loops.loop_parent(lp) {
                sizes[parent] += sizes[lp];
            }
        }
        let mut nodes: SecondaryMap<Loop, Node> = SecondaryMap::new();
        // Where the next loop goes: by parent, and at the top.
        let mut free: SecondaryMap<Loop, u32> = SecondaryMap::new();
        let mut free_at_top = 0;
        for lp in loops.loops() {
            let parent = loops.loop_parent(lp);
            let next = match parent {
                Some(parent) => &mut free[parent],
                None => &mut free_at_top,
            };
            let start = *next;
            *next += sizes[lp];
            free[lp] = start + 1;
            let depth = |of: Option<Loop>| of.map_or(0, |lp| nodes[lp].depth);
            let skip = parent.map(|parent| {
                let first = nodes[parent].skip;
                let second = first.and_then(|first| nodes[first].skip);
                let even = depth(Some(parent)) - depth(first) == depth(first) - depth(second);
                first.filter(|_| even).and(second).unwrap_or(parent)
            });
            nodes[lp] = Node {
                parent,
                skip,
                depth: depth(parent) + 1,
                below: start..start + sizes[lp],
            };
        }
        LoopTree { nodes }
    }

    /// Number of loops around `lp`, itself included.
    pub fn depth(&self, lp: Loop) -> usize {
        self.nodes[lp].depth as usize
    }

    /// Whether `inner` lies in `outer`, or is the same.
    pub fn contains(&self, outer: Loop, inner: Loop) -> bool {
        let inner = self.nodes[inner].below.start;
        self.nodes[outer].below.contains(&inner)
    }

    /// The outermost loop around `lp`, itself included, that does not hold the loop `other`; without one, of all.
    pub fn outermost_without(&self, lp: Loop, other: Option<Loop>) -> Option<Loop> {
        let fits = |lp: &Loop| other.is_none_or(|other| !self.contains(*lp, other));
        let mut found = Some(lp).filter(fits)?;
        loop {
            let Node { parent, skip, .. } = self.nodes[found];
            match skip.filter(fits).or(parent.filter(fits)) {
                Some(further) => found = further,
                None => return Some(found),
            }
        }
    }
}
