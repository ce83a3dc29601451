//! Valid functions and kernels of the choices that bytes make, compared with an oracle.

use crate::catalogue::Catalogue;
use crate::check::{self, Outcome};
use crate::mutate;
use crate::program::Program;
use crate::random::Random;
use crate::simt::case::Case;
use crate::simt::events::features::{Feature, Features};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

/// What all sides can do: found once, by trying.
static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(Catalogue::new);

/// Settings of the compiler that each kernel is compiled in.
const SETTINGS: usize = 1;

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
