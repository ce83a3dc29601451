//! Valid functions and kernels of the choices that bytes make, compared with an oracle or proven.

use crate::catalogue::Catalogue;
use crate::check::{self, Outcome};
use crate::mutate;
use crate::operation::Operation;
use crate::program::Program;
use crate::random::Random;
use crate::simt::case::Case;
use crate::simt::events::features::{Feature, Features};
use crate::straight;
use cranelift_codegen::ir::Function;
use cranelift_thisgpu::Compiler;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::settings::Options;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;
use std::time::Duration;
use thisgpu_verify::{Limits, Prover, Solvers, Verdict};

/// What all sides can do: found once, by trying.
static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(Catalogue::new);

/// Settings of the compiler that each kernel is compiled in.
const SETTINGS: usize = 1;

/// Operations whose meaning a proof knows.
static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(straight::operations);

/// Who proves, where a solver is installed.
static PROVER: LazyLock<Option<Prover>> = LazyLock::new(|| {
    let solvers = Solvers::find(SOLVER_TIME).ok()?;
    Some(Prover::new(solvers, LIMITS))
});

/// How long a solver may take for a question (*assumed*: most answers come within a tenth of it).
const SOLVER_TIME: Duration = Duration::from_secs(1);

/// Paths and steps that are followed in a function; one of a line has few of them.
const LIMITS: Limits = Limits {
    paths: 32,
    steps: 5000,
};

/// A name for what bytes make.
fn name(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// The program that bytes make.
pub fn program(bytes: &[u8]) -> Program {
    Program::drawn(&CATALOGUE, name(bytes), &Random::of_bytes(bytes))
}

/// Functions of all operations and their settings, on the simulator and on the host or in Cranelift's interpreter.
///
/// # Panics
/// When results differ, with the program.
pub fn function(bytes: &[u8]) {
    judge(&program(bytes));
}

fn judge(program: &Program) {
    if let Outcome::Different(difference) = check::check(&CATALOGUE, program) {
        panic!("{}\n{}", difference.errors.join("\n"), difference.text);
    }
}

/// The program that bytes make and then change.
pub fn changed(bytes: &[u8]) -> Program {
    mutate::drawn(&CATALOGUE, name(bytes), &Random::of_bytes(bytes))
}

/// Functions that were changed without a grammar, on the simulator and in Cranelift's interpreter.
///
/// # Panics
/// When results differ, with the program.
pub fn mutated(bytes: &[u8]) {
    judge(&changed(bytes));
}

/// The sequence of integer operations that bytes make.
pub fn sequence(bytes: &[u8]) -> Function {
    straight::random(&OPERATIONS, &mut Random::of_bytes(bytes))
}

/// The code of a sequence of operations, as the rules of selection make it, proven for all arguments. Without a solver
/// it is compiled only.
///
/// # Panics
/// When it does not compile; when it is refuted, with the function and the arguments.
pub fn proof(bytes: &[u8]) {
    let text = sequence(bytes).to_string();
    let file = SourceFile::parse("sequence.clif", &text).expect("the writer's text is CLIF");
    let code = Compiler::new(Options::default()).file(&file);
    let code = code.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let Some(prover) = &*PROVER else {
        return;
    };
    // A solver that fails has not contradicted anything.
    let verdict = prover.compiled(&file.functions[0], &code);
    if let Ok(Verdict::Refuted(found)) = verdict {
        panic!("refuted for {:x?}:\n{text}", found.arguments);
    }
}

/// The kernel that bytes make.
pub fn case(bytes: &[u8]) -> Case {
    let all: Vec<Feature> = Feature::all().collect();
    Case::drawn(name(bytes), &Random::of_bytes(bytes), Features::of(&all))
}

/// A kernel of many threads against its reference.
///
/// # Panics
/// When it fails, with the kernel.
pub fn kernel(bytes: &[u8]) {
    let case = case(bytes);
    if let Err(failure) = case.check(SETTINGS) {
        panic!("{failure}\n{}", case.text());
    }
}
