//! A smaller program that still differs.
//!
//! One call is kept, then the functions that it needs, then what matters of their instructions. A smaller program may
//! trap or run forever where the whole one did not, so the interpreter has to get through it first, and then the host
//! in another process. Where the interpreter had the host's results it must still have them, so that nothing is found
//! by reading memory that no longer is set.

use crate::catalogue::{Catalogue, Oracle};
use crate::check::{Difference, compare};
use crate::program::Program;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use thisgpu_filetests::reduce::{RUNNABLE_STEPS, Reducer};

/// How long a small program may take in another process.
const PATIENCE: Duration = Duration::from_secs(2);

/// The smallest program found, with what is different, if `program` differs.
pub fn reduce(catalogue: &Catalogue, program: &Program) -> Option<(Program, Difference)> {
    let (mut small, kind, confirmation) = one_call(catalogue, program)?;
    let reduction = Reduction {
        catalogue,
        kind,
        confirmation,
    };
    reduction.drop_functions(&mut small);
    for index in (0..small.functions.len()).rev() {
        let fails = |func: &Function| {
            let mut candidate = small.clone();
            candidate.functions[index] = func.clone();
            reduction.difference(&candidate).is_some()
        };
        let reducer = Reducer {
            fails: &fails,
            steps: &RUNNABLE_STEPS,
            verbose: false,
        };
        let reduced = reducer.reduce(small.functions[index].clone());
        small.functions[index] = reduced;
        reduction.drop_functions(&mut small);
        if index >= small.functions.len() {
            break;
        }
    }
    reduction.drop_settings(&mut small);
    let difference = reduction.difference(&small)?;
    Some((small, difference))
}

/// How far the interpreter follows the oracle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Confirmation {
    /// Its results are the oracle's.
    Same,
    /// It has other results: one of the three is wrong, and it may be the host.
    Other,
    /// It lacks an operation.
    None,
}

/// What is different, and how far the interpreter confirms it. None as well if the program does not return.
fn difference(catalogue: &Catalogue, program: &Program) -> Option<(Difference, Confirmation)> {
    let interpreted = match program.interpreted() {
        Ok(results) => Some(results),
        Err(message) if message.contains("traps") || message.contains("fuel") => return None,
        Err(_) => None,
    };
    if program.oracle == Oracle::Host && !returns(program) {
        return None;
    }
    let (results, confirmation) = match (program.oracle, interpreted) {
        (Oracle::Interpreter, None) => return None,
        (Oracle::Interpreter, Some(interpreted)) => (interpreted, Confirmation::Same),
        (Oracle::Host, None) => (program.expected(catalogue).ok()?, Confirmation::None),
        (Oracle::Host, Some(interpreted)) => {
            let host = program.expected(catalogue).ok()?;
            let same = program.text(&host) == program.text(&interpreted);
            let confirmation = if same {
                Confirmation::Same
            } else {
                Confirmation::Other
            };
            (host, confirmation)
        }
    };
    compare(program, &results).map(|difference| (difference, confirmation))
}

/// Whether the program gets to its end on the host, tried in a process of its own.
fn returns(program: &Program) -> bool {
    // What the lines expect is not read.
    let zeros = |func: &Function| -> Vec<DataValue> {
        let returns = func.signature.returns.iter();
        returns
            .map(|param| DataValue::read_from_slice_le(&[0; 16], param.value_type))
            .collect()
    };
    let functions = program.functions.iter().zip(&program.calls);
    let any = functions
        .map(|(func, calls)| vec![zeros(func); calls.len()])
        .collect();
    let run = || -> std::io::Result<bool> {
        let path = std::env::temp_dir().join(format!("fuzz-{}.clif", std::process::id()));
        std::fs::write(&path, program.text(&any))?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--returns")
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status.success();
            }
            if start.elapsed() > PATIENCE {
                child.kill()?;
                child.wait()?;
                break false;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        std::fs::remove_file(&path)?;
        Ok(status)
    };
    run().unwrap_or(false)
}

/// The program with one call only, and what its difference is like.
fn one_call(catalogue: &Catalogue, program: &Program) -> Option<(Program, String, Confirmation)> {
    for (index, calls) in program.calls.iter().enumerate() {
        for call in calls {
            let mut candidate = program.clone();
            candidate.calls = vec![Vec::new(); program.functions.len()];
            candidate.calls[index] = vec![call.clone()];
            if let Some((difference, confirmation)) = difference(catalogue, &candidate) {
                return Some((candidate, difference.kind(), confirmation));
            }
        }
    }
    None
}

/// A reduction under way.
struct Reduction<'a> {
    catalogue: &'a Catalogue,
    /// The kind of difference that is to stay.
    kind: String,
    confirmation: Confirmation,
}

impl Reduction<'_> {
    fn difference(&self, program: &Program) -> Option<Difference> {
        let (difference, confirmation) = difference(self.catalogue, program)?;
        (difference.kind() == self.kind && confirmation == self.confirmation).then_some(difference)
    }

    fn drop_functions(&self, program: &mut Program) {
        for index in (0..program.functions.len()).rev() {
            let mut candidate = program.clone();
            candidate.functions.remove(index);
            candidate.calls.remove(index);
            if self.difference(&candidate).is_some() {
                *program = candidate;
            }
        }
    }

    fn drop_settings(&self, program: &mut Program) {
        for index in (0..program.settings.len()).rev() {
            let mut candidate = program.clone();
            candidate.settings.remove(index);
            if self.difference(&candidate).is_some() {
                *program = candidate;
            }
        }
    }
}
