//! What may be in a buffer, and which numbers there are.

use crate::half::{F16, F16x2};

/// Types of numbers; `OTHER` is a structure or an array.
#[doc(hidden)]
pub mod number {
    pub const OTHER: u32 = 0;
    pub const U8: u32 = 1;
    pub const I8: u32 = 2;
    pub const U16: u32 = 3;
    pub const I16: u32 = 4;
    pub const U32: u32 = 5;
    pub const I32: u32 = 6;
    pub const U64: u32 = 7;
    pub const I64: u32 = 8;
    pub const F32: u32 = 9;
    pub const F64: u32 = 10;
    pub const BOOL: u32 = 11;
    pub const F16: u32 = 12;
    pub const F16X2: u32 = 13;
    pub const U128: u32 = 14;
    pub const I128: u32 = 15;
}

/// What may be an element of a buffer: every pattern of its bytes is a value. `#[derive(Element)]` makes structures
/// such.
///
/// # Safety
/// Every pattern of bits is a value, and the layout is that of `repr(C)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be in a buffer of the device",
    note = "numbers, arrays of numbers, F16 and F16x2 can; a structure of them with #[repr(C)] and #[derive(Element, \
     Clone, Copy)] can"
)]
pub unsafe trait Element: Copy + 'static {
    /// Which number type it is.
    #[doc(hidden)]
    const NUMBER: u32 = number::OTHER;
}

// SAFETY: an array of such.
unsafe impl<T: Element, const N: usize> Element for [T; N] {}

macro_rules! elements {
    ($($type:ident $number:ident),*) => {
        $(
            // SAFETY: a number.
            unsafe impl Element for $type {
                const NUMBER: u32 = number::$number;
            }
        )*
    };
}

elements!(
    u8 U8, i8 I8, u16 U16, i16 I16, u32 U32, i32 I32, u64 U64, i64 I64, usize U64, isize I64, u128 U128, i128 I128,
    f32 F32, f64 F64, F16 F16, F16x2 F16X2
);
