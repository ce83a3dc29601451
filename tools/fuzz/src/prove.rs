//! `fuzz --prove N`: random functions whose code is proven instead of run.

use anyhow::{Context, Result};
use cranelift_codegen::ir::Function;
use cranelift_thisgpu::Compiler;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::settings::Options;
use fuzz::catalogue;
use fuzz::program::Program;
use fuzz::random::Random;
use fuzz::rules::catalogue::Catalogue;
use fuzz::rules::corpus::Corpus;
use fuzz::rules::numbers::{self, Tested};
use fuzz::rules::source::Rule;
use fuzz::straight;
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use thisgpu_verify::{Limits, Prover, Solvers, Tally, Verdict};

/// How long a solver may take for a question (*assumed*: what is not proven by then is not in ten times as long).
const TIME: Duration = Duration::from_secs(2);

/// Paths and steps that are followed in a random function.
const LIMITS: Limits = Limits {
    paths: 32,
    steps: 5000,
};

/// Constants that numbers of 16, 32 and 64 bits are divided by.
const DIVISORS: usize = 200;

/// Proves the functions of seeds. Status 1 if one is refuted.
pub fn run(
    catalogue: &catalogue::Catalogue,
    seeds: Range<u64>,
    settings: &[String],
    kept: Option<&Path>,
) -> Result<ExitCode> {
    let prover = prover(kept)?;
    let first = seeds.start;
    let found = seeds.clone().into_par_iter().map(|seed| {
        let program = Program::new(catalogue, seed);
        let text = program.text(&vec![Vec::new(); program.functions.len()]);
        let settings: Vec<&String> = program.settings.iter().chain(settings).collect();
        of_text(&format!("seed {seed}"), &text, &settings, &prover)
    });
    let tally = found.try_reduce(Tally::default, sum)?;
    println!("{tally}");
    println!("seeds {first} to {}", seeds.end - 1);
    Ok(status(&tally))
}

/// Proves every integer operation alone at each of its types and divisions by constants, or so many random sequences
/// of operations. Status 1 if one is refuted; what is open is named.
pub fn straight(
    number: Option<u64>,
    first: u64,
    settings: &[String],
    kept: Option<&Path>,
) -> Result<ExitCode> {
    let prover = prover(kept)?;
    let all = straight::operations();
    let functions: Vec<(String, Function)> = match number {
        None => (all.iter())
            .map(|&operation| {
                let function = straight::alone(operation, &mut Random::new(first));
                (operation.to_string(), function)
            })
            .chain(straight::divisions(DIVISORS, &mut Random::new(first)))
            .collect(),
        Some(number) => (first..first + number)
            .map(|seed| {
                let function = straight::random(&all, &mut Random::new(seed));
                (format!("seed {seed}"), function)
            })
            .collect(),
    };
    let settings: Vec<&String> = settings.iter().collect();
    let found = functions.par_iter().map(|(name, func)| {
        let tally = of_text(name, &func.display().to_string(), &settings, &prover)?;
        for reason in tally.open.keys() {
            println!("{name} is open: {reason}");
        }
        Ok(tally)
    });
    let tally = found.try_reduce(Tally::default, sum)?;
    println!("{tally}");
    println!("seed {first}");
    Ok(status(&tally))
}

/// Who proves; verdicts are kept in a file if there is one.
fn prover(kept: Option<&Path>) -> Result<Prover> {
    let prover = Prover::new(Solvers::find(TIME)?, LIMITS);
    Ok(match kept {
        Some(file) => prover
            .keeping(file)
            .with_context(|| file.display().to_string())?,
        None => prover,
    })
}

fn sum(mut all: Tally, other: Tally) -> Result<Tally> {
    all.add_all(other);
    Ok(all)
}

fn status(tally: &Tally) -> ExitCode {
    match tally.refuted {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    }
}

/// Proves the functions of a text; what is refuted is printed.
fn of_text(name: &str, text: &str, settings: &[&String], prover: &Prover) -> Result<Tally> {
    let mut options = Options::default();
    for setting in settings {
        options.set(setting)?;
    }
    let file = SourceFile::parse(name, text)?;
    let code = Compiler::new(options).file(&file)?;
    let mut tally = Tally::default();
    for function in &file.functions {
        let verdict = prover.compiled(function, &code)?;
        tally.add(&verdict);
        if let Verdict::Refuted(found) = verdict {
            let (function, arguments) = (&function.func, found.arguments);
            println!("{name} is refuted for {arguments:x?}:\n{function}");
        }
    }
    Ok(tally)
}

/// Functions among which each rule of floats is looked for that are random.
const RANDOM: u64 = 1000;

/// Runs functions for each rule of floats with so many arguments. Status 1 if one differs from the host.
pub fn numbers(catalogue: &catalogue::Catalogue, arguments: usize, seed: u64) -> Result<ExitCode> {
    let corpus = Corpus {
        random: RANDOM,
        seed,
    };
    let subjects = corpus.compile(repository()?)?;
    let tested = numbers::test(&subjects, catalogue, arguments, seed);
    for (fired, reason) in &tested.without {
        println!(
            "{}:{} {}: not run: {reason}",
            fired.file, fired.line, fired.ty
        );
    }
    for difference in &tested.differences {
        println!("{difference}");
    }
    let Tested {
        rules,
        functions,
        exhaustive,
        calls,
        ..
    } = tested;
    println!(
        "{rules} rules and types in {functions} functions, {exhaustive} of them with all arguments, {calls} calls, \
         {} differ, {} rules and types not run, seed {seed}",
        tested.differences.len(),
        tested.without.len()
    );
    Ok(if tested.differences.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// The folder of the repository.
fn repository() -> Result<&'static Path> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.context("the package lies in tools")
}

/// Proves functions until each rule has one. Status 1 if one is refuted.
pub fn rules(random: u64, seed: u64, kept: Option<&Path>, page: Option<&Path>) -> Result<ExitCode> {
    let repository = repository()?;
    let prover = prover(kept)?;
    let corpus = Corpus { random, seed };
    let subjects = corpus.compile(repository)?;
    println!("{} functions", subjects.len());
    let done = AtomicUsize::new(0);
    let catalogue = Catalogue::new(Rule::all(repository)?, &subjects, &prover, &|count| {
        let done = done.fetch_add(count, Ordering::Relaxed) + count;
        if done.is_multiple_of(100) {
            eprintln!("{done} tried");
        }
    })?;
    print!("{}", catalogue.lines());
    for (file, counts) in catalogue.counts() {
        println!("{file}: {counts:?}");
    }
    if let Some(page) = page {
        std::fs::write(page, catalogue.page()).with_context(|| page.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}
