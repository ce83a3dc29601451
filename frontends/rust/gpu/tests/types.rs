//! Programs in which two threads would have one element, and other misuse: rustc refuses each of them, for the reason
//! that is recorded.
//!
//! `TRYBUILD=overwrite` records anew. Those that only the launch can refuse are in `thisgpu-build`'s tests.

#[test]
fn two_threads_with_one_element_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}

#[test]
fn misuse_is_named_at_its_place() {
    trybuild::TestCases::new().compile_fail("tests/misused/*.rs");
}
