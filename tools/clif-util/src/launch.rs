//! `clif-util launch FILES --kernel NAME`: runs one kernel on the simulator.

mod argument;
mod dearest;
mod fault;
mod numbers;
mod target;
mod watch;

use crate::messages::{self, Usage};
use crate::options::Format;
use crate::{Outcome, input};
use anyhow::{Context, Result, bail, ensure};
use argument::Prepared;
use clap::Args;
use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::sim::{FaultKind, Report, SimConfig, Simd};
use numbers::NumberType;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use argument::LaunchArgument;
pub use fault::Texts;
pub use target::{Target, parse_extent};

/// Options of `launch`.
#[derive(Args)]
#[command(after_help = "Examples:
  clif-util launch k.clif --kernel k --grid 4 --block 32 --arg i32:100 --arg in:x.bin --arg inout:y.bin --out results
  clif-util launch k.clif --kernel k --grid 1 --block 32 --arg in:numbers.txt:f32 --arg zero:128 --print 1:f32
In numbers.txt stand numbers, separated by white space or commas. Types are i8 to i128, u8 to u128, f16, bf16, f32, \
f64, hex.
Exit status: 0 success, 1 a fault, a hazard, a finding or files that cannot be used, 2 a wrong command line.")]
pub struct Options {
    #[command(flatten)]
    target: Target,
    /// Write argN.bin of inout, zero and uninit buffers there, N counting all arguments from 0.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the buffer of this argument, counting from 0, as numbers: i8 to i128, u8 to u128, f16, bf16, f32, f64 or
    /// hex. Without TYPE that of its text, or hex.
    #[arg(long, value_name = "ARG[:TYPE]")]
    print: Vec<Printed>,
    /// Print counts.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    stats: Option<Format>,
    /// Count cycles and look for hazards.
    #[arg(long)]
    timed: bool,
    /// Write what each instruction cost as JSON: issues, lanes, stalls by reason, sectors, bank conflicts. Implies
    /// --timed.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Print the ten instructions that cost most, and the cycles of all warps by reason. Implies --timed.
    #[arg(long)]
    profile_report: bool,
    /// Write what every warp did in every cycle, in the Chrome trace format. Implies --timed.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Most events of --trace; what does not fit is counted and said.
    #[arg(
        long,
        value_name = "N",
        requires = "trace",
        default_value_t = 1_000_000
    )]
    trace_events: usize,
    /// Look for uninitialised reads, races, barriers reached by a part of the block and uniform writes in divergent
    /// code.
    #[arg(long)]
    check: bool,
    /// Perform accesses of memory out of order, and let warps and blocks take turns at random, as the memory model
    /// allows: what the code does not order may show. The same seed gives the same run.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["timed", "profile", "profile_report", "trace", "check"])]
    weak: Option<u64>,
    /// Warp instructions that a warp may issue [default: 16777216; 2097152 with --check].
    #[arg(long, value_name = "N")]
    budget: Option<u64>,
    /// Lanes of a warp that run together, 1 to 32: with 1, every thread goes its own way.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=32))]
    warp_lanes: u32,
    /// Warp instructions that blocks which have not ended may have issued together [default: 134217728; 4194304 with
    /// --check].
    #[arg(long, value_name = "N")]
    launch_budget: Option<u64>,
    /// Bytes of a thread's stack, up to 4 MiB.
    #[arg(long, value_name = "BYTES", default_value_t = SimConfig::default().stack_bytes)]
    stack: u32,
    /// Threads of this computer that run the blocks [default: as many as it runs at a time]. Without
    /// --nondeterministic, results and counts are the same.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: u32,
    /// Run blocks on several threads also where they may wait for each other (atomics on global memory): what depends
    /// on who comes first may then be otherwise each time. Changes nothing with --timed, --check and --weak.
    #[arg(long)]
    nondeterministic: bool,
    /// Vector instructions of this computer that the simulator uses: auto, avx2 or portable. Results are the same.
    #[arg(long, value_name = "WHICH", default_value = "auto", value_parser = parse_simd)]
    simd: Simd,
}

/// Reads which vector instructions are meant.
fn parse_simd(text: &str) -> Result<Simd, String> {
    match text {
        "auto" => Ok(Simd::Auto),
        "avx2" => Ok(Simd::Avx2),
        "portable" => Ok(Simd::Portable),
        _ => Err("expected auto, avx2 or portable".to_string()),
    }
}

/// What `--print` asks for.
#[derive(Clone, Debug, PartialEq)]
struct Printed {
    /// Number of the argument, from 0.
    argument: usize,
    /// What its numbers are.
    ty: Option<NumberType>,
}

impl FromStr for Printed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (argument, ty) = match text.split_once(':') {
            Some((argument, ty)) => (argument, Some(ty.parse()?)),
            None => (text, None),
        };
        let argument = argument.parse().map_err(|_| {
            format!("`{argument}` is no number of an argument; the first --arg is 0")
        })?;
        Ok(Self { argument, ty })
    }
}

impl Options {
    /// Refuses what cannot be meant.
    fn check_usage(&self) -> Result<()> {
        let inputs = self.target.inputs()?;
        if let Some(profile) = &self.profile {
            input::check_output("--profile", profile, inputs.iter().chain(&self.trace))?;
        }
        if let Some(trace) = &self.trace {
            input::check_output("--trace", trace, &inputs)?;
        }
        for Printed { argument, .. } in &self.print {
            match self.target.arguments.get(*argument) {
                Some(given) if given.is_buffer() => {}
                Some(_) => bail!(Usage(format!(
                    "--print {argument}: argument {argument} is a number and no buffer"
                ))),
                None => bail!(Usage(format!(
                    "--print {argument}: there is no argument {argument}; there are {}, the first is 0",
                    self.target.arguments.len()
                ))),
            }
        }
        Ok(())
    }

    /// What a printed buffer holds.
    fn type_of(&self, printed: &Printed) -> NumberType {
        let said = || self.target.arguments[printed.argument].number_type();
        printed.ty.or_else(said).unwrap_or(NumberType::Hex)
    }

    /// Refuses buffers that are no whole number of what they are to be printed as.
    fn check_sizes(&self, arguments: &[Prepared]) -> Result<()> {
        for printed in &self.print {
            let (ty, size) = (self.type_of(printed), arguments[printed.argument].size());
            ensure!(
                size % ty.bytes() as u64 == 0,
                "--print {}: the {size} bytes of this buffer are no whole number of {}, of {} bytes each",
                printed.argument,
                ty.name(),
                ty.bytes()
            );
        }
        Ok(())
    }

    /// Prints the buffers that are asked for.
    fn print_buffers(&self, arguments: &[Prepared]) -> Result<()> {
        for printed in &self.print {
            let bytes = arguments[printed.argument].contents()?;
            let name = format!("arg{}", printed.argument);
            let text = self.type_of(printed).show_all(&name, &bytes);
            input::write(Path::new("-"), text.as_bytes())?;
        }
        Ok(())
    }

    /// Compiles or reads the file and runs the kernel.
    pub fn run(self) -> Result<Outcome> {
        self.check_usage()?;
        let mut texts = Texts::new();
        let amend = |options: &mut cranelift_thisgpu::settings::Options| {
            options.stack_redzones |= self.check
        };
        let object = self.target.object(&amend, &mut texts)?;
        let defaults = SimConfig::default();
        let device = Device::simulator(SimConfig {
            timed: self.timed || self.profiles() || self.trace.is_some(),
            profile: self.profiles(),
            trace_events: self.trace.as_ref().map(|_| self.trace_events),
            check: self.check,
            weak: self.weak,
            budget: self.budget.unwrap_or(defaults.budget),
            warp_lanes: self.warp_lanes,
            threads: self.threads,
            deterministic: !self.nondeterministic,
            simd: self.simd,
            launch_budget: self.launch_budget.unwrap_or(defaults.launch_budget),
            stack_bytes: self.stack,
            ..defaults
        });
        let (kernel, arguments) = self.target.load(&device, &object)?;
        self.check_sizes(&arguments)?;
        let launch = self.target.launch(&kernel, &arguments);
        let report = watch::watched(|progress| launch.progress(progress).run_to_report())?;
        messages::print_kind("hazard", &report.hazards);
        messages::print_kind("finding", &report.findings);
        if let Some(fault) = &report.fault {
            fault::print(fault, &object, &texts);
        }
        self.write_records(&report)?;
        if let Some(profile) = report.profile.as_ref().filter(|_| self.profile_report) {
            let text = dearest::report(profile);
            input::write(Path::new("-"), text.as_bytes())?;
        }
        let cancelled = matches!(&report.fault, Some(fault) if matches!(fault.kind, FaultKind::Cancelled { .. }));
        // Who breaks off a launch wants to know how far it came.
        if let Some(format) = self.stats.or(cancelled.then_some(Format::Text)) {
            input::print_line(stats(&report, format)?)?;
        }
        // What was stored before a fault is there.
        self.print_buffers(&arguments)?;
        if let Some(directory) = &self.out {
            write_buffers(directory, &arguments)?;
        }
        Ok(outcome(&report))
    }

    /// Whether a profile is wanted, for a file or a report.
    fn profiles(&self) -> bool {
        self.profile.is_some() || self.profile_report
    }

    /// Writes the profile and the trace, also of a launch that ended in a fault.
    fn write_records(&self, report: &Report) -> Result<()> {
        if let (Some(path), Some(profile)) = (&self.profile, &report.profile) {
            input::write(path, (serde_json::to_string(profile)? + "\n").as_bytes())?;
        }
        if let (Some(path), Some(trace)) = (&self.trace, &report.trace) {
            input::write(path, (serde_json::to_string(trace)? + "\n").as_bytes())?;
            if trace.dropped > 0 {
                let (kept, dropped) = (trace.events.len(), trace.dropped);
                messages::print_warnings(&[format!(
                    "the trace has the first {kept} events, {dropped} more do not fit; see --trace-events"
                )]);
            }
        }
        Ok(())
    }
}

/// Faults, hazards and findings are failures.
fn outcome(report: &Report) -> Outcome {
    if report.fault.is_none() && report.hazards.is_empty() && report.findings.is_empty() {
        Outcome::Success
    } else {
        Outcome::Failure
    }
}

/// The counts, and for programs the fault.
fn stats(report: &Report, format: Format) -> Result<String> {
    let stats = &report.stats;
    Ok(match format {
        Format::Text => [
            (stats.cycles, "cycle"),
            (stats.warp_instructions, "warp instruction"),
            (stats.thread_instructions, "thread instruction"),
            (stats.hazards, "hazard"),
            (stats.faults, "fault"),
        ]
        .map(|(number, thing)| messages::counted(number, thing))
        .join(", "),
        Format::Json => {
            let mut whole = serde_json::to_value(stats)?;
            if let Some(fault) = &report.fault {
                let mut value = serde_json::to_value(fault)?;
                value["message"] = fault.to_string().into();
                whole["fault"] = value;
            }
            whole.to_string()
        }
    })
}

/// Writes the buffers that the kernel may have changed.
fn write_buffers(directory: &Path, arguments: &[Prepared]) -> Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    for (index, argument) in arguments.iter().enumerate() {
        if let Some(bytes) = argument.result()? {
            input::write(&directory.join(format!("arg{index}.bin")), &bytes)?;
        }
    }
    Ok(())
}
