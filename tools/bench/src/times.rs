//! Times: every function by the reference and in every compared setting in turn, the fastest round of each.
//!
//! Each function is compiled once by all to warm up; memory of all compilers is reused. What announcing a file's
//! functions to the unit takes is shared among them by their instructions. No clock runs inside the compilers that is
//! not asked for; around each compilation there is one.

use crate::corpus::{self, Class, Source};
use crate::reference::Reference;
use crate::subject::{Refusal, Subject};
use crate::table::{Cell, Measure, Skipped, Table};
use cranelift_thisgpu::compile::{FunctionInput, Unit};
use cranelift_thisgpu::compile::{SourceFile, SourceFunction};
use std::time::{Duration, Instant};

/// A function that has taken so long is not compiled again.
const ENOUGH: Duration = Duration::from_secs(5);

/// The costs of one function.
pub struct Row {
    /// Source, file and function.
    pub name: String,
    /// Microseconds.
    pub cell: Cell,
}

/// Who compiles.
pub struct Compilers<'a> {
    /// This compiler in all settings.
    pub subjects: &'a mut [Subject],
    /// The other one, unless this compiler runs alone.
    pub reference: Option<&'a mut Reference>,
    /// Timed rounds.
    pub rounds: u32,
}

/// Compiles everything; the rows are in the order of the sources.
pub fn measure(sources: &[Source], mut compilers: Compilers<'_>) -> (Table, Vec<Row>) {
    let labels = compilers.subjects.iter().map(|s| s.label.clone()).collect();
    let with_reference = compilers.reference.is_some();
    let mut table = Table::new(Measure::Microseconds, with_reference, labels, sources);
    let mut rows = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        for file in &source.files {
            let (unit, announced) = compilers.announce(&file.text);
            let all: usize = (file.text.functions.iter())
                .map(|function| corpus::size(&function.func))
                .sum();
            for function in &file.text.functions {
                let clif = corpus::size(&function.func);
                let Some((theirs, ours)) = compilers.time(function, &unit, table.skipped(index))
                else {
                    continue;
                };
                let micros = |time: Duration| time.as_secs_f64() * 1e6;
                let share = micros(announced) * clif as f64 / all.max(1) as f64;
                let cell = Cell {
                    functions: 1,
                    clif,
                    reference: micros(theirs),
                    subjects: ours.iter().map(|&time| micros(time) + share).collect(),
                };
                table.add(index, Class::of(clif), &cell);
                let name = format!("{}: {} {}", source.name, file.name, function.name());
                rows.push(Row { name, cell });
            }
        }
    }
    (table, rows)
}

impl Compilers<'_> {
    /// A unit that knows the functions of a file, and the shortest time for it.
    fn announce(&self, file: &SourceFile) -> (Unit, Duration) {
        let (unit, mut fastest) = Subject::announce(file);
        for _ in 1..self.rounds {
            fastest = fastest.min(Subject::announce(file).1);
        }
        (unit, fastest)
    }

    /// The fastest rounds of the reference and of each subject; none when one of them does not compile the function.
    fn time(
        &mut self,
        function: &SourceFunction,
        unit: &Unit,
        skipped: &mut Skipped,
    ) -> Option<(Duration, Vec<Duration>)> {
        let name = function.name();
        let input = FunctionInput::of_source(function, &name);
        let start = Instant::now();
        for subject in self.subjects.iter_mut() {
            if let Err(refusal) = subject.compile(&input, &mut unit.clone()) {
                *match refusal {
                    Refusal::Error => &mut skipped.ours,
                    Refusal::Panic => &mut skipped.our_panics,
                } += 1;
                return None;
            }
        }
        if let Some(reference) = &mut self.reference
            && let Err(refusal) = reference.compile(&function.func)
        {
            *match refusal {
                Refusal::Error => &mut skipped.theirs,
                Refusal::Panic => &mut skipped.their_panics,
            } += 1;
            return None;
        }
        let mut ours = vec![Duration::MAX; self.subjects.len()];
        let mut theirs = Duration::MAX;
        // Alone there is nothing to compare with, and a profile is the same whatever the number of rounds.
        let rounds = match self.reference {
            Some(_) => self.rounds.max(1),
            None => 1,
        };
        for round in 0..rounds {
            if round > 0 && start.elapsed() > ENOUGH {
                break;
            }
            for (subject, fastest) in self.subjects.iter_mut().zip(&mut ours) {
                *fastest = (*fastest).min(subject.compile(&input, &mut unit.clone()).ok()?);
            }
            if let Some(reference) = &mut self.reference {
                theirs = theirs.min(reference.compile(&function.func).ok()?);
            }
        }
        if self.reference.is_none() {
            theirs = Duration::ZERO;
        } else {
            // The shares of the passes come from a round of their own, because reading the clock takes time.
            for subject in self.subjects.iter_mut() {
                subject.compiler().time_passes(true);
                subject.compile(&input, &mut unit.clone()).ok()?;
                subject.compiler().time_passes(false);
            }
        }
        Some((theirs, ours))
    }
}
