//! Atomics that `core::sync::atomic` lacks. Integers are `core`'s own: take `&[AtomicU32]` as a parameter and call
//! `fetch_add`.
//!
//! Scopes agree: `core`'s orders hold among all threads that can see the place, which is the block for shared memory
//! and the device for global memory. A relaxed load costs nothing; every other order is the strongest.

use core::cell::UnsafeCell;

/// A float that threads add to.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct AtomicF32(UnsafeCell<f32>);

// SAFETY: all that changes it is one atomic operation of the device; on the host a compare-and-swap of its bits.
unsafe impl Sync for AtomicF32 {}

impl AtomicF32 {
    /// One with this value.
    pub const fn new(value: f32) -> AtomicF32 {
        AtomicF32(UnsafeCell::new(value))
    }

    /// Adds, and gives what was there: one instruction.
    #[inline(always)]
    pub fn fetch_add(&self, value: f32) -> f32 {
        crate::device::atomic_add_f32(self.0.get(), value)
    }

    /// What is there.
    #[inline(always)]
    pub fn load(&self) -> f32 {
        f32::from_bits(self.bits().load(core::sync::atomic::Ordering::Relaxed))
    }

    /// Puts a value there.
    #[inline(always)]
    pub fn store(&self, value: f32) {
        self.bits()
            .store(value.to_bits(), core::sync::atomic::Ordering::Relaxed);
    }

    /// Replaces what is there by what an operation makes of it and `value`, by compare-and-swap; gives what was there.
    #[inline(always)]
    pub fn fetch_update(&self, value: f32, operation: impl Fn(f32, f32) -> f32) -> f32 {
        use core::sync::atomic::Ordering::Relaxed;
        let mut old = self.bits().load(Relaxed);
        loop {
            let new = operation(f32::from_bits(old), value).to_bits();
            match self.bits().compare_exchange(old, new, Relaxed, Relaxed) {
                Ok(old) => return f32::from_bits(old),
                Err(now) => old = now,
            }
        }
    }

    #[inline(always)]
    fn bits(&self) -> &core::sync::atomic::AtomicU32 {
        // SAFETY: size and alignment are the same, and every pattern is a value of both.
        unsafe { core::sync::atomic::AtomicU32::from_ptr(self.0.get().cast()) }
    }
}
