//! An interpreter of LLVM IR for the threads of a warp, which stop at every convergent intrinsic: what happens there is
//! an event.
//!
//! It knows nothing of the translator: integers, memory, control flow and calls, as LLVM's language reference has them,
//! and no more than the random kernels need; anything else is an error. Threads run one after the other up to their
//! next event. There all of them have to be at calls of the same intrinsic; whether it is the same *call* is what is
//! recorded.

use crate::convergence::sites::convergent_intrinsic;
use crate::data::{self, Scalar, mask, signed};
use crate::layout;
use crate::link::{Program, Symbol};
use crate::model::{
    AddressOf, Binary, BlockId, Call, Callee, Cast, Constant, Expression, Instruction,
    IntPredicate, Local, Operand, Operation, Type, Value,
};
use hashbrown::HashMap;
use std::sync::Arc;

/// Threads of the warp.
pub const THREADS: u32 = 32;

/// Where the buffers of a run begin.
pub const INPUT: u64 = 0x1_0000;
pub const OUTPUT: u64 = 0x2_0000;

const VARIABLES: u64 = 0x1000_0000;
const STACKS: u64 = 0x2000_0000;
const STACK_BYTES: u64 = 0x1_0000;

/// Instructions that a thread may execute.
const BUDGET: u64 = 2_000_000;

/// What a value is.
#[derive(Clone, Debug)]
enum Known {
    Bits(u128),
    Many(Vec<Known>),
}

type Result<T> = std::result::Result<T, String>;

/// An instruction, with the calls that lead to it.
pub type Path = Vec<(Symbol, BlockId, usize)>;

/// What all threads do together: the intrinsic, and where each thread is.
pub struct Event {
    pub intrinsic: String,
    pub paths: Vec<Path>,
}

/// A run.
pub struct Run {
    pub events: Vec<Event>,
    pub output: Vec<u32>,
}

/// What runs of one program share.
struct Machine<'p> {
    program: &'p Program,
    memory: HashMap<u64, u8>,
    variables: HashMap<Symbol, u64>,
    next_variable: u64,
}

struct Frame {
    symbol: Symbol,
    block: BlockId,
    index: usize,
    before: Option<BlockId>,
    locals: Vec<Option<Known>>,
}

struct Thread {
    number: u32,
    frames: Vec<Frame>,
    stack: u64,
    steps: u64,
}

/// Why a thread stopped.
enum Stop {
    At(String, Vec<u128>),
    Ended,
}

/// Runs a kernel of `(input, output, n, m)`.
///
/// # Errors
/// What is not interpreted, and threads that do not meet: one has ended or is at another intrinsic.
pub fn run(program: &Program, kernel: &str, input: &[u32], n: u32, m: u32) -> Result<Run> {
    let mut machine = Machine {
        program,
        memory: HashMap::new(),
        variables: HashMap::new(),
        next_variable: VARIABLES,
    };
    for (index, word) in (0..).zip(input) {
        machine.store(INPUT + 4 * index, 4, u128::from(*word));
    }
    let symbol = program.function(kernel).ok_or("there is no such kernel")?;
    let arguments = [INPUT.into(), OUTPUT.into(), n.into(), m.into()].map(Known::Bits);
    let mut threads = Vec::new();
    for number in 0..THREADS {
        threads.push(Thread {
            number,
            frames: vec![machine.frame(symbol, arguments.to_vec())?],
            stack: STACKS + u64::from(number) * STACK_BYTES,
            steps: 0,
        });
    }
    let mut events = Vec::new();
    loop {
        let mut stops = Vec::new();
        for thread in &mut threads {
            stops.push(machine.go_on(thread)?);
        }
        let mut at = Vec::new();
        for stop in &stops {
            if let Stop::At(intrinsic, arguments) = stop {
                at.push((intrinsic, arguments));
            }
        }
        let Some((intrinsic, _)) = at.first() else {
            break;
        };
        if at.len() != threads.len() || at.iter().any(|(other, _)| other != intrinsic) {
            return Err(format!(
                "event {}: not all threads are at `{intrinsic}`",
                events.len()
            ));
        }
        let results = exchange(intrinsic, &at)?;
        events.push(Event {
            intrinsic: intrinsic.to_string(),
            paths: threads.iter().map(Thread::path).collect(),
        });
        for (thread, result) in threads.iter_mut().zip(results) {
            machine.finish_call(thread, result.map(Known::Bits));
        }
    }
    let output = (0..u64::from(THREADS)).map(|thread| machine.load(OUTPUT + 4 * thread, 4) as u32);
    Ok(Run {
        events,
        output: output.collect(),
    })
}

/// What each thread gets.
fn exchange(intrinsic: &str, at: &[(&String, &Vec<u128>)]) -> Result<Vec<Option<u128>>> {
    let lanes = at.len();
    let take = |lane: usize, of: &dyn Fn(usize, usize) -> usize| {
        let arguments = at[lane].1;
        let from = of(lane, arguments[1] as usize) % lanes;
        Some(at[from].1[0])
    };
    (0..lanes)
        .map(|lane| match intrinsic {
            "bar_sync" => Ok(None),
            "shfl_bfly" => Ok(take(lane, &|lane, with| lane ^ with)),
            "shfl_idx" => Ok(take(lane, &|_, from| from)),
            other => Err(format!("`{other}` is not interpreted")),
        })
        .collect()
}

impl Thread {
    fn path(&self) -> Path {
        let steps = self.frames.iter();
        steps
            .map(|frame| (frame.symbol, frame.block, frame.index))
            .collect()
    }
}

impl<'p> Machine<'p> {
    fn frame(&self, symbol: Symbol, arguments: Vec<Known>) -> Result<Frame> {
        let function = self.program.function_of(symbol).ok_or("no function")?;
        let mut locals = vec![None; function.locals as usize];
        for (parameter, argument) in function.parameters.iter().zip(arguments) {
            locals[parameter.local.0 as usize] = Some(argument);
        }
        Ok(Frame {
            symbol,
            block: BlockId(0),
            index: 0,
            before: None,
            locals,
        })
    }

    fn store(&mut self, address: u64, bytes: u64, value: u128) {
        for byte in 0..bytes {
            self.memory
                .insert(address + byte, (value >> (8 * byte)) as u8);
        }
    }

    fn load(&self, address: u64, bytes: u64) -> u128 {
        (0..bytes).fold(0, |value, byte| {
            let found = self.memory.get(&(address + byte)).copied().unwrap_or(0);
            value | u128::from(found) << (8 * byte)
        })
    }

    fn store_known(&mut self, address: u64, ty: &Type, value: &Known) -> Result<()> {
        match value {
            Known::Bits(bits) => {
                let bytes = layout::store_size(ty).ok_or("a value of no size")?;
                self.store(address, bytes, *bits);
                Ok(())
            }
            Known::Many(elements) => {
                for (index, element) in (0..).zip(elements) {
                    let offset = layout::offset(ty, index).ok_or("an element of no place")?;
                    let ty = ty.element(index).ok_or("no such element")?;
                    self.store_known(address + offset, ty, element)?;
                }
                Ok(())
            }
        }
    }

    fn load_known(&self, address: u64, ty: &Type) -> Result<Known> {
        match ty.elements() {
            None => {
                let bytes = layout::store_size(ty).ok_or("a value of no size")?;
                let bits = layout::bits(ty).ok_or("a value of no size")?;
                Ok(Known::Bits(self.load(address, bytes) & mask(bits as u32)))
            }
            Some(count) => {
                let elements = (0..count).map(|index| {
                    let offset = layout::offset(ty, index).ok_or("an element of no place")?;
                    let ty = ty.element(index).ok_or("no such element")?;
                    self.load_known(address + offset, ty)
                });
                Ok(Known::Many(elements.collect::<Result<_>>()?))
            }
        }
    }

    /// The address of a variable.
    fn variable(&mut self, module: usize, name: &str) -> Result<u64> {
        let found = self.program.resolve(module, name);
        let (symbol, offset) = found.ok_or_else(|| format!("`{name}` is not defined"))?;
        if let Some(address) = self.variables.get(&symbol) {
            return Ok(address.wrapping_add_signed(offset));
        }
        let variable = self
            .program
            .variable_of(symbol)
            .ok_or("the address of a function")?;
        let value = variable
            .value
            .as_ref()
            .ok_or("a variable of another place")?;
        let image = data::image(&variable.ty, value).map_err(|of| of.to_string())?;
        let address = self.next_variable;
        self.next_variable += (image.bytes.len() as u64).next_multiple_of(64) + 64;
        self.variables.insert(symbol, address);
        for (index, byte) in (0..).zip(&image.bytes) {
            self.memory.insert(address + index, *byte);
        }
        let Symbol::Variable(module, _) = symbol else {
            return Err("the address of a function".into());
        };
        for (place, name, more) in &image.relocations {
            let to = self.variable(module, name)?.wrapping_add_signed(*more);
            self.store(address + place, 8, to.into());
        }
        Ok(address.wrapping_add_signed(offset))
    }

    fn constant(&mut self, module: usize, ty: &Type, constant: &Constant) -> Result<Known> {
        match (ty.elements(), constant) {
            (Some(count), Constant::Zero | Constant::Undefined | Constant::Splat(_)) => {
                let mut elements = Vec::new();
                for index in 0..count {
                    let ty = ty.element(index).ok_or("no such element")?;
                    let element = match constant {
                        Constant::Splat(element) => element,
                        other => other,
                    };
                    elements.push(self.constant(module, ty, element)?);
                }
                Ok(Known::Many(elements))
            }
            (_, Constant::Aggregate(elements)) => {
                let elements = elements.iter();
                let elements = elements.map(|(ty, element)| self.constant(module, ty, element));
                Ok(Known::Many(elements.collect::<Result<_>>()?))
            }
            (_, Constant::Expression(expression))
                if matches!(**expression, Expression::Cast(..)) =>
            {
                Err("a cast as a constant is not interpreted".into())
            }
            _ => match data::scalar(ty, constant).map_err(|of| of.to_string())? {
                Scalar::Bits(bits) => Ok(Known::Bits(bits)),
                Scalar::Address(name, offset) => {
                    let address = self.variable(module, &name)?;
                    Ok(Known::Bits(address.wrapping_add_signed(offset).into()))
                }
            },
        }
    }

    fn value(&mut self, thread: &Thread, ty: &Type, value: &Value) -> Result<Known> {
        let frame = thread.frames.last().ok_or("no frame")?;
        match value {
            Value::Local(Local(local)) => {
                let known = frame.locals[*local as usize].clone();
                known.ok_or_else(|| "a value is used before it is there".into())
            }
            Value::Constant(constant) => {
                let (Symbol::Function(module, _) | Symbol::Variable(module, _)) = frame.symbol;
                self.constant(module, ty, constant)
            }
        }
    }

    fn operand(&mut self, thread: &Thread, operand: &Operand) -> Result<Known> {
        self.value(thread, &operand.ty, &operand.value)
    }

    fn bits(&mut self, thread: &Thread, operand: &Operand) -> Result<u128> {
        match self.operand(thread, operand)? {
            Known::Bits(bits) => Ok(bits),
            Known::Many(_) => Err("an aggregate where bits are needed".into()),
        }
    }

    /// Gives the call that a thread is at its result, and goes on behind it.
    fn finish_call(&self, thread: &mut Thread, result: Option<Known>) {
        if let Some(frame) = thread.frames.last_mut() {
            let function = self.program.function_of(frame.symbol);
            let block = function.map(|f| &f.blocks[frame.block.0 as usize]);
            let instruction = block.map(|block| &block.instructions[frame.index]);
            if let Some(Local(local)) = instruction.and_then(|instruction| instruction.result) {
                frame.locals[local as usize] = result;
            }
            frame.index += 1;
        }
    }

    fn go_on(&mut self, thread: &mut Thread) -> Result<Stop> {
        let program = self.program;
        while let Some(frame) = thread.frames.last() {
            thread.steps += 1;
            if thread.steps > BUDGET {
                return Err("a thread does not end".into());
            }
            let symbol = frame.symbol;
            let function = program.function_of(symbol).ok_or("no function")?;
            let block = &function.blocks[frame.block.0 as usize];
            let instruction = &block.instructions[frame.index];
            let jump = |thread: &mut Thread, to: BlockId| {
                if let Some(frame) = thread.frames.last_mut() {
                    frame.before = Some(frame.block);
                    frame.block = to;
                    frame.index = 0;
                }
            };
            match &instruction.operation {
                Operation::Jump(to) => {
                    jump(thread, *to);
                    self.phis(thread)?;
                }
                Operation::Branch(condition, then, otherwise) => {
                    let to = if self.bits(thread, condition)? & 1 == 1 {
                        then
                    } else {
                        otherwise
                    };
                    jump(thread, *to);
                    self.phis(thread)?;
                }
                Operation::Switch { on, default, cases } => {
                    let on = self.bits(thread, on)?;
                    let case = cases.iter().find(|(value, _)| *value == on);
                    jump(thread, case.map_or(*default, |(_, to)| *to));
                    self.phis(thread)?;
                }
                Operation::Return(value) => {
                    let value = match value {
                        Some(value) => Some(self.operand(thread, value)?),
                        None => None,
                    };
                    thread.frames.pop();
                    self.finish_call(thread, value);
                }
                Operation::Unreachable => return Err("what is never reached is reached".into()),
                Operation::Call(call) => {
                    if let Some(stop) = self.call(thread, call)? {
                        return Ok(stop);
                    }
                }
                _ => {
                    let result = self.compute(thread, instruction)?;
                    self.finish_call(thread, result);
                }
            }
        }
        Ok(Stop::Ended)
    }

    /// The values of a block's phis, all at once.
    fn phis(&mut self, thread: &mut Thread) -> Result<()> {
        let frame = thread.frames.last().ok_or("no frame")?;
        let function = self
            .program
            .function_of(frame.symbol)
            .ok_or("no function")?;
        let instructions = &function.blocks[frame.block.0 as usize].instructions;
        let before = frame.before;
        let mut values = Vec::new();
        for instruction in instructions {
            let Operation::Phi(incoming) = &instruction.operation else {
                break;
            };
            let from = incoming.iter().find(|(_, block)| Some(*block) == before);
            let (value, _) = from.ok_or("a phi without a value")?;
            values.push((
                instruction.result,
                self.value(thread, &instruction.ty, value)?,
            ));
        }
        let frame = thread.frames.last_mut().ok_or("no frame")?;
        frame.index = values.len();
        for (result, value) in values {
            if let Some(Local(local)) = result {
                frame.locals[local as usize] = Some(value);
            }
        }
        Ok(())
    }

    fn call(&mut self, thread: &mut Thread, call: &Call) -> Result<Option<Stop>> {
        let Callee::Symbol(name) = &call.callee else {
            return Err("a call by address is not interpreted".into());
        };
        let mut arguments = Vec::new();
        let described = |operand: &Operand| matches!(operand.ty, Type::Other(_));
        for argument in call
            .arguments
            .iter()
            .filter(|argument| !described(argument))
        {
            arguments.push(self.operand(thread, argument)?);
        }
        let plain = || {
            let bits = arguments.iter().map(|argument| match argument {
                Known::Bits(bits) => Ok(*bits),
                Known::Many(_) => Err("an aggregate as an argument of an intrinsic".to_string()),
            });
            bits.collect::<Result<Vec<_>>>()
        };
        if let Some(intrinsic) = convergent_intrinsic(name) {
            return Ok(Some(Stop::At(intrinsic.to_string(), plain()?)));
        }
        if &**name == "__thisgpu_tid_x" {
            let number = Known::Bits(thread.number.into());
            self.finish_call(thread, Some(number));
            return Ok(None);
        }
        if let Some(intrinsic) = name.strip_prefix("llvm.") {
            let bits = call.arguments.first().and_then(|a| layout::bits(&a.ty));
            let result = self.llvm(intrinsic, bits.unwrap_or(0) as u32, &plain()?)?;
            self.finish_call(thread, result);
            return Ok(None);
        }
        let frame = thread.frames.last().ok_or("no frame")?;
        let (Symbol::Function(module, _) | Symbol::Variable(module, _)) = frame.symbol;
        let callee = self.program.resolve(module, name);
        let (callee, _) = callee.ok_or_else(|| format!("`{name}` has no body"))?;
        thread.frames.push(self.frame(callee, arguments)?);
        Ok(None)
    }

    fn llvm(&mut self, name: &str, bits: u32, arguments: &[u128]) -> Result<Option<Known>> {
        let operation = name.split('.').next().unwrap_or(name);
        let whole = mask(bits);
        let bit = |truth: bool| Known::Bits(truth.into());
        let less = |a, b| signed(a, bits) < signed(b, bits);
        Ok(match (operation, arguments) {
            ("lifetime" | "dbg" | "assume" | "experimental", _) => None,
            ("expect", [value, ..]) => Some(Known::Bits(*value)),
            ("umin", [a, b]) => Some(Known::Bits(*a.min(b))),
            ("umax", [a, b]) => Some(Known::Bits(*a.max(b))),
            ("smin", [a, b]) => Some(Known::Bits(if less(*a, *b) { *a } else { *b })),
            ("smax", [a, b]) => Some(Known::Bits(if less(*a, *b) { *b } else { *a })),
            ("fshl" | "fshr", [a, b, by]) => {
                let by = (*by % u128::from(bits)) as u32;
                let left = if operation == "fshl" { by } else { bits - by };
                Some(Known::Bits((a << left | b >> (bits - left)) & whole))
            }
            ("uadd", [a, b]) if name.contains("with.overflow") => {
                let sum = a + b;
                Some(Known::Many(vec![
                    Known::Bits(sum & whole),
                    bit(sum > whole),
                ]))
            }
            ("usub", [a, b]) if name.contains("sat") => Some(Known::Bits(a.saturating_sub(*b))),
            ("memcpy" | "memmove", [to, from, bytes, ..]) => {
                let copied: Vec<_> = (0..*bytes as u64)
                    .map(|i| self.load(*from as u64 + i, 1))
                    .collect();
                for (index, byte) in (0..).zip(copied) {
                    self.store(*to as u64 + index, 1, byte);
                }
                None
            }
            ("memset", [to, byte, bytes, ..]) => {
                for index in 0..*bytes as u64 {
                    self.store(*to as u64 + index, 1, *byte);
                }
                None
            }
            _ => return Err(format!("`llvm.{name}` is not interpreted")),
        })
    }

    fn compute(&mut self, thread: &mut Thread, instruction: &Instruction) -> Result<Option<Known>> {
        let ty = &instruction.ty;
        let whole = |ty: &Type| layout::bits(ty).map_or(0, |bits| mask(bits as u32));
        Ok(Some(match &instruction.operation {
            Operation::Binary(binary, a, b) => {
                let bits = layout::bits(&a.ty).ok_or("no size")? as u32;
                let (a, b) = (self.bits(thread, a)?, self.bits(thread, b)?);
                Known::Bits(binary_of(*binary, a, b, bits)? & whole(ty))
            }
            Operation::CompareInts(predicate, a, b) => {
                let bits = layout::bits(&a.ty).ok_or("no size")? as u32;
                let (a, b) = (self.bits(thread, a)?, self.bits(thread, b)?);
                Known::Bits(compare(*predicate, a, b, bits).into())
            }
            Operation::Cast(cast, of) => {
                let bits = layout::bits(&of.ty).ok_or("no size")? as u32;
                let value = self.bits(thread, of)?;
                let value = match cast {
                    Cast::SExt => signed(value, bits) as u128,
                    Cast::Trunc | Cast::ZExt | Cast::PtrToInt | Cast::IntToPtr | Cast::BitCast => {
                        value
                    }
                    other => return Err(format!("{other:?} is not interpreted")),
                };
                Known::Bits(value & whole(ty))
            }
            Operation::Select(condition, a, b) => {
                let condition = self.bits(thread, condition)?;
                self.operand(thread, if condition & 1 == 1 { a } else { b })?
            }
            Operation::Freeze(of) => self.operand(thread, of)?,
            Operation::Alloca { ty, align, .. } => {
                let address = thread.stack.next_multiple_of(*align);
                thread.stack = address + layout::size(ty).ok_or("no size")?;
                Known::Bits(address.into())
            }
            Operation::Load(address, _) => {
                let address = self.bits(thread, address)? as u64;
                self.load_known(address, ty)?
            }
            Operation::Store { value, address, .. } => {
                let known = self.operand(thread, value)?;
                let address = self.bits(thread, address)? as u64;
                self.store_known(address, &value.ty, &known)?;
                return Ok(None);
            }
            Operation::Address(address) => Known::Bits(self.address(thread, address)?.into()),
            Operation::ExtractValue(of, indices) => {
                let mut known = self.operand(thread, of)?;
                for index in indices {
                    known = match known {
                        Known::Many(mut elements) => elements.swap_remove(*index as usize),
                        Known::Bits(_) => return Err("an element of bits".into()),
                    };
                }
                known
            }
            Operation::InsertValue(of, element, indices) => {
                let (mut known, element) =
                    (self.operand(thread, of)?, self.operand(thread, element)?);
                let mut place = &mut known;
                for index in indices {
                    place = match place {
                        Known::Many(elements) => &mut elements[*index as usize],
                        Known::Bits(_) => return Err("an element of bits".into()),
                    };
                }
                *place = element;
                known
            }
            other => return Err(format!("{other:?} is not interpreted")),
        }))
    }

    fn address(&mut self, thread: &Thread, address: &AddressOf) -> Result<u64> {
        let mut at = self.bits(thread, &address.base)? as u64;
        let mut ty = address.element.clone();
        for (number, index) in address.indices.iter().enumerate() {
            let bits = layout::bits(&index.ty).ok_or("no size")? as u32;
            let index = signed(self.bits(thread, index)?, bits) as i64;
            if number == 0 {
                let size = layout::size(&ty).ok_or("no size")?;
                at = at.wrapping_add_signed(index.wrapping_mul(size as i64));
                continue;
            }
            let offset = layout::offset(&ty, index as u64).ok_or("no such element")?;
            at = at.wrapping_add(offset);
            ty = match &ty {
                Type::Array(_, element) => (**element).clone(),
                other => other
                    .element(index as u64)
                    .ok_or("no such element")?
                    .clone(),
            };
        }
        Ok(at)
    }
}

fn binary_of(binary: Binary, a: u128, b: u128, bits: u32) -> Result<u128> {
    let by = b as u32;
    Ok(match binary {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::UDiv => a.checked_div(b).ok_or("division by zero")?,
        Binary::URem => a.checked_rem(b).ok_or("division by zero")?,
        Binary::Shl if by < bits => a << by,
        Binary::LShr if by < bits => a >> by,
        Binary::AShr if by < bits => (signed(a, bits) >> by) as u128,
        other => return Err(format!("{other:?} by {b} is not interpreted")),
    })
}

fn compare(predicate: IntPredicate, a: u128, b: u128, bits: u32) -> bool {
    let (x, y) = (signed(a, bits), signed(b, bits));
    match predicate {
        IntPredicate::Eq => a == b,
        IntPredicate::Ne => a != b,
        IntPredicate::Ugt => a > b,
        IntPredicate::Uge => a >= b,
        IntPredicate::Ult => a < b,
        IntPredicate::Ule => a <= b,
        IntPredicate::Sgt => x > y,
        IntPredicate::Sge => x >= y,
        IntPredicate::Slt => x < y,
        IntPredicate::Sle => x <= y,
    }
}

/// Whether all threads are at the same call in each event.
pub fn is_together(run: &Run) -> bool {
    let same = |event: &Event| event.paths.windows(2).all(|pair| pair[0] == pair[1]);
    run.events.iter().all(same)
}

/// Names of what a run waits at, for messages.
pub fn names(run: &Run) -> Vec<Arc<str>> {
    run.events
        .iter()
        .map(|event| event.intrinsic.as_str().into())
        .collect()
}
