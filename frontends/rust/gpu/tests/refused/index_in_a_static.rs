//! An index that another thread finds.

use thisgpu_gpu::*;

struct Slot<T>(core::cell::UnsafeCell<Option<T>>);
// SAFETY: the value goes from thread to thread, as a mutex's would.
unsafe impl<T: Send> Sync for Slot<T> {}
static SLOT: Slot<Index1> = Slot(core::cell::UnsafeCell::new(None));

fn main() {}
