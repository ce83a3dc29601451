//! How a buffer is parted among the threads of a launch: which part is whose. It belongs to the type of a kernel's
//! parameter, so it is the same for all threads, and no part is given to two of them.

use crate::element::Element;
use crate::index::{BlockIndex, Index1, Index2, Index3, ThreadIndex};
use crate::parameter::{Deep, Directions, Flat, Line};

/// How many elements there are along x, y, z. The host has seen that all together are fewer than 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

impl Extents {
    /// So many elements in a line.
    #[inline(always)]
    pub(crate) const fn line(len: u32) -> Extents {
        Extents { x: len, y: 1, z: 1 }
    }

    /// Elements altogether.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.x.wrapping_mul(self.y).wrapping_mul(self.z) as usize
    }

    #[inline(always)]
    pub(crate) fn has2(&self, x: u32, y: u32) -> bool {
        // One branch on both.
        (x < self.x) & (y < self.y)
    }

    #[inline(always)]
    pub(crate) fn has3(&self, x: u32, y: u32, z: u32) -> bool {
        (x < self.x) & (y < self.y) & (z < self.z)
    }

    /// The number of an element: row after row, plane after plane.
    #[inline(always)]
    pub(crate) fn number(&self, x: u32, y: u32, z: u32) -> usize {
        let row = z.wrapping_mul(self.y).wrapping_add(y);
        row.wrapping_mul(self.x).wrapping_add(x) as usize
    }
}

mod sealed {
    pub trait Sealed {}
}

/// Which part of a buffer each thread has.
///
/// Within a launch that has no more dimensions than `DIMENSIONS` says, parts of different threads have no element in
/// common.
pub trait Partition: Sized + 'static + sealed::Sealed {
    /// What tells apart those that have a part.
    type Index: ThreadIndex;
    /// A part in the hands of its thread.
    type Part<'a, T: Element>;
    /// How many dimensions a launch may have.
    #[doc(hidden)]
    const DIMENSIONS: u32;
    /// What the host passes.
    #[doc(hidden)]
    type Directions: Directions;
    /// Whether there is a part of this index, all of it.
    #[doc(hidden)]
    fn has(extents: &Extents, index: &Self::Index) -> bool;
    /// The part.
    ///
    /// # Safety
    /// There is one, in memory that begins at `start`, and nobody has it.
    #[doc(hidden)]
    unsafe fn part<'a, T: Element>(
        start: *mut T,
        extents: &Extents,
        index: &Self::Index,
    ) -> Self::Part<'a, T>;
}

/// Partitions by the thread's number in a launch of one dimension, which goes on by the size of the grid.
pub trait Strided: Partition<Index = Index1> {}

/// Each thread has the element of its number, and on by the size of the grid. For launches of one dimension.
#[derive(Debug)]
pub enum Linear {}

/// Each thread has the `N` elements from its number times `N` on, and on by the size of the grid; what is left over at
/// the end nobody has. For launches of one dimension.
#[derive(Debug)]
pub enum Chunks<const N: usize> {}

/// Each thread has the row of its number, and on by the size of the grid. For launches of one dimension.
#[derive(Debug)]
pub enum Rows {}

/// Each thread has the element of its place. For launches of one or two dimensions.
#[derive(Debug)]
pub enum Plane {}

/// Each thread has the element of its place.
#[derive(Debug)]
pub enum Volume {}

/// The first thread of each block has the element of the block's number. For any launch.
#[derive(Debug)]
pub enum Blocks {}

macro_rules! partitions {
    ($(
        $name:ident $([$n:ident])?: $directions:ident of $dimensions:literal,
        $index:ty => $part:ty,
        has |$extents:ident, $of:ident| $has:expr,
        part |$start:ident| $made:expr;
    )*) => {
        $(
            impl$(<const $n: usize>)? sealed::Sealed for $name$(<$n>)? {}

            impl$(<const $n: usize>)? Partition for $name$(<$n>)? {
                type Index = $index;
                type Part<'a, T: Element> = $part;
                const DIMENSIONS: u32 = $dimensions;
                type Directions = $directions;

                #[inline(always)]
                fn has($extents: &Extents, $of: &$index) -> bool {
                    $has
                }

                #[inline(always)]
                unsafe fn part<'a, T: Element>(
                    $start: *mut T,
                    $extents: &Extents,
                    $of: &$index,
                ) -> $part {
                    // SAFETY: the part is inside, as the caller promises.
                    unsafe { $made }
                }
            }
        )*
    };
}

partitions!(
    Linear: Line of 1, Index1 => &'a mut T,
        has |extents, i| i.get() < extents.x as usize,
        part |start| { let _ = extents; &mut *start.add(i.get()) };
    Chunks[N]: Line of 1, Index1 => &'a mut [T; N],
        has |extents, i| i.get() < extents.x as usize / N.max(1),
        part |start| { let _ = extents; &mut *start.add(i.get() * N).cast() };
    Rows: Flat of 1, Index1 => &'a mut [T],
        has |extents, i| i.get() < extents.y as usize,
        part |start| {
            let first = start.add(extents.number(0, i.get() as u32, 0));
            core::slice::from_raw_parts_mut(first, extents.x as usize)
        };
    Plane: Flat of 2, Index2 => &'a mut T,
        has |extents, i| extents.has2(i.x() as u32, i.y() as u32),
        part |start| &mut *start.add(extents.number(i.x() as u32, i.y() as u32, 0));
    Volume: Deep of 3, Index3 => &'a mut T,
        has |extents, i| extents.has3(i.x() as u32, i.y() as u32, i.z() as u32),
        part |start| &mut *start.add(extents.number(i.x() as u32, i.y() as u32, i.z() as u32));
    Blocks: Line of 3, BlockIndex => &'a mut T,
        has |extents, i| i.get() < extents.x as usize,
        part |start| { let _ = extents; &mut *start.add(i.get()) };
);

impl Strided for Linear {}
impl<const N: usize> Strided for Chunks<N> {}
impl Strided for Rows {}
