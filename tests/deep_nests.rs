//! Divergent branches in each other, deeper than the machine has barriers and the allocator would like to keep masks in
//! registers.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;

use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use std::fmt::Write;

/// Levels of the nest.
const DEPTH: u32 = 150;
/// Threads of the block.
const THREADS: u32 = 256;

/// `if tid > 0 { add; if tid > 1 { add; ... } xor } xor`: out[0] counts how often lanes came in, out[1] is what they
/// did on the way out.
fn text() -> String {
    let mut text = String::from(
        "; kernel
function %k(i64) {
    fn0 = %gpu_tid_x() -> i32
block0(v0: i64):
    v1 = call fn0()
    v2 = iconst.i32 1
    v3 = iconst.i64 4
    v4 = iadd v0, v3
",
    );
    for i in 0..DEPTH {
        let (limit, more, out) = (3 * i + 10, 3 * i + 11, 2 * DEPTH - i);
        writeln!(
            text,
            "    v{limit} = iconst.i32 {i}
    v{more} = icmp ugt v1, v{limit}
    brif v{more}, block{}, block{out}
block{}:
    v{} = atomic_rmw.i32 add v0, v2",
            i + 1,
            i + 1,
            3 * i + 12,
        )
        .expect("a string");
    }
    for i in (0..DEPTH).rev() {
        let out = 2 * DEPTH - i;
        writeln!(
            text,
            "    jump block{out}\nblock{out}:\n    v{} = atomic_rmw.i32 add v4, v1",
            1000 + i
        )
        .expect("a string");
    }
    text + "    return\n}\n"
}

#[test]
fn lanes_meet_again_at_every_level() {
    for algorithm in ["backtracking", "single_pass"] {
        let mut options = Options::default();
        options
            .set(&format!("regalloc_algorithm={algorithm}"))
            .expect("a setting");
        let code = common::compile_with(options, &text());
        let kernel = code.kernel("k").expect("the kernel");
        assert!(
            kernel.resources().registers < 64,
            "the masks of the outer levels are in memory"
        );
        let device = Device::simulator(SimConfig::default());
        let memory = device.upload(&[0u32; 2]).expect("memory");
        let block = common::block(THREADS);
        common::run(&device, &code, "k", block, &[&memory], algorithm);
        let found: Vec<u32> = device.download(&memory).expect("the result");
        let entered: u32 = (0..THREADS).map(|tid| tid.min(DEPTH)).sum();
        // Whoever passes the start of a level passes its end: one more time than it entered one, but for the innermost.
        let left: u32 = (0..THREADS).map(|tid| tid * (tid + 1).min(DEPTH)).sum();
        assert_eq!(found, [entered, left], "{algorithm}");
    }
}
