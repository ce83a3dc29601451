//! The guide's programs as tests: each Rust block of its pages compiles and runs.

#[doc = include_str!("../README.md")]
mod readme {}

#[doc = include_str!("../docs/guide/start.md")]
mod start {}

#[doc = include_str!("../docs/guide/launching.md")]
mod launching {}

#[doc = include_str!("../docs/guide/objects.md")]
mod objects {}
