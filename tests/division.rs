//! Integer division on the simulator against the host, also with MUFU.RCP off by as much as its bound allows, and its traps.

use cranelift_codegen::ir::TrapCode;
use cranelift_thisgpu::compile::{Code, Compiler};
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::semantics::Reference;
use cranelift_thisgpu::sim::{FaultKind, SimConfig};

/// The operations, by whether they are signed and give the remainder.
const OPERATIONS: [(&str, bool, bool); 4] = [
    ("udiv", false, false),
    ("sdiv", true, false),
    ("urem", false, true),
    ("srem", true, true),
];
/// Seeds of the perturbation; none is the nearest reciprocal.
const PERTURBATIONS: [Option<u64>; 4] = [None, Some(1), Some(2), Some(0x5eed)];

/// A generator of reproducible numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number whose length is as likely to be short as long.
    fn number(&mut self, bits: u32) -> u64 {
        let length = 1 + self.next() % u64::from(bits);
        self.next() >> (64 - length)
    }
}

/// A kernel that divides element by element; every value takes 64 bits in memory.
fn compile(operation: &str, bits: u32) -> Code {
    let (narrow, widen) = if bits == 64 {
        (String::new(), "nop".to_string())
    } else {
        let narrow = format!("v9 = ireduce.i{bits} v7\n    v10 = ireduce.i{bits} v8");
        (narrow, "v12 = uextend.i64 v11".to_string())
    };
    let (a, b, result) = match bits {
        64 => ("v7", "v8", "v11"),
        _ => ("v9", "v10", "v12"),
    };
    let text = format!(
        "; kernel
function %divide(i64, i64, i64) {{
    fn0 = %gpu_ctaid_x() -> i32
    fn1 = %gpu_ntid_x() -> i32
    fn2 = %gpu_tid_x() -> i32
block0(v0: i64, v1: i64, v2: i64):
    v20 = call fn0()
    v21 = call fn1()
    v22 = call fn2()
    v23 = imul v20, v21
    v24 = iadd v23, v22
    v25 = uextend.i64 v24
    v30 = iconst.i64 3
    v26 = ishl v25, v30
    v27 = iadd v0, v26
    v28 = iadd v1, v26
    v29 = iadd v2, v26
    v7 = load.i64 aligned v27
    v8 = load.i64 aligned v28
    {narrow}
    v11 = {operation} {a}, {b}
    {widen}
    store aligned {result}, v29
    return
}}"
    );
    Compiler::new(Options::default())
        .compile_clif(&text)
        .unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn expected(a: u64, b: u64, bits: u32, signed: bool, remainder: bool) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let extend = |x: u64| (x as i64) << (64 - bits) >> (64 - bits);
    let result = match (signed, remainder) {
        (false, false) => (a & mask) / (b & mask),
        (false, true) => (a & mask) % (b & mask),
        (true, false) => extend(a).wrapping_div(extend(b)) as u64,
        (true, true) => extend(a).wrapping_rem(extend(b)) as u64,
    };
    result & mask
}

/// Pairs where an estimate of the quotient is most likely to be off: corners, random lengths, multiples of the divisor and their
/// neighbours. A divisor of zero, and for signed division −1, is left out.
fn operands(bits: u32, signed: bool, count: usize) -> (Vec<u64>, Vec<u64>) {
    let mask = u64::MAX >> (64 - bits);
    let mut random = Random(u64::from(bits));
    let sign = 1 << (bits - 1);
    let corners = [
        0,
        1,
        2,
        3,
        mask,
        mask - 1,
        sign,
        sign - 1,
        sign + 1,
        sign >> 1,
    ];
    let mut pairs = Vec::new();
    for a in corners {
        pairs.extend(corners.map(|b| (a, b)));
    }
    while pairs.len() < count {
        let (a, b) = (random.number(bits), random.number(bits).max(1));
        let multiple = a / b * b;
        pairs.extend([(a, b), (multiple, b), (multiple.wrapping_sub(1), b)]);
        pairs.push((random.next() & mask, (random.next() & mask).max(1)));
    }
    pairs.retain(|&(_, b)| b & mask != 0 && (!signed || b & mask != mask));
    pairs.into_iter().take(count).unzip()
}

fn check(operation: (&str, bool, bool), bits: u32, left: &[u64], right: &[u64]) {
    let (name, signed, remainder) = operation;
    let code = compile(name, bits);
    for perturbation in PERTURBATIONS {
        let device = Device::simulator(SimConfig {
            semantics: Reference {
                perturbation,
                ..Reference::default()
            },
            ..SimConfig::default()
        });
        let module = device.load(&code).expect("the module loads");
        let (a, b) = (
            device.upload(left).expect("memory"),
            device.upload(right).expect("memory"),
        );
        let out = device.upload(&vec![0u64; left.len()]).expect("memory");
        module
            .kernel("divide")
            .expect("the kernel")
            .launch(Grid::new([(left.len() / 128) as u32, 1, 1], [128, 1, 1]))
            .arg(&a)
            .arg(&b)
            .arg(&out)
            .run()
            .unwrap_or_else(|error| panic!("{name}.i{bits}: {error}"));
        let results: Vec<u64> = device.download(&out).expect("the results");
        for ((&x, &y), result) in left.iter().zip(right).zip(results) {
            let exact = expected(x, y, bits, signed, remainder);
            assert_eq!(
                result, exact,
                "{name}.i{bits} {x:#x}, {y:#x}, perturbation {perturbation:?}"
            );
        }
    }
}

#[test]
fn all_pairs_of_bytes() {
    for operation in OPERATIONS {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for a in 0..256 {
            for b in 1..=256 {
                let b = if b == 256 || operation.1 && b == 255 {
                    7
                } else {
                    b
                };
                left.push(a);
                right.push(b);
            }
        }
        check(operation, 8, &left, &right);
    }
}

#[test]
fn wider_numbers_at_random() {
    for operation in OPERATIONS {
        for bits in [16, 32, 64] {
            let (mut left, mut right) = operands(bits, operation.1, 4096);
            left.truncate(left.len() / 128 * 128);
            right.truncate(left.len());
            check(operation, bits, &left, &right);
        }
    }
}

/// The trap that dividing `a` by `b` ends in, or none.
fn trap(operation: &str, bits: u32, a: u64, b: u64) -> Option<u8> {
    let code = compile(operation, bits);
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&code).expect("the module loads");
    let (x, y) = (
        device.upload(&[a]).expect("memory"),
        device.upload(&[b]).expect("memory"),
    );
    let out = device.upload(&[0u64]).expect("memory");
    let report = module
        .kernel("divide")
        .expect("the kernel")
        .launch(Grid::new([1, 1, 1], [1, 1, 1]))
        .arg(&x)
        .arg(&y)
        .arg(&out)
        .run_to_report()
        .expect("a report");
    report.fault.map(|fault| match fault.kind {
        FaultKind::Trap { code, .. } => code,
        other => panic!("{operation}.i{bits}: {other}"),
    })
}

#[test]
fn traps() {
    let zero = Some(TrapCode::INTEGER_DIVISION_BY_ZERO.as_raw().get());
    let overflow = Some(TrapCode::INTEGER_OVERFLOW.as_raw().get());
    for bits in [8, 16, 32, 64] {
        let mask = u64::MAX >> (64 - bits);
        let lowest = 1 << (bits - 1);
        // What lies above a narrow value has no say.
        let above = if bits == 64 { 0 } else { 1 << bits };
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
