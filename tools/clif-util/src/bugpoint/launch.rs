//! `clif-util bugpoint FILE TARGET --kernel NAME …`: makes a launch smaller that goes wrong.
//!
//! Wrong is a panic or an internal error, a fault, a hazard, a finding, and with `--against` what other settings would
//! not leave in the buffers. Functions, threads, ways of branches, instructions and settings are taken away as long as
//! the launch goes wrong in the same way. What is smaller may run for ever, so it may issue a few times what the whole
//! launch did. What reads memory that nobody wrote, or whose threads race, may leave anything: with `--against` a check
//! has to find nothing, if it finds nothing in the whole launch.

use crate::launch::{LaunchArgument, parse_extent};
use crate::options::parse_setting;
use anyhow::{Result, bail};
use clap::Args;
use cranelift_codegen::ir::Function;
use cranelift_thisgpu::compile::{Code, Compiler, SourceFile};
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::error::Problem;
use cranelift_thisgpu::launch::{AccessKind, FindingKind};
use cranelift_thisgpu::sim::{Fault, FaultKind, Report, SimConfig};
use std::fmt::Write;
use std::mem::{Discriminant, discriminant};
use std::str::FromStr;
use thisgpu_filetests::file::{TARGET, settings_of};
use thisgpu_filetests::panics;
use thisgpu_filetests::reduce::{Reducer, STEPS_OF_LAUNCHES};

/// What a smaller launch may issue, times what the whole one did (assigned).
const PATIENCE: u64 = 4;
/// What it may issue at least (assigned).
const LEAST_BUDGET: u64 = 4096;

/// Options of a launch.
#[derive(Args)]
pub struct LaunchOptions {
    /// Make a launch of this kernel smaller that goes wrong: the compiler or the simulator fails, or there is a fault,
    /// a hazard, a finding or a difference.
    #[arg(long, value_name = "NAME", requires_all = ["grid", "block"])]
    pub kernel: Option<String>,
    /// Blocks.
    #[arg(long, value_name = "X[,Y,Z]", value_parser = parse_extent, requires = "kernel")]
    grid: Option<[u32; 3]>,
    /// Threads of a block.
    #[arg(long, value_name = "X[,Y,Z]", value_parser = parse_extent, requires = "kernel")]
    block: Option<[u32; 3]>,
    /// Dynamic shared memory.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared: u32,
    /// The next argument, as `launch` has them.
    #[arg(
        long = "arg",
        value_name = "KIND:VALUE",
        allow_hyphen_values = true,
        requires = "kernel"
    )]
    arguments: Vec<Given>,
    /// Count cycles and look for hazards.
    #[arg(long, requires = "kernel")]
    timed: bool,
    /// Look for what `launch --check` looks for.
    #[arg(long, requires = "kernel")]
    check: bool,
    /// Lanes of a warp that run together, 1 to 32.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=32))]
    warp_lanes: u32,
    /// It is wrong when, with this setting over the others, the buffers would hold something else.
    #[arg(long, value_name = "K=V", value_parser = parse_setting, requires = "kernel")]
    against: Vec<String>,
}

/// An argument, and how it was written.
#[derive(Clone)]
struct Given {
    text: String,
    argument: LaunchArgument,
}

impl FromStr for Given {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self {
            text: text.to_owned(),
            argument: text.parse()?,
        })
    }
}

/// A launch that may become smaller.
#[derive(Clone, PartialEq)]
struct Launch {
    /// Functions with their marks.
    functions: Vec<(String, Function)>,
    settings: Vec<String>,
    grid: [u32; 3],
    block: [u32; 3],
}

impl Launch {
    /// As a file.
    fn text(&self) -> String {
        let mut text = String::new();
        for setting in &self.settings {
            // Writing to a string cannot fail.
            _ = writeln!(text, "set {setting}");
        }
        _ = writeln!(text, "target {TARGET}");
        for (mark, func) in &self.functions {
            _ = write!(text, "\n{mark}{func}");
        }
        text
    }
}

/// How a launch goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Internal,
    Fault(Discriminant<FaultKind>, Option<Access>),
    Hazard,
    Finding(Discriminant<FindingKind>),
    Contents,
}

/// An access that cannot be made, so that one does not become another while the launch gets smaller.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Access {
    access: AccessKind,
    bytes: u32,
    /// Through a pointer to nothing, or to something that is not there.
    is_null: bool,
}

impl Access {
    fn of(fault: &FaultKind) -> Option<Access> {
        let (FaultKind::OutOfBounds {
            access,
            address,
            bytes,
            ..
        }
        | FaultKind::Misaligned {
            access,
            address,
            bytes,
            ..
        }
        | FaultKind::ReadOnly {
            access,
            address,
            bytes,
        }) = *fault
        else {
            return None;
        };
        Some(Access {
            access,
            bytes,
            is_null: address < NULL_PAGE,
        })
    }
}

/// Addresses below this are those of fields behind a null pointer (*assumed*, as processes have it).
const NULL_PAGE: u64 = 4096;

/// What came of a launch.
enum Outcome {
    /// A panic or an internal error.
    Broken(String),
    /// It ran, to its end or a fault, and left this in its buffers.
    Ran(Box<Report>, Vec<(usize, Vec<u8>)>),
}

/// Makes a launch smaller.
struct Search<'a> {
    options: &'a LaunchOptions,
    kernel: &'a str,
    /// What a warp may issue.
    budget: u64,
    /// Whether a check has to find nothing before contents are compared.
    clean: bool,
    /// Is told of each launch that is tried.
    tried: &'a dyn Fn(&Launch),
    verbose: bool,
}

impl LaunchOptions {
    /// The smallest launch of `kernel` found, as a file that says in comments what is wrong and how it is launched.
    ///
    /// # Errors
    /// When nothing is wrong, or the kernel cannot be launched.
    pub fn reduce(
        &self,
        kernel: &str,
        functions: Vec<(String, Function)>,
        settings: Vec<String>,
        verbose: bool,
        tried: &dyn Fn(usize),
    ) -> Result<String> {
        let whole = Launch {
            functions,
            settings,
            grid: self.grid.unwrap_or([1; 3]),
            block: self.block.unwrap_or([1; 3]),
        };
        let tried = |launch: &Launch| {
            let functions = launch.functions.iter();
            tried(functions.map(|(_, func)| super::instructions(func)).sum());
        };
        let mut search = Search {
            options: self,
            kernel,
            budget: SimConfig::default().budget,
            clean: false,
            tried: &tried,
            verbose,
        };
        let Some((kind, _)) = search.wrong(&whole)? else {
            bail!("%{kernel}: nothing is wrong with this launch");
        };
        search.limit(&whole)?;
        let small = search.smallest(whole, kind);
        let message = search
            .wrong(&small)?
            .map_or(String::new(), |(_, message)| message);
        let message = message.lines().next().unwrap_or_default();
        let line = self.command(kernel, &small);
        Ok(format!(";; {message}\n;; {line}\n{}", small.text()))
    }

    /// The command that launches it.
    fn command(&self, kernel: &str, launch: &Launch) -> String {
        let extent = |of: [u32; 3]| of.map(|n| n.to_string()).join(",");
        let (grid, block) = (extent(launch.grid), extent(launch.block));
        let mut line =
            format!("clif-util launch FILE --kernel {kernel} --grid {grid} --block {block}");
        let mut add = |words: &str| line = format!("{line} {words}");
        if self.shared > 0 {
            add(&format!("--shared {}", self.shared));
        }
        (self.arguments.iter()).for_each(|given| add(&format!("--arg {}", given.text)));
        for (flag, given) in [("--timed", self.timed), ("--check", self.check)] {
            if given {
                add(flag);
            }
        }
        if self.warp_lanes != 32 {
            add(&format!("--warp-lanes {}", self.warp_lanes));
        }
        (self.against.iter()).for_each(|setting| add(&format!("; against --set {setting}")));
        line
    }
}

impl Search<'_> {
    /// Learns from the whole launch what smaller ones may issue, and whether checks find nothing in it.
    fn limit(&mut self, whole: &Launch) -> Result<()> {
        if let Outcome::Ran(report, _) = self.run(whole, &[], self.options.check)?
            && !report.fault.as_ref().is_some_and(is_endless)
        {
            self.budget = (report.stats.warp_instructions * PATIENCE).max(LEAST_BUDGET);
        }
        if !self.options.against.is_empty()
            && let Outcome::Ran(report, _) = self.run(whole, &self.options.against, true)?
        {
            self.clean = report.fault.is_none() && report.findings.is_empty();
        }
        Ok(())
    }

    /// Compiles and runs a launch, with settings over its own.
    ///
    /// # Errors
    /// What is wrong with the file or the launch, by no mistake of ours.
    fn run(&self, launch: &Launch, over: &[String], check: bool) -> Result<Outcome> {
        let done = panics::catch(|| -> Result<Outcome> {
            // Behind the two lines that the result begins with.
            let file = SourceFile::parse("FILE", &format!(";;\n;;\n{}", launch.text()))?;
            let mut options = settings_of(&file, over, true).map_err(anyhow::Error::msg)?;
            options.stack_redzones |= check;
            let code = match Compiler::new(options).file(&file) {
                Ok(code) => code,
                Err(errors) => {
                    let internal =
                        errors
                            .as_slice()
                            .iter()
                            .find_map(|error| match &error.problem {
                                Problem::Internal(message) => Some(message.clone()),
                                _ => None,
                            });
                    return internal.map(Outcome::Broken).ok_or_else(|| errors.into());
                }
            };
            self.launched(&code, launch, check)
        });
        done.unwrap_or_else(|panic| Ok(Outcome::Broken(panic)))
    }

    fn launched(&self, code: &Code, launch: &Launch, check: bool) -> Result<Outcome> {
        let device = Device::simulator(SimConfig {
            timed: self.options.timed,
            check,
            warp_lanes: self.options.warp_lanes,
            budget: self.budget,
            ..SimConfig::default()
        });
        let kernel = device.load(code)?.kernel(self.kernel)?;
        let prepared = (self.options.arguments.iter().enumerate())
            .map(|(index, given)| given.argument.prepare(&device, index))
            .collect::<Result<Vec<_>>>()?;
        let grid = kernel.launch(Grid::new(launch.grid, launch.block));
        let all = (prepared.iter()).fold(grid.shared(self.options.shared), |all, one| all.arg(one));
        let report = all.run_to_report()?;
        let mut contents = Vec::new();
        for (index, argument) in prepared.iter().enumerate() {
            contents.extend(argument.result()?.map(|bytes| (index, bytes)));
        }
        Ok(Outcome::Ran(Box::new(report), contents))
    }

    /// How a launch goes wrong, if it does.
    ///
    /// # Errors
    /// When it cannot be made.
    fn wrong(&self, launch: &Launch) -> Result<Option<(Kind, String)>> {
        (self.tried)(launch);
        let (report, contents) = match self.run(launch, &[], self.options.check)? {
            Outcome::Broken(message) => return Ok(Some((Kind::Internal, message))),
            Outcome::Ran(report, contents) => (report, contents),
        };
        if let Some(fault) = &report.fault {
            let kind = Kind::Fault(discriminant(&fault.kind), Access::of(&fault.kind));
            return Ok(Some((kind, fault.to_string())));
        }
        if let Some(hazard) = report.hazards.first() {
            return Ok(Some((Kind::Hazard, hazard.to_string())));
        }
        if let Some(finding) = report.findings.first() {
            let kind = Kind::Finding(discriminant(&finding.kind));
            return Ok(Some((kind, finding.to_string())));
        }
        if self.options.against.is_empty() {
            return Ok(None);
        }
        let Outcome::Ran(report, others) = self.run(launch, &self.options.against, true)? else {
            return Ok(None);
        };
        if report.fault.is_some() || self.clean && !report.findings.is_empty() {
            return Ok(None);
        }
        Ok(different(&contents, &others).map(|message| (Kind::Contents, message)))
    }

    /// Whether a smaller launch goes wrong in the same way.
    fn same(&self, launch: &Launch, kind: Kind) -> bool {
        matches!(self.wrong(launch), Ok(Some((found, _))) if found == kind)
    }

    /// The smallest launch found.
    fn smallest(&self, mut launch: Launch, kind: Kind) -> Launch {
        loop {
            let before = launch.clone();
            self.each(&mut launch, kind, |launch, place| {
                let (_, func) = launch.functions.get(place)?;
                if func.name.to_string() != format!("%{}", self.kernel) {
                    launch.functions.remove(place);
                }
                Some(())
            });
            self.each(&mut launch, kind, |launch, place| {
                (place < launch.settings.len()).then(|| drop(launch.settings.remove(place)))
            });
            self.each(&mut launch, kind, smaller_extent);
            for index in 0..launch.functions.len() {
                let func = launch.functions[index].1.clone();
                let fails = |func: &Function| {
                    let mut candidate = launch.clone();
                    candidate.functions[index].1 = func.clone();
                    self.same(&candidate, kind)
                };
                let reducer = Reducer {
                    fails: &fails,
                    steps: &STEPS_OF_LAUNCHES,
                    verbose: self.verbose,
                };
                let reduced = reducer.reduce(func);
                launch.functions[index].1 = reduced;
            }
            if launch == before {
                return launch;
            }
        }
    }

    /// Tries a step at each of its places.
    fn each(
        &self,
        launch: &mut Launch,
        kind: Kind,
        step: impl Fn(&mut Launch, usize) -> Option<()>,
    ) {
        let mut place = 0;
        loop {
            let mut candidate = launch.clone();
            if step(&mut candidate, place).is_none() {
                return;
            }
            if candidate != *launch && self.same(&candidate, kind) {
                *launch = candidate;
            } else {
                place += 1;
            }
        }
    }
}

/// Whether a launch was ended because it had issued too much.
fn is_endless(fault: &Fault) -> bool {
    matches!(
        fault.kind,
        FaultKind::BudgetExhausted { .. }
            | FaultKind::LaunchBudgetExhausted { .. }
            | FaultKind::Endless { .. }
    )
}

/// An extent becomes 1, half of it, or one less.
fn smaller_extent(launch: &mut Launch, place: usize) -> Option<()> {
    let (grid, block) = (launch.grid.iter_mut(), launch.block.iter_mut());
    let extent = grid.chain(block).nth(place / 3)?;
    *extent = match place % 3 {
        0 => 1.min(*extent),
        1 => extent.div_ceil(2),
        _ => extent.saturating_sub(1).max(1),
    };
    Some(())
}

/// The first byte in which contents differ.
fn different(found: &[(usize, Vec<u8>)], others: &[(usize, Vec<u8>)]) -> Option<String> {
    let mut pairs = found.iter().zip(others);
    pairs.find_map(|((argument, found), (_, other))| {
        let at = found.iter().zip(other).position(|(found, other)| found != other)?;
        let (found, other) = (found[at], other[at]);
        Some(format!("byte {at} of argument {argument} is {found:#04x}, and {other:#04x} with the other settings"))
    })
}
