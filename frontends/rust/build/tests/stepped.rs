//! Kernels of the examples on a device that makes every launch twice, as ever and in the debugger: memory, counts,
//! faults and findings are the same.

#[allow(dead_code, reason = "each test takes a part")]
mod common;

use thisgpu_build::{Device, Error, Grid, SimConfig};

#[test]
fn tests_of_the_tour_are_stepped() {
    common::step(3);
    let compiled = common::example("tour")
        .test(true)
        .debug_assertions(true)
        .compile();
    let compiled = compiled.unwrap_or_else(|error| panic!("{error}"));
    let kernels = compiled.description().kernels.iter();
    let tests: Vec<_> = kernels
        .filter(|kernel| kernel.test_threads.is_some())
        .collect();
    for test in &tests {
        let device = Device::simulator(SimConfig {
            check: true,
            ..SimConfig::default()
        });
        let module = compiled.load(&device).expect("room");
        let kernel = module
            .kernel(&test.symbol)
            .unwrap_or_else(|error| panic!("{error}"));
        let grid = Grid::new([1; 3], [test.test_threads.unwrap_or(1), 1, 1]);
        match kernel.launch(grid).run() {
            Ok(report) => assert!(
                report.findings.is_empty() && !test.should_panic,
                "{}",
                test.name
            ),
            Err(Error::Panic { .. }) => assert!(test.should_panic, "{}", test.name),
            Err(error) => panic!("{}: {error}", test.name),
        }
    }
    assert!(!tests.is_empty() && common::TALLY.launches() == tests.len() as u64);
    println!("{}", *common::TALLY);
}
