//! `fuzz --simt N --seed S`: random kernels of many threads.

use crate::summary::Summary;
use crate::{Arguments, progress, write};
use anyhow::{Context, Result};
use fuzz::simt::campaign::{self, Tally};
use fuzz::simt::case::Case;
use fuzz::simt::check::Failure;
use fuzz::simt::events::features::{Feature, Features};
use fuzz::simt::generate;
use fuzz::simt::locations::{self, Looked};
use fuzz::simt::stepped;
use rayon::prelude::*;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Settings of the compiler that each kernel is compiled in.
const SETTINGS: usize = 2;

/// The features of a list of names, in which `-NAME` takes one away.
pub fn features(text: &str) -> Result<Features, String> {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for name in text.split(',').filter(|name| !name.is_empty()) {
        let (list, name) = match name.strip_prefix('-') {
            Some(name) => (&mut without, name),
            None => (&mut with, name),
        };
        list.push(Feature::named(name).ok_or_else(|| {
            let names = Feature::all()
                .map(Feature::name)
                .collect::<Vec<_>>()
                .join(", ");
            format!("there is no shape {name}, but {names}")
        })?);
    }
    let families = with.iter().any(|f| Feature::FAMILIES.contains(f));
    let rest = with.iter().any(|f| !Feature::FAMILIES.contains(f));
    let all = |f: &Feature| match Feature::FAMILIES.contains(f) {
        true => !families || with.contains(f),
        false => !rest || with.contains(f),
    };
    let list: Vec<Feature> = Feature::all().filter(all).collect();
    Ok(Features::of(&list).without(&without))
}

/// Checks kernels, or prints one.
pub fn run(arguments: &Arguments, kernels: u64) -> Result<ExitCode> {
    if arguments.print || arguments.reduce {
        return Ok(print(arguments));
    }
    if arguments.write {
        let seeds = arguments.seeds(kernels);
        return write(seeds, |seed| Case::new(seed, arguments.shapes).text());
    }
    if let Some(folder) = &arguments.keep {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let seeds = arguments.seeds(kernels);
    let (start, part) = (Instant::now(), seeds.clone());
    let bar = progress(part.end - part.start, "kernels")?;
    let found = AtomicU64::new(0);
    bar.set_message("no failure");
    let tally = campaign::run(seeds, arguments.shapes, SETTINGS, &|tally: &Tally| {
        for (seed, _, failure) in &tally.failures {
            let count = found.fetch_add(1, Ordering::Relaxed) + 1;
            bar.set_message(format!("{count} fail"));
            let text = format!("seed {seed}: {failure}");
            bar.suspend(|| println!("{text}"));
            if let Some(folder) = &arguments.keep {
                let path = folder.join(format!("simt-{seed}.clif"));
                let contents = format!("; {text}\n{}", Case::new(*seed, arguments.shapes).text());
                if let Err(error) = std::fs::write(&path, contents) {
                    bar.suspend(|| eprintln!("fuzz: {}: {error}", path.display()));
                }
            }
        }
        bar.inc(1);
    });
    bar.finish_and_clear();
    report(&tally);
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "seeds {} to {}, {seconds:.1} s",
        part.start,
        part.end.saturating_sub(1)
    );
    if let Some(path) = &arguments.json {
        Summary::of_kernels(part, arguments.part(kernels), &tally).write(path)?;
    }
    Ok(if tally.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Looks at the values of kernels in a debugger.
pub fn locations(arguments: &Arguments, kernels: u64) -> Result<ExitCode> {
    let seeds = arguments.seeds(kernels);
    let (first, kernels) = (seeds.start, seeds.end - seeds.start);
    let bar = progress(kernels, "kernels")?;
    let all: Vec<(u64, Result<Looked, Failure>)> = seeds
        .into_par_iter()
        .map(|seed| {
            let found = locations::check(&generate::kernel(seed), SETTINGS);
            if let Err(failure) = &found {
                bar.suspend(|| println!("seed {seed}: {failure}"));
            }
            bar.inc(1);
            (seed, found)
        })
        .collect();
    bar.finish_and_clear();
    let mut looked = Looked::default();
    for found in all.iter().filter_map(|(_, found)| found.as_ref().ok()) {
        looked.asked += found.asked;
        looked.found += found.found;
        looked.at_marks += found.at_marks;
        looked.of_callers += found.of_callers;
    }
    let failed = all.iter().filter(|(_, found)| found.is_err()).count();
    println!(
        "{kernels} kernels from seed {}: {} values asked for, {} of them available and {} of callers, {} at marks, \
         {failed} kernels fail",
        first, looked.asked, looked.found, looked.of_callers, looked.at_marks
    );
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Steps kernels.
pub fn stepped(arguments: &Arguments, kernels: u64) -> Result<ExitCode> {
    let seeds = arguments.seeds(kernels);
    let (seed, kernels) = (seeds.start, seeds.end - seeds.start);
    let (start, bar) = (Instant::now(), progress(kernels, "kernels")?);
    let tally = Arc::default();
    let failed = seeds.into_par_iter().filter(|&seed| {
        let case = Case::new(seed, arguments.shapes);
        let found = stepped::check(&case, seed, arguments.points, &tally);
        if let Err(failure) = &found {
            bar.suspend(|| println!("seed {seed}: {failure}"));
        }
        bar.inc(1);
        found.is_err()
    });
    let failed = failed.count();
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();
    println!("{kernels} kernels from seed {seed}, {seconds:.1} s: {tally}; {failed} kernels fail");
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Prints the kernel of the seed, smaller if that is wanted, and what is wrong with it.
fn print(arguments: &Arguments) -> ExitCode {
    let case = Case::new(arguments.seed, arguments.shapes);
    match case.check(SETTINGS) {
        Ok(_) => {
            print!("{}", case.text());
            if arguments.reduce {
                eprintln!("seed {}: nothing is wrong", arguments.seed);
            }
            ExitCode::SUCCESS
        }
        Err(failure) => {
            let (case, failure) = if arguments.reduce {
                case.reduce(&failure)
            } else {
                (case, failure)
            };
            print!("{}", case.text());
            eprintln!("{failure}");
            ExitCode::from(1)
        }
    }
}

/// What the kernels were like, and which failed how.
fn report(tally: &Tally) {
    println!("kernels with:");
    for (shape, count) in &tally.shapes {
        let failures = tally
            .failures
            .iter()
            .filter(|failure| failure.1.contains(shape))
            .count();
        println!("  {shape:<32} {count:>7}, {failures} of them fail");
    }
    for (kind, count) in tally.kinds() {
        println!("{count} fail: {kind:?}");
    }
    println!(
        "{} kernels, {} launches, {} masks compared, {} of them parts of a warp, {} kernels fail",
        tally.kernels,
        tally.launches,
        tally.masks,
        tally.partial,
        tally.failures.len()
    );
}
