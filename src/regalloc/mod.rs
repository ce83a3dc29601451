//! Register allocation: virtual registers become machine registers.
//!
//! In: a [`VCode<VReg>`] in SSA form, blocks in reverse postorder, critical edges split. Out: a [`VCode<PReg>`] without block arguments,
//! with copies, spill code, prologue and epilogue.
//!
//! 1. [`constrain`] brings the number of values alive at once down to what the machine has, in SSA form: predicates and uniform values
//!    become GPRs, constants are made again, the rest goes to local memory.
//! 2. [`colouring`] gives every value one register for its whole life (greedy in dominance order, Hack and Goos, "Optimal register
//!    allocation for SSA-form programs in polynomial time"), with webs of values that copies would join, and aligned runs for wide
//!    operands.
//! 3. Either this colouring is the allocation, with parallel copies, or regalloc2 allocates again below the number of registers the
//!    colouring needed and keeps only the colours of wide operands ([`through_regalloc2`]); [`write`] writes the code.
//! 4. [`frame`] lays out local memory and writes prologue and epilogues.
//! 5. [`check`] derives from the allocated code alone, by following values through registers and memory, that every use reads the
//!    value it read before.

mod check;
mod colouring;
pub(crate) mod constrain;
mod frame;
pub(crate) mod liveness;
mod moves;
mod operands;
mod parallel;
mod pick;
mod registers;
mod through_regalloc2;
mod webs;
mod write;

#[cfg(test)]
mod tests;

use crate::abi;
use crate::isa::table::Effects;
use crate::isa::{PReg, Register, RegisterClass, VReg};
use crate::vcode::{Block, BlockData, Terminator, VCode};
use constrain::{Constrained, plan, pressure, rewrite, spill, uniform};
use thiserror::Error;
use through_regalloc2::Answer;

/// How the registers are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// What measured best for the function.
    #[default]
    Auto,
    /// regalloc2 wherever it can express the function.
    Regalloc2,
    /// The colouring, emitted as it is.
    Direct,
}

/// What the caller decides.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How the registers are found.
    pub path: Path,
    /// GPRs that may be used: R0 to R(limit − 1), at least [`MIN_GPRS`].
    pub gpr_limit: u8,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            path: Path::Auto,
            gpr_limit: abi::MAX_GPR + 1,
        }
    }
}

/// The smallest [`Options::gpr_limit`]: the registers of the calling convention, and what the widest instruction needs at once.
pub const MIN_GPRS: u8 = 24;

/// What the allocation needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Highest GPR + 1.
    pub registers: u32,
    /// Highest predicate + 1.
    pub predicates: u32,
    /// Highest uniform register + 1.
    pub uniforms: u32,
    /// Bytes of local memory for spilled values.
    pub spill_bytes: u32,
    /// Callee-saved registers that the function saves.
    pub saved: u32,
    /// Instructions that copy registers.
    pub moves: u32,
}

/// Why a function has no allocation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegallocError {
    /// The limit is too small for any function.
    #[error("{limit} registers are too few: at least {MIN_GPRS} are needed")]
    Limit {
        /// [`Options::gpr_limit`].
        limit: u8,
    },
    /// An instruction with implicit registers has no place in a function that is yet to be allocated.
    #[error(
        "{function}: {block}: unsupported: {form} before register allocation (it names registers at run time)"
    )]
    Implicit {
        /// Function.
        function: String,
        /// Where.
        block: Block,
        /// The instruction's form.
        form: &'static str,
    },
    /// A value is used where its definition does not come first.
    #[error("{function}: {block}: {value} is used before its definition")]
    Order {
        /// Function.
        function: String,
        /// Where.
        block: Block,
        /// The value.
        value: VReg,
    },
    /// One instruction needs more registers at once than there are.
    #[error("{function}: {block}: {form} needs more {class:?} registers at once than there are")]
    TooFew {
        /// Function.
        function: String,
        /// Where.
        block: Block,
        /// The instruction's form, or the terminator.
        form: &'static str,
        /// Of which class.
        class: RegisterClass,
    },
    /// A uniform value has no GPR form where one is needed.
    #[error(
        "{function}: {block}: unsupported: {form} writes or reads a uniform register that cannot live in a divergent block"
    )]
    DivergentWrite {
        /// Function.
        function: String,
        /// Where.
        block: Block,
        /// The instruction's form.
        form: &'static str,
    },
    /// The allocator made a mistake (found in debug builds only).
    #[error("wrong register allocation: {0}")]
    Check(String),
}

/// Memory that is kept between functions.
#[derive(Debug, Default)]
pub struct Scratch {
    liveness: liveness::Liveness,
    pressure: pressure::Pressure,
    colouring: colouring::Colouring,
    spiller: spill::Spiller,
    plan: plan::Plan,
}

/// Allocates registers.
///
/// # Errors
/// See [`RegallocError`]. The code is expected to hold [`VCode::verify`].
pub fn allocate(
    code: VCode<VReg>,
    options: &Options,
    scratch: &mut Scratch,
) -> Result<(VCode<PReg>, Report), RegallocError> {
    if options.gpr_limit < MIN_GPRS {
        return Err(RegallocError::Limit {
            limit: options.gpr_limit,
        });
    }
    refuse_implicit_registers(&code)?;
    let Constrained { code, .. } = fit(code, options, scratch)?;
    refuse_divergent_writes(&code)?;
    if options.path == Path::Regalloc2 {
        let answer = ask_regalloc2(&code, options, scratch)?;
        return finish(&code, &scratch.colouring, answer.as_ref());
    }
    let direct = finish(&code, &scratch.colouring, None)?;
    if options.path == Path::Direct || is_good_enough(&code, &direct) {
        return Ok(direct);
    }
    let Some(answer) = ask_regalloc2(&code, options, scratch)? else {
        return Ok(direct);
    };
    let other = finish(&code, &scratch.colouring, Some(&answer))?;
    Ok(if cost(&direct.1) < cost(&other.1) {
        direct
    } else {
        other
    })
}

/// What an allocation costs: registers by steps of occupancy, then copies.
fn cost(report: &Report) -> (u32, u32, u32) {
    (
        report.registers.next_multiple_of(abi::REGISTER_STEP),
        report.moves + 2 * report.saved,
        report.registers,
    )
}

/// Whether the colouring leaves nothing that asking regalloc2 would be worth: beside the copies that the calling convention forces one at most
/// outside of loops, or less than an eighth of what runs. (Measured over all functions of `filetests` and of Cranelift's runtests:
/// regalloc2 never needs a step of registers less; it removes copies in every third function that has more of them, and four fifths
/// of what it gains lie in those that it is asked for by this rule.)
fn is_good_enough(code: &VCode<VReg>, direct: &(VCode<PReg>, Report)) -> bool {
    let loops = code.blocks.values().any(|b| b.loop_depth > 0);
    let tolerated = if loops { 0 } else { forced_moves(code) + 1 };
    let (before, after) = (runs(code), runs(&direct.0));
    direct.1.moves <= tolerated || 8 * after.saturating_sub(before) < before
}

/// How many instructions run, by the depth of loops alone.
fn runs<R: Register>(code: &VCode<R>) -> u64 {
    let block = |b: &BlockData<R>| (b.insts.len() as u64) << (3 * b.loop_depth.min(6));
    code.blocks.values().map(block).sum()
}

/// Copies from the register in which an argument comes to another in which it is returned or passed on at the end.
fn forced_moves(code: &VCode<VReg>) -> u32 {
    let passed = |terminator: &Terminator<VReg>| -> u32 {
        let (Terminator::Return { values, .. } | Terminator::TailCall { values, .. }) = terminator
        else {
            return 0;
        };
        let elsewhere = |(v, r): &&(VReg, PReg)| code.entry.iter().any(|(e, at)| e == v && at != r);
        values.iter().filter(elsewhere).count() as u32
    };
    code.blocks.values().map(|b| passed(&b.terminator)).sum()
}

/// Writes the code of one allocation, checks it in debug builds, adds the frame.
fn finish(
    code: &VCode<VReg>,
    colouring: &colouring::Colouring,
    answer: Option<&Answer>,
) -> Result<(VCode<PReg>, Report), RegallocError> {
    let mut report = Report {
        spill_bytes: code.frame.spill_bytes,
        ..Report::default()
    };
    let (allocated, origin) = write::write(code, colouring, answer, &mut report);
    if cfg!(debug_assertions) {
        check::check(code, &allocated, &origin).map_err(RegallocError::Check)?;
    }
    Ok(frame::finish(allocated, report))
}

/// Uniform values must not be written where lanes are elsewhere; spilling has avoided it where it can be avoided.
fn refuse_divergent_writes(code: &VCode<VReg>) -> Result<(), RegallocError> {
    for (block, data) in code.blocks.iter().filter(|(_, data)| data.divergent) {
        for entry in code.block_insts(block) {
            if code
                .definitions(entry)
                .any(|v| v.class() == RegisterClass::Uniform)
            {
                return Err(RegallocError::DivergentWrite {
                    function: code.name.clone(),
                    block,
                    form: entry.inst.info().name,
                });
            }
        }
        let edges = liveness::edge_arguments(code, block).map(|(_, param)| param);
        debug_assert!(
            !edges
                .chain(data.params.iter().copied())
                .any(|v| v.class() == RegisterClass::Uniform)
        );
    }
    Ok(())
}

/// regalloc2's allocation of the classes that it can have; none when it needs more GPRs than there are.
fn ask_regalloc2(
    code: &VCode<VReg>,
    options: &Options,
    scratch: &mut Scratch,
) -> Result<Option<Answer>, RegallocError> {
    let Scratch {
        liveness,
        colouring,
        ..
    } = scratch;
    let mut classes = through_regalloc2::classes(code, colouring);
    if options.path == Path::Auto && !classes[RegisterClass::Gpr as usize] {
        return Ok(None);
    }
    loop {
        let answer =
            Answer::find(code, liveness, colouring, classes).map_err(RegallocError::Check)?;
        if answer.gprs() > usize::from(options.gpr_limit) {
            return Ok(None);
        }
        // Its liveness is that of one thread: what it moves to a uniform register where lanes are elsewhere would be lost to them.
        let uniform = RegisterClass::Uniform as usize;
        if !classes[uniform] || !writes_divergent_uniform(code, &answer) {
            return Ok(Some(answer));
        }
        classes[uniform] = false;
    }
}

fn writes_divergent_uniform(code: &VCode<VReg>, answer: &Answer) -> bool {
    let mut blocks = code.blocks.iter().peekable();
    answer
        .edits()
        .filter(|(_, _, copy)| copy.to.class() == RegisterClass::Uniform && copy.from != copy.to)
        .any(|(inst, ..)| {
            while blocks
                .next_if(|(block, data)| through_regalloc2::number(*block, data.insts.end) < inst)
                .is_some()
            {}
            blocks.peek().is_some_and(|(_, data)| data.divergent)
        })
}

/// Rounds of spilling for one class until its values fit; a second one is needed where copies on edges need registers themselves.
const ROUNDS: u32 = 3;

/// Spills until a colouring exists, and leaves it in `scratch`. Uniform values first, then predicates, because both go to GPRs.
fn fit(
    code: VCode<VReg>,
    options: &Options,
    scratch: &mut Scratch,
) -> Result<Constrained, RegallocError> {
    let Scratch {
        liveness,
        pressure,
        colouring,
        spiller,
        plan,
    } = scratch;
    let mut capacity = spill::Capacity::new(options.gpr_limit);
    let original = Constrained::untouched(code);
    let displaced = uniform::has_divergent_parameters(&original.code);
    loop {
        liveness.compute(&original.code);
        pressure.compute(&original.code, liveness);
        let mut spilled: Option<Constrained> = None;
        for class in [
            RegisterClass::Uniform,
            RegisterClass::Predicate,
            RegisterClass::Gpr,
        ] {
            for round in 0..ROUNDS {
                let forced = round == 0 && displaced && class == RegisterClass::Uniform;
                if !forced && pressure.fits(class, &capacity) {
                    break;
                }
                let constrained = spilled.as_ref().unwrap_or(&original);
                spiller
                    .choose(&constrained.code, liveness, class, &capacity, plan)
                    .map_err(|block| RegallocError::TooFew {
                        function: constrained.code.name.clone(),
                        block,
                        form: "spilling",
                        class,
                    })?;
                if plan.is_empty() {
                    break;
                }
                let constrained = rewrite::apply(constrained, plan);
                liveness.compute(&constrained.code);
                pressure.compute(&constrained.code, liveness);
                spilled = Some(constrained);
            }
        }
        let constrained = spilled.as_ref().unwrap_or(&original);
        match colouring::colour(
            &constrained.code,
            liveness,
            pressure,
            options.gpr_limit,
            colouring,
        ) {
            Ok(()) => return Ok(spilled.unwrap_or(original)),
            // Aligned runs may not fit into what is left between other values: try with fewer of those.
            Err(RegallocError::TooFew { class, .. }) if capacity.shrink(class) => {}
            Err(error) => return Err(error),
        }
    }
}

fn refuse_implicit_registers(code: &VCode<VReg>) -> Result<(), RegallocError> {
    for block in code.blocks.keys() {
        for entry in code.block_insts(block) {
            let effects = entry.inst.optype().info().effects;
            if effects.intersects(Effects::ANY_GPR.union(Effects::PREDICATES)) {
                return Err(RegallocError::Implicit {
                    function: code.name.clone(),
                    block,
                    form: entry.inst.info().name,
                });
            }
        }
    }
    Ok(())
}
