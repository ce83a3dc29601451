//! Register allocation: virtual registers become machine registers.
//!
//! In: a [`VCode<VReg>`] in SSA form, blocks in reverse postorder, critical edges split. Out: a [`VCode<PReg>`] without
//! block arguments, with copies, spill code, prologue and epilogue.
//!
//! 1. [`constrain`] brings the number of values alive at once down to what the machine has, in SSA form: predicates and
//!    uniform values become GPRs, constants are rematerialized, the rest is spilled to local memory.
//! 2. [`colouring`] gives every value one register for its whole live range (greedy in dominance order, Hack and Goos,
//!    "Optimal register allocation for SSA-form programs in polynomial time"), with webs of values that copies would
//!    join, and aligned runs for wide operands. For regalloc2 only what it has no constraint for is coloured
//!    ([`coloured`]), and nothing in functions without wide operands and guarded results.
//! 3. An [`Allocation`] is made: from the colouring alone ([`single_pass`]), where that was asked for or leaves hardly
//!    a copy, else by regalloc2 below the number of registers that the pressure or the colouring needs, only wide
//!    operands and guarded results in the registers of the colouring ([`backtracking`]). [`write`] writes the code of
//!    either; [`predicate_reloads`] lets predicates come back together where they can.
//! 4. [`frame`] lays out local memory and writes prologue and epilogues.
//! 5. [`check`] compares what leaves with what came: it follows every use back through registers, memory and frame code
//!    to the definition of the value that it read before.
//! 6. [`wide_moves`] makes MOV.64 of two moves.

mod allocation;
mod backtracking;
mod check;
mod coloured;
mod colouring;
pub(crate) mod constrain;
mod convention;
mod frame;
pub(crate) mod liveness;
pub(crate) mod locations;
mod moves;
mod operands;
mod parallel;
mod pick;
mod predicate_reloads;
mod preferences;
mod registers;
mod requirements;
mod reservations;
mod single_pass;
mod webs;
mod wide_moves;
mod write;

#[cfg(test)]
mod tests;

use crate::abi;
use crate::isa::{PReg, Register, RegisterClass, VReg};
use crate::remarks::{Missed, Remarks};
use crate::vcode::{Attachment, Block, BlockData, SourceLine, VCode};
use allocation::{Allocation, ProgramPoint};
use backtracking::{Guide, Refusal, Request};
use coloured::Extent;
use constrain::{Constrained, capacity, pinned, plan, pressure, rewrite, spill, uniform, unread};
use liveness::Liveness;
use locations::{Before, Definitions, Places};
use thiserror::Error;

pub use allocation::{AllocationSummary, Fallback};

/// How the registers are found. The names are those of Cranelift's setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// regalloc2 assigns the registers, GPRs as long as they have numbers there ([`backtracking`]).
    #[default]
    Backtracking,
    /// The colouring is the allocation.
    SinglePass,
}

/// What the caller decides.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How the registers are found.
    pub algorithm: Algorithm,
    /// GPRs that may be used: R0 to R(limit − 1), at least [`MIN_GPRS`].
    pub gpr_limit: u8,
    /// Whether the result is checked.
    pub verify: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            algorithm: Algorithm::default(),
            gpr_limit: abi::MAX_GPR + 1,
            verify: cfg!(debug_assertions),
        }
    }
}

/// The smallest [`Options::gpr_limit`]: the registers of the calling convention, and what the widest instruction needs
/// at once.
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
    /// How the registers were found.
    pub source: AllocationSummary,
    /// A line where most of them are in use.
    pub fullest: SourceLine,
}

impl Report {
    /// Says what did not fit.
    pub fn remark(&self, remarks: &mut Remarks) {
        let Report {
            spill_bytes,
            registers,
            fullest,
            source,
            ..
        } = *self;
        if let Some(fallback) = source.fallback {
            remarks.missed(SourceLine::default(), Missed::Backtracking, || {
                format!("{fallback}; its registers are assigned by single_pass")
            });
        }
        if spill_bytes > 0 {
            remarks.missed(fullest, Missed::Register, || {
                format!(
                    "more values are alive here than {registers} registers hold; {spill_bytes} bytes of local memory"
                )
            });
        }
    }
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
        "{function}: {block}: unsupported: {form} writes or reads a uniform register that cannot live in a divergent \
         block"
    )]
    DivergentWrite {
        /// Function.
        function: String,
        /// Where.
        block: Block,
        /// The instruction's form.
        form: &'static str,
    },
    /// The allocator made a mistake; found where [`Options::verify`] is set.
    #[error("wrong register allocation: {0}")]
    Check(String),
}

/// Most instructions of a function without calls and loops that is not handed to regalloc2 (*measured*:
/// docs/measured.md).
const EASY_WORK: usize = 32;

/// Instructions beyond which a function is not handed to regalloc2, whose time an instruction grows (*measured*:
/// docs/measured.md).
pub const MOST_WORK: usize = 20_000;

/// A function without calls is not handed to regalloc2 where the colouring leaves a copy for so many instructions at
/// most, and a copy in loops for so many of theirs (*measured*: docs/measured.md).
const COPIES: usize = 25;
const COPIES_IN_LOOPS: usize = 50;

/// Memory that is kept between functions.
#[derive(Debug, Default)]
pub struct AllocationBuffers {
    liveness: Liveness,
    pressure: pressure::Pressure,
    colouring: colouring::Colouring,
    backtracking: backtracking::Backtracking,
    allocation: Allocation,
    spiller: spill::Spiller,
    plan: plan::Plan,
}

/// Allocated code.
#[derive(Debug)]
pub struct Allocated {
    /// The code.
    pub code: VCode<PReg>,
    /// What it needs.
    pub report: Report,
    /// Where the values of the source are that were followed.
    pub places: Places,
}

/// Allocates registers.
///
/// # Errors
/// See [`RegallocError`]. The code is expected to hold [`VCode::verify`].
pub fn allocate(
    mut code: VCode<VReg>,
    options: &Options,
    scratch: &mut AllocationBuffers,
) -> Result<Allocated, RegallocError> {
    if options.gpr_limit < MIN_GPRS {
        return Err(RegallocError::Limit {
            limit: options.gpr_limit,
        });
    }
    let holders = std::mem::take(&mut code.holders);
    let original = options.verify.then(|| code.clone());
    let before = (!holders.is_empty()).then(|| Before::of(&code, holders));
    let is_recorded = original.is_some() || before.is_some();
    let code = assign(code, is_recorded, options, scratch)?;
    let (mut code, mut report, origin) = finish(code, &scratch.allocation);
    report.fullest = scratch.pressure.fullest;
    if let (Some(original), Some(origin)) = (&original, &origin) {
        check::check(original, &code, origin, options.gpr_limit).map_err(RegallocError::Check)?;
    }
    let followed = before.zip(origin);
    let mut definitions =
        (followed.as_ref()).map(|(before, origin)| Definitions::of(before, &code, origin));
    wide_moves::widen(&mut code, definitions.as_mut());
    let places = match (followed, definitions) {
        (Some((before, _)), Some(definitions)) => {
            locations::find(before, &code, definitions).map_err(RegallocError::Check)?
        }
        _ => Places::default(),
    };
    Ok(Allocated {
        code,
        report,
        places,
    })
}

/// Constrains a function and leaves its allocation in `scratch`; where instructions come from is `recorded` if
/// somebody wants to know.
fn assign(
    code: VCode<VReg>,
    recorded: bool,
    options: &Options,
    scratch: &mut AllocationBuffers,
) -> Result<Constrained, RegallocError> {
    let requirements = requirements::Requirements::of(&code)?;
    let asked = options.algorithm == Algorithm::Backtracking;
    let fallback = (asked && code.insts.len() > MOST_WORK).then_some(Fallback::Long);
    let backtracking = asked && fallback.is_none() && !is_easy(&code, &requirements);
    let extent = match (backtracking, requirements.needs_colouring) {
        (false, _) => Some(Extent::All),
        (true, true) => Some(Extent::Fixed),
        (true, false) => None,
    };
    let mut code = pinned::separate(Constrained::untouched(code, recorded));
    // Around calls regalloc2 knows better which values stay in registers that calls keep.
    let is_known = backtracking && !requirements.calls;
    if is_known && colours_well(&mut code.code, options, scratch) {
        refuse_divergent_writes(&code.code, &scratch.pressure)?;
        single_pass::allocate(&code.code, &scratch.colouring, &mut scratch.allocation);
        return Ok(code);
    }
    let code = fit(code, extent, is_known, options, scratch)?;
    refuse_divergent_writes(&code.code, &scratch.pressure)?;
    if backtracking {
        // More than was asked for where regalloc2 has no numbers for the GPRs.
        let extent = extent.map(|_| scratch.colouring.coloured.extent());
        return backtrack(code, extent, requirements.calls, options, scratch);
    }
    single_pass::allocate(&code.code, &scratch.colouring, &mut scratch.allocation);
    scratch.allocation.source.fallback = fallback;
    Ok(code)
}

/// Whether the colouring alone does as well as regalloc2: nothing is called, nothing runs again, and there is little.
fn is_easy(code: &VCode<VReg>, requirements: &requirements::Requirements) -> bool {
    let runs_once = |data: &BlockData<VReg>| data.loop_depth == 0;
    !requirements.calls && code.insts.len() <= EASY_WORK && code.blocks.values().all(runs_once)
}

/// Whether a colouring of all values needs no spilling and so few copies that regalloc2 has little to save. It is left
/// in `scratch`, as are liveness and pressure. Parameters that nobody reads are dropped.
fn colours_well(
    code: &mut VCode<VReg>,
    options: &Options,
    scratch: &mut AllocationBuffers,
) -> bool {
    let AllocationBuffers {
        liveness,
        pressure,
        colouring,
        ..
    } = scratch;
    find_liveness(code, liveness, Liveness::compute);
    pressure.compute(code, liveness);
    let capacity = capacity::Capacity::new(options.gpr_limit);
    let fits = |class: &RegisterClass| pressure.fits(*class, &capacity);
    if uniform::has_divergent_parameters(code) || !RegisterClass::ALL.iter().all(fits) {
        return false;
    }
    let extent = Extent::All;
    let coloured = colouring::colour(
        code,
        liveness,
        pressure,
        extent,
        options.gpr_limit,
        colouring,
    );
    if coloured.is_err() {
        return false;
    }
    let (copies, in_loops, work_in_loops) = colouring.copies(code);
    copies * COPIES <= code.insts.len() && in_loops * COPIES_IN_LOOPS <= work_in_loops
}

/// Finds what lives where; parameters that nobody reads are dropped.
fn find_liveness(
    code: &mut VCode<VReg>,
    liveness: &mut Liveness,
    compute: fn(&mut Liveness, &VCode<VReg>),
) {
    compute(liveness, code);
    if unread::drop_parameters(code, liveness) {
        compute(liveness, code);
    }
}

/// Writes the allocated code and adds the frame. Returned with each instruction's origin in the code that came, where
/// that is recorded.
fn finish(code: Constrained, allocation: &Allocation) -> (VCode<PReg>, Report, Option<Vec<u32>>) {
    let Constrained { code, origins } = code;
    let mut report = Report {
        spill_bytes: code.frame.spill_bytes,
        source: allocation.source,
        ..Report::default()
    };
    let mut origin = origins.are_recorded().then(Vec::new);
    let (mut code, named, tests) = write::write(code, allocation, origin.as_mut(), &mut report);
    predicate_reloads::combine(&mut code, &tests, origin.as_mut());
    if let Some(origin) = &mut origin {
        origins.trace_back(origin);
    }
    let (code, report) = frame::finish(code, named, report, origin.as_mut());
    (code, report, origin)
}

/// Whether predicates are packed.
fn has_packs(code: &VCode<VReg>) -> bool {
    let mut attachments = code.attachments.values();
    attachments.any(|a| matches!(a, Attachment::Pack(_)))
}

/// Lets regalloc2 allocate what it can, beside the `extent` of a colouring that there is; what it cannot has the
/// registers of a colouring of all values. Packed predicates have them too: regalloc2 would bring them back to other
/// registers than those where they were, which an R2P cannot do.
fn backtrack(
    mut code: Constrained,
    mut extent: Option<Extent>,
    calls: bool,
    options: &Options,
    scratch: &mut AllocationBuffers,
) -> Result<Constrained, RegallocError> {
    const GPR: usize = RegisterClass::Gpr as usize;
    const UNIFORM: usize = RegisterClass::Uniform as usize;
    let mut excluded = [false; 3];
    excluded[RegisterClass::Predicate as usize] = has_packs(&code.code);
    let mut fallback = None;
    loop {
        if extent != Some(Extent::All) && excluded != [false; 3] {
            extent = Some(Extent::All);
            code = fit(code, extent, false, options, scratch)?;
        }
        let AllocationBuffers {
            liveness,
            pressure,
            colouring,
            backtracking,
            allocation,
            ..
        } = scratch;
        let guide = Guide {
            pressure,
            colouring: extent.is_some().then_some(&*colouring),
        };
        if !excluded[GPR] && !backtracking::has_numbers(&guide) {
            excluded[GPR] = true;
            continue;
        }
        let classes = std::array::from_fn(|class| !excluded[class] && pressure.max_live[class] > 0);
        if classes == [false; 3] && extent == Some(Extent::All) {
            single_pass::allocate(&code.code, colouring, allocation);
            allocation.source.fallback = fallback;
            return Ok(code);
        }
        let request = Request {
            code: &code.code,
            live: liveness,
            calls,
        };
        match backtracking.allocate(&request, &guide, classes, options, allocation) {
            // Its liveness is that of one thread: what it moves to a uniform register where lanes are elsewhere would
            // be lost to them.
            Ok(()) if classes[UNIFORM] && writes_divergent_uniform(&code.code, allocation) => {
                excluded[UNIFORM] = true;
            }
            Ok(()) => return Ok(code),
            Err(Refusal::NoRoom) if classes[GPR] => excluded[GPR] = true,
            Err(Refusal::NoRoom) => excluded = [true; 3],
            Err(Refusal::Failed(reason)) => {
                fallback = Some(reason);
                excluded = [true; 3];
            }
            Err(Refusal::Wrong(message)) => return Err(RegallocError::Check(message)),
        }
    }
}

/// Whether a uniform register is written between instructions of a block where lanes are elsewhere.
fn writes_divergent_uniform(code: &VCode<VReg>, allocation: &Allocation) -> bool {
    let mut blocks = code.blocks.iter().peekable();
    allocation.writes_uniform(|point| {
        let before = |block: Block, data: &BlockData<VReg>| {
            ProgramPoint::before(allocation::number(block, data.insts.end)) < point
        };
        while blocks
            .next_if(|(block, data)| before(*block, data))
            .is_some()
        {}
        blocks.peek().is_some_and(|(_, data)| data.divergent)
    })
}

/// Uniform values must not be written where lanes are elsewhere; spilling has avoided it where it can be avoided.
fn refuse_divergent_writes(
    code: &VCode<VReg>,
    pressure: &pressure::Pressure,
) -> Result<(), RegallocError> {
    if pressure.max_live[RegisterClass::Uniform as usize] == 0 {
        return Ok(());
    }
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

/// Rounds of spilling for one class until its values fit; a second one is needed where copies on edges need registers
/// themselves.
const ROUNDS: u32 = 3;

/// Spills until everything fits, and, if an `extent` is to be coloured, until a colouring exists, which is left in
/// `scratch`. Uniform values first, then predicates, because both go to GPRs. Liveness and pressure of the function as
/// it comes are in `scratch` if they are `known`.
fn fit(
    mut original: Constrained,
    extent: Option<Extent>,
    mut known: bool,
    options: &Options,
    scratch: &mut AllocationBuffers,
) -> Result<Constrained, RegallocError> {
    let AllocationBuffers {
        liveness,
        pressure,
        colouring,
        spiller,
        plan,
        ..
    } = scratch;
    let mut capacity = capacity::Capacity::new(options.gpr_limit);
    let displaced = uniform::has_divergent_parameters(&original.code);
    loop {
        if !std::mem::take(&mut known) {
            let compute = match extent {
                Some(_) => Liveness::compute,
                None => Liveness::compute_sets,
            };
            find_liveness(&mut original.code, liveness, compute);
            pressure.compute(&original.code, liveness);
        }
        if extent.is_none() {
            let fits = |class: &RegisterClass| pressure.fits(*class, &capacity);
            if !displaced && RegisterClass::ALL.iter().all(fits) {
                return Ok(original);
            }
            liveness.compute(&original.code);
        }
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
        let Some(extent) = extent else {
            return Ok(spilled.unwrap_or(original));
        };
        let extent = if backtracking::may_number(pressure) {
            extent
        } else {
            Extent::All
        };
        match colouring::colour(
            &constrained.code,
            liveness,
            pressure,
            extent,
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
