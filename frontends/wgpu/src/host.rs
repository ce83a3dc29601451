//! Memory of the host that a program maps: it hands out pointers, and copies by them.

use bytemuck::allocation::try_zeroed_slice_box;
use std::ops::Range;
use std::ptr::NonNull;

/// Zeroed memory that begins at a multiple of 16 bytes and stays where it is.
pub(crate) struct HostMemory {
    words: NonNull<[u128]>,
    bytes: usize,
}

// SAFETY: it is plain bytes that it owns. Who reads and writes them at what time is the caller's affair, as wgpu-hal
// has it for mapped memory.
unsafe impl Send for HostMemory {}
// SAFETY: as above.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// So many bytes; none if the host has no room.
    pub fn new(bytes: u64) -> Option<HostMemory> {
        let bytes = usize::try_from(bytes).ok()?;
        let words = try_zeroed_slice_box::<u128>(bytes.div_ceil(size_of::<u128>())).ok()?;
        Some(HostMemory {
            words: NonNull::from(Box::leak(words)),
            bytes,
        })
    }

    /// The beginning of a range; none if it is not inside.
    pub fn pointer(&self, range: &Range<u64>) -> Option<NonNull<u8>> {
        let start = usize::try_from(range.start).ok()?;
        let end = usize::try_from(range.end).ok()?;
        if start > end || end > self.bytes {
            return None;
        }
        // SAFETY: `start` is inside the memory or at its end.
        Some(unsafe { self.words.cast::<u8>().add(start) })
    }

    /// The bytes of a range; none if it is not inside.
    ///
    /// # Safety
    /// Nobody writes them as long as they are borrowed.
    pub unsafe fn bytes(&self, range: &Range<u64>) -> Option<&[u8]> {
        let start = self.pointer(range)?;
        // SAFETY: the range is inside, as `pointer` found; the caller sees to the rest.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), length(range)) })
    }

    /// The bytes of a range, to be written; none if it is not inside.
    ///
    /// # Safety
    /// Nobody else reads or writes them as long as they are borrowed.
    #[expect(clippy::mut_from_ref, reason = "the caller answers for that")]
    pub unsafe fn bytes_mut(&self, range: &Range<u64>) -> Option<&mut [u8]> {
        let start = self.pointer(range)?;
        // SAFETY: as in `bytes`.
        Some(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length(range)) })
    }

    /// Copies a range to another place of the same memory or of another one, as if all were read before anything is
    /// written. Whether both are inside.
    ///
    /// # Safety
    /// Nobody else writes the one or uses the other meanwhile.
    pub unsafe fn copy(&self, from: &Range<u64>, other: &HostMemory, to: &Range<u64>) -> bool {
        let (Some(source), Some(target)) = (self.pointer(from), other.pointer(to)) else {
            return false;
        };
        // SAFETY: both ranges are inside, as `pointer` found, and have the smaller of the two lengths.
        unsafe { source.copy_to(target, length(from).min(length(to))) };
        true
    }
}

/// Bytes of a range that is inside of some memory.
fn length(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and nothing else frees it.
        drop(unsafe { Box::from_raw(self.words.as_ptr()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_inside_and_aligned() {
        let memory = HostMemory::new(20).expect("there is room");
        assert!(
            memory
                .pointer(&(0..20))
                .is_some_and(|p| p.addr().get() % 16 == 0)
        );
        assert!(memory.pointer(&(20..20)).is_some());
        assert!(memory.pointer(&(0..21)).is_none());
        assert!(memory.pointer(&Range { start: 8, end: 4 }).is_none());
        assert!(HostMemory::new(u64::MAX).is_none());
    }

    #[test]
    fn copies_may_overlap() {
        let memory = HostMemory::new(16).expect("there is room");
        // SAFETY: nobody else has the memory, and the borrow ends with the statement.
        unsafe {
            let bytes = memory.bytes_mut(&(0..16)).expect("it is inside");
            bytes.copy_from_slice(&std::array::from_fn::<u8, 16, _>(|n| n as u8));
            assert!(memory.copy(&(0..8), &memory, &(4..12)));
            assert!(!memory.copy(&(0..8), &memory, &(12..20)));
            let bytes = memory.bytes(&(0..16)).expect("it is inside");
            assert_eq!(bytes, [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15]);
        }
    }
}
