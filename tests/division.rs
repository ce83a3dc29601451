//! Integer division on the simulator against the host, also with MUFU.RCP off by as much as its bound allows, and its
//! traps.

#![cfg(all(feature = "asm", feature = "driver", feature = "sim"))]

mod common;

use cranelift_codegen::ir::TrapCode;
use cranelift_thisgpu::asm::listing;
use cranelift_thisgpu::compile::Code;
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::sim::Reference;
use cranelift_thisgpu::sim::{FaultKind, SimConfig};
use cranelift_thisgpu::unstable::isa::random::Random as Sequence;

/// The operations, by whether they are signed and give the remainder.
const OPERATIONS: [(&str, bool, bool); 4] = [
    ("udiv", false, false),
    ("sdiv", true, false),
    ("urem", false, true),
    ("srem", true, true),
];
/// Seeds of the perturbation; none is the nearest reciprocal.
const PERTURBATIONS: [Option<u64>; 4] = [None, Some(1), Some(2), Some(0x5eed)];

/// Reproducible numbers.
struct Random(Sequence);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.bits()
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    /// A number whose length is as likely to be short as long.
    fn number(&mut self, bits: u32) -> u128 {
        let length = 1 + self.next() % u64::from(bits);
        self.wide() >> (128 - length)
    }
}

fn mask(bits: u32) -> u128 {
    u128::MAX >> (128 - bits)
}

/// A kernel that works element by element: `work` makes v11 of v9 and v10, which have so many bits. Every value takes
/// 128 bits in memory.
fn compile_work(bits: u32, work: &str) -> Code {
    let (x, y, widen) = match bits {
        128 => (
            "bor v7, v7".to_owned(),
            "bor v8, v8".to_owned(),
            "bor v11, v11".to_owned(),
        ),
        _ => {
            let narrow = |value| format!("ireduce.i{bits} {value}");
            (narrow("v7"), narrow("v8"), "uextend.i128 v11".to_owned())
        }
    };
    let text = format!(
        "; kernel
function %divide(i64, i64, i64) {{
    fn0 = %gpu_ctaid_x() -> i32
    fn1 = %gpu_ntid_x() -> i32
    fn2 = %gpu_tid_x() -> i32
    fn3 = %gpu_rcp_f32(f32) -> f32
block0(v0: i64, v1: i64, v2: i64):
    v20 = call fn0()
    v21 = call fn1()
    v22 = call fn2()
    v23 = imul v20, v21
    v24 = iadd v23, v22
    v25 = uextend.i64 v24
    v30 = iconst.i64 4
    v26 = ishl v25, v30
    v27 = iadd v0, v26
    v28 = iadd v1, v26
    v29 = iadd v2, v26
    v31 = load.i64 aligned v27
    v32 = load.i64 aligned v27+8
    v7 = iconcat v31, v32
    v33 = load.i64 aligned v28
    v34 = load.i64 aligned v28+8
    v8 = iconcat v33, v34
    v9 = {x}
    v10 = {y}
{work}
    v12 = {widen}
    v35, v36 = isplit v12
    store aligned v35, v29
    store aligned v36, v29+8
    return
}}"
    );
    common::compile(&text)
}

/// Divides by the second operand.
fn compile(operation: &str, bits: u32) -> Code {
    compile_work(bits, &format!("    v11 = {operation} v9, v10"))
}

/// Divides by a constant.
fn compile_constant(operation: &str, bits: u32, divisor: u128) -> Code {
    let signed = |bits: u32, value: u128| (value << (128 - bits)) as i128 >> (128 - bits);
    let constant = match bits {
        128 => format!(
            "    v40 = iconst.i64 {}\n    v41 = iconst.i64 {}\n    v42 = iconcat v40, v41",
            signed(64, divisor),
            signed(64, divisor >> 64)
        ),
        _ => format!("    v42 = iconst.i{bits} {}", signed(bits, divisor)),
    };
    compile_work(bits, &format!("{constant}\n    v11 = {operation} v9, v42"))
}

fn expected(a: u128, b: u128, bits: u32, signed: bool, remainder: bool) -> u128 {
    let extend = |x: u128| (x << (128 - bits)) as i128 >> (128 - bits);
    let (x, y) = (a & mask(bits), b & mask(bits));
    let result = match (signed, remainder) {
        (false, false) => x / y,
        (false, true) => x % y,
        (true, false) => extend(a).wrapping_div(extend(b)) as u128,
        (true, true) => extend(a).wrapping_rem(extend(b)) as u128,
    };
    result & mask(bits)
}

/// Numbers at the ends of the range, at powers of two and between.
fn corners(bits: u32) -> Vec<u128> {
    let (mask, sign) = (mask(bits), 1 << (bits - 1));
    let mut all = vec![
        0,
        1,
        2,
        3,
        5,
        7,
        10,
        mask,
        mask - 1,
        sign,
        sign - 1,
        sign + 1,
        sign >> 1,
    ];
    // Where a word or a half of it ends.
    for at in [16, 31, 32, 33, 63, 64, 65, 96, 127] {
        if at < bits {
            let power = 1u128 << at;
            all.extend([power, power - 1, power + 1, mask ^ (power - 1)]);
        }
    }
    all
}

/// Pairs where an estimate of the quotient is most likely to be off: corners, random lengths, multiples of the divisor
/// and their neighbours. A divisor of zero, and for signed division −1, is left out.
fn operands(bits: u32, signed: bool, count: usize) -> Vec<(u128, u128)> {
    let mask = mask(bits);
    let mut random = Random(Sequence::new(u64::from(bits)));
    let mut pairs = Vec::new();
    for a in corners(bits) {
        pairs.extend(corners(bits).into_iter().map(|b| (a, b)));
    }
    let count = count.max(pairs.len());
    while pairs.len() < count {
        let (a, b) = (random.number(bits), random.number(bits).max(1));
        let multiple = a / b * b;
        pairs.extend([(a, b), (multiple, b), (multiple.wrapping_sub(1) & mask, b)]);
        pairs.push((random.wide() & mask, (random.wide() & mask).max(1)));
    }
    pairs.retain(|&(_, b)| is_allowed(b, bits, signed));
    pairs
}

/// Whether no dividend traps.
fn is_allowed(divisor: u128, bits: u32, signed: bool) -> bool {
    divisor & mask(bits) != 0 && (!signed || divisor & mask(bits) != mask(bits))
}

/// Values as the kernel's memory holds them.
fn in_memory(values: impl Iterator<Item = u128>) -> Vec<u64> {
    values
        .flat_map(|value| [value as u64, (value >> 64) as u64])
        .collect()
}

/// Runs the kernel on all pairs, with MUFU as it is and moved; the first result that is not `exact`, if any.
fn first_difference(
    code: &Code,
    perturbations: &[Option<u64>],
    pairs: &[(u128, u128)],
    exact: impl Fn(u128, u128) -> u128,
) -> Result<(), String> {
    const WIDTH: usize = 128;
    // The last block is filled up with the last pair.
    let last = *pairs.last().expect("there are pairs");
    let padding = pairs.len().next_multiple_of(WIDTH) - pairs.len();
    let padded = || {
        pairs
            .iter()
            .copied()
            .chain(std::iter::repeat_n(last, padding))
    };
    for &perturbation in perturbations {
        let device = Device::simulator(SimConfig {
            semantics: Reference {
                perturbation,
                ..Reference::default()
            },
            check: Some(&perturbation) == perturbations.first(),
            ..SimConfig::default()
        });
        let upload = |values: Vec<u64>| device.upload(&values).expect("memory");
        let a = upload(in_memory(padded().map(|pair| pair.0)));
        let b = upload(in_memory(padded().map(|pair| pair.1)));
        let out = upload(in_memory(padded().map(|_| 0)));
        let blocks = u32::try_from(padded().count() / WIDTH).expect("not so many");
        let grid = Grid::new([blocks, 1, 1], [WIDTH as u32, 1, 1]);
        let at = format!("perturbation {perturbation:?}");
        common::run(&device, code, "divide", grid, &[&a, &b, &out], at);
        let results: Vec<u64> = device.download(&out).expect("the results");
        for (&(x, y), words) in pairs.iter().zip(results.chunks_exact(2)) {
            let result = u128::from(words[0]) | u128::from(words[1]) << 64;
            let exact = exact(x, y);
            if result != exact {
                return Err(format!(
                    "{x:#x}, {y:#x} give {result:#x} instead of {exact:#x}, perturbation {perturbation:?}"
                ));
            }
        }
    }
    Ok(())
}

fn check(operation: (&str, bool, bool), bits: u32, pairs: &[(u128, u128)]) {
    let (name, signed, remainder) = operation;
    let exact = |x, y| expected(x, y, bits, signed, remainder);
    if let Err(error) = first_difference(&compile(name, bits), &PERTURBATIONS, pairs, exact) {
        panic!("{name}.i{bits}: {error}");
    }
}

#[test]
fn all_pairs_of_bytes() {
    for operation in OPERATIONS {
        let pairs: Vec<(u128, u128)> = (0..256)
            .flat_map(|a| (1..256).map(move |b| (a, b)))
            .filter(|&(_, b)| is_allowed(b, 8, operation.1))
            .collect();
        check(operation, 8, &pairs);
    }
}

#[test]
fn wider_numbers_at_random() {
    for operation in OPERATIONS {
        for bits in [16, 32, 64, 128] {
            check(operation, bits, &operands(bits, operation.1, 4096));
        }
    }
}

/// Constant divisors have sequences of their own.
#[test]
fn constant_divisors() {
    for (name, signed, remainder) in OPERATIONS {
        for bits in [8, 16, 32, 64, 128] {
            let mut random = Random(Sequence::new(u64::from(bits) + 1));
            let mut divisors = corners(bits);
            // All of them would take a while.
            let mut keep = [true, true, false].into_iter().cycle();
            divisors.retain(|&divisor| divisor < 16 || keep.next() == Some(true));
            divisors.extend([100, 641, 1_000_000_007].map(|d| d & mask(bits)));
            divisors.extend((0..2).map(|_| random.number(bits)));
            divisors.retain(|&d| is_allowed(d, bits, signed));
            divisors.sort_unstable();
            divisors.dedup();
            for divisor in divisors {
                let mut dividends = corners(bits);
                for _ in 0..32 {
                    let multiple = random.number(bits) / divisor * divisor;
                    dividends.extend([multiple, multiple.wrapping_sub(1) & mask(bits)]);
                }
                let pairs: Vec<(u128, u128)> = dividends.into_iter().map(|a| (a, 0)).collect();
                let exact = |x, _| expected(x, divisor, bits, signed, remainder);
                let code = compile_constant(name, bits, divisor);
                if let Err(error) = first_difference(&code, &PERTURBATIONS[..2], &pairs, exact) {
                    panic!("{name}.i{bits} by {divisor:#x}: {error}");
                }
            }
        }
    }
}

/// The perturbation is there, and the check sees it: a quotient straight from the reciprocal, which is right for MUFU's
/// nearest results on these operands, differs once they are moved.
#[test]
fn trust_in_mufu_is_found() {
    let rounded = "    v50 = fcvt_from_uint.f32 v9
    v51 = fcvt_from_uint.f32 v10
    v52 = call fn3(v51)
    v53 = fmul v50, v52
    v11 = fcvt_to_uint_sat.i32 v53";
    let pairs: Vec<(u128, u128)> = (1..600).map(|b| (b * 1000, b)).collect();
    let right = |x: u128, y: u128| x / y;
    let found = first_difference(&compile_work(32, rounded), &PERTURBATIONS, &pairs, right);
    assert!(found.is_err());
    // A kernel that hands out the reciprocal itself: the first difference comes with the first seed, not before.
    let reciprocal = "    v51 = fcvt_from_uint.f32 v10
    v52 = call fn3(v51)
    v11 = bitcast.i32 v52";
    let nearest = |_, y: u128| u128::from((1.0 / y as f32).to_bits());
    let error = first_difference(
        &compile_work(32, reciprocal),
        &PERTURBATIONS,
        &pairs,
        nearest,
    )
    .expect_err("a moved reciprocal is not the nearest");
    assert!(error.ends_with("perturbation Some(1)"), "{error}");
}

/// Every division by a variable begins with MUFU, so that moving it means something.
#[test]
fn divisions_use_mufu() {
    for (name, ..) in OPERATIONS {
        for bits in [8, 16, 32, 64, 128] {
            let (text, _) = listing(compile(name, bits).object());
            assert!(text.contains("MUFU.RCP"), "{name}.i{bits}:\n{text}");
        }
    }
}

/// The trap that dividing `a` by `b` ends in, or none.
fn trap(operation: &str, bits: u32, a: u128, b: u128) -> Option<u8> {
    let code = compile(operation, bits);
    let device = Device::simulator(SimConfig::default());
    let (x, y) = (
        device.upload(&in_memory([a].into_iter())).expect("memory"),
        device.upload(&in_memory([b].into_iter())).expect("memory"),
    );
    let out = device.upload(&[0u64; 2]).expect("memory");
    let report = common::launch(&device, &code, "divide", common::block(1), &[&x, &y, &out]);
    report.fault.map(|fault| match fault.kind {
        FaultKind::Trap { code, .. } => code,
        other => panic!("{operation}.i{bits}: {other}"),
    })
}

#[test]
fn traps() {
    let zero = Some(TrapCode::INTEGER_DIVISION_BY_ZERO.as_raw().get());
    let overflow = Some(TrapCode::INTEGER_OVERFLOW.as_raw().get());
    for bits in [8, 16, 32, 64, 128] {
        let mask = mask(bits);
        let lowest = 1 << (bits - 1);
        // What lies above a narrow value has no say.
        let above = if bits == 128 { 0 } else { 1 << bits };
        for (operation, signed, remainder) in OPERATIONS {
            assert_eq!(trap(operation, bits, 5, above), zero, "{operation}.i{bits}");
            let expected = if signed && !remainder { overflow } else { None };
            assert_eq!(
                trap(operation, bits, lowest, mask),
                expected,
                "{operation}.i{bits} of the least number by -1"
            );
            assert_eq!(
                trap(operation, bits, lowest, 1),
                None,
                "{operation}.i{bits}"
            );
        }
    }
}
