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

/// What may be an element of a buffer, and go from lane to lane of a warp: every pattern of its bytes is a value.
/// `#[derive(Element)]` makes structures such.
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
    /// Words of 32 bits that it is made of; a smaller number is one, and what is between fields none.
    #[doc(hidden)]
    const WORDS: usize;
    /// This value with each of its words replaced by what `through` gives for it, in their order.
    #[doc(hidden)]
    fn each_word(self, through: &impl Fn(u32) -> u32) -> Self;
}

/// Elements of an array that are taken one by one; the others are in a loop, in memory.
const UNROLLED: usize = 8;

// SAFETY: an array of such.
unsafe impl<T: Element, const N: usize> Element for [T; N] {
    const WORDS: usize = N * T::WORDS;

    #[inline(always)]
    fn each_word(mut self, through: &impl Fn(u32) -> u32) -> Self {
        // Written out: a loop that lanes go through together is not unrolled, and an array with a running index is in
        // memory.
        macro_rules! at {
            ($($index:literal)*) => {
                $(if $index < N {
                    self[$index] = self[$index].each_word(through);
                })*
            };
        }
        at!(0 1 2 3 4 5 6 7);
        let mut index = UNROLLED;
        while index < N {
            self[index] = self[index].each_word(through);
            index += 1;
        }
        self
    }
}

macro_rules! elements {
    ($($type:ident $number:ident $words:literal |$value:ident, $through:ident| $body:expr),* $(,)?) => {
        $(
            // SAFETY: a number.
            unsafe impl Element for $type {
                const NUMBER: u32 = number::$number;
                const WORDS: usize = $words;

                #[inline(always)]
                fn each_word(self, $through: &impl Fn(u32) -> u32) -> Self {
                    let $value = self;
                    $body
                }
            }
        )*
    };
}

elements!(
    u8 U8 1 |x, through| through(x.into()) as u8,
    i8 I8 1 |x, through| through(x as u32) as i8,
    u16 U16 1 |x, through| through(x.into()) as u16,
    i16 I16 1 |x, through| through(x as u32) as i16,
    u32 U32 1 |x, through| through(x),
    i32 I32 1 |x, through| through(x as u32) as i32,
    u64 U64 2 |x, through| u64::from(through(x as u32)) | u64::from(through((x >> 32) as u32)) << 32,
    i64 I64 2 |x, through| (x as u64).each_word(through) as i64,
    usize U64 2 |x, through| (x as u64).each_word(through) as usize,
    isize I64 2 |x, through| (x as u64).each_word(through) as isize,
    u128 U128 4 |x, through| {
        let low = (x as u64).each_word(through);
        u128::from(low) | u128::from(((x >> 64) as u64).each_word(through)) << 64
    },
    i128 I128 4 |x, through| (x as u128).each_word(through) as i128,
    f32 F32 1 |x, through| f32::from_bits(through(x.to_bits())),
    f64 F64 2 |x, through| f64::from_bits(x.to_bits().each_word(through)),
    F16 F16 1 |x, through| F16::from_bits(through(x.to_bits().into()) as u16),
    F16x2 F16X2 1 |x, through| F16x2::from_bits(through(x.to_bits())),
);
