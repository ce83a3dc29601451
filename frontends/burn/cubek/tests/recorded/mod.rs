//! What comes of each test of a package of CubeK, each of which says with a line for each launch that there was one.

use cubecl_thisgpu::{BUDGET_VARIABLE, DEVICE_VARIABLE, REPORT_VARIABLE};
use thisgpu_recorded::{Reasons, Suite};

/// Why tests launch nothing.
const WITHOUT_LAUNCH: Reasons = &[
    ("empty_output", "there is nothing to launch"),
    ("with_indices_validation", "about the host's side"),
    ("_rejects_", "about the host's side"),
    ("_validates_", "about the host's side"),
    ("accepts_empty", "there is nothing to launch"),
    ("lse_matches_direct_logsumexp", "about the host's side"),
    ("tile::launcher::", "about the host's side"),
    ("tile::space::", "about the host's side"),
    ("_refuses_", "about the host's side"),
    ("cmma_takes_a_strip", "about the host's side"),
    (
        "broadcast_slice_0",
        "left out by its author for strides of 0",
    ),
];

/// Why tests fail, by what they say; a kernel that the device refuses is a failure (`cubek.toml`).
const FAILING: Reasons = &[
    (
        "matmul_m_three_each_across_cubes_leaves_a_short_run",
        "CubeK's mistake: a cube goes on behind the end of its operands",
    ),
    (
        "the_serving_geometry_computes_the_decode_gemv",
        "CubeK's mistake: a plane zeroes what another one has added to, and nothing orders them",
    ),
    ("plane_size_64", "planes have 32 units"),
    ("TMA is not available", "no tensor maps"),
    ("cmma", "no matrix instructions"),
    ("Cmma", "no matrix instructions"),
    ("Mma", "no matrix instructions"),
    ("manual mma", "no matrix instructions"),
    ("fragment", "no matrix instructions"),
    ("ldmatrix", "no matrix instructions"),
    ("No tile size is available", "no matrix instructions"),
    ("async copy", "no asynchronous copies"),
    (
        "f32 atomic add in shared memory",
        "launches nothing on runtimes of other names than it knows",
    ),
    (
        "the stage fits after all",
        "expects less shared memory than there is",
    ),
];

/// Instructions that a warp may issue: long attention is more than a mistaken loop is allowed.
const BUDGET: &str = "4294967296";

const SUITE: Suite = Suite {
    title: concat!(
        "Tests of cubek-",
        env!("CARGO_CRATE_NAME"),
        " on this device"
    ),
    record: concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/recorded/",
        env!("CARGO_CRATE_NAME"),
        ".txt"
    ),
    environment: &[
        (REPORT_VARIABLE, "1"),
        (DEVICE_VARIABLE, "plain"),
        (BUDGET_VARIABLE, BUDGET),
    ],
    launched: "launch ",
    without_launch: WITHOUT_LAUNCH,
    failing: FAILING,
};

#[test]
fn recorded() {
    if let Err(difference) = SUITE.compare() {
        panic!("{difference}");
    }
}
