//! `--check` on launches that cannot go on: they end at once and say who waits for whom. Those that only wait long go
//! on.

use super::super::SimConfig;
use super::{ADDRESS, Bench};
use crate::launch::{Awaited, FaultKind, Report, Window};

/// A launch of so many blocks and threads, without and with checks: the counts and the outcome of one that ends are the
/// same.
fn ends(text: &str, blocks: u32, threads: u32) {
    assert_eq!(
        outcome(text, blocks, threads, false, false),
        outcome(text, blocks, threads, true, false)
    );
    outcome(text, blocks, threads, true, true);
}

type Outcome = ((u64, u64), Vec<u32>);

/// The counts and the memory of a launch that ends.
fn outcome(text: &str, blocks: u32, threads: u32, check: bool, timed: bool) -> Outcome {
    let config = SimConfig {
        check,
        timed,
        ..SimConfig::default()
    };
    let mut bench = Bench::with(config, &format!("{text}\n EXIT_X"), &[0; 64]);
    let report = bench.launch(blocks, threads, &[]);
    assert_eq!(report.fault, None, "check {check}, timed {timed}");
    let stats = report.stats;
    let counts = (stats.warp_instructions, stats.thread_instructions);
    (counts, bench.words(64))
}

/// The outcome of a launch under checks that does not end.
fn endless_in(text: &str, blocks: u32, threads: u32, timed: bool) -> Report {
    let config = SimConfig {
        check: true,
        timed,
        ..SimConfig::default()
    };
    let mut bench = Bench::with(config, &format!("{text}\n EXIT_X"), &[0; 64]);
    let report = bench.launch(blocks, threads, &[]);
    let fault = report.fault.as_ref().expect("endless");
    assert!(matches!(fault.kind, FaultKind::Endless { .. }), "{fault}");
    report
}

/// The same in both modes.
fn endless(text: &str, blocks: u32, threads: u32) -> Report {
    endless_in(text, blocks, threads, true);
    endless_in(text, blocks, threads, false)
}

/// R[4:5] is the address of the buffer, as after [`ADDRESS`].
const WAIT: &str = "
    again:
        LDG_R order=STRONG rd=6 ra=4 addr=16
        ISETP_RI compop=EQ boolop=AND pu=0 ra=6 vb=0
        @P0 BRA_X label=>again";

#[test]
fn a_flag_that_nobody_sets() {
    let report = endless(&format!("{ADDRESS} {WAIT}"), 3, 64);
    assert!(
        report.stats.warp_instructions < 20_000,
        "{:?}",
        report.stats
    );
    let fault = report.fault.unwrap();
    assert_eq!(
        fault.kind,
        FaultKind::Endless {
            running: 3,
            ended: 0,
            blocks: 3,
            next: None
        }
    );
    let [wait] = &fault.waits[..] else {
        panic!("{fault}");
    };
    assert_eq!((wait.threads, wait.blocks, wait.place.pc), (192, 3, 96));
    let Awaited::Memory {
        window: Window::Global,
        address,
        bytes: 4,
        allocation: Some((base, 256)),
        writer: None,
    } = wait.awaited
    else {
        panic!("{fault}");
    };
    assert_eq!(address, base + 16);
}

/// The first block takes a lock and ends with it.
#[test]
fn a_lock_that_is_never_released() {
    let text = format!(
        "{ADDRESS}
        MOV_I rd=8 vb=1
    again:
        ATOMG_CAS_RRR rd=6 ra=4 rb=255 rc=8
        ISETP_RI compop=NE boolop=AND pu=0 ra=6 vb=0
        @P0 BRA_X label=>again"
    );
    let report = endless(&text, 4, 1);
    let fault = report.fault.unwrap();
    let wait = &fault.waits[0];
    assert_eq!((wait.threads, wait.place.pc), (3, 112), "{fault}");
    let Awaited::Memory {
        writer: Some(writer),
        ..
    } = &wait.awaited
    else {
        panic!("{fault}");
    };
    assert_eq!(
        (writer.block, writer.thread, writer.pc),
        ([0; 3], [0; 3], 112)
    );
    let text = fault.to_string();
    assert!(
        text.contains("last changed by kernel test, block (0,0,0)"),
        "{text}"
    );
}

/// Two lanes of a warp hold a lock each and want the other's: each is told with its own place, and with who holds that.
#[test]
fn two_locks_in_two_orders() {
    let text = format!(
        "{ADDRESS}
        MOV_I rd=8 vb=1
        IMAD_WIDE_RIR itype=S32 rd=10 ra=1 vb=-4 rc=4
        ATOMG_RR op=EXCH rd=6 ra=2 rb=8
    again:
        ATOMG_CAS_RRR rd=6 ra=10 rb=255 rc=8 addr=4
        ISETP_RI compop=NE boolop=AND pu=0 ra=6 vb=0
        @P0 BRA_X label=>again"
    );
    let fault = endless(&text, 1, 2).fault.unwrap();
    let waits = fault.waits.iter().map(|wait| {
        let Awaited::Memory {
            address,
            allocation: Some((base, _)),
            writer: Some(writer),
            ..
        } = &wait.awaited
        else {
            panic!("{fault}");
        };
        (
            wait.place.thread[0],
            wait.threads,
            address - base,
            writer.thread[0],
        )
    });
    let waits: Vec<_> = waits.collect();
    assert_eq!(waits, [(0, 1, 4, 1), (1, 1, 0, 0)], "{fault}");
}

/// Words of the shared memory of two blocks are two places.
#[test]
fn each_block_waits_for_its_own_word() {
    // Blocks whose order is seen are resident together.
    let text = "
        ATOMG_RR op=ADD rd=6 ra=4 rb=255
    again:
        LDS_R order=STRONG rd=6 ra=255 addr=16
        ISETP_RI compop=EQ boolop=AND pu=0 ra=6 vb=0
        @P0 BRA_X label=>again";
    let fault = endless(&format!("{ADDRESS} {text}"), 2, 32).fault.unwrap();
    let waits = fault
        .waits
        .iter()
        .map(|wait| (wait.place.block[0], wait.threads));
    assert_eq!(waits.collect::<Vec<_>>(), [(0, 32), (1, 32)], "{fault}");
}

/// A barrier of the grid with one block more than are resident together.
#[test]
fn one_block_too_many() {
    let barrier = |blocks: u32| {
        format!(
            "{ADDRESS}
            MOV_I rd=8 vb=1
            ATOMG_RR op=ADD rd=6 ra=4 rb=8 addr=16
        again:
            LDG_R order=STRONG rd=6 ra=4 addr=16
            ISETP_RI compop=NE boolop=AND pu=0 ra=6 vb={blocks}
            @P0 BRA_X label=>again"
        )
    };
    outcome(&barrier(512), 512, 1, true, false);
    let report = endless_in(&barrier(513), 513, 1, false);
    let fault = report.fault.unwrap();
    assert_eq!(
        fault.kind,
        FaultKind::Endless {
            running: 512,
            ended: 0,
            blocks: 513,
            next: Some([512, 0, 0])
        }
    );
    assert_eq!(fault.waits.len(), 1);
    assert_eq!((fault.waits[0].threads, fault.waits[0].blocks), (512, 512));
    let text = fault.to_string();
    assert!(
        text.contains("1 block from (512,0,0) on will not begin"),
        "{text}"
    );
    assert!(
        text.contains("block (511,0,0)"),
        "the last to arrive: {text}"
    );
}

/// One lane has the lock and waits for the others, which wait for the lock.
#[test]
fn lanes_of_a_warp_that_wait_for_each_other() {
    let text = format!(
        "{ADDRESS}
        MOV_I rd=8 vb=1
        BSSY_X bn=0 label=>join
    again:
        ATOMG_CAS_RRR rd=6 ra=4 rb=255 rc=8
        ISETP_RI compop=NE boolop=AND pu=0 ra=6 vb=0
        @P0 BRA_X label=>again
    join:
        BSYNC_X bn=0
        ATOMG_RR op=EXCH rd=255 ra=4 rb=255"
    );
    let fault = endless(&text, 1, 32).fault.unwrap();
    let mut waits: Vec<_> = fault
        .waits
        .iter()
        .map(|w| (w.threads, &w.awaited))
        .collect();
    waits.sort_by_key(|w| w.0);
    assert!(
        matches!(waits[0], (1, Awaited::Lanes(0xFFFF_FFFE))),
        "{fault}"
    );
    let (
        31,
        Awaited::Memory {
            writer: Some(writer),
            ..
        },
    ) = waits[1]
    else {
        panic!("{fault}");
    };
    assert_eq!(writer.thread, [0; 3]);
}

/// A warp waits at the barrier of the block for one that waits for a word of shared memory.
#[test]
fn a_barrier_that_a_warp_does_not_reach() {
    let text = format!(
        "{ADDRESS}
        STS_RR ra=255 rb=255 addr=64
        BAR_X
        ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=32
        @P0 BRA_X label=>barrier
    again:
        LDS_R rd=6 ra=255 addr=64
        ISETP_RI compop=EQ boolop=AND pu=0 ra=6 vb=0
        @P0 BRA_X label=>again
    barrier:
        BAR_X"
    );
    let fault = endless(&text, 1, 64).fault.unwrap();
    let waits: Vec<_> = fault.waits.iter().map(|w| &w.awaited).collect();
    assert!(
        matches!(
            waits[..],
            [
                Awaited::Barrier {
                    arrived: 32,
                    live: 64
                },
                Awaited::Memory {
                    window: Window::Shared,
                    address: 64,
                    ..
                }
            ]
        ),
        "{fault}"
    );
}

/// A circle that stores what is there already, takes and puts back, and calls.
#[test]
fn stores_that_change_nothing() {
    let text = format!(
        "{ADDRESS}
        MOV_C rd=1 vb=c0:0x28
        IADD_RI rd=1 ra=1 vb=-16
        MOV_I rd=8 vb=1
        ATOMG_RR op=EXCH rd=6 ra=4 rb=8
    again:
        ATOMG_RR op=EXCH rd=6 ra=4 rb=8
        STL_RR ra=1 rb=6
        STG_RR ra=2 rb=8
        @P2 STG_RR ra=2 rb=6
        CALL_I rd=10 vb=>function
        LDL_R rd=7 ra=1
        ISETP_RI compop=NE boolop=AND pu=0 ra=7 vb=0
        @P0 BRA_X label=>again
        EXIT_X
    function:
        RET_R ra=10"
    );
    endless(&text, 2, 32);
}

#[test]
fn who_waits_long_is_not_endless() {
    // The second warp counts before it sets the flag; the first goes round thousands of times until then.
    let flag = |count: u32, wait: &str| {
        format!(
            "{ADDRESS}
            MOV_R rd=7
            MOV_I rd=8 vb=1
            ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=32
            @P0 BRA_X label=>again
        counts:
            IADD_RI rd=7 ra=7 vb=1
            ISETP_RI compop=LT boolop=AND pu=1 ra=7 vb={count}
            @P1 BRA_X label=>counts
            STG_RR order=STRONG ra=4 rb=8 addr=16
            EXIT_X
            {wait}
            STG_RR ra=2 rb=8"
        )
    };
    for count in [1, 10, 300, 1000, 5000] {
        ends(&flag(count, WAIT), 1, 64);
    }
    // Rounds of other lengths, and the counter of rounds itself is stored: no count may be lost.
    for fill in [0, 1, 2, 5, 11] {
        let wait = WAIT.replace("ISETP", &format!("{} ISETP", "NOP_X\n".repeat(fill)));
        ends(&flag(2000, &wait), 1, 64);
        let wait = wait.replace("LDG_R order", "IADD_RI rd=8 ra=8 vb=1\n LDG_R order");
        ends(&flag(2000, &wait), 1, 64);
    }
    // Nothing but the clock ends it.
    let clock = format!(
        "{ADDRESS}
    again:
        S2R_X rd=7 sreg=SR_CLOCKLO &wr=0
        ISETP_RI compop=LT boolop=AND pu=0 ra=7 vb=3000 &req=1
        MOV_I rd=7 vb=0
        @P0 BRA_X label=>again"
    );
    let config = SimConfig {
        check: true,
        ..SimConfig::default()
    };
    let mut bench = Bench::with(config, &format!("{clock}\n EXIT_X"), &[0; 64]);
    assert_eq!(bench.launch(1, 32, &[]).fault, None);
    // A counter that is kept in memory.
    let counter = format!(
        "{ADDRESS}
        MOV_C rd=1 vb=c0:0x28
        IADD_RI rd=1 ra=1 vb=-16
        STL_RR ra=1 rb=255
    again:
        LDL_R rd=7 ra=1
        IADD_RI rd=7 ra=7 vb=1
        STL_RR ra=1 rb=7
        ISETP_RI compop=LT boolop=AND pu=0 ra=7 vb=500
        MOV_R rd=7 rb=255
        @P0 BRA_X label=>again
        STG_RR ra=2 rb=7"
    );
    ends(&counter, 1, 32);
}

/// Counting is no circle; the budget ends it, which is smaller under checks, and who set one has that.
#[test]
fn a_counter_has_the_budget() {
    let text = format!("{ADDRESS}\n again:\n IADD_RI rd=0 ra=0 vb=1\n BRA_X label=>again");
    let run = |budget: u64| {
        let config = SimConfig {
            check: true,
            budget,
            ..SimConfig::default()
        };
        let mut bench = Bench::with(config, &text, &[0; 64]);
        bench.launch(1, 1, &[]).fault.unwrap()
    };
    let fault = run(SimConfig::BUDGET);
    let limit = SimConfig::CHECKED_BUDGET;
    assert_eq!(fault.kind, FaultKind::BudgetExhausted { limit });
    assert!(
        matches!(fault.waits[0].awaited, Awaited::Nothing),
        "{fault}"
    );
    assert_eq!(run(77).kind, FaultKind::BudgetExhausted { limit: 77 });
}
