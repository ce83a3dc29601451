//! A part of the work, where several machines share it.
//!
//! Every machine gets the same work and another number, and takes its part by itself: nobody hands anything out. So the
//! division depends on the work and its costs alone. The dearest items go first, each to the part that has least so far
//! (Graham, "Bounds on Multiprocessing Timing Anomalies", 1969): no part takes more than 4/3 of the least time that is
//! possible.

use cranelift_thisgpu::compile::CacheKey;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Part `index` of `count`, counted from 1. Reads and prints as `1/4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Shard {
    index: u32,
    count: u32,
}

/// Parts at most: each costs a word here.
const MOST: u32 = 100_000;

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    /// The items of this part, in their order. `cost` may have any unit; what costs nothing counts as costing 1.
    pub fn items<T>(self, items: Vec<T>, cost: impl Fn(&T) -> u64) -> Vec<T> {
        let mut order: Vec<(Reverse<u64>, usize)> = items
            .iter()
            .enumerate()
            .map(|(index, item)| (Reverse(cost(item).max(1)), index))
            .collect();
        order.sort_unstable();
        let mut parts: std::collections::BinaryHeap<Reverse<(u64, u32)>> =
            (1..=self.count).map(|part| Reverse((0, part))).collect();
        let mut mine = vec![false; items.len()];
        for (Reverse(cost), index) in order {
            if let Some(mut least) = parts.peek_mut() {
                let Reverse((sum, part)) = &mut *least;
                *sum = sum.saturating_add(cost);
                mine[index] = *part == self.index;
            }
        }
        let taken = items.into_iter().zip(mine);
        taken
            .filter_map(|(item, is_mine)| is_mine.then_some(item))
            .collect()
    }

    /// The numbers of this part, of numbers that cost the same; no two parts differ by more than one.
    pub fn numbers(self, all: Range<u64>) -> Range<u64> {
        let length = u128::from(all.end.saturating_sub(all.start));
        let at = |part: u32| {
            let before = length * u128::from(part) / u128::from(self.count);
            all.start + before as u64
        };
        at(self.index - 1)..at(self.index)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    /// # Errors
    /// When it is not `I/N` with 1 ≤ I ≤ N.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| {
            Some((index.parse::<u32>().ok()?, count.parse::<u32>().ok()?))
        });
        match numbers {
            Some((index, count)) if (1..=count).contains(&index) && count <= MOST => {
                Ok(Self { index, count })
            }
            _ => Err(format!(
                "{text:?} is no part: write I/N, part I of N counted from 1, N at most {MOST}, as 1/4"
            )),
        }
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// What a report says of itself, so that only the parts of one run are joined, and all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Which part of the run it is.
    pub shard: Shard,
    /// What all parts of the run have in common: a hash of the compiler, of what it was to do, and of the costs by
    /// which that was divided.
    pub run: String,
}

impl Part {
    /// Part `shard` of the run that does `kind` with all this.
    pub fn new(shard: Shard, kind: &str, all: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let run = CacheKey::of_parts(kind, all).to_string();
        Self { shard, run }
    }

    /// The whole of the run that these reports are the parts of; with their names.
    ///
    /// # Errors
    /// When there is none, they are of different runs, one is missing, or one is there twice.
    pub fn join<'a>(parts: impl IntoIterator<Item = (&'a Part, String)>) -> Result<Part, String> {
        let mut found: BTreeMap<Shard, (&Part, String)> = BTreeMap::new();
        for (part, name) in parts {
            if let Some((_, other)) = found.get(&part.shard) {
                return Err(format!("{other} and {name} are both part {}", part.shard));
            }
            if let Some((first, other)) = found.values().next()
                && (first.run != part.run || first.shard.count != part.shard.count)
            {
                return Err(format!(
                    "{other} and {name} are parts of different runs: of other code, other work, other settings, or \
                     divided by other times"
                ));
            }
            found.insert(part.shard, (part, name));
        }
        let Some((first, _)) = found.values().next() else {
            return Err("nothing to join".into());
        };
        let count = first.shard.count;
        if found.len() != count as usize {
            let shards: Vec<String> = found.keys().map(ToString::to_string).collect();
            return Err(format!(
                "there are {count} parts, and reports of {}: {}",
                found.len(),
                shards.join(", ")
            ));
        }
        Ok(Part {
            shard: Shard::WHOLE,
            run: first.run.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(count: u32) -> impl Iterator<Item = Shard> {
        (1..=count).map(move |index| Shard { index, count })
    }

    #[test]
    fn every_item_is_in_one_part_and_parts_cost_about_the_same() {
        // Costs as files have them: many small ones, a few large ones.
        let costs: Vec<u64> = (0..500u64)
            .map(|i| 1 + (i * i * 7919 % 1000) * (1 + i / 400 * 9))
            .collect();
        let total: u64 = costs.iter().sum();
        for count in [1, 2, 3, 7, 16, 499, 501] {
            let items: Vec<usize> = (0..costs.len()).collect();
            let mut all = Vec::new();
            let mut longest = 0;
            for shard in shards(count) {
                let part = shard.items(items.clone(), |&item| costs[item]);
                assert!(part.is_sorted());
                longest = longest.max(part.iter().map(|&item| costs[item]).sum());
                all.extend(part);
            }
            all.sort_unstable();
            assert_eq!(all, items, "{count}");
            let least = total
                .div_ceil(count.into())
                .max(*costs.iter().max().unwrap());
            assert!(longest * 3 <= least * 4, "{count}: {longest} of {least}");
        }
    }

    #[test]
    fn numbers_are_divided_without_gaps() {
        for (start, end, count) in [
            (0, 10, 3),
            (5, 5, 2),
            (1, 1000, 7),
            (u64::MAX - 3, u64::MAX, 5),
        ] {
            let mut next = start;
            for shard in shards(count) {
                let part = shard.numbers(start..end);
                assert_eq!(part.start, next);
                assert!(part.end - part.start <= (end - start).div_ceil(count.into()));
                next = part.end;
            }
            assert_eq!(next, end);
        }
    }

    #[test]
    fn only_the_parts_of_one_run_are_joined() {
        let part = |shard: &str, work: &str| Part::new(shard.parse().unwrap(), "test", [work]);
        let join = |parts: &[Part]| {
            Part::join(
                parts
                    .iter()
                    .map(|part| (part, format!("report {}", part.shard))),
            )
        };
        let [first, second, third] = ["1/3", "2/3", "3/3"].map(|shard| part(shard, "a"));
        let whole = join(&[third.clone(), first.clone(), second.clone()]);
        assert_eq!(whole, Ok(part("1/1", "a")));
        for (parts, expected) in [
            (&[][..], "nothing"),
            (
                &[first.clone(), second.clone()],
                "there are 3 parts, and reports of 2: 1/3, 2/3",
            ),
            (&[second.clone(), third.clone()], "there are 3 parts"),
            (
                &[first.clone(), second.clone(), second],
                "are both part 2/3",
            ),
            (&[first.clone(), part("2/3", "b"), third], "different runs"),
            (&[first, part("2/2", "a")], "different runs"),
        ] {
            let error = join(parts).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_part_is_written_as_a_fraction() {
        assert_eq!("2/3".parse::<Shard>().unwrap().to_string(), "2/3");
        for wrong in [
            "",
            "1",
            "0/3",
            "4/3",
            "1/0",
            "-1/2",
            "1/2/3",
            "a/b",
            "1/4294967295",
        ] {
            let error = wrong.parse::<Shard>().unwrap_err();
            assert!(error.contains("I/N"), "{error}");
        }
    }
}
