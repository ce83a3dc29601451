//! Launches of any shape, with any arguments, on devices of any setting.

use crate::random::Random;
use cranelift_thisgpu::compile::{Code, Compiler};
use cranelift_thisgpu::driver::argument::{Argument, Kind, Value};
use cranelift_thisgpu::driver::{Device, DeviceError, Grid};
use cranelift_thisgpu::launch::MAX_GRID;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use std::sync::LazyLock;

/// Kernels of all kinds of parameters: one that stores where it is told to, one of vectors, one that waits.
const KERNELS: &str = "; kernel shared=64
function %store(i64, i32, f32, i8) {
    gv0 = symbol %gpu_tid_x
block0(v0: i64, v1: i32, v2: f32, v3: i8):
    v4 = uextend.i64 v1
    v5 = iadd v0, v4
    store v2, v5
    istore8 v1, v0+3
    return
}
; kernel shared=0
function %vectors(i32x4, i128, f64, i16) {
block0(v0: i32x4, v1: i128, v2: f64, v3: i16):
    return
}
; kernel shared=16
function %waits(i64) {
block0(v0: i64):
    jump block1
block1:
    v1 = atomic_load.i32 v0
    brif v1, block2, block1
block2:
    return
}
";

/// Their code.
static CODE: LazyLock<Code> = LazyLock::new(|| {
    let mut compiler = Compiler::new(Options::default());
    compiler
        .compile_clif(KERNELS)
        .expect("kernels that compile")
});

/// Bytes of device memory.
const MEMORY: u64 = 1 << 20;

/// Blocks of a launch at most: its budget does not count those that have ended.
const MOST_BLOCKS: u32 = 1 << 12;

/// A value that need not fit its parameter.
struct Any(Value);

impl Argument for Any {
    fn value(&self) -> Value {
        self.0.clone()
    }
}

/// An extent: a small one, one near a bound, or any.
fn extent(random: &mut Random) -> u32 {
    match random.below(4) {
        0 | 1 => random.pick(&[1, 2, 31, 32, 33]),
        2 => random.pick(&[0, 64, 1023, 1024, 1025, 65_535, 65_536, u32::MAX]),
        _ => random.bits() as u32,
    }
}

fn extents(random: &mut Random) -> [u32; 3] {
    // Most have one dimension.
    let most = random.pick(&[1, 1, 1, 2, 3]);
    let mut extents = [1; 3];
    extents[..most].fill_with(|| extent(random));
    extents
}

/// Blocks of a launch. One that comes to run has at most [`MOST_BLOCKS`].
fn grid(random: &mut Random) -> [u32; 3] {
    let grid = extents(random);
    let comes_to_run = grid
        .iter()
        .zip(MAX_GRID)
        .all(|(&n, most)| (1..=most).contains(&n));
    let blocks = grid.iter().map(|&n| u128::from(n)).product::<u128>();
    match comes_to_run && blocks > u128::from(MOST_BLOCKS) {
        true => [grid[0].min(MOST_BLOCKS), 1, 1],
        false => grid,
    }
}

/// A kernel is launched once. It may refuse, fault or end.
///
/// # Panics
/// When the driver or the simulator do.
pub fn launch(bytes: &[u8]) {
    // What is refused is refused with a message.
    if let Err(error) = launched(&mut Random::of_bytes(bytes)) {
        assert!(!error.to_string().is_empty());
    }
}

fn launched(random: &mut Random) -> Result<(), DeviceError> {
    let timed = random.once_in(4);
    let device = Device::simulator(SimConfig {
        budget: 1 << 10,
        launch_budget: 1 << 12,
        timed,
        profile: timed && random.once_in(2),
        trace_events: (timed && random.once_in(2)).then_some(100),
        check: random.once_in(3),
        weak: random.once_in(6).then(|| random.bits()),
        turns: random.once_in(6).then(|| random.bits()),
        warp_lanes: random.pick(&[1, 2, 7, 31, 32, 32, 32]),
        threads: random.pick(&[1, 1, 1, 2]),
        memory_bytes: MEMORY,
        ..SimConfig::default()
    });
    let module = device.load(&*CODE)?;
    let kernel = module.kernel(random.pick(&["store", "vectors", "waits"]))?;
    let buffer = device.allocate(random.pick(&[0, 1, 4, 63, 256, MEMORY / 2, MEMORY]))?;
    let mut launch = (kernel.launch(Grid::new(grid(random), extents(random))))
        .shared(random.pick(&[0, 0, 0, 1, 64, 49_152, u32::MAX]));
    let fitting: &[(Kind, usize)] = match kernel.name() {
        "store" => &[
            (Kind::Pointer, 8),
            (Kind::Integer("i32"), 4),
            (Kind::Float("f32"), 4),
            (Kind::Integer("i8"), 1),
        ],
        "vectors" => &[
            (Kind::Vector("i32x4"), 16),
            (Kind::Integer("i128"), 16),
            (Kind::Float("f64"), 8),
            (Kind::Integer("i16"), 2),
        ],
        _ => &[(Kind::Pointer, 8)],
    };
    let mut arguments = fitting.to_vec();
    if random.once_in(6) {
        let place = random.below(arguments.len());
        arguments[place] = random.pick(&[
            (Kind::Pointers(2), 16),
            (Kind::Float("f16"), 2),
            (Kind::Vector("i8"), 0),
        ]);
    }
    if random.once_in(12) {
        arguments.truncate(random.below(arguments.len()));
    }
    for (kind, size) in arguments {
        let of_buffer = kind == Kind::Pointer && !random.once_in(3);
        launch = match of_buffer {
            true => launch.arg(&buffer),
            false => launch.arg(Any(Value {
                bytes: (0..size).map(|_| random.bits() as u8).collect(),
                kind,
                owner: None,
            })),
        };
    }
    let report = launch.run_to_report()?;
    if let Some(fault) = &report.fault {
        assert!(!fault.to_string().is_empty());
    }
    buffer.read::<u8>()?;
    Ok(())
}
