//! The state of lowering one function, which every part of lowering and the rules themselves have.

use super::constants::Constants;
use super::home::Home;
use super::operation::pool::Pool;
use super::source::Regs;
use crate::analysis::alignment::Alignment;
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::definitions::Definitions;
use crate::analysis::meeting::Meetings;
use crate::analysis::ordering::Ordering;
use crate::analysis::provenance::Provenance;
use crate::analysis::truths::Truths;
use crate::analysis::uniformity::Uniformity;
use crate::analysis::uses::{UseCount, UseCounts, Users};
use crate::clif::tables::FindTable;
use crate::error::{Error, ErrorList, Place};
use crate::intrinsics::resolve::Intrinsics;
use crate::isa::{PReg, VReg};
use crate::remarks::Remarks;
use crate::values::tracking::Tracking;
use crate::vcode::{Frame, FunctionKind, Meeting, SourceLine, VCodeBuilder};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{self, Function, Inst, Value};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::ops::Deref;

/// What is known of a function when it is lowered.
pub struct Facts<'a> {
    /// Control flow.
    pub flow: &'a ControlFlow,
    /// Where lanes meet.
    pub meetings: &'a Meetings,
    /// Which values are the same in all lanes.
    pub uniformity: &'a Uniformity,
    /// Where addresses point.
    pub provenance: &'a Provenance,
    /// What addresses are multiples of.
    pub alignment: &'a Alignment,
    /// Who reads each value.
    pub users: &'a Users,
    /// Which values are truths.
    pub truths: &'a Truths,
    /// Which calls are intrinsics.
    pub intrinsics: &'a Intrinsics,
    /// Where fences stand.
    pub ordering: &'a Ordering,
}

/// A function to lower.
pub struct Input<'a> {
    /// Verified, optimised, intrinsics resolved, aliases resolved.
    pub func: &'a Function,
    /// Symbol name.
    pub name: &'a str,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Facts about it.
    pub facts: Facts<'a>,
    /// Names of the functions and data it refers to.
    pub names: &'a dyn Fn(&ir::ExternalName) -> String,
    /// Data that nobody writes.
    pub tables: &'a FindTable<'a>,
    /// Trust that every access is aligned to its size (`--set assume_aligned=true`).
    pub assume_aligned: bool,
    /// What became of the values of the source, if somebody wants to know.
    pub tracking: Option<&'a Tracking>,
    /// Leave gaps around stack slots (`--set stack_redzones=true`).
    pub stack_redzones: bool,
}

/// The state of lowering one function; the context of the ISLE rules.
pub struct Lower<'a> {
    /// What computes and reads its values.
    pub(super) definitions: Definitions<'a>,
    pub(super) input: &'a Input<'a>,
    /// Where instructions go.
    pub builder: &'a mut VCodeBuilder,
    pub(super) homes: &'a mut SecondaryMap<Value, Home>,
    /// See [`Lower::is_used_in_one_effect`].
    pub(super) use_counts: OnceCell<UseCounts>,
    /// Wide immediates in constant memory.
    pub(super) pool: Pool<'a>,
    /// Immediates to be loaded at the start of each block.
    pub(super) constants: &'a mut SecondaryMap<ir::Block, Constants>,
    /// Immediates that the edge at the end of the block passes, with their registers.
    pub(super) passed: SmallVec<[(u32, VReg); 4]>,
    /// The block being lowered.
    pub(super) current: Option<ir::Block>,
    /// Where the lanes meet again that make the call at its end.
    pub(super) call_meeting: Meeting,
    /// Immediates loaded before a loop so far.
    pub(super) hoisted: u32,
    /// Whether values are computed in uniform registers as well, where they may be.
    pub(super) offers_uniform: bool,
    /// Pointer parameters that are loaded into uniform registers at entry: offset in constant bank 0 and registers.
    pub(super) uniform_parameters: Vec<(u32, Regs)>,
    pub(super) frame: Frame,
    /// Byte offset of each stack slot in the slot area.
    pub(super) slots: Vec<u32>,
    /// Registers that hold a value at entry.
    pub(super) entry: Vec<(VReg, PReg)>,
    /// The register that stands for R1 in this function, once somebody asked for it.
    pub(super) stack_pointer: Option<VReg>,
    /// The registers of the return address, once somebody asked for them.
    pub(super) return_address: Option<[VReg; 2]>,
    pub(super) errors: ErrorList,
    pub(super) remarks: &'a mut Remarks,
}

impl<'a> Deref for Lower<'a> {
    type Target = Definitions<'a>;

    fn deref(&self) -> &Self::Target {
        &self.definitions
    }
}

impl Lower<'_> {
    /// Reports an operation without a rule, or what `remedy` says of it.
    pub(crate) fn unsupported(&mut self, inst: Inst, remedy: &str) {
        self.errors
            .push(Error::unsupported(Place::of_inst(self.func, inst), remedy));
    }

    /// Whether exactly one operand is the value, so that folding its definition into what is being lowered leaves
    /// nothing behind, and adds nothing to a loop.
    pub(super) fn is_used_once(&self, value: Value) -> bool {
        self.is_used_once_in(value, self.current)
    }

    /// Whether one instruction uses the value, once, and that one is itself used at most once or has an effect. Counted
    /// for the whole function when somebody asks for the first time: only chains of insertions into vectors do.
    pub(super) fn is_used_in_one_effect(&self, value: Value) -> bool {
        let facts = &self.input.facts;
        let count = || UseCounts::compute(self.func, facts.flow, facts.intrinsics);
        self.use_counts.get_or_init(count).of(value) == UseCount::Once
    }

    pub(super) fn line_of(&self, inst: Inst) -> SourceLine {
        SourceLine(crate::error::line_of(self.func.srcloc(inst)).unwrap_or(0))
    }
}
