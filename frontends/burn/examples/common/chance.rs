//! Numbers by chance that are the same in every run.

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
    #[allow(dead_code, reason = "not every example draws some")]
    pub fn float(&mut self, range: Range<f32>) -> f32 {
        self.0.random_range(range)
    }

    /// A number below another.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }
}
