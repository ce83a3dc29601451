//! Kernels that go wrong: the fault says which kernel, block, thread, instruction and line of the source it was, other
//! memory is as before, and the device goes on. In both speeds of the simulator, with and without checks.

#![cfg(all(feature = "driver", feature = "sim"))]

use cranelift_thisgpu::compile::Compiler;
use cranelift_thisgpu::driver::{Buffer, Device, DevicePointer, Grid, Module};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::{Fault, FaultKind, SimConfig};

/// All kernels take a buffer and a number.
const KERNELS: &str = include_str!("faults/kernels.clif");

/// A kernel, its number, and what is expected of the fault.
struct Case {
    kernel: &'static str,
    number: i32,
    /// Text of the line where it happens; empty for a prologue, which has the line of some instruction of its function.
    line: &'static str,
    /// A part of the instruction.
    instruction: &'static str,
    is_expected: fn(&FaultKind) -> bool,
    /// Blocks and threads in which it can happen.
    is_place: fn(block: u32, thread: u32) -> bool,
}

/// Three blocks of two warps.
const GRID: Grid = Grid {
    blocks: [3, 1, 1],
    threads: [64, 1, 1],
};
/// Elements of the buffer: the last thread's is missing.
const ELEMENTS: usize = 3 * 64 - 1;

fn anywhere(_: u32, _: u32) -> bool {
    true
}

const CASES: [Case; 18] = [
    Case {
        kernel: "beyond",
        number: 0,
        line: "store aligned v5, v10 ; beyond",
        instruction: "STG",
        is_expected: |kind| matches!(kind, FaultKind::OutOfBounds { bytes: 4, .. }),
        is_place: |block, thread| (block, thread) == (2, 63),
    },
    Case {
        kernel: "nowhere",
        number: 0,
        line: "store aligned v1, v2 ; nowhere",
        instruction: "ST ",
        is_expected: |kind| matches!(kind, FaultKind::OutOfBounds { address: 0, .. }),
        is_place: anywhere,
    },
    Case {
        kernel: "misaligned",
        number: 0,
        line: "load.i32 aligned v0+2 ; misaligned",
        instruction: "LDG",
        is_expected: |kind| matches!(kind, FaultKind::Misaligned { bytes: 4, .. }),
        is_place: anywhere,
    },
    Case {
        kernel: "unread",
        number: 0,
        line: "load.i32 aligned v2 ; unread",
        instruction: "LD RZ",
        is_expected: |kind| matches!(kind, FaultKind::OutOfBounds { address: 0, .. }),
        is_place: anywhere,
    },
    Case {
        kernel: "shared",
        number: 64,
        line: "load.i32 aligned v1 ; shared",
        instruction: "LDS",
        is_expected: |kind| matches!(kind, FaultKind::OutOfBounds { address: 64, .. }),
        is_place: anywhere,
    },
    Case {
        kernel: "shared",
        number: -4,
        line: "load.i32 aligned v1 ; shared",
        instruction: "LDS",
        is_expected: |kind| matches!(kind, FaultKind::OutOfBounds { .. }),
        is_place: anywhere,
    },
    Case {
        kernel: "shared",
        number: 6,
        line: "load.i32 aligned v1 ; shared",
        instruction: "LDS",
        is_expected: |kind| matches!(kind, FaultKind::Misaligned { .. }),
        is_place: anywhere,
    },
    Case {
        kernel: "shared_generic",
        number: 64,
        line: "load.i32 aligned v6 ; generic",
        instruction: "LD ",
        is_expected: |kind| matches!(kind, FaultKind::OutOfBounds { address: 64, .. }),
        is_place: anywhere,
    },
    Case {
        kernel: "local",
        number: 1 << 20,
        line: "store aligned v1, v5 ; local",
        instruction: "STL",
        is_expected: |kind| matches!(kind, FaultKind::OutOfBounds { .. }),
        is_place: anywhere,
    },
    Case {
        kernel: "recursion",
        number: 0,
        line: "",
        instruction: "ST",
        is_expected: |kind| matches!(kind, FaultKind::StackOverflow { .. }),
        is_place: anywhere,
    },
    Case {
        kernel: "atomic",
        number: 1,
        line: "atomic_rmw.i32 add v3, v1",
        instruction: "RED",
        is_expected: |kind| matches!(kind, FaultKind::Misaligned { .. }),
        is_place: anywhere,
    },
    Case {
        kernel: "barrier",
        number: 7,
        line: "call fn1() ; barrier",
        instruction: "BAR.SYNC",
        is_expected: |kind| matches!(kind, FaultKind::BarrierDivergence { .. }),
        is_place: |_, thread| thread < 7,
    },
    Case {
        kernel: "barrier",
        number: 45,
        line: "call fn1() ; barrier",
        instruction: "BAR.SYNC",
        is_expected: |kind| matches!(kind, FaultKind::BarrierDivergence { .. }),
        is_place: |_, thread| (32..45).contains(&thread),
    },
    Case {
        kernel: "trap",
        number: 35,
        line: "trapnz v3, user7",
        instruction: "TRAP 7",
        is_expected: |kind| matches!(kind, FaultKind::Trap { code: 7 }),
        is_place: |_, thread| thread == 35,
    },
    Case {
        kernel: "division",
        number: 0,
        line: "udiv v2, v1",
        instruction: "TRAP",
        is_expected: |kind| matches!(kind, FaultKind::Trap { .. }),
        is_place: anywhere,
    },
    Case {
        kernel: "forever",
        number: 35,
        line: "jump block1 ; forever",
        instruction: "BRA",
        is_expected: |kind| {
            matches!(
                kind,
                FaultKind::BudgetExhausted { .. } | FaultKind::Endless { .. }
            )
        },
        is_place: |_, thread| thread >= 32,
    },
    Case {
        kernel: "shuffle",
        number: 7,
        line: "call fn1(v2, v1) ; shuffle",
        instruction: "SHFL",
        is_expected: |kind| matches!(kind, FaultKind::InactiveLane { source_lane: 7 }),
        is_place: |_, thread| thread < 7,
    },
    Case {
        kernel: "jump",
        number: 0x1234_5678,
        line: "call_indirect sig0, v2()",
        instruction: "CALL",
        is_expected: |kind| matches!(kind, FaultKind::BadJump { .. }),
        is_place: anywhere,
    },
];

/// Number of the line that contains a text.
fn line_of(text: &str) -> u32 {
    let found = KERNELS.lines().position(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("no line with {text}")) as u32 + 1
}

/// Runs a case on a device, with another buffer beside its own.
fn check(device: &Device, module: &Module, case: &Case) {
    let name = format!("{} {}", case.kernel, case.number);
    let before = device.upload(&[0x5a5a_5a5au32; 100]).unwrap();
    let buffer = device.upload(&[0u32; ELEMENTS]).unwrap();
    let after = device.upload(&[0xa5a5_a5a5u32; 100]).unwrap();
    let kernel = module.kernel(case.kernel).unwrap();
    let report = kernel
        .launch(GRID)
        .arg(DevicePointer(buffer.address()))
        .arg(case.number)
        .run_to_report()
        .unwrap();
    let fault = report.fault.unwrap_or_else(|| panic!("{name}: no fault"));
    assert!((case.is_expected)(&fault.kind), "{name}: {fault}");
    let place = &fault.place;
    assert_eq!(place.kernel, case.kernel, "{name}: {fault}");
    assert!(
        (case.is_place)(place.block[0], place.thread[0]),
        "{name}: {fault}"
    );
    if case.line.is_empty() {
        assert!(
            place.source.is_some() && place.function.is_some(),
            "{name}: {fault}"
        );
    } else {
        let line = format!("line {} of <clif>", line_of(case.line));
        assert_eq!(place.source, Some(line), "{name}: {fault}");
    }
    assert!(
        fault.to_string().contains(case.instruction),
        "{name}: {fault}"
    );
    assert_eq!(report.stats.faults, 1, "{name}");
    assert_eq!(before.read::<u32>().unwrap(), [0x5a5a_5a5a; 100], "{name}");
    assert_eq!(after.read::<u32>().unwrap(), [0xa5a5_a5a5; 100], "{name}");

    // The next launch on the same device is as good as on a new one.
    let buffer = device.upload(&[0u32; ELEMENTS + 1]).unwrap();
    let kernel = module.kernel("beyond").unwrap();
    kernel.launch(GRID).arg(&buffer).arg(0).run().unwrap();
    let expected: Vec<u32> = (0..=ELEMENTS as u32).collect();
    assert_eq!(buffer.read::<u32>().unwrap(), expected, "after {name}");
}

#[test]
fn every_fault_names_its_place_and_hurts_nobody_else() {
    let code = Compiler::new(Options::default())
        .compile_clif(KERNELS)
        .unwrap_or_else(|errors| panic!("{errors}"));
    for (timed, checked) in [(false, false), (false, true), (true, false), (true, true)] {
        let device = Device::simulator(SimConfig {
            timed,
            check: checked,
            budget: 100_000,
            ..SimConfig::default()
        });
        let module = device.load(&code).unwrap();
        CASES.iter().for_each(|case| check(&device, &module, case));
    }
}

/// What memory holds behind a fault, as `docs/guide/faults.md` says.
#[test]
fn what_is_stored_before_a_trap_or_a_fence_is_there() {
    let kernel = |between: &str| {
        format!(
            "; kernel
            function %k(i64, i64) {{
                gv0 = symbol %gpu_shared
            block0(v0: i64, v1: i64):
                v2 = symbol_value.i32 gv0
                v3 = iconst.i32 7
                store aligned v3, v0
                {between}
                store aligned v3, v0+4
                return
            }}"
        )
    };
    let outside = "v4 = load.i32 aligned v2+1000000\n store aligned v4, v0+8";
    let fenced = format!("fence\n {outside}");
    let cases = [
        ("v4 = ireduce.i32 v1\n trapz v4, user1", "reorder=true"),
        ("v4 = udiv v0, v1\n store aligned v4, v0+8", "reorder=true"),
        (&fenced, "reorder=true"),
        (outside, "reorder=false"),
    ];
    for (between, setting) in cases {
        let mut options = Options::default();
        options.set(setting).unwrap();
        options.set("merge_accesses=false").unwrap();
        let code = Compiler::new(options).compile_clif(&kernel(between));
        let device = Device::simulator(SimConfig::default());
        let kernel = device.load(&code.unwrap()).unwrap().kernel("k").unwrap();
        let out = device.zeros::<u32>(4).unwrap();
        let launch = kernel.launch(Grid::new([1; 3], [1; 3]));
        let report = launch.arg(&out).arg(0u64).run_to_report().unwrap();
        assert!(report.fault.is_some(), "{between}");
        assert_eq!(out.to_vec().unwrap(), [7, 0, 0, 0], "{between}");
    }
}

/// The launch of a kernel with a buffer and a number that ends in a fault.
fn fault_of(device: &Device, name: &str, buffer: &Buffer<u32>, number: i32) -> Fault {
    let code = Compiler::new(Options::default())
        .compile_clif(KERNELS)
        .unwrap_or_else(|errors| panic!("{errors}"));
    let module = device.load(&code).unwrap();
    let kernel = module.kernel(name).unwrap();
    let launch = kernel.launch(GRID).arg(buffer).arg(number);
    launch.run_to_report().unwrap().fault.expect("a fault")
}

#[test]
fn an_access_out_of_bounds_names_the_nearest_allocation() {
    let device = Device::simulator(SimConfig::default());
    let _before = device.upload(&[0u32; 100]).unwrap();
    let line = line!() + 1;
    let buffer = device.upload(&[0u32; ELEMENTS]).unwrap();
    let _after = device.upload(&[0u32; 100]).unwrap();
    let fault = fault_of(&device, "beyond", &buffer, 0);
    let near = fault.near.as_ref().expect("there are allocations");
    assert_eq!(near.allocation.address, buffer.address());
    assert_eq!(near.offset, buffer.bytes() as i64);
    let message = fault.to_string();
    let place = format!(
        "764 bytes at {:#x}, allocated at {}:{line}:",
        buffer.address(),
        file!()
    );
    assert!(message.contains(&place), "{message}");
    assert!(message.ends_with("0 bytes behind its end"), "{message}");
    // A name that the host gives stands for the place.
    let buffer = buffer.named("the sums");
    let message = fault_of(&device, "beyond", &buffer, 0).to_string();
    assert!(message.contains(", the sums; the access"), "{message}");
    assert!(!message.contains("allocated at"), "{message}");
    // What is not near anything is not said to be.
    assert_eq!(fault_of(&device, "nowhere", &buffer, 0).near, None);
}

#[test]
fn an_exhausted_budget_names_warp_and_loop() {
    let device = Device::simulator(SimConfig {
        budget: 10_000,
        ..SimConfig::default()
    });
    let buffer = device.upload(&[0u32; ELEMENTS + 1]).unwrap();
    let fault = fault_of(&device, "forever", &buffer, 35);
    assert!(
        matches!(fault.kind, FaultKind::BudgetExhausted { .. }),
        "{fault}"
    );
    let turning = fault.turning.as_ref().expect("it was running");
    assert_eq!(turning.warp, fault.place.thread[0] / 32);
    let around = &turning.loops[0];
    assert!(
        (around.first..=around.last).contains(&fault.place.pc),
        "{fault}"
    );
    let message = fault.to_string();
    let (head, rest) = message.split_once('\n').expect("the instruction is below");
    let line = line_of("jump block1 ; forever");
    assert!(
        head.starts_with("kernel forever, block (0,0,0), warp 1, in the loop of line")
            && head.contains(&format!("{line} of <clif> (pc "))
            && head.contains("instruction budget of a warp exhausted"),
        "{message}"
    );
    assert!(rest.starts_with("  it was at kernel forever"), "{message}");
}
