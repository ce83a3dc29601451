//! Memory that all threads read, seen in two or three dimensions: row after row, plane after plane.

use crate::memory::past_the_end;
use crate::parameter::Borrowed;
use crate::partition::Extents;
use core::fmt;
use core::marker::PhantomData;

/// Rows of elements that nobody writes, or of atomics. The host passes a buffer and `[width, height]`.
pub struct View2<'a, T> {
    start: *const T,
    extents: Extents,
    of: PhantomData<&'a [T]>,
}

/// Planes of rows of elements that nobody writes, or of atomics. The host passes a buffer and `[width, height, depth]`.
pub struct View3<'a, T> {
    start: *const T,
    extents: Extents,
    of: PhantomData<&'a [T]>,
}

macro_rules! views {
    ($($view:ident[$directions:literal]: ($($at:ident),*), $extents:expr, $place:expr;)*) => {
        $(
            impl<T> Clone for $view<'_, T> {
                #[inline(always)]
                fn clone(&self) -> Self {
                    *self
                }
            }

            impl<T> Copy for $view<'_, T> {}

            impl<T> fmt::Debug for $view<'_, T> {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    let extents = [$(self.extents.$at),*];
                    write!(f, concat!(stringify!($view), " of {:?}"), extents)
                }
            }

            impl<'a, T: Borrowed> $view<'a, T> {
                /// # Safety
                /// There are so many elements, fewer than 2^32, as long as the view lives; nobody writes them unless
                /// they are atomics.
                #[inline(always)]
                pub(crate) unsafe fn from_raw_parts(start: *const T, extents: Extents) -> Self {
                    $view {
                        start,
                        extents,
                        of: PhantomData,
                    }
                }

                /// A slice, seen so; `None` if it has another number of elements than the extents multiplied, or more
                /// than 2^32 - 1.
                pub fn of_slice(slice: &'a [T], [$($at),*]: [u32; $directions]) -> Option<Self> {
                    let len = 1u32 $(.checked_mul($at)?)*;
                    let extents = $extents;
                    let is_all = slice.len() == len as usize;
                    // SAFETY: as many as there are.
                    is_all.then(|| unsafe { $view::from_raw_parts(slice.as_ptr(), extents) })
                }

                /// Elements of a row.
                #[inline(always)]
                pub fn width(&self) -> usize {
                    self.extents.x as usize
                }

                /// Rows; of a plane, if there are planes.
                #[inline(always)]
                pub fn height(&self) -> usize {
                    self.extents.y as usize
                }

                /// All elements, row after row.
                #[inline(always)]
                pub fn as_slice(&self) -> &'a [T] {
                    // SAFETY: so many there are.
                    unsafe { core::slice::from_raw_parts(self.start, self.extents.len()) }
                }

                /// Whether there is such an element.
                #[inline(always)]
                pub fn contains(&self, $($at: usize),*) -> bool {
                    // Without short circuits: one branch on all.
                    true $(& ($at < self.extents.$at as usize))*
                }

                /// An element; `None` where there is none.
                #[inline(always)]
                pub fn get(&self, $($at: usize),*) -> Option<&'a T> {
                    // SAFETY: there is one.
                    self.contains($($at),*).then(|| unsafe { self.get_unchecked($($at),*) })
                }

                /// An element.
                ///
                /// # Panics
                /// Where there is none.
                #[inline(always)]
                #[track_caller]
                pub fn at(&self, $($at: usize),*) -> &'a T {
                    match self.get($($at),*) {
                        Some(element) => element,
                        None => past_the_end(),
                    }
                }

                /// An element, without a look at the extents.
                ///
                /// # Safety
                /// There is one.
                #[inline(always)]
                pub unsafe fn get_unchecked(&self, $($at: usize),*) -> &'a T {
                    $(let $at = $at as u32;)*
                    let (x, y, z) = $place;
                    // SAFETY: as the caller promises.
                    unsafe { &*self.start.add(self.extents.number(x, y, z)) }
                }
            }
        )*
    };
}

views!(
    View2[2]: (x, y), Extents { x, y, z: 1 }, (x, y, 0);
    View3[3]: (x, y, z), Extents { x, y, z }, (x, y, z);
);

impl<'a, T: Borrowed> View2<'a, T> {
    /// A row.
    ///
    /// # Panics
    /// Where there is none.
    #[inline(always)]
    #[track_caller]
    pub fn row(&self, y: usize) -> &'a [T] {
        if y >= self.height() {
            past_the_end();
        }
        let first = self.extents.number(0, y as u32, 0);
        // SAFETY: a row has so many, and this one is there.
        unsafe { core::slice::from_raw_parts(self.start.add(first), self.width()) }
    }

    /// The rows.
    #[inline(always)]
    pub fn rows(self) -> impl Iterator<Item = &'a [T]> {
        (0..self.height()).map(move |y| self.row(y))
    }
}

impl<'a, T: Borrowed> View3<'a, T> {
    /// Planes.
    #[inline(always)]
    pub fn depth(&self) -> usize {
        self.extents.z as usize
    }

    /// A plane.
    ///
    /// # Panics
    /// Where there is none.
    #[inline(always)]
    #[track_caller]
    pub fn plane(&self, z: usize) -> View2<'a, T> {
        if z >= self.depth() {
            past_the_end();
        }
        let first = self.extents.number(0, 0, z as u32);
        let extents = Extents {
            z: 1,
            ..self.extents
        };
        // SAFETY: a plane has so many, and this one is there.
        unsafe { View2::from_raw_parts(self.start.add(first), extents) }
    }
}
