//! Random functions in large numbers, each allocated and checked: `THISGPU_ALLOCATIONS=1000000 THISGPU_SEED=1 cargo
//! test --profile checked --lib regalloc::tests::campaign -- --nocapture`.

use super::generate::{self, Random, Shape};
use super::{interpret, reduce};
use crate::isa::{Form, PReg, Register, RegisterClass, VReg};
use crate::regalloc::{Algorithm, AllocationBuffers, MIN_GPRS, Options, allocate};
use crate::vcode::{BlockData, FunctionKind, Terminator, VCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Functions of an ordinary test run.
const FEW: u64 = 400;
/// One of so many functions is run as well, before and after.
const RUN: u64 = 8;

/// What a campaign has met: how many functions have it.
#[derive(Clone, Copy, Debug, Default)]
struct Covered {
    functions: u64,
    instructions: u64,
    spills: u64,
    calls: u64,
    wide: u64,
    guarded: u64,
    uniform: u64,
    loops: u64,
    device: u64,
    tail_calls: u64,
    predicates_in_gprs: u64,
    run: u64,
}

impl Covered {
    fn note(&mut self, before: &VCode<VReg>, after: &VCode<PReg>) {
        let any =
            |f: &dyn Fn(&crate::vcode::Entry<VReg>) -> bool| u64::from(before.insts.iter().any(f));
        let has = |form: Form| after.insts.iter().any(|e| e.inst.form() == form);
        self.functions += 1;
        self.instructions += before.insts.len() as u64;
        self.spills += u64::from(has(Form::LDL_R) && after.frame.spill_bytes > 0);
        self.calls += any(&|e| before.call(e).is_some());
        // Every access has an address of two words.
        self.wide += any(&|e| e.inst.operands().any(|o| o.regs.len() > 2));
        self.guarded += any(&|e| !before.else_values(e).is_empty());
        self.uniform += any(&|e| e.inst.uses().any(|v| v.class() == RegisterClass::Uniform));
        self.loops += u64::from(before.blocks.values().any(|b| b.loop_depth > 0));
        self.device += u64::from(before.kind == FunctionKind::Device);
        let leaves = |b: &BlockData<VReg>| matches!(b.terminator, Terminator::TailCall { .. });
        self.tail_calls += u64::from(before.blocks.values().any(leaves));
        self.predicates_in_gprs += u64::from(has(Form::SEL_RI));
    }

    fn add(&mut self, other: &Covered) {
        let pairs = [
            (&mut self.functions, other.functions),
            (&mut self.instructions, other.instructions),
            (&mut self.spills, other.spills),
            (&mut self.calls, other.calls),
            (&mut self.wide, other.wide),
            (&mut self.guarded, other.guarded),
            (&mut self.uniform, other.uniform),
            (&mut self.loops, other.loops),
            (&mut self.device, other.device),
            (&mut self.tail_calls, other.tail_calls),
            (&mut self.predicates_in_gprs, other.predicates_in_gprs),
            (&mut self.run, other.run),
        ];
        pairs.into_iter().for_each(|(sum, more)| *sum += more);
    }
}

/// A shape and options that differ from seed to seed.
pub(super) fn case(seed: u64) -> (Shape, Options) {
    let mut random = Random::new(seed ^ 0x5eed_0f5a_11a5);
    let mut percent = |most: usize| random.below(most + 1) as u32;
    let shape = Shape {
        wide: percent(40),
        guarded: percent(40),
        calls: percent(10).saturating_sub(4),
        control: percent(50),
        device: percent(1) == 1,
        size: 10 + percent(100) as usize * percent(4) as usize,
        window: 4 + percent(80) as usize,
        predicate_window: 1 + percent(14) as usize,
        uniform_window: 1 + percent(80) as usize,
        tail_calls: 40,
    };
    let limits = [MIN_GPRS, 28, 32, 48, 64, 128, 255];
    let algorithms = [Algorithm::SinglePass, Algorithm::Backtracking];
    let options = Options {
        gpr_limit: limits[random.below(limits.len())],
        algorithm: algorithms[random.below(algorithms.len())],
        verify: true,
    };
    (shape, options)
}

/// Allocates one function; returns what is wrong with the allocation.
fn mistake(
    code: &VCode<VReg>,
    options: &Options,
    run: bool,
    scratch: &mut AllocationBuffers,
    covered: &mut Covered,
) -> Option<String> {
    let (after, report) = match allocate(code.clone(), options, scratch) {
        Ok(allocated) => (allocated.code, allocated.report),
        Err(error) => return Some(error.to_string()),
    };
    covered.note(code, &after);
    if let Err(error) = after.verify_shape() {
        return Some(error.to_string());
    }
    covered.run += u64::from(run);
    let differs = run && interpret::run(code, 1, 200) != interpret::run(&after, 1, 200);
    differs.then(|| format!("runs differ, {report:?}"))
}

#[test]
fn allocations_are_right() {
    let number = |name: &str, default: u64| match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text}")),
        Err(_) => default,
    };
    let (count, first) = (
        number("THISGPU_ALLOCATIONS", FEW),
        number("THISGPU_SEED", 1),
    );
    let next = AtomicU64::new(first);
    let total = Mutex::new((Covered::default(), Vec::new()));
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        for _ in 0..threads {
            scope.spawn(|| {
                let (mut scratch, mut covered) = (AllocationBuffers::default(), Covered::default());
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    let (shape, options) = case(seed);
                    let code = generate::function(seed, &shape);
                    let run = seed.is_multiple_of(RUN);
                    let found = mistake(&code, &options, run, &mut scratch, &mut covered);
                    if let Some(found) = found {
                        println!("seed {seed}: {found}");
                        total.lock().expect("no panic").1.push(seed);
                    }
                }
                total.lock().expect("no panic").0.add(&covered);
            });
        }
    });
    let (covered, mut wrong) = total.into_inner().expect("no panic");
    println!("seeds {first} to {}: {covered:#?}", first + count - 1);
    wrong.sort_unstable();
    if let Some(&seed) = wrong.first() {
        let (shape, options) = case(seed);
        let fails = |code: &VCode<VReg>| {
            let (mut scratch, mut covered) = (AllocationBuffers::default(), Covered::default());
            mistake(code, &options, true, &mut scratch, &mut covered).is_some()
        };
        let small = reduce::reduced(generate::function(seed, &shape), fails);
        panic!(
            "{} of {count} wrong; seed {seed}, {options:?}, {shape:?}, reduced:\n{small}",
            wrong.len()
        );
    }
    let least = [
        covered.spills,
        covered.calls,
        covered.wide,
        covered.guarded,
        covered.uniform,
        covered.loops,
        covered.tail_calls,
    ];
    assert!(
        count < FEW || least.iter().all(|n| 20 * n > count),
        "{covered:?}"
    );
}
/// Seeds that were wrong once.
#[test]
fn once_wrong() {
    // A slot of regalloc2 was the register of a wide result's word that nobody reads.
    let slots = [1_011_430, 1_015_000, 1_048_509, 1_069_585, 1_084_713];
    // Predicates lived across calls and loops for parameters that nobody reads, in the last one round in a circle.
    let unread = [122_537, 200_755, 1_078_954];
    for seed in slots.into_iter().chain(unread) {
        let (shape, options) = case(seed);
        let code = generate::function(seed, &shape);
        let (mut scratch, mut covered) = (AllocationBuffers::default(), Covered::default());
        let found = mistake(&code, &options, true, &mut scratch, &mut covered);
        assert_eq!(found, None, "seed {seed}");
        assert_eq!(covered.functions, 1);
    }
}
