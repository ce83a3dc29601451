//! What a kernel's parameters may be, and how each crosses from the host.

pub use crate::element::number;

use crate::atomic::AtomicF32;
use crate::element::Element;
use crate::half::{F16, F16x2};
use crate::memory::{Atomics, DisjointMut};
use core::sync::atomic::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
    AtomicUsize,
};

/// How the host hands a parameter over: what it is, which number type it or its elements are, their size and alignment.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Description {
    /// One of the constants of [`class`].
    pub class: u32,
    /// One of the constants of [`number`].
    pub number: u32,
    /// Bytes of the value, or of an element.
    pub size: u32,
    /// Its alignment.
    pub align: u32,
}

/// Kinds of parameters.
#[doc(hidden)]
pub mod class {
    pub const VALUE: u32 = 0;
    pub const SLICE: u32 = 1;
    pub const DISJOINT: u32 = 2;
    pub const REFERENCE: u32 = 3;
}

/// What may be a parameter of a kernel.
///
/// Numbers of elements cross as 32 bits: a comparison with a thread's number is then one of 32 bits.
///
/// # Safety
/// What `receive` gives is valid if the host passed what `DESCRIPTION` says.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a kernel",
    note = "a parameter is a number, `bool`, `F16`, `F16x2`, `&[T]`, `&T`, `DisjointMut<T>`, or a slice or reference \
     of atomics"
)]
pub unsafe trait Parameter: Sized {
    #[doc(hidden)]
    type First;
    #[doc(hidden)]
    type Second;
    #[doc(hidden)]
    const DESCRIPTION: Description;
    /// # Safety
    /// The values are what the host passed for this parameter.
    #[doc(hidden)]
    unsafe fn receive(first: Self::First, second: Self::Second) -> Self;
}

macro_rules! values {
    ($($type:ident as $abi:ident, $number:ident: |$value:ident| $receive:expr),* $(,)?) => {
        $(
            // SAFETY: what the host passes has the size, and every pattern is made into a value.
            unsafe impl Parameter for $type {
                type First = $abi;
                type Second = ();
                const DESCRIPTION: Description = Description {
                    class: class::VALUE,
                    number: number::$number,
                    size: size_of::<$type>() as u32,
                    align: align_of::<$type>() as u32,
                };
                #[inline(always)]
                unsafe fn receive($value: $abi, (): ()) -> $type {
                    $receive
                }
            }
        )*
    };
}

values!(
    u8 as u8, U8: |value| value,
    i8 as i8, I8: |value| value,
    u16 as u16, U16: |value| value,
    i16 as i16, I16: |value| value,
    u32 as u32, U32: |value| value,
    i32 as i32, I32: |value| value,
    u64 as u64, U64: |value| value,
    i64 as i64, I64: |value| value,
    usize as u64, U64: |value| value as usize,
    isize as i64, I64: |value| value as isize,
    f32 as f32, F32: |value| value,
    f64 as f64, F64: |value| value,
    bool as u8, BOOL: |value| value != 0,
    F16 as u16, F16: |value| F16::from_bits(value),
    F16x2 as u32, F16X2: |value| F16x2::from_bits(value),
);

const fn described<T: Element>(class: u32) -> Description {
    Description {
        class,
        number: T::NUMBER,
        size: size_of::<T>() as u32,
        align: align_of::<T>() as u32,
    }
}

/// What `&[T]` and `&T` may have in them: elements, which nobody writes while they are so borrowed, or atomics.
///
/// # Safety
/// Every pattern of bits is a value, and `&Self` may be in the hands of all threads.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be in a buffer of the device",
    note = "numbers, arrays of numbers, F16, F16x2 and atomics can; a structure of numbers with #[repr(C)] and \
     #[derive(Element, Clone, Copy)] can"
)]
pub unsafe trait Borrowed: 'static {
    #[doc(hidden)]
    const NUMBER: u32;
}

// SAFETY: plain data.
unsafe impl<T: Element> Borrowed for T {
    const NUMBER: u32 = T::NUMBER;
}

macro_rules! atomics {
    ($($type:ident $number:ident),*) => {
        $(
            // SAFETY: see `Atomics`.
            unsafe impl Borrowed for $type {
                const NUMBER: u32 = number::$number;
            }
        )*
        const _: fn() = || {
            fn is_atomic<T: Atomics>() {}
            $(is_atomic::<$type>();)*
        };
    };
}

atomics!(
    AtomicU8 U8, AtomicI8 I8, AtomicU16 U16, AtomicI16 I16, AtomicU32 U32, AtomicI32 I32, AtomicU64 U64,
    AtomicI64 I64, AtomicUsize U64, AtomicF32 F32
);

// SAFETY: the host passes address and number of elements of memory that outlives the launch.
unsafe impl<T: Borrowed> Parameter for &[T] {
    type First = *const T;
    type Second = u32;
    const DESCRIPTION: Description = Description {
        class: class::SLICE,
        number: T::NUMBER,
        size: size_of::<T>() as u32,
        align: align_of::<T>() as u32,
    };
    #[inline(always)]
    unsafe fn receive(start: *const T, len: u32) -> Self {
        // SAFETY: as the host promises.
        unsafe { core::slice::from_raw_parts(not_null(start), len as usize) }
    }
}

// SAFETY: the host passes the address of one value that outlives the launch.
unsafe impl<T: Borrowed> Parameter for &T {
    type First = *const T;
    type Second = ();
    const DESCRIPTION: Description = Description {
        class: class::REFERENCE,
        number: T::NUMBER,
        size: size_of::<T>() as u32,
        align: align_of::<T>() as u32,
    };
    #[inline(always)]
    unsafe fn receive(place: *const T, (): ()) -> Self {
        // SAFETY: as the host promises.
        unsafe { &*not_null(place) }
    }
}

// SAFETY: the host passes address and number of elements of memory that outlives the launch.
unsafe impl<T: Element> Parameter for DisjointMut<T> {
    type First = *mut T;
    type Second = u32;
    const DESCRIPTION: Description = described::<T>(class::DISJOINT);
    #[inline(always)]
    unsafe fn receive(start: *mut T, len: u32) -> Self {
        // SAFETY: as the host promises.
        unsafe { DisjointMut::from_raw_parts(not_null(start).cast_mut(), len as usize) }
    }
}

/// An address that the host passed, with the promise that it is none: without optimisation in rustc's own passes, which
/// is how kernels are compiled, the types do not say so to LLVM.
///
/// # Safety
/// It is not null.
#[inline(always)]
unsafe fn not_null<T>(place: *const T) -> *const T {
    // What types say of alignment is lost when structures fall apart into their fields. Where it is more than a
    // number's own, neighbours can be loaded together.
    let place = if align_of::<T>() >= 8 && size_of::<T>() > 8 {
        crate::device::assume_aligned(place.cast(), align_of::<T>() as u32).cast()
    } else {
        place
    };
    if place.is_null() {
        // `unreachable_unchecked` would stay a call. SAFETY: as the caller promises, nothing comes here.
        match unsafe { *core::ptr::dangling::<core::convert::Infallible>() } {}
    }
    place
}

/// What the host reads about a kernel: a header, the parameters, and a text of lines.
#[doc(hidden)]
#[repr(C)]
#[derive(Debug)]
pub struct Descriptor<const PARAMETERS: usize, const TEXT: usize> {
    pub version: u32,
    pub count: u32,
    pub parameters: [Description; PARAMETERS],
    pub text: [u8; TEXT],
}

impl<const PARAMETERS: usize, const TEXT: usize> Descriptor<PARAMETERS, TEXT> {
    pub const fn new(parameters: [Description; PARAMETERS], text: &[u8; TEXT]) -> Self {
        Descriptor {
            version: 1,
            count: PARAMETERS as u32,
            parameters,
            text: *text,
        }
    }
}
