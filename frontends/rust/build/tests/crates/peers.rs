//! The kernels of `filetests/kernels` in Rust: they leave the same memory as the CLIF, and need hardly more
//! instructions.

use crate::common;
use crate::common::Random;
use cranelift_thisgpu::driver::{Argument, Pod};
use cranelift_thisgpu::{Code, Compiler, Object};
use std::fs;
use thisgpu_build::{Buffer, Compiled, Device, Grid, Launch, Options, SimConfig};

/// Launches a kernel in both languages.
type Comparison = fn(&mut Session);

/// Arguments of a kernel in CLIF.
type Arguments = Vec<Box<dyn Argument>>;

/// Kernels by name, and how they are launched on the same inputs.
const PEERS: &[(&str, Comparison)] = &[
    ("black_scholes", black_scholes),
    ("chacha_qr", four_words),
    ("collatz", collatz),
    ("dp4a_dot", dp4a_dot),
    ("fmix64", fmix64),
    ("gather64", gather64),
    ("horner_f16x2", horner),
    ("i64_chain", i64_chain),
    ("lop3_chain", four_words),
    ("matmul8", matmul8),
    ("prefix_sum", prefix_sum),
    ("saxpy_f16x2", saxpy_f16x2),
    ("saxpy_f32", saxpy_f32),
];

/// More of them than this no kernel may need, in instructions of the CLIF.
const MOST: f64 = 1.15;

/// Kernels that may need more, with the reason.
const EXCEPTIONS: &[(&str, f64, &str)] = &[(
    "gather64",
    1.30,
    "indices out of memory are compared with two lengths, one of them in 64 bits",
)];

/// Two kernels that are to do the same.
struct Session {
    name: &'static str,
    device: Device,
    rust: thisgpu_build::Kernel,
    clif: cranelift_thisgpu::Kernel,
    random: Random,
}

fn clif(name: &str) -> Code {
    let path = format!(
        "{}/../../../filetests/kernels/{name}.clif",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Compiler::new(Options::default())
        .compile_clif(&text)
        .expect("compiles")
}

fn instructions(object: &Object, name: &str) -> usize {
    object
        .functions
        .iter()
        .find(|function| function.name == name)
        .expect("there")
        .words
        .len()
}

impl Session {
    fn words(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.random.bits() as u32).collect()
    }

    /// From 0 to 1.
    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count)
            .map(|_| (self.random.bits() >> 40) as f32 / (1 << 24) as f32)
            .collect()
    }

    /// Halves from -4 to 4 as their bits, two in a word.
    fn halves(&mut self, count: usize) -> Vec<u32> {
        let half = |bits: u64| (bits & 0x83ff | (10 + (bits >> 16) % 7) << 10) as u32;
        (0..count)
            .map(|_| half(self.random.bits()) | half(self.random.bits()) << 16)
            .collect()
    }

    /// Launches both, and compares what is in the last of their buffers.
    fn compare<T: Pod + PartialEq + std::fmt::Debug>(
        &self,
        grid: Grid,
        written: &[T],
        rust: impl Fn(Launch<'_>, &mut Buffer<T>) -> thisgpu_build::Report,
        clif: &dyn Fn(&Buffer<T>) -> Arguments,
    ) {
        let mut ours = self.device.upload(written).expect("room");
        let theirs = self.device.upload(written).expect("room");
        let report = rust(self.rust.launch(grid), &mut ours);
        assert!(
            report.findings.is_empty(),
            "{}: {}",
            self.name,
            report.findings[0]
        );
        let arguments: Arguments = clif(&theirs);
        let arguments: Vec<&dyn Argument> = arguments.iter().map(|argument| &**argument).collect();
        self.clif.launch(grid).args(&arguments).run().expect("runs");
        assert_eq!(
            ours.to_vec().expect("there"),
            theirs.to_vec().expect("there"),
            "{}",
            self.name
        );
    }
}

fn ran(launch: Launch<'_>) -> thisgpu_build::Report {
    launch.run().unwrap_or_else(|error| panic!("{error}"))
}

/// Fewer than threads, as many, more than a block.
const SIZES: [usize; 3] = [5, 64, 300];

fn grid(n: usize) -> Grid {
    Grid::for_elems(n as u64, 64)
}

fn saxpy_f32(s: &mut Session) {
    for n in SIZES {
        let (x, y) = (s.floats(n), s.floats(n));
        let x = s.device.upload(&x).expect("room");
        s.compare(
            grid(n),
            &y,
            |l, y| ran(l.arg(2.5f32).arg(&x).arg(y)),
            &|y| {
                vec![
                    Box::new(n as u32),
                    Box::new(2.5f32),
                    Box::new(x.clone()),
                    Box::new(y.clone()),
                ]
            },
        );
    }
}

fn saxpy_f16x2(s: &mut Session) {
    for n in SIZES {
        let (a, x, y) = (s.halves(1)[0], s.halves(4 * n), s.halves(4 * n));
        let (x, y) = (quads(&x), quads(&y));
        let x = s.device.upload(&x).expect("room");
        s.compare(grid(n), &y, |l, y| ran(l.arg(a).arg(&x).arg(y)), &|y| {
            vec![
                Box::new(n as u32),
                Box::new(a),
                Box::new(x.clone()),
                Box::new(y.clone()),
            ]
        });
    }
}

fn quads(words: &[u32]) -> Vec<[u32; 4]> {
    words
        .chunks_exact(4)
        .map(|words| [words[0], words[1], words[2], words[3]])
        .collect()
}

fn horner(s: &mut Session) {
    for n in SIZES {
        let x = quads(&s.halves(4 * n));
        s.compare(grid(n), &x, |l, x| ran(l.arg(x)), &|x| {
            vec![Box::new(n as u32), Box::new(x.clone())]
        });
    }
}

fn four_words(s: &mut Session) {
    for n in SIZES {
        let x = quads(&s.words(4 * n));
        s.compare(grid(n), &x, |l, x| ran(l.arg(x)), &|x| {
            vec![Box::new(n as u32), Box::new(x.clone())]
        });
    }
}

fn fmix64(s: &mut Session) {
    for n in SIZES {
        let x: Vec<u64> = (0..n).map(|_| s.random.bits()).collect();
        s.compare(grid(n), &x, |l, x| ran(l.arg(x)), &|x| {
            vec![Box::new(n as u32), Box::new(x.clone())]
        });
    }
}

fn i64_chain(s: &mut Session) {
    for n in SIZES {
        let mut x: Vec<[u64; 4]> = (0..n).map(|_| [0; 4].map(|_| s.random.bits())).collect();
        // Carries out of the low words, and equal operands.
        x[0][1] = 0u64.wrapping_sub(x[0][0]);
        x[1][3] = x[1][2];
        let x = s.device.upload(&x).expect("room");
        let y = vec![[0u64; 4]; n];
        s.compare(grid(n), &y, |l, y| ran(l.arg(&x).arg(y)), &|y| {
            vec![Box::new(n as u32), Box::new(x.clone()), Box::new(y.clone())]
        });
    }
}

fn gather64(s: &mut Session) {
    const RECORDS: usize = 64;
    for (n, stride) in SIZES.into_iter().zip([5usize, 6, 13]) {
        let (base, records) = (s.floats(RECORDS * stride + 2), s.floats(RECORDS * 64));
        let indices: Vec<u32> = s
            .words(n)
            .iter()
            .map(|word| word % RECORDS as u32)
            .collect();
        let [base, records] = [base, records].map(|floats| s.device.upload(&floats).expect("room"));
        let indices = s.device.upload(&indices).expect("room");
        let large = records.cast::<[f32; 64]>().expect("fits");
        let out = vec![0f32; n];
        s.compare(
            grid(n),
            &out,
            |l, out| {
                ran(l
                    .arg(stride as u64)
                    .arg(&base)
                    .arg(&indices)
                    .arg(&large)
                    .arg(out))
            },
            &|out| {
                vec![
                    Box::new(n as u32),
                    Box::new(4 * stride as u64),
                    Box::new(base.clone()),
                    Box::new(indices.clone()),
                    Box::new(records.clone()),
                    Box::new(out.clone()),
                ]
            },
        );
    }
}

fn black_scholes(s: &mut Session) {
    for n in SIZES {
        let [prices, strikes, times] =
            [0; 3].map(|_| s.floats(n).iter().map(|x| x + 0.5).collect::<Vec<f32>>());
        let [prices, strikes, times] =
            [prices, strikes, times].map(|floats| s.device.upload(&floats).expect("room"));
        let calls = vec![0f32; 2 * n];
        // Both results are halves of one buffer, so that both are compared.
        s.compare(
            grid(n),
            &calls,
            |l, out| {
                let (mut calls, mut puts) = halved(out);
                ran(l
                    .arg(0.02f32)
                    .arg(0.3f32)
                    .arg(&prices)
                    .arg(&strikes)
                    .arg(&times)
                    .arg(&mut calls)
                    .arg(&mut puts))
            },
            &|out| {
                let (calls, puts) = halved(out);
                vec![
                    Box::new(n as u32),
                    Box::new(0.02f32),
                    Box::new(0.3f32),
                    Box::new(prices.clone()),
                    Box::new(strikes.clone()),
                    Box::new(times.clone()),
                    Box::new(calls),
                    Box::new(puts),
                ]
            },
        );
    }
}

fn halved(buffer: &Buffer<f32>) -> (Buffer<f32>, Buffer<f32>) {
    let middle = buffer.len() / 2;
    (
        buffer.slice(..middle).expect("inside"),
        buffer.slice(middle..).expect("inside"),
    )
}

fn collatz(s: &mut Session) {
    for n in SIZES {
        let x: Vec<u32> = s.words(n).iter().map(|word| 1 + word % 5000).collect();
        let x = s.device.upload(&x).expect("room");
        let out = vec![0u32; n];
        s.compare(grid(n), &out, |l, out| ran(l.arg(&x).arg(out)), &|out| {
            vec![
                Box::new(n as u32),
                Box::new(x.clone()),
                Box::new(out.clone()),
            ]
        });
    }
}

fn dp4a_dot(s: &mut Session) {
    let rows = 96;
    for k in [0usize, 1, 3, 4, 64] {
        let (a, b) = (s.words(rows * k), s.words(k));
        let (a, b) = (
            s.device.upload(&a).expect("room"),
            s.device.upload(&b).expect("room"),
        );
        let out = vec![0i32; rows];
        s.compare(
            Grid::new([3, 1, 1], [32, 1, 1]),
            &out,
            |l, out| ran(l.arg(&a).arg(&b).arg(out)),
            &|out| {
                vec![
                    Box::new(k as u32),
                    Box::new(a.clone()),
                    Box::new(b.clone()),
                    Box::new(out.clone()),
                ]
            },
        );
    }
}

fn prefix_sum(s: &mut Session) {
    for blocks in [1usize, 3] {
        let x = s.words(256 * blocks);
        let x = s.device.upload(&x).expect("room");
        let out = vec![0u32; 256 * blocks];
        s.compare(
            Grid::new([blocks as u32, 1, 1], [256, 1, 1]),
            &out,
            |l, out| ran(l.arg(&x).arg(out)),
            &|out| vec![Box::new(x.clone()), Box::new(out.clone())],
        );
    }
}

fn matmul8(s: &mut Session) {
    for n in [8usize, 24] {
        let (a, b) = (s.floats(n * n), s.floats(n * n));
        let (a, b) = (
            s.device.upload(&a).expect("room"),
            s.device.upload(&b).expect("room"),
        );
        let (out, blocks, square) = (vec![0f32; n * n], (n / 8) as u32, [n as u32; 2]);
        s.compare(
            Grid::new([blocks, blocks, 1], [8, 8, 1]),
            &out,
            |l, out| {
                let launch = l.arg(n as u32).arg((&a, square)).arg((&b, square));
                ran(launch.arg((out, square)))
            },
            &|out| {
                vec![
                    Box::new(n as u32),
                    Box::new(a.clone()),
                    Box::new(b.clone()),
                    Box::new(out.clone()),
                ]
            },
        );
    }
}

#[test]
fn kernels_leave_the_same_memory_as_those_in_clif() {
    let compiled: Compiled = common::compiled("peers");
    let device = Device::simulator(SimConfig {
        check: true,
        ..SimConfig::default()
    });
    let module = compiled.load(&device).expect("room");
    for (name, run) in PEERS {
        let code = clif(name);
        let clif = device
            .load(&code)
            .and_then(|module| module.kernel(name))
            .expect("there");
        run(&mut Session {
            name,
            device: device.clone(),
            rust: module.kernel(name).expect("there"),
            clif,
            random: Random(1),
        });
    }
}

#[test]
fn kernels_need_hardly_more_instructions_than_those_in_clif() {
    let compiled = common::compiled("peers");
    let object = Object::read(compiled.object()).expect("an object");
    let (mut table, mut worse, mut sum) = (
        String::from("| kernel | Rust | CLIF | ratio |\n| --- | ---: | ---: | ---: |\n"),
        Vec::new(),
        0.0,
    );
    for (name, _) in PEERS {
        let [ours, theirs] = [
            instructions(&object, name),
            instructions(clif(name).object(), name),
        ];
        let ratio = ours as f64 / theirs as f64;
        sum += ratio.ln();
        table.push_str(&format!("| {name} | {ours} | {theirs} | {ratio:.2} |\n"));
        let most = EXCEPTIONS
            .iter()
            .find(|exception| exception.0 == *name)
            .map_or(MOST, |exception| exception.1);
        if ratio > most {
            worse.push(*name);
        }
    }
    table.push_str(&format!(
        "| geometric mean | | | {:.3} |\n",
        (sum / PEERS.len() as f64).exp()
    ));
    println!("{table}");
    assert!(
        worse.is_empty(),
        "{worse:?} need more than they may:\n{table}"
    );
}
