//! Who proves functions of files: with solvers, within limits, and with a memory for what has been proven before.

use crate::clif::Limits;
use crate::kept::{Kept, Key};
use crate::machine::MachineCode;
use crate::proof::{Verdict, prove, prove_same};
use crate::solver::{SolverError, Solvers};
use cranelift_codegen::ir::Function;
use cranelift_thisgpu::Compiler;
use cranelift_thisgpu::compile::{Code, Pass, SourceFile, SourceFunction};
use cranelift_thisgpu::error::Errors;
use cranelift_thisgpu::settings::Options;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Proves functions of files.
#[derive(Debug)]
pub struct Prover {
    solvers: Solvers,
    limits: Limits,
    kept: Option<Kept>,
}

/// A pass that has changed a function, and whether it does what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The function.
    pub function: String,
    /// The pass.
    pub pass: Pass,
    /// What is known.
    pub verdict: Verdict,
}

impl Prover {
    /// With these solvers and limits.
    pub fn new(solvers: Solvers, limits: Limits) -> Self {
        Prover {
            solvers,
            limits,
            kept: None,
        }
    }

    /// Keeps verdicts in a file, and takes from it what is known of the same function with the same code.
    ///
    /// # Errors
    /// When the file cannot be read or made.
    pub fn keeping(mut self, file: &Path) -> io::Result<Self> {
        self.kept = Some(Kept::open(file)?);
        Ok(self)
    }

    /// Proves a function of a file that has been compiled. Code that is not whole before it is linked stays open.
    ///
    /// # Errors
    /// When a solver fails.
    pub fn compiled(&self, function: &SourceFunction, code: &Code) -> Result<Verdict, SolverError> {
        let open = |reason: &str| Ok(Verdict::Open(reason.to_owned()));
        let Some(object) = code.object().function(&function.name()) else {
            return open("it is not in the object");
        };
        let Some(machine) = MachineCode::of(code.object(), object) else {
            return open("calls, or addresses of symbols");
        };
        let kernel = function.kernel.is_some();
        let mut key = Key::new(&function.func, kernel, self.limits, self.solvers.time);
        key.words(machine.words);
        if !object.relocations.is_empty() {
            key.constants(machine.constants);
        }
        self.known(key, || {
            let (solvers, limits) = (&self.solvers, self.limits);
            prove(&function.func, kernel, machine, solvers, limits)
        })
    }

    /// Proves each pass on CLIF that changes a function of a file.
    ///
    /// # Errors
    /// What cannot be compiled, and solvers that fail.
    pub fn passes(&self, file: &SourceFile, options: Options) -> Result<Vec<Step>, StepError> {
        let mut steps = Vec::new();
        let dumps = dumps(file, options)?;
        for function in &file.functions {
            let (name, kernel) = (function.name(), function.kernel.is_some());
            let mut before = function.func.clone();
            let mut text = before.display().to_string();
            for dump in dumps.iter().filter(|dump| dump.function == name) {
                // What is printed is read again, so that aliases and the like make no difference.
                let parsed = SourceFile::parse("pass.clif", &dump.text)?;
                let Some(after) = parsed.functions.into_iter().next() else {
                    steps.push(Step {
                        function: name.clone(),
                        pass: dump.pass,
                        verdict: Verdict::Open("it is not printed behind the pass".to_owned()),
                    });
                    break;
                };
                let after_text = after.func.display().to_string();
                if after_text != text {
                    let verdict = self.same(&before, &after.func, kernel)?;
                    steps.push(Step {
                        function: name.clone(),
                        pass: dump.pass,
                        verdict,
                    });
                }
                (before, text) = (after.func, after_text);
            }
        }
        Ok(steps)
    }

    fn same(
        &self,
        before: &Function,
        after: &Function,
        kernel: bool,
    ) -> Result<Verdict, SolverError> {
        let mut key = Key::new(before, kernel, self.limits, self.solvers.time);
        key.function(after);
        self.known(key, || {
            prove_same(before, after, kernel, &self.solvers, self.limits)
        })
    }

    /// What is kept, or is found now and kept.
    fn known(
        &self,
        key: Key,
        find: impl FnOnce() -> Result<Verdict, SolverError>,
    ) -> Result<Verdict, SolverError> {
        match &self.kept {
            Some(kept) => kept.known(key, find),
            None => find(),
        }
    }
}

/// Why the passes of a file are not proven.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The file, or what a pass made of it, is not compiled or read.
    #[error(transparent)]
    Compile(#[from] Errors),
    /// A solver failed.
    #[error(transparent)]
    Solver(#[from] SolverError),
}

/// A function behind a pass.
struct Text {
    pass: Pass,
    function: String,
    text: String,
}

/// What all functions of a file are behind each pass on CLIF, in the order of the passes.
fn dumps(file: &SourceFile, options: Options) -> Result<Vec<Text>, Errors> {
    let passes: Vec<Pass> = Pass::ALL
        .into_iter()
        .take_while(|&pass| pass <= Pass::Clif)
        .collect();
    let all: Arc<Mutex<Vec<Text>>> = Arc::default();
    let sink = Arc::clone(&all);
    let mut compiler = Compiler::new(options);
    compiler.dump_after(
        &passes,
        Box::new(move |dump| {
            let mut all = sink.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(Text {
                pass: dump.pass,
                function: dump.function.to_owned(),
                text: dump.text.to_owned(),
            });
        }),
    );
    compiler.stop_after(Some(Pass::Clif));
    compiler.file(file)?;
    drop(compiler);
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *all))
}
