//! Whole crates of kernels, compiled and launched. One program, since each crate of the examples is translated once in
//! it, and tests that wait for one another's crates run side by side.

mod common;
mod launch;
mod module;
mod peers;
mod programs;
mod registry;
mod runtime;
mod shared;
mod sharing;
mod together;
