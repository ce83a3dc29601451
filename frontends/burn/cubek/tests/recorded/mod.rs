//! What comes of each test of a package of CubeK, each of which says with a line for each launch that there was one.

use cubecl_thisgpu::{BUDGET_VARIABLE, DEVICE_VARIABLE, REPORT_VARIABLE};
use thisgpu_recorded::Sign::{Name, Panic};
use thisgpu_recorded::{Reasons, Suite};

/// Why tests launch nothing.
const WITHOUT_LAUNCH: Reasons = &[
    (Name("empty_output"), "there is nothing to launch"),
    (Name("with_indices_validation"), "about the host's side"),
    (Name("_rejects_"), "about the host's side"),
    (Name("_validates_"), "about the host's side"),
    (Name("accepts_empty"), "there is nothing to launch"),
    (
        Name("lse_matches_direct_logsumexp"),
        "about the host's side",
    ),
    (Name("tile::launcher::"), "about the host's side"),
    (Name("tile::space::"), "about the host's side"),
    (Name("_refuses_"), "about the host's side"),
    (Name("cmma_takes_a_strip"), "about the host's side"),
    (
        Name("broadcast_slice_0"),
        "left out by its author for strides of 0",
    ),
];

/// Why tests fail, by what they say; a kernel that the device refuses is a failure (`cubek.toml`).
const FAILING: Reasons = &[
    (
        Name("matmul_m_three_each_across_cubes_leaves_a_short_run"),
        "CubeK's mistake: a cube goes on behind the end of its operands",
    ),
    (
        Name("the_serving_geometry_computes_the_decode_gemv"),
        "CubeK's mistake: a plane zeroes what another one has added to, and nothing orders them",
    ),
    (
        Panic("`cube_dim.x` must match `plane_size_max`"),
        "planes have 32 units",
    ),
    (Panic("TMA is not available"), "no tensor maps"),
    (Panic("cmma"), "no matrix instructions"),
    (Panic("Cmma"), "no matrix instructions"),
    (Panic("Mma"), "no matrix instructions"),
    (Panic("manual mma"), "no matrix instructions"),
    (Panic("fragment"), "no matrix instructions"),
    (Panic("ldmatrix"), "no matrix instructions"),
    (Panic("No tile size is available"), "no matrix instructions"),
    (Panic("async copy"), "no asynchronous copies"),
    (
        Panic("f32 atomic add in shared memory"),
        "launches nothing on runtimes of other names than it knows",
    ),
    (
        Panic("the stage fits after all"),
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
