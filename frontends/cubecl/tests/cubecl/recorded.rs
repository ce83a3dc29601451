//! What comes of each of CubeCL's tests, each of which says with a line for each launch that there was one.

use cubecl_thisgpu::{DEVICE_VARIABLE, REPORT_VARIABLE};
use thisgpu_recorded::{Outcome, Reasons, Suite};

const HOST: &str = "about the host's side";

const REFUSED: &str = "about launches that do not come to run";

/// Parts of names of tests that launch nothing, and why.
const WITHOUT_LAUNCH: Reasons = &[
    ("mma", "no matrix instructions"),
    ("tensormap", "no tensor maps"),
    ("barrier", "no barriers in memory"),
    ("cluster", "no clusters"),
    ("fp6", "no floats of 6 bits"),
    (
        "f64_ty::test_vector_index",
        "no access is as wide as four f64",
    ),
    ("u64_ty::test_", "left out for u64 by CubeCL"),
    ("allocation_mode::", HOST),
    ("out_of_memory::", HOST),
    ("test_all_reduce_sync_collective", HOST),
    ("empty_tensor", HOST),
    ("test_kernel_load_file", HOST),
    ("test_read_lazy", HOST),
    ("test_to_client", HOST),
    ("test_launch_zero_cube_count", REFUSED),
    ("_error", REFUSED),
    ("test_launch_expansion_panic_fails_the_read", REFUSED),
    ("test_launch_with_comptime_name_disambiguation", HOST),
];

/// Tests whose kernels a checking device refuses, and what they do.
const FINDINGS: Reasons = &[
    (
        "tests::test_cubecl_std::reinterpret_slice_f16::shared_memory::write_from_i8x4",
        "reads shared memory behind the end of its array, and what other units write, without a barrier",
    ),
    (
        "tests::test_finished_sync_cube",
        "two cubes write and read the same buffer",
    ),
    (
        "tests::test_sync_plane",
        "a plane reads what another has written, with a barrier of the plane",
    ),
    (
        "tests::test_sync_storage_over_a_stale_copy",
        "reads what other cubes write on purpose, to have stale copies",
    ),
];

const SUITE: Suite = Suite {
    title: "CubeCL's tests on this device",
    record: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cubecl/results.txt"),
    environment: &[(REPORT_VARIABLE, "1"), (DEVICE_VARIABLE, "plain")],
    launched: "launch ",
    without_launch: WITHOUT_LAUNCH,
    failing: &[],
};

#[test]
fn recorded() {
    if let Err(difference) = SUITE.compare() {
        panic!("{difference}");
    }
}

/// The device that looks for races finds those of CubeCL's own kernels, and no others.
#[test]
fn recorded_checks() {
    let outcomes = SUITE.outcomes(&[(DEVICE_VARIABLE, "checking")]);
    let outcomes = outcomes.expect("the test binary runs");
    let failed = outcomes
        .iter()
        .filter(|(outcome, _)| matches!(outcome, Outcome::Failed(_)));
    let found: Vec<&str> = failed
        .flat_map(|(_, names)| names)
        .map(String::as_str)
        .collect();
    let expected: Vec<_> = FINDINGS.iter().map(|(name, _)| *name).collect();
    assert_eq!(found, expected);
}
