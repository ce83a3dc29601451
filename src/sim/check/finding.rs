//! What the checks find, with places as the machine knows them.

use crate::launch::FindingKind;

/// A place inside the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Coordinates of the CTA.
    pub block: [u32; 3],
    /// Thread index in the CTA.
    pub thread: u32,
    /// Index of the instruction.
    pub pc: u32,
}

/// A finding inside the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFinding {
    /// What.
    pub kind: FindingKind,
    /// Where.
    pub at: Spot,
    /// Where the other thread was, if two are involved.
    pub other: Option<Spot>,
}
