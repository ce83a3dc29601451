//! Arrays of which each thread has a part.

use crate::index::{Index1, ThreadIndex};
use crate::memory::DisjointMut;
use crate::partition::{Partition, Strided};
use crate::view::{View2, View3};
use crate::{Borrowed, Element};

/// Arrays of which each thread has a part: a slice or view that all read, a [`DisjointMut`], or several of them.
pub trait Elements {
    /// What tells threads apart.
    type Index: ThreadIndex;
    /// The parts: `&T` of a slice or view, of a `DisjointMut` what its partition says.
    type Item;
    /// Whether there are parts of this index.
    fn has(&self, index: &Self::Index) -> bool;
    /// The parts.
    ///
    /// # Safety
    /// There are such, and nobody has them.
    unsafe fn take(&self, index: &Self::Index) -> Self::Item;
}

/// [`Elements`] of which each thread has several parts: those of its number, and on by the size of the grid.
pub trait StridedElements: Elements<Index = Index1> {}

impl<'a, T> Elements for &'a [T] {
    type Index = Index1;
    type Item = &'a T;

    #[inline(always)]
    fn has(&self, index: &Index1) -> bool {
        index.get() < self.len()
    }

    #[inline(always)]
    unsafe fn take(&self, index: &Index1) -> &'a T {
        // SAFETY: as the caller promises.
        unsafe { self.get_unchecked(index.get()) }
    }
}

impl<T> StridedElements for &[T] {}

impl<'a, T: Element, P: Partition> Elements for &'a mut DisjointMut<'_, T, P> {
    type Index = P::Index;
    type Item = P::Part<'a, T>;

    #[inline(always)]
    fn has(&self, index: &P::Index) -> bool {
        P::has(self.extents(), index)
    }

    #[inline(always)]
    unsafe fn take(&self, index: &P::Index) -> P::Part<'a, T> {
        // SAFETY: as the caller promises.
        unsafe { P::part(self.as_ptr(), self.extents(), index) }
    }
}

impl<T: Element, P: Strided> StridedElements for &mut DisjointMut<'_, T, P> {}

macro_rules! views {
    ($($view:ident: $index:ident($($at:ident),*)),*) => {
        $(
            impl<'a, T: Borrowed> Elements for $view<'a, T> {
                type Index = crate::index::$index;
                type Item = &'a T;

                #[inline(always)]
                fn has(&self, index: &Self::Index) -> bool {
                    self.contains($(index.$at()),*)
                }

                #[inline(always)]
                unsafe fn take(&self, index: &Self::Index) -> &'a T {
                    // SAFETY: as the caller promises.
                    unsafe { self.get_unchecked($(index.$at()),*) }
                }
            }
        )*
    };
}

views!(View2: Index2(x, y), View3: Index3(x, y, z));

macro_rules! several {
    ($first:ident 0 $(, $type:ident $field:tt)*) => {
        impl<$first: Elements, $($type: Elements<Index = $first::Index>),*> Elements for ($first, $($type,)*) {
            type Index = $first::Index;
            type Item = ($first::Item, $($type::Item,)*);

            #[inline(always)]
            fn has(&self, index: &Self::Index) -> bool {
                // Without short circuits: one branch on all.
                self.0.has(index) $(& self.$field.has(index))*
            }

            #[inline(always)]
            unsafe fn take(&self, index: &Self::Index) -> Self::Item {
                // SAFETY: as the caller promises.
                unsafe { (self.0.take(index), $(self.$field.take(index),)*) }
            }
        }

        impl<$first: StridedElements, $($type: StridedElements),*> StridedElements for ($first, $($type,)*) {}
    };
}

several!(A 0, B 1);
several!(A 0, B 1, C 2);
several!(A 0, B 1, C 2, D 3);
several!(A 0, B 1, C 2, D 3, E 4);
several!(A 0, B 1, C 2, D 3, E 4, F 5);
several!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
several!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
