//! One kernel on the simulator.

use super::emit;
use super::execute::{Expected, execute};
use super::kernel::{Kernel, MASKS, RECORD, VALUES};
use crate::random::Random;
use cranelift_thisgpu::compile::{Code, Compiler};
use cranelift_thisgpu::driver::{self, Buffer, Device, DeviceError, DevicePointer, Grid, Launch};
use cranelift_thisgpu::launch::Report;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use cranelift_thisgpu::sim::debug::{Session, Stop};
use std::fmt;
use thisgpu_filetests::panics;

/// Warp instructions that a warp may issue (measured: a quarter of a million is too few for one lock in a thousand).
pub(super) const BUDGET: u64 = 1 << 21;
/// Warp instructions of a launch: warps of one lane are up to 192.
pub(super) const LAUNCH_BUDGET: u64 = 1 << 25;

/// Random turns in which a graph runs, for each setting.
const TURNS: u64 = 2;

/// How a kernel is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Warps of one lane: nobody waits for anybody.
    Alone,
    /// Functional, with checks.
    Functional,
    /// Timed, with checks.
    Timed,
    /// Functional, in random turns of this seed, without checks.
    Random(u64),
    /// An instruction at a time, forward and back, with checks.
    Stepped,
}

impl Mode {
    /// All but random turns.
    pub const ALL: [Mode; 4] = [Mode::Alone, Mode::Functional, Mode::Timed, Mode::Stepped];
}

/// The modes: in order, and so many times in random turns.
pub fn modes(seed: u64, random: u64) -> Vec<Mode> {
    let turns = (0..random).map(|turn| Mode::Random(seed.wrapping_mul(64) + turn));
    Mode::ALL.into_iter().chain(turns).collect()
}

/// What is wrong, without its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It does not compile.
    Compile,
    /// The compiler or the simulator panics.
    Panic,
    /// The launch ends in a fault other than an exhausted budget.
    Fault,
    /// It does not end.
    Endless,
    /// Timed mode finds a hazard.
    Hazard,
    /// A check finds something.
    Finding,
    /// Lanes that should be together are not, or the other way round.
    Mask,
    /// Memory differs.
    Value,
}

/// A kernel that fails.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What is wrong.
    pub kind: Kind,
    /// Settings of the compiler.
    pub settings: Vec<String>,
    /// How it ran.
    pub mode: Mode,
    /// What was found.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.settings.join(" ");
        write!(
            f,
            "{:?} [{settings}] {:?}: {}",
            self.kind, self.mode, self.message
        )
    }
}

/// What came of a kernel that does not fail.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    /// Launches.
    pub launches: u64,
    /// Events whose masks are known, in one launch.
    pub masks: u64,
    /// Those of them that show a part of a warp.
    pub partial: u64,
}

/// Passes that can be left out.
const PASSES: [&str; 8] = [
    "if_convert",
    "merge_accesses",
    "hoist",
    "reduce_strength",
    "rotate",
    "rewrite",
    "split_addresses",
    "reorder",
];

/// So many settings for a kernel, by its seed.
pub fn settings(kernel: &Kernel, count: usize) -> Vec<Vec<String>> {
    settings_of(kernel.seed, count)
}

/// So many settings for the kernel of a seed.
pub(super) fn settings_of(seed: u64, count: usize) -> Vec<Vec<String>> {
    let mut random = Random::new(seed).fork(0x5e77);
    let mut all = Vec::new();
    for _ in 0..count {
        const CHOICES: [(&str, &[&str]); 6] = [
            ("opt_level", &["none", "speed", "speed_and_size"]),
            ("regalloc_algorithm", &["backtracking", "single_pass"]),
            ("sched", &["full", "full", "serial"]),
            ("unroll", &["auto", "off", "2", "3", "4"]),
            ("regs", &["254", "40", "24"]),
            ("verify", &["false", "false", "true"]),
        ];
        let choice = CHOICES.map(|(name, values)| format!("{name}={}", random.pick(values)));
        let mut choice = choice.to_vec();
        for pass in PASSES {
            if random.once_in(6) {
                choice.push(format!("{pass}=false"));
            }
        }
        all.push(choice);
    }
    all
}

/// Compiles and runs a kernel in so many settings.
///
/// # Errors
/// The first failure.
pub fn check(kernel: &Kernel, count: usize) -> Result<Passed, Failure> {
    let expected = reference(kernel)?;
    let mut passed = Passed {
        launches: 0,
        masks: expected.known,
        partial: expected.partial,
    };
    let modes = modes(kernel.seed, TURNS);
    for settings in settings(kernel, count) {
        run(kernel, &expected, &settings, &modes)?;
        passed.launches += modes.len() as u64;
    }
    Ok(passed)
}

/// What a kernel should leave.
///
/// # Errors
/// When the reference does not get to its end.
pub fn reference(kernel: &Kernel) -> Result<Expected, Failure> {
    execute(kernel).map_err(|message| Failure {
        kind: Kind::Endless,
        settings: Vec::new(),
        mode: Mode::Alone,
        message: format!("the reference takes {message}"),
    })
}

/// Compiles a kernel and runs it in some modes.
///
/// # Errors
/// What is wrong.
pub fn run(
    kernel: &Kernel,
    expected: &Expected,
    settings: &[String],
    modes: &[Mode],
) -> Result<(), Failure> {
    run_text(
        settings,
        modes,
        || emit::text(kernel),
        |code, mode| launch(kernel, expected, code, mode),
    )
}

/// Compiles a text and has it launched in some modes.
pub(super) fn run_text(
    settings: &[String],
    modes: &[Mode],
    text: impl FnOnce() -> String,
    launch: impl Fn(&Code, Mode) -> Found<()>,
) -> Result<(), Failure> {
    let failure = |mode: Mode, kind: Kind, message: String| Failure {
        kind,
        settings: settings.to_vec(),
        mode,
        message,
    };
    let first = modes.first().copied().unwrap_or(Mode::Alone);
    let code = panics::catch(|| compile(&text(), settings));
    let code = code
        .unwrap_or_else(|panic| Err((Kind::Panic, panic)))
        .map_err(|(kind, message)| failure(first, kind, message))?;
    for &mode in modes {
        let found = panics::catch(|| launch(&code, mode));
        let found = found.unwrap_or_else(|panic| Err((Kind::Panic, panic)));
        found.map_err(|(kind, message)| failure(mode, kind, message))?;
    }
    Ok(())
}

/// What is wrong, if something is.
pub(super) type Found<T> = Result<T, (Kind, String)>;

pub(super) fn compile(text: &str, settings: &[String]) -> Found<Code> {
    let code = Compiler::new(options(settings)?).compile_clif(text);
    code.map_err(|errors| (Kind::Compile, errors.to_string()))
}

/// What settings mean.
pub(super) fn options(settings: &[String]) -> Found<Options> {
    let mut options = Options::default();
    for setting in settings {
        options
            .set(setting)
            .map_err(|error| (Kind::Compile, error.to_string()))?;
    }
    Ok(options)
}

/// A device for a mode, whose warps may issue so many instructions.
pub(super) fn device(mode: Mode, budget: u64) -> Device {
    Device::simulator(SimConfig {
        budget,
        launch_budget: LAUNCH_BUDGET,
        timed: mode == Mode::Timed,
        check: matches!(mode, Mode::Functional | Mode::Timed | Mode::Stepped),
        warp_lanes: if mode == Mode::Alone { 1 } else { 32 },
        turns: match mode {
            Mode::Random(seed) => Some(seed),
            _ => None,
        },
        ..SimConfig::default()
    })
}

/// Runs a kernel on a device to its end or fault, as if nothing were expected of it.
pub(super) fn run_on(device: &Device, kernel: &Kernel, code: &Code) -> Found<Report> {
    let (report, _) = launched(device, kernel, code, Mode::Functional)?;
    Ok(report)
}

/// Launches a kernel.
fn launched(device: &Device, kernel: &Kernel, code: &Code, mode: Mode) -> Found<(Report, Memory)> {
    let fails = |error: &dyn fmt::Display| (Kind::Fault, error.to_string());
    let module = device.load(code).map_err(|e| fails(&e))?;
    let memory = Memory::new(device, kernel).map_err(|e| fails(&e))?;
    let entry = module.kernel(emit::NAME).map_err(|e| fails(&e))?;
    let report = report(memory.launch(&entry, kernel), mode).map_err(|e| fails(&e))?;
    Ok((report, memory))
}

fn launch(kernel: &Kernel, expected: &Expected, code: &Code, mode: Mode) -> Found<()> {
    let (report, memory) = launched(&device(mode, BUDGET), kernel, code, mode)?;
    let fails = |error: &dyn fmt::Display| (Kind::Fault, error.to_string());
    // A barrier that some threads come to after others of their block have left is legal, but a check may report it.
    judge(&report, !kernel.leaves_early || kernel.spine.is_empty())?;
    let data = memory.data.read::<u8>().map_err(|e| fails(&e))?;
    let records = memory.records.read::<u32>().map_err(|e| fails(&e))?;
    compare_values(expected, &records, &data)?;
    match mode {
        Mode::Alone | Mode::Random(_) => Ok(()),
        _ => compare_masks(expected, &records),
    }
}

/// What a kernel works on.
pub(super) struct Memory {
    records: Buffer<u32>,
    data: Buffer,
    inputs: Buffer<u32>,
}

impl Memory {
    /// As it is before a launch.
    pub fn new(device: &Device, kernel: &Kernel) -> Result<Memory, DeviceError> {
        let threads = kernel.all_threads();
        let inputs: Vec<u32> = (0..threads).map(|thread| kernel.input(thread)).collect();
        Ok(Memory {
            records: device.upload(&vec![0u32; threads as usize * RECORD])?,
            data: device.upload(&initial(kernel))?,
            inputs: device.upload(&inputs)?,
        })
    }

    /// A launch of the kernel.
    pub fn launch<'a>(&self, entry: &'a driver::Kernel, kernel: &Kernel) -> Launch<'a> {
        entry
            .launch(Grid::new([kernel.grid, 1, 1], [kernel.threads, 1, 1]))
            .arg(DevicePointer(self.records.address()))
            .arg(DevicePointer(self.data.address()))
            .arg(DevicePointer(self.inputs.address()))
            .arg(kernel.parameter())
    }
}

/// Runs a launch to its end or fault.
pub(super) fn report(launch: Launch, mode: Mode) -> Result<Report, DeviceError> {
    match mode {
        Mode::Stepped => Ok(stepped(launch.debug()?)),
        _ => launch.run_to_report(),
    }
}

/// Times that a stepped launch goes back.
const TIMES_BACK: u32 = 24;

/// Steps a launch to its end or fault, on the way there back a few times, and then from the end.
fn stepped(mut session: Session) -> Report {
    let mut random = Random::new(0x57e9);
    for _ in 0..TIMES_BACK {
        let most = 1 << random.below(14);
        let forward = 1 + random.below(most);
        for _ in 0..forward {
            if matches!(session.step(), Stop::End | Stop::Fault(_)) {
                break;
            }
        }
        let back = random.below(2 * forward);
        session.step_back(back as u64);
    }
    while !matches!(session.resume(), Stop::End | Stop::Fault(_)) {}
    session.report()
}

/// What a launch reports, and if that is wanted its findings.
pub(super) fn judge(report: &Report, findings: bool) -> Found<()> {
    if let Some(fault) = &report.fault {
        let endless = matches!(
            fault.kind,
            cranelift_thisgpu::sim::FaultKind::BudgetExhausted { .. }
                | cranelift_thisgpu::sim::FaultKind::LaunchBudgetExhausted { .. }
                | cranelift_thisgpu::sim::FaultKind::Endless { .. }
        );
        return Err((
            if endless { Kind::Endless } else { Kind::Fault },
            fault.to_string(),
        ));
    }
    if let Some(hazard) = report.hazards.first() {
        return Err((Kind::Hazard, hazard.to_string()));
    }
    match report.findings.first().filter(|_| findings) {
        Some(finding) => Err((Kind::Finding, finding.to_string())),
        None => Ok(()),
    }
}

/// Contents of `data` before the launch.
fn initial(kernel: &Kernel) -> Vec<u8> {
    let mut data = vec![0; kernel.data_bytes() as usize];
    for (cell, group) in kernel.cells.iter().enumerate() {
        if group.space == super::kernel::Space::Global {
            let (start, bytes) = (kernel.cell_offset(cell) as usize, group.bytes as usize);
            for place in
                data[start..start + super::kernel::GROUP as usize * bytes].chunks_exact_mut(bytes)
            {
                place.copy_from_slice(&kernel.initial(cell).to_le_bytes()[..bytes]);
            }
        }
    }
    data
}

fn compare_values(expected: &Expected, records: &[u32], data: &[u8]) -> Found<()> {
    let values = |index: &usize| *index == 0 || *index >= VALUES;
    for (thread, (wanted, found)) in expected
        .records
        .iter()
        .zip(records.chunks_exact(RECORD))
        .enumerate()
    {
        for index in (0..RECORD).filter(values) {
            if wanted[index].is_some_and(|wanted| wanted != found[index]) {
                let wanted = wanted[index].unwrap_or_default();
                let message = format!(
                    "word {index} of thread {thread} is {:#x}, not {wanted:#x}",
                    found[index]
                );
                return Err((Kind::Value, message));
            }
        }
    }
    match expected
        .data
        .iter()
        .zip(data)
        .position(|(wanted, found)| wanted != found)
    {
        None => Ok(()),
        Some(at) => Err((
            Kind::Value,
            format!(
                "byte {at} of the common data is {:#x}, not {:#x}",
                data[at], expected.data[at]
            ),
        )),
    }
}

fn compare_masks(expected: &Expected, records: &[u32]) -> Found<()> {
    for (thread, (wanted, found)) in expected
        .records
        .iter()
        .zip(records.chunks_exact(RECORD))
        .enumerate()
    {
        for index in MASKS..VALUES {
            if let Some(wanted) = wanted[index].filter(|wanted| *wanted != found[index]) {
                let (event, found) = (index - MASKS, found[index]);
                let message = format!(
                    "event {event} of thread {thread} has the lanes {found:#010x}, not {wanted:#010x}"
                );
                return Err((Kind::Mask, message));
            }
        }
    }
    Ok(())
}
