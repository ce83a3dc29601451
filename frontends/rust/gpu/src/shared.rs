//! The shared memory of a block: what its threads hand each other.
//!
//! Elements go in and out by value, so no thread has one in its hands. Where two threads come to an element and nothing
//! orders them (a barrier, an atomic), the value read is unspecified; the simulator's checking mode names both
//! accesses.

use crate::element::Element;
use crate::memory::past_the_end;
use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;

/// Shared memory of a block, made by [`shared!`](crate::shared). Nobody may rely on what is in it at the start.
///
/// On the host it is an ordinary static, since there the block is one thread.
#[repr(transparent)]
pub struct Shared<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: elements go in and out by value; who reads what another thread writes without an order gets an unspecified
// value.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    #[doc(hidden)]
    pub const fn uninitialised() -> Shared<T> {
        Shared(UnsafeCell::new(MaybeUninit::zeroed()))
    }
}

impl<T: Element> Shared<T> {
    /// The value.
    #[inline(always)]
    pub fn read(&self) -> T {
        // SAFETY: every pattern of bits is an element.
        unsafe { self.0.get().cast::<T>().read() }
    }

    /// Replaces the value.
    #[inline(always)]
    pub fn write(&self, value: T) {
        // SAFETY: the place is there as long as the block.
        unsafe { self.0.get().cast::<T>().write(value) }
    }
}

impl<T: Element, const N: usize> Shared<[T; N]> {
    /// How many elements.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        N
    }

    /// Whether there is none.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        N == 0
    }

    /// An element.
    ///
    /// # Panics
    /// Past the end.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, index: usize) -> T {
        if index >= N {
            past_the_end();
        }
        // SAFETY: inside; every pattern of bits is an element.
        unsafe { self.0.get().cast::<T>().add(index).read() }
    }

    /// Writes an element.
    ///
    /// # Panics
    /// Past the end.
    #[inline(always)]
    #[track_caller]
    pub fn set(&self, index: usize, value: T) {
        if index >= N {
            past_the_end();
        }
        // SAFETY: inside.
        unsafe { self.0.get().cast::<T>().add(index).write(value) }
    }
}

impl<T: Element, const N: usize, const M: usize> Shared<[[T; M]; N]> {
    /// A row.
    ///
    /// # Panics
    /// Past the end.
    #[inline(always)]
    #[track_caller]
    pub fn row(&self, index: usize) -> &Shared<[T; M]> {
        if index >= N {
            past_the_end();
        }
        // SAFETY: inside; the types differ in nothing but what they are parts of.
        unsafe { &*self.0.get().cast::<Shared<[T; M]>>().add(index) }
    }
}

/// What may be used through a shared reference by many threads: atomics, and arrays of them.
///
/// # Safety
/// Every pattern of bits is a value, and `&Self` allows no write that is not atomic.
pub unsafe trait Atomics: Sync {}

// SAFETY: an array of such.
unsafe impl<T: Atomics, const N: usize> Atomics for [T; N] {}

macro_rules! atomics {
    ($($type:ty),*) => {
        $(
            // SAFETY: an atomic integer or float.
            unsafe impl Atomics for $type {}
        )*
    };
}

atomics!(
    core::sync::atomic::AtomicU8,
    core::sync::atomic::AtomicI8,
    core::sync::atomic::AtomicU16,
    core::sync::atomic::AtomicI16,
    core::sync::atomic::AtomicU32,
    core::sync::atomic::AtomicI32,
    core::sync::atomic::AtomicU64,
    core::sync::atomic::AtomicI64,
    core::sync::atomic::AtomicUsize,
    crate::atomic::AtomicF32,
    crate::atomic::AtomicF64,
    crate::atomic::AtomicF16x2
);

impl<T: Atomics> Shared<T> {
    /// The atomics, which every thread of the block may use. They hold anything until somebody stores.
    #[inline(always)]
    pub fn atomics(&self) -> &T {
        // SAFETY: any pattern of bits is a value, and all access is atomic.
        unsafe { &*self.0.get().cast::<T>() }
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared of {} bytes", size_of::<T>())
    }
}

/// The shared memory that the launch asks for behind the kernel's own, as elements; made by [`dynamic_shared`].
#[derive(Clone, Copy)]
pub struct DynamicShared<T> {
    start: *mut T,
    len: usize,
}

/// The shared memory that the launch asks for behind the kernel's own, as elements. Every call gives the same memory,
/// whatever its type.
#[inline(always)]
pub fn dynamic_shared<T: Element>() -> DynamicShared<T> {
    const {
        assert!(
            align_of::<T>() <= 16,
            "shared memory is aligned to 16 bytes"
        );
    }
    #[cfg(thisgpu)]
    {
        unsafe extern "C" {
            #[link_name = "__thisgpu_dynamic_shared_start"]
            static START: [u128; 0];
            #[link_name = "__thisgpu_dynamic_shared"]
            safe fn bytes() -> u32;
        }
        DynamicShared {
            start: (&raw const START).cast_mut().cast(),
            len: bytes() as usize / size_of::<T>().max(1),
        }
    }
    #[cfg(not(thisgpu))]
    DynamicShared {
        start: core::ptr::dangling_mut(),
        len: 0,
    }
}

impl<T: Element> DynamicShared<T> {
    /// How many elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// An element.
    ///
    /// # Panics
    /// Past the end.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, index: usize) -> T {
        if index >= self.len {
            past_the_end();
        }
        // SAFETY: inside; every pattern of bits is an element.
        unsafe { self.start.add(index).read() }
    }

    /// Writes an element.
    ///
    /// # Panics
    /// Past the end.
    #[inline(always)]
    #[track_caller]
    pub fn set(&self, index: usize, value: T) {
        if index >= self.len {
            past_the_end();
        }
        // SAFETY: inside.
        unsafe { self.start.add(index).write(value) }
    }
}

impl<T> fmt::Debug for DynamicShared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynamicShared of {}", self.len)
    }
}
