//! The functions that rules fire for: those of files, every operation alone, with constants, and random ones.

use crate::operation::{Operand, Operation};
use crate::random::Random;
use crate::rules::fired::{Fired, fired};
use crate::straight;
use anyhow::Result;
use cranelift_codegen::ir::Function;
use cranelift_codegen::ir::instructions::InstructionFormat;
use cranelift_thisgpu::Compiler;
use cranelift_thisgpu::compile::{Code, SourceFile, SourceFunction};
use cranelift_thisgpu::settings::Options;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use thisgpu_filetests::file::settings_of;
use thisgpu_filetests::find_files;

/// Constants that are operands of operations alone: the ends and middles of ranges, and what rules look for.
const CONSTANTS: [i64; 20] = [
    0,
    1,
    -1,
    2,
    3,
    5,
    7,
    8,
    9,
    10,
    16,
    31,
    -2,
    -8,
    i8::MIN as i64,
    i16::MIN as i64,
    i32::MIN as i64,
    i64::MIN,
    0x0fff_0000,
    0x1234_5678_9abc_def0,
];
/// Where CLIF files are taken from, below the repository.
const FOLDER: &str = "filetests";
/// Other choices that an operation has besides its operands, such as conditions.
const CHOICES: u64 = 24;

/// A function with its code and the rules that it was lowered by.
#[derive(Clone)]
pub struct Subject {
    /// Where it is found: file and name, operation, or seed.
    pub name: String,
    /// The rules.
    pub rules: BTreeSet<Fired>,
    index: usize,
    compiled: Arc<(SourceFile, Code)>,
}

impl Subject {
    /// The function.
    pub fn function(&self) -> &SourceFunction {
        &self.compiled.0.functions[self.index]
    }

    /// Its file.
    pub fn file(&self) -> &SourceFile {
        &self.compiled.0
    }

    /// Which of the functions of its file it is.
    pub fn position(&self) -> usize {
        self.index
    }

    /// The code of its file.
    pub fn code(&self) -> &Code {
        &self.compiled.1
    }

    /// How many instructions it has.
    pub fn size(&self) -> usize {
        let function = self.code().object().function(&self.function().name());
        function.map_or(usize::MAX, |function| function.words.len())
    }
}

/// Which functions there are.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// So many random sequences of operations, from this seed on.
    pub random: u64,
    /// The first seed.
    pub seed: u64,
}

impl Corpus {
    /// Compiles them all. What is not to be compiled is left out: files also show what is refused.
    ///
    /// # Errors
    /// Folders that cannot be read.
    pub fn compile(&self, repository: &Path) -> Result<Vec<Subject>> {
        let files = find_files(&repository.join(FOLDER))?;
        let of_files = files.par_iter().flat_map(|path| {
            let name = path.strip_prefix(repository).unwrap_or(path);
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let name = name.display().to_string();
            subjects(&name, &text, |function| format!("{name}: %{function}"))
        });
        let mut all: Vec<Subject> = of_files.collect();
        let operations = straight::all_operations();
        let alone = operations.par_iter().flat_map(|&operation| {
            let functions = alone(operation).into_iter();
            functions
                .flat_map(|(name, func)| of_function(&name, &func))
                .collect::<Vec<_>>()
        });
        all.par_extend(alone);
        let seeds = (self.seed..self.seed + self.random).into_par_iter();
        let of_values = |operation: &&Operation| {
            operation.address().is_none() && !operation.results().is_empty()
        };
        let operations: Vec<Operation> = operations.iter().filter(of_values).copied().collect();
        all.par_extend(seeds.flat_map(|seed| {
            let func = straight::random(&operations, &mut Random::new(seed));
            of_function(&format!("seed {seed}"), &func)
        }));
        Ok(all)
    }
}

/// An operation of parameters with each choice that it has, and of each constant at each operand.
fn alone(operation: Operation) -> Vec<(String, Function)> {
    let choices = match operation.opcode.format() {
        InstructionFormat::IntCompare
        | InstructionFormat::FloatCompare
        | InstructionFormat::AtomicRmw
        | InstructionFormat::Load
        | InstructionFormat::Store
        | InstructionFormat::BinaryImm8
        | InstructionFormat::TernaryImm8
        | InstructionFormat::Shuffle => CHOICES,
        _ => 1,
    };
    let mut functions = Vec::new();
    for choice in 0..choices {
        let name = match choices {
            1 => operation.to_string(),
            _ => format!("{operation}, choice {choice}"),
        };
        functions.push((name, straight::alone(operation, &mut Random::new(choice))));
    }
    let scalars: Vec<usize> = (operation.operands().iter().enumerate())
        .filter(|(_, operand)| matches!(operand, Operand::Value(ty) if ty.is_int()))
        .map(|(index, _)| index)
        .collect();
    // A comparison has a condition each time.
    let seed = |index: usize| index as u64;
    for &operand in &scalars {
        for (index, &number) in CONSTANTS.iter().enumerate() {
            let mut random = Random::new(seed(index));
            let func = straight::with_constant(operation, operand, number, &mut random);
            let name = format!("{operation}, {number:#x} at {operand}");
            functions.push((name, func));
        }
    }
    functions
}

/// A function as a subject.
fn of_function(name: &str, func: &Function) -> Vec<Subject> {
    subjects(name, &func.display().to_string(), |_| name.to_owned())
}

/// The functions of a text.
fn subjects(file: &str, text: &str, name: impl Fn(&str) -> String) -> Vec<Subject> {
    let Ok(file) = SourceFile::parse(file, text) else {
        return Vec::new();
    };
    let options: Options = settings_of(&file, &[], true).unwrap_or_default();
    let (code, mut rules) = fired(|| Compiler::new(options).file(&file));
    let Ok(code) = code else {
        return Vec::new();
    };
    let compiled = Arc::new((file, code));
    let functions = compiled.0.functions.iter().enumerate();
    functions
        .map(|(index, function)| Subject {
            name: name(&function.name()),
            rules: rules.remove(&function.name()).unwrap_or_default(),
            index,
            compiled: Arc::clone(&compiled),
        })
        .collect()
}
