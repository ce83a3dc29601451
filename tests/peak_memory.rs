//! What a launch of many blocks takes of the host's memory beside the buffers. In a process of its own, whose peak this
//! is.

#![cfg(all(feature = "driver", feature = "sim", target_os = "linux"))]

use cranelift_thisgpu::{Compiler, Device, Grid, Options, SimConfig};
use std::fs;

/// Every thread writes its number and reads it again through its stack.
const TEXT: &str = "
; kernel
function %fill(i64, i32) {
    ss0 = explicit_slot 64
    fn0 = %gpu_ctaid_x() -> i32
    fn1 = %gpu_ntid_x() -> i32
    fn2 = %gpu_tid_x() -> i32
block0(v0: i64, v1: i32):
    v2 = call fn0()
    v3 = call fn1()
    v4 = call fn2()
    v5 = imul v2, v3
    v6 = iadd v5, v4
    v20 = stack_addr.i64 ss0
    v21 = iconst.i64 60
    v22 = uextend.i64 v6
    v23 = band v22, v21
    v24 = iadd v20, v23
    store aligned v6, v24
    v7 = icmp ult v6, v1
    brif v7, block1, block2
block1:
    v8 = uextend.i64 v6
    v9 = iconst.i64 2
    v10 = ishl v8, v9
    v11 = iadd v0, v10
    v12 = load.i32 aligned v24
    store aligned v12, v11
    jump block2
block2:
    return
}
";
/// Elements of the buffer.
const ELEMENTS: u32 = 1 << 21;
/// What a launch may take beside one and a half times its buffers.
const BESIDE: u64 = 64 << 20;

/// The most memory that this process has had so far, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    let kilobytes: u64 = kilobytes.and_then(|n| n.parse().ok()).expect("a number");
    kilobytes << 10
}

#[test]
fn a_large_grid_takes_little_beside_its_buffers() {
    let code = Compiler::new(Options::default())
        .compile_clif(TEXT)
        .expect("it compiles");
    for threads in [1, 8] {
        let device = Device::simulator(SimConfig {
            threads,
            ..SimConfig::default()
        });
        let kernel = device.load(&code).and_then(|module| module.kernel("fill"));
        let kernel = kernel.expect("the module has it");
        let before = peak();
        let bytes = u64::from(ELEMENTS) * 4;
        let buffer = device.allocate_zeroed(bytes).expect("room");
        let launch = kernel.launch(Grid::for_elems(ELEMENTS, 64));
        launch.arg(&buffer).arg(ELEMENTS).run().expect("no fault");
        let taken = peak() - before;
        assert!(taken >= bytes / 2 || threads != 1, "{taken} bytes");
        assert!(
            taken < bytes * 3 / 2 + BESIDE,
            "{taken} bytes with {threads} threads"
        );
        println!("{threads} threads: {taken} bytes for buffers of {bytes}");
    }
}
