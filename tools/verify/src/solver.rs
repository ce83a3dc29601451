//! Solvers: programs that read SMT-LIB from a pipe.

use crate::smt::{Arithmetic, Query, query};
use crate::term::{Sort, Term};
use hashbrown::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What a solver said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It cannot hold.
    Never,
    /// It holds for these variables; those that make no difference are left out.
    Holds(HashMap<Term, u128>),
    /// The solver gave up, or its time was over.
    Unknown,
}

/// Why a solver said nothing.
#[derive(Debug, thiserror::Error)]
pub enum SolverError {
    /// No solver is installed.
    #[error("neither z3 nor cvc5 can be started; install one of them (Debian: z3, cvc5)")]
    Missing,
    /// It was started and failed.
    #[error("{name}: {message}")]
    Failed {
        /// Which.
        name: &'static str,
        /// What the system or the solver says.
        message: String,
    },
}

/// A solver: its name, and the arguments that make it read standard input for so long.
struct Program {
    name: &'static str,
    /// Whether it takes bits for integers, which finds divisions at once and else is slow.
    is_of_integers: bool,
    arguments: fn(Duration) -> Vec<String>,
}

/// In the order in which they are asked.
const PROGRAMS: [Program; 3] = [
    Program {
        name: "z3",
        is_of_integers: false,
        arguments: |time| vec!["-in".to_owned(), format!("-T:{}", time.as_secs().max(1))],
    },
    Program {
        name: "cvc5",
        is_of_integers: false,
        arguments: |time| cvc5(time, &[]),
    },
    Program {
        name: "cvc5",
        is_of_integers: true,
        arguments: |time| cvc5(time, &["--solve-bv-as-int=sum"]),
    },
];

fn cvc5(time: Duration, more: &[&str]) -> Vec<String> {
    let limit = format!("--tlimit={}", time.as_millis());
    let known = ["--lang=smt2", "--produce-models", &limit];
    known.iter().chain(more).map(|&s| s.to_owned()).collect()
}

/// The solvers of this machine.
#[derive(Clone, Debug)]
pub struct Solvers {
    /// How long one may take for a question.
    pub time: Duration,
    installed: Vec<usize>,
}

impl Solvers {
    /// Those that can be started.
    ///
    /// # Errors
    /// When none can.
    pub fn find(time: Duration) -> Result<Self, SolverError> {
        let starts = |&index: &usize| {
            let mut command = Command::new(PROGRAMS[index].name);
            let command = command
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let installed: Vec<usize> = (0..PROGRAMS.len()).filter(starts).collect();
        if installed.is_empty() {
            return Err(SolverError::Missing);
        }
        Ok(Self { time, installed })
    }

    /// Whether a truth can hold, as far as it is found in this time. First products and quotients are unknown functions;
    /// only what may hold then is asked with them.
    ///
    /// # Errors
    /// When a solver cannot be started or says something that is no answer.
    pub fn can_hold_within(&self, truth: Term, time: Duration) -> Result<Answer, SolverError> {
        match truth.as_known() {
            Some(true) => return Ok(Answer::Holds(HashMap::new())),
            Some(false) => return Ok(Answer::Never),
            None => {}
        }
        let exact = query(truth, Arithmetic::Exact);
        if exact.has_products
            && self.ask(&query(truth, Arithmetic::Unknown), time)? == Answer::Never
        {
            return Ok(Answer::Never);
        }
        self.ask(&exact, time)
    }

    /// What the solvers say of a text of SMT-LIB that ends before `(check-sat)`.
    ///
    /// # Errors
    /// As [`Solvers::can_hold_within`].
    pub fn ask_text(&self, text: &str) -> Result<Answer, SolverError> {
        let query = Query {
            text: text.to_owned(),
            variables: Vec::new(),
            has_products: false,
            has_divisions: false,
            has_functions: false,
        };
        self.ask(&query, self.time)
    }

    /// The first answer of a solver that has so much time.
    fn ask(&self, query: &Query, time: Duration) -> Result<Answer, SolverError> {
        let mut order: Vec<&Program> = self
            .installed
            .iter()
            .map(|&index| &PROGRAMS[index])
            .collect();
        if query.has_divisions {
            order.sort_by_key(|program| !program.is_of_integers);
        }
        for program in order {
            let answer = run(program, time, query)?;
            if answer != Answer::Unknown {
                return Ok(answer);
            }
        }
        Ok(Answer::Unknown)
    }
}

fn run(program: &Program, time: Duration, query: &Query) -> Result<Answer, SolverError> {
    let name = program.name;
    let failed = |message: String| SolverError::Failed { name, message };
    let mut child = Command::new(name)
        .args((program.arguments)(time))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let asked: Vec<&(Term, String, Sort)> = (query.variables.iter())
        .filter(|v| v.2 != Sort::Memory)
        .collect();
    let mut text = query.text.clone();
    text.push_str("(check-sat)\n");
    for (_, name, _) in &asked {
        text.push_str(&format!("(get-value (|{name}|))\n"));
    }
    if let Some(mut input) = child.stdin.take() {
        // A solver that ends early answers all the same.
        let _ = input.write_all(text.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| failed(error.to_string()))?;
    let output = String::from_utf8_lossy(&output.stdout);
    let mut lines = output.lines();
    match lines.next().map(str::trim) {
        Some("unsat") => Ok(Answer::Never),
        Some("sat") => {
            let values = asked.iter().zip(lines);
            let model = values.filter_map(|((term, ..), line)| Some((*term, number(line)?)));
            Ok(Answer::Holds(model.collect()))
        }
        Some("unknown" | "timeout") | None => Ok(Answer::Unknown),
        Some(line) if line.contains("timeout") || line.contains("interrupted") => {
            Ok(Answer::Unknown)
        }
        Some(line) => Err(failed(line.to_owned())),
    }
}

/// The number in `((|name| #x…))`.
fn number(line: &str) -> Option<u128> {
    let value = line.trim().trim_end_matches(')').rsplit(' ').next()?;
    if let Some(digits) = value.strip_prefix("#x") {
        return u128::from_str_radix(digits, 16).ok();
    }
    if let Some(digits) = value.strip_prefix("#b") {
        return u128::from_str_radix(digits, 2).ok();
    }
    match value {
        "true" => Some(1),
        "false" => Some(0),
        _ => None,
    }
}
