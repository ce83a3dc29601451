//! Numbers by chance that are the same in every run.

use rand::distr::uniform::SampleUniform;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::ops::Range;

/// A source of numbers.
pub struct Chance(StdRng);

impl Chance {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Chance {
        Chance(StdRng::seed_from_u64(seed))
    }

    /// A number in a range.
    pub fn number<T: SampleUniform + PartialOrd>(&mut self, range: Range<T>) -> T {
        self.0.random_range(range)
    }
}
