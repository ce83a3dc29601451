//! How time and memory grow with the size of a function: every shape at several sizes, each in a process of its own.
//!
//! A child prints what it measured as one line: instructions, bytes of memory at peak over what the parsed function
//! took, and nanoseconds of each pass. The parent makes the table: microseconds of an instruction in all, in
//! Cranelift's mid-end and in the rest, and the passes that take more than twice as long an instruction at the largest
//! size as at the smallest. Peaks are those of the kernel's resident pages (Linux), so small functions show little.

use crate::corpus;
use crate::shapes::{SHAPES, Shape};
use anyhow::{Context, Result, bail};
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::compile::{Compiler, FunctionInput, Pass, Unit};
use cranelift_thisgpu::settings::Options;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Instructions of the functions, about, unless others are asked for.
pub const SIZES: [usize; 3] = [1_000, 10_000, 50_000];
/// Factor in time an instruction from the smallest to the largest size that is told.
const FACTOR: f64 = 2.0;
/// Share of the time at the largest size below which a pass is not told.
const SHARE: f64 = 0.02;

/// A function that has taken so long is not compiled again.
const ENOUGH: Duration = Duration::from_secs(5);

/// What one child measured.
struct Measured {
    insts: usize,
    bytes: u64,
    /// By [`Pass::ALL`].
    passes: Vec<Duration>,
}

impl Measured {
    fn per_inst(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / self.insts as f64
    }

    fn total(&self) -> Duration {
        self.passes.iter().sum()
    }

    fn of(&self, pass: Pass) -> Duration {
        let index = Pass::ALL.iter().position(|&p| p == pass);
        index.map_or(Duration::ZERO, |index| self.passes[index])
    }
}

/// What is measured.
pub struct Growth<'a> {
    /// Settings of the compiler.
    pub settings: &'a [String],
    /// What the names of the shapes contain.
    pub filter: &'a str,
    /// Instructions of the functions, about.
    pub sizes: &'a [usize],
    /// The most time that one child may take.
    pub limit: Duration,
    /// Rounds a function; the fastest counts.
    pub rounds: u32,
}

/// Prints the table of the shapes.
///
/// # Errors
/// When children cannot be started.
pub fn table(growth: &Growth<'_>) -> Result<()> {
    println!("shape                     insts  us/inst   mid-end  allocate      rest  peak MiB");
    for shape in SHAPES
        .iter()
        .filter(|shape| shape.name.contains(growth.filter))
    {
        let mut rows: Vec<Measured> = Vec::new();
        for &size in growth.sizes {
            match child(shape, size, growth)? {
                Ok(measured) => {
                    let part = |time| measured.per_inst(time);
                    let (mid_end, allocate) =
                        (measured.of(Pass::MidEnd), measured.of(Pass::Allocate));
                    println!(
                        "{:<24} {:>6} {:>8.2}  {:>8.2}  {:>8.2}  {:>8.2}  {:>8.1}",
                        shape.name,
                        measured.insts,
                        part(measured.total()),
                        part(mid_end),
                        part(allocate),
                        part(measured.total() - mid_end - allocate),
                        measured.bytes as f64 / f64::from(1 << 20),
                    );
                    rows.push(measured);
                }
                Err(message) => println!("{:<24} {size:>6}  {message}", shape.name),
            }
        }
        if let [first, .., last] = &rows[..] {
            for pass in Pass::ALL {
                let (before, after) =
                    (first.per_inst(first.of(pass)), last.per_inst(last.of(pass)));
                let share = last.of(pass).as_secs_f64() / last.total().as_secs_f64();
                if after > FACTOR * before && share > SHARE {
                    println!(
                        "  {:<12} {before:.3} -> {after:.3} us an instruction",
                        pass.name()
                    );
                }
            }
        }
    }
    Ok(())
}

/// Measures in another process; the inner error is what became of it.
fn child(shape: &Shape, size: usize, growth: &Growth<'_>) -> Result<Result<Measured, String>> {
    let Growth {
        settings,
        limit,
        rounds,
        ..
    } = *growth;
    let program = std::env::current_exe().context("this program's own path")?;
    let mut command = Command::new(program);
    command.args(["--growth-child", shape.name, &size.to_string()]);
    command.arg(format!("--rounds={rounds}"));
    command.args(settings.iter().map(|setting| format!("--set={setting}")));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("a process to measure in")?;
    let end = Instant::now() + limit;
    while child.try_wait()?.is_none() {
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(Err(format!("over {} s", limit.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Option<Vec<u64>> = text
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect();
    match numbers.as_deref() {
        Some([insts, bytes, passes @ ..]) if passes.len() == Pass::ALL.len() => Ok(Ok(Measured {
            insts: *insts as usize,
            bytes: *bytes,
            passes: passes.iter().copied().map(Duration::from_nanos).collect(),
        })),
        _ => {
            let error = String::from_utf8_lossy(&output.stderr);
            let first = error.lines().next().unwrap_or("no output");
            Ok(Err(format!("{}: {first}", output.status)))
        }
    }
}

/// Compiles one function a few times and prints what was measured: of each pass the fastest round, so that a busy
/// machine disturbs little.
///
/// # Errors
/// An unknown shape, or a function that does not compile.
pub fn measure(name: &str, size: usize, options: &Options, rounds: u32) -> Result<()> {
    let Some(shape) = SHAPES.iter().find(|shape| shape.name == name) else {
        bail!("no shape is named {name}");
    };
    let file = SourceFile::parse(name, &(shape.text)(size))?;
    let function = file.functions.first().context("a function")?;
    let insts = corpus::size(&function.func);
    let before = resident("VmRSS")?;
    let name = function.name();
    let input = FunctionInput::of_source(function, &name);
    let mut fastest = Pass::ALL.map(|_| Duration::MAX);
    let mut bytes = 0;
    let start = Instant::now();
    for round in 0..rounds.max(1) {
        let mut compiler = Compiler::new(options.clone());
        compiler.time_passes(true);
        compiler.compile_function(&input, &mut Unit::new())?;
        for (fastest, pass) in fastest.iter_mut().zip(Pass::ALL) {
            *fastest = compiler.timings().of(pass).min(*fastest);
        }
        if round == 0 {
            bytes = resident("VmHWM")?.saturating_sub(before);
        }
        if start.elapsed() > ENOUGH {
            break;
        }
    }
    let nanos = fastest.map(|time| time.as_nanos().to_string());
    println!("{insts} {bytes} {}", nanos.join(" "));
    Ok(())
}

/// A size from the kernel's account of this process, in bytes.
fn resident(key: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(key));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    let kibibytes: u64 = number
        .context("no such line in /proc/self/status")?
        .parse()?;
    Ok(kibibytes * 1024)
}
