//! What comes of each of CubeK's tests, each of which says with a line for each launch that there was one.

use cubecl_thisgpu::{DEVICE_VARIABLE, REPORT_VARIABLE};
use thisgpu_recorded::Suite;

const SUITE: Suite = Suite {
    title: "CubeK's tests on this device",
    record: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cubek/results.txt"),
    environment: &[(REPORT_VARIABLE, "1"), (DEVICE_VARIABLE, "plain")],
    launched: "launch ",
    without_launch: &[],
    failing: &[],
};

#[test]
fn recorded() {
    if let Err(difference) = SUITE.compare() {
        panic!("{difference}");
    }
}
