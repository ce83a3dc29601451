//! Random kernels, compiled with the flags that keep barriers and with those that do not.
//!
//! The interpreter runs the reference and what LLVM's passes made. With the right flags all threads are at the same
//! call in every event, the results are those of the reference, and the check finds nothing. With an ordinary `-O3`
//! some kernels are broken, and the check finds every one of those.

use super::generate::{PRELUDE, Random, kernel};
use super::interpret::{THREADS, is_together, names, run};
use crate::convergence::check_kernels;
use crate::error::{Moved, Problem};
use crate::flags::{Checks, Compilation, DebugInfo, OptLevel, flags};
use crate::{Module, Program};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Kernels of a file: rustc's own start is most of its time.
const KERNELS: u64 = 40;

/// Values of `n` and `m`.
const SIZES: &[(u32, u32)] = &[(0, 0), (3, 1), (5, 6)];

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

/// The program that rustc makes of a file.
fn compile(source: &Path, out: &Path, flags: &[String]) -> Program {
    let mut command = Command::new("rustc");
    command.args(["--edition=2024", "--crate-type=lib", "--crate-name=k"]);
    command.args(flags).arg("-o").arg(out).arg(source);
    let output = command.output().expect("there is a rustc");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    let text = fs::read_to_string(out).expect("rustc has written the file");
    let module = Module::parse("k", &text).expect("the text is LLVM's");
    Program::link(vec![module]).expect("there is one module")
}

/// What plain `-C opt-level=3` does.
fn ordinary() -> Vec<String> {
    let wanted = [
        "-Copt-level=3",
        // The interpreter knows no vectors.
        "-Cno-vectorize-loops",
        "-Cno-vectorize-slp",
        "-Ccodegen-units=1",
        "-Cpanic=abort",
        "-Cdebuginfo=1",
        "-Cforce-unwind-tables=no",
        "-Csymbol-mangling-version=v0",
        "--emit=llvm-ir",
    ];
    wanted.map(String::from).to_vec()
}

#[derive(Default)]
struct Counts {
    kernels: u64,
    broken: u64,
    refused: u64,
    refused_right: u64,
}

/// Compares the kernels of a seed in one way of compiling with the reference.
fn compare(folder: &Path, seed: u64, kept: bool, counts: &mut Counts) {
    let names_of: Vec<String> = (0..KERNELS).map(|index| format!("k{index}")).collect();
    let mut text = PRELUDE.to_string();
    for (index, name) in (0..).zip(&names_of) {
        text.push_str(&kernel(name, seed * KERNELS + index));
    }
    let source = folder.join(format!("{seed}.rs"));
    fs::write(&source, text).expect("the folder is there");
    let checks = Checks::default();
    let reference_flags = flags(Compilation::Reference, checks, DebugInfo::Lines);
    let reference = compile(
        &source,
        &folder.join(format!("{seed}.ref.ll")),
        &reference_flags,
    );
    let level = [OptLevel::More, OptLevel::Aggressive, OptLevel::Size][seed as usize % 3];
    let flags = match kept {
        true => flags(Compilation::Optimised(level), checks, DebugInfo::Lines),
        false => ordinary(),
    };
    let optimised = compile(&source, &folder.join(format!("{seed}.opt.ll")), &flags);
    let mut random = Random::new(seed);
    for name in &names_of {
        counts.kernels += 1;
        let mut broken = false;
        for &(n, m) in SIZES {
            let input: Vec<u32> = (0..THREADS).map(|_| random.next() as u32).collect();
            let expected = run(&reference, name, &input, n, m);
            let expected =
                expected.unwrap_or_else(|e| panic!("seed {seed}, {name}: reference: {e}"));
            assert!(
                is_together(&expected),
                "seed {seed}, {name}: threads part in the source itself"
            );
            match run(&optimised, name, &input, n, m) {
                Ok(found) => {
                    assert_eq!(found.output, expected.output, "seed {seed}, {name}");
                    assert_eq!(names(&found), names(&expected), "seed {seed}, {name}");
                    broken |= !is_together(&found);
                }
                Err(error) => panic!("seed {seed}, {name}: {error}"),
            }
        }
        let checked = if kept {
            check_kernels(&optimised, &reference, &[name])
        } else {
            // That it is not convergent is known; whether the sites are right is the question.
            sites_only(&optimised, &reference, name)
        };
        counts.broken += u64::from(broken);
        counts.refused += u64::from(checked.is_err());
        counts.refused_right += u64::from(checked.is_err() && !broken);
        if kept {
            assert!(!broken, "seed {seed}, {name}: threads part");
            assert!(checked.is_ok(), "seed {seed}, {name}: {:#?}", checked.err());
        } else {
            assert!(
                !broken || checked.is_err(),
                "seed {seed}, {name}: broken and not found"
            );
        }
    }
}

/// The check without the question whether LLVM was told.
fn sites_only(
    optimised: &Program,
    reference: &Program,
    kernel: &str,
) -> Result<(), Vec<crate::Error>> {
    let errors = check_kernels(optimised, reference, &[kernel])
        .err()
        .unwrap_or_default();
    let told = |error: &crate::Error| {
        let moved = Moved::NotConvergent;
        !matches!(error.problem, Problem::Moved { moved: how, .. } if how == moved)
    };
    let errors: Vec<_> = errors.into_iter().filter(told).collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("thisgpu-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// `CONVERGENCE_FILES` files of forty kernels from `CONVERGENCE_SEED` on.
fn campaign(name: &str, kept: bool, files: u64) -> Counts {
    let (seed, files) = (
        number("CONVERGENCE_SEED", 1),
        number("CONVERGENCE_FILES", files),
    );
    let folder = folder(name);
    let mut counts = Counts::default();
    println!("seed {seed}, {files} files of {KERNELS} kernels");
    for seed in seed..seed + files {
        compare(&folder, seed, kept, &mut counts);
    }
    fs::remove_dir_all(&folder).expect("the folder is still there");
    println!(
        "{name}: {} kernels, {} broken, {} refused, of which {} are right",
        counts.kernels, counts.broken, counts.refused, counts.refused_right
    );
    counts
}

#[test]
fn the_flags_keep_what_waits_together() {
    campaign("kept", true, 3);
}

#[test]
fn the_check_finds_what_an_ordinary_compilation_breaks() {
    let counts = campaign("ordinary", false, 2);
    assert!(counts.broken > 0, "the kernels tempt nobody");
}
