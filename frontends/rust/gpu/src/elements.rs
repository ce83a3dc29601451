//! Arrays of which each thread has an element.

/// Arrays of which each thread has an element: a slice, a `DisjointMut`, or several of them.
pub trait Elements {
    /// The elements: `&T` of a slice, `&mut T` of a `DisjointMut`.
    type Item;
    /// Whether there are elements of this number.
    fn has(&self, index: usize) -> bool;
    /// The elements.
    ///
    /// # Safety
    /// There are such, and nobody else has them.
    unsafe fn take(self, index: usize) -> Self::Item;
}

impl<'a, T> Elements for &'a [T] {
    type Item = &'a T;

    #[inline(always)]
    fn has(&self, index: usize) -> bool {
        index < self.len()
    }

    #[inline(always)]
    unsafe fn take(self, index: usize) -> &'a T {
        // SAFETY: as the caller promises.
        unsafe { self.get_unchecked(index) }
    }
}

macro_rules! several {
    ($($type:ident $field:tt),*) => {
        impl<$($type: Elements),*> Elements for ($($type,)*) {
            type Item = ($($type::Item,)*);

            #[inline(always)]
            fn has(&self, index: usize) -> bool {
                // Without short circuits: one branch on all.
                true $(& self.$field.has(index))*
            }

            #[inline(always)]
            unsafe fn take(self, index: usize) -> Self::Item {
                // SAFETY: as the caller promises.
                unsafe { ($(self.$field.take(index),)*) }
            }
        }
    };
}

several!(A 0, B 1);
several!(A 0, B 1, C 2);
several!(A 0, B 1, C 2, D 3);
several!(A 0, B 1, C 2, D 3, E 4);
several!(A 0, B 1, C 2, D 3, E 4, F 5);
several!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
several!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
