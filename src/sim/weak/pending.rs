//! Accesses that a thread has issued and that are not performed yet.
//!
//! The accesses of a warp lie in a list in the order in which they were issued. Any of them may be performed next that
//! does not have to come behind an earlier one of the same thread ([`Pending::follows`]).

use crate::launch::Window;
use crate::sim::decode::action::{Access, Atomic};
use crate::sim::memory::Location;
use crate::sim::warp::registers::Operand;

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// A load to registers.
    Load(Operand, Access),
    /// A store of a value.
    Store(u128),
    /// An atomic.
    Atomic {
        /// The registers of its result.
        d: Operand,
        /// The operation.
        atomic: Atomic,
        /// Its operand, or what a compare-and-swap expects.
        source: u64,
        /// What a compare-and-swap puts there.
        swap: u64,
    },
}

/// An access of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// The thread's lane.
    pub lane: usize,
    /// Where.
    pub place: Location,
    /// Size.
    pub bytes: u32,
    /// STRONG; atomics are.
    pub strong: bool,
    /// The scoreboards that are released when it is performed: a mask.
    pub boards: u8,
    /// What is to be done.
    pub what: What,
}

/// Where the bytes of a place are, whoever the place belongs to: the allocation, and the first byte.
fn start(place: Location) -> (Option<usize>, usize) {
    match place {
        Location::Global(allocation, offset) => (Some(allocation), offset),
        Location::Shared(offset) | Location::Local(offset) => (None, offset),
    }
}

/// Bytes of a line (assigned).
const LINE: usize = 128;

impl Pending {
    /// The line that its first byte is in.
    pub fn line(&self) -> usize {
        start(self.place).1 / LINE
    }

    /// Whether it is one of global memory.
    pub fn is_global(&self) -> bool {
        matches!(self.place, Location::Global(..))
    }

    /// Whether two accesses share a byte. Local memory is never pending.
    pub fn overlaps(&self, other: &Pending) -> bool {
        let ((own, first), (others, second)) = (start(self.place), start(other.place));
        own == others
            && first < second + other.bytes as usize
            && second < first + self.bytes as usize
    }

    /// How far behind the first byte of another access it begins, if all its bytes are among those of the other.
    pub fn distance(&self, other: &Pending) -> Option<usize> {
        let ((own, first), (others, start)) = (start(self.place), start(other.place));
        let inside = first + self.bytes as usize <= start + other.bytes as usize;
        (own == others && inside)
            .then(|| first.checked_sub(start))
            .flatten()
    }

    /// Whether it has to be performed behind another one that was issued before it: one of the same thread that shares
    /// a byte, or both are atomics on one space.
    pub fn follows(&self, earlier: &Pending) -> bool {
        self.lane == earlier.lane && (self.overlaps(earlier) || self.same_space(earlier))
    }

    /// Whether both are atomics on one space.
    fn same_space(&self, other: &Pending) -> bool {
        let (What::Atomic { atomic: own, .. }, What::Atomic { atomic, .. }) =
            (self.what, other.what)
        else {
            return false;
        };
        // A generic one counts as both.
        let window = |atomic: Atomic| atomic.access.window;
        match (window(own), window(atomic)) {
            (Some(own), Some(other)) => own == other,
            (None, other) | (other, None) => other != Some(Window::Local),
        }
    }

    /// What it leaves in memory, if that is a plain value.
    pub fn stored(&self) -> Option<u128> {
        match self.what {
            What::Store(value) => Some(value),
            What::Load(..) | What::Atomic { .. } => None,
        }
    }
}

/// The access that has to be performed first so that the one at `index` can be: itself, or an earlier one.
pub(super) fn first_before(pending: &[Pending], mut index: usize) -> usize {
    while let Some(earlier) = (0..index).find(|i| pending[index].follows(&pending[*i])) {
        index = earlier;
    }
    index
}
