//! Compile time: every function of the given CLIF files through this compiler and through Cranelift's x86-64 back end, in the same run.
//!
//! Only functions that both compile count. Each is compiled once to warm up and then `--rounds` times by both in turn, contexts reused; the fastest
//! round of each counts, so that a busy machine disturbs the ratio little. The mid-end is the same code in both, and both verifiers are off
//! (build with `--release`, where this compiler checks nothing between passes).
//!
//! `--growth` measures functions of its own instead: shapes at several sizes, time and memory an instruction.

mod growth;
mod reference;
mod shapes;
mod size;

use anyhow::{Context, Result, bail};
use clap::Parser;
use cranelift_thisgpu::clif::source::{SourceFile, SourceFunction};
use cranelift_thisgpu::compile::{Compiler, FunctionInput, Pass, Unit};
use cranelift_thisgpu::settings::Options;
use reference::Reference;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Compares compile times.
#[derive(Parser)]
struct Arguments {
    /// CLIF files, or folders to be searched for them.
    #[arg(default_value = "filetests")]
    paths: Vec<PathBuf>,
    /// Timed rounds a function; the fastest counts.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Settings of this compiler.
    #[arg(long = "set", value_name = "K=V")]
    settings: Vec<String>,
    /// Also list the functions with the worst ratio.
    #[arg(long, default_value_t = 0, value_name = "N")]
    worst: usize,
    /// Run this compiler alone (for instruction counts under valgrind).
    #[arg(long)]
    alone: bool,
    /// Print what the kernels become (instructions, registers, loops, stalls) instead of times.
    #[arg(long)]
    size: bool,
    /// Figures of another compiler beside these, as a table with the columns nu_total, regs, nu_loops and nu_stall.
    #[arg(long, value_name = "TSV", requires = "size")]
    peers: Option<PathBuf>,
    /// Print how time and memory grow with the size of a function, for every shape whose name contains the text.
    #[arg(long, value_name = "SHAPE", num_args = 0..=1, default_missing_value = "", conflicts_with = "size")]
    growth: Option<String>,
    /// Most seconds that one function of `--growth` may take.
    #[arg(long, default_value_t = 60, value_name = "S")]
    limit: u64,
    /// What `--growth` starts: one shape at one size.
    #[arg(long, num_args = 2, value_names = ["SHAPE", "SIZE"], hide = true)]
    growth_child: Option<Vec<String>>,
}

/// Times of one function.
struct Row {
    name: String,
    ours: Duration,
    theirs: Duration,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let mut options = Options::default();
    for setting in &arguments.settings {
        options.set(setting)?;
    }
    options.verify = false;
    options.enable_verifier = false;
    if let Some([shape, size]) = arguments.growth_child.as_deref() {
        return growth::measure(shape, size.parse()?, &options, arguments.rounds);
    }
    if let Some(filter) = &arguments.growth {
        let limit = Duration::from_secs(arguments.limit);
        return growth::table(&arguments.settings, filter, limit, arguments.rounds);
    }
    let mut files = Vec::new();
    for path in &arguments.paths {
        collect(path, &mut files).with_context(|| format!("{}", path.display()))?;
    }
    files.sort();
    let mut compiler = Compiler::new(options);
    if arguments.size {
        print!(
            "{}",
            size::table(&files, &mut compiler, arguments.peers.as_deref())?
        );
        return Ok(());
    }
    let mut reference = Reference::new()?;
    let (mut rows, mut skipped) = (Vec::new(), 0);
    for path in &files {
        let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
        // A file that is a test of errors does not parse; it has nothing to be timed.
        let Ok(file) = SourceFile::parse(&path.display().to_string(), &text) else {
            skipped += 1;
            continue;
        };
        for function in &file.functions {
            match time(function, &mut compiler, &mut reference, arguments) {
                Some((ours, theirs)) => {
                    let name = format!("{} {}", path.display(), function.name());
                    rows.push(Row { name, ours, theirs });
                }
                None => skipped += 1,
            }
        }
    }
    if rows.is_empty() {
        bail!("no function in {} files compiles with both", files.len());
    }
    report(&rows, skipped, &compiler, arguments);
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    } else if path.extension().is_some_and(|e| e == "clif") {
        files.push(path.to_path_buf());
    } else if !path.exists() {
        bail!("no such file");
    }
    Ok(())
}

/// The fastest round of each compiler; none when one of them does not compile the function.
fn time(
    function: &SourceFunction,
    compiler: &mut Compiler,
    reference: &mut Reference,
    arguments: &Arguments,
) -> Option<(Duration, Duration)> {
    let name = function.name();
    let input = FunctionInput::of_source(function, &name);
    let ours = |compiler: &mut Compiler| {
        let start = Instant::now();
        compiler
            .compile_function(&input, &mut Unit::new())
            .ok()
            .map(|()| start.elapsed())
    };
    ours(compiler)?;
    if arguments.alone {
        return Some((ours(compiler)?, Duration::ZERO));
    }
    reference.compile(&function.func)?;
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..arguments.rounds.max(1) {
        best.0 = best.0.min(ours(compiler)?);
        best.1 = best.1.min(reference.compile(&function.func)?);
    }
    // The shares of the passes come from a round of their own, because reading the clock takes time.
    compiler.time_passes(true);
    ours(compiler)?;
    compiler.time_passes(false);
    Some(best)
}

fn report(rows: &[Row], skipped: usize, compiler: &Compiler, arguments: &Arguments) {
    let ours: Duration = rows.iter().map(|r| r.ours).sum();
    let theirs: Duration = rows.iter().map(|r| r.theirs).sum();
    let total = compiler.timings().total().as_secs_f64();
    if total > 0.0 {
        println!("pass          share");
        for pass in Pass::ALL {
            let share = compiler.timings().of(pass).as_secs_f64() / total;
            println!("{:<12} {:>5.1} %", pass.name(), 100.0 * share);
        }
    }
    let micros = |d: Duration| d.as_secs_f64() * 1e6 / rows.len() as f64;
    println!("functions    {} ({skipped} skipped)", rows.len());
    println!("thisgpu      {:.1} us a function", micros(ours));
    if arguments.alone {
        return;
    }
    println!("x86-64       {:.1} us a function", micros(theirs));
    println!(
        "ratio        {:.2}",
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
    let ratio = |r: &Row| r.ours.as_secs_f64() / r.theirs.as_secs_f64();
    let mut worst: Vec<&Row> = rows.iter().collect();
    worst.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
    for row in worst.into_iter().take(arguments.worst) {
        println!("  {:>6.2}  {}", ratio(row), row.name);
    }
}
