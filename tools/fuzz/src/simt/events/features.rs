//! What kernels of events may be made of, one name each, so that runs can leave some out.

use crate::random::Random;
use clap::ValueEnum;

/// A shape, or a property that shapes may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Feature {
    /// Family: graphs of blocks, see [`super::super::kernel`].
    Graph,
    /// Family: a counter says whose turn it is.
    Turns,
    /// Family: each thread waits for the flag of the one before it.
    Links,
    /// Family: a lock around data.
    Locks,
    /// Family: loops over allocations that end where the data end.
    Nests,
    /// Family: addresses that may lie outside, see [`super::super::windows`].
    Windows,
    /// Flags and locks in shared memory.
    SharedFlags,
    /// Data in another space than the flag.
    MixedSpaces,
    /// Shared memory by generic addresses.
    Generic,
    /// Flags and locks of one and two bytes.
    NarrowFlags,
    /// Flags and locks of eight bytes.
    WideFlags,
    /// Flags in allocations whose size is no multiple of four.
    OddEnds,
    /// What was read goes through a stack slot before it is looked at.
    ThroughStack,
    /// The same through a word of global memory of the thread's own.
    ThroughGlobal,
    /// The same through a word of shared memory of the thread's own.
    ThroughShared,
    /// A callee reads, and writes what it found through a pointer.
    OutParameter,
    /// The flag is read by an addition above the bits that are looked at.
    MaskedCount,
    /// The flag is read by other atomic operations than loads.
    ReadByUpdate,
    /// A reader does something else between looks.
    Sleepers,
    /// Waiting loops with several exits.
    Exits,
    /// Waiting loops in waiting loops.
    NestedWaits,
    /// What is waited for is done within the waiting loop.
    Inside,
    /// Device functions wait.
    WaitingFunctions,
    /// Device functions wait by calls in tail position.
    TailWaits,
    /// Several blocks in one order.
    Blocks,
    /// Atomic updates of narrow cells at the end of allocations.
    NarrowUpdates,
    /// Loops downwards.
    Downwards,
    /// Counters that run from a negative number to 0.
    Negative,
    /// Walking pointers.
    Pointers,
    /// Counters of 8 and 16 bits.
    NarrowCounters,
    /// Counters of 64 bits.
    WideCounters,
    /// Steps greater than 1.
    Strides,
    /// Loops that test at their end.
    Rotated,
    /// Indices beside the counter, under a condition that keeps them inside.
    Neighbours,
    /// Accesses that no turn changes, under a condition.
    Guarded,
    /// Several elements beside each other, the last ones under a condition.
    Adjacent,
    /// Loops that are left early.
    Breaks,
    /// Offsets in accesses, or pointers that begin outside of the allocation.
    Offsets,
    /// `notrap` and `readonly` where they are true.
    Flags,
    /// Arrays on the stack.
    Slots,
    /// So many values that live at once that registers do not hold them all.
    Pressure,
}

use Feature::*;

impl Feature {
    /// How many there are.
    const COUNT: u64 = Pressure as u64 + 1;

    /// All of them.
    pub fn all() -> impl Iterator<Item = Feature> {
        Feature::value_variants().iter().copied()
    }

    /// The families: each kernel is of one.
    pub const FAMILIES: [Feature; 6] = [Graph, Turns, Links, Locks, Nests, Windows];

    /// How it is called on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("none is skipped");
        value.get_name().to_string()
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Feature> {
        Feature::from_str(name, false).ok()
    }
}

/// A set of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(u64);

impl Features {
    /// All of them.
    pub const ALL: Features = Features((1 << Feature::COUNT) - 1);

    /// Those of a list.
    pub const fn of(list: &[Feature]) -> Features {
        let (mut set, mut index) = (0, 0);
        while index < list.len() {
            set |= 1 << list[index] as u64;
            index += 1;
        }
        Features(set)
    }

    /// Whether one is among them.
    pub fn has(self, feature: Feature) -> bool {
        self.0 >> feature as u64 & 1 != 0
    }

    /// All but those of a list.
    pub const fn without(self, list: &[Feature]) -> Features {
        Features(self.0 & !Features::of(list).0)
    }

    /// Without a random half of what is no family, and with one family; all of the others where there is none.
    pub fn swarm(self, random: &mut Random) -> (Feature, Features) {
        let families = Feature::FAMILIES.into_iter().filter(|f| self.has(*f));
        let families: Vec<Feature> = families.collect();
        let family = match families.is_empty() {
            true => Graph,
            false => random.pick(&families),
        };
        let half = Features(self.0 & random.bits());
        (family, half.without(&Feature::FAMILIES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again() {
        for (index, feature) in Feature::all().enumerate() {
            assert_eq!(Feature::named(&feature.name()), Some(feature));
            assert_eq!(feature as usize, index);
            assert!(Features::ALL.has(feature));
        }
        assert_eq!(Feature::named("mixed-spaces"), Some(MixedSpaces));
    }
}
