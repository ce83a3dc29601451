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

/// Many blocks fault; the lowest one is reported, with the counts of those before it, wherever it lies among those that
/// a thread takes.
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

/// Words that the threads of all blocks change by atomics whose results nobody reads: parallel, and the same with any
/// number of threads.
#[test]
fn atomics_of_all_blocks_lose_nothing() {
    let sum: u64 = (0..u64::from(BLOCKS) * 32).sum();
    let wide = sum + (u64::from(BLOCKS * 32) << 32);
    let both = |value: u64| [value as u32, (value >> 32) as u32];
    for (atomic, expected) in [
        ("RED_RR op=ADD atype=U32 ra=2 rb=0", [sum as u32, 0]),
        ("RED_RR op=MAX atype=U32 ra=2 rb=0", [BLOCKS * 32 - 1, 0]),
        ("RED_RR op=ADD atype=U64 ra=2 rb=8", both(wide)),
    ] {
        let text = format!(
            "{ADDRESS} MOV_C rd=2 vb=c0:0x160 ?1\n MOV_C rd=3 vb=c0:0x164 ?1\n MOV_R rd=8 rb=0\n MOV_I rd=9 vb=1 ?5\n \
             {atomic}\n EXIT_X"
        );
        for threads in [1, 2, 8] {
            let config = SimConfig {
                threads,
                ..SimConfig::default()
            };
            let mut bench = Bench::with(config, &text, &[0, 0]);
            assert!(!bench.loaded.program.is_ordered, "{atomic}");
            let report = bench.launch(BLOCKS, 32, &[]);
            assert_eq!(
                (report.fault, bench.words(2)),
                (None, expected.to_vec()),
                "{atomic}"
            );
        }
    }
}
