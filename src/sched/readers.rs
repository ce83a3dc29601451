//! Slow readers that may still read their sources, by what tells that they have.
//!
//! Two scoreboards can tell it: the one for the sources, and the one for the results, which arrive later. An
//! instruction that overwrites a source need not wait for the first where it waits for the second anyway, so both are
//! kept together.

use super::access::Resource;
use super::synchronization::Boards;
use crate::isa::control::SCOREBOARDS;

/// Place of "no scoreboard" in a [`Ways`].
const NONE: u32 = SCOREBOARDS as u32;

/// A set of pairs of scoreboards, for the sources and for the results of an instruction; either may be missing, not
/// both.
///
/// Bit `8 * sources + results`, 6 for a scoreboard that is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways(u64);

impl Ways {
    /// The pair of an instruction.
    fn of(boards: Boards) -> Ways {
        let number = |mask: u8| match mask {
            0 => NONE,
            mask => mask.trailing_zeros(),
        };
        Ways(1 << (8 * number(boards.read) + number(boards.write)))
    }

    /// The pairs without any of these scoreboards.
    fn none_of(boards: u8) -> Ways {
        let (mut taken, mut left) = (0, boards);
        while left != 0 {
            let board = left.trailing_zeros();
            taken |= 0xff << (8 * board) | 0x0001_0101_0101_0101 << board;
            left &= left - 1;
        }
        Ways(!taken)
    }

    /// What is not complete when these scoreboards are zero.
    fn without(self, zero: u8) -> Ways {
        Ways(self.0 & Ways::none_of(zero).0)
    }

    /// Scoreboards that must be waited for, beside those of `wait`, until all is complete; none of them can be left
    /// out.
    pub fn missing(self, wait: u8) -> u8 {
        if self.0 == 0 {
            return 0;
        }
        let mut left = self.without(wait);
        if left.0 == 0 {
            return 0;
        }
        // The results of an instruction that signals nothing else, then the sources, which are there first.
        let results = (left.0 >> (8 * NONE)) as u8;
        left = left.without(results);
        let sources = (0..SCOREBOARDS).filter(|b| left.0 >> (8 * b) & 0xff != 0);
        let mut chosen = sources.fold(results, |mask, b| mask | 1 << b);
        for board in 0..SCOREBOARDS {
            let fewer = chosen & !(1 << board);
            if fewer != chosen && self.without(wait | fewer).0 == 0 {
                chosen = fewer;
            }
        }
        chosen
    }
}

/// Resources that may still be read, in ascending order: few at a time.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Readers(Vec<(Resource, Ways)>);

impl Readers {
    /// Who may still read any of these resources.
    pub fn of(&self, resources: impl Iterator<Item = Resource>) -> Ways {
        if self.0.is_empty() {
            return Ways::default();
        }
        let found = resources.filter_map(|r| self.0.binary_search_by_key(&r, |e| e.0).ok());
        found.fold(Ways::default(), |all, i| Ways(all.0 | self.0[i].1.0))
    }

    /// All of them.
    pub fn all(&self) -> Ways {
        let all = self.0.iter();
        all.fold(Ways::default(), |all, entry| Ways(all.0 | entry.1.0))
    }

    /// An instruction with these scoreboards reads a resource.
    pub fn add(&mut self, resource: Resource, boards: Boards) {
        let ways = Ways::of(boards);
        match self.0.binary_search_by_key(&resource, |e| e.0) {
            Ok(index) => self.0[index].1.0 |= ways.0,
            Err(index) => self.0.insert(index, (resource, ways)),
        }
    }

    /// Nobody reads anything.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Becomes the readers on another path.
    pub fn copy_from(&mut self, other: &Readers) {
        self.0.clone_from(&other.0);
    }

    /// Scoreboards have become zero.
    pub fn waited(&mut self, zero: u8) {
        if self.0.is_empty() {
            return;
        }
        let left = Ways::none_of(zero);
        self.0.retain_mut(|entry| {
            entry.1.0 &= left.0;
            entry.1.0 != 0
        });
    }

    /// Takes over the readers on another path; whether there were others.
    pub fn merge(&mut self, other: &Readers) -> bool {
        merge(&mut self.0, &other.0, |mine, theirs| {
            Ways(mine.0 | theirs.0)
        })
    }
}

/// Merges what is known of resources on another path, in ascending order, into what is known on this one; whether
/// anything changed. `worse` joins what is known on both.
pub fn merge<T: Copy + PartialEq>(
    mine: &mut Vec<(Resource, T)>,
    theirs: &[(Resource, T)],
    worse: impl Fn(T, T) -> T,
) -> bool {
    let mut changed = false;
    let mut new = 0;
    let mut at = 0;
    for &(resource, other) in theirs {
        while at < mine.len() && mine[at].0 < resource {
            at += 1;
        }
        match mine.get_mut(at) {
            Some((same, own)) if *same == resource => {
                let both = worse(*own, other);
                changed |= both != *own;
                *own = both;
            }
            _ => new += 1,
        }
    }
    if new == 0 {
        return changed;
    }
    // From the end on, so that each entry is moved once.
    let mut from = mine.len();
    let mut to = from + new;
    mine.resize(to, theirs[0]);
    for &entry in theirs.iter().rev() {
        while from > 0 && mine[from - 1].0 > entry.0 {
            (from, to) = (from - 1, to - 1);
            mine[to] = mine[from];
        }
        if from == 0 || mine[from - 1].0 != entry.0 {
            to -= 1;
            mine[to] = entry;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(pairs: &[(u8, u8)]) -> Ways {
        let boards = pairs.iter().map(|&(read, write)| Boards { read, write });
        boards.fold(Ways::default(), |all, b| Ways(all.0 | Ways::of(b).0))
    }

    #[test]
    fn results_tell_that_sources_were_read() {
        let both = ways(&[(0b1, 0b10)]);
        assert_eq!(both.missing(0), 0b1, "the sources are read first");
        assert_eq!(both.missing(0b10), 0);
        assert_eq!(both.missing(0b100), 0b1);
        let alone = ways(&[(0, 0b10)]);
        assert_eq!(alone.missing(0), 0b10);
        assert_eq!(ways(&[(0b1, 0b10), (0, 0b10)]).missing(0), 0b10);
        // The sources of the third are read when the results of the second are there.
        assert_eq!(ways(&[(0b1, 0), (0b100, 0b1)]).missing(0), 0b1);
    }

    #[test]
    fn what_is_missing_suffices_and_none_of_it_can_be_left_out() {
        let mut random = crate::isa::random::Random::new(5);
        for _ in 0..20_000 {
            let count = 1 + random.below(6);
            let board = |random: &mut crate::isa::random::Random| match random.below(7) {
                6 => 0,
                b => 1u8 << b,
            };
            let pairs: Vec<(u8, u8)> = (0..count)
                .map(|_| (board(&mut random), board(&mut random)))
                .filter(|(r, w)| r | w != 0)
                .collect();
            let wait = random.below(64) as u8 & random.below(64) as u8;
            let missing = ways(&pairs).missing(wait);
            let complete = |zero: u8| pairs.iter().all(|(r, w)| (r | w) & zero != 0);
            assert!(missing & wait == 0 && complete(wait | missing));
            let bits = (0..SCOREBOARDS).filter(|b| missing >> b & 1 != 0);
            for bit in bits {
                assert!(
                    !complete(wait | missing & !(1 << bit)),
                    "{pairs:?} {wait:#b}"
                );
            }
        }
    }

    #[test]
    fn merging_is_the_union() {
        let resource = |n| Resource::barrier(n);
        let boards = |read, write| Boards { read, write };
        let (mut a, mut b) = (Readers::default(), Readers::default());
        a.add(resource(3), boards(1, 0));
        a.add(resource(1), boards(0, 2));
        b.add(resource(2), boards(4, 2));
        b.add(resource(3), boards(8, 0));
        assert!(a.merge(&b) && !a.merge(&b));
        assert_eq!(a.of([resource(3)].into_iter()), ways(&[(1, 0), (8, 0)]));
        a.waited(2);
        assert_eq!(a.all(), ways(&[(1, 0), (8, 0)]));
    }
}
