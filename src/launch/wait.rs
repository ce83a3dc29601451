//! Who waited for whom when a launch could not go on.

use super::place::{Place, Window};
use crate::text::count;
use serde::Serialize;
use std::fmt;

/// Waits that a fault prints (*assumed*: more say nothing new).
pub(super) const SHOWN_WAITS: usize = 8;

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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

impl Awaited {
    /// What one thread does, or several do.
    fn text(&self, one: bool) -> String {
        let (wait, run) = if one {
            ("waits", "runs")
        } else {
            ("wait", "run")
        };
        match self {
            Awaited::Memory {
                window,
                address,
                bytes,
                allocation,
                writer,
            } => {
                let bytes = count(*bytes, "byte");
                let part = allocation.map_or(String::new(), |(base, size)| {
                    let offset = address.wrapping_sub(base);
                    format!(
                        " (offset {offset:#x} of {} at {base:#x})",
                        count(size, "byte")
                    )
                });
                let writer = match writer {
                    Some(writer) => format!("was last changed by {writer}"),
                    None => "no atomic and no strong store has changed".to_owned(),
                };
                format!(
                    "{wait} for {bytes} of {window} memory at {address:#x}{part}, which {writer}"
                )
            }
            Awaited::Barrier { arrived, live } => {
                let are = if *arrived == 1 { "is" } else { "are" };
                let live = count(*live, "live thread");
                format!("{wait} at the barrier of the block, where {arrived} of its {live} {are}")
            }
            Awaited::Lanes(mask) => {
                let their = if one { "its" } else { "their" };
                format!("{wait} for the lanes {mask:#010x} of {their} warp")
            }
            Awaited::Nothing => run.to_owned(),
        }
    }
}

impl fmt::Display for Awaited {
    /// Of several threads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(false))
    }
}

/// Threads that wait alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
        let (number, blocks) = (count(*threads, "thread"), count(*blocks, "block"));
        match threads {
            1 => write!(f, "{number} of {blocks} {}: {place}", awaited.text(true)),
            _ => write!(
                f,
                "{number} of {blocks} {}; the first of them: {place}",
                awaited.text(false)
            ),
        }
    }
}
