//! CubeK's own tests, and the record of what comes of them.
//!
//! `cargo test -p cubek-recorded recorded` runs them all, one process each, and compares with `results.txt`;
//! `CRANELIFT_TEST_BLESS=1` writes it. Without a filter they run in this process, as CubeK's authors run them.

#![allow(missing_docs, warnings, clippy::all)]

mod recorded;

include!(concat!(env!("OUT_DIR"), "/tests.rs"));
