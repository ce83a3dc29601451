//! The whole way in one program: CLIF text to words, onto a device, a million elements, checked against the host.
//!
//! `saxpy` computes y = fma(a, x, y) on pairs of halves; `hash` mixes 32-bit words with a 64-bit state (a splitmix64
//! finaliser with 32-bit in- and output). Prints what the compiler says of each kernel and what the device says of each
//! run.

use cranelift_thisgpu::{Compiler, Device, Grid, Options, Report, SimConfig};
use half::f16;
use std::error::Error;

/// Elements of each run.
const ELEMENTS: u32 = 1_000_000;
/// Threads of a block.
const BLOCK: u32 = 256;

/// The kernels.
pub const KERNELS: &str = "
; kernel
function %saxpy(i32, f16x2, i64, i64) {
    fn0 = %gpu_ctaid_x() -> i32
    fn1 = %gpu_ntid_x() -> i32
    fn2 = %gpu_tid_x() -> i32

block0(v0: i32, v1: f16x2, v2: i64, v3: i64):
    v4 = call fn0()
    v5 = call fn1()
    v6 = call fn2()
    v7 = imul v4, v5
    v8 = iadd v7, v6
    v9 = icmp uge v8, v0
    brif v9, block2, block1

block1:
    v10 = uextend.i64 v8
    v11 = iconst.i64 2
    v12 = ishl v10, v11
    v13 = iadd v2, v12
    v14 = iadd v3, v12
    v15 = load.f16x2 aligned v13
    v16 = load.f16x2 aligned v14
    v17 = fma v1, v15, v16
    store aligned v17, v14
    jump block2

block2:
    return
}

; kernel
function %hash(i32, i64, i64, i64) {
    fn0 = %gpu_ctaid_x() -> i32
    fn1 = %gpu_ntid_x() -> i32
    fn2 = %gpu_tid_x() -> i32

block0(v0: i32, v1: i64, v2: i64, v3: i64):
    v4 = call fn0()
    v5 = call fn1()
    v6 = call fn2()
    v7 = imul v4, v5
    v8 = iadd v7, v6
    v9 = icmp uge v8, v0
    brif v9, block2, block1

block1:
    v10 = uextend.i64 v8
    v11 = iconst.i64 2
    v12 = ishl v10, v11
    v13 = iadd v2, v12
    v14 = load.i32 aligned v13
    v15 = uextend.i64 v14
    v16 = iadd v15, v1
    v17 = iconst.i64 30
    v18 = ushr v16, v17
    v19 = bxor v16, v18
    v20 = iconst.i64 0xbf58_476d_1ce4_e5b9
    v21 = imul v19, v20
    v22 = iconst.i64 27
    v23 = ushr v21, v22
    v24 = bxor v21, v23
    v25 = iconst.i64 0x94d0_49bb_1331_11eb
    v26 = imul v24, v25
    v27 = iconst.i64 31
    v28 = ushr v26, v27
    v29 = bxor v26, v28
    v30 = ireduce.i32 v29
    v31 = iadd v3, v12
    store aligned v30, v31
    jump block2

block2:
    return
}
";

/// The hash of one word on the host.
fn hash(word: u32, seed: u64) -> u32 {
    let z = u64::from(word).wrapping_add(seed);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ z >> 31) as u32
}

/// fma on the host: the product of two halves and its sum with a third are exact in f64 here, so one rounding remains.
fn fma(a: f16, x: f16, y: f16) -> f16 {
    f16::from_f64(a.to_f64() * x.to_f64() + y.to_f64())
}

fn main() -> Result<(), Box<dyn Error>> {
    let code = Compiler::new(Options::default()).compile_clif(KERNELS)?;
    for kernel in code.kernels() {
        println!("{kernel}");
    }
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&code)?;
    let grid = || Grid::for_elems(ELEMENTS, BLOCK);

    let a = f16::from_f32(1.5);
    let xs: Vec<f16> = (0..2 * ELEMENTS)
        .map(|i| f16::from_f32((i % 1000) as f32 / 8.0))
        .collect();
    let ys: Vec<f16> = (0..2 * ELEMENTS)
        .map(|i| f16::from_f32(500.0 - (i % 997) as f32))
        .collect();
    let (x, y) = (device.upload(&xs)?, device.upload(&ys)?);
    let packed = u32::from(a.to_bits()) * 0x1_0001;
    let report = module
        .kernel("saxpy")?
        .launch(grid())
        .arg(ELEMENTS)
        .arg(packed)
        .arg(&x)
        .arg(&y)
        .run()?;
    describe("saxpy", &report);
    let results: Vec<f16> = device.download(&y)?;
    for (i, result) in results.iter().enumerate() {
        let expected = fma(a, xs[i], ys[i]);
        if result.to_bits() != expected.to_bits() {
            return Err(format!("saxpy: element {i} is {result}, not {expected}").into());
        }
    }

    let seed = 0x9e37_79b9_7f4a_7c15_u64;
    let words: Vec<u32> = (0..ELEMENTS).map(|i| i.wrapping_mul(0x0101_6b05)).collect();
    let (input, output) = (
        device.upload(&words)?,
        device.allocate(4 * u64::from(ELEMENTS))?,
    );
    let report = module
        .kernel("hash")?
        .launch(grid())
        .arg(ELEMENTS)
        .arg(seed)
        .arg(&input)
        .arg(&output)
        .run()?;
    describe("hash", &report);
    let results: Vec<u32> = device.download(&output)?;
    for (i, (&result, &word)) in results.iter().zip(&words).enumerate() {
        let expected = hash(word, seed);
        if result != expected {
            return Err(format!("hash: element {i} is {result:#x}, not {expected:#x}").into());
        }
    }
    println!("{ELEMENTS} elements of each agree with the host");
    Ok(())
}

fn describe(name: &str, report: &Report) {
    let stats = &report.stats;
    println!(
        "{name}: {} warp instructions, {} thread instructions, {} faults",
        stats.warp_instructions, stats.thread_instructions, stats.faults
    );
}
