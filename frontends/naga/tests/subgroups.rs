//! Operations of subgroups against a model on the host: i32, u32 and f32, scalars and vec4, under eight masks of
//! active invocations.
//!
//! Numbers are small integers, so that sums of floats are the same in any order.

mod common;

use thisgpu_naga::{Shader, TranslateOptions};

/// Invocations of a subgroup.
const LANES: usize = 32;

/// All, one at either end, halves, every second, gaps, and a pattern without order.
const MASKS: [u32; 8] = [
    u32::MAX,
    1,
    1 << 31,
    0x0000_ffff,
    0xffff_0000,
    0x5555_5555,
    0x8001_0180,
    0x2f6d_31c4,
];

/// A type of components.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    I32,
    U32,
    F32,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::I32 => "i32",
            Kind::U32 => "u32",
            Kind::F32 => "f32",
        }
    }

    /// The pattern of a number.
    fn pattern(self, number: i64) -> u32 {
        match self {
            Kind::F32 => (number as f32).to_bits(),
            _ => number as u32,
        }
    }

    fn number(self, pattern: u32) -> f64 {
        match self {
            Kind::I32 => f64::from(pattern as i32),
            Kind::U32 => f64::from(pattern),
            Kind::F32 => f64::from(f32::from_bits(pattern)),
        }
    }

    fn combine(self, op: &str, a: u32, b: u32) -> u32 {
        let float = |f: fn(f32, f32) -> f32| f(f32::from_bits(a), f32::from_bits(b)).to_bits();
        match (op, self) {
            ("Add", Kind::F32) => float(|a, b| a + b),
            ("Add", _) => a.wrapping_add(b),
            ("Mul", Kind::F32) => float(|a, b| a * b),
            ("Mul", _) => a.wrapping_mul(b),
            ("Min", _) if self.number(a) <= self.number(b) => a,
            ("Max", _) if self.number(a) >= self.number(b) => a,
            ("Min" | "Max", _) => b,
            ("And", _) => a & b,
            ("Or", _) => a | b,
            ("Xor", _) => a ^ b,
            _ => panic!("{op} combines nothing"),
        }
    }
}

/// The operations: the call, of `v` and where it must be the lane `l`.
fn operations(kind: Kind) -> Vec<&'static str> {
    let mut all = vec![
        "subgroupAdd(v)",
        "subgroupMul(v)",
        "subgroupMin(v)",
        "subgroupMax(v)",
        "subgroupInclusiveAdd(v)",
        "subgroupInclusiveMul(v)",
        "subgroupExclusiveAdd(v)",
        "subgroupExclusiveMul(v)",
        "subgroupBroadcastFirst(v)",
        "subgroupBroadcast(v, 7u)",
        "subgroupShuffle(v, (l * 5u + 3u) % 32u)",
        "subgroupShuffleXor(v, 6u)",
        "subgroupShuffleUp(v, 3u)",
        "subgroupShuffleDown(v, 9u)",
        "quadBroadcast(v, 2u)",
        "quadSwapX(v)",
        "quadSwapY(v)",
        "quadSwapDiagonal(v)",
    ];
    if kind != Kind::F32 {
        all.extend(["subgroupAnd(v)", "subgroupOr(v)", "subgroupXor(v)"]);
    }
    all
}

/// What a lane gets of one component.
fn model(kind: Kind, call: &str, values: &[u32; LANES], mask: u32, lane: usize) -> u32 {
    let is_active = |lane: usize| lane < LANES && mask >> lane & 1 == 1;
    let active = |range: std::ops::Range<usize>| range.filter(|&lane| is_active(lane));
    let fold = |op: &str, range| {
        active(range)
            .map(|lane| values[lane])
            .reduce(|a, b| kind.combine(op, a, b))
    };
    // What another lane has, or the own value if that lane is not active.
    let of = |other: usize| match is_active(other) {
        true => values[other],
        false => values[lane],
    };
    let name = call.split('(').next().expect("a call has a name");
    match name {
        "subgroupBroadcastFirst" => of(mask.trailing_zeros() as usize),
        "subgroupBroadcast" => of(7),
        "subgroupShuffle" => of((lane * 5 + 3) % 32),
        "subgroupShuffleXor" => of(lane ^ 6),
        "subgroupShuffleUp" => of(lane.wrapping_sub(3)),
        "subgroupShuffleDown" => of(lane + 9),
        "quadBroadcast" => of(lane & !3 | 2),
        "quadSwapX" => of(lane ^ 1),
        "quadSwapY" => of(lane ^ 2),
        "quadSwapDiagonal" => of(lane ^ 3),
        _ => {
            let op = name.trim_start_matches("subgroup");
            if let Some(op) = op.strip_prefix("Inclusive") {
                return fold(op, 0..lane + 1).expect("the lane is active");
            }
            if let Some(op) = op.strip_prefix("Exclusive") {
                let neutral = kind.pattern(i64::from(op == "Mul"));
                return fold(op, 0..lane).unwrap_or(neutral);
            }
            fold(op, 0..LANES).expect("the lane is active")
        }
    }
}

/// Numbers with few prime factors, so that products stay exact.
fn value(kind: Kind, lane: usize, component: usize) -> u32 {
    let number = [1, 2, 1, -1, 1, 1, 2, 1, -2, 1, 1][(lane * 3 + component * 5) % 11];
    let number = match kind {
        Kind::U32 => i64::abs(number) + 4 * i64::from(lane == 9),
        _ => number,
    };
    kind.pattern(number)
}

#[test]
fn operations_equal_a_model_on_the_host() {
    for kind in [Kind::I32, Kind::U32, Kind::F32] {
        for width in [1, 4] {
            check(kind, width);
        }
    }
}

fn check(kind: Kind, width: usize) {
    let operations = operations(kind);
    let ty = match width {
        1 => kind.name().to_string(),
        _ => format!("vec4<{}>", kind.name()),
    };
    let mut text = format!(
        "@group(0) @binding(0) var<storage, read_write> results: array<{ty}>;
         @group(0) @binding(1) var<storage, read> values: array<{ty}>;
         @group(0) @binding(2) var<storage, read> mask: array<u32>;
         @compute @workgroup_size(32)
         fn main(@builtin(subgroup_invocation_id) l: u32) {{
            let v = values[l];
            if ((mask[0] >> l) & 1u) != 0u {{\n"
    );
    for (number, call) in operations.iter().enumerate() {
        text += &format!("results[{number}u * 32u + l] = {call};\n");
    }
    text += "} }";
    let shader = Shader::wgsl("subgroups.wgsl", &text).unwrap_or_else(|error| panic!("{error}"));
    let device = common::plain();
    let pipeline = common::pipeline(&device, &shader, "main", &TranslateOptions::default());
    let lanes = 0..LANES;
    let values: Vec<u32> = (lanes.clone())
        .flat_map(|lane| (0..width).map(move |component| value(kind, lane, component)))
        .collect();
    for mask in MASKS {
        let untouched = 0xdead_beef;
        let results = vec![untouched; operations.len() * LANES * width];
        let mut buffers = [results, values.clone(), vec![mask]];
        let report = common::dispatch(&device, &pipeline, [1, 1, 1], &mut buffers);
        report.unwrap_or_else(|error| panic!("{error}"));
        for (number, call) in operations.iter().enumerate() {
            for component in 0..width {
                let of_lane = |lane: usize| values[lane * width + component];
                let own: [u32; LANES] = std::array::from_fn(of_lane);
                for lane in lanes.clone() {
                    let expected = match mask >> lane & 1 {
                        1 => model(kind, call, &own, mask, lane),
                        _ => untouched,
                    };
                    let is = buffers[0][(number * LANES + lane) * width + component];
                    assert_eq!(
                        is, expected,
                        "{call} of {ty}, mask {mask:#010x}, lane {lane}, component {component}: is {is:#x}, \
                         expected {expected:#x}"
                    );
                }
            }
        }
    }
}

#[test]
fn votes_equal_a_model_on_the_host() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> results: array<vec4<u32>>;
        @group(0) @binding(1) var<storage, read> mask: array<u32>;
        @compute @workgroup_size(32)
        fn main(@builtin(subgroup_invocation_id) l: u32) {
            let p = (mask[1] >> l & 1u) != 0u;
            if ((mask[0] >> l) & 1u) != 0u {
                results[l * 3u] = subgroupBallot(p);
                results[l * 3u + 1u] = subgroupBallot();
                results[l * 3u + 2u] = vec4<u32>(u32(subgroupAll(p)), u32(subgroupAny(p)), 0u, 0u);
            }
        }";
    let shader = Shader::wgsl("votes.wgsl", text).unwrap_or_else(|error| panic!("{error}"));
    let device = common::plain();
    let pipeline = common::pipeline(&device, &shader, "main", &TranslateOptions::default());
    for mask in MASKS {
        for votes in MASKS {
            let mut buffers = [vec![7; 32 * 12], vec![mask, votes]];
            let report = common::dispatch(&device, &pipeline, [1, 1, 1], &mut buffers);
            report.unwrap_or_else(|error| panic!("{error}"));
            let (all, any) = (u32::from(mask & !votes == 0), u32::from(mask & votes != 0));
            for lane in 0..LANES {
                let is = &buffers[0][lane * 12..][..12];
                let expected = match mask >> lane & 1 {
                    1 => [mask & votes, 0, 0, 0, mask, 0, 0, 0, all, any, 0, 0],
                    _ => [7; 12],
                };
                assert_eq!(
                    is, expected,
                    "mask {mask:#x}, votes {votes:#x}, lane {lane}"
                );
            }
        }
    }
}
