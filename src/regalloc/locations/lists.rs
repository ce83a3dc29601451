//! Lists of lists that stand in one piece of memory.

use std::ops::Range;

/// Lists by number.
#[derive(Debug)]
pub(super) struct Lists<T> {
    items: Vec<T>,
    /// Where each list begins, and where the last one ends.
    starts: Vec<u32>,
}

impl<T> Lists<T> {
    /// None yet; so many are to come.
    pub fn with_capacity(count: usize) -> Lists<T> {
        let mut starts = Vec::with_capacity(count + 1);
        starts.push(0);
        Lists {
            items: Vec::with_capacity(count),
            starts,
        }
    }

    /// Adds an item to the list that is being written.
    pub fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// The list that is being written has all of its items.
    pub fn end_list(&mut self) {
        self.starts.push(self.items.len() as u32);
    }

    /// A list.
    pub fn get(&self, number: usize) -> &[T] {
        let Range { start, end } = self.starts[number]..self.starts[number + 1];
        &self.items[start as usize..end as usize]
    }
}

impl<T: Copy + Default> Lists<T> {
    /// So many lists of these items, each with the number of its list; in a list they keep their order.
    pub fn of(count: usize, items: &[(u32, T)]) -> Lists<T> {
        let mut starts = vec![0; count + 1];
        for (list, _) in items {
            starts[*list as usize + 1] += 1;
        }
        for list in 0..count {
            starts[list + 1] += starts[list];
        }
        let mut next = starts.clone();
        let mut sorted = vec![T::default(); items.len()];
        for &(list, item) in items {
            let place = &mut next[list as usize];
            sorted[*place as usize] = item;
            *place += 1;
        }
        Lists {
            items: sorted,
            starts,
        }
    }
}
