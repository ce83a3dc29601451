//! The kernels of `filetests/kernels` with their launches and references on the host.
//!
//! [`ALL`] names them; [`run`] launches one on a device of its own, holds every result against the reference, and
//! returns what the launches cost. The inputs are reproducible, so the counts of two compilers, or of two settings, can
//! be compared.

mod elementwise;
mod integers;
mod loops;
mod numerics;
mod tiles;

use cranelift_thisgpu::compile::{Code, Compiler};
use cranelift_thisgpu::driver::{Device, DeviceError, Grid, Kernel, Launch};
use cranelift_thisgpu::error::Errors;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::{Report, SimConfig, Stats};
use cranelift_thisgpu::unstable::isa::random::Random;
use std::fmt::Debug;

/// A kernel of `filetests/kernels`.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Its name, and that of its file.
    pub name: &'static str,
    check: fn(&mut Session) -> Result<(), Failure>,
}

/// All of them, by name.
pub const ALL: [Example; 28] = [
    Example::new("attention", numerics::attention),
    Example::new("bigmul256", integers::bigmul256),
    Example::new("bitonic", integers::bitonic),
    Example::new("black_scholes", elementwise::black_scholes),
    Example::new("chacha_qr", elementwise::chacha_qr),
    Example::new("collatz", loops::collatz),
    Example::new("dp4a_dot", loops::dp4a_dot),
    Example::new("fmix64", elementwise::fmix64),
    Example::new("gather64", elementwise::gather64),
    Example::new("hgemm64", numerics::hgemm64),
    Example::new("histogram", integers::histogram),
    Example::new("horner_f16x2", elementwise::horner_f16x2),
    Example::new("i64_chain", elementwise::i64_chain),
    Example::new("i64_loop", loops::i64_loop),
    Example::new("layernorm", numerics::layernorm),
    Example::new("lop3_chain", elementwise::lop3_chain),
    Example::new("lowerbound", integers::lowerbound),
    Example::new("matmul8", tiles::matmul8),
    Example::new("matmul_rt8x8", tiles::matmul_rt8x8),
    Example::new("nbody", numerics::nbody),
    Example::new("prefix_sum", tiles::prefix_sum),
    Example::new("saxpy_f16x2", elementwise::saxpy_f16x2),
    Example::new("saxpy_f32", elementwise::saxpy_f32),
    Example::new("sha256", integers::sha256),
    Example::new("softmax", loops::softmax),
    Example::new("spmv", numerics::spmv),
    Example::new("stencil3d", numerics::stencil3d),
    Example::new("utf8", integers::utf8),
];

impl Example {
    const fn new(name: &'static str, check: fn(&mut Session) -> Result<(), Failure>) -> Self {
        Self { name, check }
    }

    /// Compiles it.
    ///
    /// # Errors
    /// What the compiler says.
    ///
    /// # Panics
    /// If its file is not there.
    pub fn compile(&self, options: &Options) -> Result<Code, Errors> {
        let path = format!("{}/kernels/{}.clif", env!("CARGO_MANIFEST_DIR"), self.name);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        Compiler::new(options.clone()).compile_clif(&text)
    }
}

/// Why a kernel is not right.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It was not launched, or ended in a fault.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// It ran, and the simulator complains.
    #[error("{0}")]
    Unclean(String),
    /// It wrote something else.
    #[error("{case}, [{index}]: {found}, expected {expected}")]
    Different {
        /// Which launch.
        case: String,
        /// Which element.
        index: usize,
        /// What it wrote.
        found: String,
        /// What the reference says.
        expected: String,
    },
}

/// Launches `code`, made from `example`, and checks everything that it writes; the sums over its launches.
///
/// # Errors
/// What is wrong first.
pub fn run(example: &Example, code: &Code, timed: bool) -> Result<Stats, Failure> {
    let config = SimConfig {
        timed,
        check: true,
        ..SimConfig::default()
    };
    let mut sum = Stats::default();
    for report in reports(example, code, config)? {
        sum.cycles += report.stats.cycles;
        sum.warp_instructions += report.stats.warp_instructions;
        sum.thread_instructions += report.stats.thread_instructions;
    }
    Ok(sum)
}

/// Launches `code`, made from `example`, and checks everything that it writes; the reports of its launches.
///
/// # Errors
/// What is wrong first.
pub fn reports(example: &Example, code: &Code, config: SimConfig) -> Result<Vec<Report>, Failure> {
    run_on(example, code, Device::simulator(config))
}

/// Makes the launches of `code`, made from `example`, on a device, and checks everything that it writes; the reports of
/// its launches.
///
/// # Errors
/// What is wrong first.
pub fn run_on(example: &Example, code: &Code, device: Device) -> Result<Vec<Report>, Failure> {
    let kernel = device.load(code)?.kernel(example.name)?;
    let mut session = Session {
        device,
        kernel,
        random: Random::new(example.name.bytes().map(u64::from).sum()),
        reports: Vec::new(),
    };
    (example.check)(&mut session)?;
    Ok(session.reports)
}

/// Launches of one kernel.
struct Session {
    device: Device,
    kernel: Kernel,
    random: Random,
    reports: Vec<Report>,
}

impl Session {
    /// Runs a launch that must leave nothing to complain about.
    fn launch<'a>(
        &'a mut self,
        grid: Grid,
        arguments: impl FnOnce(Launch<'a>) -> Launch<'a>,
    ) -> Result<(), Failure> {
        let report = arguments(self.kernel.launch(grid)).run()?;
        if !report.hazards.is_empty() || !report.findings.is_empty() {
            let (hazards, findings) = (report.hazards, report.findings);
            return Err(Failure::Unclean(format!("{hazards:?} {findings:?}")));
        }
        self.reports.push(report);
        Ok(())
    }

    fn bits32(&mut self) -> u32 {
        (self.random.bits() >> 32) as u32
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
        match self.random.below(4) {
            0 => f32::from_bits(*self.random.pick(&SPECIAL)),
            1 => f32::from_bits(self.bits32()),
            _ => (self.bits32() as i32 as f32) * 1e-6,
        }
    }

    /// A number from `least` to `most`.
    fn between(&mut self, least: f32, most: f32) -> f32 {
        least + (most - least) * (self.bits32() as f32 / u32::MAX as f32)
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }

    fn words(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.bits32()).collect()
    }

    fn doubles(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.random.bits()).collect()
    }
}

/// Numbers of elements: none, one, one warp more or less, many.
const SIZES: [u32; 6] = [0, 1, 31, 32, 33, 1000];

/// Threads of a block for a size: not always a multiple of a warp.
fn grid(n: u32) -> Grid {
    Grid::for_elems(n, if n == 33 { 7 } else { 128 })
}

/// What an element must be equal in.
trait Same: Copy + Debug {
    fn same(self, other: Self) -> bool;
}

/// Bit by bit.
macro_rules! exact {
    ($($ty:ty)*) => {$(
        impl Same for $ty {
            fn same(self, other: Self) -> bool {
                self == other
            }
        }
    )*};
}

exact!(u32 u64 i32);

/// Bit by bit, but which NaN an operation returns is the machine's choice.
impl Same for f32 {
    fn same(self, other: Self) -> bool {
        self.to_bits() == other.to_bits() || self.is_nan() && other.is_nan()
    }
}

/// As of [`f32`].
impl Same for half::f16 {
    fn same(self, other: Self) -> bool {
        self.to_bits() == other.to_bits() || self.is_nan() && other.is_nan()
    }
}

/// Compares all elements; `case` names the launch.
fn compare<T: Same>(case: &str, found: &[T], expected: &[T]) -> Result<(), Failure> {
    debug_assert_eq!(found.len(), expected.len());
    let different = |(f, e): (&T, &T)| !f.same(*e);
    match found.iter().zip(expected).position(different) {
        None => Ok(()),
        Some(index) => Err(Failure::Different {
            case: case.to_owned(),
            index,
            found: format!("{:?}", found[index]),
            expected: format!("{:?}", expected[index]),
        }),
    }
}

/// Compares numbers that may differ by `error`, relative to the larger of 1 and the expected one.
fn compare_nearly(case: &str, found: &[f32], expected: &[f64], error: f64) -> Result<(), Failure> {
    debug_assert_eq!(found.len(), expected.len());
    for (index, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let difference = (f64::from(found) - expected).abs();
        // Not `>`: a NaN is different.
        let near = difference <= error * expected.abs().max(1.0);
        if !near {
            return Err(Failure::Different {
                case: case.to_owned(),
                index,
                found: found.to_string(),
                expected: expected.to_string(),
            });
        }
    }
    Ok(())
}
