//! One program on both sides.

use crate::catalogue::Catalogue;
use crate::program::{Program, Results};
use thisgpu_filetests::file::{TestOptions, test_text};
use thisgpu_filetests::panics;
use thisgpu_filetests::report::FileReport;

/// What came out.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The same results on both sides.
    Same,
    /// Something else.
    Different(Difference),
    /// The oracle could not run the program, and why.
    NoOracle(String),
}

/// A program whose results differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The program as a test by itself, with the oracle's results.
    pub text: String,
    /// What the target gave instead.
    pub errors: Vec<String>,
}

impl Difference {
    /// What kind of difference it is: the beginning of what the first message says, without place and numbers.
    pub fn kind(&self) -> String {
        let first = self.errors.first().map_or("", String::as_str);
        let said = first.rsplit(": ").next().unwrap_or_default();
        let words = said.split_whitespace();
        words
            .filter(|word| word.chars().all(char::is_alphabetic))
            .collect()
    }
}

/// Runs a program on both sides and compares the results bit by bit.
pub fn check(catalogue: &Catalogue, program: &Program) -> Outcome {
    match program.expected(catalogue) {
        Ok(results) => match compare(program, &results) {
            None => Outcome::Same,
            Some(difference) => Outcome::Different(difference),
        },
        Err(reason) => Outcome::NoOracle(reason),
    }
}

/// Runs a program on the simulator, line by line and side by side in a warp, and says what differs from `results`.
pub fn compare(program: &Program, results: &Results) -> Option<Difference> {
    let text = program.text(results);
    let name = format!("seed-{}.clif", program.seed);
    let tested = panics::catch(|| {
        let mut report = FileReport::new(&name);
        test_text(&text, &TestOptions::default(), &mut report);
        report
    });
    let errors = match tested {
        Ok(report) => {
            let lines: usize = program.calls.iter().map(Vec::len).sum();
            let mut errors = report.errors;
            if errors.is_empty() && report.passed != lines {
                errors.push(format!("{} of {lines} lines passed", report.passed));
            }
            errors
        }
        Err(panic) => vec![format!("panic: {panic}")],
    };
    (!errors.is_empty()).then_some(Difference { text, errors })
}
