//! Litmus tests run: compiled once, launched with many seeds.

use crate::shapes::Program;
use crate::text;
use crate::waiting::Waiting;
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::object::Object;
use cranelift_thisgpu::sim::SimConfig;
use cranelift_thisgpu::unstable::isa::{Form, Optype, PInst, decode};
use std::collections::BTreeMap;
use std::fmt::Display;

/// How often each outcome was seen.
pub type Seen = BTreeMap<Vec<u32>, u64>;

/// Runs of each test, and the seed of the first.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub runs: usize,
    pub seed: u64,
}

impl Effort {
    /// What `THISGPU_LITMUS=RUNS` or `RUNS,SEED` asks for. Without it few runs, and fewer where code is slow.
    pub fn new() -> Effort {
        let text = std::env::var("THISGPU_LITMUS").unwrap_or_default();
        let mut numbers = text.split(',').map(|n| n.trim().parse().ok());
        let few = if cfg!(debug_assertions) { 64 } else { 200 };
        let runs = numbers.next().flatten().unwrap_or(few);
        Effort {
            runs: runs as usize,
            seed: numbers.next().flatten().unwrap_or(1),
        }
    }

    /// Whether rare outcomes are to be expected.
    pub fn is_large(self) -> bool {
        self.runs >= 10_000
    }
}

/// A device whose memory keeps no order.
pub fn device(seed: u64) -> Device {
    Device::simulator(SimConfig {
        weak: Some(seed),
        budget: 1 << 18,
        stack_bytes: 256,
        ..SimConfig::default()
    })
}

/// What the instances of a kernel leave in a launch: two buffers of words, of which the second was filled with
/// something.
pub fn launch(
    object: &Object,
    kernel: &str,
    seed: u64,
    grid: Grid,
    words: (usize, usize),
    at: &dyn Display,
) -> (Vec<u32>, Vec<u32>) {
    let device = device(seed);
    let failed = |error: &dyn Display| -> ! { panic!("{at}, seed {seed}: {error}") };
    let module = device.load(object).unwrap_or_else(|e| failed(&e));
    let data = device.upload(&vec![0u32; words.0]);
    let data = data.unwrap_or_else(|e| failed(&e));
    let out = device.upload(&vec![u32::MAX; words.1]);
    let out = out.unwrap_or_else(|e| failed(&e));
    let kernel = module.kernel(kernel).unwrap_or_else(|e| failed(&e));
    let launch = kernel.launch(grid).arg(&data).arg(&out).arg(1u32);
    let report = launch.run_to_report().unwrap_or_else(|e| failed(&e));
    if let Some(fault) = report.fault {
        failed(&fault);
    }
    let data = data.read().unwrap_or_else(|e| failed(&e));
    (data, out.read().unwrap_or_else(|e| failed(&e)))
}

/// The outcomes of a test.
pub fn outcomes(program: &Program, object: &Object, effort: Effort) -> Seen {
    let (instances, results) = (text::instances(program), text::results(program));
    let stride = text::STRIDE / 4;
    let words = (program.locations() * stride, instances * results);
    let mut seen = Seen::new();
    for run in 0..effort.runs.div_ceil(instances) as u64 {
        let seed = effort.seed + run;
        let grid = text::grid(program);
        let (data, out) = launch(object, "litmus", seed, grid, words, program);
        for (instance, out) in out.chunks(results).enumerate() {
            let mut outcome = out.to_vec();
            for (location, space) in program.spaces.iter().enumerate() {
                if !space.is_shared() {
                    outcome[program.reads() + location] = data[location * stride + instance];
                }
            }
            *seen.entry(outcome).or_default() += 1;
        }
    }
    seen
}

/// How often a test that waits left what it must leave, and how often something else or nothing within its budget.
pub fn waited(test: &Waiting, object: &Object, effort: Effort) -> (u64, u64) {
    let results = test.expected.len();
    let words = (1024, test.instances * results);
    let (mut right, mut wrong) = (0, 0);
    for run in 0..effort.runs.div_ceil(test.instances) as u64 {
        let (_, out) = launch(object, "litmus", effort.seed + run, test.grid, words, test);
        for out in out.chunks(results) {
            let counter = if out == test.expected {
                &mut right
            } else {
                &mut wrong
            };
            *counter += 1;
        }
    }
    (right, wrong)
}

/// The object with no operation in the place of each MEMBAR, and how many there were.
pub fn without_fences(object: &Object) -> (Object, usize) {
    let mut object = object.clone();
    let mut count = 0;
    for word in object.functions.iter_mut().flat_map(|f| &mut f.words) {
        let (inst, control) = decode(*word).unwrap_or_else(|e| panic!("{e}"));
        if inst.optype() == Optype::MEMBAR {
            let nop = PInst::new(Form::NOP_X);
            *word = nop.encode(control).unwrap_or_else(|e| panic!("{e}"));
            count += 1;
        }
    }
    (object, count)
}
