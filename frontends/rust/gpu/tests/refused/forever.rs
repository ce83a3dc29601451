//! A reference that outlives the launch.

use thisgpu_gpu::*;

static LAST: core::sync::atomic::AtomicPtr<u32> =
    core::sync::atomic::AtomicPtr::new(core::ptr::null_mut());
#[kernel]
pub fn k(x: &'static [u32]) {
    LAST.store(x.as_ptr().cast_mut(), core::sync::atomic::Ordering::Relaxed);
}

fn main() {}
