//! Which thread of which block this is, and where the threads of a block wait for each other.

use crate::device;
use crate::elements::{Elements, StridedElements};
use crate::index::{BlockIndex, Index1, Index2, Index3, ThreadIndex};

macro_rules! numbers {
    ($($(#[$attribute:meta])* $name:ident = $function:ident),*) => {
        $(
            $(#[$attribute])*
            #[inline(always)]
            pub fn $name() -> u32 {
                device::$function()
            }
        )*
    };
}

numbers!(
    /// The thread's index in its block along x.
    index_x = tid_x,
    /// The thread's index in its block along y.
    index_y = tid_y,
    /// The thread's index in its block along z.
    index_z = tid_z,
    /// Threads of a block along x.
    block_dim_x = ntid_x,
    /// Threads of a block along y.
    block_dim_y = ntid_y,
    /// Threads of a block along z.
    block_dim_z = ntid_z,
    /// The block's index in the grid along x.
    block_x = ctaid_x,
    /// The block's index in the grid along y.
    block_y = ctaid_y,
    /// The block's index in the grid along z.
    block_z = ctaid_z,
    /// Blocks of the grid along x.
    grid_dim_x = nctaid_x,
    /// Blocks of the grid along y.
    grid_dim_y = nctaid_y,
    /// Blocks of the grid along z.
    grid_dim_z = nctaid_z
);

/// The thread's number in the grid along x, which is its number in a launch of one dimension.
#[inline(always)]
pub fn global_id() -> usize {
    (block_x()
        .wrapping_mul(block_dim_x())
        .wrapping_add(index_x())) as usize
}

/// The thread's number in the grid along y.
#[inline(always)]
pub fn global_id_y() -> usize {
    (block_y()
        .wrapping_mul(block_dim_y())
        .wrapping_add(index_y())) as usize
}

/// The thread's number in the grid along z.
#[inline(always)]
pub fn global_id_z() -> usize {
    (block_z()
        .wrapping_mul(block_dim_z())
        .wrapping_add(index_z())) as usize
}

/// The thread's number in its block: along x first, then y, then z.
#[inline(always)]
pub fn number_in_block() -> u32 {
    let row = index_z()
        .wrapping_mul(block_dim_y())
        .wrapping_add(index_y());
    row.wrapping_mul(block_dim_x()).wrapping_add(index_x())
}

/// Whether this is its block's first thread.
#[inline(always)]
pub fn is_first_of_block() -> bool {
    (index_x() | index_y() | index_z()) == 0
}

/// Threads of a block.
#[inline(always)]
pub fn block_size() -> u32 {
    block_dim_x()
        .wrapping_mul(block_dim_y())
        .wrapping_mul(block_dim_z())
}

/// The block's number in the grid: along x first, then y, then z.
#[inline(always)]
pub fn block_number() -> u32 {
    let row = block_z().wrapping_mul(grid_dim_y()).wrapping_add(block_y());
    row.wrapping_mul(grid_dim_x()).wrapping_add(block_x())
}

/// The thread's number, as what a [`DisjointMut`](crate::DisjointMut) parted by it takes: in a launch of one dimension
/// nobody else's.
#[inline(always)]
pub fn index1() -> Index1 {
    Index1::numbered(global_id())
}

/// The thread's place, as what a [`DisjointMut`](crate::DisjointMut) parted by it takes: in a launch of two dimensions
/// nobody else's.
#[inline(always)]
pub fn index2() -> Index2 {
    Index2::this()
}

/// The thread's place, as what a [`DisjointMut`](crate::DisjointMut) parted by it takes: nobody else's.
#[inline(always)]
pub fn index3() -> Index3 {
    Index3::this()
}

/// The block's number, as what a [`DisjointMut`](crate::DisjointMut) parted by [`Blocks`](crate::Blocks) takes: in the
/// block's first thread; `None` in the others.
#[inline(always)]
pub fn block_index() -> Option<BlockIndex> {
    BlockIndex::here()
}

/// Threads of the whole grid along x.
#[inline(always)]
pub fn global_size() -> usize {
    (grid_dim_x().wrapping_mul(block_dim_x())) as usize
}

/// This thread's part of each array, with one branch on all their lengths; `None` where one of them has none for it.
///
/// All must tell threads apart in the same way: by number slices and what is parted by number, by places of two
/// dimensions [`View2`](crate::View2) and what is parted so.
///
/// ```
/// use thisgpu_gpu::{DisjointMut, thread};
/// let (x, mut y) = ([1, 2], [5, 6]);
/// let mut view: DisjointMut<u32> = DisjointMut::from_slice(&mut y);
/// if let Some((x, y)) = thread::own((&x[..], &mut view)) {
///     *y += x;
/// }
/// assert_eq!(y, [6, 6]);
/// ```
#[inline(always)]
pub fn own<E: Elements>(arrays: E) -> Option<E::Item> {
    let index = E::Index::here()?;
    // SAFETY: there are such; threads differ in their indices.
    (arrays.has(&index)).then(|| unsafe { arrays.take(&index) })
}

/// This thread's parts of each array, as long as all of them have one: those of its number, and on by the size of the
/// grid.
///
/// ```
/// use thisgpu_gpu::{DisjointMut, thread};
/// let (x, mut y) = ([1, 2], [5, 6]);
/// let mut view: DisjointMut<u32> = DisjointMut::from_slice(&mut y);
/// for (x, y) in thread::strided((&x[..], &mut view)) {
///     *y += x;
/// }
/// assert_eq!(y, [6, 8]);
/// ```
#[inline(always)]
pub fn strided<E: StridedElements>(arrays: E) -> Strided<E> {
    Strided {
        arrays,
        next: global_id(),
        step: global_size(),
    }
}

/// What [`strided`] gives.
#[derive(Debug)]
pub struct Strided<E> {
    arrays: E,
    next: usize,
    step: usize,
}

impl<E: StridedElements> Iterator for Strided<E> {
    type Item = E::Item;

    #[inline(always)]
    fn next(&mut self) -> Option<E::Item> {
        let index = Index1::numbered(self.next);
        if !self.arrays.has(&index) {
            return None;
        }
        self.next += self.step;
        // SAFETY: there are such. Numbers grow by the size of the grid, so this thread comes to each once, and no other
        // one does.
        Some(unsafe { self.arrays.take(&index) })
    }
}

/// This thread's part of a slice that is cut into pieces of `len` elements: from its number times `len`. `None` where
/// it is not all there.
#[inline(always)]
pub fn own_chunk<T>(slice: &[T], len: usize) -> Option<&[T]> {
    let first = global_id().checked_mul(len)?;
    let inside = first.checked_add(len)? <= slice.len();
    // SAFETY: inside.
    inside.then(|| unsafe { slice.get_unchecked(first..first + len) })
}

/// Waits for all threads of the block that have not ended; orders their accesses to shared and global memory.
///
/// All of them must come to the same call, which means: no branch on a thread's number around it. Checks
/// (`cargo thisgpu test`, `run --check`) report it when a thread has ended before that the others wait for behind
/// it: mostly it is a mistake. Threads without an element of their own go on to the barrier and do nothing between.
#[inline(always)]
pub fn barrier() {
    device::bar_sync();
}

/// Orders this thread's accesses to memory before and behind it towards the threads of its block.
#[inline(always)]
pub fn fence_block() {
    device::membar_cta();
}

/// Orders this thread's accesses to memory before and behind it towards the whole device.
#[inline(always)]
pub fn fence_device() {
    device::membar_gl();
}

/// Orders this thread's accesses to memory before and behind it towards the host too.
#[inline(always)]
pub fn fence_system() {
    device::membar_sys();
}

/// The indices below `n` that fall to this thread of a launch of one dimension: its number, and on by the size of the
/// grid.
#[inline(always)]
pub fn grid_stride(n: usize) -> GridStride {
    GridStride {
        next: global_id(),
        end: n,
        step: global_size(),
    }
}

/// What [`grid_stride`] gives.
#[derive(Clone, Debug)]
pub struct GridStride {
    next: usize,
    end: usize,
    step: usize,
}

impl Iterator for GridStride {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let index = self.next;
        if index < self.end {
            self.next = index + self.step;
            Some(index)
        } else {
            None
        }
    }
}
