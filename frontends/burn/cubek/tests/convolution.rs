//! The tests of cubek-convolution: see `src/lib.rs`.

#![allow(missing_docs, warnings, clippy::all)]

mod recorded;

include!(concat!(env!("OUT_DIR"), "/convolution.rs"));
