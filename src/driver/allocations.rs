//! What is allocated on a device, and who did it.

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

/// All of a device, by address.
#[derive(Debug, Default)]
pub(super) struct Allocations {
    live: BTreeMap<u64, (u64, Origin)>,
    /// Whether those that are left at the device's end are reported.
    pub check: bool,
}

impl Allocations {
    pub(super) fn add(&mut self, address: u64, bytes: u64, origin: Origin) {
        self.live.insert(address, (bytes, origin));
    }

    pub(super) fn remove(&mut self, address: u64) {
        self.live.remove(&address);
    }

    pub(super) fn list(&self) -> Vec<Allocation> {
        let live = self.live.iter();
        live.map(|(&address, (bytes, origin))| Allocation {
            address,
            bytes: *bytes,
            origin: origin.clone(),
        })
        .collect()
    }
}
