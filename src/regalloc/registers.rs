//! Sets of physical registers of one class, and of all classes.

use crate::abi;
use crate::isa::{PReg, Register, RegisterClass};
use std::ops::RangeInclusive;

/// GPRs that callees keep.
pub(super) const CALLEE_SAVED: Numbers = Numbers::range(abi::CALLEE_SAVED);

/// A set of register numbers of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers([u64; 4]);

impl Numbers {
    /// Numbers below `count`.
    pub const fn below(count: u32) -> Numbers {
        let mut set = Numbers([0; 4]);
        let mut word = 0;
        while 64 * word < count && word < 4 {
            let bits = count - 64 * word;
            set.0[word as usize] = if bits < 64 { (1 << bits) - 1 } else { u64::MAX };
            word += 1;
        }
        set
    }

    /// Numbers of a range, both ends included.
    pub const fn range(range: RangeInclusive<u8>) -> Numbers {
        let mut set = Numbers::below(*range.end() as u32 + 1);
        let below = Numbers::below(*range.start() as u32);
        let mut word = 0;
        while word < 4 {
            set.0[word] &= !below.0[word];
            word += 1;
        }
        set
    }

    pub fn is_empty(&self) -> bool {
        *self == Numbers::default()
    }

    pub fn contains(&self, n: u8) -> bool {
        self.0[usize::from(n / 64)] >> (n % 64) & 1 != 0
    }

    pub fn insert(&mut self, n: u8) {
        self.0[usize::from(n / 64)] |= 1 << (n % 64);
    }

    pub fn remove(&mut self, n: u8) {
        self.0[usize::from(n / 64)] &= !(1 << (n % 64));
    }

    pub fn union(self, other: Numbers) -> Numbers {
        Numbers(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    pub fn minus(self, other: Numbers) -> Numbers {
        Numbers(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    pub fn and(self, other: Numbers) -> Numbers {
        Numbers(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// The `count` lowest members; all where there are fewer.
    pub fn lowest(self, count: u32) -> Numbers {
        let mut lowest = Numbers::default();
        self.iter()
            .take(count as usize)
            .for_each(|n| lowest.insert(n));
        lowest
    }

    pub fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Members from low to high.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let Numbers(mut left) = self;
        let mut word = 0;
        std::iter::from_fn(move || {
            while left[word] == 0 {
                if word == 3 {
                    return None;
                }
                word += 1;
            }
            let bit = left[word].trailing_zeros();
            left[word] &= left[word] - 1;
            Some(64 * word as u8 + bit as u8)
        })
    }

    /// The numbers that are `distance` below members, which must be less than 4 and lie in the same aligned four.
    pub fn below_by(self, distance: u8) -> Numbers {
        Numbers(self.0.map(|w| w >> distance))
    }

    /// The other numbers of the aligned pairs that the members are in.
    pub fn partners(self) -> Numbers {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        Numbers(self.0.map(|w| (w & EVEN) << 1 | w >> 1 & EVEN))
    }

    /// All multiples of a width.
    pub fn aligned(width: usize) -> Numbers {
        Numbers([u64::MAX; 4]).runs(width)
    }

    /// The lowest member that is good.
    pub fn find(self, mut good: impl FnMut(u8) -> bool) -> Option<u8> {
        for (i, mut word) in (0u8..).zip(self.0) {
            while word != 0 {
                let n = i * 64 + word.trailing_zeros() as u8;
                if good(n) {
                    return Some(n);
                }
                word &= word - 1;
            }
        }
        None
    }

    /// The lowest member.
    pub fn first(self) -> Option<u8> {
        self.find(|_| true)
    }

    /// The highest member.
    pub fn last(&self) -> Option<u8> {
        (0..4)
            .rev()
            .find(|&i| self.0[i] != 0)
            .map(|i| (i as u32 * 64 + 63 - self.0[i].leading_zeros()) as u8)
    }

    /// Members whose `width - 1` followers are members as well and whose number is a multiple of `width`.
    pub fn runs(self, width: usize) -> Numbers {
        // Runs are aligned, so they never cross a word.
        match width {
            1 => self,
            2 => Numbers(self.0.map(|w| w & (w >> 1) & 0x5555_5555_5555_5555)),
            _ => Numbers(self.0.map(|w| {
                let pairs = w & (w >> 1) & 0x5555_5555_5555_5555;
                pairs & (pairs >> 2) & 0x1111_1111_1111_1111
            })),
        }
    }
}

/// A set of registers of all classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RegisterSet([Numbers; 3]);

impl RegisterSet {
    pub fn of(&self, class: RegisterClass) -> &Numbers {
        &self.0[class as usize]
    }

    pub fn of_mut(&mut self, class: RegisterClass) -> &mut Numbers {
        &mut self.0[class as usize]
    }

    pub fn insert(&mut self, r: PReg) {
        self.of_mut(r.class()).insert(r.number());
    }

    pub fn union(&self, other: &RegisterSet) -> RegisterSet {
        RegisterSet(std::array::from_fn(|i| self.0[i].union(other.0[i])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_runs() {
        let set = Numbers::below(12).minus(Numbers::range(5..=5));
        assert_eq!(set.runs(2).iter().collect::<Vec<_>>(), [0, 2, 6, 8, 10]);
        assert_eq!(set.runs(4).iter().collect::<Vec<_>>(), [0, 8]);
        assert_eq!(set.last(), Some(11));
        assert_eq!(Numbers::below(255).last(), Some(254));
        assert_eq!(
            Numbers::range(63..=65).iter().collect::<Vec<_>>(),
            [63, 64, 65]
        );
    }
}
