//! CLIF as terms: all paths through a function, and where each leads.
//!
//! The meaning of operations is written here from Cranelift's documentation and shares nothing with the compiler that
//! is checked, but for operations that round floats in other ways than sums and products and for calls of intrinsics:
//! they are what their code alone computes (`alone`). What is not said here is an [`Open`] with its name.

mod alone;
mod float;
mod lanes;
mod memory;
mod operation;
mod symbol;
mod vector;

use crate::outcome::{End, Open, Path, initial_memory};
use crate::smt::definitions_first;
use crate::term::{Operation, Term, variable_of};
use crate::words::variable;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, Function, Inst, InstructionData, Opcode, StackSlot, Type, Value,
};
use hashbrown::HashMap;

/// Most paths through a function, and most blocks along one.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Paths.
    pub paths: usize,
    /// Blocks, or instructions of machine code, of all paths together.
    pub steps: usize,
}

/// The bits of a type, if values of it can be terms.
pub fn width_of(ty: Type) -> Result<u32, Open> {
    match ty.bits() {
        bits @ 8..=128 if !ty.is_dynamic_vector() => Ok(bits),
        _ => Err(Open::new(format!("a value of type {ty}"))),
    }
}

/// The variable of the parameter with a number.
pub fn parameter(index: usize, width: u32) -> Term {
    variable(&format!("parameter{index}"), width)
}

/// What is known at a point of a path.
#[derive(Clone)]
struct State {
    /// Holds for the inputs that come here.
    condition: Term,
    values: SecondaryMap<Value, Option<Term>>,
    memory: Term,
    /// Bytes of stack slots by their offsets.
    slots: HashMap<(StackSlot, i64), Term>,
}

/// A walk through a function.
struct Walk<'a> {
    func: &'a Function,
    paths: Vec<Path>,
}

/// All paths through a function whose parameters are these.
///
/// # Errors
/// What cannot be said as terms, and more paths than allowed.
pub fn paths(func: &Function, arguments: &[Term], limits: Limits) -> Result<Vec<Path>, Open> {
    let Some(entry) = func.layout.entry_block() else {
        return Err(Open::new("no entry block"));
    };
    let mut values = SecondaryMap::new();
    for (&value, &argument) in func.dfg.block_params(entry).iter().zip(arguments) {
        values[value] = Some(argument);
    }
    let first = State {
        condition: Term::known(true),
        values,
        memory: initial_memory(),
        slots: HashMap::new(),
    };
    let paths = Vec::new();
    let mut walk = Walk { func, paths };
    let mut work = vec![(entry, first)];
    let mut steps = 0;
    while let Some((block, state)) = work.pop() {
        steps += 1;
        if steps > limits.steps || walk.paths.len() + work.len() > limits.paths {
            return Err(Open::new("more paths than allowed"));
        }
        walk.block(block, state, &mut work)?;
    }
    if walk.paths.iter().any(mentions_slots) {
        return Err(Open::new("the address of a stack slot is a value"));
    }
    Ok(walk.paths)
}

/// The first letters of the names of variables that stand for addresses of stack slots.
const SLOT: &str = "slot";

/// The address of a stack slot.
fn slot_address(slot: StackSlot) -> Term {
    variable(&format!("{SLOT}{}", slot.as_u32()), 64)
}

/// Whether a path or what it returns depends on where a stack slot is.
fn mentions_slots(path: &Path) -> bool {
    let mut terms = vec![path.condition];
    if let End::Returned { results, memory } = &path.end {
        terms.extend(results);
        terms.push(*memory);
    }
    let is_slot = |term: Term| match term.operation() {
        Operation::Variable(number) => variable_of(number).0.starts_with(SLOT),
        _ => false,
    };
    terms.into_iter().flat_map(definitions_first).any(is_slot)
}

impl Walk<'_> {
    /// Goes through a block; where it goes on is added to the work.
    fn block(
        &mut self,
        block: Block,
        mut state: State,
        work: &mut Vec<(Block, State)>,
    ) -> Result<(), Open> {
        for inst in self.func.layout.block_insts(block) {
            if state.condition.as_known() == Some(false) {
                return Ok(());
            }
            if self.func.dfg.insts[inst].opcode().is_terminator() {
                return self.terminator(inst, state, work);
            }
            let results = self.operation(inst, &mut state)?;
            for (&value, term) in self.func.dfg.inst_results(inst).iter().zip(results) {
                debug_assert_eq!(
                    Ok(term.width()),
                    width_of(self.func.dfg.value_type(value)),
                    "{value}"
                );
                state.values[value] = Some(term);
            }
        }
        Err(Open::new(format!("{block} has no end")))
    }

    /// The term of a value.
    fn term(&self, state: &State, value: Value) -> Result<Term, Open> {
        let value = self.func.dfg.resolve_aliases(value);
        state.values[value].ok_or_else(|| Open::new(format!("{value} is not defined")))
    }

    /// Traps where a truth holds; goes on where it does not.
    fn trap_if(&mut self, state: &mut State, truth: Term, code: u8) {
        if state.condition.decides(truth) != Some(false) {
            let condition = state.condition.and(truth);
            let end = End::Trapped(code);
            self.paths.push(Path { condition, end });
        }
        state.condition = state.condition.and(truth.not());
    }

    /// Goes on at the target of a branch where a truth holds.
    fn go(
        &self,
        state: &State,
        truth: Term,
        call: &BlockCall,
        work: &mut Vec<(Block, State)>,
    ) -> Result<(), Open> {
        if state.condition.decides(truth) == Some(false) {
            return Ok(());
        }
        let condition = state.condition.and(truth);
        let pool = &self.func.dfg.value_lists;
        let target = call.block(pool);
        let mut next = state.clone();
        next.condition = condition;
        let parameters = self.func.dfg.block_params(target);
        for (&parameter, argument) in parameters.iter().zip(call.args(pool)) {
            let BlockArg::Value(value) = argument else {
                return Err(Open::new("an exception"));
            };
            next.values[parameter] = Some(self.term(state, value)?);
        }
        work.push((target, next));
        Ok(())
    }

    fn terminator(
        &mut self,
        inst: Inst,
        state: State,
        work: &mut Vec<(Block, State)>,
    ) -> Result<(), Open> {
        let always = Term::known(true);
        match &self.func.dfg.insts[inst] {
            InstructionData::Jump { destination, .. } => self.go(&state, always, destination, work),
            InstructionData::Brif { arg, blocks, .. } => {
                let value = self.term(&state, *arg)?;
                let is_zero = value.equals(Term::number(0, value.width()));
                self.go(&state, is_zero, &blocks[1], work)?;
                self.go(&state, is_zero.not(), &blocks[0], work)
            }
            InstructionData::BranchTable { arg, table, .. } => {
                let index = self.term(&state, *arg)?;
                let table = &self.func.dfg.jump_tables[*table];
                let mut other = always;
                for (number, call) in table.as_slice().iter().enumerate() {
                    let here = index.equals(Term::number(number as u128, index.width()));
                    self.go(&state, here, call, work)?;
                    other = other.and(here.not());
                }
                self.go(&state, other, &table.default_block(), work)
            }
            InstructionData::Trap { code, .. } => {
                let end = End::Trapped(code.as_raw().get());
                let condition = state.condition;
                self.paths.push(Path { condition, end });
                Ok(())
            }
            InstructionData::MultiAry {
                opcode: Opcode::Return,
                args,
            } => {
                let values = args.as_slice(&self.func.dfg.value_lists);
                let results = values.iter().map(|&v| self.term(&state, v));
                let end = End::Returned {
                    results: results.collect::<Result<_, _>>()?,
                    memory: state.memory,
                };
                let condition = state.condition;
                self.paths.push(Path { condition, end });
                Ok(())
            }
            other => Err(Open::new(other.opcode().to_string())),
        }
    }
}
