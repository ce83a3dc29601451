//! One warp that runs a program from a state and says what changed.

use super::state::{LANES, State};
use cranelift_thisgpu::unstable::isa::decode;
use cranelift_thisgpu::unstable::isa::encode::WORD_BYTES;
use cranelift_thisgpu::unstable::isa::table::Effects;
use cranelift_thisgpu::unstable::isa::{Register, RegisterClass};
use cranelift_thisgpu::unstable::sim::Bytes;
use cranelift_thisgpu::unstable::sim::Column;
use cranelift_thisgpu::unstable::sim::Concurrency;
use cranelift_thisgpu::unstable::sim::Global;
use cranelift_thisgpu::unstable::sim::Local;
use cranelift_thisgpu::unstable::sim::Program;
use cranelift_thisgpu::unstable::sim::Stop;
use cranelift_thisgpu::unstable::sim::Warp;
use cranelift_thisgpu::unstable::sim::{Banks, Environment, Shape};
use serde::{Serialize, Serializer};
use spa53::Instruction;
use std::collections::BTreeSet;
use std::io::Write;

/// What a machine runs.
#[derive(Clone, Copy)]
pub enum Code<'a> {
    /// Words of this set.
    Words(&'a Program),
    /// Instructions of SPA 5.3.
    Predecessor(&'a [Instruction]),
}

impl Code<'_> {
    /// General registers that it may name.
    fn registers(self) -> usize {
        match self {
            Code::Words(program) => program.registers,
            Code::Predecessor(_) => RegisterClass::Gpr.hardwired().into(),
        }
    }

    fn written(self) -> Written {
        match self {
            Code::Words(program) => Written::by(&program.words),
            Code::Predecessor(instructions) => {
                let destinations = instructions.iter().filter_map(Instruction::destination);
                let general: BTreeSet<u8> = destinations.map(|rd| rd.number()).collect();
                Written {
                    general: general.into_iter().collect(),
                    uniform: Vec::new(),
                    predicates: Vec::new(),
                }
            }
        }
    }
}

/// Where a run stopped, and why.
struct Stopped {
    stop: Stop,
    /// Which instruction.
    index: u32,
    instruction: Option<String>,
}

/// A warp and what it needs beside its program.
pub struct Machine<'a> {
    code: Code<'a>,
    warp: Warp,
    banks: Banks,
    global: Global,
    shared: Bytes,
    /// Registers that the program may write, sorted.
    written: Written,
    /// Values of the written general registers before the run.
    before: Vec<Column>,
}

/// Registers that a program may write.
struct Written {
    general: Vec<u8>,
    uniform: Vec<u8>,
    predicates: Vec<u8>,
}

impl Written {
    fn by(words: &[u128]) -> Written {
        let (mut general, mut uniform, mut predicates) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (inst, _) in words.iter().filter_map(|w| decode(*w).ok()) {
            for register in inst.definitions() {
                let file = match register.class() {
                    RegisterClass::Gpr => &mut general,
                    RegisterClass::Uniform => &mut uniform,
                    RegisterClass::Predicate => &mut predicates,
                };
                file.insert(register.number());
            }
            let effects = inst.optype().info().effects;
            if effects.contains(Effects::ANY_GPR) {
                general.extend(0..RegisterClass::Gpr.hardwired());
            }
            if effects.contains(Effects::PREDICATES) {
                predicates.extend(0..RegisterClass::Predicate.hardwired());
            }
        }
        let list = |set: BTreeSet<u8>| set.into_iter().collect();
        Written {
            general: list(general),
            uniform: list(uniform),
            predicates: list(predicates),
        }
    }
}

impl<'a> Machine<'a> {
    /// A machine for code.
    pub fn new(code: Code<'a>) -> Machine<'a> {
        let written = code.written();
        Machine {
            code,
            warp: Warp::new(Local::new(0, false)),
            banks: Banks::default(),
            global: Global::new(0, false),
            shared: Bytes::new(0, false),
            before: vec![[0; LANES]; written.general.len()],
            written,
        }
    }

    /// Runs the program from a state and writes the line of its result.
    ///
    /// # Errors
    /// When the line cannot be written.
    pub fn run(&mut self, state: &State, out: &mut impl Write) -> anyhow::Result<()> {
        let active = state.active.unwrap_or(u32::MAX);
        // A state may set registers that the program does not name.
        let count = state
            .general
            .iter()
            .map(|(n, _)| usize::from(*n) + 1)
            .fold(self.code.registers(), usize::max);
        self.warp.start(active, 0, count);
        for bank in &mut self.banks.banks {
            bank.clear();
        }
        for (bank, bytes) in &state.constants {
            self.banks.banks[usize::from(*bank)].extend_from_slice(bytes);
        }
        let registers = &mut self.warp.registers;
        for (number, value) in &state.general {
            *registers.column_mut((*number).into()) = *value;
        }
        for (number, value) in state.uniform.iter().flatten() {
            registers.uniform[usize::from(*number)] = *value;
        }
        for (number, value) in &state.predicates {
            registers.predicates[usize::from(*number)] = *value;
        }
        for (before, number) in self.before.iter_mut().zip(&self.written.general) {
            *before = *registers.column((*number).into());
        }
        let (uniform, predicates) = (registers.uniform, registers.predicates);
        let stop = match self.code {
            _ if active == 0 => None,
            Code::Words(program) => self.steps(program).err(),
            Code::Predecessor(instructions) => self.instructions(instructions, active).err(),
        };
        serde_json::to_writer(&mut *out, &self.changes(&uniform, &predicates, stop))?;
        Ok(out.write_all(b"\n")?)
    }

    fn steps(&mut self, program: &Program) -> Result<(), Stopped> {
        let shape = Shape {
            grid: [1; 3],
            block: [LANES as u32, 1, 1],
        };
        self.warp.prepare(0, program, &self.banks, shape.block);
        let mut env = Environment {
            program,
            banks: &self.banks,
            shape,
            budget: u64::MAX,
            block: [0; 3],
            global: self.global.table(),
            shared: &mut self.shared,
            clock: None,
            checker: None,
            recorder: None,
            concurrency: Concurrency::Alone,
        };
        for _ in 0..program.ops.len() {
            if let Err(stop) = self.warp.step(&mut env) {
                let index = self.warp.group().pc;
                let word = program.words.get(index as usize);
                let decoded = word.and_then(|w| decode(*w).ok());
                return Err(Stopped {
                    stop: *stop,
                    index,
                    instruction: decoded.map(|(inst, control)| inst.assembly(control)),
                });
            }
        }
        Ok(())
    }

    fn instructions(&mut self, instructions: &[Instruction], active: u32) -> Result<(), Stopped> {
        for (index, instruction) in instructions.iter().enumerate() {
            let done = instruction.execute(&mut self.warp.registers, &self.banks, active);
            done.map_err(|stop| Stopped {
                stop: *stop,
                index: index as u32,
                instruction: Some(format!("{instruction} ;")),
            })?;
        }
        Ok(())
    }

    /// What the program may write and is not as it was.
    fn changes(
        &self,
        uniform: &[u32; 64],
        predicates: &[u32; 8],
        stopped: Option<Stopped>,
    ) -> Changes<'_> {
        let registers = &self.warp.registers;
        let general = self
            .written
            .general
            .iter()
            .zip(&self.before)
            .filter_map(|(n, before)| {
                let value = registers.column((*n).into());
                (value != before).then_some((*n, value))
            });
        let changed = |written: &[u8], before: &[u32], after: &[u32]| {
            let different = written
                .iter()
                .filter(|n| before[usize::from(**n)] != after[usize::from(**n)]);
            different.map(|n| (*n, after[usize::from(*n)])).collect()
        };
        Changes {
            gpr: File(RegisterClass::Gpr, general.collect()),
            ur: File(
                RegisterClass::Uniform,
                changed(&self.written.uniform, uniform, &registers.uniform),
            ),
            pred: File(
                RegisterClass::Predicate,
                changed(&self.written.predicates, predicates, &registers.predicates),
            ),
            fault: stopped.map(Fault::from),
        }
    }
}

impl From<Stopped> for Fault {
    fn from(stopped: Stopped) -> Fault {
        Fault {
            message: stopped.stop.kind.to_string(),
            lane: stopped.stop.lane,
            pc: stopped.index * WORD_BYTES as u32,
            instruction: stopped.instruction,
        }
    }
}

/// The result of a run.
#[derive(Serialize)]
struct Changes<'a> {
    gpr: File<&'a Column>,
    ur: File<u32>,
    pred: File<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<Fault>,
}

/// Why the program stopped.
#[derive(Serialize)]
struct Fault {
    message: String,
    /// The lowest lane concerned.
    lane: u8,
    /// Byte offset of the instruction.
    pc: u32,
    instruction: Option<String>,
}

/// Registers of a class with their values, written as an object.
struct File<V>(RegisterClass, Vec<(u8, V)>);

impl<V: Serialize> Serialize for File<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.1
                .iter()
                .map(|(n, value)| (format!("{}{n}", self.0.prefix()), value)),
        )
    }
}
