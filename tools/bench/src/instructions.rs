//! Costs as instructions of the host, counted by valgrind: the same from run to run, whatever else the machine does.
//!
//! The parent starts itself again under callgrind. The child compiles everything once to warm up and to find what all
//! compilers compile, and then the functions of each source and class in one call of [`counted_batch`] for each
//! compiler; callgrind collects in that function only and writes a file whenever it returns. The child says on a line
//! of its output what each of those files is about.

use crate::corpus::{self, Class, File, Source};
use crate::reference::Reference;
use crate::subject::{Refusal, Subject};
use crate::table::{Cell, Measure, Skipped, Table};
use anyhow::{Context, Result, bail};
use cranelift_thisgpu::compile::SourceFunction;
use cranelift_thisgpu::compile::{FunctionInput, Unit};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

/// Who compiled a batch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Who {
    Reference,
    Subject(usize),
    /// Nobody: functions were announced to units.
    Announced,
}

/// A batch, as the child tells of it.
#[derive(Debug, Serialize, Deserialize)]
struct Batch {
    who: Who,
    source: usize,
    /// Index in [`Class::ALL`]; 0 of all classes together.
    class: usize,
    functions: usize,
    clif: usize,
}

/// Functions left out, as the child tells of them when it is done.
type AllSkipped = Vec<[usize; 4]>;

/// The name of [`counted_batch`]. Callgrind takes no pattern here: of two options with the same pattern it heeds one.
const COUNTED: &str = concat!(module_path!(), "::counted_batch");

/// The one function that callgrind counts.
#[inline(never)]
fn counted_batch(run: &mut dyn FnMut()) {
    run();
}

/// Starts a child under valgrind, with this process's arguments.
///
/// # Errors
/// When valgrind is not installed, or fails.
pub fn measure(sources: &[Source], labels: Vec<String>) -> Result<Table> {
    let folder = std::env::temp_dir().join(format!("bench-callgrind-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    let table = in_folder(&folder, sources, labels);
    std::fs::remove_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    table
}

fn in_folder(folder: &Path, sources: &[Source], labels: Vec<String>) -> Result<Table> {
    let program = std::env::current_exe().context("this program's own path")?;
    let out = folder.join("out");
    let child = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(format!("--toggle-collect={COUNTED}"))
        .arg(format!("--dump-after={COUNTED}"))
        .arg(program)
        .args(std::env::args_os().skip(1))
        .arg("--instructions-child")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output();
    let output = match child {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "`valgrind` is not installed: without it there are no instruction counts; leave --instructions out to \
             measure times"
        ),
        Err(error) => return Err(error).context("valgrind"),
    };
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        let own = error.lines().find(|line| !line.starts_with("=="));
        bail!("valgrind: {}: {}", output.status, own.unwrap_or_default());
    }
    let text = String::from_utf8(output.stdout).context("the child's output")?;
    let (batches, last) = text
        .trim_end()
        .rsplit_once('\n')
        .context("the child's output")?;
    let mut table = Table::new(Measure::Instructions, true, labels.clone(), sources);
    let skipped: AllSkipped = serde_json::from_str(last).context("the child's last line")?;
    for (index, [ours, our_panics, theirs, their_panics]) in skipped.into_iter().enumerate() {
        *table.skipped(index) = Skipped {
            ours,
            our_panics,
            theirs,
            their_panics,
        };
    }
    let batches: Vec<Batch> = batches
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .context("the child's output")?;
    // By source, what a CLIF instruction costs to be announced.
    let mut announced = vec![0.0; sources.len()];
    for (number, batch) in batches.iter().enumerate() {
        // The file of the first call has the number 1.
        let count = total(&folder.join(format!("out.{}", number + 1)))?;
        let mut cell = Cell {
            subjects: vec![0.0; labels.len()],
            ..Cell::default()
        };
        match batch.who {
            Who::Announced => {
                announced[batch.source] = count / batch.clif.max(1) as f64;
                continue;
            }
            Who::Reference => {
                cell.reference = count;
                cell.functions = batch.functions;
                cell.clif = batch.clif;
            }
            Who::Subject(subject) => {
                cell.subjects[subject] = count + announced[batch.source] * batch.clif as f64;
            }
        }
        table.add(batch.source, Class::ALL[batch.class], &cell);
    }
    Ok(table)
}

/// The instructions of a file of callgrind's.
fn total(path: &Path) -> Result<f64> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let number = line.with_context(|| format!("{}: no totals", path.display()))?;
    number
        .trim()
        .parse()
        .with_context(|| format!("{}: {number}", path.display()))
}

/// A function that all compilers compile.
struct Accepted<'a> {
    function: &'a SourceFunction,
    name: String,
    file: usize,
    clif: usize,
}

/// What runs under valgrind.
///
/// # Errors
/// When the reference is not there.
pub fn child(sources: &[Source], subjects: &mut [Subject]) -> Result<()> {
    let mut reference = Reference::new()?;
    let mut all_skipped = AllSkipped::new();
    for (index, source) in sources.iter().enumerate() {
        let say = |who, class, functions: &[&Accepted<'_>], clif| -> Result<()> {
            let batch = Batch {
                who,
                source: index,
                class,
                functions: functions.len(),
                clif,
            };
            println!("{}", serde_json::to_string(&batch)?);
            Ok(())
        };
        let mut units: Vec<Unit> = Vec::with_capacity(source.files.len());
        counted_batch(&mut || {
            let announce = |file: &File| Subject::announce(&file.text).0;
            units.extend(source.files.iter().map(announce));
        });
        let functions = source.files.iter().flat_map(|file| &file.text.functions);
        let clif = functions.map(|function| corpus::size(&function.func)).sum();
        say(Who::Announced, 0, &[], clif)?;
        let (accepted, skipped) = warm_up(source, &units, subjects, &mut reference);
        all_skipped.push(skipped);
        for (number, class) in Class::ALL.into_iter().enumerate() {
            let batch: Vec<&Accepted<'_>> = (accepted.iter())
                .filter(|accepted| Class::of(accepted.clif) == class)
                .collect();
            if batch.is_empty() {
                continue;
            }
            let clif = batch.iter().map(|accepted| accepted.clif).sum();
            counted_batch(&mut || {
                for accepted in &batch {
                    // It compiled before.
                    let _ = reference.compile(&accepted.function.func);
                }
            });
            say(Who::Reference, number, &batch, clif)?;
            for (i, subject) in subjects.iter_mut().enumerate() {
                let mut into = units.clone();
                counted_batch(&mut || {
                    for accepted in &batch {
                        let input = FunctionInput::of_source(accepted.function, &accepted.name);
                        let _ = subject.compile(&input, &mut into[accepted.file]);
                    }
                });
                say(Who::Subject(i), number, &batch, clif)?;
            }
        }
    }
    println!("{}", serde_json::to_string(&all_skipped)?);
    Ok(())
}

/// Compiles every function of a source by all, once.
fn warm_up<'a>(
    source: &'a Source,
    units: &[Unit],
    subjects: &mut [Subject],
    reference: &mut Reference,
) -> (Vec<Accepted<'a>>, [usize; 4]) {
    let (mut accepted, mut skipped) = (Vec::new(), [0; 4]);
    for (file, unit) in units.iter().enumerate() {
        'functions: for function in &source.files[file].text.functions {
            let name = function.name();
            let input = FunctionInput::of_source(function, &name);
            for subject in subjects.iter_mut() {
                if let Err(refusal) = subject.compile(&input, &mut unit.clone()) {
                    skipped[usize::from(refusal == Refusal::Panic)] += 1;
                    continue 'functions;
                }
            }
            if let Err(refusal) = reference.compile(&function.func) {
                skipped[2 + usize::from(refusal == Refusal::Panic)] += 1;
                continue;
            }
            let clif = corpus::size(&function.func);
            accepted.push(Accepted {
                function,
                name,
                file,
                clif,
            });
        }
    }
    (accepted, skipped)
}
