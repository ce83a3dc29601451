//! Kernels in ordinary Rust: what a kernel crate uses.
//!
//! A kernel is a function with `#[kernel]` in a `no_std` crate, compiled by stable rustc for the host and translated
//! from there by `thisgpu-build` or `cargo thisgpu`.
//!
//! ```
//! # #![allow(clippy::needless_doctest_main)]
//! use thisgpu_gpu::*;
//!
//! /// y += a · x, an element a thread.
//! #[kernel(max_threads = 256)]
//! pub fn saxpy(a: f32, x: &[f32], mut y: DisjointMut<f32>) {
//!     if let Some((x, y)) = thread::own((x, &mut y)) {
//!         *y = a.mul_add(*x, *y);
//!     }
//! }
//! # fn main() {
//! # let mut y = [1.0];
//! # saxpy(2.0, &[3.0], DisjointMut::from_slice(&mut y));
//! # assert_eq!(y, [7.0]);
//! # }
//! ```
//!
//! The crate compiles for the host as it is, so that `cargo check` and editors work. There its operations are those of
//! a launch of one thread, and `cargo test` runs what makes sense so.
//!
//! | for | there is |
//! | --- | --- |
//! | which thread this is, barriers, fences | [`thread`] |
//! | lanes of a warp: shuffles, votes, sums | [`warp`], [`warp::Tile`] |
//! | all threads of a block: sums, prefixes | [`block`] |
//! | buffers that threads write | [`DisjointMut`], [`thread::own`], [`thread::strided`] |
//! | which part of them is whose | [`Linear`], [`Chunks`], [`Blocks`], [`Rows`], [`Plane`], [`Volume`] |
//! | rows and planes that are read | [`View2`], [`View3`] |
//! | shared memory | [`Shared`], [`shared!`], [`dynamic_shared`] |
//! | memory that the host fills | [`macro@device_static`] |
//! | atomics | `core::sync::atomic`, [`AtomicF32`], [`AtomicF64`], [`AtomicF16x2`] |
//! | halves | [`F16`], [`F16x2`] |
//! | mathematics | [`Float`], [`fast`] |
//! | products of bytes | [`dot4_signed`], [`dot4_unsigned`] |
//! | output | [`print!`], [`println!`] |
//! | tests on the device | [`kernel_test`] |
//!
//! `panic!`, `assert!`, indexing and the like end the launch with a fault that names the line and the thread.
//!
//! The crate has `unsafe` inside: it is what turns addresses that the host passed into references.

#![cfg_attr(not(test), no_std)]

// What its macros write is right in here too.
extern crate self as thisgpu_gpu;

mod atomic;
pub mod block;
mod device;
mod device_static;
mod element;
mod elements;
pub mod fast;
mod float;
mod half;
#[cfg(not(thisgpu))]
mod host;
mod index;
mod memory;
#[doc(hidden)]
pub mod parameter;
mod partition;
#[doc(hidden)]
pub mod print;
mod shared;
pub mod thread;
mod tile;
mod view;
pub mod warp;

pub use atomic::{AtomicF16x2, AtomicF32, AtomicF64};
pub use device_static::DeviceStatic;
pub use element::Element;
pub use elements::{Elements, StridedElements};
pub use float::Float;
pub use half::{F16, F16x2, Mask16x2};
pub use index::{BlockIndex, Index1, Index2, Index3, ThreadIndex};
pub use memory::DisjointMut;
pub use parameter::{Borrowed, Parameter};
pub use partition::{Blocks, Chunks, Linear, Partition, Plane, Rows, Strided, Volume};
pub use print::{Print, PrintDisplay};
pub use shared::{Atomics, DynamicShared, Shared, dynamic_shared};
pub use view::{View2, View3};

pub use thisgpu_gpu_macros::{
    Element, Print, device_static, kernel, kernel_test, print, println, shared,
};

/// Whether this is compiled for the device.
pub const ON_DEVICE: bool = cfg!(thisgpu);

/// `c` and the sum of the products of four signed bytes each, modulo 2^32: one instruction.
#[inline(always)]
pub fn dot4_signed(a: u32, b: u32, c: i32) -> i32 {
    device::dp4a_s8s8(a, b, c as u32) as i32
}

/// `c` and the sum of the products of four unsigned bytes each, modulo 2^32: one instruction.
#[inline(always)]
pub fn dot4_unsigned(a: u32, b: u32, c: u32) -> u32 {
    device::dp4a_u8u8(a, b, c)
}

/// What only the device gets: the entries of kernels and what the host reads about them.
#[doc(hidden)]
#[cfg(thisgpu)]
#[macro_export]
macro_rules! __device_only {
    ($($item:item)*) => { $($item)* };
}

/// What only the device gets: nothing on the host.
#[doc(hidden)]
#[cfg(not(thisgpu))]
#[macro_export]
macro_rules! __device_only {
    ($($item:item)*) => {};
}

/// On the device the first, on the host the second.
#[doc(hidden)]
#[cfg(thisgpu)]
#[macro_export]
macro_rules! __device_or_host {
    ({ $($device:tt)* } { $($host:tt)* }) => { $($device)* };
}

/// On the device the first, on the host the second.
#[doc(hidden)]
#[cfg(not(thisgpu))]
#[macro_export]
macro_rules! __device_or_host {
    ({ $($device:tt)* } { $($host:tt)* }) => { $($host)* };
}
