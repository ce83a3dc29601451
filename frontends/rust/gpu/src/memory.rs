//! Memory that many threads have in their hands at once: views of buffers, and the shared memory of a block.
//!
//! Rust's `&mut [T]` says that nobody else has the slice, which is not so where every thread has it. [`DisjointMut`]
//! says what is: each element is read and written by value, by whichever thread it belongs to. What the types cannot
//! see is that two threads leave each other's elements alone. Where they do not and nothing orders them (a barrier, an
//! atomic), the value read is unspecified; the simulator's checking mode names both accesses.

use crate::element::Element;
use crate::elements::Elements;
use crate::thread;
use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;

/// A slice that many threads write, each to elements of its own.
pub struct DisjointMut<T> {
    start: *mut T,
    len: usize,
}

impl<T: Element> DisjointMut<T> {
    /// A view of memory.
    ///
    /// # Safety
    /// `start` is the address of `len` elements that nothing else but such views reaches as long as this one is used.
    #[inline(always)]
    pub unsafe fn from_raw_parts(start: *mut T, len: usize) -> DisjointMut<T> {
        DisjointMut { start, len }
    }

    /// A view of a slice, for tests on the host.
    ///
    /// # Safety
    /// Nothing else reaches the slice as long as the view, which does not keep it, is used.
    pub unsafe fn from_slice(slice: &mut [T]) -> DisjointMut<T> {
        DisjointMut {
            start: slice.as_mut_ptr(),
            len: slice.len(),
        }
    }

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

    /// An element; `None` past the end.
    #[inline(always)]
    pub fn try_get(&self, index: usize) -> Option<T> {
        // SAFETY: the index is inside.
        (index < self.len).then(|| unsafe { self.start.add(index).read() })
    }

    /// An element.
    ///
    /// # Panics
    /// Past the end.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, index: usize) -> T {
        match self.try_get(index) {
            Some(value) => value,
            None => past_the_end(),
        }
    }

    /// Writes an element, which should be this thread's.
    ///
    /// # Panics
    /// Past the end.
    #[inline(always)]
    #[track_caller]
    pub fn set(&self, index: usize, value: T) {
        if index >= self.len {
            past_the_end();
        }
        // SAFETY: the index is inside.
        unsafe { self.start.add(index).write(value) }
    }

    /// An element without a look at the length.
    ///
    /// # Safety
    /// The index is inside.
    #[inline(always)]
    pub unsafe fn get_unchecked(&self, index: usize) -> T {
        // SAFETY: as the caller promises.
        unsafe { self.start.add(index).read() }
    }

    /// Writes an element without a look at the length.
    ///
    /// # Safety
    /// The index is inside.
    #[inline(always)]
    pub unsafe fn set_unchecked(&self, index: usize, value: T) {
        // SAFETY: as the caller promises.
        unsafe { self.start.add(index).write(value) }
    }

    /// The element with this thread's number in a launch of one dimension: nobody else's. `None` past the end.
    #[inline(always)]
    pub fn thread_mut(&mut self) -> Option<&mut T> {
        let index = thread::global_id();
        // SAFETY: inside; threads of such a launch differ in their number, and `&mut self` keeps this one from asking
        // twice.
        (index < self.len).then(|| unsafe { &mut *self.start.add(index) })
    }

    /// The so many-th elements of this thread in a launch of one dimension: from its number times `len`. `None` if they
    /// are not all there.
    #[inline(always)]
    pub fn thread_chunk_mut(&mut self, len: usize) -> Option<&mut [T]> {
        let first = thread::global_id().checked_mul(len)?;
        let inside = first.checked_add(len)? <= self.len;
        // SAFETY: inside; chunks of threads with different numbers have no element in common.
        inside.then(|| unsafe { core::slice::from_raw_parts_mut(self.start.add(first), len) })
    }

    /// Where the elements begin.
    #[inline(always)]
    pub fn as_ptr(&self) -> *mut T {
        self.start
    }
}

impl<'a, T: Element> Elements for &'a mut DisjointMut<T> {
    type Item = &'a mut T;

    #[inline(always)]
    fn has(&self, index: usize) -> bool {
        index < self.len
    }

    #[inline(always)]
    unsafe fn take(self, index: usize) -> &'a mut T {
        // SAFETY: as the caller promises.
        unsafe { &mut *self.start.add(index) }
    }
}

impl<T> fmt::Debug for DisjointMut<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DisjointMut of {}", self.len)
    }
}

/// In the caller's code, so that the fault is at the user's line.
#[inline(always)]
#[track_caller]
fn past_the_end() -> ! {
    panic!("index past the end")
}

/// Shared memory of a block, made by [`shared!`](crate::shared). Nobody may rely on what is in it at the start.
///
/// On the host it is an ordinary static, since there the block is one thread.
#[repr(transparent)]
pub struct Shared<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: elements go in and out by value; who reads what another thread writes without an order gets an unspecified
// value, as with `DisjointMut`.
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
    crate::atomic::AtomicF32
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

/// The shared memory that the launch asks for behind the kernel's own, as elements.
///
/// # Safety
/// A thread uses one view of it at a time, of one type: every call gives the same memory.
#[inline(always)]
pub unsafe fn dynamic_shared<T: Element>() -> DisjointMut<T> {
    #[cfg(thisgpu)]
    {
        unsafe extern "C" {
            #[link_name = "__thisgpu_dynamic_shared_start"]
            static START: [u128; 0];
            #[link_name = "__thisgpu_dynamic_shared"]
            safe fn bytes() -> u32;
        }
        DisjointMut {
            start: (&raw const START).cast_mut().cast(),
            len: bytes() as usize / size_of::<T>().max(1),
        }
    }
    #[cfg(not(thisgpu))]
    DisjointMut {
        start: core::ptr::dangling_mut(),
        len: 0,
    }
}
