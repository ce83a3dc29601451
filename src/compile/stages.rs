//! What lies between the passes: how each stage prints and verifies itself, and how settings and errors are translated.

use super::watch::{Stage, internal};
use crate::analysis::Facts;
use crate::clif::Prepared;
use crate::clif::tables::FindTable;
use crate::emit::{self, EmitError};
use crate::error::{Error, Errors, Place, Problem};
use crate::hazards::order::disorders;
use crate::hazards::program::Program;
use crate::hazards::verify;
use crate::isa::{PReg, VReg};
use crate::linear::Linear;
use crate::lower;
use crate::regalloc::{self, RegallocError};
use crate::sched::Scheduled;
use crate::sched::control::Waiting;
use crate::settings::{Options, Sched};
use crate::simt::{ConvergenceError, SimtError};
use crate::values::tracking::Tracking;
use crate::vcode::print::origin;
use crate::vcode::{FunctionKind, VCode};
use cranelift_codegen::ir::ExternalName;
use std::fmt;

/// The facts of a prepared function.
pub(super) struct Analyzed<'a> {
    prepared: &'a Prepared,
    facts: &'a Facts,
}

impl<'a> Analyzed<'a> {
    /// Analyses a function, in the memory of the one before.
    pub fn of(prepared: &'a Prepared, facts: &'a mut Facts) -> Self {
        facts.recompute(&prepared.subject());
        Self { prepared, facts }
    }

    /// What selection works on.
    pub fn input<'b>(
        &'b self,
        name: &'b str,
        kind: FunctionKind,
        names: &'b dyn Fn(&ExternalName) -> String,
        tables: &'b FindTable<'b>,
        options: &Options,
        tracking: &'b Tracking,
    ) -> lower::Input<'b> {
        lower::Input {
            func: &self.prepared.func,
            name,
            kind,
            facts: lower::Facts {
                flow: &self.prepared.flow,
                meetings: &self.prepared.meetings,
                uniformity: &self.facts.uniformity,
                provenance: &self.facts.provenance,
                alignment: &self.facts.alignment,
                users: &self.facts.users,
                truths: &self.facts.truths,
                intrinsics: &self.prepared.intrinsics,
                ordering: &self.facts.ordering,
            },
            names,
            tables,
            assume_aligned: options.assume_aligned,
            stack_redzones: options.stack_redzones,
            tracking: Some(tracking).filter(|tracking| tracking.is_on()),
        }
    }
}

impl fmt::Display for Analyzed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.facts.display(self.prepared.subject()).fmt(f)
    }
}

impl Stage for Analyzed<'_> {
    fn defect(&self) -> Option<String> {
        None
    }
}

impl Stage for VCode<VReg> {
    fn defect(&self) -> Option<String> {
        self.verify().err().map(|error| error.to_string())
    }
}

impl Stage for VCode<PReg> {
    fn defect(&self) -> Option<String> {
        self.verify_shape().err().map(|error| error.to_string())
    }
}

impl Stage for Linear {
    fn defect(&self) -> Option<String> {
        self.verify().err().map(|error| error.to_string())
    }
}

impl fmt::Display for Scheduled {
    /// With `#` lines of instructions begin with the numbers of their places in the source.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {{", self.code().name)?;
        for block in 0..self.code().block_count() {
            writeln!(f, "L{block}:")?;
            for (entry, control) in self.code().insts(block).zip(self.controls(block)) {
                origin(f, entry.line)?;
                writeln!(f, "    {}{control} ;", entry.inst)?;
            }
        }
        writeln!(f, "}}")
    }
}

impl fmt::Display for emit::Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {{", self.name)?;
        self.words
            .iter()
            .try_for_each(|word| writeln!(f, "    {word:032x}"))?;
        writeln!(f, "}}")
    }
}

impl Stage for emit::Code {
    /// Words that do not wait for what they need.
    fn defect(&self) -> Option<String> {
        let hazards = verify(self);
        let lines: Vec<String> = hazards.iter().map(ToString::to_string).collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    }
}

/// Checks that accesses are in the order of the program as it was lowered.
pub(super) fn check_order(name: &str, code: &emit::Code, program: &Program) -> Result<(), Errors> {
    let found = disorders(code, Some(program));
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    match lines.is_empty() {
        true => Ok(()),
        false => {
            let message = format!("accesses out of order: {}", lines.join("; "));
            Err(internal(name, message))
        }
    }
}

/// The allocator's settings.
pub(super) fn allocation(options: &Options, limit: u8) -> regalloc::Options {
    regalloc::Options {
        algorithm: options.allocator(),
        gpr_limit: options.registers.min(limit),
        verify: options.verify,
    }
}

/// How much instructions wait.
pub(super) fn waiting(options: &Options) -> Waiting {
    match options.sched {
        Sched::Full => Waiting::Needed,
        Sched::Serial => Waiting::Serial,
    }
}

/// The allocator's error as one of the library.
pub(super) fn allocation_error(name: &str, error: &RegallocError) -> Errors {
    let problem = match error {
        RegallocError::Limit { .. } | RegallocError::TooFew { .. } => {
            Problem::Limit(error.to_string())
        }
        RegallocError::Implicit { form, .. } => Problem::Unsupported {
            item: (*form).to_owned(),
            remedy: "it names registers at run time; use other instructions".to_owned(),
        },
        _ => return internal(name, error.to_string()),
    };
    at(name, problem)
}

/// The error of convergence as one of the library.
pub(super) fn simt_error(name: &str, error: &SimtError) -> Errors {
    match error {
        SimtError::Convergence(ConvergenceError::Apart { .. }) => internal(name, error.to_string()),
        _ => at(name, Problem::Limit(error.to_string())),
    }
}

/// Emission's error as one of the library.
pub(super) fn emit_error(name: &str, error: &EmitError) -> Errors {
    match error {
        EmitError::TooLong { .. } => at(name, Problem::Limit(error.to_string())),
        EmitError::Illegal { .. } => internal(name, error.to_string()),
    }
}

fn at(name: &str, problem: Problem) -> Errors {
    let place = Place {
        function: Some(format!("%{name}").into()),
        ..Place::default()
    };
    Error::new(problem, place).into()
}
