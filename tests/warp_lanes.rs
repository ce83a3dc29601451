//! Warps of fewer lanes: what lanes do together changes, the numbers of threads, lanes and warps do not.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;

use cranelift_thisgpu::driver::{Argument, Device};
use cranelift_thisgpu::sim::{FaultKind, SimConfig};

/// Each thread writes its lane, its warp and the lanes that are with it.
const KERNEL: &str = "; kernel
function %k(i64) {
    fn0 = %gpu_tid_x() -> i32
    fn1 = %gpu_laneid() -> i32
    fn2 = %gpu_warpid() -> i32
    fn3 = %gpu_activemask() -> i32
    fn4 = %gpu_bar_sync()
block0(v0: i64):
    v1 = call fn0()
    v2 = uextend.i64 v1
    v3 = iconst.i64 12
    v4 = imul v2, v3
    v5 = iadd v0, v4
    v6 = call fn1()
    store aligned v6, v5
    v7 = call fn2()
    store aligned v7, v5+4
    call fn4()
    v8 = call fn3()
    store aligned v8, v5+8
    return
}
";

/// The last thread traps.
const TRAP: &str = "; kernel
function %k() {
    fn0 = %gpu_tid_x() -> i32
block0:
    v0 = call fn0()
    v1 = iconst.i32 69
    v2 = icmp eq v0, v1
    trapnz v2, user1
    return
}
";

const THREADS: u32 = 70;

fn launch(
    text: &str,
    config: SimConfig,
    arguments: usize,
) -> (cranelift_thisgpu::sim::Report, Vec<u32>) {
    let device = Device::simulator(config);
    let words = device.upload(&[0u32; 3 * THREADS as usize]).unwrap();
    let arguments = &[&words as &dyn Argument][..arguments];
    let block = common::block(THREADS);
    let report = common::launch(&device, &common::compile(text), "k", block, arguments);
    (report, words.read().unwrap())
}

#[test]
fn pieces_of_warps_run_alone_and_keep_their_numbers() {
    for warp_lanes in [1, 5, 8, 32] {
        for timed in [false, true] {
            let config = SimConfig {
                warp_lanes,
                timed,
                check: true,
                ..SimConfig::default()
            };
            let (report, words) = launch(KERNEL, config, 1);
            assert_eq!(
                (&report.fault, &report.hazards[..], &report.findings[..]),
                (&None, &[][..], &[][..])
            );
            let expected = (0..THREADS).flat_map(|thread| {
                let (lane, warp) = (thread % 32, thread / 32);
                let lanes = (THREADS - 32 * warp).min(32);
                let first = lane / warp_lanes * warp_lanes;
                let together = first..(first + warp_lanes).min(lanes);
                [lane, warp, together.fold(0, |mask, lane| mask | 1 << lane)]
            });
            assert_eq!(
                words,
                expected.collect::<Vec<u32>>(),
                "{warp_lanes} {timed}"
            );
        }
    }
}

#[test]
fn a_fault_names_the_thread() {
    for warp_lanes in [1, 4, 32] {
        for timed in [false, true] {
            let config = SimConfig {
                warp_lanes,
                timed,
                ..SimConfig::default()
            };
            let fault = launch(TRAP, config, 0).0.fault.expect("a trap");
            assert!(matches!(fault.kind, FaultKind::Trap { .. }), "{fault}");
            assert_eq!(fault.place.thread, [69, 0, 0], "{fault}");
        }
    }
}

/// All lanes of a warp wait for those of a mask.
const SYNC: &str = "; kernel
function %k(i64) {
    fn0 = %gpu_warp_sync(i32)
block0(v0: i64):
    v1 = load.i32 aligned v0
    call fn0(v1)
    return
}
";

#[test]
fn lanes_that_run_apart_cannot_be_waited_for() {
    let sync = |mask: u32, threads: u32, warp_lanes: u32| {
        let device = Device::simulator(SimConfig {
            warp_lanes,
            ..SimConfig::default()
        });
        let mask = device.upload(&[mask]).unwrap();
        let block = common::block(threads);
        let report = common::launch(&device, &common::compile(SYNC), "k", block, &[&mask]);
        report.fault.map(|fault| fault.kind)
    };
    let apart = |missing| Some(FaultKind::LanesApart { missing });
    assert_eq!(sync(u32::MAX, 32, 32), None);
    assert_eq!(sync(0xFFFF, 32, 8), apart(0xFF00));
    assert_eq!(sync(0x3, 64, 1), apart(0x2));
    // All lanes are all that run together.
    assert_eq!(sync(u32::MAX, 32, 8), None);
    assert_eq!(sync(0xFF, 8, 8), None);
    // Lanes that no thread has are not missing, as in a warp of 32 lanes.
    assert_eq!(sync(0xFFF, 8, 8), None);
    assert_eq!(sync(0xFFFF, 12, 8), apart(0x0000_0F00));
    assert_eq!(sync(0xFFFF, 12, 32), None);
}
