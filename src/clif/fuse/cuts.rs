//! Cuts of bitwise operations: values that an operation is a function of, and the function.

use crate::isa::truth_table::{INPUTS, composed};
use cranelift_codegen::ir::Value;
use smallvec::SmallVec;

/// Most leaves of a tree of bitwise operations that one LOP3 takes.
pub(super) const LEAVES: usize = 3;

/// The leaves of a tree, as they are found.
pub(super) type Leaves = SmallVec<[Value; LEAVES]>;

/// Cuts that are kept of an operation (*assumed*; with twice as many no golden changes).
const KEPT: usize = 6;

/// A cut: its leaves, the truth table over them, and what all instructions under it cost.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub(super) leaves: Leaves,
    pub(super) table: u8,
    pub(super) cost: u32,
}

/// The cuts of an operation, the cheapest first.
pub(super) type Cuts = SmallVec<[Cut; 2]>;

/// The place of a leaf, which is added where there is room.
pub(super) fn place(leaves: &mut Leaves, leaf: Value) -> Option<usize> {
    if let Some(index) = leaves.iter().position(|&l| l == leaf) {
        return Some(index);
    }
    (leaves.len() < LEAVES).then(|| {
        leaves.push(leaf);
        leaves.len() - 1
    })
}

impl Cut {
    /// The value itself.
    pub(super) fn leaf(value: Value, cost: u32) -> Self {
        Cut {
            leaves: SmallVec::from_slice(&[value]),
            table: INPUTS[0],
            cost,
        }
    }

    /// The table over more leaves, which this one's are added to.
    pub(super) fn over(&self, leaves: &mut Leaves) -> Option<u8> {
        let mut inputs = [0; LEAVES];
        for (input, &leaf) in inputs.iter_mut().zip(&self.leaves) {
            *input = INPUTS[place(leaves, leaf)?];
        }
        Some(composed(self.table, inputs))
    }
}

/// Keeps a cut among the cheapest; of two over the same leaves one.
pub(super) fn keep(cuts: &mut Cuts, cut: Cut) {
    let same = |a: &Leaves, b: &Leaves| a.len() == b.len() && a.iter().all(|l| b.contains(l));
    if cuts.iter().any(|c| same(&c.leaves, &cut.leaves)) {
        return;
    }
    let rank = |c: &Cut| (c.cost, c.leaves.len());
    let at = cuts.partition_point(|c| rank(c) <= rank(&cut));
    if at < KEPT {
        cuts.insert(at, cut);
        cuts.truncate(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_cuts_are_kept_once() {
        let mut cuts = Cuts::new();
        for cost in (0..20).rev() {
            keep(&mut cuts, Cut::leaf(Value::from_u32(cost), cost));
            keep(&mut cuts, Cut::leaf(Value::from_u32(cost), 0));
        }
        let costs: Vec<u32> = cuts.iter().map(|c| c.cost).collect();
        assert_eq!(costs, [0, 1, 2, 3, 4, 5]);
    }
}
