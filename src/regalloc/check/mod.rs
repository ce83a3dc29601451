//! Checks an allocation: the function as it came, in virtual registers, against the code that leaves, frame and saved
//! registers included.
//!
//! The check asks backwards. Every use in the allocated code needs its value in a place ([`place`]): a register, or a
//! word of the frame. What wrote the place last tells whether it is there: the instruction that defines the value ends
//! the question; a copy, a store, a load or a value that is kept under a false guard hands it on to another place; an
//! instruction that the allocator repeats must be the value's one definition, and asks for its operands; anything else
//! is a mistake. At the start of a block the question goes to all predecessors, where a parameter is the argument that
//! each passes. A question is asked once for a block, so what is looked at is what is alive, and nothing is joined or
//! iterated.
//!
//! A value is the one that its definition gave last. A question that comes to the definition while it looks at another
//! place is a mistake therefore: that place has the value of an earlier turn of the loop. Only a value that is the same
//! at all times may be older.
//!
//! * [`layout`]: where the frame's areas are; nothing of the function touches the spill area.
//! * [`added`]: what instructions do that the allocator has added.
//! * [`compare`]: that the others are what they were, for uniform operands also in the form that reads GPRs.
//! * [`scan`], [`exit`]: walk over each block; note what was [`written`] last, and ask.
//! * [`trace`]: follows the questions.
//!
//! Also checked: wide operands lie in aligned, consecutive registers; a guarded result starts from the value it keeps;
//! no uniform register is written in a divergent block; R1 is lowered at entry and raised before a return by the
//! frame's size and is not written otherwise; registers of the caller hold on every return what they held; no register
//! is above the limit; instructions that do more than give results are all there, in order. Nothing of the allocator is
//! used, not even liveness.

pub(super) mod added;
mod compare;
mod exit;
pub(super) mod layout;
mod location;
mod scan;
mod trace;
mod written;

use crate::abi;
use crate::isa::{PReg, VReg};
use crate::vcode::{Block, Terminator, VCode};
use cranelift_codegen::entity::{EntityRef, SecondaryMap};
use layout::Layout;
pub(super) use location::StorageLocation;
use smallvec::SmallVec;
use trace::Questions;
use written::Written;

/// Instruction of the allocated code that the allocator has added.
pub(super) const ADDED: u32 = u32::MAX;
/// No index.
const NONE: u32 = u32::MAX;

/// Checks that `after` is an allocation of `before` in GPRs below `limit`. `origin` has for each instruction of `after`
/// its index in `before`, or [`ADDED`].
///
/// # Errors
/// The first mistake, with its place.
pub(super) fn check(
    before: &VCode<VReg>,
    after: &VCode<PReg>,
    origin: &[u32],
    limit: u8,
) -> Result<(), String> {
    let run = || {
        shape(before, after, origin)?;
        let layout = Layout::new(&before.frame, &after.frame)?;
        let mut checker = Checker {
            definition: definitions(before),
            placed: vec![NONE; before.insts.len()],
            predecessors: before.predecessors(),
            pointer: before
                .entry
                .iter()
                .find(|(_, r)| *r == abi::STACK_POINTER)
                .map(|(v, _)| *v),
            written: Written::new(layout.words(), after),
            questions: Questions::default(),
            before,
            after,
            origin,
            limit,
            layout,
        };
        checker.scan()?;
        checker.follow_edges()
    };
    run().map_err(|e: String| format!("{}: {e}", before.name))
}

/// Whatever the check knows.
struct Checker<'a> {
    before: &'a VCode<VReg>,
    after: &'a VCode<PReg>,
    origin: &'a [u32],
    limit: u8,
    layout: Layout,
    /// The value that R1 is in the code before.
    pointer: Option<VReg>,
    /// The instruction before that defines a value, by value; [`NONE`] for parameters.
    definition: Vec<u32>,
    /// Where an instruction before is now, as a [`Position`], by its index there.
    placed: Vec<Position>,
    predecessors: SecondaryMap<Block, SmallVec<[Block; 2]>>,
    written: Written,
    questions: Questions,
}

/// A place between instructions of the allocated code: twice the index of the one behind it. One less is where an
/// instruction would stand that has been left out there.
type Position = u32;

fn definitions(before: &VCode<VReg>) -> Vec<u32> {
    let mut definition = vec![NONE; before.vreg_count as usize];
    for (entry, index) in before.insts.iter().zip(0..) {
        for v in before.definitions(entry) {
            definition[v.index()] = index;
        }
    }
    definition
}

/// What has to be the same but for registers.
fn shape(before: &VCode<VReg>, after: &VCode<PReg>, origin: &[u32]) -> Result<(), String> {
    if before.name != after.name || before.kind != after.kind {
        return Err(format!("has become {}", after.name));
    }
    if after.insts.len() != origin.len() {
        return Err("not every instruction has an origin".to_string());
    }
    let known = after.entry.iter().filter(|(_, r)| *r != abi::STACK_POINTER);
    let expected = before.entry.iter().map(|(_, r)| (*r, *r));
    let expected = expected.filter(|(r, _)| *r != abi::STACK_POINTER);
    if !known.copied().eq(expected) {
        return Err("other registers have values at entry".to_string());
    }
    if before.blocks.len() != after.blocks.len() {
        return Err("other blocks than before".to_string());
    }
    for (block, data) in before.blocks.iter() {
        let new = &after.blocks[block];
        let facts = (data.divergent, data.loop_depth, data.cold, data.meeting)
            == (new.divergent, new.loop_depth, new.cold, new.meeting);
        if !facts || !new.params.is_empty() {
            return Err(format!("{block} is not what it was"));
        }
    }
    Ok(())
}

impl Checker<'_> {
    /// Whether `v` is the same whenever it is computed: it depends on nothing that changes.
    fn is_constant(&self, v: VReg) -> bool {
        if Some(v) == self.pointer {
            return true;
        }
        let Some(entry) = self.before.insts.get(self.definition[v.index()] as usize) else {
            return false;
        };
        added::is_fixed(&entry.inst)
            && entry.inst.is_unguarded()
            && entry.inst.uses().all(|u| Some(u) == self.pointer)
    }

    /// The value that `block` passes for `v`, if that is a parameter of `successor`; else `v` itself.
    fn argument(&self, v: VReg, block: Block, successor: Block) -> VReg {
        if self.definition[v.index()] != NONE {
            return v;
        }
        let params = &self.before.blocks[successor].params;
        let number = params.iter().position(|p| *p == v);
        match (&self.before.blocks[block].terminator, number) {
            (Terminator::Jump { args, .. }, Some(number)) => args[number],
            _ => v,
        }
    }

    /// `block3: \`IADD R4, R5, R6\`` for an instruction of the allocated code, by its index; for the end of a block its
    /// terminator.
    fn describe(&self, block: Block, point: Position) -> String {
        let data = &self.after.blocks[block];
        if point / 2 < data.insts.end {
            format!("{block}: `{}`", self.after.insts[point as usize / 2].inst)
        } else {
            format!("{block}: `{}`", data.terminator)
        }
    }

    /// Where the function starts.
    fn entry(&self) -> Block {
        Block::new(0)
    }
}
