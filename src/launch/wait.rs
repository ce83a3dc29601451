//! Who waited for whom when a launch could not go on.

use super::fault::{Place, Window};
use crate::text::count;
use std::fmt;

/// Waits that a fault prints (*assumed*: more say nothing new).
pub(super) const SHOWN_WAITS: usize = 8;

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Awaited {
    /// It reads a place again and again.
    Memory {
        /// Global or shared memory.
        window: Window,
        /// Address in global memory, or offset in shared memory.
        address: u64,
        /// Size of the access.
        bytes: u32,
        /// Of global memory, the address of the allocation and its bytes.
        allocation: Option<(u64, u64)>,
        /// Where the last atomic or strong store was that changed it, when one did: the one that holds a lock.
        writer: Option<Box<Place>>,
    },
    /// BAR.SYNC of the block.
    Barrier {
        /// Threads of the block that wait there.
        arrived: u32,
        /// Threads of the block that have not ended.
        live: u32,
    },
    /// BSYNC or WARPSYNC: other lanes of its warp.
    Lanes(u32),
    /// Nothing that is known: it was running.
    Nothing,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Awaited::Memory {
                window,
                address,
                bytes,
                allocation,
                writer,
            } => {
                let bytes = count(*bytes, "byte");
                write!(f, "wait for {bytes} of {window} memory at {address:#x}")?;
                if let Some((base, size)) = allocation {
                    let offset = address.wrapping_sub(*base);
                    write!(f, " (offset {offset:#x} of {size} bytes at {base:#x})")?;
                }
                match writer {
                    Some(writer) => write!(f, ", which was last changed by {writer}"),
                    None => f.write_str(", which no atomic and no strong store has changed"),
                }
            }
            Awaited::Barrier { arrived, live } => write!(
                f,
                "wait at the barrier of the block, where {arrived} of its {live} live threads are"
            ),
            Awaited::Lanes(mask) => write!(f, "wait for the lanes {mask:#010x} of their warp"),
            Awaited::Nothing => f.write_str("run"),
        }
    }
}

/// Threads that wait alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Where the first of them is.
    pub place: Place,
    /// How many.
    pub threads: u64,
    /// In how many blocks.
    pub blocks: u64,
    /// For what.
    pub awaited: Awaited,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wait {
            place,
            threads,
            blocks,
            awaited,
        } = self;
        let (threads, blocks) = (count(*threads, "thread"), count(*blocks, "block"));
        write!(
            f,
            "{threads} of {blocks} {awaited}; the first of them: {place}"
        )
    }
}
