//! A few hundred random functions against the host, and planted errors that must be found.
//!
//! `FUZZ_SEED` and `FUZZ_FUNCTIONS` choose the first seed and how many functions. A failure prints its program, which
//! is a test file by itself.

use cranelift_codegen::ir::{Function, InstructionData, Opcode, types};
use fuzz::campaign;
use fuzz::catalogue::{Catalogue, Oracle};
use fuzz::check;
use fuzz::mutate;
use fuzz::program::{Program, Results};
use std::collections::BTreeSet;

/// Functions that are compared when nobody asks for more.
const FUNCTIONS: u64 = 640;

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
        Err(_) => default,
    }
}

#[test]
fn random_functions_give_the_same_on_the_host() {
    let catalogue = Catalogue::new();
    if let Err(reason) = catalogue.host() {
        println!("{reason}: all results are those of Cranelift's interpreter");
    }
    let first = number("FUZZ_SEED", 1);
    let functions = number("FUZZ_FUNCTIONS", FUNCTIONS);
    let seeds = first..first + campaign::seeds_for(functions);
    println!("seeds {first} to {}", seeds.end - 1);
    let tally = campaign::run(&catalogue, seeds, Program::new, &[], &|_| {});
    if let Some((seed, difference)) = tally.differences.first() {
        panic!(
            "seed {seed}: {:#?}\n{}\nfuzz --reduce --seed {seed} makes it smaller",
            difference.errors, difference.text
        );
    }
    // Few programs have an operation that the oracle takes alone but not with these operands.
    let compared = tally.compared();
    assert!(
        compared * 100 >= functions * 95,
        "{:?}",
        tally.without_oracle
    );
    // Both oracles have their part: the host most of them, the interpreter those that it alone can do.
    if catalogue.host().is_ok() {
        assert!(tally.functions[&Oracle::Host] * 2 > compared, "{tally:?}");
    }
    let interpreted = tally.functions[&Oracle::Interpreter];
    assert!(interpreted * 5 > compared, "{tally:?}");
    // The programs are worth something: most opcodes of the table come up, with many types.
    let kinds: usize = tally.instructions.values().map(|types| types.len()).sum();
    assert!(
        tally.instructions.len() >= 110 && kinds >= 400,
        "{kinds} kinds"
    );
}

#[test]
fn changed_programs_give_the_same_in_the_interpreter() {
    let catalogue = Catalogue::new();
    let first = number("FUZZ_SEED", 1);
    let programs = campaign::seeds_for(number("FUZZ_FUNCTIONS", FUNCTIONS / 4));
    println!("seeds {first} to {}", first + programs - 1);
    let seeds = first..first + programs;
    let tally = campaign::run(&catalogue, seeds, mutate::program, &[], &|_| {});
    if let Some((seed, difference)) = tally.differences.first() {
        panic!(
            "seed {seed}: {:#?}\n{}\nfuzz --mutated --reduce --seed {seed} makes it smaller",
            difference.errors, difference.text
        );
    }
    // Two thirds of the calls are still possible.
    assert!(tally.calls >= programs * 32, "{} calls", tally.calls);
}

#[test]
fn a_seed_always_gives_the_same_program() {
    let text = || {
        let program = Program::new(&Catalogue::new(), 5);
        let results = program.interpreted().unwrap_or_default();
        program.text(&results)
    };
    assert_eq!(text(), text());
}

#[test]
fn the_target_has_every_scalar_operation() {
    let gaps = Catalogue::new().gaps();
    let lacking: BTreeSet<String> = gaps
        .iter()
        .filter(|gap| gap.side == "thisgpu")
        .map(|gap| gap.operation.to_string())
        .collect();
    // Atomics have at most 64 bits.
    let atomics = ["atomic_cas", "atomic_load", "atomic_rmw", "atomic_store"];
    assert_eq!(lacking, atomics.map(|name| format!("{name}.i128")).into());
}

/// Programs that compute something with `opcode` on i64, and their right results.
fn with(catalogue: &Catalogue, opcode: Opcode) -> impl Iterator<Item = (Program, Results)> {
    let programs = (1..).map(|seed| Program::new(catalogue, seed));
    programs
        .filter(move |program| {
            program
                .functions
                .iter()
                .any(|func| place(func, opcode).is_some())
        })
        .filter_map(|program| {
            let results = program.expected(catalogue).ok()?;
            Some((program, results))
        })
}

fn place(func: &Function, opcode: Opcode) -> Option<cranelift_codegen::ir::Inst> {
    let insts = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block));
    insts
        .filter(|inst| func.dfg.insts[*inst].opcode() == opcode)
        .find(|inst| func.dfg.ctrl_typevar(*inst) == types::I64)
}

#[test]
fn a_flipped_bit_is_found() {
    let catalogue = Catalogue::new();
    let (program, mut results) = with(&catalogue, Opcode::Iadd)
        .next()
        .expect("there are many");
    assert!(check::compare(&program, &results).is_none());
    let value = &mut results[3][2][0];
    let mut bytes = [0; 16];
    value.write_to_slice_le(&mut bytes);
    bytes[0] ^= 1;
    let ty = value.ty();
    *value = cranelift_codegen::data_value::DataValue::read_from_slice_le(&bytes, ty);
    let difference = check::compare(&program, &results).expect("a difference");
    assert!(
        difference.errors[0].contains("the result is"),
        "{difference:?}"
    );
}

/// An error of the target is planted by another opcode in what it gets. Not every program's results depend on it, but
/// it must not take many.
#[test]
fn a_wrong_operation_is_found() {
    let catalogue = Catalogue::new();
    for (right, wrong) in [
        (Opcode::Umin, Opcode::Umax),
        (Opcode::Isub, Opcode::Iadd),
        (Opcode::Ushr, Opcode::Sshr),
        (Opcode::Rotr, Opcode::Rotl),
        (Opcode::Umulhi, Opcode::Smulhi),
        (Opcode::Bxor, Opcode::Bor),
    ] {
        let found = with(&catalogue, right)
            .take(100)
            .any(|(mut program, results)| {
                for func in &mut program.functions {
                    while let Some(inst) = place(func, right) {
                        if let InstructionData::Binary { opcode, .. } = &mut func.dfg.insts[inst] {
                            *opcode = wrong;
                        }
                    }
                }
                check::compare(&program, &results).is_some()
            });
        assert!(found, "{wrong} instead of {right} goes unnoticed");
    }
}
