//! The tests of CubeK 0.3.1, the kernels that Burn launches, on the simulator.
//!
//! Nothing of them is kept here: `build.rs` finds the sources that cargo has of CubeK's packages, and each test target
//! is the tests of one package. `cargo test -p cubek-recorded --test reduce recorded` runs those of cubek-reduce, one
//! process each, and compares with `tests/recorded/reduce.txt`; `CRANELIFT_TEST_BLESS=1` writes it. Without a filter
//! they run in one process, as CubeK's authors run them. All targets together take long to build.
