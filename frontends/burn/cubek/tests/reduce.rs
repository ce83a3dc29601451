//! The tests of cubek-reduce: see `src/lib.rs`.

#![allow(missing_docs, warnings, clippy::all)]

mod recorded;

include!(concat!(env!("OUT_DIR"), "/reduce.rs"));
