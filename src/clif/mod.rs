//! From CLIF text to a function that is ready to be lowered.
//!
//! [`source`] reads a file; [`Preparer::prepare`] then takes an `ir::Function` through the passes on CLIF, which are
//! the rows of `pipeline`, and returns it as [`Prepared`]: verified, with its [`intrinsics`] found and checked, private
//! stack slots in SSA form, optimised by Cranelift's mid-end, free of aliases and unreachable blocks, and with its
//! control flow computed. Everything here works with Cranelift's `settings::Flags` only, never through a stand-in ISA:
//! thread ids and shared addresses are i32, which a 64-bit ISA would refuse.

pub mod accesses;
pub mod atomics;
pub mod by_value;
pub mod contents;
pub mod conversions;
mod fuse;
pub mod legalize;
mod loops;
pub mod merge;
pub mod mid_end;
mod pipeline;
pub mod places;
pub mod promote;
pub mod returns;
pub mod rewrite;
pub mod signatures;
pub mod source;
pub mod tables;
mod type_sets;

pub use source::KernelOptions;

use crate::abi::{self, bank0};
use crate::analysis::Subject;
use crate::analysis::calls::{self, Callees, Summarize, Summary};
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::meeting::Meetings;
use crate::error::{Error, ErrorList, Errors, Place, Problem};
use crate::intrinsics::resolve::{Intrinsics, Namer, check as check_uses};
use crate::passes::Pass;
use crate::remarks::Remarks;
use crate::settings::Options as Settings;
use crate::values::tracking::Tracking;
use crate::variables::Assignment;
use contents::Contents;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::{Function, Inst, Opcode, Signature, Type, Value};
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_codegen::verifier::VerifierErrors;
use pipeline::State;
use std::sync::LazyLock;
use tables::FindTable;

/// How to prepare one function.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// What the kernel mark says; `None` for a device function.
    pub kernel: Option<KernelOptions>,
    /// Which passes run.
    pub settings: &'a Settings,
    /// Names of the functions and symbols that the embedding knows by number.
    pub namer: &'a Namer<'a>,
    /// What other functions do to the lanes that call them.
    pub summarize: &'a Summarize<'a>,
    /// Data that nobody writes.
    pub tables: &'a FindTable<'a>,
    /// Whether the verifier has seen the function already ([`check`]).
    pub verified: bool,
    /// Passes that are left out, of those that may be ([`Pass::is_optional`]).
    pub skip: &'a [Pass],
    /// The pass after which preparation ends, if not after all.
    pub stop_after: Option<Pass>,
    /// What the front end assigns to its variables.
    pub assignments: &'a [Assignment],
}

impl Options<'_> {
    /// A device function of a text, optimised.
    pub const DEVICE: Options<'static> = Options {
        kernel: None,
        settings: &Settings::DEFAULT,
        namer: &|_| None,
        summarize: &|_| Summary::UNKNOWN,
        tables: &|_| None,
        verified: false,
        skip: &[],
        stop_after: None,
        assignments: &[],
    };
}

/// A function that is ready to be analysed and lowered. It is large, so it comes in a box, which [`Preparer::recycle`]
/// takes back.
pub struct Prepared {
    /// The function: verified, without aliases and unreachable blocks.
    pub func: Function,
    /// Which of its external names are intrinsics.
    pub intrinsics: Intrinsics,
    /// What the kernel mark says; `None` for a device function.
    pub kernel: Option<KernelOptions>,
    /// Graph, dominators, post-dominators and loops.
    pub flow: ControlFlow,
    /// What its calls do.
    pub callees: Callees,
    /// Where its lanes meet.
    pub meetings: Meetings,
    /// Whether it has anything that may read or write memory.
    pub accesses_memory: bool,
    /// Whether some of that is atomic, in the function or what it calls.
    pub has_atomics: bool,
}

/// Prepares functions one after the other, reusing memory.
pub struct Preparer {
    /// What the steps turned down; whoever prepares a function takes it afterwards.
    pub remarks: Remarks,
    /// What became of the values of the source; whoever prepares a function takes it afterwards.
    pub(crate) tracking: Tracking,
    context: Context,
    /// A function that is done with; see [`Preparer::recycle`].
    recycled: Option<Box<Prepared>>,
}

/// The atomic operations of CLIF.
const ATOMICS: [Opcode; 4] = [
    Opcode::AtomicLoad,
    Opcode::AtomicStore,
    Opcode::AtomicRmw,
    Opcode::AtomicCas,
];

/// The mid-end's flags. Its verifier is off, since each step would run it again.
static FLAGS: LazyLock<Flags> = LazyLock::new(|| {
    let mut builder = settings::builder();
    builder
        .set("enable_verifier", "false")
        .expect("a setting of Cranelift");
    Flags::new(builder)
});

impl Default for Preparer {
    fn default() -> Self {
        Self {
            remarks: Remarks::default(),
            tracking: Tracking::default(),
            context: Context::new(),
            recycled: None,
        }
    }
}

impl Preparer {
    /// A preparer with no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes back what it prepared, so that the next function needs no memory of its own.
    pub fn recycle(&mut self, prepared: Box<Prepared>) {
        self.recycled = Some(prepared);
    }

    /// Takes `func` through all passes on CLIF; `observe` sees the function after each.
    ///
    /// # Errors
    /// Everything the verifier finds, a kernel that returns something, unsupported signatures, and all wrong uses of
    /// intrinsics.
    pub fn prepare(
        &mut self,
        func: Function,
        options: &Options,
        observe: &mut dyn FnMut(Pass, &Function),
    ) -> Result<Box<Prepared>, Errors> {
        let all = Options {
            stop_after: None,
            ..*options
        };
        let prepared = self.prepare_until(func, &all, observe)?;
        prepared.ok_or_else(|| internal_error("preparation has stopped"))
    }

    /// [`Preparer::prepare`] until the pass after which it is to stop; none if that is not the last.
    ///
    /// # Errors
    /// As [`Preparer::prepare`].
    pub fn prepare_until(
        &mut self,
        func: Function,
        options: &Options,
        observe: &mut dyn FnMut(Pass, &Function),
    ) -> Result<Option<Box<Prepared>>, Errors> {
        let prepared = self.recycled.take().unwrap_or_default();
        let mut state = State::new(
            func,
            &mut self.context,
            options,
            &mut self.remarks,
            &mut self.tracking,
            prepared,
        );
        if !pipeline::run(&mut state, observe)? {
            return Ok(None);
        }
        state.tracking.settle(&mut state.context.func);
        let State {
            context,
            mut prepared,
            intrinsics,
            contents,
            ..
        } = state;
        // The function before goes when the next one takes its place.
        std::mem::swap(&mut context.func, &mut prepared.func);
        prepared.accesses_memory = contents.has_accesses();
        let calls_atomics =
            contents.has(&calls::OPCODES) && prepared.callees.any_acquires(&prepared.func);
        prepared.has_atomics = contents.has(&ATOMICS) || intrinsics.has_atomics() || calls_atomics;
        prepared.intrinsics = intrinsics;
        prepared.kernel = options.kernel;
        if cfg!(debug_assertions) {
            prepared.verify()?;
        }
        Ok(Some(prepared))
    }
}

/// Whether a function can be prepared.
///
/// # Errors
/// As those of [`Preparer::prepare`], in the order of their lines.
#[cfg(feature = "module")]
pub fn check(func: &Function, options: &Options) -> Result<(), Errors> {
    let wrong = broken_rules(func, options)?;
    with_intrinsics(wrong, func, options)
}

/// What the verifier finds; of a function in which it finds nothing, what is wrong with types, signatures and kernels.
///
/// # Errors
/// Of a function that is none the reason why; nothing else can look at it.
fn broken_rules(func: &Function, options: &Options) -> Result<ErrorList, Errors> {
    refuse_emptiness(func)?;
    refuse_dynamic_vectors(func)?;
    let mut errors = ErrorList::new();
    if options.settings.enable_verifier
        && !options.verified
        && let Err(found) = verify(func)
    {
        errors.extend(found);
        return Ok(errors);
    }
    let kernel = options
        .kernel
        .map_or(Ok(()), |kernel| check_kernel(func, kernel));
    let rules = [
        refuse_wide_values(func),
        signatures::check(func, options.kernel.is_some()),
        kernel,
    ];
    for found in rules {
        errors.extend(found.err().into_iter().flatten());
    }
    Ok(errors)
}

/// Errors together with the wrong uses of intrinsics; nothing if there are none of either.
fn with_intrinsics(
    mut errors: ErrorList,
    func: &Function,
    options: &Options,
) -> Result<(), Errors> {
    let wrong_uses = check_uses(func, options.namer);
    errors.extend(wrong_uses.err().into_iter().flatten());
    errors.in_order_of_lines().finish(())
}

impl Default for Prepared {
    /// Of no function.
    fn default() -> Self {
        Self {
            func: Function::new(),
            intrinsics: Intrinsics::default(),
            kernel: None,
            flow: ControlFlow::default(),
            callees: Callees::default(),
            meetings: Meetings::default(),
            accesses_memory: false,
            has_atomics: false,
        }
    }
}

impl Prepared {
    /// True for a kernel, false for a device function.
    pub fn is_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// What the analyses take.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            func: &self.func,
            intrinsics: &self.intrinsics,
            flow: &self.flow,
            meetings: &self.meetings,
            is_kernel: self.is_kernel(),
            accesses_memory: self.accesses_memory,
            has_atomics: self.has_atomics,
            callees: &self.callees,
        }
    }

    /// Checks what [`Preparer::prepare`] guarantees.
    ///
    /// # Errors
    /// An internal error for each broken rule.
    pub fn verify(&self) -> Result<(), Errors> {
        if let Err(errors) = verify(&self.func) {
            let text = errors.to_string();
            return Err(internal_error(&format!(
                "preparation made an invalid function: {text}"
            )));
        }
        let mut errors = ErrorList::new();
        let mut complain = |message: String| {
            errors.push(Error::new(
                Problem::Internal(message),
                Place::of_function(&self.func),
            ));
        };
        for block in self.func.layout.blocks() {
            if !self.flow.is_reachable(block) {
                complain(format!("{block} is unreachable"));
            }
            for inst in self.func.layout.block_insts(block) {
                for value in self.func.dfg.inst_values(inst) {
                    if self.func.dfg.value_is_alias(value) {
                        complain(format!("{inst} reads the alias {value}"));
                    }
                }
            }
        }
        errors.finish(())
    }
}

/// Runs Cranelift's mid-end, and merges what became equal.
fn optimize(
    context: &mut Context,
    contents: &Contents,
    intrinsics: &Intrinsics,
    tracking: &Tracking,
) -> Result<(), Errors> {
    let flags = &*FLAGS;
    let internal = |error: cranelift_codegen::CodegenError| internal_error(&error.to_string());
    let hides = contents.has_types_without_constants() && mid_end::opaque::hide(&mut context.func);
    context
        .egraph_pass(flags, &mut ControlPlane::default())
        .map_err(internal)?;
    if hides {
        mid_end::opaque::reveal(&mut context.func);
    }
    tracking.recover(&context.func);
    // The mid-end folds branches, which may cut blocks off.
    if has_branches(&context.func) {
        context
            .eliminate_unreachable_code(flags)
            .map_err(internal)?;
    }
    remove_constant_parameters(context, true, tracking)?;
    merge::merge_calls(&mut context.func, &context.domtree, intrinsics, tracking);
    Ok(())
}

/// Whether there is more than one block: the entry is always reachable.
fn has_branches(func: &Function) -> bool {
    func.layout.entry_block() != func.layout.last_block()
}

/// Removes block parameters that are always the same value, and resolves all aliases, if there are any besides
/// (`has_aliases`). Cranelift's passes look at every instruction, so they run only where there is something to find
/// (*measured*: 4 % of the preparation).
fn remove_constant_parameters(
    context: &mut Context,
    has_aliases: bool,
    tracking: &Tracking,
) -> Result<(), Errors> {
    let func = &context.func;
    let mut blocks = func.layout.blocks().skip(1);
    let has_parameters = blocks.any(|block| !func.dfg.block_params(block).is_empty());
    if has_parameters {
        context
            .remove_constant_phis(&*FLAGS)
            .map_err(|error| internal_error(&error.to_string()))?;
    }
    let dfg = &context.func.dfg;
    let mut values = (0..dfg.num_values()).map(Value::new);
    let may_have_aliases = has_parameters || has_aliases;
    if may_have_aliases && values.any(|value| dfg.value_is_alias(value)) {
        tracking.resolve(&mut context.func);
    }
    Ok(())
}

fn internal_error(message: &str) -> Errors {
    Error::new(Problem::Internal(message.to_owned()), Place::default()).into()
}

/// Runs Cranelift's verifier.
///
/// # Errors
/// All that it finds, each with the line of the instruction.
pub fn verify(func: &Function) -> Result<(), Errors> {
    let Err(VerifierErrors(found)) = cranelift_codegen::verify_function(func, &*FLAGS) else {
        return Ok(());
    };
    let mut errors = ErrorList::new();
    for error in found {
        if let AnyEntity::Inst(inst) = error.location
            && needs_host_registers(func.dfg.insts[inst].opcode())
        {
            // The verifier tells only of the first.
            errors.extend(uses_of_host_registers(func));
            continue;
        }
        let place = place_of(func, error.location);
        let message = match error.context {
            Some(context) => format!("{context}: {}", error.message),
            None => format!("{}: {}", error.location, error.message),
        };
        let message = match error.location {
            AnyEntity::Inst(inst) => type_sets::with_types_listed(func, inst, message),
            _ => message,
        };
        errors.push(Error::new(Problem::Verifier(message), place));
    }
    errors.finish(())
}

/// All operations that need registers of Cranelift's own targets.
fn uses_of_host_registers(func: &Function) -> impl Iterator<Item = Error> + '_ {
    func.layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .filter(|&inst| needs_host_registers(func.dfg.insts[inst].opcode()))
        .map(|inst| {
            let remedy = "there is no such register on this target; leave it out";
            Error::unsupported(Place::of_inst(func, inst), remedy)
        })
}

/// Operations on registers that only Cranelift's own targets have; its verifier refuses them without one.
fn needs_host_registers(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::GetPinnedReg
            | Opcode::SetPinnedReg
            | Opcode::GetFramePointer
            | Opcode::GetStackPointer
            | Opcode::GetReturnAddress
    )
}

/// Cranelift's verifier and all passes take it for granted that there is an entry block.
fn refuse_emptiness(func: &Function) -> Result<(), Errors> {
    if func.layout.entry_block().is_some() {
        return Ok(());
    }
    let message = "the function has no blocks; give it a body, or leave it out and declare it where it is called";
    let problem = Problem::Verifier(message.to_owned());
    Err(Error::new(problem, Place::of_function(func)).into())
}

/// Vectors whose length is only known when they run make no sense here, and Cranelift's mid-end fails on them.
fn refuse_dynamic_vectors(func: &Function) -> Result<(), Errors> {
    if func.dfg.dynamic_types.is_empty() && func.dynamic_stack_slots.is_empty() {
        return Ok(());
    }
    let problem = Problem::Unsupported {
        item: "dynamic vectors".to_owned(),
        remedy: "use vector types of a fixed length".to_owned(),
    };
    Err(Error::new(problem, Place::of_function(func)).into())
}

/// Values of more than 128 bits have no registers.
fn refuse_wide_values(func: &Function) -> Result<(), Errors> {
    let is_wide = |ty: Type| ty.bits() > MAX_VALUE_BITS;
    if !func
        .dfg
        .values()
        .any(|value| is_wide(func.dfg.value_type(value)))
    {
        return Ok(());
    }
    let remedy = "split its vectors into ones of at most 128 bits";
    let mut errors = ErrorList::new();
    for inst in func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
    {
        let mut values = func
            .dfg
            .inst_values(inst)
            .chain(func.dfg.inst_results(inst).iter().copied());
        if values.any(|value| is_wide(func.dfg.value_type(value))) {
            errors.push(Error::unsupported(Place::of_inst(func, inst), remedy));
        }
    }
    // Nobody uses them, but they are in the way all the same.
    if errors.is_empty() {
        errors.push(Error::unsupported(Place::of_function(func), remedy));
    }
    errors.finish(())
}

/// Widest values that registers hold.
const MAX_VALUE_BITS: u32 = 128;

/// The nearest place of an entity that the verifier names.
fn place_of(func: &Function, entity: AnyEntity) -> Place {
    let inst: Option<Inst> = match entity {
        AnyEntity::Inst(inst) => Some(inst),
        AnyEntity::Block(block) if func.layout.is_block_inserted(block) => {
            func.layout.first_inst(block)
        }
        AnyEntity::Value(value) if func.dfg.value_is_valid(value) => {
            func.dfg.value_def(value).inst()
        }
        _ => None,
    };
    match inst.filter(|inst| func.dfg.inst_is_valid(*inst)) {
        // The opcode's operands may be what is wrong, so its type is not asked for.
        Some(inst) => Place {
            line: crate::error::line_of(func.srcloc(inst)),
            ..Place::of_function(func)
        },
        None => Place::of_function(func),
    }
}

/// The error of a kernel with results.
pub(crate) fn kernel_with_results(place: Place, signature: &Signature) -> Error {
    let message = format!(
        "a kernel returns nothing, but the signature is {signature}; store the result through a pointer parameter"
    );
    Error::new(Problem::Kernel(message), place)
}

/// The rules for kernels: no results, and no more parameters and shared memory than there is.
fn check_kernel(func: &Function, kernel: KernelOptions) -> Result<(), Errors> {
    let mut errors = ErrorList::new();
    if kernel.shared_bytes > abi::MAX_SHARED {
        let message = format!(
            "it asks for {} bytes of shared memory of at most {}",
            kernel.shared_bytes,
            abi::MAX_SHARED
        );
        errors.push(Error::new(
            Problem::Kernel(message),
            Place::of_function(func),
        ));
    }
    if let Err(message) = kernel.register_limit() {
        let place = Place::of_function(func);
        errors.push(Error::new(Problem::Kernel(message), place));
    }
    if !func.signature.returns.is_empty() {
        errors.push(kernel_with_results(
            Place::of_function(func),
            &func.signature,
        ));
    }
    let size = func.signature.params.iter().fold(0u32, |end, param| {
        let bytes = param.value_type.bytes().max(1);
        end.next_multiple_of(bytes.next_power_of_two().min(MAX_PARAMETER_ALIGNMENT))
            .saturating_add(bytes)
    });
    if size > bank0::MAX_PARAMETERS {
        let message = format!(
            "its parameters take {size} bytes of at most {}; pass a pointer to the data",
            bank0::MAX_PARAMETERS
        );
        errors.push(Error::new(
            Problem::Kernel(message),
            Place::of_function(func),
        ));
    }
    errors.finish(())
}

/// Alignment of the widest parameters in the constant bank.
const MAX_PARAMETER_ALIGNMENT: u32 = 16;

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
