//! Memory of a device as faults name it: what is allocated, who did it, and how far from it an access was.

use crate::text::count;
use serde::{Serialize, Serializer};
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

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Memory that is allocated on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Allocation {
    /// Its address in global memory.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Who made it.
    pub origin: Origin,
    /// What the host calls it, if it said so.
    pub name: Option<String>,
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, address) = (count(self.bytes, "byte"), self.address);
        write!(f, "{bytes} at {address:#x}, ")?;
        match &self.name {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.origin),
        }
    }
}

/// The allocation nearest to an access that was outside of all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Near {
    /// The allocation.
    pub allocation: Allocation,
    /// Where the access begins, in bytes from the beginning of the allocation.
    pub offset: i64,
}

impl Near {
    /// Of an access at `address`.
    #[cfg(feature = "driver")]
    pub(crate) fn new(allocation: &Allocation, address: u64) -> Self {
        Self {
            allocation: allocation.clone(),
            offset: address.wrapping_sub(allocation.address) as i64,
        }
    }
}

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { allocation, offset } = self;
        let distance = match u64::try_from(*offset) {
            Err(_) => format!("{} before it", count(offset.unsigned_abs(), "byte")),
            Ok(offset) if offset >= allocation.bytes => {
                format!(
                    "{} behind its end",
                    count(offset - allocation.bytes, "byte")
                )
            }
            Ok(offset) => format!("at its byte {offset}, and ends behind it"),
        };
        write!(f, "nearest: {allocation}; the access begins {distance}")
    }
}
