//! Blocks on several threads against blocks one after another: the same memory, counts and faults.

use super::super::SimConfig;
use super::{ADDRESS, Bench};
use crate::launch::Report;

/// Blocks of one warp: enough that a launch goes on with other threads after a part of them.
const BLOCKS: u32 = 6000;

/// Every thread stores its number; what it leaves in a buffer that has room for so many blocks, and the report.
fn outcome(threads: u32, room: u32) -> (Vec<u32>, Report) {
    let config = SimConfig {
        threads,
        ..SimConfig::default()
    };
    let text = format!("{ADDRESS} STG_RR ra=2 rb=0\n EXIT_X");
    let mut bench = Bench::with(config, &text, &vec![u32::MAX; (room * 32) as usize]);
    let report = bench.launch(BLOCKS, 32, &[]);
    (bench.words((room * 32) as usize), report)
}

#[test]
fn threads_change_nothing() {
    let (memory, report) = outcome(1, BLOCKS);
    assert_eq!(report.fault, None);
    assert!(memory.iter().copied().eq(0..BLOCKS * 32));
    for threads in [2, 3, 8] {
        assert_eq!(outcome(threads, BLOCKS), (memory.clone(), report.clone()));
    }
}

/// Many blocks fault; the lowest one is reported, with the counts of those before it, wherever it lies among those that a thread takes.
#[test]
fn the_lowest_fault_is_found() {
    for room in [1, 1500, 4000, 4001, BLOCKS - 1] {
        let (memory, report) = outcome(1, room);
        let fault = report.fault.as_ref().expect("there is no room for all");
        assert_eq!(fault.place.block, [room, 0, 0]);
        for threads in [2, 8] {
            let (found, other) = outcome(threads, room);
            assert_eq!(other, report);
            assert_eq!(found, memory);
        }
    }
}
