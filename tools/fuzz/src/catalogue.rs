//! Which operations each side can do, found out by trying.
//!
//! For every [`Operation`] a function with nothing else is compiled for the target and for the host, and interpreted.
//! What a side refuses is not generated for it, and [`Catalogue::gaps`] lists it: what is skipped is said aloud and no
//! second list of opcodes is kept. An operation is tried when it is first wanted.

use crate::operation::{Operand, Operation, TYPES};
use crate::random::Random;
use crate::swarm::Swarm;
use crate::{host, interpreter, nan, write};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{
    AbiParam, Endianness, Function, InstBuilder, InstructionData, Opcode, Signature, StackSlotData,
    StackSlotKind, Type, UserFuncName, types,
};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Flags};
use cranelift_codegen::verify_function;
use cranelift_thisgpu::compile::{Compiler, FunctionInput, Unit};
use cranelift_thisgpu::object::Linkage;
use cranelift_thisgpu::settings::Options;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;
use thisgpu_filetests::panics;

/// Who says what a function's results are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Oracle {
    /// Code of Cranelift's back end for the host.
    Host,
    /// Cranelift's interpreter, for what the host's back end lacks.
    Interpreter,
}

impl fmt::Display for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Interpreter => "interpreter",
        })
    }
}

/// Operations of which the interpreter computes something else than CLIF says: opcode, controlling type if it is not
/// all, and what.
const INTERPRETER_IS_WRONG: [(Opcode, Option<Type>, &str); 3] = [
    (Opcode::SaddOverflowCin, None, CANCELLED),
    (Opcode::SsubOverflowBin, None, CANCELLED),
    (
        Opcode::FcvtToUintSat,
        Some(types::I128),
        "the largest result is that of a signed i128",
    ),
];
const CANCELLED: &str = "two overflows that cancel out count as one";

/// Bits of the vectors that the host is asked for. Back ends accept narrower ones and work on whole registers: x86-64's
/// `vany_true` of two lanes also looks at what is above them.
const HOST_VECTOR: u32 = 128;

/// Whether code of the host's back end can be trusted with a function: vectors are whole registers, and casts keep the
/// order of lanes that x86-64 has.
pub fn host_knows(func: &Function) -> bool {
    let types = func.dfg.values().map(|value| func.dfg.value_type(value));
    let mut vectors = types.filter(|ty| ty.is_vector());
    let mut insts = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block));
    let is_big = |inst| match func.dfg.insts[inst] {
        InstructionData::LoadNoOffset {
            opcode: Opcode::Bitcast,
            flags,
            ..
        } => func.dfg.mem_flags[flags].explicit_endianness() == Some(Endianness::Big),
        _ => false,
    };
    vectors.all(|ty| ty.bits() == HOST_VECTOR) && !insts.any(is_big)
}

/// What the interpreter is known to compute wrongly in a function.
pub fn interpreter_mistakes(func: &Function) -> Option<&'static str> {
    let insts = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block));
    let mut mistakes = insts.filter_map(|inst| {
        let opcode = func.dfg.insts[inst].opcode();
        interpreter_mistake(opcode, func.dfg.ctrl_typevar(inst))
    });
    mistakes.next()
}

fn interpreter_mistake(opcode: Opcode, control: Type) -> Option<&'static str> {
    let mut known = INTERPRETER_IS_WRONG.iter();
    known
        .find(|(wrong, on, _)| *wrong == opcode && on.is_none_or(|on| on == control))
        .map(|(_, _, reason)| *reason)
}

/// All operations, and what is known of them.
pub struct Catalogue {
    entries: Vec<Entry>,
    /// The entries of each opcode.
    opcodes: Vec<Range<usize>>,
    isa: Result<OwnedTargetIsa, String>,
    /// The types that functions may compute with, by oracle.
    types: [OnceLock<Vec<Type>>; 2],
}

/// An operation, and who can do it.
struct Entry {
    operation: Operation,
    /// Bits for all types in it, by their position in [`TYPES`].
    types: u32,
    target: OnceLock<Result<(), String>>,
    host: OnceLock<Result<(), String>>,
    interpreter: OnceLock<Result<(), String>>,
}

/// An operation that a side cannot do.
#[derive(Clone, Debug)]
pub struct Gap {
    /// The operation.
    pub operation: Operation,
    /// The side.
    pub side: &'static str,
    /// What it says.
    pub reason: String,
}

/// Bits for types.
pub fn type_set(types: &[Type]) -> u32 {
    types
        .iter()
        .filter_map(|ty| TYPES.iter().position(|known| known == ty))
        .fold(0, |set, index| set | 1 << index)
}

impl Default for Catalogue {
    fn default() -> Self {
        Self::new()
    }
}

impl Catalogue {
    /// A catalogue in which nothing has been tried yet.
    pub fn new() -> Self {
        let entries: Vec<Entry> = Operation::all()
            .into_iter()
            .map(|operation| Entry {
                operation,
                types: types_of(operation),
                target: OnceLock::new(),
                host: OnceLock::new(),
                interpreter: OnceLock::new(),
            })
            .collect();
        let mut opcodes: Vec<Range<usize>> = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            match opcodes.last_mut() {
                Some(last) if entries[last.start].operation.opcode == entry.operation.opcode => {
                    last.end = index + 1;
                }
                _ => opcodes.push(index..index + 1),
            }
        }
        Self {
            entries,
            opcodes,
            isa: host::isa("none"),
            types: Default::default(),
        }
    }

    /// The types with which the oracle can do what any function may do with its types.
    pub fn types(&self, oracle: Oracle) -> &[Type] {
        self.types[oracle as usize].get_or_init(|| {
            let known = TYPES.into_iter();
            known
                .filter(|ty| self.basics(oracle, *ty).is_ok())
                .collect()
        })
    }

    fn basics(&self, oracle: Oracle, ty: Type) -> Result<(), String> {
        if oracle == Oracle::Host && ty.is_vector() && ty.bits() != HOST_VECTOR {
            return Err("the host has no registers of this width".to_owned());
        }
        let func = write::basics(self, ty);
        match oracle {
            Oracle::Host => host::supports(self.host()?, &func),
            Oracle::Interpreter => interpreted(&func),
        }
    }

    /// The host.
    ///
    /// # Errors
    /// Why there is none.
    pub fn host(&self) -> Result<&OwnedTargetIsa, &str> {
        self.isa.as_ref().map_err(String::as_str)
    }

    /// A random operation on types of a set, which the target and the oracle can do and `swarm` does not leave out.
    /// Opcodes come up equally often, if types fit.
    pub fn pick(
        &self,
        random: &mut Random,
        types: u32,
        oracle: Oracle,
        swarm: &Swarm,
    ) -> Option<Operation> {
        for _ in 0..100 {
            let range = &self.opcodes[random.below(self.opcodes.len())];
            for _ in 0..6 {
                let entry = &self.entries[random.between(range.start, range.end - 1)];
                if entry.types & !types == 0
                    && swarm.has(&entry.operation)
                    && self.can_do(entry, oracle)
                {
                    return Some(entry.operation);
                }
            }
        }
        None
    }

    /// The operation of an opcode on a type, if the target and the oracle can do it and `swarm` does not leave it out.
    pub fn find(
        &self,
        opcode: Opcode,
        control: Type,
        oracle: Oracle,
        swarm: &Swarm,
    ) -> Option<Operation> {
        let range = self.opcodes.iter().find(|range| {
            let first = &self.entries[range.start];
            first.operation.opcode == opcode
        })?;
        let entry = self.entries[range.clone()]
            .iter()
            .find(|entry| entry.operation.control == control)?;
        (swarm.has(&entry.operation) && self.can_do(entry, oracle)).then_some(entry.operation)
    }

    /// The oracle that knows what an operation gives; the host if both do.
    pub fn oracle_of(&self, operation: Operation) -> Option<Oracle> {
        let entry = self.entries.iter().find(|e| e.operation == operation)?;
        [Oracle::Host, Oracle::Interpreter]
            .into_iter()
            .find(|&oracle| {
                entry.types & !type_set(self.types(oracle)) == 0
                    && self.by_oracle(entry, oracle).is_ok()
            })
    }

    fn can_do(&self, entry: &Entry, oracle: Oracle) -> bool {
        self.by_target(entry).is_ok() && self.by_oracle(entry, oracle).is_ok()
    }

    fn by_target<'a>(&self, entry: &'a Entry) -> &'a Result<(), String> {
        entry.target.get_or_init(|| {
            let func = alone(entry.operation);
            verify_function(&func, &Flags::new(settings::builder()))
                .map_err(|errors| format!("not valid: {errors}"))?;
            let input = FunctionInput {
                func: &func,
                name: "alone",
                kernel: None,
                linkage: Linkage::Global,
                namer: &|_| None,
            };
            let mut compiler = Compiler::new(Options::default());
            match panics::catch(|| compiler.compile_function(&input, &mut Unit::new())) {
                Ok(Err(errors)) if errors.only_unsupported() => Err(errors.to_string()),
                // Any other failure is a mistake, which a program with the operation shall show.
                _ => Ok(()),
            }
        })
    }

    fn by_oracle<'a>(&self, entry: &'a Entry, oracle: Oracle) -> &'a Result<(), String> {
        match oracle {
            Oracle::Host => entry.host.get_or_init(|| {
                let isa = self.host().map_err(str::to_owned)?;
                host::supports(isa, &alone(entry.operation))
            }),
            Oracle::Interpreter => entry.interpreter.get_or_init(|| {
                let Operation {
                    opcode, control, ..
                } = entry.operation;
                match interpreter_mistake(opcode, control) {
                    Some(reason) => Err(reason.to_owned()),
                    None => interpreted(&alone(entry.operation)),
                }
            }),
        }
    }

    /// Tries everything and says what some side cannot do. Operations that are not valid CLIF are no gaps.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        for entry in &self.entries {
            let target = self.by_target(entry);
            if matches!(target, Err(reason) if reason.starts_with("not valid")) {
                continue;
            }
            let sides = [
                ("thisgpu", target),
                ("host", self.by_oracle(entry, Oracle::Host)),
                ("interpreter", self.by_oracle(entry, Oracle::Interpreter)),
            ];
            for (side, result) in sides {
                if let Err(reason) = result {
                    gaps.push(Gap {
                        operation: entry.operation,
                        side,
                        reason: reason.clone(),
                    });
                }
            }
        }
        gaps
    }
}

fn types_of(operation: Operation) -> u32 {
    let operands = operation.operands().into_iter();
    let values = operands.filter_map(|operand| match operand {
        Operand::Value(ty) => Some(ty),
        Operand::Address => None,
    });
    let all: Vec<Type> = values.chain(operation.results()).collect();
    type_set(&all)
}

/// A function with just this operation.
fn alone(operation: Operation) -> Function {
    let operands = operation.operands();
    let mut signature = Signature::new(CallConv::Fast);
    for operand in &operands {
        if let Operand::Value(ty) = operand {
            signature.params.push(AbiParam::new(*ty));
        }
    }
    let results = operation.results();
    signature
        .returns
        .extend(results.into_iter().map(AbiParam::new));
    let mut func = Function::with_name_signature(UserFuncName::testcase("alone"), signature);
    let block = func.dfg.make_block();
    let slot = func.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 4));
    let mut pos = FuncCursor::new(&mut func);
    pos.insert_block(block);
    let args: Vec<_> = operands
        .iter()
        .map(|operand| match operand {
            Operand::Value(ty) => pos.func.dfg.append_block_param(block, *ty),
            Operand::Address => pos.ins().stack_addr(types::I64, slot, 0),
        })
        .collect();
    let inst = operation.insert(&mut pos, &args, true, &mut Random::new(0));
    let results = pos.func.dfg.inst_results(inst).to_vec();
    pos.ins().return_(&results);
    func
}

/// Whether the interpreter gets through a function with ones for arguments.
fn interpreted(func: &Function) -> Result<(), String> {
    let arguments: Vec<DataValue> = func
        .signature
        .params
        .iter()
        .map(|param| nan::one(param.value_type))
        .collect();
    match interpreter::interpret(&[func], func, &arguments) {
        Err(message) if !message.contains("traps") => Err(message),
        _ => Ok(()),
    }
}
