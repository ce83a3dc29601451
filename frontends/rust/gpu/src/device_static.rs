//! Memory of a module that the host fills and kernels read.

use crate::element::Element;
use crate::memory::past_the_end;
use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;

/// What [`#[device_static]`](macro@crate::device_static) makes of a static: the host fills it between launches, kernels
/// read it by value.
#[repr(transparent)]
pub struct DeviceStatic<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: nobody writes it while kernels run.
unsafe impl<T> Sync for DeviceStatic<T> {}

impl<T: Element> DeviceStatic<T> {
    #[doc(hidden)]
    pub const fn new(value: T) -> DeviceStatic<T> {
        DeviceStatic(UnsafeCell::new(MaybeUninit::new(value)))
    }

    #[doc(hidden)]
    pub const fn zeros() -> DeviceStatic<T> {
        DeviceStatic(UnsafeCell::new(MaybeUninit::zeroed()))
    }

    /// The value.
    #[inline(always)]
    pub fn read(&self) -> T {
        // SAFETY: every pattern of bits is an element, and all of it has a value from the start.
        unsafe { self.0.get().cast::<T>().read() }
    }
}

impl<T: Element, const N: usize> DeviceStatic<[T; N]> {
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

    /// An element; `None` past the end.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<T> {
        // SAFETY: it is inside; and as above.
        (index < N).then(|| unsafe { self.0.get().cast::<T>().add(index).read() })
    }

    /// An element.
    ///
    /// # Panics
    /// Past the end.
    #[inline(always)]
    #[track_caller]
    pub fn at(&self, index: usize) -> T {
        match self.get(index) {
            Some(element) => element,
            None => past_the_end(),
        }
    }
}

impl<T> fmt::Debug for DeviceStatic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceStatic of {} bytes", size_of::<T>())
    }
}
