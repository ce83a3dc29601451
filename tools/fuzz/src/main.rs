//! `fuzz --functions N --seed S`: random functions on the simulator and on the host. `fuzz --simt N`: random kernels of
//! many threads.

mod kernels;
mod prove;
mod summary;

use anyhow::{Context, Result, bail};
use clap::Parser;
use cranelift_thisgpu::settings::Options;
use fuzz::campaign::{self, Make, Tally};
use fuzz::catalogue::{Catalogue, Oracle};
use fuzz::check::Outcome;
use fuzz::mutate;
use fuzz::program::Program;
use fuzz::simt::events::features::Features;
use fuzz::targets::{TARGETS, corpus};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use summary::Summary;
use thisgpu_filetests::report_path;
use thisgpu_filetests::shard::{Part, Shard};

/// Compares thisgpu with the host on random functions.
#[derive(Parser)]
struct Arguments {
    /// Functions to compare, at least; a seed gives several.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    functions: u64,
    /// Random kernels of many threads instead of functions: so many, against a reference, in warps of 32 lanes and of
    /// one.
    #[arg(long, value_name = "N", conflicts_with_all = ["file", "gaps"])]
    simt: Option<u64>,
    /// Random kernels of many threads in a debugger: whether values are where the compiler says that they are.
    #[arg(long, value_name = "N", conflicts_with_all = ["file", "gaps", "simt", "print", "reduce", "write"])]
    locations: Option<u64>,
    /// Random kernels of many threads in a debugger and out of it: whether they leave the same, and whether going back
    /// and forward leads to where it was.
    #[arg(long, value_name = "N", conflicts_with_all = ["file", "gaps", "simt", "locations"])]
    #[arg(conflicts_with_all = ["print", "reduce", "write"])]
    stepped: Option<u64>,
    /// With `--stepped`: points of a launch from which it goes back.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "stepped")]
    points: u32,
    /// Shapes of those kernels: families and what they may be made of, or `-NAME` for all but one (see
    /// docs/fuzzing.md).
    #[arg(long, value_name = "NAME,..", value_parser = kernels::features, default_value = "")]
    #[arg(allow_hyphen_values = true)]
    shapes: Features,
    /// Prove the code of so many random functions instead of running it; needs z3 or cvc5 (docs/proofs.md).
    #[arg(long, value_name = "N", conflicts_with_all = ["file", "gaps", "simt", "print", "reduce", "write"])]
    prove: Option<u64>,
    /// With `--prove`: functions of integer operations without control flow and memory.
    #[arg(long, requires = "prove")]
    straight: bool,
    /// Prove each integer operation alone at each of its types, and divisions by constants.
    #[arg(long, conflicts_with_all = ["file", "gaps", "simt", "print", "reduce", "write", "prove"])]
    prove_operations: bool,
    /// Prove functions until each rule of the repository has one in which it fired; so many random
    /// functions are among them.
    #[arg(long, value_name = "N", conflicts_with_all = ["file", "gaps", "simt", "print", "reduce", "write", "prove"])]
    prove_rules: Option<u64>,
    /// With `--prove-rules`: where the page goes.
    #[arg(long, requires = "prove_rules", value_name = "FILE")]
    page: Option<PathBuf>,
    /// Run functions for each rule of floats with so many arguments, on the simulator and on the host.
    #[arg(long, value_name = "N", conflicts_with_all = ["file", "gaps", "simt", "print", "reduce", "write", "prove"])]
    rule_numbers: Option<usize>,
    /// With what proves: a file for verdicts. What is in it is not proven again.
    #[arg(long, value_name = "FILE")]
    verdicts: Option<PathBuf>,
    /// First seed.
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Take part I of N of the seeds, counted from 1.
    #[arg(long, value_name = "I/N", default_value_t = Shard::WHOLE)]
    #[arg(conflicts_with_all = ["prove_operations", "prove_rules", "rule_numbers", "straight"])]
    shard: Shard,
    /// Write what came of the functions, or of the kernels of `--simt`, to a file too.
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["locations", "stepped", "write", "print", "reduce", "prove"])]
    #[arg(conflicts_with_all = ["prove_operations", "prove_rules", "rule_numbers"])]
    json: Option<PathBuf>,
    /// Print what `--json` wrote of all parts as one run, and nothing else; with `--json` write that.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    join: Vec<PathBuf>,
    /// Change the functions, each still valid, in ways that follow no grammar.
    #[arg(long, conflicts_with_all = ["file", "gaps", "simt", "locations", "stepped"])]
    #[arg(conflicts_with_all = ["prove", "prove_rules", "rule_numbers"])]
    mutated: bool,
    /// Settings of the compiler that all functions have; others are random.
    #[arg(long, value_name = "K=V", value_parser = legal_setting, conflicts_with = "simt")]
    set: Vec<String>,
    /// Folder for programs whose results differ, each a test by itself.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["locations", "stepped"])]
    keep: Option<PathBuf>,
    /// Print the program of the first seed, or of the file, with the expected results, and nothing else.
    #[arg(long)]
    print: bool,
    /// Run the functions of a CLIF file with the arguments of its run lines, on both sides, instead of random ones.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Run a file on the host and compare nothing.
    #[arg(long, hide = true, value_name = "FILE")]
    returns: Option<PathBuf>,
    /// Print a smaller program whose results differ as well, and nothing else.
    #[arg(long)]
    reduce: bool,
    /// Print the programs of the seeds, or the kernels of `--simt`, each ended by a NUL byte, and compare nothing.
    #[arg(long, conflicts_with_all = ["file", "gaps", "print", "reduce"])]
    write: bool,
    /// Write inputs for coverage-guided engines to a folder, one folder for each target, and dictionaries (`fuzz/`).
    #[arg(long, value_name = "FOLDER")]
    corpus: Option<PathBuf>,
    /// With `--corpus`: where the test files are that the inputs are made of.
    #[arg(
        long,
        value_name = "FOLDER",
        default_value = "filetests",
        requires = "corpus"
    )]
    files: PathBuf,
    /// List what a side cannot do, and nothing else.
    #[arg(long)]
    gaps: bool,
}

impl Arguments {
    /// What makes the program of a seed.
    fn make(&self) -> Make {
        match self.mutated {
            true => mutate::program,
            false => Program::new,
        }
    }

    /// The seeds of this part, of so many from the first on.
    fn seeds(&self, count: u64) -> Range<u64> {
        (self.shard).numbers(self.all_seeds(count))
    }

    fn all_seeds(&self, count: u64) -> Range<u64> {
        self.seed..self.seed.saturating_add(count)
    }

    /// Which part this is of what is made of so many seeds.
    fn part(&self, count: u64) -> Part {
        let work = [
            format!("{:?}", self.all_seeds(count)),
            format!("{:?}", self.simt.map(|_| self.shapes)),
            format!("{:?}", (self.mutated, &self.set)),
        ];
        Part::new(self.shard, "fuzz", work)
    }
}

fn legal_setting(text: &str) -> Result<String, cranelift_thisgpu::error::Error> {
    Options::default().set(text).map(|()| text.to_owned())
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("fuzz: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments
        .json
        .as_deref()
        .map_or(Ok(()), report_path::check)?;
    if !arguments.join.is_empty() {
        let all = Summary::join(&arguments.join)?;
        (arguments.json.as_deref()).map_or(Ok(()), |path| all.write(path))?;
        return Ok(ExitCode::from(u8::from(!all.print())));
    }
    // No seeds are left out without a word.
    let kernels = arguments.simt.or(arguments.locations).or(arguments.stepped);
    let count = kernels.or(arguments.prove).unwrap_or(arguments.functions);
    let is_one = arguments.print || arguments.reduce;
    if !is_one && arguments.seed.checked_add(count).is_none() {
        let seed = arguments.seed;
        bail!("--seed {seed}: there are no {count} seeds from it on; take a smaller one");
    }
    if let Some(folder) = &arguments.corpus {
        return write_corpus(folder, &arguments.files);
    }
    if let Some(kernels) = arguments.simt {
        return kernels::run(arguments, kernels);
    }
    if let Some(kernels) = arguments.locations {
        return kernels::locations(arguments, kernels);
    }
    if let Some(kernels) = arguments.stepped {
        return kernels::stepped(arguments, kernels);
    }
    let catalogue = Catalogue::new();
    if let Err(reason) = catalogue.host() {
        eprintln!("fuzz: {reason}: all results are those of Cranelift's interpreter");
    }
    if arguments.gaps {
        print_gaps(&catalogue);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &arguments.returns {
        let results = read(path)?.expected(&catalogue);
        results.map_err(anyhow::Error::msg)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.print || arguments.reduce || arguments.file.is_some() {
        let program = match &arguments.file {
            Some(path) => read(path)?,
            None => {
                let mut program = arguments.make()(&catalogue, arguments.seed);
                program.settings.extend_from_slice(&arguments.set);
                program
            }
        };
        return if arguments.reduce {
            print_reduced(&catalogue, &program)
        } else {
            print_program(&catalogue, &program)
        };
    }
    let kept = arguments.verdicts.as_deref();
    if let Some(random) = arguments.prove_rules {
        return prove::rules(random, arguments.seed, kept, arguments.page.as_deref());
    }
    if let Some(number) = arguments.rule_numbers {
        return prove::numbers(&catalogue, number, arguments.seed);
    }
    if arguments.prove_operations || arguments.straight {
        return prove::straight(arguments.prove, arguments.seed, &arguments.set, kept);
    }
    if let Some(functions) = arguments.prove {
        let seeds = arguments.seeds(campaign::seeds_for(functions));
        return prove::run(&catalogue, seeds, &arguments.set, kept);
    }
    if let Some(folder) = &arguments.keep {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let seeds = arguments.seeds(campaign::seeds_for(arguments.functions));
    if arguments.write {
        return write(seeds, |seed| {
            let mut program = arguments.make()(&catalogue, seed);
            program.settings.extend_from_slice(&arguments.set);
            program.text(&vec![Vec::new(); program.functions.len()])
        });
    }
    let (start, part) = (Instant::now(), seeds.clone());
    let bar = progress(seeds.end - seeds.start, "programs")?;
    let found = AtomicU64::new(0);
    bar.set_message("no difference");
    let (make, set) = (arguments.make(), &arguments.set);
    let tally = campaign::run(&catalogue, seeds, make, set, &|tally: &Tally| {
        for (seed, difference) in &tally.differences {
            let count = found.fetch_add(1, Ordering::Relaxed) + 1;
            bar.set_message(format!("{count} with differences"));
            let first = difference.errors.first().map_or("", String::as_str);
            let text = format!("seed {seed}: {first}");
            bar.suspend(|| println!("{text}"));
            if let Some(folder) = &arguments.keep {
                let path = folder.join(format!("seed-{seed}.clif"));
                if let Err(error) = std::fs::write(&path, &difference.text) {
                    bar.suspend(|| eprintln!("fuzz: {}: {error}", path.display()));
                }
            }
        }
        bar.inc(1);
    });
    bar.finish_and_clear();
    report(&tally);
    println!(
        "seeds {} to {}, {:.1} s",
        part.start,
        part.end.saturating_sub(1),
        start.elapsed().as_secs_f64()
    );
    if let Some(path) = &arguments.json {
        let whole = campaign::seeds_for(arguments.functions);
        Summary::of_functions(part, arguments.part(whole), &tally).write(path)?;
    }
    Ok(if tally.differences.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Writes the inputs of all targets, and their dictionaries.
fn write_corpus(folder: &Path, files: &Path) -> Result<ExitCode> {
    for target in TARGETS {
        let inputs = corpus::inputs(&target, files)?;
        let folder = folder.join(target.name);
        let write = |name: String, bytes: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, bytes).with_context(|| path.display().to_string())
        };
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        for (index, input) in inputs.iter().enumerate() {
            write(format!("seed-{index:03}"), input)?;
        }
        if let Some(words) = corpus::dictionary(&target) {
            write(format!("../{}.dict", target.name), words.as_bytes())?;
        }
        let bytes: usize = inputs.iter().map(Vec::len).sum();
        println!(
            "{:<12} {:>4} inputs, {bytes:>7} bytes",
            target.name,
            inputs.len()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the texts of seeds, each ended by a NUL byte.
fn write(seeds: Range<u64>, text: impl Fn(u64) -> String + Sync) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    for start in seeds.clone().step_by(BATCH) {
        let end = seeds.end.min(start + BATCH as u64);
        let texts: Vec<String> = (start..end).into_par_iter().map(&text).collect();
        for text in texts {
            write!(out, "{text}\0").context("standard output")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Texts that are written together.
const BATCH: usize = 256;

/// A bar that counts what is done.
fn progress(count: u64, what: &str) -> Result<ProgressBar> {
    let template =
        format!("{{elapsed_precise}} {{bar:40}} {{pos}}/{{len}} {what}, {{msg}} ({{eta}} left)");
    Ok(ProgressBar::new(count).with_style(ProgressStyle::with_template(&template)?))
}

fn read(path: &Path) -> Result<Program> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| name.clone())?;
    Program::parse(&name, &text).map_err(anyhow::Error::msg)
}

fn print_program(catalogue: &Catalogue, program: &Program) -> Result<ExitCode> {
    let results = program.expected(catalogue).map_err(anyhow::Error::msg)?;
    print!("{}", program.text(&results));
    Ok(match fuzz::check::check(catalogue, program) {
        Outcome::Different(difference) => {
            difference
                .errors
                .iter()
                .for_each(|error| eprintln!("{error}"));
            ExitCode::from(1)
        }
        Outcome::Same | Outcome::NoOracle(_) => ExitCode::SUCCESS,
    })
}

fn print_reduced(catalogue: &Catalogue, program: &Program) -> Result<ExitCode> {
    let Some((_, difference)) = fuzz::reduce::reduce(catalogue, program) else {
        anyhow::bail!("there is no difference");
    };
    print!("{}", difference.text);
    difference
        .errors
        .iter()
        .for_each(|error| eprintln!("{error}"));
    Ok(ExitCode::from(1))
}

/// What was generated, opcode by opcode, and the sums.
fn report(tally: &Tally) {
    println!("instructions by opcode and controlling type:");
    for (opcode, counts) in &tally.instructions {
        let counts: Vec<String> = counts
            .iter()
            .map(|(ty, count)| format!("{ty} {count}"))
            .collect();
        println!("  {opcode:<20} {}", counts.join(", "));
    }
    let kinds: usize = tally.instructions.values().map(BTreeMap::len).sum();
    println!(
        "{} opcodes, {kinds} with their types",
        tally.instructions.len()
    );
    for (seed, reason) in tally.without_oracle.iter().take(10) {
        println!("seed {seed} could not be compared: {reason}");
    }
    for (oracle, count) in &tally.functions {
        println!("{count} functions compared with the {oracle}");
    }
    println!(
        "{} functions, {} calls, {} programs with differences, {} not compared",
        tally.compared(),
        tally.calls,
        tally.differences.len(),
        tally.without_oracle.len()
    );
}

fn print_gaps(catalogue: &Catalogue) {
    for oracle in [Oracle::Host, Oracle::Interpreter] {
        let types = catalogue.types(oracle).iter().map(ToString::to_string);
        println!(
            "types compared with the {oracle}: {}",
            types.collect::<Vec<_>>().join(" ")
        );
    }
    for gap in catalogue.gaps() {
        let reason = gap.reason.lines().next().unwrap_or_default();
        println!(
            "{:<12} {:<36} {reason}",
            gap.side,
            gap.operation.to_string()
        );
    }
}
