//! Short lists by register, all in one vector.

use crate::isa::VReg;

/// No item.
const END: u32 = u32::MAX;

/// A list for each register, most of them empty.
pub(super) struct Lists<T> {
    first: Vec<u32>,
    /// Items, each with the place of the next of its list.
    items: Vec<(T, u32)>,
}

impl<T: Copy> Lists<T> {
    /// For so many registers.
    pub fn new(registers: usize) -> Self {
        Lists {
            first: vec![END; registers],
            items: Vec::new(),
        }
    }

    /// Puts an item before the others of a register.
    pub fn push(&mut self, reg: VReg, item: T) {
        let first = &mut self.first[reg.index()];
        self.items.push((item, *first));
        *first = self.items.len() as u32 - 1;
    }

    /// Those of a register, the last one first.
    pub fn of(&self, reg: VReg) -> impl Iterator<Item = T> + '_ {
        let mut at = self.first[reg.index()];
        std::iter::from_fn(move || {
            let &(item, next) = self.items.get(at as usize)?;
            at = next;
            Some(item)
        })
    }

    /// Whether a register has none.
    pub fn is_empty(&self, reg: VReg) -> bool {
        self.first[reg.index()] == END
    }
}
