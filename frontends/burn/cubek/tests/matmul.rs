//! The tests of cubek-matmul: see `src/lib.rs`.

#![allow(missing_docs, warnings, clippy::all)]

mod recorded;

include!(concat!(env!("OUT_DIR"), "/matmul.rs"));
