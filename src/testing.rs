//! What tests of several modules share: a small seeded generator that likes corner cases.

use crate::isa::random::Random as Sequence;

/// A sequence of numbers that likes corner cases.
pub struct Random(Sequence);

impl Random {
    /// A generator for the test `name`, seeded from `THISGPU_SEED` (a number) or 1. Prints the seed, for failing tests
    /// to show.
    pub fn for_test(name: &str) -> Self {
        let seed = std::env::var("THISGPU_SEED")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(1u64);
        println!("{name}: THISGPU_SEED={seed}");
        let name = name.bytes().fold(0u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Self(Sequence::new(seed ^ name))
    }

    /// 64 independent bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    /// A fair coin.
    pub fn flip(&mut self) -> bool {
        self.bits() & 1 != 0
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// 64 bits, often near zero, near all ones, or near a power of two.
    pub fn long(&mut self) -> u64 {
        let small = self.below(5).wrapping_sub(2);
        match self.below(8) {
            0 => small,
            1 => (1u64 << self.below(64)).wrapping_add(small),
            2 => !(1u64 << self.below(64)).wrapping_add(small),
            3 => self.bits() >> self.below(64),
            4 => (u64::MAX << self.below(64)).wrapping_add(small),
            _ => self.bits(),
        }
    }

    /// 32 bits of the same kind.
    pub fn word(&mut self) -> u32 {
        match self.below(8) {
            0 => self.below(70) as u32,
            1 => (1u32 << self.below(32))
                .wrapping_add(self.below(5) as u32)
                .wrapping_sub(2),
            2 => (i32::MIN as u32 >> self.below(32)).wrapping_sub(self.below(3) as u32),
            3 => (self.bits() as u32) >> self.below(32),
            4 => u32::MAX << self.below(32),
            _ => self.bits() as u32,
        }
    }
}
