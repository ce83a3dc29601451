//! What the lanes of a warp do together: 32 threads, numbered as they are in the block.
//!
//! A shuffle needs the lane that it reads in the same call; votes and ballots work on the lanes that are there. On the
//! host a warp is one lane.

use crate::device;

/// Lanes of a warp.
pub const LANES: u32 = 32;

/// A value that moves between lanes: 32 or 64 bits.
pub trait Lane: Copy {
    /// This value with each 32 bits of it replaced by what `through` gives for them.
    fn each_word(self, through: impl Fn(u32) -> u32) -> Self;
}

macro_rules! lanes {
    ($($type:ident ($value:ident, $through:ident) $body:expr),*) => {
        $(
            impl Lane for $type {
                #[inline(always)]
                fn each_word(self, $through: impl Fn(u32) -> u32) -> $type {
                    let $value = self;
                    $body
                }
            }
        )*
    };
}

lanes!(
    u32(x, through) through(x),
    i32(x, through) through(x as u32) as i32,
    f32(x, through) f32::from_bits(through(x.to_bits())),
    u64(x, through) u64::from(through(x as u32)) | u64::from(through((x >> 32) as u32)) << 32,
    i64(x, through) (x as u64).each_word(through) as i64,
    usize(x, through) (x as u64).each_word(through) as usize,
    f64(x, through) f64::from_bits(x.to_bits().each_word(through))
);

impl Lane for crate::F16x2 {
    #[inline(always)]
    fn each_word(self, through: impl Fn(u32) -> u32) -> Self {
        crate::F16x2::from_bits(through(self.to_bits()))
    }
}

/// This thread's lane, 0 to 31.
#[inline(always)]
pub fn lane() -> u32 {
    device::laneid()
}

/// This warp's number in its block.
#[inline(always)]
pub fn warp() -> u32 {
    device::warpid()
}

/// The value of a lane, of its number modulo 32.
#[inline(always)]
pub fn shuffle<T: Lane>(value: T, lane: u32) -> T {
    value.each_word(|word| device::shfl_idx(word, lane))
}

/// The value of the lane so many below; the own one if there is none.
#[inline(always)]
pub fn shuffle_up<T: Lane>(value: T, distance: u32) -> T {
    value.each_word(|word| device::shfl_up(word, distance))
}

/// The value of the lane so many above; the own one if there is none.
#[inline(always)]
pub fn shuffle_down<T: Lane>(value: T, distance: u32) -> T {
    value.each_word(|word| device::shfl_down(word, distance))
}

/// The value of the lane whose number is the own one xor `mask`.
#[inline(always)]
pub fn shuffle_xor<T: Lane>(value: T, mask: u32) -> T {
    value.each_word(|word| device::shfl_bfly(word, mask))
}

/// The lanes for which it holds, a bit each.
#[inline(always)]
pub fn ballot(holds: bool) -> u32 {
    device::ballot(u8::from(holds))
}

/// Whether it holds for all lanes that are here.
#[inline(always)]
pub fn all(holds: bool) -> bool {
    device::vote_all(u8::from(holds)) != 0
}

/// Whether it holds for some lane that is here.
#[inline(always)]
pub fn any(holds: bool) -> bool {
    device::vote_any(u8::from(holds)) != 0
}

/// The lanes that are here.
#[inline(always)]
pub fn active() -> u32 {
    device::activemask()
}

/// The lanes here with the same value.
#[inline(always)]
pub fn match_any(value: u32) -> u32 {
    device::match_any(value)
}

/// Waits for the lanes of the mask, of which this must be one; orders their accesses to shared and global memory.
#[inline(always)]
pub fn sync(mask: u32) {
    device::warp_sync(mask);
}

/// What all 32 lanes have together, by an operation that is commutative and associative; every lane gets it. All lanes
/// must be here.
///
/// On the host, where a lane is alone, the operation would meet the own value again and again, so the value is given
/// back.
#[inline(always)]
pub fn reduce<T: Lane>(value: T, operation: impl Fn(T, T) -> T) -> T {
    if !crate::ON_DEVICE {
        return value;
    }
    // Not a loop: the copies are where the source has them whatever is done to loops.
    let value = operation(value, shuffle_xor(value, 16));
    let value = operation(value, shuffle_xor(value, 8));
    let value = operation(value, shuffle_xor(value, 4));
    let value = operation(value, shuffle_xor(value, 2));
    operation(value, shuffle_xor(value, 1))
}

/// The sum over all 32 lanes, each of which must be here.
#[inline(always)]
pub fn sum<T: Lane + core::ops::Add<Output = T>>(value: T) -> T {
    reduce(value, |a, b| a + b)
}

/// What the lanes up to this one have together, this one included. All lanes must be here.
#[inline(always)]
pub fn scan<T: Lane>(value: T, operation: impl Fn(T, T) -> T) -> T {
    if !crate::ON_DEVICE {
        return value;
    }
    let lane = lane();
    let step = |value: T, distance: u32| {
        let below = shuffle_up(value, distance);
        if lane >= distance {
            operation(below, value)
        } else {
            value
        }
    };
    step(step(step(step(step(value, 1), 2), 4), 8), 16)
}
