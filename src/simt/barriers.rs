//! Which convergence barrier each region uses.

use super::block_set::BlockSet;
use smallvec::SmallVec;

/// Convergence barriers of a warp (design of the machine, *assigned*).
pub const BARRIERS: u8 = 16;

/// Where a barrier is in use.
#[derive(Clone, Debug)]
pub struct LiveRange {
    /// It is set at the end of these blocks.
    pub starts: Vec<usize>,
    /// It is waited for at the start of this one.
    pub meeting: usize,
    /// The block of the call that it is for, if it is for one.
    pub call: Option<usize>,
    /// The blocks between, the starting blocks with them.
    pub extent: Extent,
}

/// Which blocks a barrier is in use in: known in the same way for all barriers of a function.
#[derive(Clone, Debug)]
pub enum Extent {
    /// Any two are apart, or one lies in the other.
    Nested {
        /// How many this one lies in.
        around: u32,
        /// Number of its blocks, about: more than of any that lies in it.
        blocks: usize,
    },
    /// They may overlap in any way.
    Set(BlockSet),
}

impl Extent {
    /// Number of blocks.
    pub fn len(&self) -> usize {
        match self {
            Extent::Nested { blocks, .. } => *blocks,
            Extent::Set(blocks) => blocks.len(),
        }
    }
}

/// The barrier of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Its number.
    pub number: u8,
    /// Regions that overlap use it too: it holds the mask at a start, and while lanes wait at the meeting point. In
    /// between the mask is put aside, by level: regions of one level do not overlap.
    pub aside: Option<u32>,
}

/// Gives every region of a function with `blocks` blocks one of `barriers` barriers, outer regions (which come first)
/// the lower numbers. Regions that overlap have different barriers as long as there are enough; otherwise the last one
/// is for all regions that get no other.
///
/// Then no region owns the last barrier, so no mask is lost by using it. Nor are lanes that wait at one meeting point
/// taken for those that others wait for at another one: both regions would have to hold the same lanes, of which some
/// come to one point first and some to the other, though each point is on all ways from the other.
pub fn assign(regions: &[LiveRange], blocks: usize, barriers: u8) -> Vec<Assignment> {
    let levels = levels(regions, blocks);
    let all = u32::from(barriers);
    let own = match levels.iter().all(|&level| level < all) {
        true => all,
        false => all.saturating_sub(1),
    };
    let place = |level: u32| Assignment {
        number: level.min(own) as u8,
        aside: level.checked_sub(own),
    };
    levels.into_iter().map(place).collect()
}

/// By region: a number that no region which overlaps has, as low as those before leave it.
fn levels(regions: &[LiveRange], blocks: usize) -> Vec<u32> {
    let mut users = Users::default();
    let level = |region: &LiveRange| match &region.extent {
        Extent::Nested { around, .. } => *around,
        Extent::Set(inside) => users.add(&region.starts, inside, blocks),
    };
    regions.iter().map(level).collect()
}

/// The levels in use, by block.
#[derive(Default)]
struct Users {
    /// By regions that hold the block.
    inside: Vec<Levels>,
    /// By regions that start at the end of the block.
    starting: Vec<SmallVec<[u32; 2]>>,
}

impl Users {
    /// Gives a region the first level that none which is in use at a same place has.
    fn add(&mut self, starts: &[usize], inside: &BlockSet, blocks: usize) -> u32 {
        self.inside.resize_with(blocks, Levels::default);
        self.starting.resize_with(blocks, SmallVec::default);
        let mut taken = Levels::default();
        for &start in starts {
            taken.join(&self.inside[start]);
        }
        for block in inside.iter() {
            let starting = self.starting[block].iter();
            starting.for_each(|&level| taken.insert(level));
        }
        let level = taken.first_free();
        inside.iter().for_each(|b| self.inside[b].insert(level));
        starts.iter().for_each(|&s| self.starting[s].push(level));
        level
    }
}

/// A set of levels, as bits.
#[derive(Clone, Debug, Default)]
struct Levels(SmallVec<[u64; 1]>);

impl Levels {
    fn insert(&mut self, level: u32) {
        let word = level as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (level % 64);
    }

    fn join(&mut self, other: &Levels) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    fn first_free(&self) -> u32 {
        let full = self.0.iter().take_while(|word| **word == u64::MAX).count();
        let next = self.0.get(full).map_or(0, |word| word.trailing_ones());
        64 * full as u32 + next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn range(starts: &[usize], blocks: impl IntoIterator<Item = usize>) -> LiveRange {
        let inside: BlockSet = blocks.into_iter().collect();
        LiveRange {
            starts: starts.to_vec(),
            meeting: inside.iter().last().unwrap_or(0) + 1,
            call: None,
            extent: Extent::Set(inside),
        }
    }

    #[test]
    fn the_last_barrier_is_shared_when_there_are_too_many() {
        // Each overlaps with all others: none lies in another one.
        let stairs = |count: usize| -> Vec<LiveRange> {
            (0..count).map(|i| range(&[i], i..count + i)).collect()
        };
        let own = assign(&stairs(16), 40, BARRIERS);
        let alone = |number| Assignment {
            number,
            aside: None,
        };
        assert_eq!(own, (0..16).map(alone).collect::<Vec<_>>());
        let shared = assign(&stairs(19), 40, BARRIERS);
        assert_eq!(shared[..15], own[..15]);
        let aside = |level| Assignment {
            number: 15,
            aside: Some(level),
        };
        assert_eq!(shared[15..], (0..4).map(aside).collect::<Vec<_>>());
        let one = assign(&stairs(100), 200, 1);
        assert!(one.into_iter().eq((0..100).map(|level| Assignment {
            number: 0,
            aside: Some(level),
        })));
    }

    #[test]
    fn what_is_in_use_at_once_is_kept_apart() {
        let mut random = Random::for_test("barriers");
        for _ in 0..300 {
            let count = 1 + random.below(120) as usize;
            let some: Vec<LiveRange> = (0..count)
                .map(|_| {
                    let first = random.below(60) as usize;
                    let blocks = first..first + 1 + random.below(40) as usize;
                    let more = blocks.start + random.below(blocks.len() as u64) as usize;
                    match random.flip() {
                        true => range(&[first], blocks),
                        false => range(&[first, more], blocks),
                    }
                })
                .collect();
            let barriers = 1 + random.below(16) as u8;
            let found = assign(&some, 100, barriers);
            let blocks = |range: &LiveRange| match &range.extent {
                Extent::Set(blocks) => blocks.clone(),
                Extent::Nested { .. } => BlockSet::default(),
            };
            let aside = found.iter().any(|a| a.aside.is_some());
            for (a, at) in some.iter().zip(&found) {
                assert!(at.number < barriers);
                // Nobody owns the barrier that is shared.
                assert!(!aside || at.aside.is_some() == (at.number == barriers - 1));
                for (b, other) in some.iter().zip(&found) {
                    let within = |a: &LiveRange, b| a.starts.iter().any(|&s| blocks(b).contains(s));
                    let apart = std::ptr::eq(a, b) || !within(a, b) && !within(b, a);
                    assert!(apart || at != other, "{at:?} {a:?} {b:?}");
                }
            }
        }
    }
}
