//! What is allocated on a device, and who did it.

use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;

/// Who made an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A call at this place of the host's program.
    Host(&'static Location<'static>),
    /// Loading a module, for the data object of this name.
    Data(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Host(place) => write!(f, "allocated at {place}"),
            Origin::Data(name) => write!(f, "data `{name}` of a module"),
        }
    }
}

/// Memory that is allocated on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allocation {
    /// Its address in global memory.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Who made it.
    pub origin: Origin,
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Allocation {
            address,
            bytes,
            origin,
        } = self;
        write!(f, "{bytes} bytes at {address:#x}, {origin}")
    }
}

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

    /// In the order in which they were made.
    pub(super) fn list(&self) -> Vec<Allocation> {
        self.live.values().cloned().collect()
    }
}
