//! An element that is kept in a static, where the next launch, which may get the same buffer, finds it.

use thisgpu_gpu::*;

struct Slot<T>(core::cell::UnsafeCell<Option<T>>);
// SAFETY: the value goes from thread to thread, as a mutex's would.
unsafe impl<T: Send> Sync for Slot<T> {}
static SLOT: Slot<&'static mut u32> = Slot(core::cell::UnsafeCell::new(None));

fn keep(slot: &Slot<&'static mut u32>, element: Option<&'static mut u32>) {
    // SAFETY: one thread at a time, as a mutex would see to.
    unsafe { *slot.0.get() = element };
}

#[kernel]
pub fn k(y: DisjointMut<u32>) {
    let forever: &'static mut DisjointMut<u32> = Box::leak(Box::new(y));
    keep(&SLOT, forever.thread_mut());
}

fn main() {}
