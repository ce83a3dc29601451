//! The model against the timed simulator, with one warp.
//!
//! There is no tolerance: one warp has its scheduler to itself, and memory takes as long as the table says.

use super::CodeReport;
use super::model::FunctionCycles;
use crate::compile::{Code, Compiler, Pass};
use crate::driver::{Device, Grid};
use crate::launch::Report;
use crate::launch::trace::{Row, What};
use crate::settings::Options;
use crate::sim::SimConfig;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

/// Without unrolling, so that a turn of the text is a turn of the code.
fn compiler() -> Compiler {
    let mut options = Options::default();
    options.set("unroll=off").expect("a setting");
    let mut compiler = Compiler::new(options);
    compiler.model_cycles(true);
    compiler
}

fn compile(text: &str) -> Code {
    compiler().compile_clif(text).expect("it compiles")
}

/// The code of one function, and the report on it.
fn reported(text: &str) -> (Code, CodeReport) {
    let mut compiler = compiler();
    compiler.report_code(true);
    let found = Arc::new(Mutex::new(None));
    let sink = Arc::clone(&found);
    compiler.dump_after(
        &[Pass::Control],
        Box::new(move |dump| *sink.lock().expect("not poisoned") = dump.report.cloned()),
    );
    let code = compiler.compile_clif(text).expect("it compiles");
    let seen = found.lock().expect("not poisoned").take();
    (code, seen.expect("a report"))
}

/// Cycles of a launch of one warp, with a buffer and a number.
fn simulated(code: &Code, name: &str, number: i32) -> u64 {
    launched(code, name, number).stats.cycles
}

/// A launch of one warp, with a buffer and a number.
fn launched(code: &Code, name: &str, number: i32) -> Report {
    let device = Device::simulator(SimConfig {
        timed: true,
        trace_events: Some(1 << 16),
        ..SimConfig::default()
    });
    let module = device.load(code).expect("it loads");
    let buffer = device.upload(&[3.0f32; 256]).expect("there is memory");
    let kernel = module.kernel(name).expect("it is there");
    let launch = kernel.launch(Grid::new([1; 3], [32, 1, 1]));
    let report = launch.arg(&buffer).arg(number).run().expect("it runs");
    assert_eq!(report.stats.hazards, 0, "{:?}", report.hazards);
    report
}

fn only(code: &Code) -> &FunctionCycles {
    let [function] = code.cycles() else {
        panic!("one function");
    };
    function
}

/// Loads, products of three latencies, doubles, special functions, conversions, shared memory, a fence, stores.
const STRAIGHT: [&str; 3] = [
    "; kernel
function %straight(i64, i32) {
    fn0 = %gpu_tid_x() -> i32
block0(v0: i64, v1: i32):
    v2 = call fn0()
    v3 = uextend.i64 v2
    v4 = iconst.i64 2
    v5 = ishl v3, v4
    v6 = iadd v0, v5
    v7 = load.f32 aligned v6
    v8 = load.f32 aligned v6+512
    v9 = fmul v7, v8
    v10 = fcvt_from_sint.f32 v1
    v11 = fadd v9, v10
    store aligned v11, v6
    return
}",
    "; kernel
function %straight(i64, i32) {
    fn0 = %gpu_tid_x() -> i32
    fn1 = %gpu_ex2_f32(f32) -> f32
block0(v0: i64, v1: i32):
    v2 = call fn0()
    v3 = uextend.i64 v2
    v4 = iconst.i64 2
    v5 = ishl v3, v4
    v6 = iadd v0, v5
    v7 = load.f32 aligned v6
    v8 = fpromote.f64 v7
    v9 = fmul v8, v8
    v10 = fdemote.f32 v9
    v11 = call fn1(v10)
    store aligned v11, v6
    fence
    v12 = load.i32 aligned v6
    v13 = imul v12, v1
    store aligned v13, v6
    return
}",
    "; kernel shared=128
function %straight(i64, i32) {
    gv0 = symbol %gpu_shared
    fn0 = %gpu_tid_x() -> i32
    fn2 = %gpu_bar_sync()
block0(v0: i64, v1: i32):
    v2 = call fn0()
    v3 = uextend.i64 v2
    v4 = iconst.i64 2
    v5 = ishl v3, v4
    v6 = iadd v0, v5
    v7 = symbol_value.i64 gv0
    v8 = iadd v7, v5
    v9 = load.i32 aligned v6
    store aligned v9, v8
    call fn2()
    v10 = load.i32 aligned v7
    v11 = popcnt v10
    v12 = icmp slt v11, v1
    v13 = select v12, v10, v11
    store aligned v13, v6
    return
}",
];

#[test]
fn straight_code_takes_as_long_as_in_the_timed_simulator() {
    for text in STRAIGHT {
        let code = compile(text);
        let function = only(&code);
        let [block] = &function.blocks[..] else {
            panic!("one block\n{function}");
        };
        let cycles = simulated(&code, "straight", 5);
        assert_eq!(u64::from(block.cycles), cycles, "{text}\n{function}");
        assert_eq!(block.turn, None);
    }
}

/// A kernel of random arithmetic between loads and stores, of 32 and 64 bits, integers, floats and special functions;
/// the same for the same seed.
fn random_straight(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % end
    };
    let mut body = String::new();
    // Values known so far: integers of 32 bits, floats, integers of 64 bits.
    let mut known: [Vec<usize>; 3] = [vec![1], vec![2], vec![3]];
    for value in 4..4 + 10 + below(40) {
        let mut pick = |kind: usize| known[kind][below(known[kind].len())];
        let (i, j, f, g, l, m) = (pick(0), pick(0), pick(1), pick(1), pick(2), pick(2));
        let offset = 4 * below(64);
        let (kind, text) = match below(14) {
            0 => (0, format!("load.i32 aligned v0+{offset}")),
            1 => (1, format!("load.f32 aligned v0+{offset}")),
            2 => (2, format!("load.i64 aligned v0+{}", 2 * offset)),
            3 => (0, format!("imul v{i}, v{j}")),
            4 => (0, format!("popcnt v{i}")),
            5 => (0, format!("bxor v{i}, v{j}")),
            6 => (1, format!("fma v{f}, v{g}, v{f}")),
            7 => (1, format!("fcvt_from_sint.f32 v{i}")),
            8 => (1, format!("call fn0(v{f})")),
            9 => (2, format!("imul v{l}, v{m}")),
            10 => (2, format!("iadd v{l}, v{m}")),
            11 => (0, format!("ireduce.i32 v{l}")),
            12 => {
                let _ = writeln!(body, "    store aligned v{i}, v0+{offset}");
                (2, format!("uextend.i64 v{j}"))
            }
            _ => (1, format!("fadd v{f}, v{g}")),
        };
        let _ = writeln!(body, "    v{value} = {text}");
        known[kind].push(value);
    }
    for (kind, values) in known.iter().enumerate() {
        let last = values[values.len() - 1];
        let _ = writeln!(body, "    store aligned v{last}, v0+{}", 512 + 8 * kind);
    }
    format!(
        "; kernel
function %straight(i64, i32) {{
    fn0 = %gpu_ex2_f32(f32) -> f32
block0(v0: i64, v1: i32):
    v2 = f32const 0x1.8p0
    v3 = iconst.i64 77
{body}    return
}}"
    )
}

/// The cycles in which scoreboards are not zero.
fn busy(spans: impl Iterator<Item = (u8, u64, u64)>) -> BTreeSet<(u8, u64)> {
    let cycles =
        spans.flat_map(|(scoreboard, start, end)| (start..end).map(move |c| (scoreboard, c)));
    cycles.collect()
}

#[test]
fn the_timeline_of_straight_code_is_that_of_the_trace() {
    let mut instructions = 0;
    let random = (0..40).map(random_straight);
    for text in STRAIGHT.iter().map(ToString::to_string).chain(random) {
        let (code, seen) = reported(&text);
        let [block] = &seen.blocks[..] else {
            panic!("one block\n{text}");
        };
        let report = launched(&code, "straight", 5);
        assert_eq!(block.cycles, report.stats.cycles, "{text}");
        let trace = report.trace.expect("wanted");
        let issued = trace.events.iter().filter_map(|event| match event.what {
            What::Issue { address, .. } => Some((address, event.start)),
            _ => None,
        });
        let issued: Vec<_> = issued.collect();
        let expected = seen.instructions.iter().map(|i| (i.offset, i.issue));
        // The kernel is all that there is: addresses and offsets differ by where it begins.
        let first = issued[0].0;
        let expected: Vec<_> = expected.map(|(at, cycle)| (first + at, cycle)).collect();
        assert_eq!(issued, expected, "{text}");
        let traced = trace.events.iter().filter_map(|event| match event.row {
            Row::Scoreboard(s) => Some((s, event.start, event.start + event.cycles)),
            Row::Warp => None,
        });
        let modelled = seen.instructions.iter().flat_map(|instruction| {
            let raises = instruction.raises.iter();
            raises.map(|&(s, until)| (s, instruction.issue, until))
        });
        assert_eq!(busy(traced), busy(modelled), "{text}");
        instructions += expected.len();
    }
    assert!(instructions > 500, "{instructions}");
}

/// A turn that waits for a load, and one that only computes and has a block of its own for every other turn.
const LOOPS: [&str; 2] = [
    "; kernel
function %turns(i64, i32) {
block0(v0: i64, v1: i32):
    v2 = f32const 0.0
    jump block1(v0, v2, v1)
block1(v3: i64, v4: f32, v5: i32):
    v6 = load.f32 aligned v3
    v7 = fadd v4, v6
    v8 = iconst.i64 4
    v9 = iadd v3, v8
    v10 = iconst.i32 -1
    v11 = iadd v5, v10
    brif v11, block1(v9, v7, v11), block2
block2:
    store aligned v7, v0
    return
}",
    "; kernel
function %turns(i64, i32) {
block0(v0: i64, v1: i32):
    v2 = iconst.i32 1
    jump block1(v2, v1)
block1(v4: i32, v5: i32):
    v6 = iconst.i32 5
    v7 = imul v4, v6
    v8 = imul v7, v4
    v9 = iconst.i32 -1
    v10 = iadd v5, v9
    brif v10, block1(v8, v10), block2
block2:
    store aligned v8, v0
    return
}",
];

#[test]
fn turns_take_as_long_as_in_the_timed_simulator() {
    for text in LOOPS {
        let code = compile(text);
        let function = only(&code);
        let turns: Vec<u32> = function.blocks.iter().filter_map(|b| b.turn).collect();
        let [turn] = turns[..] else {
            panic!("one loop\n{function}");
        };
        let [few, many] = [20, 30].map(|turns| simulated(&code, "turns", turns));
        assert_eq!(many - few, 10 * u64::from(turn), "{text}\n{function}");
    }
}

#[test]
fn nothing_is_modelled_unless_asked_for() {
    let code = Compiler::default().compile_clif(STRAIGHT[0]);
    assert_eq!(code.expect("it compiles").cycles(), []);
}
