//! Many programs, on all cores.

use crate::catalogue::{Catalogue, Oracle};
use crate::check::{self, Difference, Outcome};
use crate::program::{FUNCTIONS, Program};
use cranelift_codegen::ir::{Function, types};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// How many seeds give at least this many functions.
pub fn seeds_for(functions: u64) -> u64 {
    functions.div_ceil(FUNCTIONS as u64)
}

/// What came of some programs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Functions that were compared, by oracle.
    pub functions: BTreeMap<Oracle, u64>,
    /// Calls that were compared.
    pub calls: u64,
    /// Programs that no oracle could run: seed and reason.
    pub without_oracle: Vec<(u64, String)>,
    /// Programs whose results differ, with their seeds.
    pub differences: Vec<(u64, Difference)>,
    /// Instructions in compared functions: opcode, then controlling type.
    pub instructions: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Tally {
    /// All functions that were compared.
    pub fn compared(&self) -> u64 {
        self.functions.values().sum()
    }

    fn merge(mut self, other: Tally) -> Tally {
        for (oracle, count) in other.functions {
            *self.functions.entry(oracle).or_default() += count;
        }
        self.calls += other.calls;
        self.without_oracle.extend(other.without_oracle);
        self.differences.extend(other.differences);
        for (opcode, types) in other.instructions {
            let counts = self.instructions.entry(opcode).or_default();
            for (ty, count) in types {
                *counts.entry(ty).or_default() += count;
            }
        }
        self
    }

    fn count(&mut self, func: &Function) {
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                let opcode = func.dfg.insts[inst].opcode();
                let ty = match func.dfg.ctrl_typevar(inst) {
                    types::INVALID => "-".to_owned(),
                    ty => ty.to_string(),
                };
                let counts = self.instructions.entry(opcode.to_string()).or_default();
                *counts.entry(ty).or_default() += 1;
            }
        }
    }

    /// The tally of one program.
    fn of(catalogue: &Catalogue, seed: u64, make: Make, settings: &[String]) -> Tally {
        let mut program = make(catalogue, seed);
        program.settings.extend_from_slice(settings);
        let mut tally = Tally::default();
        let outcome = check::check(catalogue, &program);
        if let Outcome::NoOracle(reason) = outcome {
            tally.without_oracle.push((seed, reason));
            return tally;
        }
        if let Outcome::Different(difference) = outcome {
            tally.differences.push((seed, difference));
        }
        let functions = program.functions.len() as u64;
        tally.functions.insert(program.oracle, functions);
        tally.calls = program.calls.iter().map(|calls| calls.len() as u64).sum();
        program.functions.iter().for_each(|func| tally.count(func));
        tally
    }
}

/// Makes the program of a seed: [`Program::new`] or [`crate::mutate::program`].
pub type Make = fn(&Catalogue, u64) -> Program;

/// Compares the programs of all seeds, each made by `make`; `settings` win over those of a program; `progress` hears of
/// each one that is done, from any thread.
pub fn run(
    catalogue: &Catalogue,
    seeds: Range<u64>,
    make: Make,
    settings: &[String],
    progress: &(dyn Fn(&Tally) + Sync),
) -> Tally {
    seeds
        .into_par_iter()
        .map(|seed| {
            let tally = Tally::of(catalogue, seed, make, settings);
            progress(&tally);
            tally
        })
        .reduce(Tally::default, Tally::merge)
}
