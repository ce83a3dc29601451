//! `clif-util prove FILES`: whether the code of functions does what their CLIF says, for all inputs.

use crate::options::Settings;
use crate::{Outcome, input, messages, source};
use anyhow::{Context, Result};
use clap::Args;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Type;
use cranelift_thisgpu::Compiler;
use cranelift_thisgpu::compile::{SourceFile, SourceFunction};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thisgpu_filetests::report::FileReport;
use thisgpu_filetests::{execute, find_files};
use thisgpu_verify::{
    Counterexample, Effect, Limits, MachineCode, Prover, Solvers, Tally, Verdict, question,
};

/// Options of `prove`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  clif-util prove f.clif\n  clif-util prove filetests/lower --time 10\n\
    It asks z3 and cvc5, of which one must be installed.\n\
    Exit status: 0 nothing is refuted, 1 something is or cannot be compiled, 2 a wrong command line."
)]
pub struct Options {
    /// CLIF files, and folders with such files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// How long a solver may take for a question, in seconds. A function may have dozens.
    #[arg(long, default_value_t = 5, value_name = "S")]
    time: u64,
    /// Most paths through a function.
    #[arg(long, default_value_t = 64, value_name = "N")]
    paths: usize,
    /// Most instructions on all paths together.
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    steps: usize,
    /// Print the questions that solvers are asked, and ask none.
    #[arg(long)]
    smt: bool,
    /// Prove each pass on CLIF that changes a function instead of the code.
    #[arg(long, conflicts_with = "smt")]
    passes: bool,
    /// A file for verdicts. What is in it is not proven again.
    #[arg(long, value_name = "FILE", conflicts_with = "smt")]
    verdicts: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Name every function with what is known of it.
    #[arg(short, long)]
    verbose: bool,
}

/// What is known of one function.
struct Finding {
    file: PathBuf,
    name: String,
    line: u32,
    verdict: Verdict,
    /// For a counterexample: the line that fails when it is run.
    run_line: Option<String>,
    time: Duration,
}

impl Options {
    /// Proves what can be proven, and prints what is refuted and how much is open.
    pub fn run(self) -> Result<Outcome> {
        if self.smt {
            return self.questions();
        }
        let prover = self.prover()?;
        let mut files = Vec::new();
        for path in &self.files {
            files.extend(find_files(path)?);
        }
        let mut tally = Tally::default();
        let mut is_read = true;
        for file in &files {
            let found = match self.passes {
                true => self.passes_of(file, &prover, &mut tally),
                false => self.code_of(file, &prover, &mut tally),
            };
            match found {
                Ok(()) => {}
                Err(error) => {
                    messages::print_error(&error);
                    is_read = false;
                }
            }
        }
        input::print_line(&tally)?;
        Ok(if tally.refuted == 0 && is_read {
            Outcome::Success
        } else {
            Outcome::Failure
        })
    }

    /// Prints the question for each function that has one.
    fn questions(&self) -> Result<Outcome> {
        let limits = self.limits();
        for path in &self.files {
            let file: SourceFile = source::read(path, &[])?;
            let code = Compiler::new(self.settings.over(&file)?).file(&file)?;
            for function in &file.functions {
                let name = function.name();
                let Some(object) = code.object().function(&name) else {
                    continue;
                };
                let kernel = function.kernel.is_some();
                let Some(machine) = MachineCode::of(code.object(), object) else {
                    input::print_line(format!("; %{name} is open: it has to be linked"))?;
                    continue;
                };
                match question(&function.func, kernel, machine, limits) {
                    Ok(text) => input::print_line(format!("; %{name}\n{text}(check-sat)"))?,
                    Err(reason) => input::print_line(format!("; %{name} is open: {reason}"))?,
                }
            }
        }
        Ok(Outcome::Success)
    }

    fn limits(&self) -> Limits {
        Limits {
            paths: self.paths,
            steps: self.steps,
        }
    }

    fn prover(&self) -> Result<Prover> {
        let solvers = Solvers::find(Duration::from_secs(self.time.max(1)))?;
        let prover = Prover::new(solvers, self.limits());
        Ok(match &self.verdicts {
            Some(file) => prover
                .keeping(file)
                .with_context(|| file.display().to_string())?,
            None => prover,
        })
    }

    /// Proves the code of the functions of a file.
    fn code_of(&self, path: &Path, prover: &Prover, tally: &mut Tally) -> Result<()> {
        let found = self.findings(path, prover)?;
        found.iter().for_each(|finding| tally.add(&finding.verdict));
        self.print(&found)
    }

    /// Proves the passes on the functions of a file.
    fn passes_of(&self, path: &Path, prover: &Prover, tally: &mut Tally) -> Result<()> {
        let file: SourceFile = source::read(path, &[])?;
        for step in prover.passes(&file, self.settings.over(&file)?)? {
            tally.add(&step.verdict);
            let place = format!(
                "{}: %{} behind {}",
                path.display(),
                step.function,
                step.pass.name()
            );
            match &step.verdict {
                Verdict::Refuted(found) => {
                    let arguments = &found.arguments;
                    let found = effect(found.found.as_ref());
                    input::print_line(format!(
                        "{place}: refuted: of {arguments:x?} it gives {found}"
                    ))?;
                }
                Verdict::Proven if self.verbose => {
                    input::print_line(format!("{place}: proven"))?;
                }
                Verdict::Open(reason) if self.verbose => {
                    input::print_line(format!("{place}: open: {reason}"))?;
                }
                Verdict::Proven | Verdict::Open(_) => {}
            }
        }
        Ok(())
    }

    fn findings(&self, path: &Path, prover: &Prover) -> Result<Vec<Finding>> {
        let file: SourceFile = source::read(path, &[])?;
        let settings = self.settings.over(&file)?;
        let code = Compiler::new(settings).file(&file)?;
        let proven = file.functions.par_iter().map(|function| {
            let start = Instant::now();
            let name = function.name();
            let verdict = prover.compiled(function, &code)?;
            let run_line = match &verdict {
                Verdict::Refuted(found) => run_line(&name, &function.func, found),
                Verdict::Proven | Verdict::Open(_) => None,
            };
            let (verdict, run_line) = self.replayed(&file, function, verdict, run_line)?;
            Ok(Finding {
                file: path.to_owned(),
                name,
                line: function.line,
                verdict,
                run_line,
                time: start.elapsed(),
            })
        });
        proven.collect()
    }

    /// What a solver says is believed when it fails on the simulator: called as it is, or by a caller that leaves other
    /// bits above narrow arguments.
    fn replayed(
        &self,
        file: &SourceFile,
        function: &SourceFunction,
        verdict: Verdict,
        run_line: Option<String>,
    ) -> Result<(Verdict, Option<String>)> {
        let (Verdict::Refuted(found), Some(line)) = (&verdict, &run_line) else {
            return Ok((verdict, run_line));
        };
        let text = function.func.display().to_string();
        if self.fails(file, &format!("{text}{line}\n"))? {
            return Ok((verdict, run_line));
        }
        let caller = caller(&function.name(), &function.func, found, line);
        if self.fails(file, &format!("{text}\n{caller}\n"))? {
            return Ok((verdict, Some(caller)));
        }
        let reason = "a counterexample that does not fail on the simulator".to_owned();
        Ok((Verdict::Open(reason), None))
    }

    /// Whether a run line of a text fails on the simulator.
    fn fails(&self, file: &SourceFile, text: &str) -> Result<bool> {
        let text = format!("test run\n{text}");
        let settings = self.settings.over(file)?;
        let alone = SourceFile::parse(&file.name, &text)?;
        let mut report = FileReport::new(&file.name);
        execute::run_file(&alone, &settings, true, None, &mut report);
        Ok(report.failed > 0)
    }

    /// Prints what is known of the functions of a file.
    fn print(&self, findings: &[Finding]) -> Result<()> {
        for finding in findings {
            let Finding {
                file, name, line, ..
            } = finding;
            let place = format!("{}:{line}: %{name}", file.display());
            match &finding.verdict {
                Verdict::Refuted(found) => {
                    let found = effect(found.found.as_ref());
                    input::print_line(format!("{place}: refuted: the code gives {found}"))?;
                    if let Some(line) = &finding.run_line {
                        input::print_line(format!("    {line}"))?;
                    }
                }
                Verdict::Proven if self.verbose => {
                    let seconds = finding.time.as_secs_f64();
                    input::print_line(format!("{place}: proven in {seconds:.2} s"))?;
                }
                Verdict::Open(reason) if self.verbose => {
                    input::print_line(format!("{place}: open: {reason}"))?;
                }
                Verdict::Proven | Verdict::Open(_) => {}
            }
        }
        Ok(())
    }
}

fn effect(effect: Option<&Effect>) -> String {
    match effect {
        Some(Effect::Returns(values)) => {
            let values: Vec<String> = values.iter().map(|value| format!("{value:#x}")).collect();
            values.join(", ")
        }
        Some(Effect::Traps(code)) => format!("a trap with code {code}"),
        None => "something that depends on memory".to_owned(),
    }
}

/// A function that calls another one with arguments of whole words, of which it takes the low bits, and the run line
/// for what the counterexample has in them; `line` says what is expected.
fn caller(
    name: &str,
    func: &cranelift_codegen::ir::Function,
    found: &Counterexample,
    line: &str,
) -> String {
    let (mut wide, mut values, mut body, mut passed) = (vec![], vec![], String::new(), vec![]);
    let params = func.signature.params.iter().map(|param| param.value_type);
    for (index, ty) in params.enumerate() {
        let (argument, above) = (found.arguments[index], found.above[index]);
        let (width, value) = (ty.bits(), format!("v{}", 100 + index));
        if width >= 32 {
            wide.push(format!("{value}: {ty}"));
            values.push(self::value(ty, argument).unwrap_or_default());
            passed.push(value);
            continue;
        }
        wide.push(format!("{value}: i32"));
        let all = (argument | above << width) as u32;
        values.push((all as i32).to_string());
        body.push_str(&format!("    {value}0 = ireduce.i{width} {value}\n"));
        passed.push(format!("{value}0"));
        if !ty.is_int() {
            body.push_str(&format!("    {value}1 = bitcast.{ty} little {value}0\n"));
            passed[index] = format!("{value}1");
        }
    }
    let returns = func.signature.returns.iter();
    let returns: Vec<String> = returns.map(|param| param.value_type.to_string()).collect();
    let results: Vec<String> = (0..returns.len())
        .map(|index| format!("v{index}"))
        .collect();
    let types: Vec<&str> = wide
        .iter()
        .filter_map(|param| param.split(": ").nth(1))
        .collect();
    let (results, returns) = (results.join(", "), returns.join(", "));
    let expected = line.rsplit(" == ").next().unwrap_or_default();
    format!(
        "function %caller({}) -> {returns} {{\n    fn0 = %{name}{}\nblock0({}):\n{body}    {results} = call fn0({})\n    \
         return {results}\n}}\n; run: %caller({}) == {expected}",
        types.join(", "),
        func.signature,
        wide.join(", "),
        passed.join(", "),
        values.join(", "),
    )
}

/// The run line that a counterexample is.
fn run_line(
    name: &str,
    func: &cranelift_codegen::ir::Function,
    found: &Counterexample,
) -> Option<String> {
    let Some(Effect::Returns(results)) = &found.expected else {
        return None;
    };
    // Where memory is, a line cannot say.
    let insts = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block));
    let is_memory = |inst| {
        let opcode = func.dfg.insts[inst].opcode();
        opcode.can_load() || opcode.can_store()
    };
    if insts.into_iter().any(is_memory) {
        return None;
    }
    let text = |types: &mut dyn Iterator<Item = Type>, bits: &[u128]| {
        let values = types.zip(bits).map(|(ty, &bits)| value(ty, bits));
        values
            .collect::<Option<Vec<String>>>()
            .map(|values| values.join(", "))
    };
    let signature = &func.signature;
    let arguments = text(
        &mut signature.params.iter().map(|p| p.value_type),
        &found.arguments,
    )?;
    let expected = text(&mut signature.returns.iter().map(|p| p.value_type), results)?;
    let expected = if results.len() == 1 {
        expected
    } else {
        format!("[{expected}]")
    };
    Some(format!("; run: %{name}({arguments}) == {expected}"))
}

/// A value as run lines write it.
fn value(ty: Type, bits: u128) -> Option<String> {
    let bytes = bits.to_le_bytes();
    let size = ty.bytes() as usize;
    let value = DataValue::read_from_slice_le(&bytes[..size], ty);
    Some(value.to_string())
}
