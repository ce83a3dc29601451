//! What is allocated on a device, and who did it.

use crate::launch::{Allocation, Near, Origin};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// All of a device.
#[derive(Debug, Default)]
pub(super) struct Allocations {
    /// The number of each, by its address.
    numbers: HashMap<u64, u64>,
    /// In the order in which they were made.
    live: BTreeMap<u64, Allocation>,
    /// Allocations that were made.
    made: u64,
    /// Whether those that are left at the device's end are reported.
    pub check: bool,
}

impl Allocations {
    pub(super) fn add(&mut self, address: u64, bytes: u64, origin: Origin) {
        let allocation = Allocation {
            address,
            bytes,
            origin,
            name: None,
        };
        self.numbers.insert(address, self.made);
        self.live.insert(self.made, allocation);
        self.made += 1;
    }

    pub(super) fn remove(&mut self, address: u64) {
        if let Some(number) = self.numbers.remove(&address) {
            self.live.remove(&number);
        }
    }

    /// Says what the host calls the allocation that begins at an address.
    pub(super) fn set_name(&mut self, address: u64, name: String) {
        let number = self.numbers.get(&address);
        if let Some(allocation) = number.and_then(|number| self.live.get_mut(number)) {
            allocation.name = Some(name);
        }
    }

    /// The allocation that is the fewest bytes away from an address; of several the first that was made.
    pub(super) fn nearest(&self, address: u64) -> Option<Near> {
        let distance = |allocation: &&Allocation| {
            let last = allocation.address + allocation.bytes.saturating_sub(1);
            let before = allocation.address.saturating_sub(address);
            before.max(address.saturating_sub(last))
        };
        let nearest = self.live.values().min_by_key(distance)?;
        Some(Near::new(nearest, address))
    }

    /// In the order in which they were made.
    pub(super) fn list(&self) -> Vec<Allocation> {
        self.live.values().cloned().collect()
    }
}
