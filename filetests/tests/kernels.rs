//! The kernels of `filetests/kernels` against references on the host, in both modes of the simulator, without hazards.

use cranelift_thisgpu::compile::{Code, Compiler};
use cranelift_thisgpu::driver::{Buffer, Device, DeviceError, Grid, Launch, Module};
use cranelift_thisgpu::isa::random::Random as Sequence;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::{Report, SimConfig};
use half::f16;

/// Reproducible numbers.
struct Random(Sequence);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.bits()
    }

    fn bits32(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// Any bit pattern, among them the special ones more often than by chance.
    fn float(&mut self) -> f32 {
        const SPECIAL: [u32; 8] = [
            0,
            0x8000_0000,
            1,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x0080_0000,
            0x7f7f_ffff,
        ];
        match self.next() % 4 {
            0 => f32::from_bits(SPECIAL[(self.next() % 8) as usize]),
            1 => f32::from_bits(self.bits32()),
            _ => (self.bits32() as i32 as f32) * 1e-6,
        }
    }
}

/// Compiles a kernel file.
fn compile(name: &str) -> Code {
    let path = format!("{}/kernels/{name}.clif", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Compiler::new(Options::default())
        .compile_clif(&text)
        .unwrap_or_else(|errors| panic!("{errors}"))
}

/// Runs `body` with the kernel on a functional and on a timed device.
fn on_both(name: &str, body: impl Fn(&Device, &Module)) {
    let code = compile(name);
    for timed in [false, true] {
        let device = Device::simulator(SimConfig {
            timed,
            check: true,
            ..SimConfig::default()
        });
        let module = device.load(&code).expect("the code loads");
        body(&device, &module);
    }
}

/// Runs a launch that must leave nothing to complain about.
fn clean(launch: Launch<'_>) -> Report {
    let report = launch
        .run()
        .unwrap_or_else(|error: DeviceError| panic!("{error}"));
    assert_eq!(report.hazards, [], "hazards");
    assert_eq!(report.findings, [], "findings");
    report
}

/// Numbers of elements: none, one, one warp more or less, many.
const SIZES: [u32; 6] = [0, 1, 31, 32, 33, 1000];

/// Threads of a block for a size: not always a multiple of a warp.
fn grid(n: u32) -> Grid {
    Grid::for_elems(n, if n == 33 { 7 } else { 128 })
}

fn bits(values: &[f32]) -> Vec<u32> {
    // Which NaN an operation returns is the machine's choice; that it is one is not.
    values
        .iter()
        .map(|v| if v.is_nan() { 0x7fc0_0000 } else { v.to_bits() })
        .collect()
}

#[test]
fn saxpy_f32() {
    on_both("saxpy_f32", |device, module| {
        let mut random = Random(Sequence::new(1));
        for n in SIZES {
            let a = random.float();
            let x: Vec<f32> = (0..n.max(1)).map(|_| random.float()).collect();
            let y: Vec<f32> = (0..n.max(1)).map(|_| random.float()).collect();
            let (dx, dy) = (device.upload(&x).unwrap(), device.upload(&y).unwrap());
            clean(
                module
                    .kernel("saxpy_f32")
                    .unwrap()
                    .launch(grid(n))
                    .arg(n)
                    .arg(a)
                    .arg(&dx)
                    .arg(&dy),
            );
            let mut expected = y.clone();
            (0..n as usize).for_each(|i| expected[i] = a.mul_add(x[i], y[i]));
            assert_eq!(
                bits(&device.download(&dy).unwrap()),
                bits(&expected),
                "n = {n}, a = {a}"
            );
        }
    });
}

#[test]
fn saxpy_f16x2() {
    on_both("saxpy_f16x2", |device, module| {
        let mut random = Random(Sequence::new(2));
        for n in SIZES {
            let len = (n.max(1) * 8) as usize;
            let mut half = || f16::from_bits(random.bits32() as u16);
            let (a0, a1) = (half(), half());
            let x: Vec<f16> = (0..len).map(|_| half()).collect();
            let y: Vec<f16> = (0..len).map(|_| half()).collect();
            let (dx, dy) = (device.upload(&x).unwrap(), device.upload(&y).unwrap());
            let a = u32::from(a0.to_bits()) | u32::from(a1.to_bits()) << 16;
            clean(
                module
                    .kernel("saxpy_f16x2")
                    .unwrap()
                    .launch(grid(n))
                    .arg(n)
                    .arg(a)
                    .arg(&dx)
                    .arg(&dy),
            );
            let result: Vec<f16> = device.download(&dy).unwrap();
            for i in 0..len {
                let a = if i % 2 == 0 { a0 } else { a1 };
                let expected = if i < n as usize * 8 {
                    fma_f16(a, x[i], y[i])
                } else {
                    y[i]
                };
                let same = result[i].to_bits() == expected.to_bits()
                    || result[i].is_nan() && expected.is_nan();
                assert!(
                    same,
                    "n = {n}, [{i}]: fma({a}, {}, {}) = {}, not {expected}",
                    x[i], y[i], result[i]
                );
            }
        }
    });
}

/// The fused operation, rounded once: product and sum of halves are exact in f64 unless the addends are far apart, where the smaller one
/// only decides ties, which rounding to odd keeps.
fn fma_f16(a: f16, b: f16, c: f16) -> f16 {
    let (product, c) = (a.to_f64() * b.to_f64(), c.to_f64());
    let sum = product + c;
    // The error of the addition (Knuth's two-sum), to round the sum to odd.
    let back = sum - product;
    let error = (product - (sum - back)) + (c - back);
    let odd = if error != 0.0 && error.is_finite() && sum.to_bits() & 1 == 0 {
        let toward = (error > 0.0) == (sum > 0.0);
        f64::from_bits(if toward {
            sum.to_bits() + 1
        } else {
            sum.to_bits() - 1
        })
    } else {
        sum
    };
    f16::from_f64(odd)
}

#[test]
fn gather64() {
    on_both("gather64", |device, module| {
        let mut random = Random(Sequence::new(3));
        for n in SIZES {
            let (records, stride) = (64u64, 20 + 4 * (random.next() % 9));
            let floats = |random: &mut Random, bytes: u64| -> Vec<f32> {
                (0..bytes / 4).map(|_| random.float()).collect()
            };
            let base = floats(&mut random, records * stride + 8);
            let rec = floats(&mut random, records * 256 + 32);
            let idx: Vec<i32> = (0..n.max(1))
                .map(|_| (random.next() % records) as i32)
                .collect();
            let [db, dr] = [&base, &rec].map(|v| device.upload(v).unwrap());
            let di = device.upload(&idx).unwrap();
            let out: Buffer = device.allocate(u64::from(n.max(1)) * 4).unwrap();
            clean(
                module
                    .kernel("gather64")
                    .unwrap()
                    .launch(grid(n))
                    .arg(n)
                    .arg(stride)
                    .arg(&db)
                    .arg(&di)
                    .arg(&dr)
                    .arg(&out),
            );
            let result: Vec<f32> = device.download(&out).unwrap();
            let expected: Vec<f32> = (0..n as usize)
                .map(|i| {
                    let j = idx[i] as usize;
                    base[(j * stride as usize + 4) / 4]
                        + rec[(j * 24 + 8) / 4]
                        + rec[(j * 256 + 16) / 4]
                })
                .collect();
            assert_eq!(
                bits(&result[..n as usize]),
                bits(&expected),
                "n = {n}, stride = {stride}"
            );
        }
    });
}

#[test]
fn fmix64() {
    on_both("fmix64", |device, module| {
        let mut random = Random(Sequence::new(4));
        for n in SIZES {
            let mut x: Vec<u64> = (0..n.max(1)).map(|_| random.next()).collect();
            x[0] = if n == 1 { 0 } else { u64::MAX };
            let dx = device.upload(&x).unwrap();
            clean(
                module
                    .kernel("fmix64")
                    .unwrap()
                    .launch(grid(n))
                    .arg(n)
                    .arg(&dx),
            );
            x.iter_mut().take(n as usize).for_each(|h| {
                *h ^= *h >> 33;
                *h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
                *h ^= *h >> 33;
                *h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
                *h ^= *h >> 33;
            });
            assert_eq!(device.download::<u64>(&dx).unwrap(), x, "n = {n}");
        }
    });
}

/// Runs a kernel that changes four words per thread in place.
fn four_words(name: &str, seed: u64, reference: impl Fn([u32; 4]) -> [u32; 4]) {
    on_both(name, |device, module| {
        let mut random = Random(Sequence::new(seed));
        for n in SIZES {
            let x: Vec<u32> = (0..n.max(1) * 4).map(|_| random.bits32()).collect();
            let dx = device.upload(&x).unwrap();
            clean(module.kernel(name).unwrap().launch(grid(n)).arg(n).arg(&dx));
            let mut expected = x.clone();
            for words in expected.chunks_exact_mut(4).take(n as usize) {
                words.copy_from_slice(&reference([words[0], words[1], words[2], words[3]]));
            }
            assert_eq!(device.download::<u32>(&dx).unwrap(), expected, "n = {n}");
        }
    });
}

#[test]
fn chacha_qr() {
    four_words("chacha_qr", 5, |mut x| {
        for _ in 0..2 {
            for (a, b, d, r) in [(0, 1, 3, 16), (2, 3, 1, 12), (0, 1, 3, 8), (2, 3, 1, 7)] {
                x[a] = x[a].wrapping_add(x[b]);
                x[d] = (x[d] ^ x[a]).rotate_left(r);
            }
        }
        x
    });
}

#[test]
fn lop3_chain() {
    four_words("lop3_chain", 6, |[a, b, c, d]| {
        let ch = (a & b) ^ (!a & c);
        let maj = (a & b) ^ (a & c) ^ (b & c);
        let t1 = (ch | maj) & !(a ^ b ^ c);
        let t2 = (d ^ t1) | (a & !b);
        let t3 = !(t2 ^ ch) & (maj | d);
        let t4 = (t3 & a) | (!t3 & b);
        [
            ch ^ t1,
            maj ^ t2,
            t2 ^ t3 ^ t4,
            (t2 & t3) | (t4 & (t2 | t3)),
        ]
    });
}

#[test]
fn collatz() {
    on_both("collatz", |device, module| {
        let mut random = Random(Sequence::new(7));
        for n in SIZES {
            let x: Vec<u32> = (0..n.max(1))
                .map(|i| {
                    if i == 0 {
                        1
                    } else {
                        1 + (random.bits32() % 5000)
                    }
                })
                .collect();
            let dx = device.upload(&x).unwrap();
            let out = device.allocate(u64::from(n.max(1)) * 4).unwrap();
            clean(
                module
                    .kernel("collatz")
                    .unwrap()
                    .launch(grid(n))
                    .arg(n)
                    .arg(&dx)
                    .arg(&out),
            );
            let steps = |mut v: u32| {
                let mut steps = 0u32;
                while v != 1 {
                    v = if v % 2 == 1 {
                        v.wrapping_mul(3).wrapping_add(1)
                    } else {
                        v / 2
                    };
                    steps += 1;
                }
                steps
            };
            let result: Vec<u32> = device.download(&out).unwrap();
            let expected: Vec<u32> = x.iter().map(|v| steps(*v)).collect();
            assert_eq!(result[..n as usize], expected[..n as usize], "n = {n}");
        }
    });
}

#[test]
fn prefix_sum() {
    on_both("prefix_sum", |device, module| {
        let mut random = Random(Sequence::new(8));
        for blocks in [1u32, 3] {
            let x: Vec<u32> = (0..blocks * 256).map(|_| random.bits32()).collect();
            let dx = device.upload(&x).unwrap();
            let out = device.allocate(u64::from(blocks) * 1024).unwrap();
            let grid = Grid::new([blocks, 1, 1], [256, 1, 1]);
            clean(
                module
                    .kernel("prefix_sum")
                    .unwrap()
                    .launch(grid)
                    .arg(&dx)
                    .arg(&out),
            );
            let mut expected = Vec::new();
            for block in x.chunks_exact(256) {
                expected.extend(block.iter().scan(0u32, |sum, v| {
                    *sum = sum.wrapping_add(*v);
                    Some(*sum)
                }));
            }
            assert_eq!(device.download::<u32>(&out).unwrap(), expected);
        }
    });
}

#[test]
fn matmul8() {
    on_both("matmul8", |device, module| {
        let mut random = Random(Sequence::new(9));
        for n in [8usize, 24] {
            let mut matrix = || -> Vec<f32> { (0..n * n).map(|_| random.float()).collect() };
            let (a, b) = (matrix(), matrix());
            let [da, db] = [&a, &b].map(|m| device.upload(m).unwrap());
            let dc = device.allocate((n * n * 4) as u64).unwrap();
            let blocks = (n / 8) as u32;
            let grid = Grid::new([blocks, blocks, 1], [8, 8, 1]);
            clean(
                module
                    .kernel("matmul8")
                    .unwrap()
                    .launch(grid)
                    .arg(n as u32)
                    .arg(&da)
                    .arg(&db)
                    .arg(&dc),
            );
            let expected: Vec<f32> = (0..n * n)
                .map(|i| {
                    (0..n).fold(0.0f32, |sum, k| {
                        a[i / n * n + k].mul_add(b[k * n + i % n], sum)
                    })
                })
                .collect();
            assert_eq!(
                bits(&device.download(&dc).unwrap()),
                bits(&expected),
                "n = {n}"
            );
        }
    });
}

#[test]
fn matmul_rt8x8() {
    on_both("matmul_rt8x8", |device, module| {
        let mut random = Random(Sequence::new(10));
        let n = 64usize;
        let mut matrix = || -> Vec<f32> { (0..n * n).map(|_| random.float()).collect() };
        let (a, b) = (matrix(), matrix());
        let [da, db] = [&a, &b].map(|m| device.upload(m).unwrap());
        let dc = device.allocate((n * n * 4) as u64).unwrap();
        let blocks = (n / 64) as u32;
        let grid = Grid::new([blocks, blocks, 1], [8, 8, 1]);
        let kernel = module.kernel("matmul_rt8x8").unwrap();
        let launch = kernel.launch(grid).arg(n as u32);
        clean(launch.arg(&da).arg(&db).arg(&dc));
        let expected: Vec<f32> = (0..n * n)
            .map(|i| {
                (0..n).fold(0.0f32, |sum, k| {
                    a[i / n * n + k].mul_add(b[k * n + i % n], sum)
                })
            })
            .collect();
        assert_eq!(bits(&device.download(&dc).unwrap()), bits(&expected));
    });
}

#[test]
fn i64_loop() {
    on_both("i64_loop", |device, module| {
        let mut random = Random(Sequence::new(11));
        for n in [1usize, 5] {
            let a: Vec<u64> = (0..n * 256).map(|_| random.next()).collect();
            let x = random.next();
            let da = device.upload(&a).unwrap();
            let out = device.allocate(256 * 8).unwrap();
            let grid = Grid::new([1, 1, 1], [256, 1, 1]);
            let kernel = module.kernel("i64_loop").unwrap();
            let launch = kernel.launch(grid);
            clean(launch.arg(n as u32).arg(&da).arg(&out).arg(x));
            let column = |t: usize| {
                (0..n).fold(0u64, |sum, k| {
                    sum.wrapping_mul(x).wrapping_add(a[k * 256 + t])
                })
            };
            let expected: Vec<u64> = (0..256).map(column).collect();
            assert_eq!(device.download::<u64>(&out).unwrap(), expected, "n = {n}");
        }
    });
}

#[test]
fn softmax() {
    on_both("softmax", |device, module| {
        let mut random = Random(Sequence::new(12));
        let (rows, n) = (64usize, 9usize);
        let a: Vec<f32> = (0..rows * n)
            .map(|_| (random.bits32() as i32 as f32) * 1e-9)
            .collect();
        let da = device.upload(&a).unwrap();
        let out = device.allocate((rows * n * 4) as u64).unwrap();
        let grid = Grid::new([1, 1, 1], [rows as u32, 1, 1]);
        let kernel = module.kernel("softmax").unwrap();
        let launch = kernel.launch(grid);
        clean(launch.arg(n as u32).arg(&da).arg(&out));
        let result = device.download::<f32>(&out).unwrap();
        for (row, got) in a.chunks(n).zip(result.chunks(n)) {
            let most = row.iter().copied().fold(f32::MIN, f32::max);
            let sum: f64 = row.iter().map(|v| f64::from(v - most).exp2()).sum();
            for (v, got) in row.iter().zip(got) {
                let expected = f64::from(v - most).exp2() / sum;
                // 2^x is approximate to about two units in the last place.
                assert!(
                    (f64::from(*got) - expected).abs() < 1e-6,
                    "{got}: {expected}"
                );
            }
        }
    });
}

/// What loops carry from one iteration to the next stays where it is, and what is stored together at the end stands together: no loop is
/// longer than its work, nothing is copied behind it.
#[test]
fn loops_need_no_copies() {
    let lengths = |name: &str| {
        let code = compile(name);
        let kernel = code.kernels().iter().find(|k| k.name == name).unwrap();
        (kernel.instructions, kernel.loops.clone())
    };
    let (_, loops) = lengths("i64_loop");
    assert!(loops[0] <= 11, "{loops:?}");
    let (_, loops) = lengths("softmax");
    assert!(
        loops[0] <= 7 && loops[1] <= 12 && loops[2] <= 9,
        "{loops:?}"
    );
    let (instructions, loops) = lengths("matmul_rt8x8");
    assert!(instructions <= 656, "{instructions}");
    assert!(loops[0] <= 567, "{loops:?}");
}
