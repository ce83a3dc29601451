//! How much faster several threads compile a module.
//!
//! The module has as many functions as asked for: those of the sources that compile, over and over under names of their
//! own. Each number of threads compiles it in turn, the fastest round counts, and the objects must be the same. Beside
//! the time that passed stands what hardly depends on other work on the machine: CPU times, and how much faster they
//! say that so many threads are on as many free cores. That takes the work between the start and the end, which all
//! threads share, to be evenly shared; functions are taken a few at a time, so it nearly is.

use crate::corpus::Source;
use crate::subject::Subject;
use anyhow::{Context, Result, bail};
use cranelift_thisgpu::compile::SourceFunction;
use cranelift_thisgpu::compile::{Code, Compiler, FunctionInput, Unit};
use cranelift_thisgpu::settings::Options;
use std::time::{Duration, Instant};

/// The kernel's clock ticks a second, in `/proc/self/stat` (documented: `USER_HZ` is 100 wherever Linux runs).
const TICKS: f64 = 100.0;

/// What a compilation took.
#[derive(Clone, Copy, Default)]
struct Taken {
    wall: Duration,
    /// Seconds of CPU time until the first function is compiled.
    announce: f64,
    /// Seconds of CPU time after the last.
    finish: f64,
    /// Seconds of CPU time of all threads together.
    cpu: f64,
}

impl Taken {
    /// Seconds on as many free cores as threads.
    fn on_free_cores(&self, threads: usize) -> f64 {
        let alone = self.announce + self.finish;
        alone + (self.cpu - alone) / threads as f64
    }
}

/// Prints the table.
///
/// # Errors
/// When nothing compiles, or numbers of threads give different objects.
pub fn table(
    sources: &[Source],
    subject: &mut Subject,
    options: &Options,
    functions: usize,
    threads: &[usize],
    rounds: u32,
) -> Result<()> {
    let compile = compiling(sources, subject);
    if compile.is_empty() {
        bail!("no function compiles");
    }
    let chosen = || compile.iter().cycle().take(functions);
    let names: Vec<String> = (0..functions).map(|i| format!("module_{i}")).collect();
    let inputs: Vec<FunctionInput<'_>> = (chosen().zip(&names))
        .map(|(function, name)| FunctionInput::of_source(function, name))
        .collect();
    let mut fastest = vec![None; threads.len()];
    let mut object: Option<Code> = None;
    for _ in 0..rounds.max(1) {
        for (&count, fastest) in threads.iter().zip(&mut fastest) {
            let (code, taken) = measure(&inputs, options, count)?;
            if object.get_or_insert_with(|| code.clone()) != &code {
                bail!("{count} threads make another object");
            }
            let best = fastest.get_or_insert(taken);
            best.wall = best.wall.min(taken.wall);
            best.announce = best.announce.min(taken.announce);
            best.finish = best.finish.min(taken.finish);
            best.cpu = best.cpu.min(taken.cpu);
        }
    }
    let words = object.map_or(0, |code| {
        let functions = code.object().functions.iter();
        functions.map(|function| function.words.len()).sum()
    });
    println!("{functions} functions, {words} instructions");
    println!(
        "         seconds                CPU seconds: all      before     after    on free cores"
    );
    println!(
        "threads  passed  times as fast                                          times as fast"
    );
    let one = fastest.first().copied().flatten().unwrap_or_default();
    let base = one.on_free_cores(threads.first().copied().unwrap_or(1));
    for (&count, taken) in threads.iter().zip(fastest.into_iter().flatten()) {
        println!(
            "{count:>7} {:>7.3} {:>14.2} {:>20.3} {:>11.3} {:>9.3} {:>16.2}",
            taken.wall.as_secs_f64(),
            one.wall.as_secs_f64() / taken.wall.as_secs_f64(),
            taken.cpu,
            taken.announce,
            taken.finish,
            base / taken.on_free_cores(count),
        );
    }
    Ok(())
}

/// The functions that compile: any number of copies of them is a module.
fn compiling<'a>(sources: &'a [Source], subject: &mut Subject) -> Vec<&'a SourceFunction> {
    let mut found = Vec::new();
    for file in sources.iter().flat_map(|source| &source.files) {
        let (unit, _) = Subject::announce(&file.text);
        for function in &file.text.functions {
            let name = function.name();
            let input = FunctionInput::of_source(function, &name);
            if subject.compile(&input, &mut unit.clone()).is_ok() {
                found.push(function);
            }
        }
    }
    found
}

fn measure(
    inputs: &[FunctionInput<'_>],
    options: &Options,
    threads: usize,
) -> Result<(Code, Taken)> {
    let (before, start) = (process()?, Instant::now());
    let at_start = thread()?;
    let mut unit = Unit::new();
    unit.announce(inputs);
    let announce = thread()? - at_start;
    let mut compiler = Compiler::new(options.clone());
    compiler.compile_announced(inputs, &mut unit, threads)?;
    let at_end = thread()?;
    let code = unit.finish()?;
    let taken = Taken {
        wall: start.elapsed(),
        announce,
        finish: thread()? - at_end,
        cpu: process()? - before,
    };
    Ok((code, taken))
}

/// Seconds of this thread on a processor so far: the first field of `schedstat`, in nanoseconds (proc(5)).
fn thread() -> Result<f64> {
    const PATH: &str = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(PATH).context(PATH)?;
    let nanos: f64 = text.split_whitespace().next().context(PATH)?.parse()?;
    Ok(nanos * 1e-9)
}

/// Seconds of all threads of this process so far.
fn process() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").context("/proc/self/stat")?;
    // The name of the program, in parentheses, may have blanks.
    let (_, fields) = text.rsplit_once(')').context("/proc/self/stat")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |index: usize| -> Result<f64> {
        Ok(fields.get(index).context("/proc/self/stat")?.parse()?)
    };
    // utime and stime, the 14th and 15th field of the line (proc(5)).
    Ok((ticks(11)? + ticks(12)?) / TICKS)
}
