//! Twelve programs as a user writes them, each in a file of its own: what `thisgpu-build`'s test `programs` launches
//! and compares with the same on the host.

#![no_std]

extern crate alloc;

pub mod fft;
pub mod fields;
pub mod interpreter;
pub mod inverse;
pub mod kmeans;
pub mod life;
pub mod lookback;
pub mod median;
pub mod nbody;
pub mod radix;
pub mod table;
pub mod trace;
