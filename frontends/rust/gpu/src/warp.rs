//! What the lanes of a warp do together: 32 threads, numbered as they are in the block.
//!
//! Values are numbers, arrays and structures of numbers: each 32 bits of them are an instruction. A shuffle needs the
//! lane that it reads in the same call; votes, ballots and matches work on the lanes that are there. [`Tile`] does the
//! same among 2 to 32 lanes, [`block`](crate::block) among all threads of a block. On the host a warp is one lane.

use crate::device;
use crate::element::Element;
use core::cell::Cell;

pub use crate::tile::Tile;

/// Lanes of a warp.
pub const LANES: u32 = 32;

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
pub fn shuffle<T: Element>(value: T, lane: u32) -> T {
    value.each_word(&|word| device::shfl_idx(word, lane))
}

/// The value of the lane so many below; the own one if there is none.
#[inline(always)]
pub fn shuffle_up<T: Element>(value: T, distance: u32) -> T {
    value.each_word(&|word| device::shfl_up(word, distance))
}

/// The value of the lane so many above; the own one if there is none.
#[inline(always)]
pub fn shuffle_down<T: Element>(value: T, distance: u32) -> T {
    value.each_word(&|word| device::shfl_down(word, distance))
}

/// The value of the lane whose number is the own one xor `mask`.
#[inline(always)]
pub fn shuffle_xor<T: Element>(value: T, mask: u32) -> T {
    value.each_word(&|word| device::shfl_bfly(word, mask))
}

/// The value of the first lane that is here.
#[inline(always)]
pub fn broadcast_first<T: Element>(value: T) -> T {
    shuffle(value, active().trailing_zeros())
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

/// The lanes here with the same value, bit for bit. A value without bits is the same for all.
#[inline(always)]
pub fn match_any<T: Element>(value: T) -> u32 {
    if T::WORDS == 0 {
        return active();
    }
    let same = Cell::new(u32::MAX);
    value.each_word(&|word| {
        same.set(same.get() & device::match_any(word));
        word
    });
    same.get()
}

/// Whether all lanes that are here have the same value, bit for bit.
#[inline(always)]
pub fn match_all<T: Element>(value: T) -> bool {
    match_any(value) == active()
}

/// Waits for the lanes of the mask, of which this must be one; orders their accesses to shared and global memory.
#[inline(always)]
pub fn sync(mask: u32) {
    device::warp_sync(mask);
}

/// What all 32 lanes have together, by an operation that is commutative and associative; every lane gets it. All lanes
/// must be here.
///
/// On the host, where a lane is alone, the value is given back.
#[inline(always)]
pub fn reduce<T: Element>(value: T, operation: impl Fn(T, T) -> T) -> T {
    Tile::<32>::this().reduce(value, operation)
}

/// The sum over all 32 lanes, each of which must be here.
#[inline(always)]
pub fn sum<T: Element + core::ops::Add<Output = T>>(value: T) -> T {
    reduce(value, |a, b| a + b)
}

/// What the lanes up to this one have together, this one included. All lanes must be here.
#[inline(always)]
pub fn scan<T: Element>(value: T, operation: impl Fn(T, T) -> T) -> T {
    Tile::<32>::this().scan(value, operation)
}

/// What the lanes below this one have together, in the first one `first`. All lanes must be here.
#[inline(always)]
pub fn scan_exclusive<T: Element>(value: T, first: T, operation: impl Fn(T, T) -> T) -> T {
    Tile::<32>::this().scan_exclusive(value, first, operation)
}
