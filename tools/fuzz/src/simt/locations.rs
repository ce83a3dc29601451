//! Whether a debugger is told the truth: values of the source where the compiler says that they are, against what they
//! were.
//!
//! A kernel is compiled and run twice. Once with nothing optimised, and with stores behind the definitions of some of
//! its values: each thread writes down what each value was, one time after the other. And once in random settings in a
//! session that stops at random instructions, where the same values are read from where they are said to be. What is
//! read must be among what was written down. "Not available" is always right.
//!
//! Values that depend on what other threads do are left out: they differ from run to run.
//!
//! That says nothing of which time a value is of. So a kernel is run a third time, with marks in it ([`marked`]).

mod marked;

use super::check::{BUDGET, Failure, Found, Kind, Memory, Mode, compile, device, settings};
use super::emit;
use super::kernel::Kernel;
use crate::random::Random;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{
    AbiParam, Block, ExtFuncData, ExternalName, Function, Inst, InstBuilder, MemFlagsData, Opcode,
    Signature, Type, Value, types,
};
use cranelift_thisgpu::compile::{Code, Compiler, SourceFile};
use cranelift_thisgpu::driver::DevicePointer;
use cranelift_thisgpu::object::Object;
use cranelift_thisgpu::settings::{OptLevel, Options};
use cranelift_thisgpu::sim::debug::{Operand, Session, Stop, Thread};
use cranelift_thisgpu::values::SourceValue;
use std::fmt::Display;
use thisgpu_filetests::panics;

/// Values that are followed in a kernel.
const VALUES: usize = 12;
/// Times that a value is written down, at most.
const TIMES: usize = 40;
/// Bytes that a value takes: how often it was defined, and what it was.
const STRIDE: usize = 8 + 8 * TIMES;
/// Places at which a session is stopped.
const STOPS: u32 = 150;
/// Lanes of a warp.
const LANES: u32 = 32;
/// Threads that are looked at where it stops.
const THREADS: usize = 6;

/// What was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looked {
    /// Values at stops.
    pub asked: u64,
    /// Those that were somewhere.
    pub found: u64,
    /// Those that were somewhere at marks.
    pub at_marks: u64,
}

/// What each thread's values were: by thread and value how often it was defined, and the first of what it was.
struct Written(Vec<u64>);

impl Written {
    fn times(&self, thread: usize, value: usize) -> &[u64] {
        let start = (thread * VALUES + value) * STRIDE / 8;
        let count = (self.0[start] as usize).min(TIMES);
        &self.0[start + 1..start + 1 + count]
    }

    /// Whether there is no more than what was written down.
    fn is_all(&self, thread: usize, value: usize) -> bool {
        self.0[(thread * VALUES + value) * STRIDE / 8] as usize <= TIMES
    }
}

/// A mistake in what a debugger is told, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Locations begin and end an instruction late.
    Late,
    /// A value is said to be where it was until it is elsewhere: what overwrites it is forgotten.
    Overwritten,
    /// The value of another lane is shown.
    OtherLane,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Mistake; 3] = [Mistake::Late, Mistake::Overwritten, Mistake::OtherLane];

    fn plant(self, object: &mut Object) {
        for function in &mut object.functions {
            let end = function.len() as u32;
            for value in &mut function.values {
                let ranges = &mut value.ranges;
                match self {
                    Mistake::Late => {
                        for range in ranges {
                            (range.start, range.end) = (range.start + 16, range.end + 16);
                        }
                    }
                    Mistake::Overwritten => {
                        for index in 0..ranges.len() {
                            let next = ranges.get(index + 1).map_or(end, |next| next.start);
                            ranges[index].end = next;
                        }
                    }
                    Mistake::OtherLane => {}
                }
            }
        }
    }
}

/// Compares a kernel in so many settings.
///
/// # Errors
/// The first value that is not what it was, or anything else that fails.
pub fn check(kernel: &Kernel, count: usize) -> Result<Looked, Failure> {
    let mut looked = Looked::default();
    for mut settings in settings(kernel, count) {
        settings.push("value_locations=true".to_owned());
        let found = panics::catch(|| one(kernel, &settings, None));
        let found = found.unwrap_or_else(|panic| Err((Kind::Panic, panic)));
        let found = found.map_err(|(kind, message)| Failure {
            kind,
            settings,
            mode: Mode::Stepped,
            message,
        })?;
        looked.asked += found.asked;
        looked.found += found.found;
        looked.at_marks += found.at_marks;
    }
    Ok(looked)
}

/// Whether a mistake is found in a kernel, in these settings.
///
/// # Errors
/// Anything else that fails.
pub fn finds(kernel: &Kernel, settings: &[String], mistake: Mistake) -> Found<bool> {
    match one(kernel, settings, Some(mistake)) {
        Ok(_) => Ok(false),
        Err((Kind::Value, _)) => Ok(true),
        Err(other) => Err(other),
    }
}

fn fails(error: &dyn Display) -> (Kind, String) {
    (Kind::Fault, error.to_string())
}

fn one(kernel: &Kernel, settings: &[String], mistake: Option<Mistake>) -> Found<Looked> {
    let text = emit::text(kernel);
    let file = SourceFile::parse("kernel", &text).map_err(|e| (Kind::Compile, e.to_string()))?;
    let mut random = Random::new(kernel.seed).fork(0x10ca);
    let source = file.functions.iter().find(|f| f.name() == emit::NAME);
    let source = source.ok_or((Kind::Compile, "there is no kernel".to_owned()))?;
    let values = chosen(&source.func, &mut random);
    if values.is_empty() {
        return Ok(Looked::default());
    }
    let at_marks = marked::check(kernel, &text, &values, settings, mistake, &mut random)?;
    let written = written(kernel, file, &values)?;

    let code = compile(&text, settings)?;
    let plain: Vec<String> = settings[..settings.len() - 1].to_vec();
    let words = |code: &Code| {
        let functions = code.object().functions.iter();
        functions
            .map(|function| function.words.clone())
            .collect::<Vec<_>>()
    };
    if words(&code) != words(&compile(&text, &plain)?) {
        return Err((
            Kind::Value,
            "the code is another one with locations".to_owned(),
        ));
    }
    let mut object = code.into_object();
    if let Some(mistake) = mistake {
        mistake.plant(&mut object);
    }
    let device = device(Mode::Functional, BUDGET);
    let module = device.load(&object).map_err(|e| fails(&e))?;
    let memory = Memory::new(&device, kernel).map_err(|e| fails(&e))?;
    let entry = module.kernel(emit::NAME).map_err(|e| fails(&e))?;
    let session = memory
        .launch(&entry, kernel)
        .debug()
        .map_err(|e| fails(&e))?;
    let other_lane = u32::from(mistake == Some(Mistake::OtherLane));
    let looked = look(
        session,
        kernel,
        (&values, &written),
        other_lane,
        &mut random,
    )?;
    Ok(Looked { at_marks, ..looked })
}

/// Stops at random places and compares what can be seen; with `other_lane` 1 that of a neighbour.
fn look(
    mut session: Session,
    kernel: &Kernel,
    (values, written): (&[Value], &Written),
    other_lane: u32,
    random: &mut Random,
) -> Found<Looked> {
    let mut looked = Looked::default();
    for _ in 0..STOPS {
        for _ in 0..random.between(1, 9) {
            if matches!(session.step(), Stop::End | Stop::Fault(_)) {
                return Ok(looked);
            }
        }
        for _ in 0..THREADS {
            let thread = Thread {
                block: random.below(kernel.grid as usize) as u64,
                thread: random.below(kernel.threads as usize) as u32,
            };
            let Some(place) = session.place(thread).filter(|place| {
                place
                    .function
                    .as_deref()
                    .is_some_and(|name| name.trim_start_matches('%') == emit::NAME)
            }) else {
                continue;
            };
            let index = thread.block as usize * kernel.threads as usize + thread.thread as usize;
            for (number, value) in values.iter().enumerate() {
                looked.asked += 1;
                let operand = Operand::Source(SourceValue::Value(value.as_u32()));
                let seen = Thread {
                    thread: thread.thread ^ other_lane,
                    ..thread
                };
                let Some(bits) = session.value(seen, operand) else {
                    continue;
                };
                looked.found += 1;
                let times = written.times(index, number);
                if times.iter().any(|was| u128::from(*was) == bits)
                    || !written.is_all(index, number)
                {
                    continue;
                }
                let message = format!(
                    "{value} of thread {index} is said to be {bits:#x} at {place}, but never was: {times:#x?}"
                );
                return Err((Kind::Value, message));
            }
        }
    }
    Ok(looked)
}

/// Runs the kernel with its values written down.
fn written(kernel: &Kernel, mut file: SourceFile, values: &[Value]) -> Found<Written> {
    for function in &mut file.functions {
        if function.name() == emit::NAME {
            write_down(&mut function.func, values);
        }
    }
    let options = Options {
        opt_level: OptLevel::None,
        ..Options::default()
    };
    let code = Compiler::new(options).file(&file);
    let code = code.map_err(|errors| (Kind::Compile, errors.to_string()))?;
    let device = device(Mode::Functional, BUDGET);
    let module = device.load(&code).map_err(|e| fails(&e))?;
    let memory = Memory::new(&device, kernel).map_err(|e| fails(&e))?;
    let bytes = kernel.all_threads() as usize * VALUES * STRIDE;
    let places = device
        .upload(&vec![0u64; bytes / 8])
        .map_err(|e| fails(&e))?;
    let entry = module.kernel(emit::NAME).map_err(|e| fails(&e))?;
    let launch = memory
        .launch(&entry, kernel)
        .arg(DevicePointer(places.address()));
    let report = launch.run_to_report().map_err(|e| fails(&e))?;
    if let Some(fault) = report.fault {
        return Err((Kind::Fault, format!("with values written down: {fault}")));
    }
    Ok(Written(places.read::<u64>().map_err(|e| fails(&e))?))
}

/// Some values that follow from the parameters, the inputs and the place of the thread.
fn chosen(func: &Function, random: &mut Random) -> Vec<Value> {
    let tainted = tainted(func);
    let mut values: Vec<Value> = Vec::new();
    for block in func.layout.blocks() {
        let results = func.layout.block_insts(block);
        let results = results.flat_map(|inst| func.dfg.inst_results(inst).iter().copied());
        let all = func.dfg.block_params(block).iter().copied().chain(results);
        values.extend(all.filter(|value| {
            !tainted.contains(*value) && as_integer(func.dfg.value_type(*value)).is_some()
        }));
    }
    while values.len() > VALUES {
        values.swap_remove(random.below(values.len()));
    }
    values
}

/// The integer type that holds the bits of a value that can be written down.
fn as_integer(ty: Type) -> Option<Type> {
    (ty.is_int() || ty.is_float())
        .then(|| Type::int(ty.bits() as u16))?
        .filter(|ty| ty.bits() <= 64)
}

/// Values that may depend on what other threads do.
fn tainted(func: &Function) -> EntitySet<Value> {
    let mut tainted = EntitySet::new();
    let inputs = func
        .dfg
        .block_params(func.layout.entry_block().expect("a block"))[2];
    loop {
        let mut changed = false;
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                let args = func.dfg.inst_args(inst);
                let reads = args
                    .iter()
                    .any(|arg| tainted.contains(func.dfg.resolve_aliases(*arg)));
                if reads || is_source(func, inst, inputs) {
                    for &result in func.dfg.inst_results(inst) {
                        changed |= tainted.insert(result);
                    }
                }
                for call in func.dfg.insts[inst]
                    .branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables)
                {
                    let params = func.dfg.block_params(call.block(&func.dfg.value_lists));
                    for (param, arg) in params.iter().zip(call.args(&func.dfg.value_lists)) {
                        if arg
                            .as_value()
                            .is_some_and(|v| tainted.contains(func.dfg.resolve_aliases(v)))
                        {
                            changed |= tainted.insert(*param);
                        }
                    }
                }
            }
        }
        if !changed {
            return tainted;
        }
    }
}

/// Whether an instruction gives something that others decide: loads from what is common, atomics, calls.
fn is_source(func: &Function, inst: Inst, inputs: Value) -> bool {
    let opcode = func.dfg.insts[inst].opcode();
    // Addresses of functions and of the frame are others in other code.
    if matches!(opcode, Opcode::FuncAddr | Opcode::StackAddr) {
        return true;
    }
    if opcode.is_call() {
        return !own_place(func, inst);
    }
    if !opcode.can_load() {
        return false;
    }
    // An address that is computed from the inputs only.
    let mut work: Vec<Value> = func
        .dfg
        .inst_args(inst)
        .last()
        .copied()
        .into_iter()
        .collect();
    while let Some(value) = work.pop() {
        let value = func.dfg.resolve_aliases(value);
        if value == inputs {
            return opcode != Opcode::Load;
        }
        if let Some(def) = func.dfg.value_def(value).inst()
            && func.dfg.insts[def].opcode() == Opcode::Iadd
        {
            work.extend_from_slice(func.dfg.inst_args(def));
        }
    }
    true
}

/// Names of the functions that tell a thread its place.
const PLACES: [&str; 4] = ["gpu_tid_x", "gpu_ntid_x", "gpu_ctaid_x", "gpu_laneid"];

fn own_place(func: &Function, inst: Inst) -> bool {
    let dfg = &func.dfg;
    let callee = match dfg.insts[inst] {
        cranelift_codegen::ir::InstructionData::Call { func_ref, .. } => func_ref,
        _ => return false,
    };
    match &dfg.ext_funcs[callee].name {
        ExternalName::TestCase(name) => PLACES.iter().any(|place| place.as_bytes() == name.raw()),
        _ => false,
    }
}

/// Adds a parameter, the address of memory of which each thread has so many bytes; the thread's own address, and the
/// instruction that gives it.
fn add_memory(func: &mut Function, bytes: usize) -> (Value, Inst) {
    func.signature.params.push(AbiParam::new(types::I64));
    let entry = func.layout.entry_block().expect("a block");
    let memory = func.dfg.append_block_param(entry, types::I64);
    let call_conv = func.signature.call_conv;
    let place = |func: &mut Function, name: &str| {
        let mut signature = Signature::new(call_conv);
        signature.returns.push(AbiParam::new(types::I32));
        let signature = func.import_signature(signature);
        func.import_function(ExtFuncData {
            name: ExternalName::testcase(name),
            signature,
            colocated: false,
            patchable: false,
        })
    };
    let [tid, ntid, ctaid] =
        ["gpu_tid_x", "gpu_ntid_x", "gpu_ctaid_x"].map(|name| place(func, name));
    let first = func.layout.first_inst(entry).expect("an instruction");
    let mut pos = FuncCursor::new(func).at_inst(first);
    let ask = |pos: &mut FuncCursor<'_>, callee| {
        let call = pos.ins().call(callee, &[]);
        pos.func.dfg.first_result(call)
    };
    let (tid, ntid, ctaid) = (
        ask(&mut pos, tid),
        ask(&mut pos, ntid),
        ask(&mut pos, ctaid),
    );
    let before = pos.ins().imul(ctaid, ntid);
    let thread = pos.ins().iadd(before, tid);
    let thread = pos.ins().uextend(types::I64, thread);
    let bytes = pos.ins().iconst(types::I64, bytes as i64);
    let own = pos.ins().imul(thread, bytes);
    let own = pos.ins().iadd(memory, own);
    (own, func.dfg.value_def(own).unwrap_inst())
}

/// Adds stores of values behind their definitions.
fn write_down(func: &mut Function, values: &[Value]) {
    let (own, ready) = add_memory(func, VALUES * STRIDE);
    let entry = func.layout.entry_block().expect("a block");
    for (number, &value) in values.iter().enumerate() {
        let at = match func.dfg.value_def(value).inst() {
            // What the entry block has defined before the memory is known.
            Some(inst)
                if func.layout.inst_block(inst) == Some(entry)
                    && func.layout.pp_cmp(inst, ready).is_lt() =>
            {
                func.layout.next_inst(ready).expect("an end")
            }
            Some(inst) => func.layout.next_inst(inst).expect("an end"),
            None => first_behind(func, value, entry, ready),
        };
        store(func, at, own, number, value);
    }
}

/// The bits of a value as 64 of an integer.
fn bits_of(pos: &mut FuncCursor<'_>, value: Value) -> Value {
    let ty = pos.func.dfg.value_type(value);
    let integer = as_integer(ty).expect("it was chosen");
    let bits = match ty == integer {
        true => value,
        false => pos.ins().bitcast(integer, MemFlagsData::new(), value),
    };
    match integer == types::I64 {
        true => bits,
        false => pos.ins().uextend(types::I64, bits),
    }
}

/// The place behind the parameters of a block.
fn first_behind(func: &Function, param: Value, entry: Block, ready: Inst) -> Inst {
    let block = func.dfg.value_def(param).unwrap_block();
    let first = match block == entry {
        true => func.layout.next_inst(ready),
        false => func.layout.first_inst(block),
    };
    first.expect("a block has an end")
}

fn store(func: &mut Function, at: Inst, own: Value, number: usize, value: Value) {
    let flags = MemFlagsData::trusted();
    let mut pos = FuncCursor::new(func).at_inst(at);
    let offset = pos.ins().iconst(types::I64, (number * STRIDE) as i64);
    let base = pos.ins().iadd(own, offset);
    let count = pos.ins().load(types::I64, flags, base, 0);
    let most = pos.ins().iconst(types::I64, TIMES as i64 - 1);
    let index = pos.ins().umin(count, most);
    let eight = pos.ins().iconst(types::I64, 8);
    let offset = pos.ins().imul(index, eight);
    let place = pos.ins().iadd(base, offset);
    let bits = bits_of(&mut pos, value);
    pos.ins().store(flags, bits, place, 8);
    let one = pos.ins().iconst(types::I64, 1);
    let next = pos.ins().iadd(count, one);
    pos.ins().store(flags, next, base, 0);
}
