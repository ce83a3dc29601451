//! Blocks that may wait for each other on several threads, without a promise of one result: what does not depend on
//! their order is right.

use super::super::SimConfig;
use super::{ADDRESS, Bench};
use crate::launch::{Fault, FaultKind, LaunchRequest, Progress, Report};
use crate::sim::memory::strong::Concurrency;
use std::thread;
use std::time::Duration;

/// How many threads launches are given.
const THREADS: [u32; 3] = [1, 2, 4];

fn config(threads: u32) -> SimConfig {
    SimConfig {
        deterministic: false,
        threads,
        ..SimConfig::default()
    }
}

/// What a launch leaves in a buffer of zeros of so many words, and its report.
fn outcome(text: &str, config: SimConfig, grid: [u32; 2], words: usize) -> (Vec<u32>, Report) {
    let mut bench = Bench::with(config, text, &vec![0; words]);
    let report = bench.launch(grid[0], grid[1], &[]);
    (bench.words(words), report)
}

/// Every thread counts itself in at word 0, then spins until `all` are there. Uses R8 and R9; R[4:5] is the address of
/// the buffer.
fn gathering(label: &str, all: u32) -> String {
    format!(
        "MOV_I rd=8 vb=1
        MEMBAR_X scope=GL
        RED_RR op=ADD ra=4 rb=8
    {label}:
        LDG_R order=STRONG rd=9 ra=4
        ISETP_RI compop=LT boolop=AND pu=0 ra=9 vb={all}
        @P0 BRA_X label=>{label}
        MEMBAR_X scope=GL\n"
    )
}

/// Every thread adds one to word 2 without an atomic, between these two.
fn counting(lock: &str, unlock: &str) -> String {
    format!(
        "{lock}
        MEMBAR_X scope=GL
        LDG_R rd=7 ra=4 addr=8
        IADD_RI rd=7 ra=7 vb=1
        STG_RR ra=4 addr=8 rb=7
        MEMBAR_X scope=GL
        {unlock}
        EXIT_X"
    )
}

const SPIN_LOCK: [&str; 2] = [
    "again:
        ATOMG_CAS_RRR rd=6 ra=4 rb=255 rc=8 addr=4
        ISETP_RI compop=NE boolop=AND pu=0 ra=6 vb=0
        @P0 BRA_X label=>again",
    "STG_RR order=STRONG ra=4 addr=4 rb=255",
];

const TICKET_LOCK: [&str; 2] = [
    "ATOMG_RR op=ADD rd=10 ra=4 addr=12 rb=8
    again:
        LDG_R order=STRONG rd=6 ra=4 addr=4
        ISETP_RR compop=NE boolop=AND pu=0 ra=6 rb=10
        @P0 BRA_X label=>again",
    "IADD_RI rd=10 ra=10 vb=1
        STG_RR order=STRONG ra=4 addr=4 rb=10",
];

#[test]
fn locks_let_one_in() {
    for ([lock, unlock], left) in [(SPIN_LOCK, [0, 0]), (TICKET_LOCK, [256, 256])] {
        let text = format!(
            "{ADDRESS} {} {}",
            gathering("here", 256),
            counting(lock, unlock)
        );
        for threads in THREADS {
            let (memory, report) = outcome(&text, config(threads), [8, 32], 4);
            assert_eq!(report.fault, None, "{threads}");
            assert_eq!(memory, [256, left[0], 256, left[1]], "{threads}");
        }
    }
}

/// Threads pass numbers on to another block, and meet at a barrier of the grid after each time.
#[test]
fn blocks_meet_at_a_barrier_of_the_grid() {
    const BLOCKS: u32 = 64;
    const ALL: u32 = BLOCKS * 32;
    const PHASES: u32 = 6;
    let place = |phase: u32| 64 + 4 * ALL * (phase % 2);
    let mut text = format!(
        "{ADDRESS}
        STG_RR ra=2 rb=0 addr={}
        IADD_RI rd=10 ra=0 vb=32
        LOP3_RIR lut=0xC0 rd=10 ra=10 vb={}
        IMAD_WIDE_RIR itype=U32 rd=12 ra=10 vb=4 rc=4\n",
        place(0),
        ALL - 1
    );
    for phase in 1..=PHASES {
        text += &gathering(&format!("phase{phase}"), phase * ALL);
        text += &format!(
            "LDG_R rd=6 ra=12 addr={}
            IADD_RI rd=6 ra=6 vb=1
            STG_RR ra=2 rb=6 addr={}\n",
            place(phase - 1),
            place(phase)
        );
    }
    text += "EXIT_X";
    let expected = (0..ALL).map(|thread| (thread + 32 * PHASES) % ALL + PHASES);
    for threads in THREADS {
        let words = 16 + 2 * ALL as usize;
        let (memory, report) = outcome(&text, config(threads), [BLOCKS, 32], words);
        assert_eq!((report.fault, report.resident), (None, BLOCKS.into()));
        let first = place(PHASES) as usize / 4;
        assert!(
            memory[first..][..ALL as usize]
                .iter()
                .copied()
                .eq(expected.clone())
        );
    }
}

/// Who is resident waits for each other, and nobody else: the last block of too many does not begin.
#[test]
fn as_many_blocks_as_the_machine_holds_wait_for_each_other() {
    const MOST: u32 = 512;
    for threads in THREADS {
        let config = SimConfig {
            launch_budget: 2_000_000,
            ..config(threads)
        };
        let launch = |blocks: u32| {
            let text = format!("{ADDRESS} {} EXIT_X", gathering("here", blocks));
            outcome(&text, config, [blocks, 1], 1).1
        };
        let report = launch(MOST);
        assert_eq!((report.fault, report.resident), (None, MOST.into()));
        let report = launch(MOST + 1);
        let fault = report.fault.expect("one cannot begin");
        let kind = FaultKind::LaunchBudgetExhausted {
            limit: config.launch_budget,
            running: MOST.into(),
            ended: 0,
            blocks: u64::from(MOST) + 1,
        };
        assert_eq!(fault.kind, kind);
        assert_eq!(report.resident, u64::from(MOST));
        let waiting = fault.waits.iter().map(|wait| wait.blocks).sum::<u64>();
        assert_eq!(waiting, u64::from(MOST), "{fault}");
    }
}

/// Threads take pieces of work until there are none left; each is done once.
#[test]
fn a_queue_gives_every_piece_of_work_once() {
    const WORK: usize = 4096;
    let text = format!(
        "{ADDRESS} MOV_I rd=8 vb=1
    again:
        ATOMG_RR op=ADD rd=6 ra=4 rb=8
        ISETP_RI compop=GE boolop=AND pu=0 ra=6 vb={WORK}
        @P0 EXIT_X
        IMAD_WIDE_RIR itype=U32 rd=12 ra=6 vb=4 rc=4
        LDG_R rd=7 ra=12 addr=4
        IADD_RI rd=7 ra=7 vb=1
        STG_RR ra=12 addr=4 rb=7
        BRA_X label=>again"
    );
    for threads in THREADS {
        let (memory, report) = outcome(&text, config(threads), [64, 32], WORK + 1);
        assert_eq!((report.fault, memory[0]), (None, WORK as u32 + 64 * 32));
        assert!(memory[1..].iter().all(|count| *count == 1));
    }
}

/// Eight bytes whose halves are equal are stored, added to and read by many: nobody sees half of a change.
#[test]
fn eight_bytes_are_one_step() {
    let all = 8;
    let text = format!(
        "{ADDRESS} {}
        MOV_I rd=10 vb=1
        MOV_I rd=11 vb=1
        LOP3_RIR lut=0xC0 rd=6 ra=0 vb=1
        ISETP_RI compop=NE boolop=AND pu=1 ra=6 vb=0
        MOV_I rd=16 vb=0
    again:
        IADD_RI rd=16 ra=16 vb=1
        MOV_R rd=12 rb=16
        MOV_R rd=13 rb=16
        @P1 STG_RR order=STRONG size=64 ra=4 addr=8 rb=12
        @P1 ATOMG_RR op=ADD atype=U64 rd=255 ra=4 addr=8 rb=10
        @!P1 LDG_R order=STRONG size=64 rd=14 ra=4 addr=8
        @!P1 ISETP_RR compop=NE boolop=AND pu=2 ra=14 rb=15
        @P2 RED_RR op=ADD ra=4 addr=4 rb=8
        ISETP_RI compop=LT boolop=AND pu=0 ra=16 vb=8000
        @P0 BRA_X label=>again
        EXIT_X",
        gathering("here", all)
    );
    for threads in THREADS {
        let bench = Bench::with(config(threads), &text, &[0; 4]);
        let wide = bench.loaded.concurrency(&config(threads), all.into());
        assert_eq!(wide == Concurrency::Wide, threads > 1);
        let (memory, report) = outcome(&text, config(threads), [all, 1], 4);
        assert_eq!((report.fault, memory[1]), (None, 0), "torn values");
        assert_eq!(memory[2], memory[3]);
    }
}

/// More blocks than are resident, all with one lock: those that end make room for others.
#[test]
fn blocks_that_have_ended_are_replaced() {
    const BLOCKS: u32 = 2000;
    let [lock, unlock] = SPIN_LOCK;
    let text = format!("{ADDRESS} MOV_I rd=8 vb=1\n {}", counting(lock, unlock));
    for threads in THREADS {
        let (memory, report) = outcome(&text, config(threads), [BLOCKS, 1], 3);
        assert_eq!((report.fault, memory[2]), (None, BLOCKS));
        assert!(report.resident <= 512);
    }
}

/// The fault of a launch that has one, which its counts tell.
fn fault(text: &str, config: SimConfig, blocks: u32) -> (Fault, Report) {
    let (_, report) = outcome(text, config, [blocks, 32], 4);
    let fault = report.fault.clone().expect("a fault");
    assert_eq!(report.stats.faults, 1);
    assert!(report.stats.warp_instructions > 0);
    (fault, report)
}

/// All blocks but one wait for ever, and one traps behind a barrier: that ends all.
#[test]
fn a_fault_of_one_block_ends_all() {
    let text = format!(
        "{ADDRESS} {} ISETP_RI compop=EQ boolop=AND pu=1 ra=0 vb=640
        @P1 TRAP_X code=7
    again:
        LDG_R order=STRONG rd=9 ra=4 addr=4
        BRA_X label=>again",
        gathering("here", 64 * 32)
    );
    for threads in THREADS {
        let (fault, report) = fault(&text, config(threads), 64);
        assert_eq!(fault.kind, FaultKind::Trap { code: 7 });
        assert_eq!(
            (fault.place.block, fault.place.thread),
            ([20, 0, 0], [0; 3])
        );
        assert!(report.stats.warp_instructions < SimConfig::BUDGET);
    }
}

#[test]
fn budgets_end_launches_that_wait_for_ever() {
    let text = format!(
        "{ADDRESS} again:
        LDG_R order=STRONG rd=9 ra=4
        ISETP_RI compop=EQ boolop=AND pu=0 ra=9 vb=0
        @P0 BRA_X label=>again
        EXIT_X"
    );
    for threads in THREADS {
        let of_warp = SimConfig {
            budget: 20_000,
            ..config(threads)
        };
        let (found, report) = fault(&text, of_warp, 16);
        assert_eq!(found.kind, FaultKind::BudgetExhausted { limit: 20_000 });
        assert_eq!(
            found.waits.iter().map(|wait| wait.threads).sum::<u64>(),
            512
        );
        // The others were about as far.
        assert!(
            report.stats.warp_instructions > 16 * 10_000,
            "{:?}",
            report.stats
        );
        let of_launch = SimConfig {
            launch_budget: 100_000,
            ..config(threads)
        };
        let (found, report) = fault(&text, of_launch, 16);
        let is_launch = matches!(
            found.kind,
            FaultKind::LaunchBudgetExhausted {
                limit: 100_000,
                ended: 0,
                ..
            }
        );
        assert!(is_launch, "{found}");
        assert!(!found.waits.is_empty());
        // Each thread may finish a turn.
        assert!(
            (100_000..=100_000 + u64::from(threads) * 1024)
                .contains(&report.stats.warp_instructions)
        );
    }
}

/// A warp waits for a block that has 16 times as many of them to run: it has about as many turns as each of those, on
/// whatever threads.
#[test]
fn who_waits_does_not_run_ahead() {
    let text = format!(
        "{ADDRESS}
        S2R_X rd=6 sreg=SR_CTAID_X
        ISETP_RI compop=EQ boolop=AND pu=0 ra=6 vb=0
        @P0 BRA_X label=>wait
        MOV_I rd=7 vb=1
        MOV_I rd=10 vb=0
    work:
        IADD_RI rd=10 ra=10 vb=1
        ISETP_RI compop=LT boolop=AND pu=0 ra=10 vb=8000
        @P0 BRA_X label=>work
        RED_RR op=ADD ra=4 rb=7
        EXIT_X
    wait:
        ISETP_RI compop=NE boolop=AND pu=0 ra=1 vb=0
        @P0 EXIT_X
    again:
        LDG_R order=STRONG rd=9 ra=4
        ISETP_RI compop=LT boolop=AND pu=0 ra=9 vb=512
        @P0 BRA_X label=>again
        EXIT_X"
    );
    for threads in THREADS {
        let config = SimConfig {
            budget: 100_000,
            ..config(threads)
        };
        let (memory, report) = outcome(&text, config, [2, 512], 1);
        assert_eq!((report.fault, memory[0]), (None, 512), "{threads}");
    }
}

#[test]
fn launches_that_wait_for_ever_can_be_stopped() {
    let text = "again:\n LDG_R order=STRONG rd=9 ra=4\n BRA_X label=>again";
    for threads in THREADS {
        let config = SimConfig {
            budget: u64::MAX,
            launch_budget: u64::MAX,
            ..config(threads)
        };
        let bench = Bench::with(config, &format!("{ADDRESS} {text}"), &[0]);
        let parameters = bench.buffer.to_le_bytes();
        let progress = Progress::new();
        let request = LaunchRequest {
            kernel: "test",
            entry: 0,
            grid: [8, 1, 1],
            block: [32, 1, 1],
            static_shared: 0,
            dynamic_shared: 0,
            local_bytes: 0,
            parameters: &parameters,
            progress: None,
            time_limit: None,
        };
        let launch = |request: &LaunchRequest| {
            let report = bench.loaded.launch(request, bench.global.table(), &config);
            report
                .expect("a possible launch")
                .fault
                .expect("it has no end")
                .kind
        };
        let limit = Duration::from_millis(50);
        let kind = launch(&LaunchRequest {
            time_limit: Some(limit),
            ..request
        });
        assert!(matches!(
            kind,
            FaultKind::TimeLimit {
                ended: 0,
                blocks: 8,
                ..
            }
        ));
        let kind = thread::scope(|scope| {
            scope.spawn(|| {
                while progress.warp_instructions() < 50_000 {
                    thread::yield_now();
                }
                progress.cancel();
            });
            launch(&LaunchRequest {
                progress: Some(&progress),
                ..request
            })
        });
        assert_eq!(
            kind,
            FaultKind::Cancelled {
                ended: 0,
                blocks: 8
            }
        );
    }
}

/// Where the way of the threads does not depend on their order, counts are the same with any number of threads.
#[test]
fn counts_add_up() {
    let text = format!("{ADDRESS} ATOMG_RR op=ADD rd=6 ra=4 rb=0\n EXIT_X");
    let counts = |threads| {
        let (memory, report) = outcome(&text, config(threads), [4000, 32], 1);
        assert_eq!((report.fault, report.resident >= 1), (None, true));
        (memory, report.stats)
    };
    assert_eq!(counts(1), counts(2));
    assert_eq!(counts(1), counts(4));
}

/// The switch is for functional speed, programs whose blocks may wait for each other and several blocks and threads.
#[test]
fn other_launches_keep_their_order() {
    let config = config(4);
    let ordered = Bench::new("ATOMG_RR op=ADD rd=6 ra=4 rb=0\n EXIT_X", &[]);
    let plain = Bench::new("RED_RR op=ADD ra=4 rb=0\n EXIT_X", &[]);
    assert_eq!(ordered.loaded.concurrency(&config, 2), Concurrency::Words);
    assert_eq!(ordered.loaded.concurrency(&config, 1), Concurrency::Alone);
    assert_eq!(plain.loaded.concurrency(&config, 2), Concurrency::Alone);
    let others = [
        SimConfig {
            deterministic: true,
            ..config
        },
        SimConfig {
            timed: true,
            ..config
        },
        SimConfig {
            check: true,
            ..config
        },
        SimConfig {
            weak: Some(1),
            ..config
        },
        SimConfig {
            turns: Some(1),
            ..config
        },
        SimConfig {
            threads: 1,
            ..config
        },
    ];
    for config in others {
        assert_eq!(ordered.loaded.concurrency(&config, 2), Concurrency::Alone);
    }
}
