//! The functions of a file, compiled together for running, each with a kernel that calls it.
//!
//! A function that cannot be compiled takes those that call it with it, and nothing else: the rest of the file still
//! runs.

use crate::applicability;
use crate::panics;
use crate::trampoline;
use cranelift_codegen::ir::{ExternalName, Function};
use cranelift_thisgpu::compile::{Code, Compiler, FunctionInput, Timings, Unit, library};
use cranelift_thisgpu::compile::{KernelOptions, SourceFile, SourceFunction};
use cranelift_thisgpu::error::{Errors, Problem};
use cranelift_thisgpu::intrinsics;
use cranelift_thisgpu::object::Linkage;
use cranelift_thisgpu::settings::Options;
use std::collections::{BTreeMap, BTreeSet};

/// Why a function cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// It does not apply to this target, or what it calls cannot be run.
    Skipped(String),
    /// Something in it is not supported.
    Unsupported(Errors),
    /// It is wrong.
    Wrong(Errors),
    /// The compiler is wrong.
    Panicked(String),
}

/// A compiled file.
#[derive(Debug)]
pub struct Program {
    /// Code of all functions that can run, with their kernels.
    pub code: Code,
    /// The others, by name.
    pub unavailable: BTreeMap<String, Unavailable>,
    /// Time spent in the passes, if it was counted.
    pub timings: Timings,
}

/// Name of the kernel that calls the function at this position in the file.
pub fn kernel_name(index: usize) -> String {
    format!("thisgpu_run_{index}")
}

impl Program {
    /// Compiles `file`, with a kernel for each function at the positions `run`. A file that is `forced` onto this
    /// target may hold functions that do not apply to it. With `timed` the time of the passes is counted.
    ///
    /// # Errors
    /// What is wrong with the file as a whole, as names that are defined twice.
    pub fn compile(
        file: &SourceFile,
        run: &[usize],
        options: &Options,
        forced: bool,
        timed: bool,
    ) -> Result<Program, Errors> {
        let mut compiler = Compiler::new(options.clone());
        compiler.time_passes(timed);
        let mut unit = Unit::new();
        unit.announce_file(file);
        let mut unavailable = BTreeMap::new();
        for function in &file.functions {
            let name = function.name();
            let inapplicable = forced
                .then(|| applicability::of_function(&function.func))
                .flatten();
            let compiled = match inapplicable {
                Some(reason) => Err(Unavailable::Skipped(reason.to_string())),
                None => {
                    let input = FunctionInput::of_source(function, &name);
                    compile_input(&mut compiler, &mut unit, &input).map_err(|reason| {
                        reason
                            .located(|errors| errors.or_at_line(function.line).in_file(&file.name))
                    })
                }
            };
            if let Err(reason) = compiled {
                unavailable.insert(name, reason);
            }
        }
        propagate(file, &mut unavailable);
        for &index in run {
            let function = &file.functions[index];
            if let Err(reason) = compile_trampoline(&mut compiler, &mut unit, index, &function.func)
            {
                unavailable.entry(function.name()).or_insert(reason);
            }
        }
        let gone: BTreeSet<String> = (run.iter())
            .filter(|index| unavailable.contains_key(&file.functions[**index].name()))
            .map(|index| kernel_name(*index))
            .collect();
        unit.retain(|name| !unavailable.contains_key(name) && !gone.contains(name));
        Ok(Program {
            code: unit.finish()?,
            unavailable,
            timings: compiler.timings().clone(),
        })
    }
}

/// Compiles one function; a panic of the compiler is a mistake of the compiler and not the end of the tests.
fn compile_input(
    compiler: &mut Compiler,
    unit: &mut Unit,
    input: &FunctionInput<'_>,
) -> Result<(), Unavailable> {
    match panics::catch(|| compiler.compile_function(input, unit)) {
        Ok(compiled) => compiled.map_err(Unavailable::of),
        Err(message) => {
            *compiler = Compiler::new(compiler.options().clone());
            Err(Unavailable::Panicked(format!(
                "the compiler panicked: {message} (in function %{})",
                input.name
            )))
        }
    }
}

/// Compiles the kernel that calls a function.
fn compile_trampoline(
    compiler: &mut Compiler,
    unit: &mut Unit,
    index: usize,
    callee: &Function,
) -> Result<(), Unavailable> {
    let name = kernel_name(index);
    let kernel = trampoline::kernel(&name, callee)
        .map_err(|error| Unavailable::Skipped(error.to_string()))?;
    let input = FunctionInput {
        func: &kernel,
        name: &name,
        kernel: Some(KernelOptions {
            shared_bytes: trampoline::SHARED_BYTES,
            ..KernelOptions::default()
        }),
        linkage: Linkage::Local,
        namer: &|_| None,
    };
    compile_input(compiler, unit, &input)
}

impl Unavailable {
    fn of(errors: Errors) -> Self {
        if errors.only_unsupported() {
            Self::Unsupported(errors)
        } else {
            Self::Wrong(errors)
        }
    }

    /// The same with places completed.
    fn located(self, complete: impl FnOnce(Errors) -> Errors) -> Self {
        match self {
            Self::Unsupported(errors) => Self::Unsupported(complete(errors)),
            Self::Wrong(errors) => Self::Wrong(complete(errors)),
            other => other,
        }
    }

    /// What is wrong; none if the function merely cannot be run here.
    pub fn mistake(&self) -> Option<String> {
        match self {
            Self::Wrong(errors) => Some(errors.to_string()),
            Self::Panicked(message) => Some(message.clone()),
            Self::Skipped(_) | Self::Unsupported(_) => None,
        }
    }

    /// One reason, the same for all functions that cannot be run because of it: of several unsupported items the first.
    pub fn reason(&self) -> String {
        match self {
            Self::Skipped(reason) | Self::Panicked(reason) => reason.clone(),
            Self::Unsupported(errors) | Self::Wrong(errors) => {
                match &errors.as_slice()[0].problem {
                    Problem::Unsupported { item, .. } => format!("unsupported: {item}"),
                    other => other.to_string(),
                }
            }
        }
    }
}

/// Marks the functions that call what is unavailable or undefined, directly or not.
fn propagate(file: &SourceFile, unavailable: &mut BTreeMap<String, Unavailable>) {
    let defined: BTreeSet<String> = file.functions.iter().map(SourceFunction::name).collect();
    loop {
        let before = unavailable.len();
        for function in &file.functions {
            let name = function.name();
            if unavailable.contains_key(&name) {
                continue;
            }
            let reason = callees(&function.func).into_iter().find_map(|callee| {
                match unavailable.get(&callee) {
                    Some(reason) if reason.mistake().is_some() => Some(Unavailable::Skipped(
                        format!("%{callee}, which it needs, is wrong"),
                    )),
                    Some(reason) => Some(Unavailable::Skipped(reason.reason())),
                    None if defined.contains(&callee) || library::provides(&callee) => None,
                    None => Some(Unavailable::Skipped(format!(
                        "unsupported: undefined function %{callee}"
                    ))),
                }
            });
            if let Some(reason) = reason {
                unavailable.insert(name, reason);
            }
        }
        if unavailable.len() == before {
            return;
        }
    }
}

/// Names of the functions that `func` declares and that are no intrinsics.
fn callees(func: &Function) -> Vec<String> {
    let name = |name: &ExternalName| {
        name.display(Some(&func.params))
            .to_string()
            .trim_start_matches('%')
            .to_owned()
    };
    let names = func.dfg.ext_funcs.values().map(|data| name(&data.name));
    names
        // The reader fills gaps in the numbers of functions with nameless ones.
        .filter(|name| !name.is_empty() && !name.starts_with(intrinsics::PREFIX))
        .collect()
}
