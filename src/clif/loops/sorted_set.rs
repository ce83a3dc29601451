//! Sets of blocks, instructions or values of one loop.
//!
//! A set of bits is as large as the largest number in it, which may be the size of the function: made anew for each
//! loop, such sets would take the square of it. These are as large as what is in them, and loops that are asked about
//! in detail are small.

use std::iter::Copied;
use std::slice::Iter;

/// A set in the order of its members.
#[derive(Clone, Debug)]
pub(super) struct SortedSet<T>(Vec<T>);

impl<T: Copy + Ord> SortedSet<T> {
    /// Adds `member`; whether it was not there.
    pub(super) fn insert(&mut self, member: T) -> bool {
        let place = self.0.binary_search(&member);
        if let Err(place) = place {
            self.0.insert(place, member);
        }
        place.is_err()
    }

    pub(super) fn contains(&self, member: T) -> bool {
        self.0.binary_search(&member).is_ok()
    }

    pub(super) fn iter(&self) -> Copied<Iter<'_, T>> {
        self.0.iter().copied()
    }
}

impl<T> Default for SortedSet<T> {
    fn default() -> Self {
        SortedSet(Vec::new())
    }
}

impl<T: Copy + Ord> Extend<T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, members: I) {
        self.0.extend(members);
        self.0.sort_unstable();
        self.0.dedup();
    }
}

impl<T: Copy + Ord> FromIterator<T> for SortedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> Self {
        let mut set = SortedSet::default();
        set.extend(members);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::SortedSet;

    #[test]
    fn members_are_there_once_and_in_order() {
        let mut set: SortedSet<u32> = [7, 3, 7, 5].into_iter().collect();
        assert!(set.insert(4));
        assert!(!set.insert(3));
        set.extend([9, 1, 4]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [1, 3, 4, 5, 7, 9]);
        assert!(set.contains(5) && !set.contains(6));
    }
}
