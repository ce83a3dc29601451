//! `fuzz --prove N`: random functions whose code is proven instead of run.

use anyhow::Result;
use cranelift_codegen::ir::Function;
use cranelift_thisgpu::Compiler;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::settings::Options;
use fuzz::catalogue::Catalogue;
use fuzz::program::Program;
use fuzz::random::Random;
use fuzz::straight;
use rayon::prelude::*;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Duration;
use thisgpu_verify::{Limits, Solvers, Tally, Verdict, prove};

/// How long a solver may take for a question (*assumed*: what is not proven by then is not in ten times as long).
const TIME: Duration = Duration::from_secs(2);

/// Paths and steps that are followed in a random function.
const LIMITS: Limits = Limits {
    paths: 32,
    steps: 5000,
};

/// Proves the functions of seeds. Status 1 if one is refuted.
pub fn run(catalogue: &Catalogue, seeds: Range<u64>, settings: &[String]) -> Result<ExitCode> {
    let solvers = Solvers::find(TIME)?;
    let first = seeds.start;
    let found = seeds
        .clone()
        .into_par_iter()
        .map(|seed| of_seed(catalogue, seed, settings, &solvers));
    let tally = found.try_reduce(Tally::default, |mut all, other| {
        all.add_all(other);
        Ok(all)
    })?;
    println!("{tally}");
    println!("seeds {first} to {}", seeds.end - 1);
    Ok(if tally.refuted == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Proves every integer operation alone at each of its types, or so many random sequences of them. Status 1 if one is
/// refuted; what is open is named.
pub fn straight(number: Option<u64>, first: u64, settings: &[String]) -> Result<ExitCode> {
    let solvers = Solvers::find(TIME)?;
    let all = straight::operations();
    let functions: Vec<(String, Function)> = match number {
        None => (all.iter())
            .map(|&operation| {
                let mut random = Random::new(first);
                (
                    operation.to_string(),
                    straight::alone(operation, &mut random),
                )
            })
            .collect(),
        Some(number) => (first..first + number)
            .map(|seed| {
                let mut random = Random::new(seed);
                (format!("seed {seed}"), straight::random(&all, &mut random))
            })
            .collect(),
    };
    let mut options = Options::default();
    for setting in settings {
        options.set(setting)?;
    }
    let found = functions.par_iter().map(|(name, func)| -> Result<Tally> {
        let mut tally = Tally::default();
        let file = SourceFile::parse(name, &func.display().to_string())?;
        let code = Compiler::new(options.clone()).file(&file)?;
        let func = &file.functions[0].func;
        let verdict = match code.object().function("f") {
            Some(object) if object.relocations.is_empty() => {
                prove(func, false, &object.words, &solvers, LIMITS)?
            }
            _ => Verdict::Open("calls, or addresses of symbols".to_owned()),
        };
        tally.add(&verdict);
        match verdict {
            Verdict::Refuted(found) => {
                println!("{name} is refuted for {:x?}\n{func}", found.arguments);
            }
            Verdict::Open(reason) => println!("{name} is open: {reason}"),
            Verdict::Proven => {}
        }
        Ok(tally)
    });
    let tally = found.try_reduce(Tally::default, |mut all, other| {
        all.add_all(other);
        Ok(all)
    })?;
    println!("{tally}");
    println!("seed {first}");
    Ok(if tally.refuted == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

fn of_seed(
    catalogue: &Catalogue,
    seed: u64,
    settings: &[String],
    solvers: &Solvers,
) -> Result<Tally> {
    let program = Program::new(catalogue, seed);
    let mut options = Options::default();
    for setting in program.settings.iter().chain(settings) {
        options.set(setting)?;
    }
    let text = program.text(&vec![Vec::new(); program.functions.len()]);
    let file = SourceFile::parse(&format!("seed-{seed}"), &text)?;
    let code = Compiler::new(options).file(&file)?;
    let mut tally = Tally::default();
    for function in &file.functions {
        let name = function.name();
        let verdict = match code.object().function(&name) {
            Some(object) if object.relocations.is_empty() => prove(
                &function.func,
                function.kernel.is_some(),
                &object.words,
                solvers,
                LIMITS,
            )?,
            _ => Verdict::Open("calls, or addresses of symbols".to_owned()),
        };
        tally.add(&verdict);
        if let Verdict::Refuted(found) = verdict {
            println!("seed {seed}: %{name} is refuted for {:x?}", found.arguments);
        }
    }
    Ok(tally)
}
