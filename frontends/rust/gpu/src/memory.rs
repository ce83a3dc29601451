//! Buffers that the threads of a launch write, each its own part.
//!
//! Rust's `&mut [T]` says that nobody else has the slice, which is not so where every thread has it. [`DisjointMut`]
//! says what is: it hands a thread the part that its [partition](Partition) gives it, and nobody else. The host
//! launches only where that holds: with no more dimensions than the partition tells apart, and with no other parameter
//! that reaches the same memory.

use crate::element::Element;
use crate::index::ThreadIndex;
use crate::partition::{Extents, Linear, Partition, Strided};
use crate::thread;
use core::fmt;
use core::marker::PhantomData;

/// A buffer of which each thread has a part, as the partition says: the element of its number, unless said otherwise.
///
/// ```
/// use thisgpu_gpu::*;
/// /// Turns each pair around, and says how many there were.
/// #[kernel]
/// pub fn turn(mut pairs: DisjointMut<u32, Chunks<2>>, mut count: DisjointMut<u32, Blocks>) {
///     if let Some([a, b]) = pairs.thread_mut() {
///         core::mem::swap(a, b);
///     }
///     if let Some(count) = count.thread_mut() {
///         *count = pairs.len() as u32 / 2;
///     }
/// }
/// # let (mut pairs, mut count) = ([1, 2], [0]);
/// # turn(DisjointMut::from_slice(&mut pairs), DisjointMut::from_slice(&mut count));
/// # assert_eq!((pairs, count), ([2, 1], [1]));
/// ```
///
/// It lives no longer than the launch, or the slice, whose memory it is.
pub struct DisjointMut<'a, T, P = Linear> {
    start: *mut T,
    extents: Extents,
    of: PhantomData<(&'a mut [T], P)>,
}

impl<'a, T: Element, P: Partition> DisjointMut<'a, T, P> {
    /// A view of memory.
    ///
    /// # Safety
    /// `start` is the address of so many elements, fewer than 2^32, that nothing but such views of the same partition,
    /// one a thread, reaches as long as it lives; and the launch has no more dimensions than the partition
    /// tells apart.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(start: *mut T, extents: Extents) -> Self {
        DisjointMut {
            start,
            extents,
            of: PhantomData,
        }
    }

    /// A view of a slice in one line that this thread has alone: for tests on the host, where there is one thread.
    ///
    /// # Panics
    /// More than 2^32 - 1 elements.
    pub fn from_slice(slice: &'a mut [T]) -> Self {
        let len = u32::try_from(slice.len()).unwrap_or_else(|_| past_the_end());
        Self::from_slice_of(slice, [len, 1, 1])
    }

    /// A view of a slice with so many elements along x, y, z that this thread has alone: for tests on the host, where
    /// there is one thread.
    ///
    /// # Panics
    /// The slice has not so many elements, or more than 2^32 - 1.
    pub fn from_slice_of(slice: &'a mut [T], [x, y, z]: [u32; 3]) -> Self {
        let elements = x.checked_mul(y).and_then(|plane| plane.checked_mul(z));
        assert!(
            elements.is_some_and(|elements| elements as usize == slice.len()),
            "{x} · {y} · {z} elements are not {}",
            slice.len()
        );
        // SAFETY: so many there are, which nothing else reaches as long as the slice is borrowed.
        unsafe { Self::from_raw(slice.as_mut_ptr(), Extents { x, y, z }) }
    }

    #[inline(always)]
    pub(crate) fn extents(&self) -> &Extents {
        &self.extents
    }

    /// How many elements, in all directions together.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.extents.len()
    }

    /// Whether there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// This thread's part: what the partition gives it and nobody else. `None` if it is not there, or not all of it.
    #[inline(always)]
    pub fn thread_mut(&mut self) -> Option<P::Part<'_, T>> {
        self.get_mut(&P::Index::here()?)
    }

    /// The part of an index, which only its thread has. `None` if it is not there, or not all of it.
    #[inline(always)]
    pub fn get_mut(&mut self, index: &P::Index) -> Option<P::Part<'_, T>> {
        // SAFETY: it is there; threads differ in their indices, and `&mut self` keeps this one from asking twice.
        P::has(&self.extents, index).then(|| unsafe { P::part(self.start, &self.extents, index) })
    }

    /// An element by its number.
    ///
    /// # Safety
    /// No other thread has it in its hands, or writes it without an order with this access: a barrier of the block.
    ///
    /// # Panics
    /// Past the end.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn get(&self, number: usize) -> T {
        if number >= self.len() {
            past_the_end();
        }
        // SAFETY: it is inside; and as the caller promises.
        unsafe { self.start.add(number).read() }
    }

    /// Writes an element by its number.
    ///
    /// # Safety
    /// No other thread has it in its hands, or reads or writes it without an order with this access: a barrier of the
    /// block.
    ///
    /// # Panics
    /// Past the end.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn set(&self, number: usize, value: T) {
        if number >= self.len() {
            past_the_end();
        }
        // SAFETY: it is inside; and as the caller promises.
        unsafe { self.start.add(number).write(value) }
    }

    /// [`get`](DisjointMut::get) without a look at the length.
    ///
    /// # Safety
    /// As there, and the number is inside.
    #[inline(always)]
    pub unsafe fn get_unchecked(&self, number: usize) -> T {
        // SAFETY: as the caller promises.
        unsafe { self.start.add(number).read() }
    }

    /// [`set`](DisjointMut::set) without a look at the length.
    ///
    /// # Safety
    /// As there, and the number is inside.
    #[inline(always)]
    pub unsafe fn set_unchecked(&self, number: usize, value: T) {
        // SAFETY: as the caller promises.
        unsafe { self.start.add(number).write(value) }
    }

    /// Where the elements begin.
    #[inline(always)]
    pub fn as_ptr(&self) -> *mut T {
        self.start
    }
}

impl<T: Element, P: Strided> DisjointMut<'_, T, P> {
    /// This thread's parts: that of its number, and on by the size of the grid.
    #[inline(always)]
    pub fn strided_mut(&mut self) -> thread::Strided<&mut Self> {
        thread::strided(self)
    }
}

impl<T, P> fmt::Debug for DisjointMut<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DisjointMut of {}", self.extents.len())
    }
}

/// In the caller's code, so that the fault is at the user's line.
#[inline(always)]
#[track_caller]
pub(crate) fn past_the_end() -> ! {
    panic!("index past the end")
}
