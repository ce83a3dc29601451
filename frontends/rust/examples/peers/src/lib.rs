//! The kernels of `filetests/kernels` that other compilers have too, written as one writes Rust: slices with their
//! lengths, `Option`s, iterators, no `unsafe`.

#![no_std]
#![deny(unsafe_code)]

mod elementwise;
mod loops;
mod tiles;

pub use elementwise::*;
pub use loops::*;
pub use tiles::*;
