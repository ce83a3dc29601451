//! The simulator: the default device, and the reference for what instructions mean.

pub mod semantics;
