//! Atomics that `core::sync::atomic` lacks: of floats and pairs of halves. Integers are `core`'s own: take
//! `&[AtomicU32]` as a parameter and call `fetch_add`.
//!
//! Orders and scopes are `core`'s: `Relaxed` has none with other addresses, every other order is the strongest, among
//! all threads that can see the place, which is the block for shared memory and the device for global memory. An order
//! of a smaller or larger scope is a relaxed access and [`fence_block`](crate::thread::fence_block),
//! [`fence_device`](crate::thread::fence_device) or [`fence_system`](crate::thread::fence_system).

use crate::device;
use crate::half::F16x2;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The order of what has no store.
#[inline(always)]
fn of_load(order: Ordering) -> Ordering {
    match order {
        Ordering::Release => Ordering::Relaxed,
        Ordering::AcqRel => Ordering::Acquire,
        other => other,
    }
}

macro_rules! atomics {
    ($(
        $(#[$attribute:meta])*
        $name:ident: $value:ident as $bits:ident in $integer:ident,
        |$add_place:ident, $add_value:ident| $add:expr,
        $min:ident, $max:ident;
    )*) => {
        $(
            $(#[$attribute])*
            #[derive(Debug, Default)]
            #[repr(transparent)]
            pub struct $name(UnsafeCell<$bits>);

            // SAFETY: all that changes it is atomic.
            unsafe impl Sync for $name {}

            impl $name {
                /// One with this value.
                pub const fn new(value: $value) -> $name {
                    $name(UnsafeCell::new(value.to_bits()))
                }

                /// What is there.
                ///
                /// # Panics
                /// The order is one of stores.
                #[inline(always)]
                pub fn load(&self, order: Ordering) -> $value {
                    $value::from_bits(self.bits().load(order))
                }

                /// Puts a value there.
                ///
                /// # Panics
                /// The order is one of loads.
                #[inline(always)]
                pub fn store(&self, value: $value, order: Ordering) {
                    self.bits().store(value.to_bits(), order);
                }

                /// Puts a value there, and gives what was there.
                #[inline(always)]
                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    $value::from_bits(self.bits().swap(value.to_bits(), order))
                }

                /// Puts `new` there if what is there has the bits of `current`; gives what was there, as an error where
                /// it was something else.
                ///
                /// # Panics
                /// The order of failure is one of stores.
                #[inline(always)]
                pub fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.bits()
                        .compare_exchange(current.to_bits(), new.to_bits(), success, failure)
                        .map($value::from_bits)
                        .map_err($value::from_bits)
                }

                /// Replaces what is there by what an operation makes of it, by compare-and-swap; gives what was there.
                /// Where the operation changes nothing there is no store.
                #[inline(always)]
                pub fn fetch_update(
                    &self,
                    order: Ordering,
                    operation: impl Fn($value) -> $value,
                ) -> $value {
                    let mut old = self.bits().load(of_load(order));
                    loop {
                        let new = operation($value::from_bits(old)).to_bits();
                        if new == old {
                            return $value::from_bits(old);
                        }
                        match self.bits().compare_exchange(old, new, order, of_load(order)) {
                            Ok(old) => return $value::from_bits(old),
                            Err(now) => old = now,
                        }
                    }
                }

                /// Adds, and gives what was there.
                #[inline(always)]
                pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                    let ($add_place, $add_value) = (self, value);
                    $add(order)
                }

                /// Subtracts, and gives what was there.
                #[inline(always)]
                pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                    self.fetch_add(-value, order)
                }

                /// Puts the lesser there, by compare-and-swap, and gives what was there. Which it is says
                #[doc = concat!("[`", stringify!($value), "::", stringify!($min), "`].")]
                #[inline(always)]
                pub fn fetch_min(&self, value: $value, order: Ordering) -> $value {
                    self.fetch_update(order, |old| old.$min(value))
                }

                /// Puts the greater there, by compare-and-swap, and gives what was there. Which it is says
                #[doc = concat!("[`", stringify!($value), "::", stringify!($max), "`].")]
                #[inline(always)]
                pub fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                    self.fetch_update(order, |old| old.$max(value))
                }

                #[inline(always)]
                fn bits(&self) -> &$integer {
                    // SAFETY: the place of its bits, which nothing changes but by atomics.
                    unsafe { $integer::from_ptr(self.0.get()) }
                }
            }
        )*
    };
}

atomics!(
    /// A float that threads change; they add to it by one instruction.
    AtomicF32: f32 as u32 in AtomicU32,
        |place, value| |order| ordered(order, || device::atomic_add_f32(place.0.get().cast(), value)),
        min, max;
    /// A float of 64 bits that threads change, by compare-and-swap.
    AtomicF64: f64 as u64 in AtomicU64,
        |place, value| |order| place.fetch_update(order, |old: f64| old + value),
        min, max;
    /// Two halves that threads change; they add to both by one instruction, each half for itself.
    AtomicF16x2: F16x2 as u32 in AtomicU32,
        |place, value| |order| ordered(order, || {
            F16x2::from_bits(device::atomic_add_f16x2(place.0.get(), value.to_bits()))
        }),
        minimum, maximum;
);

/// An access without an order, with fences that give it one.
#[inline(always)]
fn ordered<T>(order: Ordering, access: impl Fn() -> T) -> T {
    if !matches!(order, Ordering::Relaxed | Ordering::Acquire) {
        fence(Ordering::SeqCst);
    }
    let value = access();
    if !matches!(order, Ordering::Relaxed | Ordering::Release) {
        fence(Ordering::SeqCst);
    }
    value
}
