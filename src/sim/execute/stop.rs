//! How the machine stops: the reason and the lane; the launch adds what it knows of the place
//! ([`crate::launch::Fault`]).

use crate::launch::FaultKind;

/// A reason and the lane it belongs to: how the machine stops.
#[derive(Debug)]
pub struct Stop {
    /// Why.
    pub kind: FaultKind,
    /// The lowest lane concerned.
    pub lane: u8,
}

impl Stop {
    /// A boxed stop, so that results stay small.
    pub fn new(kind: FaultKind, lane: usize) -> Box<Stop> {
        Box::new(Stop {
            kind,
            lane: lane as u8,
        })
    }

    /// A stop that concerns all lanes of a mask.
    pub fn lanes(kind: FaultKind, mask: u32) -> Box<Stop> {
        Stop::new(kind, (mask.trailing_zeros() & 31) as usize)
    }
}

/// A stop, its warp and the instruction's index.
#[derive(Debug)]
pub struct Stopped {
    /// Why.
    pub stop: Box<Stop>,
    /// Index of the warp.
    pub warp: usize,
    /// Index of the instruction.
    pub pc: u32,
}
