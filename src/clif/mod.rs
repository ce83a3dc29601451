//! From CLIF text to a function that is ready to be lowered.

pub mod intrinsics;
pub mod resolve;
pub mod source;
