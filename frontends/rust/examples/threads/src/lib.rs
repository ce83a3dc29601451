//! How buffers are shared out among the threads of a launch, and what threads do together.

#![no_std]

pub mod sharing;
pub mod together;
