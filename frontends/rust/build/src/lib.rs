//! Compiles crates of Rust kernels.
