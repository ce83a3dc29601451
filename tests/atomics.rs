//! Atomic operations by many threads at once on the same cells, in global and shared memory, of every size.
//!
//! Every fourth thread works on the same cell; neighbouring cells share a word where they are narrow, so that what one
//! thread does to its bytes must leave the others' alone. The final values do not depend on the order of the threads.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;

use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;

/// Threads, in blocks of 64; shared memory sees one block.
const THREADS: u64 = 128;
/// Cells that they work on.
const CELLS: u64 = 4;

/// Operand of a thread.
fn operand(thread: u64) -> u64 {
    (thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7) | thread
}

/// A device that looks for mistakes.
fn checking() -> Device {
    Device::simulator(SimConfig {
        check: true,
        ..SimConfig::default()
    })
}

/// Runs the kernel text on a buffer of bytes.
fn run(text: &str, cells: &[u8], blocks: u32, results: usize) -> (Vec<u8>, Vec<u64>) {
    let device = checking();
    let a = device.upload(cells).unwrap();
    let operands: Vec<u64> = (0..THREADS).map(operand).collect();
    let o = device.upload(&operands).unwrap();
    let r = device.upload(&vec![0u64; results.max(1)]).unwrap();
    let grid = Grid::new([blocks, 1, 1], [64, 1, 1]);
    common::run(
        &device,
        &common::compile(text),
        "k",
        grid,
        &[&a, &o, &r],
        text,
    );
    (device.download(&a).unwrap(), device.download(&r).unwrap())
}

/// A kernel in which every thread does `body` on the address v30 with the operand v31 of type `ty`; v20 is the thread,
/// v21 the same as i64.
fn kernel(ty: &str, bytes: u64, shared: bool, body: &str) -> String {
    let pointer = if shared { "i32" } else { "i64" };
    let narrow = if ty == "i64" {
        "    v31 = bor v26, v26\n".to_owned()
    } else {
        format!("    v31 = ireduce.{ty} v26\n")
    };
    let base = if shared {
        "    v28 = iadd v40, v27\n"
    } else {
        "    v28 = iadd v0, v27\n"
    };
    // The cells of shared memory are copied in and out by the first thread.
    let (enter, leave) = if shared {
        let copy = |from: &str, to: &str| {
            format!(
                "    v50 = load.i64 {from}\n    store v50, {to}\n    v51 = load.i64 {from}+8\n    store v51, \
                 {to}+8\n    v52 = load.i64 {from}+16\n    store v52, {to}+16\n    v53 = load.i64 {from}+24\n    store \
                v53, {to}+24\n"
            )
        };
        (
            format!(
                "    v40 = symbol_value.i32 gv0\n    brif v20, block2, block1\nblock1:\n{}    jump \
                 block2\nblock2:\n    call fn3()\n",
                copy("v0", "v40")
            ),
            format!(
                "    call fn3()\n    brif v20, block4, block3\nblock3:\n{}    jump block4\nblock4:\n",
                copy("v40", "v0").replace("v5", "v6")
            ),
        )
    } else {
        Default::default()
    };
    format!(
        "; kernel shared=64
function %k(i64, i64, i64) {{
    gv0 = symbol %gpu_shared
    fn0 = %gpu_ctaid_x() -> i32
    fn1 = %gpu_ntid_x() -> i32
    fn2 = %gpu_tid_x() -> i32
    fn3 = %gpu_bar_sync()
block0(v0: i64, v1: i64, v2: i64):
    v10 = call fn0()
    v11 = call fn1()
    v12 = call fn2()
    v13 = imul v10, v11
    v20 = iadd v13, v12
    v21 = uextend.i64 v20
    v22 = iconst.i64 8
    v23 = imul v21, v22
    v24 = iadd v1, v23
    v25 = iadd v2, v23
    v26 = load.i64 aligned v24
{narrow}{enter}    v32 = iconst.i32 {mask}
    v33 = band v20, v32
    v34 = iconst.i32 {bytes}
    v35 = imul v33, v34
{offset}{base}    v30 = bor v28, v28
{body}{leave}    return
}}
",
        mask = CELLS - 1,
        offset = if pointer == "i64" {
            "    v27 = uextend.i64 v35\n"
        } else {
            "    v27 = bor v35, v35\n"
        },
    )
}

fn cell(bytes: &[u8], index: u64, size: u64) -> u64 {
    let at = (index * size) as usize;
    let mut word = [0; 8];
    word[..size as usize].copy_from_slice(&bytes[at..at + size as usize]);
    u64::from_le_bytes(word)
}

const TYPES: [(&str, u64); 4] = [("i8", 1), ("i16", 2), ("i32", 4), ("i64", 8)];

/// What is in the cells at first.
fn initial() -> Vec<u8> {
    (0..32u8).map(|i| i.wrapping_mul(37) ^ 0x5a).collect()
}

/// One operation in the width of a type.
fn apply(op: &str, bits: u32, old: u64, x: u64) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let (old, x) = (old & mask, x & mask);
    let signed = |v: u64| (v << (64 - bits)) as i64;
    mask & match op {
        "add" => old.wrapping_add(x),
        "sub" => old.wrapping_sub(x),
        "and" => old & x,
        "or" => old | x,
        "xor" => old ^ x,
        "umin" => old.min(x),
        "umax" => old.max(x),
        "smin" => {
            if signed(x) < signed(old) {
                x
            } else {
                old
            }
        }
        "smax" => {
            if signed(x) > signed(old) {
                x
            } else {
                old
            }
        }
        other => panic!("unknown operation {other}"),
    }
}

#[test]
fn operations_of_any_order() {
    for (ty, size) in TYPES {
        for op in [
            "add", "sub", "and", "or", "xor", "umin", "umax", "smin", "smax",
        ] {
            for shared in [false, true] {
                for used in [false, true] {
                    let mut body = format!("    v36 = atomic_rmw.{ty} {op} v30, v31\n");
                    if used {
                        body += "    store v36, v25\n";
                    }
                    let blocks = if shared { 1 } else { 2 };
                    let threads = u64::from(blocks) * 64;
                    let text = kernel(ty, size, shared, &body);
                    let (after, _) = run(&text, &initial(), blocks, THREADS as usize);
                    for index in 0..32 / size {
                        let mut expected = cell(&initial(), index, size);
                        for thread in (0..threads).filter(|t| t % CELLS == index) {
                            expected = apply(op, size as u32 * 8, expected, operand(thread));
                        }
                        let actual = cell(&after, index, size);
                        assert_eq!(
                            actual, expected,
                            "{op}.{ty} shared {shared} cell {index}\n{text}"
                        );
                    }
                }
            }
        }
    }
}

/// The old values and the last one are the first one and all operands, each as often.
#[test]
fn exchanges_lose_nothing() {
    for (ty, size) in TYPES {
        for shared in [false, true] {
            let body = format!("    v36 = atomic_rmw.{ty} xchg v30, v31\n    store v36, v25\n");
            let blocks = if shared { 1 } else { 2 };
            let threads = u64::from(blocks) * 64;
            let text = kernel(ty, size, shared, &body);
            let (after, old) = run(&text, &initial(), blocks, THREADS as usize);
            let mask = u64::MAX >> (64 - 8 * size);
            for index in 0..CELLS {
                let of_cell = |t: &u64| t % CELLS == index;
                let mut seen: Vec<u64> = (0..threads)
                    .filter(of_cell)
                    .map(|t| old[t as usize] & mask)
                    .collect();
                seen.push(cell(&after, index, size));
                let mut put: Vec<u64> = (0..threads)
                    .filter(of_cell)
                    .map(|t| operand(t) & mask)
                    .collect();
                put.push(cell(&initial(), index, size));
                seen.sort_unstable();
                put.sort_unstable();
                assert_eq!(seen, put, "xchg.{ty} shared {shared}");
            }
        }
    }
}

/// nand: each thread's old value leads to the next one's, from the first value to the last.
#[test]
fn nand_and_compare_and_swap_make_chains() {
    for (ty, size) in TYPES {
        for shared in [false, true] {
            let bits = size as u32 * 8;
            let mask = u64::MAX >> (64 - bits);
            let blocks = if shared { 1 } else { 2 };
            let threads = u64::from(blocks) * 64;
            // Adding by compare-and-swap in a loop counts every thread once.
            let body = format!(
                "    v36 = atomic_load.{ty} v30\n    jump block10(v36)\nblock10(v37: {ty}):\n    v38 = iadd v37, \
                 v31\n    v39 = atomic_cas.{ty} v30, v37, v38\n    v41 = icmp eq v39, v37\n    brif v41, block11, \
                block10(v39)\nblock11:\n"
            );
            let text = kernel(ty, size, shared, &body);
            let (after, _) = run(&text, &initial(), blocks, THREADS as usize);
            for index in 0..32 / size {
                let sum = (0..threads)
                    .filter(|t| t % CELLS == index)
                    .fold(cell(&initial(), index, size), |s, t| {
                        s.wrapping_add(operand(t))
                    });
                assert_eq!(
                    cell(&after, index, size),
                    sum & mask,
                    "cas.{ty} shared {shared} cell {index}"
                );
            }

            let body = format!("    v36 = atomic_rmw.{ty} nand v30, v31\n    store v36, v25\n");
            let text = kernel(ty, size, shared, &body);
            let (after, old) = run(&text, &initial(), blocks, THREADS as usize);
            for index in 0..CELLS {
                let of_cell = |t: &u64| t % CELLS == index;
                // Values before and after all steps: the same but for the first before and the last after.
                let mut before: Vec<u64> = (0..threads)
                    .filter(of_cell)
                    .map(|t| old[t as usize] & mask)
                    .collect();
                let mut behind: Vec<u64> = (0..threads)
                    .filter(of_cell)
                    .map(|t| !(old[t as usize] & operand(t)) & mask)
                    .collect();
                before.push(cell(&after, index, size));
                behind.push(cell(&initial(), index, size));
                before.sort_unstable();
                behind.sort_unstable();
                assert_eq!(before, behind, "nand.{ty} shared {shared}");
            }
            let rest = (CELLS * size) as usize;
            assert_eq!(
                after[rest..],
                initial()[rest..],
                "nand.{ty} leaves the rest alone"
            );
        }
    }
}

/// A value handed over through a flag: the reader of the flag sees what was stored before it.
#[test]
fn stores_are_seen_before_the_flag() {
    let text = "; kernel
function %k(i64, i64, i64) {
    fn0 = %gpu_ctaid_x() -> i32
    fn1 = %gpu_tid_x() -> i32
block0(v0: i64, v1: i64, v2: i64):
    v3 = call fn0()
    v4 = call fn1()
    brif v4, block9, block1
block1:
    brif v3, block2, block4
block2:
    v5 = atomic_load.i32 v0
    brif v5, block3, block2
block3:
    v6 = load.i32 v0+4
    v7 = uextend.i64 v6
    store v7, v2
    return
block4:
    v8 = iconst.i32 1234
    store v8, v0+4
    fence
    v9 = iconst.i32 1
    atomic_store v9, v0
    return
block9:
    return
}
";
    let (_, results) = run(text, &[0; 32], 2, 1);
    assert_eq!(results, [1234]);
}

/// Two blocks, one of which waits in `atomic_load` for the `atomic_store` of the other: both orders of the blocks, all
/// sizes, whatever the compiler knows of the address.
#[test]
fn blocks_wait_for_each_other_with_loads_and_stores() {
    for (ty, size) in TYPES {
        for (address, opt_level) in [
            ("bor v0, v0", "none"),
            ("bor v0, v0", "speed"),
            ("load.i64 v2", "speed"),
        ] {
            let text = format!(
                "; kernel
function %k(i64, i32, i64) {{
    fn0 = %gpu_ctaid_x() -> i32
block0(v0: i64, v1: i32, v2: i64):
    v3 = call fn0()
    v10 = {address}
    v4 = icmp eq v3, v1
    brif v4, block1, block3
block1:
    v5 = atomic_load.{ty} v10
    brif v5, block2, block1
block2:
    store v5, v0+8
    return
block3:
    v6 = iconst.{ty} 77
    atomic_store v6, v10
    return
}}
"
            );
            let mut options = Options::default();
            options.set(&format!("opt_level={opt_level}")).unwrap();
            let code = common::compile_with(options, &text);
            for waiter in [0, 1] {
                let device = checking();
                let flag = device.upload(&[0u64; 2]).unwrap();
                let pointer = device.upload(&[flag.address()]).unwrap();
                let grid = Grid::new([2, 1, 1], [1, 1, 1]);
                let at = format!("{ty} of {size} bytes, {opt_level}, block {waiter} waits");
                common::run(&device, &code, "k", grid, &[&flag, &waiter, &pointer], at);
                assert_eq!(flag.read::<u64>().unwrap(), [77, 77]);
            }
        }
    }
}
