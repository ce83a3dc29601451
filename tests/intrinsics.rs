//! Every row of the table of intrinsics, compiled and run, against what its reference text says.
//!
//! A row that nothing here knows fails the test.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;

use cranelift_codegen::ir::{Type, types};
use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::intrinsics::{self, Intrinsic};
use cranelift_thisgpu::sim::{Report, SimConfig};
use cranelift_thisgpu::unstable::isa::random::Random as Sequence;
use half::{bf16, f16};

/// Reproducible numbers.
struct Random(Sequence);

impl Random {
    fn word(&mut self) -> u32 {
        (self.0.bits() >> 32) as u32
    }
}

/// Two warps in one block, all lanes active.
const THREADS: u32 = 64;

/// Turns the i32 `from` into a value `to` of type `ty`.
fn narrowed(ty: Type, from: &str, to: &str) -> String {
    match ty {
        types::I32 => format!("    {to} = bor {from}, {from}\n"),
        types::I8 | types::I16 => format!("    {to} = ireduce.{ty} {from}\n"),
        types::F32 => format!("    {to} = bitcast.f32 {from}\n"),
        types::F16 => format!("    {to}1 = ireduce.i16 {from}\n    {to} = bitcast.f16 {to}1\n"),
        types::F16X2 => format!("    {to} = bitcast.f16x2 little {from}\n"),
        _ => panic!("parameter of type {ty}"),
    }
}

/// Turns v90 of type `ty` into the i32 v99.
fn widened(ty: Type) -> String {
    match ty {
        types::I32 => "    v99 = bor v90, v90\n".into(),
        types::I8 | types::I16 => "    v99 = uextend.i32 v90\n".into(),
        types::F32 => "    v99 = bitcast.i32 v90\n".into(),
        types::F16 => "    v98 = bitcast.i16 v90\n    v99 = uextend.i32 v98\n".into(),
        types::F16X2 => "    v99 = bitcast.i32 little v90\n".into(),
        _ => panic!("result of type {ty}"),
    }
}

/// A kernel that calls the row on words of a buffer, four for each thread, and stores the result.
fn kernel(row: &Intrinsic, constant: Option<u32>) -> String {
    let result = row.result.expect("a row with a result");
    let mut text = format!(
        "; kernel\nfunction %k(i64, i64) {{\n    fn0 = {}\n    fn1 = %gpu_tid_x() -> i32\nblock0(v0: i64, v1: \
         i64):\n    v2 = call fn1()\n    v3 = uextend.i64 v2\n    v40 = iconst.i64 16\n    v4 = imul v3, v40\n    v5 = \
        iadd v0, v4\n    v41 = iconst.i64 4\n    v6 = imul v3, v41\n    v7 = iadd v1, v6\n",
        row
    );
    let mut names = Vec::new();
    for (i, ty) in row.params.iter().enumerate() {
        let name = format!("v{}", 50 + 10 * i);
        match (row.constant, constant) {
            (Some((index, _)), Some(value)) if index == i => {
                text += &format!("    {name} = iconst.i32 {value}\n");
            }
            _ => {
                text += &format!("    v{} = load.i32 aligned v5+{}\n", 20 + i, 4 * i);
                text += &narrowed(*ty, &format!("v{}", 20 + i), &name);
            }
        }
        names.push(name);
    }
    text += &format!("    v90 = call fn0({})\n", names.join(", "));
    text += &widened(result);
    text += "    store aligned v99, v7\n    return\n}\n";
    text
}

/// Runs a kernel on the block; the words of the result buffer, or the report of a fault.
fn run(text: &str, input: &[u32], results: usize) -> Result<Vec<u32>, Box<Report>> {
    let device = Device::simulator(SimConfig {
        timed: true,
        check: true,
        ..SimConfig::default()
    });
    let a = device.upload(input).unwrap();
    let r = device.upload(&vec![0u32; results]).unwrap();
    let block = common::block(THREADS);
    let report = common::launch(&device, &common::compile(text), "k", block, &[&a, &r]);
    assert_eq!(report.hazards, [], "hazards");
    assert_eq!(report.findings, [], "findings");
    if report.fault.is_some() {
        return Err(Box::new(report));
    }
    Ok(device.download(&r).unwrap())
}

/// The operands of all threads.
type Operands = [[u32; 4]; THREADS as usize];

/// Operands that suit the row.
fn operands(row: &Intrinsic, random: &mut Random) -> Operands {
    let mut all = [[0; 4]; THREADS as usize];
    for thread in &mut all {
        for (i, word) in thread.iter_mut().enumerate() {
            let bits = random.word();
            *word = match row.params.get(i) {
                Some(&types::F32) => (f32::from(bits as i16) / 4096.0).abs().to_bits(),
                Some(&types::F16 | &types::F16X2) => pair(bits, |b| {
                    // Some subnormal, most of moderate size.
                    match b % 8 {
                        0 => b & 0x83ff,
                        _ => f16::from_f32(f32::from(b as i16) / 4096.0).to_bits(),
                    }
                }),
                Some(&types::I16) => {
                    u32::from(bf16::from_f32(bits as i16 as f32 / 4096.0).to_bits())
                }
                _ if row.name.contains("bf16") => pair(bits, |b| {
                    bf16::from_f32(f32::from(b as i16) / 4096.0).to_bits()
                }),
                // Small numbers for positions, widths and lanes, any for the rest.
                _ if i == 1 && !row.name.starts_with("dp") && bits & 1 == 0 => bits >> 8 & 63,
                Some(&types::I8) => bits & 1,
                _ if row.name == "match_any" => bits & 3,
                _ if bits & 2 == 0 => bits >> 20,
                _ => bits,
            };
        }
    }
    all
}

/// The function of both halves.
fn pair(word: u32, f: impl Fn(u16) -> u16) -> u32 {
    u32::from(f((word >> 16) as u16)) << 16 | u32::from(f(word as u16))
}

/// What a result may be.
enum Expected {
    Bits(u32),
    /// A number and how far the result may be off, as a part of the number and at least.
    Near(f64, f64),
}

fn byte(word: u32, i: u32, signed: bool) -> i64 {
    let b = (word >> (8 * i)) as u8;
    if signed {
        i64::from(b as i8)
    } else {
        i64::from(b)
    }
}

fn half_word(word: u32, i: u32, signed: bool) -> i64 {
    let h = (word >> (16 * i)) as u16;
    if signed {
        i64::from(h as i16)
    } else {
        i64::from(h)
    }
}

fn dot(name: &str, [a, b, c, _]: [u32; 4]) -> u32 {
    let types = name.rsplit('_').next().unwrap();
    let (a_signed, rest) = (types.starts_with('s'), &types[2..]);
    let b_signed = rest.trim_start_matches(char::is_numeric).starts_with('s');
    let sum: i64 = if name.starts_with("dp4a") {
        (0..4)
            .map(|i| byte(a, i, a_signed) * byte(b, i, b_signed))
            .sum()
    } else {
        let first = if name.contains("_hi_") { 2 } else { 0 };
        (0..2)
            .map(|i| half_word(a, i, a_signed) * byte(b, first + i, b_signed))
            .sum()
    };
    (i64::from(c) + sum) as u32
}

fn permuted(name: &str, [a, b, c, _]: [u32; 4]) -> u32 {
    let source = u64::from(b) << 32 | u64::from(a);
    let at = |i: u32| (source >> (8 * i)) as u8;
    let k = c & 3;
    let bytes: [u8; 4] = std::array::from_fn(|i| {
        let i = i as u32;
        match name {
            "prmt" => {
                let nibble = c >> (4 * i) & 15;
                let b = at(nibble & 7);
                if nibble & 8 != 0 {
                    ((b as i8) >> 7) as u8
                } else {
                    b
                }
            }
            "prmt_f4e" => at(k + i),
            "prmt_b4e" => at((8 + k - i) % 8),
            "prmt_rc8" => at(k),
            "prmt_ecl" => at(i.max(k)),
            "prmt_ecr" => at(i.min(k)),
            "prmt_rc16" => at((c & 1) * 2 + i % 2),
            other => panic!("unknown permutation {other}"),
        }
    });
    u32::from_le_bytes(bytes)
}

fn packed(name: &str, [a, b, c, _]: [u32; 4]) -> u32 {
    let ty = name.rsplit('_').next().unwrap();
    let bits: u32 = ty[1..].parse().unwrap();
    let (min, max) = if ty.starts_with('s') {
        (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1)
    } else {
        (0, (1i64 << bits) - 1)
    };
    let limited = |x: u32| (i64::from(x as i32).clamp(min, max) as u64) & ((1 << bits) - 1);
    (u64::from(c) << (2 * bits) | limited(a) << bits | limited(b)) as u32
}

/// A half operation in f64, which is exact for these operands, and one rounding.
fn half_arithmetic(name: &str, operands: [u32; 4]) -> u32 {
    let brain = name.contains("bf16");
    let flush = name.contains("ftz");
    let lane = |shift: u32| {
        let value = |w: u32| {
            let bits = (w >> shift) as u16;
            let (x, least) = if brain {
                (bf16::from_bits(bits).to_f64(), 2f64.powi(-126))
            } else {
                (f16::from_bits(bits).to_f64(), 2f64.powi(-14))
            };
            if flush && x.abs() < least {
                0f64.copysign(x)
            } else {
                x
            }
        };
        let [a, b, c] = [operands[0], operands[1], operands[2]].map(value);
        let mut x = match &name[..5] {
            "hadd2" => a + b,
            "hmul2" => a * b,
            "hfma2" => a.mul_add(b, c),
            "hmin2" => a.min(b),
            "hmax2" => a.max(b),
            other => panic!("unknown half operation {other}"),
        };
        if name.contains("relu") && x < 0.0 {
            x = 0.0;
        }
        if name.contains("sat") {
            x = if x > 0.0 { x.min(1.0) } else { 0.0 };
        }
        let bits = if brain {
            bf16::from_f64(x).to_bits()
        } else {
            f16::from_f64(x).to_bits()
        };
        if flush && bits & 0x7c00 == 0 {
            bits & 0x8000
        } else {
            bits
        }
    };
    u32::from(lane(16)) << 16 | u32::from(lane(0))
}

fn function(name: &str, word: u32) -> Expected {
    let (operation, ty) = name.split_once('_').unwrap();
    let apply = |x: f64| match operation {
        "ex2" => x.exp2(),
        "lg2" => x.log2(),
        "rcp" => 1.0 / x,
        "rsq" => 1.0 / x.sqrt(),
        "sqrt" => x.sqrt(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tanh" => x.tanh(),
        other => panic!("unknown function {other}"),
    };
    match ty {
        "f32" => {
            let tolerance = if operation == "tanh" {
                2f64.powi(-10)
            } else {
                2f64.powi(-19)
            };
            Expected::Near(apply(f64::from(f32::from_bits(word))), tolerance)
        }
        // The simulator's nearest results are those of the correctly rounded function.
        "f16" => Expected::Bits(
            f16::from_f64(apply(f16::from_bits(word as u16).to_f64()))
                .to_bits()
                .into(),
        ),
        "bf16" => Expected::Bits(
            bf16::from_f64(apply(bf16::from_bits(word as u16).to_f64()))
                .to_bits()
                .into(),
        ),
        "f16x2" => Expected::Bits(pair(word, |b| {
            f16::from_f64(apply(f16::from_bits(b).to_f64())).to_bits()
        })),
        "bf16x2" => Expected::Bits(pair(word, |b| {
            bf16::from_f64(apply(bf16::from_bits(b).to_f64())).to_bits()
        })),
        other => panic!("unknown format {other}"),
    }
}

/// The result of thread `thread`; none for rows with a test of their own.
fn reference(row: &Intrinsic, all: &Operands, thread: usize) -> Option<Expected> {
    let name = row.name;
    let own = all[thread];
    let (warp, lane) = (thread / 32 * 32, thread % 32);
    let lanes = &all[warp..warp + 32];
    let mask = |f: &dyn Fn(&[u32; 4]) -> bool| {
        lanes
            .iter()
            .enumerate()
            .fold(0u32, |m, (i, l)| m | u32::from(f(l)) << i)
    };
    let shuffled = |from: usize| lanes[if from < 32 { from } else { lane }][0];
    let n = own[1] as usize % 32;
    let bits = |word| Some(Expected::Bits(word));
    match name {
        _ if name.starts_with("dp") => bits(dot(name, own)),
        _ if name.starts_with("prmt") => bits(permuted(name, own)),
        _ if name.starts_with("i2ip") => bits(packed(name, own)),
        _ if name.starts_with('h') => bits(half_arithmetic(name, own)),
        "bmsk" | "bmsk_wrap" => {
            let wrap = |x: u32| {
                if name == "bmsk_wrap" {
                    x % 32
                } else {
                    x.min(32)
                }
            };
            let (position, width) = (wrap(own[0]), wrap(own[1]));
            bits((((1u64 << width) - 1) << position) as u32)
        }
        _ if name.starts_with("sgxt") => {
            let width = if name.contains("wrap") {
                own[1] % 32
            } else {
                own[1].min(32)
            };
            let low = u64::from(own[0]) & ((1 << width) - 1);
            let negative = name.ends_with("s32") && width > 0 && low >> (width - 1) & 1 == 1;
            bits(if negative {
                (low | u64::MAX << width) as u32
            } else {
                low as u32
            })
        }
        "shfl_idx" => bits(shuffled(n)),
        "shfl_up" => bits(shuffled(lane.wrapping_sub(n))),
        "shfl_down" => bits(shuffled(lane + n)),
        "shfl_bfly" => bits(shuffled(lane ^ n)),
        "ballot" => bits(mask(&|l| l[0] & 0xff != 0)),
        "vote_all" => bits(u32::from(mask(&|l| l[0] & 0xff != 0) == u32::MAX)),
        "vote_any" => bits(u32::from(mask(&|l| l[0] & 0xff != 0) != 0)),
        "activemask" => bits(u32::MAX),
        "match_any" => bits(mask(&|l| l[0] == own[0])),
        "tid_x" => bits(thread as u32),
        "laneid" => bits(lane as u32),
        "warpid" => bits(thread as u32 / 32),
        "ntid_x" => bits(THREADS),
        "ntid_y" | "ntid_z" | "nctaid_x" | "nctaid_y" | "nctaid_z" => bits(1),
        "tid_y" | "tid_z" | "ctaid_x" | "ctaid_y" | "ctaid_z" => bits(0),
        // `tests/launches.rs` asks for some.
        "dynamic_shared" => bits(0),
        "assume_aligned" | "lop3" | "atomic_add_f32" | "atomic_add_f16x2" => None,
        _ if row.params.len() == 1 => Some(function(name, own[0])),
        other => panic!("nothing is known of {other}"),
    }
}

fn check(row: &Intrinsic, text: &str, all: &Operands, expected: impl Fn(usize) -> Expected) {
    let input: Vec<u32> = all.iter().flatten().copied().collect();
    let results = run(text, &input, THREADS as usize).unwrap_or_else(|report| panic!("{report:?}"));
    for (thread, actual) in results.into_iter().enumerate() {
        let ok = match expected(thread) {
            Expected::Bits(bits) => bits == actual,
            Expected::Near(value, tolerance) => {
                let actual = f64::from(f32::from_bits(actual));
                actual == value || (actual - value).abs() <= tolerance * value.abs().max(0.5)
            }
        };
        let want = match expected(thread) {
            Expected::Bits(bits) => format!("{bits:#x}"),
            Expected::Near(value, _) => format!("{value}"),
        };
        assert!(
            ok,
            "{}: thread {thread} with {:x?} gives {actual:#x}, not {want}\n{text}",
            row.name, all[thread]
        );
    }
}

#[test]
fn every_row_computes_its_reference() {
    let mut random = Random(Sequence::new(11));
    for row in intrinsics::TABLE {
        if row.result.is_none() {
            continue;
        }
        let all = operands(row, &mut random);
        if reference(row, &all, 0).is_none() {
            continue;
        }
        let text = kernel(row, None);
        check(row, &text, &all, |thread| {
            reference(row, &all, thread).expect("a row with a reference")
        });
    }
}

#[test]
fn lop3_takes_every_table() {
    let row = intrinsics::lookup("lop3").unwrap();
    let mut random = Random(Sequence::new(12));
    for table in (0..256).step_by(7) {
        let all = operands(row, &mut random);
        check(row, &kernel(row, Some(table)), &all, |thread| {
            let [a, b, c, _] = all[thread];
            let bit = |i: u32| {
                let index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1;
                (table >> index & 1) << i
            };
            Expected::Bits((0..32).map(bit).sum())
        });
    }
}

#[test]
fn a_trap_is_a_fault() {
    let text = "; kernel
function %k(i64, i64) {
    fn0 = %gpu_trap()
    fn1 = %gpu_membar_cta()
    fn2 = %gpu_membar_gl()
    fn3 = %gpu_membar_sys()
block0(v0: i64, v1: i64):
    v2 = iconst.i32 7
    store aligned v2, v1
    call fn1()
    call fn2()
    call fn3()
    call fn0()
    return
}
";
    let report = run(text, &[0], 1).expect_err("it traps");
    assert!(report.fault.is_some());
}

/// Threads of a block hand values over through shared memory: thread i gets what thread 63 - i stored.
#[test]
fn a_barrier_orders_shared_memory() {
    let text = "; kernel shared=256
function %k(i64, i64) {
    gv0 = symbol %gpu_shared
    fn0 = %gpu_bar_sync()
    fn1 = %gpu_tid_x() -> i32
block0(v0: i64, v1: i64):
    v2 = call fn1()
    v3 = symbol_value.i32 gv0
    v40 = iconst.i32 4
    v4 = imul v2, v40
    v5 = iadd v3, v4
    v6 = imul v2, v2
    store aligned v6, v5
    call fn0()
    v7 = iconst.i32 252
    v8 = isub v7, v4
    v9 = iadd v3, v8
    v10 = load.i32 aligned v9
    v11 = uextend.i64 v4
    v12 = iadd v1, v11
    store aligned v10, v12
    return
}
";
    let results = run(text, &[0], THREADS as usize).expect("it ends");
    let expected: Vec<u32> = (0..THREADS).rev().map(|i| i * i).collect();
    assert_eq!(results, expected);
}

/// Sums of small integers are exact in any order.
#[test]
fn float_atomics_add() {
    let text = "; kernel
function %k(i64, i64) {
    fn0 = %gpu_atomic_add_f32(i64, f32) -> f32
    fn1 = %gpu_atomic_add_f16x2(i64, f16x2) -> f16x2
    fn2 = %gpu_tid_x() -> i32
block0(v0: i64, v1: i64):
    v2 = call fn2()
    v3 = fcvt_from_uint.f32 v2
    v4 = call fn0(v1, v3)
    v5 = fcvt_from_uint.f16 v2
    v6 = splat.f16x2 v5
    v41 = iconst.i64 4
    v7 = iadd v1, v41
    v8 = call fn1(v7, v6)
    v9 = uextend.i64 v2
    v40 = iconst.i64 4
    v10 = imul v9, v40
    v11 = iadd v1, v10
    v12 = bitcast.i32 v4
    store aligned v12, v11+8
    return
}
";
    let results = run(text, &[0], 2 + THREADS as usize).expect("it ends");
    let sum = THREADS * (THREADS - 1) / 2;
    assert_eq!(f32::from_bits(results[0]), sum as f32);
    let half = f16::from_bits(results[1] as u16);
    assert_eq!(half, f16::from_f32(sum as f32));
    assert_eq!(results[1] >> 16, results[1] & 0xffff);
    // The old values are the sums of other threads' numbers: some permutation of partial sums.
    let mut old: Vec<f32> = results[2..].iter().map(|&b| f32::from_bits(b)).collect();
    old.sort_by(f32::total_cmp);
    assert_eq!(old[0], 0.0);
    assert!(old.iter().all(|&x| x.fract() == 0.0 && x <= sum as f32));
}
