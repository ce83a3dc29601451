//! Compile time: every function of the given CLIF files through this compiler and through Cranelift's x86-64 back end,
//! in the same run.
//!
//! Only functions that both compile count. The mid-end is the same code in both, both start from `ir::Function`, which
//! both clone, and both verifiers are off (build with `--release`, where this compiler checks nothing between passes).
//! `--compare` measures several settings of this compiler side by side, `--instructions` counts the host's instructions
//! instead of time, `--quality` says what the functions become.
//!
//! `--simulator` measures the simulator. `--threads` compiles one module on several threads. `--growth` measures how
//! time and memory grow instead: shapes at several sizes, each in a process of its own.

mod corpus;
mod figures;
mod growth;
mod instructions;
mod locations;
mod native;
mod pressure;
mod quality;
mod random;
mod reference;
mod shapes;
mod simulator;
mod size;
mod subject;
mod table;
mod threads;
mod times;
mod writer;

use anyhow::{Context, Result, bail};
use clap::Parser;
use corpus::{Generated, Wanted};
use cranelift_thisgpu::compile::Pass;
use reference::Reference;
use serde::Serialize;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use subject::Subject;
use thisgpu_filetests::report_path;
use thisgpu_filetests::shard::{Part, Shard};

/// Compares compile times, and what functions become.
#[derive(Parser)]
struct Arguments {
    /// CLIF files, or folders to be searched for them; each is a source of its own in the tables. Default: filetests,
    /// unless something is generated.
    paths: Vec<PathBuf>,
    /// Functions that are generated.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    generated: Vec<Generated>,
    /// CLIF instructions of generated functions, about, with --growth too.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = growth::SIZES)]
    sizes: Vec<usize>,
    /// The first seed of random functions.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Random functions of each size.
    #[arg(long, default_value_t = 3, value_name = "N")]
    count: u64,
    /// Timed rounds a function; the fastest counts.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Settings of this compiler.
    #[arg(long = "set", value_name = "K=V")]
    settings: Vec<String>,
    /// Settings to measure side by side; `+` joins those that belong together.
    #[arg(long, value_name = "K=V,K=V+K=V", value_delimiter = ',')]
    compare: Vec<String>,
    /// Also list the functions with the worst ratio, or that became worst.
    #[arg(long, default_value_t = 0, value_name = "N")]
    worst: usize,
    /// Write the table, and with --quality the figures of every function, to a file too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run this compiler alone, each function twice (for profiles).
    #[arg(long, conflicts_with = "instructions")]
    alone: bool,
    /// Count the host's instructions by valgrind instead of time.
    #[arg(long)]
    instructions: bool,
    /// What --instructions starts.
    #[arg(long, hide = true)]
    instructions_child: bool,
    /// Print what the functions become (instructions, copies, registers, spills, loops) instead of times.
    #[arg(long, conflicts_with_all = ["alone", "instructions"])]
    quality: bool,
    /// Print how many of the values that are alive a debugger can show instead of times.
    #[arg(long, conflicts_with_all = ["alone", "instructions", "quality", "size"])]
    locations: bool,
    /// Take part I of N of the files, counted from 1, each with about as many CLIF instructions.
    #[arg(long, value_name = "I/N", default_value_t = Shard::WHOLE)]
    shard: Shard,
    /// With --quality: what `--quality --json` wrote of all parts, instead of compiling.
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "quality", conflicts_with = "shard")]
    join: Vec<PathBuf>,
    /// Compare with the figures that `--quality --json` wrote.
    #[arg(long, value_name = "FILE", requires = "quality")]
    against: Option<PathBuf>,
    /// Print how much faster so many threads compile a module than the first number of them.
    #[arg(long, value_name = "N,N", value_delimiter = ',', conflicts_with_all = ["alone", "instructions", "quality"])]
    threads: Vec<usize>,
    /// Functions of the module of --threads.
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    functions: usize,
    /// Print what the kernels become (instructions, registers, loops, stalls, simulated cycles) instead of times.
    #[arg(long)]
    size: bool,
    /// Figures of another compiler beside these, as a table with the columns nu_total, regs, nu_loops and nu_stall.
    #[arg(long, value_name = "TSV", requires = "size")]
    peers: Option<PathBuf>,
    /// Print how many thread-instructions a second the simulator executes, for every kernel whose name contains the
    /// text.
    #[arg(long, value_name = "KERNEL", num_args = 0..=1, default_missing_value = "")]
    #[arg(conflicts_with_all = ["size", "growth"])]
    simulator: Option<String>,
    /// With --simulator: the modes whose name contains the text.
    #[arg(long, value_name = "MODE", requires = "simulator", default_value = "")]
    mode: String,
    /// Print how time and memory grow with the size of a function, for every shape whose name contains the text.
    #[arg(long, value_name = "SHAPE", num_args = 0..=1, default_missing_value = "", conflicts_with = "size")]
    growth: Option<String>,
    /// Most seconds that one function of `--growth` may take.
    #[arg(long, default_value_t = 60, value_name = "S")]
    limit: u64,
    /// With --simulator: twice as many threads so many times, for kernels whose launches can be larger.
    #[arg(long, value_name = "N", requires = "simulator", default_value_t = 0)]
    scale: u32,
    /// What `--growth` starts: one shape at one size.
    #[arg(long, num_args = 2, value_names = ["SHAPE", "SIZE"], hide = true)]
    growth_child: Option<Vec<String>>,
}

thread_local! {
    /// Whether a panic is an answer here, and no mistake of this program.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

fn main() -> ExitCode {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !QUIET.get() {
            tell(panic);
        }
    }));
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What `run` gives, or none after a panic in it, which is not printed.
fn quietly<T>(run: impl FnOnce() -> T) -> Option<T> {
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(run)).ok();
    QUIET.set(false);
    result
}

fn run(arguments: &Arguments) -> Result<()> {
    arguments
        .json
        .as_deref()
        .map_or(Ok(()), report_path::check)?;
    match alone(arguments)? {
        true => Ok(()),
        false => with_functions(arguments),
    }
}

/// Measures what needs no functions of files, if that is wanted: growth and the simulator. Whether it was.
fn alone(arguments: &Arguments) -> Result<bool> {
    if let Some([shape, size]) = arguments.growth_child.as_deref() {
        let options = subject::options(&arguments.settings, "")?;
        growth::measure(shape, size.parse()?, &options, arguments.rounds)?;
        return Ok(true);
    }
    if let Some(filter) = &arguments.growth {
        growth::table(&growth::Growth {
            settings: &arguments.settings,
            filter,
            sizes: &arguments.sizes,
            limit: Duration::from_secs(arguments.limit),
            rounds: arguments.rounds,
        })?;
        return Ok(true);
    }
    if let Some(filter) = &arguments.simulator {
        let options = subject::options(&arguments.settings, "")?;
        simulator::table(&simulator::Wanted {
            filter,
            options: &options,
            rounds: arguments.rounds,
            mode: &arguments.mode,
            scale: arguments.scale,
        })?;
        return Ok(true);
    }
    Ok(false)
}

/// Compiles functions of files and generated ones, and prints what is wanted of that.
fn with_functions(arguments: &Arguments) -> Result<()> {
    let paths = if arguments.paths.is_empty() && arguments.generated.is_empty() {
        vec![PathBuf::from("filetests")]
    } else {
        arguments.paths.clone()
    };
    let mut subjects = match &arguments.compare[..] {
        [] => vec![Subject::new(&arguments.settings, "")?],
        variants => (variants.iter())
            .map(|variant| Subject::new(&arguments.settings, variant))
            .collect::<Result<_>>()?,
    };
    if arguments.size {
        let mut files = Vec::new();
        for path in &paths {
            corpus::collect(path, &mut files).with_context(|| format!("{}", path.display()))?;
        }
        for subject in &mut subjects {
            let peers = arguments.peers.as_deref();
            print!("{}", size::table(&files, subject.compiler(), peers)?);
        }
        return Ok(());
    }
    let wanted = Wanted {
        kinds: &arguments.generated,
        sizes: &arguments.sizes,
        seed: arguments.seed,
        count: arguments.count,
    };
    if !arguments.join.is_empty() {
        return show(arguments, &quality::Quality::join(&arguments.join)?);
    }
    let sources = corpus::read(&paths, &wanted)?;
    // Of all parts, before they are divided.
    let part = arguments.quality.then(|| {
        let work = corpus::contents(&sources).into_iter();
        let work = work.chain(subjects.iter().map(|subject| subject.label.clone()));
        let work = work.chain(arguments.settings.iter().cloned());
        let work = work.chain([arguments.seed.to_string()]);
        Part::new(arguments.shard, "bench", work)
    });
    let sources = corpus::part(sources, arguments.shard);
    if !arguments.threads.is_empty() {
        for (i, subject) in subjects.iter_mut().enumerate() {
            let variant = arguments.compare.get(i).map_or("", String::as_str);
            let options = subject::options(&arguments.settings, variant)?;
            println!("{}", subject.label);
            let (functions, threads) = (arguments.functions, &arguments.threads);
            let rounds = arguments.rounds;
            threads::table(&sources, subject, &options, functions, threads, rounds)?;
        }
        return Ok(());
    }
    if arguments.instructions_child {
        return instructions::child(&sources, &mut subjects);
    }
    for source in sources.iter().filter(|source| source.unparsed > 0) {
        // They are tests of errors.
        eprintln!("{}: {} files do not parse", source.name, source.unparsed);
    }
    if arguments.generated.contains(&Generated::Random) {
        println!("random functions from seed {}", arguments.seed);
    }
    if arguments.locations {
        print!("{}", locations::table(&sources, &arguments.settings)?);
        return Ok(());
    }
    if let Some(part) = part {
        let quality = quality::measure(&sources, &mut subjects, arguments.seed, part);
        return show(arguments, &quality);
    }
    let (table, rows) = if arguments.instructions {
        let labels = subjects.iter().map(|s| s.label.clone()).collect();
        (instructions::measure(&sources, labels)?, Vec::new())
    } else {
        let mut reference = Reference::new()?;
        let compilers = times::Compilers {
            subjects: &mut subjects,
            reference: (!arguments.alone).then_some(&mut reference),
            rounds: arguments.rounds,
        };
        times::measure(&sources, compilers)
    };
    if table.is_empty() {
        bail!("no function compiles with all");
    }
    print!("{table}");
    worst(&rows, arguments.worst);
    if !arguments.instructions {
        subjects.iter_mut().for_each(passes);
    }
    save(arguments.json.as_deref(), &table.json(arguments.seed)?)
}

/// Prints what functions became, beside what they became before if that is wanted, and keeps it.
fn show(arguments: &Arguments, quality: &quality::Quality) -> Result<()> {
    let saved = arguments.against.as_deref().map(quality::Quality::read);
    let saved = saved.transpose()?;
    print!("{}", quality.table(saved.as_ref(), arguments.worst)?);
    save(arguments.json.as_deref(), quality)
}

fn save(path: Option<&Path>, value: &impl Serialize) -> Result<()> {
    if let Some(path) = path {
        let text = serde_json::to_string(value)? + "\n";
        std::fs::write(path, text).with_context(|| format!("{}", path.display()))?;
    }
    Ok(())
}

/// Which functions have the worst ratio in the first setting.
fn worst(rows: &[times::Row], count: usize) {
    let ratio = |row: &times::Row| row.cell.subjects[0] / row.cell.reference;
    let mut worst: Vec<&times::Row> = rows.iter().collect();
    worst.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
    for row in worst.into_iter().take(count) {
        println!("  {:>6.2}  {}", ratio(row), row.name);
    }
}

/// Where the time goes, if the compiler's clocks ran.
fn passes(subject: &mut Subject) {
    let timings = subject.compiler().timings();
    let total = timings.total().as_secs_f64();
    if total == 0.0 {
        return;
    }
    let shares: Vec<String> = (Pass::ALL.iter())
        .map(|&pass| {
            let share = 100.0 * timings.of(pass).as_secs_f64() / total;
            format!("{} {share:.1} %", pass.name())
        })
        .collect();
    println!("{}: {}", subject.label, shares.join(", "));
}
