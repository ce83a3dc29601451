//! regalloc2's allocation.
//!
//! Ordinary GPR operands are unconstrained (`Any`): a slot of regalloc2 becomes one more register behind the
//! allocatable ones, so nothing is ever evicted. Entries of wide operands, and guarded results with the values they
//! keep, are fixed to the registers of the colouring, which is how pairs and quads come out aligned; a function that
//! has none needs no colouring. Predicates and uniform registers must be in registers. Calls overwrite what callees may
//! overwrite, and where there are calls slots are registers that callees keep.
//!
//! Of the allocator's limits the following are kept to: no `Reuse`; one operand for equal values in equal fixed
//! registers; blocks that pass arguments end in an instruction without operands; parameters are numbered last (its move
//! insertion is quadratic in them otherwise).

mod build;
mod machine;
mod pinned;
mod problem;
mod results;

use super::allocation::{Allocation, Fallback, ProgramPoint};
use super::colouring::Colouring;
use super::constrain::pressure::Pressure;
use super::liveness::Liveness;
use super::parallel::{Copy, CopyStep};
use super::single_pass;
use crate::isa::{RegisterClass, VReg};
use crate::vcode::VCode;
use build::{Input, OperandSource, Statement};
use machine::Machine;
use pinned::Pinned;
use regalloc2 as ra;

/// What bounds the registers that regalloc2 may use.
pub(super) struct Guide<'a> {
    /// How many there have to be.
    pub pressure: &'a Pressure,
    /// Where wide operands and guarded results are, in a function that has some; and all values of the classes that are
    /// not handed over.
    pub colouring: Option<&'a Colouring>,
}

/// What is to be allocated.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub code: &'a VCode<VReg>,
    pub live: &'a Liveness,
    /// Whether it calls.
    pub calls: bool,
}

/// Why there is no allocation.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It needs more registers than there are.
    NoRoom,
    /// It gives no allocation of this function.
    Failed(Fallback),
    /// It found a mistake in the statement, or its checker one in the allocation, and mistakes are looked for.
    Wrong(String),
}

/// regalloc2 with its memory, kept between functions.
#[derive(Default)]
pub(super) struct Backtracking {
    statement: Statement,
    context: ra::Ctx,
}

impl std::fmt::Debug for Backtracking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backtracking").finish_non_exhaustive()
    }
}

impl Backtracking {
    /// Lets regalloc2 allocate `classes` of the requested function; the others have the registers of the colouring.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn allocate(
        &mut self,
        request: &Request<'_>,
        guide: &Guide<'_>,
        classes: [bool; 3],
        options: &super::Options,
        out: &mut Allocation,
    ) -> Result<(), Refusal> {
        let Request { code, live, .. } = *request;
        let pinned = Pinned::find(request, guide);
        let machine = Machine::new(
            request,
            guide,
            classes,
            pinned.registers(),
            options.gpr_limit,
        );
        self.statement.make(&Input {
            code,
            live,
            guide,
            pinned: &pinned,
            classes,
            clobbered: machine.clobbered,
        });
        let problem = &self.statement.problem;
        let ra_options = ra::RegallocOptions {
            verbose_log: false,
            validate_ssa: options.verify,
            algorithm: ra::Algorithm::Ion,
        };
        let output = ra::run_with_ctx(
            problem,
            &machine.environment,
            &ra_options,
            &mut self.context,
        );
        let output = output.map_err(|error| match error {
            ra::RegAllocError::TooManyLiveRegs => Refusal::NoRoom,
            ra::RegAllocError::TooManyOperands => Refusal::Failed(Fallback::TooManyOperands),
            error if options.verify => Refusal::Wrong(format!("regalloc2: {error}")),
            _ => Refusal::Failed(Fallback::Refused),
        })?;
        if options.verify {
            let mut checker = ra::checker::Checker::new(problem, &machine.environment);
            checker.prepare(output);
            let checked = checker.run();
            checked.map_err(|e| Refusal::Wrong(format!("regalloc2's checker: {e:?}")))?;
        }
        let slots = machine.slots(output.num_spillslots);
        let slots = slots.ok_or(Refusal::NoRoom)?;
        out.clear();
        let sources = self.statement.sources.iter();
        out.registers.extend(sources.map(|source| match source {
            OperandSource::Operand(index) => slots.register(output.allocs[*index as usize]),
            OperandSource::Register(register) => *register,
        }));
        out.steps
            .extend(output.edits.iter().filter_map(|(point, edit)| {
                let ra::Edit::Move { from, to } = edit;
                let copy = Copy {
                    from: slots.register(*from),
                    to: slots.register(*to),
                };
                let number = point.inst().index() as u32;
                let point = match point.pos() {
                    ra::InstPosition::Before => ProgramPoint::before(number),
                    ra::InstPosition::After => ProgramPoint::behind(number),
                };
                (copy.from != copy.to).then_some((point, CopyStep::Move(copy)))
            }));
        let place = |operand: u32| slots.register(output.allocs[operand as usize]);
        self.statement.results.add(place, out);
        out.source.entries = out.registers.len() as u32;
        let mine = |s: &&OperandSource| matches!(s, OperandSource::Operand(_));
        out.source.by_regalloc2 = self.statement.sources.iter().filter(mine).count() as u32;
        out.source.fixed = self.statement.fixed;
        if let Some(colouring) = guide.colouring
            && classes != [true; 3]
        {
            let edits = out.steps.len();
            single_pass::steps(code, colouring, classes.map(|c| !c), out);
            if edits > 0 && out.steps.len() > edits {
                // Steps of one point are of different files then, so their order does not matter.
                out.steps.sort_by_key(|(point, _)| *point);
            }
        }
        Ok(())
    }
}

/// Whether regalloc2 has numbers for as many GPRs as are needed at once.
pub(super) fn may_number(pressure: &Pressure) -> bool {
    // Those that callees keep, and those beside them, are not dense.
    let most = pressure.max_live[RegisterClass::Gpr as usize] + pressure.across_calls();
    most < machine::NUMBERS
}

/// Whether regalloc2 has numbers for the GPRs of a guide.
pub(super) fn has_numbers(guide: &Guide<'_>) -> bool {
    let used = guide.colouring.map(|c| *c.used.of(RegisterClass::Gpr));
    let last = used.and_then(|used| used.last());
    let coloured = guide.colouring.is_some_and(|c| c.coloured.is_all());
    (coloured || may_number(guide.pressure)) && last.is_none_or(machine::has_number)
}
