//! Watching a compilation: time per pass, dumps after passes, verification after passes.

use super::Pass;
use super::time_trace::Recorder;
use crate::error::{Error, Errors, Place, Problem};
use crate::regalloc::AllocationSummary;
use crate::report::CodeReport;
use std::fmt;
use std::time::{Duration, Instant};

/// What a pass makes: it prints, and it can say what is wrong with it.
pub(super) trait Stage: fmt::Display {
    /// The first broken rule of this stage, if any.
    fn defect(&self) -> Option<String>;
}

/// Takes the text of a function after a pass.
pub type DumpSink = Box<dyn FnMut(&Dump<'_>) + Send>;

/// A function after a pass.
#[derive(Clone, Copy, Debug)]
pub struct Dump<'a> {
    /// The pass.
    pub pass: Pass,
    /// Name of the function.
    pub function: &'a str,
    /// Its text. With sources ([`super::Compiler::dump_sources`]) the line of an instruction that has a place in the
    /// source begins with its number, as Cranelift writes it: `@001f`.
    pub text: &'a str,
    /// What there is to see of it, if that was asked for ([`super::Compiler::report_code`]); after [`Pass::Control`]
    /// only.
    pub report: Option<&'a CodeReport>,
}

/// Time spent in each pass, and who assigned the registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    times: [Duration; Pass::ALL.len()],
    registers: AllocationSummary,
    fallbacks: u32,
}

impl Timings {
    /// Time spent in a pass.
    pub fn of(&self, pass: Pass) -> Duration {
        self.times[pass as usize]
    }

    /// How the registers of all functions were found.
    pub fn registers(&self) -> AllocationSummary {
        self.registers
    }

    /// Functions that regalloc2 was to allocate and did not ([`crate::regalloc::Fallback`]).
    pub fn fallbacks(&self) -> u32 {
        self.fallbacks
    }

    /// Counts how a function's registers were found.
    pub(super) fn count_registers(&mut self, source: AllocationSummary) {
        self.registers.entries += source.entries;
        self.registers.by_regalloc2 += source.by_regalloc2;
        self.registers.fixed += source.fixed;
        self.fallbacks += u32::from(source.fallback.is_some());
    }

    /// Adds what another compiler has spent.
    pub fn add(&mut self, other: &Timings) {
        for (time, more) in self.times.iter_mut().zip(other.times) {
            *time += more;
        }
        self.count_registers(AllocationSummary {
            fallback: None,
            ..other.registers
        });
        self.fallbacks += other.fallbacks;
    }

    /// Time spent in all passes.
    pub fn total(&self) -> Duration {
        self.times.iter().sum()
    }
}

impl fmt::Display for Timings {
    /// A table with milliseconds and percentages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let total = milliseconds(self.total());
        for pass in Pass::ALL {
            let time = milliseconds(self.of(pass));
            let share = if total > 0.0 {
                100.0 * time / total
            } else {
                0.0
            };
            writeln!(f, "{:<16}{time:>10.3} ms {share:>5.1} %", pass.name())?;
        }
        writeln!(f, "{:<16}{total:>10.3} ms", "total")?;
        let AllocationSummary {
            entries,
            by_regalloc2,
            fixed,
            ..
        } = self.registers;
        let percent = |part: u32| 100.0 * f64::from(part) / f64::from(entries.max(1));
        writeln!(
            f,
            "registers of {entries} operands: {:.1} % by regalloc2 ({:.1} % in places fixed for it), the rest by the \
             colouring and the convention",
            percent(by_regalloc2),
            percent(fixed)
        )?;
        if self.fallbacks > 0 {
            writeln!(
                f,
                "functions that regalloc2 did not allocate (remarks say why): {}",
                self.fallbacks
            )?;
        }
        Ok(())
    }
}

/// Why a function is not compiled to the end.
pub(super) enum Halt {
    /// Something is wrong with it.
    Failed(Errors),
    /// It was to stop there ([`super::Compiler::stop_after`]).
    Stopped,
}

impl From<Errors> for Halt {
    fn from(errors: Errors) -> Self {
        Self::Failed(errors)
    }
}

/// What is observed while functions are compiled.
#[derive(Default)]
pub(super) struct Watch {
    pub timings: Timings,
    /// Whether the clock is read at all: for a small function that costs as much as a short pass.
    pub timed: bool,
    /// Keeps when passes run, if that was asked for.
    pub recorder: Option<Recorder>,
    /// Whether remarks are collected.
    pub remarks: bool,
    /// Whether it is found how long blocks take.
    pub cycles: bool,
    /// Whether dumps say where instructions come from.
    pub sources: bool,
    /// Whether what there is to see of the code is reported.
    pub reports: bool,
    pub verify: bool,
    pub dumps: Vec<Pass>,
    pub sink: Option<DumpSink>,
    /// The pass after which functions are given up.
    pub last: Option<Pass>,
}

impl Watch {
    /// Gives a function up after the last pass that is wanted.
    pub fn stop(&self, pass: Pass) -> Result<(), Halt> {
        match self.last == Some(pass) {
            true => Err(Halt::Stopped),
            false => Ok(()),
        }
    }

    /// Whether what passes make is checked.
    pub(super) fn verifies(&self) -> bool {
        self.verify
    }

    /// Runs a pass whose result needs no observation.
    pub fn time<T>(&mut self, pass: Pass, run: impl FnOnce() -> T) -> T {
        let start = self.start();
        let result = run();
        self.count(pass, start);
        result
    }

    /// Now, if times are counted or recorded.
    pub fn start(&self) -> Option<Instant> {
        (self.timed || self.recorder.is_some()).then(Instant::now)
    }

    /// A function begins; what [`Watch::leave`] takes.
    pub fn enter(&mut self, function: &str) -> Option<Instant> {
        let recorder = self.recorder.as_mut()?;
        recorder.enter(function);
        Some(Instant::now())
    }

    /// A function is compiled.
    pub fn leave(&mut self, start: Option<Instant>) {
        if let Some((recorder, start)) = self.recorder.as_mut().zip(start) {
            recorder.record(None, start, start.elapsed());
        }
    }

    /// Runs a pass, verifies and dumps what it makes.
    ///
    /// # Errors
    /// Those of the pass, an internal error for a broken rule of the result, and the end if it is the last pass.
    pub fn pass<T: Stage>(
        &mut self,
        pass: Pass,
        function: &str,
        run: impl FnOnce() -> Result<T, Errors>,
    ) -> Result<T, Halt> {
        let result = self.time(pass, run);
        if (self.verify || self.sink.is_some())
            && let Ok(made) = &result
        {
            self.dump(pass, function, made, None);
            if let Some(defect) = self.verify.then(|| made.defect()).flatten() {
                let message = format!("after {}: {defect}", pass.name());
                return Err(internal(function, message).into());
            }
        }
        if result.is_ok() {
            self.stop(pass)?;
        }
        // Handed on as it is: what passes make is large.
        result.map_err(Halt::Failed)
    }

    /// Counts the time since `start` for a pass, and records it.
    pub fn count(&mut self, pass: Pass, start: Option<Instant>) {
        if let Some(start) = start {
            let elapsed = start.elapsed();
            if self.timed {
                self.timings.times[pass as usize] += elapsed;
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.record(Some(pass), start, elapsed);
            }
        }
    }

    /// Hands the text to the sink if a dump of this pass is wanted, with the report if there is one.
    pub fn dump(
        &mut self,
        pass: Pass,
        function: &str,
        text: &dyn fmt::Display,
        report: Option<&CodeReport>,
    ) {
        if let Some(sink) = &mut self.sink
            && self.dumps.contains(&pass)
        {
            let text = match self.sources {
                true => format!("{text:#}"),
                false => text.to_string(),
            };
            sink(&Dump {
                pass,
                function,
                text: &text,
                report,
            });
        }
    }
}

/// An internal error in `function`.
pub(super) fn internal(function: &str, message: String) -> Errors {
    let place = Place {
        function: Some(format!("%{function}").into()),
        ..Place::default()
    };
    Error::new(Problem::Internal(message), place).into()
}
