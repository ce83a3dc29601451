//! Truth tables of LOP3, and what they are tables of: trees of bitwise operations, and cuts.
//!
//! A table is what its function gives for `TABLE_A`, `TABLE_B` and `TABLE_C`.

use cranelift_codegen::ir::Value;
use smallvec::SmallVec;

/// Truth-table inputs of LOP3 (document 002, LOP3): F(a, b, c) is the table with these for a, b and c.
pub const TABLE_A: u8 = 0xf0;
/// See [`TABLE_A`].
pub const TABLE_B: u8 = 0xcc;
/// See [`TABLE_A`].
pub const TABLE_C: u8 = 0xaa;

/// The tables that hand an input on: the rows of the table in which it is set.
pub(super) const INPUTS: [u8; 3] = [TABLE_A, TABLE_B, TABLE_C];

/// The truth table when two inputs, the first of them in front of the second, change places: so do the rows in which
/// only one of them is set.
pub(super) fn exchanged(table: u8, first: usize, second: usize) -> u8 {
    let only_first = INPUTS[first] & !INPUTS[second];
    let only_second = INPUTS[second] & !INPUTS[first];
    let distance = (4 >> first) - (4 >> second);
    table & !(only_first | only_second)
        | (table & only_first) >> distance
        | (table & only_second) << distance
}

/// The truth table with an input complemented: the rows in which it is set and the others change places.
pub(super) fn complemented(table: u8, input: usize) -> u8 {
    let (set, distance) = (INPUTS[input], 4 >> input);
    (table & set) >> distance | (table & !set) << distance
}

/// The truth table when an input is known; it does not depend on it any more.
pub(super) fn known(table: u8, input: usize, value: u8) -> u8 {
    let (set, distance) = (INPUTS[input], 4 >> input);
    match value {
        0 => table & !set | (table & !set) << distance,
        _ => table & set | (table & set) >> distance,
    }
}

/// The input that the table only hands on.
pub(super) fn only_input(table: u8) -> Option<usize> {
    INPUTS.iter().position(|&t| t == table)
}

/// Most leaves of a tree of bitwise operations that one LOP3 takes.
pub(super) const LEAVES: usize = 3;

/// The leaves of a tree, as they are found.
pub(super) type Leaves = SmallVec<[Value; LEAVES]>;

/// A tree of bitwise operations: its leaves and its truth table over them.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    pub(super) leaves: [Option<Value>; LEAVES],
    /// The table.
    pub(super) table: u8,
}

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

/// A function over other inputs: the table of what `table` is when its inputs have these tables.
pub(super) fn composed(table: u8, inputs: [u8; LEAVES]) -> u8 {
    let row = |index: usize| {
        let input = |i: usize| match index >> (LEAVES - 1 - i) & 1 {
            0 => !inputs[i],
            _ => inputs[i],
        };
        match table >> index & 1 {
            0 => 0,
            _ => input(0) & input(1) & input(2),
        }
    };
    (0..8).fold(0, |all, index| all | row(index))
}

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

    /// The table's function on bits, as the document defines it.
    fn apply(table: u8, [a, b, c]: [u8; 3]) -> u8 {
        table >> (a << 2 | b << 1 | c) & 1
    }

    #[test]
    fn tables_exchange_and_complement() {
        for table in 0..=255u8 {
            for bits in 0..8u8 {
                let x = [bits >> 2 & 1, bits >> 1 & 1, bits & 1];
                for (first, second) in [(0, 1), (0, 2), (1, 2)] {
                    let mut moved = x;
                    moved.swap(first, second);
                    assert_eq!(
                        apply(exchanged(table, first, second), moved),
                        apply(table, x),
                        "{table:#x} {first} {second} {x:?}"
                    );
                }
                for input in 0..3 {
                    let mut z = x;
                    z[input] = 1;
                    assert_eq!(apply(known(table, input, 1), x), apply(table, z));
                    z[input] = 0;
                    assert_eq!(apply(known(table, input, 0), x), apply(table, z));
                    let mut y = x;
                    y[input] ^= 1;
                    assert_eq!(apply(complemented(table, input), y), apply(table, x));
                }
            }
        }
    }
}
