//! What comes of each test beside what comes of it in `frontends/cubecl`, where kernels are compiled without WGSL.

use std::collections::BTreeSet;
use thisgpu_recorded::{Suite, on_all_threads};

/// The tests as `frontends/cubecl` has them.
const FIRST_ROUTE: Suite = Suite {
    title: "CubeCL's tests on this device",
    record: concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../cubecl/tests/cubecl/results.txt"
    ),
    environment: &[],
    launched: "launch ",
    without_launch: &[],
    failing: &[],
};

/// Tests that launch by the first route and fail by this one, by parts of their names, and why.
const REASONS: &[(&str, &str)] = &[(
    "test_kernel_different_rank",
    "units behind the last element read behind the end, in a module without runtime checks",
)];

/// What a test says at the end: nothing if it passed.
fn failure(name: &str) -> Option<String> {
    let ran = FIRST_ROUTE.run(name, &[]).expect("the test binary runs");
    (!ran.has_passed()).then(|| ran.told())
}

/// Each test that launches by the first route passes, or has a reason.
#[test]
fn recorded() {
    let launching = FIRST_ROUTE.recorded_names("passed with a launch");
    let launching: BTreeSet<String> = launching.expect("there is a record").into_iter().collect();
    let names = FIRST_ROUTE
        .names()
        .expect("the test binary lists its tests");
    let gone: Vec<_> = launching
        .iter()
        .filter(|name| !names.contains(name))
        .collect();
    assert!(gone.is_empty(), "recorded, and no tests: {gone:?}");
    let outcomes = on_all_threads(names, failure);
    let passed = outcomes.iter().filter(|(_, said)| said.is_none()).count();
    let wanted: Vec<_> = outcomes
        .iter()
        .filter(|(name, _)| launching.contains(name))
        .collect();
    let failed: Vec<(&str, &str)> = wanted
        .iter()
        .filter_map(|(name, said)| Some((name.as_str(), said.as_deref()?)))
        .collect();
    println!(
        "{} tests, {passed} passed; {} of them launch by the first route, of which {} passed",
        outcomes.len(),
        wanted.len(),
        wanted.len() - failed.len()
    );
    let mut unknown = Vec::new();
    for (name, said) in failed {
        match REASONS.iter().find(|(part, _)| name.contains(part)) {
            Some((_, why)) => println!("{name}: {why}"),
            None => unknown.push(format!("{name}\n{said}")),
        }
    }
    assert!(
        unknown.is_empty(),
        "without a reason: {}\n{}",
        unknown.len(),
        unknown.join("\n\n")
    );
}
