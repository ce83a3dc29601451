//! How instructions take part in the orders of memory (`docs/memory.md`).
//!
//! Lowering says of each access what CLIF says of it ([`MemoryOrder`]); every phase behind it keeps that beside the
//! instruction ([`super::Entry::order`]), and [`MemoryEffect`] is what it means for those that move
//! instructions or decide what they wait for.

use super::Entry;
use crate::isa::table::Effects;
use crate::isa::{Inst, Optype, Register};
use serde::{Deserialize, Serialize};

/// What CLIF says of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryOrder {
    /// Nobody else sees or changes what it accesses: it takes part in no order.
    Private,
    /// A plain access, which keeps to its side of ordered ones.
    #[default]
    Weak,
    /// An atomic one without an order of its own: as far as other addresses go, a plain one.
    Relaxed,
    /// Sequentially consistent, and so a release, an acquire or both; of a MEMBAR, that it stands there for such an
    /// access.
    Ordered,
}

/// What an access that others may see does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryEffect {
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// It does both at one time, and keeps its order with others of its space.
    Atomic(AtomicSpace),
    /// It orders all that stands before it against all that stands behind: MEMBAR, BAR, WARPSYNC.
    Fence,
}

/// The space of an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicSpace {
    /// ATOMG, RED.
    Global,
    /// ATOMS.
    Shared,
    /// ATOM: both.
    Generic,
}

/// Memory that other threads see.
const SEEN: Effects = Effects::GLOBAL
    .union(Effects::SHARED)
    .union(Effects::GENERIC);

impl AtomicSpace {
    /// All of them.
    pub const ALL: [AtomicSpace; 3] = [
        AtomicSpace::Global,
        AtomicSpace::Shared,
        AtomicSpace::Generic,
    ];

    /// Whether the machine performs operations on the two in the order of issue.
    pub fn is_ordered_with(self, other: AtomicSpace) -> bool {
        self == other || self == AtomicSpace::Generic || other == AtomicSpace::Generic
    }
}

impl MemoryEffect {
    /// What an instruction does in memory that others see, if anything.
    pub fn of<R: Register>(inst: &Inst<R>) -> Option<MemoryEffect> {
        let optype = inst.optype();
        if matches!(optype, Optype::MEMBAR | Optype::BAR | Optype::WARPSYNC) {
            return Some(MemoryEffect::Fence);
        }
        let effects = optype.info().effects;
        if !effects.intersects(SEEN) {
            return None;
        }
        if effects.contains(Effects::ATOMIC) {
            return Some(MemoryEffect::Atomic(if optype == Optype::RED {
                // By a generic address it may be another space, but it keeps its order with that one only.
                AtomicSpace::Global
            } else if effects.contains(Effects::GENERIC) {
                AtomicSpace::Generic
            } else if effects.contains(Effects::SHARED) {
                AtomicSpace::Shared
            } else {
                AtomicSpace::Global
            }));
        }
        if effects.contains(Effects::STORE) {
            return Some(MemoryEffect::Store);
        }
        effects
            .contains(Effects::LOAD)
            .then_some(MemoryEffect::Load)
    }
}

impl<R: Register> Entry<R> {
    /// What it does in memory that others see, if it takes part in orders.
    pub fn part(&self) -> Option<MemoryEffect> {
        match self.order {
            MemoryOrder::Private => None,
            _ => MemoryEffect::of(&self.inst),
        }
    }

    /// Whether it is an access that others are ordered against.
    pub fn is_ordered(&self) -> bool {
        self.order == MemoryOrder::Ordered && MemoryEffect::of(&self.inst).is_some()
    }
}
