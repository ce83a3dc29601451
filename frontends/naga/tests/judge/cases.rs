//! The files of the data: read line by line, grouped by case, judged on all cores.

use super::mended;
use super::record::{Outcome, Record};
use super::run::Machine;
use lzma_rust2::XzReader;
use rayon::prelude::*;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;

/// The stack of a thread: naga reads expressions by recursion.
const STACK: usize = 64 << 20;

/// A number for a name, the same everywhere (FNV-1a).
pub fn hash(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The lines of one case.
struct Case {
    file: String,
    name: String,
    lines: Vec<String>,
    /// The record of the same expressions with inputs in storage, if these are in uniform memory and it is one.
    partner: Option<String>,
}

/// Judges the cases of a folder that are taken.
pub fn judge(folder: &Path, is_taken: impl Fn(&str) -> bool + Sync) -> Record {
    let record = Mutex::new(Record::default());
    each(folder, is_taken, |case| {
        let mut machine = Machine::new();
        let outcome = judge_case(&mut machine, &case);
        let mut record = record.lock().expect("nobody panics");
        record.add(&case.file, &case.name, outcome);
        record.add_times(machine.shaders, &machine.times);
    });
    record.into_inner().expect("nobody panics")
}

/// Compares the shaders of cases on expressions that are taken with what naga's own SPIR-V of them gives: how many give
/// equal bits, and what is said of the others.
pub fn twins(folder: &Path, is_taken: impl Fn(&str) -> bool + Sync) -> (usize, Vec<String>) {
    let found = Mutex::new((0, Vec::new()));
    each(folder, is_taken, |case| {
        let mut machine = Machine::new();
        let Some(Ok(record)) = case.lines.first().map(|line| serde_json::from_str(line)) else {
            return;
        };
        let compared = machine.twins(&record);
        let mut found = found.lock().expect("nobody panics");
        match compared {
            Ok(compared) => found.0 += usize::from(compared),
            Err(error) => found.1.push(format!("{}: {error}", case.name)),
        }
    });
    found.into_inner().expect("nobody panics")
}

/// Translates every entry point of every shader of the data, each once: how many shaders there are, how many naga and
/// the translator refuse, and those that panic or are refused without a place.
pub fn translated(folder: &Path) -> ([usize; 3], Vec<String>) {
    let known = Mutex::new(HashSet::new());
    let found = Mutex::new(([0; 3], Vec::new()));
    each(
        folder,
        |_| true,
        |case| {
            for record in &case.lines {
                let record: Value = serde_json::from_str(record).expect("the data is JSON");
                let ops = record["ops"].as_array().into_iter().flatten();
                let codes = ops.map(|op| &op["code"]).chain([&record["wgsl"]]);
                for code in codes.filter_map(Value::as_str) {
                    if !known.lock().expect("nobody panics").insert(hash(code)) {
                        continue;
                    }
                    let outcome = std::panic::catch_unwind(|| super::run::translated(code));
                    let mut found = found.lock().expect("nobody panics");
                    found.0[0] += 1;
                    match outcome {
                        Ok(Outcome::Passed) => {}
                        Ok(Outcome::Naga(_)) => found.0[1] += 1,
                        Ok(Outcome::Ours(_)) => found.0[2] += 1,
                        Ok(other) => found.1.push(format!("{}: {other:?}", case.name)),
                        Err(_) => found.1.push(format!("{}: a panic", case.name)),
                    }
                }
            }
        },
    );
    found.into_inner().expect("nobody panics")
}

/// Does something with each case that is taken, on all cores.
fn each(folder: &Path, is_taken: impl Fn(&str) -> bool + Sync, body: impl Fn(Case) + Sync) {
    let chosen = std::env::var("JUDGE_FILES").ok();
    let chosen: Option<Vec<&str>> = chosen.as_ref().map(|names| names.split(',').collect());
    let files = std::fs::read_dir(folder).expect("the folder can be read");
    let mut files: Vec<_> = files
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    files.retain(|file| file.ends_with(".jsonl.xz"));
    files.retain(|file| {
        chosen
            .as_ref()
            .is_none_or(|names| names.contains(&&file[..file.len() - 9]))
    });
    files.sort();
    let (sender, receiver) = sync_channel::<Case>(64);
    let pool = rayon::ThreadPoolBuilder::new()
        .stack_size(STACK)
        .build()
        .expect("threads");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for file in &files {
                for case in read(folder, file, &is_taken) {
                    if sender.send(case).is_err() {
                        return;
                    }
                }
            }
            drop(sender);
        });
        pool.install(|| receiver.into_iter().par_bridge().for_each(&body));
    });
}

fn judge_case(machine: &mut Machine, case: &Case) -> Outcome {
    let mut worst = Outcome::Passed;
    let records: Result<Vec<Value>, _> = case
        .lines
        .iter()
        .map(|line| serde_json::from_str(line))
        .collect();
    let mut records = match records {
        Ok(records) => records,
        Err(error) => return Outcome::Wrong(format!("no JSON: {error}")),
    };
    if case.name.contains("access,array,index:matrix:") {
        mended::matrix_inputs(&mut records);
    }
    if let Some(partner) = &case.partner {
        mended::uniform_inputs(&mut records, partner);
    }
    for record in records {
        match machine.record(&record) {
            Ok(()) => {}
            // What naga refuses of a case is said of the whole case, whatever else comes of it.
            Err(outcome @ Outcome::Naga(_)) => return outcome,
            Err(outcome) if worst == Outcome::Passed => worst = outcome,
            Err(outcome @ Outcome::Wrong(_)) if matches!(worst, Outcome::Ours(_)) => {
                worst = outcome
            }
            Err(_) => {}
        }
    }
    worst
}

/// The cases of a file.
fn read<'a>(
    folder: &Path,
    file: &'a str,
    is_taken: &'a impl Fn(&str) -> bool,
) -> impl Iterator<Item = Case> + 'a {
    let mut lines = open(folder, file);
    let partners = partners(folder, file, is_taken);
    let mut next: Option<(String, String)> = None;
    let mut line = String::new();
    let stem = file.trim_end_matches(".jsonl.xz");
    std::iter::from_fn(move || {
        let mut case: Option<Case> = None;
        loop {
            let (name, text) = match next.take() {
                Some(read) => read,
                None => {
                    line.clear();
                    let read = lines.read_line(&mut line).expect("the file is whole");
                    if read == 0 {
                        return case;
                    }
                    let name = name(&line);
                    if !is_taken(&name) {
                        if case.is_some() {
                            return case;
                        }
                        continue;
                    }
                    (name, line.clone())
                }
            };
            match &mut case {
                Some(case) if case.name == name => case.lines.push(text),
                Some(_) => {
                    next = Some((name, text));
                    return case;
                }
                None => {
                    case = Some(Case {
                        file: stem.to_string(),
                        partner: partners.get(&name).cloned(),
                        name,
                        lines: vec![text],
                    });
                }
            }
        }
    })
}

/// A file of the data.
fn open(folder: &Path, file: &str) -> impl BufRead + use<> {
    let packed = File::open(folder.join(file)).expect("the file can be read");
    BufReader::with_capacity(1 << 20, XzReader::new(BufReader::new(packed), true))
}

/// Of cases with uniform inputs that are taken, the one record of the case with the same inputs in storage. A file of
/// another kind has none.
fn partners(
    folder: &Path,
    file: &str,
    is_taken: &impl Fn(&str) -> bool,
) -> HashMap<String, String> {
    let (uniform, storage) = ("inputSource=\"uniform\"", "inputSource=\"storage_r\"");
    let mut found = HashMap::new();
    let mut repeated = HashSet::new();
    for (number, line) in open(folder, file).lines().enumerate() {
        let line = line.expect("the file is whole");
        let name = name(&line);
        if number == 0 && !line.contains(",\"wgsl\":") {
            break;
        }
        let wanted = name.replace(storage, uniform);
        if wanted == name || !is_taken(&wanted) {
            continue;
        }
        if found.insert(wanted.clone(), line).is_some() {
            repeated.insert(wanted);
        }
    }
    found.retain(|name, _| !repeated.contains(name));
    found
}

/// The name, with which a line begins, without reading the rest.
fn name(line: &str) -> String {
    let start = "{\"name\":";
    let rest = line
        .strip_prefix(start)
        .expect("a record begins with its name");
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let name = values.next().expect("a name").expect("a name is a text");
    name.trim_start_matches("webgpu:shader,execution,")
        .to_string()
}
