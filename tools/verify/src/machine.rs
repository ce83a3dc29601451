//! Machine code as terms: all paths of one lane through the words of a function.
//!
//! Pure operations are run by the simulator's own semantics on terms. Control flow is followed for one lane, for which
//! barriers of convergence do nothing. Local memory is the frame: bytes at numbers of bytes from the first R1.

mod atomic;
mod lane;
mod unknown;

use crate::address::Address;
use crate::clif::Limits;
use crate::outcome::{End, Open, Path};
use crate::smt::definitions_first;
use crate::term::{Operation, Sort, Term, Unknown, variable_of};
use crate::words::variable;
use cranelift_thisgpu::launch::Window;
use cranelift_thisgpu::object::{Object, ObjectFunction, Relocation, RelocationKind};
use cranelift_thisgpu::unstable::abi;
use cranelift_thisgpu::unstable::isa::{FieldEnum, Inst, PReg, Role, decode};
use cranelift_thisgpu::unstable::sim::Program;
use cranelift_thisgpu::unstable::sim::decode::{
    Access, Action, BroadcastSource, DISCARD, Op, Operand, ZERO,
};
use cranelift_thisgpu::unstable::sim::semantics::{Reference, evaluate};
use hashbrown::HashMap;
use lane::Lane;

/// Where a value of a signature is.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// In registers from this one on, or at this offset of bytes from R1 at the call.
    pub place: abi::Place,
    /// Its bits.
    pub width: u32,
}

/// What is known at a point of a path.
#[derive(Clone)]
struct State {
    condition: Term,
    at: usize,
    registers: HashMap<u16, Term>,
    uniform: HashMap<u8, Term>,
    predicates: [Option<Term>; 7],
    memory: Term,
    /// Bytes of the frame by their distance from the first R1.
    frame: HashMap<i64, Term>,
}

/// The code of a function, with what it reads.
#[derive(Clone, Copy, Debug)]
pub struct MachineCode<'a> {
    /// Its words.
    pub words: &'a [u128],
    /// The module's constants.
    pub constants: &'a [u8],
}

impl<'a> MachineCode<'a> {
    /// The code of a function that needs nothing to be linked but the constants of its object, whose places its words
    /// have already; none if it needs more.
    pub fn of(object: &'a Object, function: &'a ObjectFunction) -> Option<Self> {
        let is_constant = |relocation: &Relocation| relocation.kind == RelocationKind::Const;
        let code = MachineCode {
            words: &function.words,
            constants: &object.constants,
        };
        (function.relocations.iter().all(is_constant)).then_some(code)
    }
}

impl<'a> From<&'a [u128]> for MachineCode<'a> {
    /// Code that reads no constants.
    fn from(words: &'a [u128]) -> Self {
        let constants = &[];
        MachineCode { words, constants }
    }
}

/// How a function is entered.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Where its parameters are, with their values.
    pub parameters: &'a [(Placed, Term)],
    /// Where its results are when it returns.
    pub results: &'a [Placed],
    /// Memory.
    pub memory: Term,
    /// What holds then.
    pub condition: Term,
}

/// All paths through the words of a function.
///
/// # Errors
/// What cannot be said as terms, and more paths than allowed.
pub fn paths(code: MachineCode<'_>, entry: Entry<'_>, limits: Limits) -> Result<Vec<Path>, Open> {
    let MachineCode { words, constants } = code;
    let Entry {
        parameters,
        results,
        memory,
        condition,
    } = entry;
    let insts: Vec<Option<Inst<PReg>>> = (words.iter())
        .map(|&word| decode(word).ok().map(|(inst, _)| inst))
        .collect();
    let program = Program::new(words, Reference::default());
    let machine = Machine {
        program: &program,
        constants,
        insts: &insts,
        results,
    };
    let mut state = State {
        condition,
        at: 0,
        registers: HashMap::new(),
        uniform: HashMap::new(),
        predicates: [None; 7],
        memory,
        frame: HashMap::new(),
    };
    for (index, (placed, value)) in parameters.iter().enumerate() {
        state.enter(index, placed, *value);
    }
    let mut paths = Vec::new();
    let mut work = vec![state];
    let mut steps = 0;
    while let Some(state) = work.pop() {
        if paths.len() + work.len() > limits.paths {
            return Err(Open::new("more paths than allowed"));
        }
        machine.run(state, &mut work, &mut paths, &mut steps, limits)?;
    }
    Ok(paths)
}

/// What stands above a parameter of so many bits in its register, if it is narrow.
pub fn above(index: usize, width: u32) -> Option<Term> {
    let more = width.next_multiple_of(32) - width;
    (more > 0).then(|| variable(&format!("above{index}"), more))
}

/// A register that nothing has been written to.
fn untouched(name: &str, number: u16) -> Term {
    variable(&format!("{name}{number}"), 32)
}

/// A word of a constant bank.
pub fn constant(bank: u8, offset: u32) -> Term {
    variable(&format!("c{bank}_{offset}"), 32)
}

/// A special register.
pub fn special(name: &str) -> Term {
    variable(name, 32)
}

/// The numbers of the registers that a callee keeps: they stand behind the results of a function.
pub fn kept() -> impl Iterator<Item = u8> {
    abi::CALLEE_SAVED.chain([abi::STACK_POINTER.number()])
}

/// A general register as it is at the call.
pub fn untouched_register(number: u8) -> Term {
    untouched("R", number.into())
}

impl State {
    /// Puts a parameter in its place. What is above a narrow one nobody knows.
    fn enter(&mut self, index: usize, placed: &Placed, value: Term) {
        let words = placed.width.div_ceil(32);
        let value = match above(index, placed.width) {
            None => value,
            Some(above) => above.above(value),
        };
        match placed.place {
            abi::Place::Registers { first, .. } => {
                for word in 0..words {
                    let register = u16::from(first) + word as u16;
                    self.registers.insert(register, value.part(32 * word, 32));
                }
            }
            abi::Place::Stack(offset) => {
                for byte in 0..words * 4 {
                    self.frame
                        .insert((offset + byte).into(), value.part(8 * byte, 8));
                }
            }
        }
    }

    /// A uniform register.
    fn uniform(&self, number: u8) -> Term {
        let known = self.uniform.get(&number).copied();
        known.unwrap_or_else(|| untouched("UR", number.into()))
    }

    /// A value in its place.
    fn leave(&self, placed: &Placed) -> Result<Term, Open> {
        let words = placed.width.div_ceil(32);
        let value = match placed.place {
            abi::Place::Registers { first, .. } => {
                let word = |i: u32| self.register(u16::from(first) + i as u16);
                (1..words).fold(word(0), |low, i| word(i).above(low))
            }
            abi::Place::Stack(offset) => {
                let byte = |i: u32| {
                    let found = self.frame.get(&i64::from(offset + i)).copied();
                    found.ok_or_else(|| Open::new("a result on the stack that is not written"))
                };
                (1..4 * words).try_fold(byte(0)?, |low, i| Ok::<Term, Open>(byte(i)?.above(low)))?
            }
        };
        Ok(value.part(0, placed.width))
    }

    fn register(&self, number: u16) -> Term {
        let known = self.registers.get(&number).copied();
        known.unwrap_or_else(|| untouched("R", number))
    }

    fn predicate(&self, number: usize) -> Term {
        match self.predicates.get(number) {
            Some(Some(term)) => *term,
            Some(None) => variable(&format!("P{number}"), 1).equals(Term::number(1, 1)),
            None => Term::known(true),
        }
    }

    /// The number of bytes that an address in the frame is from the first R1.
    fn distance(&self, address: Term) -> Result<i64, Open> {
        let first = untouched("R", abi::STACK_POINTER.number().into());
        let number = match address.operation() {
            _ if address == first => 0,
            Operation::Add(base, number) if base == first => number.as_number().unwrap_or(0),
            _ => return Err(Open::new("a place of the frame that is computed")),
        };
        Ok(i64::from(number as u32 as i32))
    }
}

/// The code that is walked through.
struct Machine<'a> {
    program: &'a Program,
    /// The module's constants.
    constants: &'a [u8],
    insts: &'a [Option<Inst<PReg>>],
    results: &'a [Placed],
}

/// Whether an address is made of a word of constant bank 0, where kernels have their parameters.
fn is_of_parameter(address: Term) -> bool {
    let is_word = |term: Term| match term.operation() {
        Operation::Variable(number) => variable_of(number).0.starts_with("c0_"),
        _ => false,
    };
    definitions_first(address).into_iter().any(is_word)
}

/// Whether a term depends on a register, a bit above a narrow parameter, or a byte of the frame that nothing was written
/// to.
pub fn reads_what_nobody_set(term: Term) -> bool {
    let is_unset = |name: &str| {
        let numbered = |letters: &str| {
            let digits = name.strip_prefix(letters).unwrap_or_default();
            !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '-')
        };
        ["R", "UR", "P", "frame", "above"].into_iter().any(numbered)
    };
    definitions_first(term)
        .into_iter()
        .any(|term| match term.operation() {
            Operation::Variable(number) => is_unset(&variable_of(number).0),
            _ => false,
        })
}

/// The upper word of addresses of shared memory.
fn shared_window() -> Term {
    Term::number((abi::SHARED_WINDOW >> 32).into(), 32)
}

/// What comes after an instruction.
enum Next {
    /// The one behind it.
    Behind,
    /// That with this index.
    To(usize),
    /// The path has ended.
    End(End),
}

impl Machine<'_> {
    /// Goes on until the path ends or parts; parts are added to the work.
    fn run(
        &self,
        mut state: State,
        work: &mut Vec<State>,
        paths: &mut Vec<Path>,
        steps: &mut usize,
        limits: Limits,
    ) -> Result<(), Open> {
        loop {
            *steps += 1;
            if *steps > limits.steps {
                return Err(Open::new("more instructions than allowed"));
            }
            let (Some(op), Some(Some(inst))) =
                (self.program.ops.get(state.at), self.insts.get(state.at))
            else {
                return Err(Open::new("a word that is no instruction"));
            };
            let guard = self.guard(&state, op);
            let decided = state.condition.decides(guard);
            if decided == Some(false) {
                state.at += 1;
                continue;
            }
            let is_guarded = decided != Some(true);
            let guard = if is_guarded { guard } else { Term::known(true) };
            if let Action::Pure(_) | Action::PureOnce(_) = op.action {
                self.pure(&mut state, op, inst, guard)?;
                state.at += 1;
                continue;
            }
            if is_guarded {
                // The lanes that go on are a path of their own.
                let mut other = state.clone();
                other.condition = state.condition.and(guard.not());
                other.at += 1;
                if other.condition.as_known() != Some(false) {
                    work.push(other);
                }
                state.condition = state.condition.and(guard);
                if state.condition.as_known() == Some(false) {
                    return Ok(());
                }
            }
            match self.step(&mut state, op, inst)? {
                Next::Behind => state.at += 1,
                Next::To(index) => state.at = index,
                Next::End(end) => {
                    let condition = state.condition;
                    paths.push(Path { condition, end });
                    return Ok(());
                }
            }
        }
    }

    /// Whether the instruction runs.
    fn guard(&self, state: &State, op: &Op) -> Term {
        let guard = op.guard;
        let holds = state.predicate(usize::from(guard.column));
        if guard.invert { holds.not() } else { holds }
    }

    /// A word of an operand.
    fn word(&self, state: &State, op: &Op, operand: Operand, index: u16) -> Result<Term, Open> {
        let column = operand.column + index;
        if (ZERO..DISCARD).contains(&operand.column) {
            return Ok(Term::number(0, 32));
        }
        if operand.column < ZERO {
            return Ok(state.register(column));
        }
        let mut sources = op.broadcasts.iter().chain(&self.program.constants);
        let found = sources.find(|broadcast| broadcast.column == column);
        let Some(found) = found else {
            return Err(Open::new("a source that is not known"));
        };
        Ok(match found.source {
            BroadcastSource::Immediate(value) => Term::number(value.into(), 32),
            BroadcastSource::Uniform(63) => Term::number(0, 32),
            BroadcastSource::Uniform(number) => state.uniform(number),
            BroadcastSource::Constant { bank, offset } => self
                .constant(bank, offset)
                .unwrap_or_else(|| constant(bank, offset)),
        })
    }

    /// A word of the module's constants.
    fn constant(&self, bank: u8, offset: u32) -> Option<Term> {
        let from = self.constants.get(offset as usize..)?;
        let word = u32::from_le_bytes(*from.first_chunk()?);
        (bank == abi::CONSTANT_BANK).then(|| Term::number(word.into(), 32))
    }

    /// The words of an operand, as many as it has.
    fn value(&self, state: &State, op: &Op, operand: Operand) -> Result<Term, Open> {
        let first = self.word(state, op, operand, 0)?;
        (1..u16::from(operand.words)).try_fold(first, |low, i| {
            Ok(self.word(state, op, operand, i)?.above(low))
        })
    }

    /// A pure operation where its guard holds.
    fn pure(&self, state: &mut State, op: &Op, inst: &Inst<PReg>, guard: Term) -> Result<(), Open> {
        let mut lane = Lane::new(self, state, op, guard);
        if evaluate(Reference::default(), inst, &mut lane) {
            return lane.finish();
        }
        self.unknown(state, op, inst, guard)
    }

    /// Anything else, where its guard holds.
    fn step(&self, state: &mut State, op: &Op, inst: &Inst<PReg>) -> Result<Next, Open> {
        match &op.action {
            Action::Load(access) => self.load(state, op, *access).map(|()| Next::Behind),
            Action::Store(access) => self.store(state, op, *access).map(|()| Next::Behind),
            Action::Atomic(atomic) => self.atomic(state, op, *atomic).map(|()| Next::Behind),
            Action::Branch(index) => Ok(Next::To(*index as usize)),
            Action::SetBarrier(_)
            | Action::Reconverge(_)
            | Action::WriteBarrier(_)
            | Action::Fence(_) => Ok(Next::Behind),
            Action::ReadBarrier(_) => {
                let d = op.operand(Role::D);
                state.registers.insert(d.column, variable("barrier", 32));
                Ok(Next::Behind)
            }
            Action::Exit => {
                let results = Vec::new();
                let memory = state.memory;
                Ok(Next::End(End::Returned { results, memory }))
            }
            Action::ReadSpecial(register) => {
                let d = op.operand(Role::D);
                state.registers.insert(d.column, special(register.name()));
                Ok(Next::Behind)
            }
            Action::ReadSpecialOnce(register) => {
                let d = op.operand(Role::D);
                state
                    .uniform
                    .insert(d.column as u8, special(register.name()));
                Ok(Next::Behind)
            }
            // What is the same in all lanes is what this one has.
            Action::ToUniform => self.to_uniform(state, op, Role::B).map(|()| Next::Behind),
            Action::UniformLoad => self.to_uniform(state, op, Role::B).map(|()| Next::Behind),
            // What lanes do together is an unknown function of what this one brings, and of what brought it here.
            Action::Shuffle(_) | Action::Vote(_) | Action::Match => self
                .unknown(state, op, inst, Term::known(true))
                .map(|()| Next::Behind),
            // The other threads may write to memory meanwhile.
            Action::CtaBarrier => {
                let function = Unknown {
                    name: "the others at a barrier".to_owned(),
                    is_symmetric: false,
                };
                state.memory = Term::apply(&function, &[state.memory], Sort::Memory);
                Ok(Next::Behind)
            }
            Action::Trap(code) => Ok(Next::End(End::Trapped(*code))),
            Action::Indirect => {
                let target = self.value(state, op, op.operand(Role::A))?;
                let [low, high] = abi::RETURN_ADDRESS.map(|r| untouched("R", r.number().into()));
                if target != high.above(low) {
                    return Err(Open::new("a branch by a table"));
                }
                let results = self.results.iter().map(|placed| state.leave(placed));
                let mut results: Vec<Term> = results.collect::<Result<_, _>>()?;
                results.extend(kept().map(|number| state.register(number.into())));
                Ok(Next::End(End::Returned {
                    results,
                    memory: state.memory,
                }))
            }
            _ => {
                let name = op.optype.map_or("a word", |optype| optype.info().mnemonic);
                Err(Open::new(name))
            }
        }
    }

    /// Writes the words of an operand to uniform registers.
    fn to_uniform(&self, state: &mut State, op: &Op, role: Role) -> Result<(), Open> {
        let first = op.operand(Role::D).column as u8;
        let value = self.value(state, op, op.operand(role))?;
        for word in 0..value.width() / 32 {
            let part = value.part(32 * word, 32);
            state.uniform.insert(first + word as u8, part);
        }
        Ok(())
    }

    /// The address of an access; none where it is in the frame, at this distance from the first R1.
    fn address(
        &self,
        state: &State,
        op: &Op,
        access: Access,
    ) -> Result<(Option<Address>, i64), Open> {
        let base = self.value(state, op, op.operand(Role::A))?;
        let width = base.width();
        let offset = Term::number(i64::from(access.offset) as u128, width);
        let mut address = base.plus(offset);
        if access.uniform {
            let index = self.value(state, op, op.operand(Role::C))?;
            address = address.plus(index.zero_extended(width));
        }
        match access.window {
            Some(Window::Local) => Ok((None, state.distance(address)?)),
            Some(Window::Global) if width == 64 => {
                // What a kernel's parameter points to is global memory (docs/guide/memory.md): the code relies on it.
                if is_of_parameter(address) {
                    let is_shared = address.part(32, 32).equals(shared_window());
                    state.condition.and(is_shared).not().assume();
                }
                Ok((Some(Address::Generic(address)), 0))
            }
            None if width == 64 => Ok((Some(Address::Generic(address)), 0)),
            Some(Window::Shared) => Ok((Some(Address::Shared(address.part(0, 32))), 0)),
            _ => Err(Open::new("an address of 32 bits")),
        }
    }

    fn load(&self, state: &mut State, op: &Op, access: Access) -> Result<(), Open> {
        let (address, distance) = self.address(state, op, access)?;
        let bytes = u32::from(access.bytes);
        let loaded = if let Some(address) = address {
            address.load(state.memory, bytes)
        } else {
            let byte = |i: u32| {
                let at = distance + i64::from(i);
                let known = state.frame.get(&at).copied();
                known.unwrap_or_else(|| variable(&format!("frame{at}"), 8))
            };
            (1..bytes).fold(byte(0), |low, i| byte(i).above(low))
        };
        let width = (8 * bytes).max(32);
        let value = if access.signed {
            loaded.sign_extended(width)
        } else {
            loaded.zero_extended(width)
        };
        let d = op.operand(Role::D);
        if d.column < ZERO {
            for word in 0..width / 32 {
                state
                    .registers
                    .insert(d.column + word as u16, value.part(32 * word, 32));
            }
        }
        Ok(())
    }

    fn store(&self, state: &mut State, op: &Op, access: Access) -> Result<(), Open> {
        let (address, distance) = self.address(state, op, access)?;
        let bits = 8 * u32::from(access.bytes);
        let value = self.value(state, op, op.operand(Role::B))?.part(0, bits);
        if let Some(address) = address {
            state.memory = address.store(state.memory, value);
        } else {
            let bytes = (0..bits / 8).map(|i| (distance + i64::from(i), value.part(8 * i, 8)));
            state.frame.extend(bytes);
        }
        Ok(())
    }
}
