//! `fuzz --simt N --seed S`: random kernels of many threads.

use crate::{Arguments, progress};
use anyhow::{Context, Result};
use fuzz::simt::campaign::{self, Tally};
use fuzz::simt::{check, emit, generate, reduce};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Settings of the compiler that each kernel is compiled in.
const SETTINGS: usize = 2;

/// Checks kernels, or prints one.
pub fn run(arguments: &Arguments, kernels: u64) -> Result<ExitCode> {
    if arguments.print || arguments.reduce {
        return Ok(print(arguments));
    }
    if let Some(folder) = &arguments.keep {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let seeds = arguments.seed..arguments.seed + kernels;
    let start = Instant::now();
    let bar = progress(kernels, "kernels")?;
    let found = AtomicU64::new(0);
    bar.set_message("no failure");
    let tally = campaign::run(seeds, SETTINGS, &|tally: &Tally| {
        for (seed, _, failure) in &tally.failures {
            let count = found.fetch_add(1, Ordering::Relaxed) + 1;
            bar.set_message(format!("{count} fail"));
            let text = format!("seed {seed}: {failure}");
            bar.suspend(|| println!("{text}"));
            if let Some(folder) = &arguments.keep {
                let path = folder.join(format!("simt-{seed}.clif"));
                let contents = format!("; {text}\n{}", emit::text(&generate::kernel(*seed)));
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
        arguments.seed,
        arguments.seed + kernels.max(1) - 1
    );
    Ok(if tally.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Prints the kernel of the seed, smaller if that is wanted, and what is wrong with it.
fn print(arguments: &Arguments) -> ExitCode {
    let kernel = generate::kernel(arguments.seed);
    match check::check(&kernel, SETTINGS) {
        Ok(_) => {
            print!("{}", emit::text(&kernel));
            if arguments.reduce {
                eprintln!("seed {}: nothing is wrong", arguments.seed);
            }
            ExitCode::SUCCESS
        }
        Err(failure) => {
            let (kernel, failure) = if arguments.reduce {
                reduce::reduce(&kernel, &failure)
            } else {
                (kernel, failure)
            };
            print!("{}", emit::text(&kernel));
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
