//! Every kind of fault: found, placed, and the device lives on.

use super::super::SimConfig;
use super::{ADDRESS, Bench};
use crate::launch::FaultKind;
use crate::launch::image::{Function, Line};
use crate::launch::{AccessKind, Window};
use crate::locations::Location;

/// Runs a program of two warps that must fault, then checks that memory outlived it.
fn fault_with(config: SimConfig, text: &str) -> super::super::Fault {
    let mut bench = Bench::with(config, text, &[11, 22, 33, 44]);
    let report = bench.launch(1, 64, &[]);
    assert_eq!(report.stats.faults, 1);
    assert_eq!(bench.words(4)[3], 44, "memory is intact");
    let mut next = Bench::new("EXIT_X", &[]);
    next.run(1, 32, &[]);
    report.fault.expect("a fault")
}

fn fault(text: &str) -> super::super::Fault {
    fault_with(SimConfig::default(), text)
}

#[test]
fn out_of_bounds_names_the_thread() {
    // Four words are there; thread 4 is the first outside.
    let found = fault(&format!("{ADDRESS} LDG_R rd=6 ra=2\n EXIT_X"));
    assert!(matches!(
        found.kind,
        FaultKind::OutOfBounds {
            access: AccessKind::Load,
            window: Window::Global,
            bytes: 4,
            ..
        }
    ));
    assert_eq!(
        (found.place.thread, found.place.pc, found.place.block),
        ([4, 0, 0], 6 * 16, [0; 3])
    );
    assert!(found.registers.contains(&(0, 4)), "{:?}", found.registers);
    assert!(
        found.place.instruction.contains("LDG"),
        "{}",
        found.place.instruction
    );
}

#[test]
fn the_message_names_kernel_and_source_line() {
    let mut bench = Bench::new("NOP_X\n TRAP_X code=7\n EXIT_X", &[]);
    bench.loaded.image.functions = vec![Function {
        name: "test".to_string(),
        address: 0,
        redzones: Vec::new(),
        scopes: Vec::new(),
        values: Vec::new(),
    }];
    bench.loaded.image.lines = vec![
        Line {
            address: 0,
            location: Location {
                line: 3,
                ..Location::default()
            },
        },
        Line {
            address: 16,
            location: Location {
                line: 5,
                ..Location::default()
            },
        },
    ];
    let report = bench.launch(1, 1, &[]);
    let text = report.fault.expect("a fault").to_string();
    for part in [
        "kernel test",
        "block (0,0,0)",
        "thread (0,0,0)",
        "pc 0x10",
        "TRAP",
        "line 5",
        "trap 7 (user7)",
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[test]
fn wrong_addresses() {
    let address = "MOV_C rd=2 vb=c0:0x160\n MOV_C rd=3 vb=c0:0x164\n";
    let found = fault(&format!("{address} STG_RR ra=2 addr=2 rb=3\n EXIT_X"));
    assert!(matches!(
        found.kind,
        FaultKind::Misaligned {
            access: AccessKind::Store,
            bytes: 4,
            ..
        }
    ));
    let found = fault("LD_R rd=6\n EXIT_X");
    assert!(
        matches!(found.kind, FaultKind::OutOfBounds { address: 0, .. }),
        "the null pointer"
    );
    let found = fault("MOV_I rd=4 vb=2048\n STS_RR ra=4 rb=4\n EXIT_X");
    assert!(matches!(
        found.kind,
        FaultKind::OutOfBounds {
            window: Window::Shared,
            address: 2048,
            ..
        }
    ));
    let found = fault(&format!(
        "{address} ATOMG_RR op=ADD atype=U64 rd=4 ra=2 addr=4 rb=4\n EXIT_X"
    ));
    assert!(matches!(
        found.kind,
        FaultKind::Misaligned {
            access: AccessKind::Atomic,
            bytes: 8,
            ..
        }
    ));
    let found = fault("MOV_I rd=4 vb=0x10000\n LDC_R rd=5 bank=3 ra=4\n EXIT_X");
    assert!(matches!(
        found.kind,
        FaultKind::ConstantOutOfBounds {
            bank: 3,
            offset: 0x10000,
            ..
        }
    ));
    let found = fault("MOV_C rd=5 vb=c2:0x0\n EXIT_X");
    assert!(matches!(
        found.kind,
        FaultKind::ConstantOutOfBounds { bank: 2, .. }
    ));
    let found = fault("MOV_I rd=4 vb=2\n LDC_R rd=5 bank=0 ra=4\n EXIT_X");
    assert!(matches!(
        found.kind,
        FaultKind::ConstantMisaligned {
            bank: 0,
            offset: 2,
            bytes: 4
        }
    ));
}

#[test]
fn endless_recursion_overflows_the_stack() {
    let text = "
        MOV_C rd=1 vb=c0:0x28
    again:
        IADD_RI rd=1 ra=1 vb=-16
        STL_RR size=64 ra=1 rb=2
        CALL_I rd=2 vb=>again
        EXIT_X";
    let found = fault(text);
    assert!(
        matches!(
            found.kind,
            FaultKind::StackOverflow {
                offset: -16,
                limit: 65536,
                ..
            }
        ),
        "{found}"
    );
}

#[test]
fn words_that_are_no_instructions() {
    let mut bench = Bench::new("NOP_X\n EXIT_X", &[]);
    let word = bench.loaded.image.words[0] | 1 << 90;
    bench.loaded = crate::sim::launch::Loaded::new(
        super::Image {
            words: vec![word],
            ..Default::default()
        },
        &bench.config,
    );
    let found = bench.launch(1, 32, &[]).fault.expect("a fault");
    assert!(
        matches!(
            found.kind,
            FaultKind::IllegalInstruction(crate::isa::Illegal::UnusedBit { bit: 90, .. })
        ),
        "{found}"
    );
    bench.loaded = crate::sim::launch::Loaded::new(
        super::Image {
            words: vec![0],
            ..Default::default()
        },
        &bench.config,
    );
    let found = bench.launch(1, 32, &[]).fault.expect("a fault");
    assert!(matches!(found.kind, FaultKind::IllegalInstruction(_)));
}

#[test]
fn control_that_leaves_the_code() {
    assert!(matches!(
        fault("NOP_X").kind,
        FaultKind::BadJump { target: 16 }
    ));
    assert!(matches!(
        fault("BRA_X label=4096\n EXIT_X").kind,
        FaultKind::BadJump { .. }
    ));
    assert!(matches!(
        fault("MOV_I rd=2 vb=8\n MOV_R rd=3\n RET_R ra=2\n EXIT_X").kind,
        FaultKind::BadJump { target: 8 }
    ));
    assert!(matches!(
        fault("MOV_I rd=3 vb=1\n MOV_R rd=2\n BRX_R ra=2\n EXIT_X").kind,
        FaultKind::BadJump {
            target: 0x1_0000_0000
        }
    ));
}

#[test]
fn endless_loops_run_out_of_budget() {
    let config = SimConfig {
        budget: 1000,
        ..SimConfig::default()
    };
    for timed in [false, true] {
        let found = fault_with(SimConfig { timed, ..config }, "again:\n BRA_X label=>again");
        assert_eq!(found.kind, FaultKind::BudgetExhausted { limit: 1000 });
    }
}

#[test]
fn endless_loops_of_many_warps_run_out_of_the_budget_of_the_launch() {
    let text = "again:\n BRA_X label=>again";
    for timed in [false, true] {
        let config = SimConfig {
            launch_budget: 5000,
            timed,
            ..SimConfig::default()
        };
        let report = Bench::with(config, text, &[]).launch(1000, 1024, &[]);
        let kind = FaultKind::LaunchBudgetExhausted {
            limit: 5000,
            running: 1,
            ended: 0,
            blocks: 1000,
        };
        let fault = report.fault.expect("it has no end");
        assert_eq!(fault.kind, kind);
        assert_eq!(report.stats.warp_instructions, 5000);
        let message = fault.to_string();
        assert!(message.contains("raise `--launch-budget`"), "{message}");
        // Blocks that end do not count, however many they are.
        let report = Bench::with(config, "NOP_X\n NOP_X\n EXIT_X", &[]).launch(1000, 64, &[]);
        assert_eq!(report.fault, None);
        assert_eq!(report.stats.warp_instructions, 6000);
    }
}

/// Every block counts itself in, then spins until `all` are there.
fn gathering(all: u32) -> String {
    format!(
        "MOV_C rd=2 vb=c0:0x160
        MOV_C rd=3 vb=c0:0x164
        MOV_I rd=4 vb=1
        RED_RR op=ADD ra=2 rb=4
    spin:
        LDG_R order=STRONG rd=5 ra=2
        ISETP_RI compop=LT boolop=AND pu=0 ra=5 vb={all}
        @P0 BRA_X label=>spin
        EXIT_X"
    )
}

#[test]
fn as_many_blocks_wait_for_each_other_as_the_machine_holds() {
    // Sixteen multiprocessors with 32 blocks, 64 warps and 228 KiB each; the budget is some more than a turn of all.
    for (threads, shared, most, launch_budget) in [
        (32, 0, 512, 550_000),
        (32, 227 << 10, 16, 20_000),
        (32, 100 << 10, 32, 40_000),
        (320, 76 << 10, 48, 550_000),
    ] {
        let config = SimConfig {
            launch_budget,
            ..SimConfig::default()
        };
        let launch = |blocks: u32| {
            let mut bench = Bench::with(config, &gathering(blocks * threads), &[0]);
            bench.shared = shared;
            bench.launch(blocks, threads, &[])
        };
        let report = launch(most);
        assert_eq!((report.fault, report.resident), (None, u64::from(most)));
        let kind = FaultKind::LaunchBudgetExhausted {
            limit: config.launch_budget,
            running: most.into(),
            ended: 0,
            blocks: u64::from(most) + 1,
        };
        let fault = launch(most + 1).fault.expect("one cannot begin");
        assert_eq!(fault.kind, kind, "{threads} threads, {shared} bytes");
    }
}

/// Blocks that could wait and do not take memory for one.
#[test]
fn blocks_that_do_not_wait_pass_their_room_on() {
    let text = "MOV_C rd=2 vb=c0:0x160
        MOV_C rd=3 vb=c0:0x164
        MOV_I rd=4 vb=1
        RED_RR op=ADD ra=2 rb=4
        EXIT_X";
    for check in [false, true] {
        let config = SimConfig {
            check,
            ..SimConfig::default()
        };
        let mut bench = Bench::with(config, text, &[0]);
        bench.shared = 227 << 10;
        let report = bench.launch(100, 64, &[]);
        assert_eq!((report.fault, report.resident), (None, 1));
        assert_eq!(bench.words(1), [6400]);
    }
}

#[test]
fn barriers_that_only_some_lanes_reach() {
    let text =
        format!("{ADDRESS} ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=40\n @P0 BAR_X\n EXIT_X");
    let found = fault(&text);
    assert_eq!(
        found.kind,
        FaultKind::BarrierDivergence {
            arrived: 0xFF,
            live: u32::MAX
        }
    );
    assert_eq!(found.place.thread, [32, 0, 0]);
}

#[test]
fn lanes_that_wait_for_ever() {
    let text = format!(
        "{ADDRESS}
        ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=3
        BSSY_X bn=0 label=>a
        BSSY_X bn=1 label=>b
        @P0 BRA_X label=>b
    a:
        BSYNC_X bn=0
        EXIT_X
    b:
        BSYNC_X bn=1
        EXIT_X"
    );
    assert_eq!(fault(&text).kind, FaultKind::Deadlock { waiting: u32::MAX });
}

#[test]
fn shuffles_from_lanes_that_are_not_there() {
    let text = format!(
        "{ADDRESS} ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=5\n @P0 SHFL_RI shfmode=IDX rd=4 ra=0 vb=9\n EXIT_X"
    );
    assert_eq!(
        fault(&text).kind,
        FaultKind::InactiveLane { source_lane: 9 }
    );
}

#[test]
fn register_indices_out_of_range() {
    let found = fault("UMOV_I urd=0 vb=250\n GETGPR_U rd=4 urb=0 ridx=5\n EXIT_X");
    assert_eq!(found.kind, FaultKind::RegisterIndex { index: 255 });
    let found = fault("UMOV_I urd=0 vb=0\n SETGPR_U ra=4 urb=0 ridx=-1\n EXIT_X");
    assert_eq!(found.kind, FaultKind::RegisterIndex { index: -1 });
}

#[test]
fn impossible_launches() {
    use crate::launch::LaunchError;
    let bench = Bench::new("EXIT_X", &[]);
    let request = super::LaunchRequest {
        kernel: "test",
        entry: 0,
        grid: [1; 3],
        block: [1; 3],
        static_shared: 0,
        dynamic_shared: 0,
        local_bytes: 0,
        parameters: &[],
        progress: None,
        time_limit: None,
    };
    let launch = |request: super::LaunchRequest| {
        bench
            .loaded
            .launch(&request, bench.global.table(), &bench.config)
            .map(|_| ())
    };
    assert_eq!(
        launch(super::LaunchRequest {
            block: [1025, 1, 1],
            ..request.clone()
        }),
        Err(LaunchError::Block([1025, 1, 1]))
    );
    assert_eq!(
        launch(super::LaunchRequest {
            block: [0, 1, 1],
            ..request.clone()
        }),
        Err(LaunchError::Block([0, 1, 1]))
    );
    assert_eq!(
        launch(super::LaunchRequest {
            grid: [0, 1, 1],
            ..request.clone()
        }),
        Err(LaunchError::Grid([0, 1, 1]))
    );
    assert_eq!(
        launch(super::LaunchRequest {
            static_shared: 1 << 20,
            ..request.clone()
        }),
        Err(LaunchError::Shared(1 << 20))
    );
    assert_eq!(
        launch(super::LaunchRequest {
            entry: 16,
            ..request.clone()
        }),
        Err(LaunchError::Entry(16))
    );
    assert_eq!(
        launch(super::LaunchRequest {
            parameters: &[0; 4097],
            ..request.clone()
        }),
        Err(LaunchError::Parameters(4097))
    );
    assert_eq!(launch(request), Ok(()));
}

/// Data that was declared read-only: loads and the host may use it, a store or an atomic of a kernel is a fault, at
/// every speed.
#[test]
fn stores_to_read_only_data() {
    for (check, timed) in [(false, false), (true, false), (false, true)] {
        let config = SimConfig {
            check,
            timed,
            ..SimConfig::default()
        };
        let run = |access: &str| {
            let mut bench = Bench::with(config, &format!("{ADDRESS} {access}\n EXIT_X"), &[7; 64]);
            bench.global.protect(bench.buffer).unwrap();
            let report = bench.launch(1, 32, &[]);
            assert_eq!(bench.words(64), [7; 64]);
            report.fault.map(|fault| (fault.kind, fault.place.pc))
        };
        assert_eq!(run("LDG_R rd=6 ra=2"), None);
        for access in [
            "STG_RR ra=2 rb=0",
            "ST_RR ra=2 rb=0",
            "ATOMG_RR op=ADD rd=6 ra=2 rb=0",
            "ATOMG_CAS_RRR rd=6 ra=2 rb=255 rc=4",
        ] {
            let fault = run(access);
            let Some((FaultKind::ReadOnly { bytes: 4, .. }, 96)) = fault else {
                panic!("{access}: {fault:?}");
            };
        }
    }
}
