//! Sets of blocks that lie close together.

use std::ops::Range;

/// A set of blocks as ranges of their numbers. Regions are few ranges because blocks are in reverse postorder, however
/// many blocks they hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockSet {
    /// Ascending, with a gap between any two.
    ranges: Vec<Range<usize>>,
}

impl FromIterator<usize> for BlockSet {
    fn from_iter<I: IntoIterator<Item = usize>>(blocks: I) -> Self {
        let mut sorted: Vec<usize> = blocks.into_iter().collect();
        sorted.sort_unstable();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for block in sorted {
            match ranges.last_mut() {
                Some(last) if block <= last.end => last.end = block + 1,
                _ => ranges.push(block..block + 1),
            }
        }
        BlockSet { ranges }
    }
}

impl BlockSet {
    /// The blocks, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranges.iter().cloned().flatten()
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.ranges.iter().map(Range::len).sum()
    }
}

#[cfg(test)]
impl BlockSet {
    /// Whether it holds a block.
    pub fn contains(&self, block: usize) -> bool {
        self.ranges[..self.begun_by(block)]
            .last()
            .is_some_and(|range| range.contains(&block))
    }

    /// Whether it holds every block of `other`.
    pub fn is_superset(&self, other: &BlockSet) -> bool {
        other.ranges.iter().all(|inner| {
            self.ranges[..self.begun_by(inner.start)]
                .last()
                .is_some_and(|range| inner.end <= range.end)
        })
    }

    /// Number of ranges that begin at `block` or before.
    fn begun_by(&self, block: usize) -> usize {
        self.ranges.partition_point(|range| range.start <= block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;
    use std::collections::BTreeSet;

    #[test]
    fn it_is_a_set() {
        let mut random = Random::for_test("block sets");
        let mut some = |len: u64| -> BTreeSet<usize> {
            (0..random.below(len))
                .map(|_| random.below(12) as usize)
                .collect()
        };
        for _ in 0..2000 {
            let (many, few) = (some(20), some(4));
            let (set, inner): (BlockSet, BlockSet) = (
                many.iter().copied().collect(),
                few.iter().copied().collect(),
            );
            assert!(set.iter().eq(many.iter().copied()));
            assert_eq!(set.len(), many.len());
            assert_eq!(set.is_superset(&inner), many.is_superset(&few));
            assert!((0..14).all(|block| set.contains(block) == many.contains(&block)));
            assert!(
                set.ranges
                    .windows(2)
                    .all(|pair| pair[0].end < pair[1].start)
            );
        }
    }
}
