//! What comes of each of CubeCL's tests, each of which says with a line for each launch that there was one.

use cubecl_thisgpu::{DEVICE_VARIABLE, REPORT_VARIABLE};
use thisgpu_recorded::Sign::Name;
use thisgpu_recorded::{Outcome, Reasons, Suite};

const HOST: &str = "about the host's side";

const REFUSED: &str = "about launches that do not come to run";

/// Tests that launch nothing, and why.
const WITHOUT_LAUNCH: Reasons = &[
    (Name("mma"), "no matrix instructions"),
    (Name("tensormap"), "no tensor maps"),
    (Name("barrier"), "no barriers in memory"),
    (Name("cluster"), "no clusters"),
    (Name("fp6"), "no floats of 6 bits"),
    (
        Name("f64_ty::test_vector_index"),
        "no access is as wide as four f64",
    ),
    (Name("u64_ty::test_"), "left out for u64 by CubeCL"),
    (Name("allocation_mode::"), HOST),
    (Name("out_of_memory::"), HOST),
    (Name("test_all_reduce_sync_collective"), HOST),
    (Name("empty_tensor"), HOST),
    (Name("test_kernel_load_file"), HOST),
    (Name("test_read_lazy"), HOST),
    (Name("test_to_client"), HOST),
    (Name("test_launch_zero_cube_count"), REFUSED),
    (Name("_error"), REFUSED),
    (Name("complex_validation::"), REFUSED),
    (Name("test_launch_expansion_panic_fails_the_read"), REFUSED),
    (Name("test_launch_with_comptime_name_disambiguation"), HOST),
];

/// Tests that fail on a checking device: what is said, and what they do.
const FINDINGS: &[(&str, &[&str], &str)] = &[
    (
        "tests::allocation_mode::a_new_threads_first_allocation_honors_its_allocation_mode",
        &["and only that one, is persistent"],
        "wants memory that is kept for good, which is given out again with what it holds; this device keeps none",
    ),
    (
        "tests::test_cubecl_std::reinterpret_slice_f16::shared_memory::write_from_i8x4",
        &[
            "race on byte",
            "of shared memory",
            "used before anything was written",
        ],
        "reads shared memory behind the end of its array, and what other units write, without a barrier",
    ),
    (
        "tests::test_finished_sync_cube",
        &["race on byte", "of global memory"],
        "two cubes write and read the same buffer",
    ),
    (
        "tests::test_sync_plane",
        &["race on byte", "of shared memory"],
        "a plane reads what another has written, with a barrier of the plane",
    ),
    (
        "tests::test_sync_storage_over_a_stale_copy",
        &["race on byte", "of global memory"],
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

/// The device that looks for races finds those of CubeCL's own kernels, and no others; what launches on the plain
/// device launches on this one.
#[test]
fn recorded_checks() {
    let ran = SUITE.outcomes(&[(DEVICE_VARIABLE, "checking")]);
    let ran = ran.expect("the test binary runs");
    let launching = SUITE.recorded_names("passed with a launch");
    let failed = ran.iter().filter(|(_, (_, ran))| !ran.has_passed());
    let mut wrong = Vec::new();
    for name in launching.expect("there is a record") {
        let outcome = ran.get(&name).map(|(outcome, _)| *outcome);
        // Those that fail are told below.
        if !matches!(outcome, Some(Outcome::Launched | Outcome::Failed(_))) {
            wrong.push(format!(
                "{name}: {outcome:?}, and launches on the plain device"
            ));
        }
    }
    for (name, (_, ran)) in failed {
        let known = FINDINGS.iter().find(|(known, ..)| known == name);
        let is_known =
            known.is_some_and(|(_, parts, _)| parts.iter().all(|part| ran.panic().contains(part)));
        if !is_known {
            wrong.push(format!("{name}\n{}", ran.told()));
        }
    }
    for (name, _, why) in FINDINGS {
        if ran.get(*name).is_none_or(|(_, ran)| ran.has_passed()) {
            wrong.push(format!("{name} passes, but {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
