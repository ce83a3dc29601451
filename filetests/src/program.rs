//! The functions of a file, compiled together for running, each with a kernel that calls it.
//!
//! A function that cannot be compiled takes those that call it with it, and nothing else: the rest of the file still runs.

use crate::applicability;
use crate::panics;
use crate::trampoline;
use cranelift_codegen::ir::{ExternalName, Function};
use cranelift_thisgpu::clif::intrinsics;
use cranelift_thisgpu::clif::source::{KernelOptions, SourceFile, SourceFunction};
use cranelift_thisgpu::compile::{Code, Compiler, FunctionInput, Unit, library};
use cranelift_thisgpu::error::{Errors, Problem};
use cranelift_thisgpu::object::Linkage;
use cranelift_thisgpu::settings::Options;
use std::collections::{BTreeMap, BTreeSet};

/// Why a function cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// It does not apply to this target, or something in it, or in what it calls, is not supported.
    Skipped(String),
    /// It is wrong, or the compiler is.
    Wrong(String),
}

/// A compiled file.
#[derive(Debug)]
pub struct Program {
    /// Code of all functions that can run, with their kernels.
    pub code: Code,
    /// The others, by name.
    pub unavailable: BTreeMap<String, Unavailable>,
}

/// Name of the kernel that calls the function at this position in the file.
pub fn kernel_name(index: usize) -> String {
    format!("thisgpu_run_{index}")
}

impl Program {
    /// Compiles `file`, with a kernel for each function at the positions `run`. A file that is `forced` onto this target may hold
    /// functions that do not apply to it.
    ///
    /// # Errors
    /// What is wrong with the file as a whole, as names that are defined twice.
    pub fn compile(
        file: &SourceFile,
        run: &[usize],
        options: &Options,
        forced: bool,
    ) -> Result<Program, Errors> {
        let mut compiler = Compiler::new(options.clone());
        let mut unit = Unit::new();
        let mut unavailable = BTreeMap::new();
        for function in &file.functions {
            let name = function.name();
            let inapplicable = forced
                .then(|| applicability::of_function(&function.func))
                .flatten();
            let compiled = match inapplicable {
                Some(reason) => Err(Unavailable::Skipped(reason.to_string())),
                None => compile_input(
                    &mut compiler,
                    &mut unit,
                    &FunctionInput::of_source(function, &name),
                ),
            };
            if let Err(reason) = compiled {
                unavailable.insert(name, reason.in_file(file, function));
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
        Ok(compiled) => compiled.map_err(|errors| reason_of(&errors)),
        Err(message) => {
            *compiler = Compiler::new(compiler.options().clone());
            Err(Unavailable::Wrong(format!(
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
        }),
        linkage: Linkage::Local,
        namer: &|_| None,
    };
    compile_input(compiler, unit, &input)
}

/// One reason for several errors: the first unsupported item if nothing else is wrong.
fn reason_of(errors: &Errors) -> Unavailable {
    match errors
        .as_slice()
        .iter()
        .find_map(|error| match &error.problem {
            Problem::Unsupported { item, .. } => Some(item),
            _ => None,
        }) {
        Some(item) if errors.only_unsupported() => {
            Unavailable::Skipped(format!("unsupported: {item}"))
        }
        _ => Unavailable::Wrong(errors.to_string()),
    }
}

impl Unavailable {
    /// The same with file and line where the message has none.
    fn in_file(self, file: &SourceFile, function: &SourceFunction) -> Self {
        match self {
            Self::Wrong(text) if !text.starts_with(&*file.name) => {
                Self::Wrong(format!("{}:{}: {text}", file.name, function.line))
            }
            other => other,
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
                    Some(Unavailable::Wrong(_)) => Some(Unavailable::Skipped(format!(
                        "%{callee}, which it needs, is wrong"
                    ))),
                    Some(reason) => Some(reason.clone()),
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
