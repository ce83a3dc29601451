//! Changes of valid functions that follow no grammar.
//!
//! A generator writes what its author thought of: control that is structured, counters that count, operands that were
//! just made. Here any instruction gets another opcode, another operand, another place, a branch another target. What
//! Cranelift's verifier still accepts is kept, whatever it means. Its results are those of the interpreter; calls that
//! trap in it, or do not end, are not made.
//!
//! The programs have integers only, no memory and no addresses as values: what CLIF leaves open (bits of NaNs, what is
//! in memory that nobody wrote, addresses) would reach results, since nothing guards it.

use crate::catalogue::{Catalogue, Oracle, interpreter_mistakes};
use crate::interpreter;
use crate::program::Program;
use crate::random::Random;
use crate::swarm::Form;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value};
use cranelift_codegen::settings::{self, Flags};
use cranelift_codegen::verify_function;
use cranelift_thisgpu::compile::{Compiler, FunctionInput, Unit};
use cranelift_thisgpu::object::Linkage;
use cranelift_thisgpu::settings::Options;
use thisgpu_filetests::panics;

/// What programs to change do not have: of large tables each change would take long. The interpreter's calls are calls
/// of this program: recursion must end.
const WITHOUT: [Form; 6] = [
    Form::LargeTables,
    Form::Memory,
    Form::Addresses,
    Form::Floats,
    Form::Vectors,
    Form::Recursion,
];
/// Steps of a call in the interpreter, at most, about twice as many as those of a generated function.
const STEPS: u64 = 40_000;
/// Changes of a function that are tried, at most.
const TRIES: usize = 24;

/// The changed program of a seed.
pub fn program(catalogue: &Catalogue, seed: u64) -> Program {
    drawn(catalogue, seed, &Random::new(seed))
}

/// What `random` draws; `seed` is its name.
pub fn drawn(catalogue: &Catalogue, seed: u64, random: &Random) -> Program {
    let mut program = Program::without(catalogue, seed, random, &WITHOUT);
    program.oracle = Oracle::Interpreter;
    let mut random = random.fork(0x6d75);
    for func in &mut program.functions {
        for _ in 0..random.between(1, TRIES) {
            let mut changed = func.clone();
            if change(&mut changed, &mut random).is_some() && is_legal(&changed) {
                *func = changed;
            }
        }
    }
    let functions: Vec<&Function> = program.functions.iter().collect();
    for (func, calls) in functions.iter().zip(&mut program.calls) {
        calls.retain(|arguments| {
            interpreter::interpret_within(STEPS, &functions, func, arguments).is_ok()
        });
    }
    program
}

/// Whether a function is valid, the target can do it, and the interpreter does it rightly.
fn is_legal(func: &Function) -> bool {
    let flags = Flags::new(settings::builder());
    let verified = panics::catch(|| verify_function(func, &flags).is_ok());
    if !verified.unwrap_or(false) || interpreter_mistakes(func).is_some() {
        return false;
    }
    // In blocks that nothing reaches a value may be used before it is there; as text that is none.
    if cranelift_reader::parse_functions(&func.to_string()).is_err() {
        return false;
    }
    let input = FunctionInput {
        func,
        name: "changed",
        kernel: None,
        linkage: Linkage::Global,
        namer: &|_| None,
    };
    let mut compiler = Compiler::new(Options::default());
    match panics::catch(|| compiler.compile_function(&input, &mut Unit::new())) {
        Ok(Err(errors)) => !errors.only_unsupported(),
        // Another failure is a mistake, which the program shall show.
        _ => true,
    }
}

/// All instructions of a function.
fn insts(func: &Function) -> Vec<Inst> {
    let blocks = func.layout.blocks();
    blocks
        .flat_map(|block| func.layout.block_insts(block))
        .collect()
}

/// One change anywhere; `None` where there is nothing to change.
fn change(func: &mut Function, random: &mut Random) -> Option<()> {
    let all = insts(func);
    let inst = random.pick(&all);
    match random.below(8) {
        0 | 1 => other_opcode(func, inst, random),
        2..=4 => other_operand(func, inst, random),
        5 => other_place(func, inst, random.pick(&all)),
        6 => other_target(func, inst, random),
        _ => again(func, inst, random.pick(&all), random),
    }
}

/// Another opcode of the same format, another condition, or another number.
fn other_opcode(func: &mut Function, inst: Inst, random: &mut Random) -> Option<()> {
    let data = &mut func.dfg.insts[inst];
    let format = data.opcode().format();
    let same: Vec<Opcode> = (Opcode::all().iter().copied())
        .filter(|opcode| opcode.format() == format)
        .collect();
    match data {
        InstructionData::Binary { opcode, .. }
        | InstructionData::Unary { opcode, .. }
        | InstructionData::Ternary { opcode, .. } => *opcode = random.pick(&same),
        InstructionData::IntCompare { cond, .. } => *cond = random.pick(IntCC::all()),
        InstructionData::UnaryImm { imm, .. } => {
            *imm = Imm64::new(match random.below(3) {
                0 => random.bits() as i64,
                1 => imm.bits().wrapping_add(1),
                _ => imm.bits() ^ 1 << random.below(64),
            });
        }
        _ => return None,
    }
    Some(())
}

/// Another value of the same type, wherever it is defined.
fn other_operand(func: &mut Function, inst: Inst, random: &mut Random) -> Option<()> {
    let args = func.dfg.inst_args(inst);
    if args.is_empty() {
        return None;
    }
    let place = random.below(args.len());
    let ty = func.dfg.value_type(args[place]);
    let defined = func.layout.blocks().flat_map(|block| {
        let insts = func.layout.block_insts(block);
        let results = insts.flat_map(|inst| func.dfg.inst_results(inst));
        func.dfg.block_params(block).iter().chain(results)
    });
    let same: Vec<Value> = defined
        .copied()
        .filter(|value| func.dfg.value_type(*value) == ty)
        .collect();
    func.dfg.inst_args_mut(inst)[place] = random.pick(&same);
    Some(())
}

/// Moves an instruction in front of another one.
fn other_place(func: &mut Function, inst: Inst, to: Inst) -> Option<()> {
    if inst == to || func.dfg.insts[inst].opcode().is_terminator() {
        return None;
    }
    func.layout.remove_inst(inst);
    FuncCursor::new(func).at_inst(to).insert_inst(inst);
    Some(())
}

/// A branch goes to another block that takes as much.
fn other_target(func: &mut Function, inst: Inst, random: &mut Random) -> Option<()> {
    let blocks: Vec<Block> = func.layout.blocks().skip(1).collect();
    if blocks.is_empty() {
        return None;
    }
    let dfg = &mut func.dfg;
    let calls =
        dfg.insts[inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
    if calls.is_empty() {
        return None;
    }
    let call = &mut calls[random.below(calls.len())];
    call.set_block(random.pick(&blocks), &mut dfg.value_lists);
    Some(())
}

/// An instruction once more in front of another one, which gets its result for an operand.
fn again(func: &mut Function, inst: Inst, to: Inst, random: &mut Random) -> Option<()> {
    if func.dfg.insts[inst].opcode().is_terminator() {
        return None;
    }
    let copy = func.dfg.clone_inst(inst);
    FuncCursor::new(func).at_inst(to).insert_inst(copy);
    let &[result] = func.dfg.inst_results(copy) else {
        return None;
    };
    let ty = func.dfg.value_type(result);
    let args = func.dfg.inst_args(to);
    let fitting: Vec<usize> = (0..args.len())
        .filter(|&place| func.dfg.value_type(args[place]) == ty)
        .collect();
    if !fitting.is_empty() {
        func.dfg.inst_args_mut(to)[random.pick(&fitting)] = result;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::LazyLock;

    static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(Catalogue::new);

    #[test]
    fn programs_are_changed_and_still_run() {
        let (mut changed, mut calls) = (0, 0);
        for seed in 1..12 {
            let old = Program::without(&CATALOGUE, seed, &Random::new(seed), &WITHOUT);
            let new = program(&CATALOGUE, seed);
            let pairs = old.functions.iter().zip(&new.functions);
            changed += pairs
                .filter(|(old, new)| old.to_string() != new.to_string())
                .count();
            calls += new.calls.iter().map(Vec::len).sum::<usize>();
            assert!(new.interpreted().is_ok(), "seed {seed}");
        }
        assert!(
            changed > 66 && calls > 150,
            "{changed} functions, {calls} calls"
        );
    }

    #[test]
    fn a_branch_goes_elsewhere_and_what_is_not_valid_is_refused() {
        let text = "function %f(i32) -> i32 {
block0(v0: i32):
    brif v0, block1, block2
block1:
    v1 = iadd v0, v0
    jump block3(v1)
block2:
    v2 = imul v0, v0
    jump block3(v2)
block3(v3: i32):
    return v3
}";
        let file = cranelift_thisgpu::compile::SourceFile::parse("f.clif", text).unwrap();
        let func = &file.functions[0].func;
        let (mut legal, mut refused) = (Vec::new(), 0);
        for seed in 0..300 {
            let mut changed = func.clone();
            if change(&mut changed, &mut Random::new(seed)).is_some() {
                match is_legal(&changed) {
                    true => legal.push(changed.to_string()),
                    false => refused += 1,
                }
            }
        }
        legal.sort();
        legal.dedup();
        assert!(
            legal.len() > 20 && refused > 20,
            "{} and {refused}",
            legal.len()
        );
        let elsewhere =
            |text: &String| text.contains("block2, block2") || text.contains("block1, block1");
        assert!(legal.iter().any(elsewhere));
    }
}
