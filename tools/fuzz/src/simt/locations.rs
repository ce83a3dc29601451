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
//! Where a thread is in a device function, the values of the kernel that has called it are asked for: those that calls
//! keep.
//!
//! That says nothing of which time a value is of. So a kernel is run a third time, with marks in it (`marked`).

mod instrument;
mod marked;

use super::check::{BUDGET, Failure, Found, Kind, Memory, Mode, device, options, settings};
use super::emit;
use super::kernel::Kernel;
use crate::random::Random;
use cranelift_codegen::ir::{Function, Value};
use cranelift_thisgpu::compile::{Compiler, SourceFile};
use cranelift_thisgpu::driver::{Buffer, DevicePointer, Launch};
use cranelift_thisgpu::object::Object;
use cranelift_thisgpu::settings::{OptLevel, Options};
use cranelift_thisgpu::sim::debug::{Operand, Session, Stop, Thread};
use cranelift_thisgpu::values::{Place, SourceValue};
use instrument::{chosen, write_down};
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
    /// Those of callers that were somewhere.
    pub of_callers: u64,
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
    /// Of a caller, registers are shown as its callee has them.
    Unwound,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Mistake; 4] = [
        Mistake::Late,
        Mistake::Overwritten,
        Mistake::OtherLane,
        Mistake::Unwound,
    ];

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
                    Mistake::OtherLane | Mistake::Unwound => {}
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
    for settings in settings(kernel, count) {
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
        looked.of_callers += found.of_callers;
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

/// The kernel's function.
fn function(file: &mut SourceFile) -> Found<&mut Function> {
    let mut functions = file.functions.iter_mut();
    let found = functions.find(|function| function.name() == emit::NAME);
    let found = found.ok_or((Kind::Compile, "there is no kernel".to_owned()))?;
    Ok(&mut found.func)
}

fn parsed(text: &str) -> Found<SourceFile> {
    SourceFile::parse("kernel", text).map_err(|errors| (Kind::Compile, errors.to_string()))
}

/// Compiles a file with nothing optimised.
fn compile_plainly(file: &SourceFile) -> Found<Object> {
    let options = Options {
        opt_level: OptLevel::None,
        ..Options::default()
    };
    compile_file(file, options)
}

fn compile_file(file: &SourceFile, options: Options) -> Found<Object> {
    let code = Compiler::new(options).file(file);
    let code = code.map_err(|errors| (Kind::Compile, errors.to_string()))?;
    Ok(code.into_object())
}

/// Has a kernel launched, with memory of so many words behind its own arguments if there are any; `run` gets that.
fn launched<T>(
    kernel: &Kernel,
    object: &Object,
    words: usize,
    run: impl FnOnce(Launch<'_>, &Buffer<u64>) -> Found<T>,
) -> Found<T> {
    let device = device(Mode::Functional, BUDGET);
    let module = device.load(object).map_err(|e| fails(&e))?;
    let memory = Memory::new(&device, kernel).map_err(|e| fails(&e))?;
    let more = device.upload(&vec![0u64; words]).map_err(|e| fails(&e))?;
    let entry = module.kernel(emit::NAME).map_err(|e| fails(&e))?;
    let launch = memory.launch(&entry, kernel);
    let launch = match words {
        0 => launch,
        _ => launch.arg(DevicePointer(more.address())),
    };
    run(launch, &more)
}

/// Runs a kernel to its end; what it leaves in its memory of so many words.
fn left(kernel: &Kernel, object: &Object, words: usize) -> Found<Vec<u64>> {
    launched(kernel, object, words, |launch, memory| {
        let report = launch.run_to_report().map_err(|e| fails(&e))?;
        match report.fault {
            Some(fault) => Err((Kind::Fault, format!("with values written down: {fault}"))),
            None => memory.read::<u64>().map_err(|e| fails(&e)),
        }
    })
}

fn one(kernel: &Kernel, settings: &[String], mistake: Option<Mistake>) -> Found<Looked> {
    let text = emit::text(kernel);
    let mut file = parsed(&text)?;
    let mut random = Random::new(kernel.seed).fork(0x10ca);
    let values = chosen(function(&mut file)?, &mut random);
    if values.is_empty() {
        return Ok(Looked::default());
    }
    let located = Options {
        value_locations: true,
        ..options(settings)?
    };
    let at_marks = marked::check(kernel, &text, &values, &located, mistake, &mut random)?;
    let mut object = compile_file(&file, located)?;
    let plain = compile_file(&file, options(settings)?)?;
    let words = |object: &Object| {
        let functions = object.functions.iter();
        functions
            .map(|function| function.words.clone())
            .collect::<Vec<_>>()
    };
    if words(&object) != words(&plain) {
        let message = "the code is another one with locations".to_owned();
        return Err((Kind::Value, message));
    }
    if let Some(mistake) = mistake {
        mistake.plant(&mut object);
    }
    write_down(function(&mut file)?, &values);
    let words = kernel.all_threads() as usize * VALUES * STRIDE / 8;
    let written = Written(left(kernel, &compile_plainly(&file)?, words)?);
    let looked = launched(kernel, &object, 0, |launch, _| {
        let session = launch.debug().map_err(|e| fails(&e))?;
        look(session, kernel, (&values, &written), mistake, &mut random)
    })?;
    Ok(Looked { at_marks, ..looked })
}

/// The value of a function that a thread is in so many calls further out.
fn value(
    session: &Session,
    thread: Thread,
    call: u32,
    value: SourceValue,
    mistake: Option<Mistake>,
) -> Option<u128> {
    let thread = match mistake {
        Some(Mistake::OtherLane) => Thread {
            thread: thread.thread ^ 1,
            ..thread
        },
        _ => thread,
    };
    if mistake != Some(Mistake::Unwound) || call == 0 {
        return session.value_in(thread, call, &Operand::Source(value));
    }
    // What is in one register, as it is now.
    let frame = session
        .stack(thread)
        .into_iter()
        .find(|f| f.id.call == call)?;
    let function = session.image().function_at(frame.pc)?;
    let found = function.values.iter().find(|found| found.source == value)?;
    let location = found.at(frame.pc - function.address)?;
    match location.places[..] {
        [Place::Register(number)] if location.addend == 0 => {
            session.value(thread, &Operand::Register(number))
        }
        _ => None,
    }
}

/// Stops at random places and compares what can be seen.
fn look(
    mut session: Session,
    kernel: &Kernel,
    (values, written): (&[Value], &Written),
    mistake: Option<Mistake>,
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
            let is_kernel = |function: &str| function.trim_start_matches('%') == emit::NAME;
            let stack = session.stack(thread);
            let found = stack.into_iter().find(|frame| {
                let function = frame.function.as_deref();
                function.is_some_and(is_kernel)
            });
            let Some(frame) = found else {
                continue;
            };
            let call = frame.id.call;
            let index = thread.block as usize * kernel.threads as usize + thread.thread as usize;
            for (number, value) in values.iter().enumerate() {
                looked.asked += 1;
                let source = SourceValue::Value(value.as_u32());
                let Some(bits) = self::value(&session, thread, call, source, mistake) else {
                    continue;
                };
                match call {
                    0 => looked.found += 1,
                    _ => looked.of_callers += 1,
                }
                let times = written.times(index, number);
                if times.iter().any(|was| u128::from(*was) == bits)
                    || !written.is_all(index, number)
                {
                    continue;
                }
                let message = format!(
                    "{value} of thread {index} is said to be {bits:#x} at {:#x}, {call} calls out, but never was: {times:#x?}",
                    frame.pc
                );
                return Err((Kind::Value, message));
            }
        }
    }
    Ok(looked)
}
