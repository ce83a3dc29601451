//! A heap of the crate's own: an allocator that gives out a static piece by piece and takes nothing back.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thisgpu_gpu::*;

/// Bytes that all threads of a launch have together.
#[cfg(thisgpu)]
const BYTES: usize = 1 << 16;

#[cfg(thisgpu)]
mod bump {
    use super::BYTES;
    use core::alloc::{GlobalAlloc, Layout};
    use core::cell::UnsafeCell;
    use core::sync::atomic::{AtomicUsize, Ordering};

    #[repr(align(16))]
    struct Heap {
        bytes: UnsafeCell<[u8; BYTES]>,
        taken: AtomicUsize,
    }

    // SAFETY: every byte is given out once.
    unsafe impl Sync for Heap {}

    // SAFETY: pieces lie in the heap, are as large and aligned as asked for, and have nothing in common.
    unsafe impl GlobalAlloc for Heap {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let room = layout.size() + layout.align();
            let taken = self.taken.fetch_add(room, Ordering::Relaxed);
            if taken + room > BYTES {
                return core::ptr::null_mut();
            }
            let start = self.bytes.get().cast::<u8>().wrapping_add(taken);
            start.wrapping_add(start.align_offset(layout.align()))
        }

        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    #[global_allocator]
    static HEAP: Heap = Heap {
        bytes: UnsafeCell::new([0; BYTES]),
        taken: AtomicUsize::new(0),
    };
}

/// Collections, boxed closures and maps in a kernel: each thread counts how often remainders occur.
#[kernel]
pub fn remainders(x: &[u32], mut out: DisjointMut<u32>) {
    let by: Box<dyn Fn(u32) -> u32> = {
        let t = thread::index_x();
        Box::new(move |value| value % (t + 2))
    };
    let found: Vec<u32> = x.iter().map(|value| by(*value)).collect();
    let mut counts = BTreeMap::new();
    for remainder in &found {
        *counts.entry(*remainder).or_insert(0u32) += 1;
    }
    if let (Some(most), Some(out)) = (counts.values().max(), out.thread_mut()) {
        *out = *most;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[kernel_test(threads = 8)]
    fn vectors_grow() {
        let mut squares = Vec::new();
        for i in 0..20 {
            squares.push(i * i);
        }
        assert_eq!(squares.iter().sum::<u32>(), 2470);
        assert_eq!(squares.len(), 20);
    }
}
