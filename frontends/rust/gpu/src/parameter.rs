//! What a kernel's parameters may be, and how each crosses from the host.

pub use crate::element::number;

use crate::atomic::{AtomicF16x2, AtomicF32, AtomicF64};
use crate::element::Element;
use crate::half::{F16, F16x2};
use crate::memory::DisjointMut;
use crate::partition::{Extents, Partition};
use crate::shared::Atomics;
use crate::view::{View2, View3};
use core::sync::atomic::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
    AtomicUsize,
};

/// How the host hands a parameter over: what it is, what the kernel does with it, which number type it or its elements
/// are, their size and alignment, and how many dimensions a launch may have with it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Description {
    /// One of the constants of [`class`].
    pub class: u32,
    /// One of the constants of [`access`].
    pub access: u32,
    /// Dimensions that a launch may have: 1 to 3.
    pub dimensions: u32,
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
    pub const REFERENCE: u32 = 1;
    pub const SLICE: u32 = 2;
    pub const PLANE: u32 = 3;
    pub const VOLUME: u32 = 4;
}

/// What a kernel does with memory.
#[doc(hidden)]
pub mod access {
    pub const NONE: u32 = 0;
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const ATOMIC: u32 = 3;
}

/// What may be a parameter of a kernel.
///
/// Numbers of elements cross as 32 bits: a comparison with a thread's number is then one of 32 bits.
///
/// # Safety
/// `DESCRIPTION` says what the host has to pass so that an entry gets what the other items say.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a kernel",
    note = "a parameter is a number, `bool`, `F16`, `F16x2`, `&[T]`, `&T`, `View2<T>`, `View3<T>`, also of atomics, or \
     `DisjointMut<T>` for what is written"
)]
pub unsafe trait Parameter: Sized {
    #[doc(hidden)]
    type First;
    #[doc(hidden)]
    type Second;
    #[doc(hidden)]
    type Third;
    #[doc(hidden)]
    type Fourth;
    #[doc(hidden)]
    const DESCRIPTION: Description;
}

/// What a parameter is made of, within a launch: nothing that it refers to lives longer.
///
/// # Safety
/// What `receive` gives is valid as long as the launch, if the host passed what `DESCRIPTION` says.
#[doc(hidden)]
pub unsafe trait Received<'launch>: Parameter {
    /// # Safety
    /// The values are what the host passed for this parameter.
    unsafe fn receive(
        launch: &'launch Launch,
        first: Self::First,
        second: Self::Second,
        third: Self::Third,
        fourth: Self::Fourth,
    ) -> Self;
}

/// Something that lives as long as a launch.
#[doc(hidden)]
#[derive(Debug)]
pub struct Launch;

macro_rules! values {
    ($($type:ident as $abi:ident, $number:ident: |$value:ident| $receive:expr),* $(,)?) => {
        $(
            // SAFETY: what the host passes has the size, and every pattern is made into a value.
            unsafe impl Parameter for $type {
                type First = $abi;
                type Second = ();
                type Third = ();
                type Fourth = ();
                const DESCRIPTION: Description = Description {
                    class: class::VALUE,
                    access: access::NONE,
                    dimensions: 3,
                    number: number::$number,
                    size: size_of::<$type>() as u32,
                    align: align_of::<$type>() as u32,
                };
            }

            // SAFETY: it refers to nothing.
            unsafe impl Received<'_> for $type {
                #[inline(always)]
                unsafe fn receive(_: &Launch, $value: $abi, (): (), (): (), (): ()) -> $type {
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
    #[doc(hidden)]
    const ACCESS: u32;
}

// SAFETY: plain data.
unsafe impl<T: Element> Borrowed for T {
    const NUMBER: u32 = T::NUMBER;
    const ACCESS: u32 = access::READ;
}

macro_rules! atomics {
    ($($type:ident $number:ident),*) => {
        $(
            // SAFETY: see `Atomics`.
            unsafe impl Borrowed for $type {
                const NUMBER: u32 = number::$number;
                const ACCESS: u32 = access::ATOMIC;
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
    AtomicI64 I64, AtomicUsize U64, AtomicF32 F32,
    AtomicF64 F64, AtomicF16x2 F16X2
);

/// In how many directions elements lie: the extents that cross from the host.
pub trait Directions {
    #[doc(hidden)]
    const CLASS: u32;
    #[doc(hidden)]
    type Second;
    #[doc(hidden)]
    type Third;
    #[doc(hidden)]
    type Fourth;
    #[doc(hidden)]
    fn extents(second: Self::Second, third: Self::Third, fourth: Self::Fourth) -> Extents;
}

macro_rules! directions {
    ($(
        $(#[$attribute:meta])*
        $name:ident: $class:ident ($x:ident: $second:ty, $y:ident: $third:ty, $z:ident: $fourth:ty) $extents:expr;
    )*) => {
        $(
            $(#[$attribute])*
            #[derive(Debug)]
            pub enum $name {}

            impl Directions for $name {
                const CLASS: u32 = class::$class;
                type Second = $second;
                type Third = $third;
                type Fourth = $fourth;
                #[inline(always)]
                fn extents($x: $second, $y: $third, $z: $fourth) -> Extents {
                    $extents
                }
            }
        )*
    };
}

directions!(
    /// One element.
    Point: REFERENCE (_x: (), _y: (), _z: ()) Extents::line(1);
    /// One behind the other.
    Line: SLICE (x: u32, _y: (), _z: ()) Extents::line(x);
    /// Rows.
    Flat: PLANE (x: u32, y: u32, _z: ()) Extents { x, y, z: 1 };
    /// Planes of rows.
    Deep: VOLUME (x: u32, y: u32, z: u32) Extents { x, y, z };
);

/// Memory: its address, and its extents behind it.
macro_rules! memories {
    ($(
        [$($generics:tt)*] $type:ty as $here:ty: $address:ty, $directions:ty, ($access:expr, $dimensions:expr),
        |$start:ident, $extents:ident| $receive:expr;
    )*) => {
        $(
            // SAFETY: the host passes the address of so many elements, fewer than 2^32, in memory that is there as long
            // as the launch. Nobody else writes what is read, or reaches what is written, and the launch has no more
            // dimensions than the type says.
            unsafe impl<$($generics)*> Parameter for $type {
                type First = $address;
                type Second = <$directions as Directions>::Second;
                type Third = <$directions as Directions>::Third;
                type Fourth = <$directions as Directions>::Fourth;
                const DESCRIPTION: Description = Description {
                    class: <$directions as Directions>::CLASS,
                    access: $access,
                    dimensions: $dimensions,
                    number: T::NUMBER,
                    size: size_of::<T>() as u32,
                    align: align_of::<T>() as u32,
                };
            }

            // SAFETY: as long as the launch, for the same reasons.
            unsafe impl<'launch, $($generics)*> Received<'launch> for $here {
                #[inline(always)]
                unsafe fn receive(
                    _: &'launch Launch,
                    start: $address,
                    second: Self::Second,
                    third: Self::Third,
                    fourth: Self::Fourth,
                ) -> Self {
                    let $extents = <$directions as Directions>::extents(second, third, fourth);
                    // SAFETY: as the host promises.
                    unsafe {
                        let $start = not_null(start);
                        $receive
                    }
                }
            }
        )*
    };
}

memories!(
    [T: Borrowed] &T as &'launch T: *const T, Point, (T::ACCESS, 3), |start, _extents| &*start;
    [T: Borrowed] &[T] as &'launch [T]: *const T, Line, (T::ACCESS, 3),
        |start, extents| core::slice::from_raw_parts(start, extents.x as usize);
    [T: Borrowed] View2<'_, T> as View2<'launch, T>: *const T, Flat, (T::ACCESS, 3),
        |start, extents| View2::from_raw_parts(start, extents);
    [T: Borrowed] View3<'_, T> as View3<'launch, T>: *const T, Deep, (T::ACCESS, 3),
        |start, extents| View3::from_raw_parts(start, extents);
    [T: Element, P: Partition] DisjointMut<'_, T, P> as DisjointMut<'launch, T, P>: *mut T,
        P::Directions, (access::WRITE, P::DIMENSIONS),
        |start, extents| DisjointMut::from_raw(start.cast_mut(), extents);
);

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
            version: 2,
            count: PARAMETERS as u32,
            parameters,
            text: *text,
        }
    }
}
