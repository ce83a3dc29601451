//! Random accesses to overlapping places, executed on the simulator with accesses merged, against bytes on the host.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;

use cranelift_thisgpu::compile::Compiler;
use cranelift_thisgpu::driver::{Device, DevicePointer};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use cranelift_thisgpu::unstable::isa::random::Random;
use std::fmt::Write;

/// Bytes of each area.
const AREA: usize = 96;
/// Kernels.
const KERNELS: u64 = 120;

/// Where accesses go: one buffer by two pointers, a stack slot, shared memory.
const BASES: [&str; 4] = ["v0", "v1", "v10", "v11"];

/// What a load or store moves: the operation, the type of the value, bytes in memory.
const LOADS: [(&str, &str, usize); 11] = [
    ("load.i32", "i32", 4),
    ("load.f32", "f32", 4),
    ("load.i64", "i64", 8),
    ("load.f64", "f64", 8),
    ("load.i16", "i16", 2),
    ("load.f16", "f16", 2),
    ("load.i8", "i8", 1),
    ("uload8.i32", "i32", 1),
    ("sload16.i64", "i64", 2),
    ("sload32.i64", "i64", 4),
    ("load.i32x2", "i32x2", 8),
];
const STORES: [(&str, &str, usize); 9] = [
    ("store", "i32", 4),
    ("store", "f32", 4),
    ("store", "i64", 8),
    ("store", "f64", 8),
    ("store", "i16", 2),
    ("store", "i8", 1),
    ("istore8", "i32", 1),
    ("istore16", "i64", 2),
    ("istore32", "i64", 4),
];

/// A kernel of one thread, and what it does to the bytes of its areas.
struct Program {
    text: String,
    areas: [Vec<u8>; 3],
    /// What it writes behind one another: all that it loaded, then the slot and shared memory.
    log: Vec<u8>,
    /// Distance of the second pointer.
    delta: usize,
}

/// Bytes of a load as a register of a type.
fn extended(operation: &str, mut bytes: Vec<u8>) -> Vec<u8> {
    let (signed, to) = match operation {
        "uload8.i32" => (false, 4),
        "sload16.i64" | "sload32.i64" => (true, 8),
        _ => return bytes,
    };
    let negative = signed && bytes.last().is_some_and(|top| top & 0x80 != 0);
    bytes.resize(to, if negative { 0xff } else { 0 });
    bytes
}

struct Builder {
    random: Random,
    body: String,
    next: u32,
    areas: [Vec<u8>; 3],
    delta: usize,
    /// Loaded values with their types and bytes.
    loaded: Vec<(String, String, Vec<u8>)>,
}

impl Builder {
    fn below(&mut self, limit: usize) -> usize {
        (self.random.bits() % limit as u64) as usize
    }

    fn value(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next)
    }

    /// The area of a base, and where the base points in it.
    fn start(&self, base: usize) -> (usize, usize) {
        match base {
            0 => (0, 0),
            1 => (0, self.delta),
            2 => (1, 0),
            _ => (2, 0),
        }
    }

    /// An address operand with its offset for a distance from a base, in one of several forms.
    fn address(&mut self, base: usize, at: usize) -> String {
        let name = BASES[base];
        let ty = if base == 3 { "i32" } else { "i64" };
        let add = match self.below(4) {
            0 => 32,
            1 => -16,
            _ => return format!("{name}+{at}"),
        };
        let (constant, sum) = (self.value(), self.value());
        writeln!(self.body, "    {constant} = iconst.{ty} {add}").unwrap();
        writeln!(self.body, "    {sum} = iadd {name}, {constant}").unwrap();
        let rest = at as i64 - add;
        format!("{sum}{rest:+}")
    }

    fn load(&mut self, base: usize, at: usize, (operation, ty, size): (&str, &str, usize)) {
        let (area, start) = self.start(base);
        let from = start + at;
        let bytes = self.areas[area][from..from + size].to_vec();
        let address = self.address(base, at);
        let aligned = if from.is_multiple_of(size) {
            "aligned "
        } else {
            ""
        };
        let value = self.value();
        writeln!(self.body, "    {value} = {operation} {aligned}{address}").unwrap();
        self.loaded
            .push((value, ty.to_owned(), extended(operation, bytes)));
    }

    fn store(&mut self, base: usize, at: usize, (operation, ty, size): (&str, &str, usize)) {
        let (area, start) = self.start(base);
        let to = start + at;
        let of_type: Vec<usize> = (0..self.loaded.len())
            .filter(|&index| self.loaded[index].1 == ty)
            .collect();
        if of_type.is_empty() {
            return;
        }
        let chosen = of_type[self.below(of_type.len())];
        let (value, _, bytes) = self.loaded[chosen].clone();
        let address = self.address(base, at);
        let aligned = if to.is_multiple_of(size) {
            "aligned "
        } else {
            ""
        };
        writeln!(self.body, "    {operation} {aligned}{value}, {address}").unwrap();
        self.areas[area][to..to + size].copy_from_slice(&bytes[..size]);
    }

    /// A few accesses side by side in any order, with others in between.
    fn run(&mut self) {
        let base = self.below(BASES.len());
        let store = self.below(2) == 0;
        let kind = self.below(if store { STORES.len() } else { LOADS.len() });
        let size = if store { STORES[kind].2 } else { LOADS[kind].2 };
        let room = AREA - self.start(base).1;
        let count = 2 + self.below(7);
        let step = if self.below(8) == 0 { size * 2 } else { size };
        if count * step > room {
            return;
        }
        // Some runs begin where only bytes are aligned.
        let grain = if self.below(6) == 0 { 1 } else { size };
        let first = self.below((room - count * step) / grain + 1) * grain;
        let mut order: Vec<usize> = (0..count).collect();
        if self.below(2) == 0 {
            for index in (1..count).rev() {
                let other = self.below(index + 1);
                order.swap(index, other);
            }
        }
        for index in order {
            let at = first + index * step;
            if store {
                self.store(base, at, STORES[kind]);
            } else {
                self.load(base, at, LOADS[kind]);
            }
            match self.below(12) {
                0 => {
                    let (base, kind) = (self.below(BASES.len()), self.below(STORES.len()));
                    let room = AREA - self.start(base).1 - STORES[kind].2;
                    let at = self.below(room);
                    self.store(base, at, STORES[kind]);
                }
                1 => {
                    let (base, kind) = (self.below(BASES.len()), self.below(LOADS.len()));
                    let room = AREA - self.start(base).1 - LOADS[kind].2;
                    let at = self.below(room);
                    self.load(base, at, LOADS[kind]);
                }
                2 if self.below(4) == 0 => self.body.push_str("    fence\n"),
                _ => {}
            }
        }
    }
}

fn program(seed: u64, memory: &[u8]) -> Program {
    let mut random = Random::new(seed);
    let delta = [0, 4, 8, 16, 20][(random.bits() % 5) as usize];
    let mut builder = Builder {
        random,
        body: String::new(),
        next: 100,
        areas: [0; 3].map(|_: i32| memory[..AREA].to_vec()),
        delta,
        loaded: Vec::new(),
    };
    for index in 0..AREA / 16 {
        let value = builder.value();
        for base in ["v10", "v11"] {
            if base == "v10" {
                writeln!(
                    builder.body,
                    "    {value} = load.i64x2 aligned v0+{}",
                    16 * index
                )
                .unwrap();
            }
            writeln!(
                builder.body,
                "    store aligned {value}, {base}+{}",
                16 * index
            )
            .unwrap();
        }
    }
    for _ in 0..3 + builder.below(8) {
        builder.run();
    }
    let generic = builder.below(2) == 0;
    if generic {
        // Shared memory by an address of 64 bits.
        for constant in ["32", "-16"] {
            let (narrow, wide) = (
                format!("iconst.i32 {constant}\n"),
                format!("iconst.i64 {constant}\n"),
            );
            builder.body = builder.body.replace(&narrow, &wide);
        }
    }
    let shared = if generic { "i64" } else { "i32" };
    let mut log = Vec::new();
    for (value, _, bytes) in std::mem::take(&mut builder.loaded) {
        writeln!(builder.body, "    store aligned {value}, v2+{}", log.len()).unwrap();
        log.extend(bytes);
        log.resize(log.len().next_multiple_of(8), 0);
    }
    for (base, area) in [("v10", 1), ("v11", 2)] {
        for index in 0..AREA / 8 {
            let value = builder.value();
            writeln!(
                builder.body,
                "    {value} = load.i64 aligned {base}+{}",
                8 * index
            )
            .unwrap();
            writeln!(
                builder.body,
                "    store aligned {value}, v2+{}",
                log.len() + 8 * index
            )
            .unwrap();
        }
        log.extend(&builder.areas[area]);
    }
    let text = format!(
        "; kernel shared={AREA}
function %k(i64, i64, i64) {{
    ss0 = explicit_slot {AREA}
    gv0 = symbol %gpu_shared
block0(v0: i64, v1: i64, v2: i64):
    v10 = stack_addr.i64 ss0
    v11 = symbol_value.{shared} gv0
{}    return
}}
",
        builder.body
    );
    Program {
        text,
        areas: builder.areas,
        log,
        delta,
    }
}

#[test]
fn merged_accesses_do_what_single_ones_do() {
    let memory: Vec<u8> = (0..AREA as u32).map(|i| (i * 37 + 11) as u8).collect();
    let device = Device::simulator(SimConfig::default());
    let mut words = [0, 0];
    for seed in 0..KERNELS {
        let program = program(seed, &memory);
        for (which, merge) in [true, false].into_iter().enumerate() {
            let options = Options {
                merge_accesses: merge,
                ..Options::default()
            };
            let code = common::compile_with(options, &program.text);
            words[which] += code.kernel("k").unwrap().resources().instructions;
            let buffer = device.upload(&memory).unwrap();
            let log = device.upload(&vec![0u8; program.log.len()]).unwrap();
            let other = DevicePointer(buffer.address() + program.delta as u64);
            let at = format!("seed {seed}\n{}", program.text);
            common::run(
                &device,
                &code,
                "k",
                common::block(1),
                &[&buffer, &other, &log],
                at,
            );
            let found: Vec<u8> = device.download(&buffer).unwrap();
            assert_eq!(
                found, program.areas[0],
                "seed {seed}, {merge}\n{}",
                program.text
            );
            let found: Vec<u8> = device.download(&log).unwrap();
            assert_eq!(found, program.log, "seed {seed}, {merge}\n{}", program.text);
        }
    }
    // Otherwise nothing was tried.
    assert!(words[0] * 20 < words[1] * 19, "{words:?}");
}

/// The remarks on a kernel with this body, of two pointers.
fn remarks(body: &str) -> Vec<String> {
    let text = format!(
        "; kernel\nfunction %k(i64, i64) {{\nblock0(v0: i64, v1: i64):\n{body}\n    return\n}}\n"
    );
    let mut compiler = Compiler::new(Options::default());
    compiler.collect_remarks(true);
    let code = compiler.compile_clif(&text).unwrap();
    code.remarks().iter().map(ToString::to_string).collect()
}

#[test]
fn remarks_say_why_accesses_stay_narrow() {
    let all = remarks(
        "    v2 = load.i32 aligned v0
    v3 = load.i32 aligned v0+4
    store aligned v2, v1
    v4 = load.i64 aligned v1+8
    store aligned v3, v0
    v5 = load.i64 aligned v1+16
    v6 = iadd v4, v5
    store v6, v1",
    );
    let expected = [
        (
            4,
            "not merged: the address of these 8 bytes is known to be a multiple of 4",
        ),
        (11, "split: 8 bytes of global memory are 8 accesses"),
    ];
    for (line, text) in expected {
        let text = format!("<clif>:{line}: %k: {text}");
        assert!(
            all.iter().any(|remark| remark.starts_with(&text)),
            "{text}: {all:#?}"
        );
    }
    let all = remarks(
        "    v2 = load.i64x2 aligned v0
    store aligned v2, v1
    v4 = load.i64 aligned v0+16
    store aligned v4, v1
    v5 = load.i64 aligned v0+24
    store aligned v5, v1+8",
    );
    assert!(
        all.iter()
            .any(|remark| remark.contains("6: %k: not merged: an access between")),
        "{all:#?}"
    );
}
