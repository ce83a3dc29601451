//! Variables that are there as long as a launch, or longer.

use serde::{Deserialize, Serialize};

/// A static variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Static {
    /// Its name in the language, with its path.
    pub name: String,
    /// Its type, by number in the list of types.
    pub ty: u32,
    /// Where it is.
    pub place: StaticPlace,
}

/// Where a static variable is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StaticPlace {
    /// In global memory: the symbol of its data.
    Data(String),
    /// In shared memory of the block.
    Shared {
        /// Offset in bytes.
        offset: u32,
        /// The symbols of the kernels in which it is there.
        kernels: Vec<String>,
    },
}
