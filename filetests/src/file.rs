//! One test file: header, kinds of tests, outcome.

use crate::applicability;
use crate::checks::{self, Check};
use crate::expectation::{self, Region};
use crate::report::FileReport;
use crate::stepping::Tally;
use crate::{compiled, execute, interpret, panics, text_of};
use cranelift_codegen::settings::{self, Configurable, SetError};
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::compile::{Pass, Timings};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::unstable::clif::source::HeaderLine;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Name in `target` lines.
pub const TARGET: &str = "thisgpu";

/// Bytes of a file that are read: a device that never ends must not fill memory (assigned).
const MOST_BYTES: u64 = 256 << 20;

/// How files are tested.
#[derive(Clone, Debug, Default)]
pub struct TestOptions {
    /// Take files for other targets as if they named this one: what does not apply or is not supported is skipped.
    pub force_target: bool,
    /// Settings over those of the files.
    pub settings: Vec<String>,
    /// Rewrite expectations instead of comparing.
    pub bless: bool,
    /// Count the time that the passes of the compiler take.
    pub timed: bool,
    /// Make all launches in the debugger too, without cycles, and count them here.
    pub stepped: Option<Stepped>,
}

/// How launches are stepped.
#[derive(Clone, Debug)]
pub struct Stepped {
    /// Points of a launch from which it goes back.
    pub points: u32,
    /// Which points.
    pub seed: u64,
    /// What was compared.
    pub tally: Arc<Tally>,
}

/// A kind of test with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Run,
    Interpret,
    /// `compile`, with what is printed compared.
    Compile(Comparison),
    /// `optimize`, `pass NAME`: the function after a pass.
    After(Pass, Comparison),
    Check(Check, Comparison),
}

/// How output is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    /// With the lines after the function.
    Exact,
    /// With filecheck directives.
    Directives,
}

/// Tests a file; `-` is standard input.
pub fn test_file(path: &Path, options: &TestOptions) -> FileReport {
    let standard = is_standard(path);
    let name = if standard {
        "<stdin>".to_owned()
    } else {
        path.display().to_string()
    };
    let start = Instant::now();
    let mut report = FileReport::new(&name);
    match read(path, &name) {
        Ok(text) => {
            let tested = panics::catch(|| {
                let mut report = FileReport::new(&name);
                let blessed = test_text(&text, options, &mut report);
                (report, blessed)
            });
            match tested {
                Ok((outcome, blessed)) => {
                    report = outcome;
                    match blessed {
                        Some(_) if standard => report.errors.push(format!(
                            "{name}: expectations differ, and there is no file to write them to"
                        )),
                        Some(blessed) => {
                            if let Err(error) = std::fs::write(path, blessed) {
                                report.errors.push(format!("{name}: {error}"));
                            }
                        }
                        None => {}
                    }
                }
                Err(message) => report.errors.push(format!("{name}: {message}")),
            }
        }
        Err(error) => report.errors.push(error),
    }
    report.micros = start.elapsed().as_micros() as u64;
    report
}

/// Whether a path is standard input.
fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The text of a file, or of standard input.
fn read(path: &Path, name: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = if is_standard(path) {
        std::io::stdin().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| format!("{name}: {error}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("{name} has more than {MOST_BYTES} bytes"));
    }
    text_of(name, bytes)
}

/// Tests a text; gives the text with new expectations if they are to be rewritten and differ.
pub fn test_text(text: &str, options: &TestOptions, report: &mut FileReport) -> Option<String> {
    let file = match SourceFile::parse(&report.file, text) {
        Ok(file) => file,
        Err(errors) => {
            report.errors.push(errors.to_string());
            return None;
        }
    };
    report.timings = options.timed.then(Timings::default);
    if options.force_target {
        run_forced(&file, options, report);
        return None;
    }
    if !file.header.targets.is_empty() && target_line(&file).is_none() {
        report.skip(format!("no `target {TARGET}`"), run_line_count(&file));
        return None;
    }
    let (settings, kinds) = match (settings_of(&file, &options.settings, true), kinds_of(&file)) {
        (Ok(settings), Ok(kinds)) => (settings, kinds),
        (Err(error), _) | (_, Err(error)) => {
            report.errors.push(error);
            return None;
        }
    };
    let lines: Vec<u32> = file
        .functions
        .iter()
        .map(|function| function.line)
        .collect();
    let regions = expectation::regions(text, &lines);
    let tester = Tester {
        text,
        file: &file,
        settings,
        regions,
    };
    kinds
        .iter()
        .filter_map(|kind| tester.run(kind, options, report))
        .last()
}

/// The line that names this target.
pub fn target_line(file: &SourceFile) -> Option<&HeaderLine> {
    file.header
        .targets
        .iter()
        .find(|line| line.words.first().is_some_and(|word| word == TARGET))
}

/// Run lines of a file meant for other targets.
fn run_forced(file: &SourceFile, options: &TestOptions, report: &mut FileReport) {
    if let Some(reason) = applicability::of_file(file) {
        return report.skip(reason, run_line_count(file));
    }
    match settings_of(file, &options.settings, false) {
        Ok(settings) => {
            execute::run_file(file, &settings, false, options.stepped.as_ref(), report);
        }
        Err(error) => report.errors.push(error),
    }
    report.skip_if_empty();
}

/// Number of run lines that can be read.
fn run_line_count(file: &SourceFile) -> usize {
    let lines = file
        .functions
        .iter()
        .filter_map(|function| function.run_lines(&file.name).ok());
    lines.map(|lines| lines.len()).sum()
}

/// The settings of a file: its `set` lines, its target's options, then those of the caller.
///
/// # Errors
/// An unknown setting or an illegal value, with its line.
pub fn settings_of(
    file: &SourceFile,
    over: &[String],
    with_target: bool,
) -> Result<Options, String> {
    let mut settings = Options::default();
    let target = with_target.then(|| target_line(file)).flatten();
    let of_target = target
        .into_iter()
        .flat_map(|line| line.words[1..].iter().map(|word| (line.line, word)));
    let of_file = file
        .header
        .settings
        .iter()
        .flat_map(|line| line.words.iter().map(|word| (line.line, word)));
    for (line, word) in of_file.chain(of_target) {
        set(&mut settings, word).map_err(|error| format!("{}:{line}: {error}", file.name))?;
    }
    for word in over {
        settings.set(word).map_err(|error| error.to_string())?;
    }
    Ok(settings)
}

/// Applies one setting. Cranelift's shared flags that mean nothing to this target are checked and left.
fn set(settings: &mut Options, word: &str) -> Result<(), String> {
    let (name, value) = word.split_once('=').unwrap_or((word, "true"));
    if Options::knows(name) {
        return settings.set(word).map_err(|error| error.to_string());
    }
    match settings::builder().set(name, value) {
        Ok(()) => Ok(()),
        Err(SetError::BadName(_)) => settings.set(word).map_err(|error| error.to_string()),
        Err(error) => Err(format!("setting {name}: {error}")),
    }
}

/// The kinds of tests that the header asks for.
fn kinds_of(file: &SourceFile) -> Result<Vec<Kind>, String> {
    let kinds: Vec<Kind> = (file.header.tests.iter())
        .map(|line| kind_of(line).map_err(|error| format!("{}:{}: {error}", file.name, line.line)))
        .collect::<Result<_, _>>()?;
    if kinds.is_empty() {
        return Err(format!(
            "{}: no `test` line; write one, for example `test run`",
            file.name
        ));
    }
    let exact = kinds
        .iter()
        .filter(|kind| kind.comparison() == Some(Comparison::Exact))
        .count();
    if exact > 1 {
        return Err(format!(
            "{}: only one test of a file can be precise-output",
            file.name
        ));
    }
    Ok(kinds)
}

fn kind_of(line: &HeaderLine) -> Result<Kind, String> {
    let mut words = line.words.iter().map(String::as_str);
    let name = words.next().unwrap_or_default();
    let mut rest: Vec<&str> = words.collect();
    let exact = rest
        .iter()
        .position(|word| *word == "precise-output")
        .map(|at| rest.remove(at));
    let comparison = if exact.is_some() {
        Comparison::Exact
    } else {
        Comparison::Directives
    };
    let kind = match name {
        "run" => Kind::Run,
        "interpret" => Kind::Interpret,
        "compile" => Kind::Compile(comparison),
        "optimize" => Kind::After(Pass::MidEnd, comparison),
        "pass" => {
            let names = Pass::ALL.map(Pass::name).join(", ");
            let pass = rest.pop().and_then(Pass::from_name);
            Kind::After(
                pass.ok_or_else(|| format!("`test pass` needs one of {names}"))?,
                comparison,
            )
        }
        _ => match Check::ALL.iter().find(|(known, _)| *known == name) {
            Some((_, check)) => Kind::Check(*check, comparison),
            None => {
                let checks: Vec<&str> = Check::ALL.iter().map(|(name, _)| *name).collect();
                let known = format!(
                    "run, interpret, compile, optimize, pass, {}",
                    checks.join(", ")
                );
                return Err(format!("unknown test `{name}`; tests are {known}"));
            }
        },
    };
    match rest.first() {
        Some(word) => Err(format!("unknown option `{word}` of `test {name}`")),
        None => Ok(kind),
    }
}

impl Kind {
    fn comparison(&self) -> Option<Comparison> {
        match self {
            Self::Run | Self::Interpret => None,
            Self::Compile(comparison) | Self::After(_, comparison) | Self::Check(_, comparison) => {
                Some(*comparison)
            }
        }
    }
}

/// A file under test.
struct Tester<'a> {
    text: &'a str,
    file: &'a SourceFile,
    settings: Options,
    regions: Vec<Region>,
}

impl Tester<'_> {
    /// Runs one test; gives the text with new expectations if they are to be rewritten and differ.
    fn run(&self, kind: &Kind, options: &TestOptions, report: &mut FileReport) -> Option<String> {
        let (bless, stepped) = (options.bless, options.stepped.as_ref());
        let outputs = match kind {
            Kind::Run => {
                execute::run_file(self.file, &self.settings, true, stepped, report);
                report.skip_if_empty();
                return None;
            }
            Kind::Interpret => {
                // They count as checks: only lines on the target are counted as run lines.
                let mut interpreted = FileReport::new(&report.file);
                interpret::run_file(self.file, &mut interpreted);
                report.checks += interpreted.passed;
                report.errors.extend(interpreted.errors);
                return None;
            }
            Kind::Compile(_) => compiled::listings(self.file, &self.settings, &mut report.timings),
            Kind::After(pass, _) => {
                compiled::dumps(self.file, &self.settings, *pass, &mut report.timings)
                    .into_iter()
                    .map(|dump| dump.map_err(|errors| errors.to_string()))
                    .collect()
            }
            Kind::Check(check, _) => {
                let output = |function| {
                    check
                        .output(function)
                        .map_err(|error| format!("{}: {error}", self.file.name))
                };
                self.file.functions.iter().map(output).collect()
            }
        };
        let exact = kind.comparison() == Some(Comparison::Exact);
        if exact && bless {
            let outputs: Result<Vec<String>, String> = outputs.into_iter().collect();
            return match outputs {
                Ok(outputs) => {
                    let blessed = expectation::bless(self.text, &self.regions, &outputs);
                    report.checks += outputs.len();
                    (blessed != self.text).then_some(blessed)
                }
                Err(error) => {
                    report.errors.push(error);
                    None
                }
            };
        }
        for ((function, region), output) in
            self.file.functions.iter().zip(&self.regions).zip(outputs)
        {
            let expected = exact.then(|| region.text(self.text));
            let checked = output.and_then(|output| {
                checks::compare(function, expected.as_deref(), &output).map_err(|error| {
                    format!(
                        "{}:{}: %{}: {error}",
                        self.file.name,
                        function.line,
                        function.name()
                    )
                })
            });
            match checked {
                Ok(()) => report.checks += 1,
                Err(error) => report.errors.push(error),
            }
        }
        None
    }
}
