//! The loads of a loop that are done a turn ahead, and the block in front of it where the first turn's are done.

use super::super::LoopContext;
use super::super::copy::Copied;
use super::super::overlap::is_plain;
use super::super::shape::{Body, Edge, Uses, jump, words};
use super::super::sorted_set::SortedSet;
use super::slice::Slice;
use crate::values::tracking::{Copies, Tracking};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, RelSourceLoc, Value};
use smallvec::SmallVec;

/// A load of the header that can be done a turn ahead.
pub(super) struct Candidate {
    pub(super) inst: Inst,
    /// What its address is computed from.
    pub(super) address: SortedSet<Inst>,
    /// What that of the next turn is computed from.
    pub(super) next: SortedSet<Inst>,
    /// Registers of its result.
    pub(super) words: u32,
}

impl Candidate {
    /// `inst` as one, if it is: a load whose address changes from turn to turn, and depends on no load. What else the
    /// loop does is not asked.
    pub(super) fn of(
        context: &Context,
        given: &LoopContext<'_>,
        (body, latch): (&Body, Edge),
        inst: Inst,
    ) -> Option<Candidate> {
        let func = &context.func;
        let InstructionData::Load { opcode, arg, .. } = func.dfg.insts[inst] else {
            return None;
        };
        let mut slice = Slice::new(context, given, body, &[]);
        if !is_plain(opcode) || !slice.add(arg) {
            return None;
        }
        // An address that is the same in all turns is not worth a register.
        let mut next = Slice::new(context, given, body, &[]);
        let params = func.dfg.block_params(body.header);
        let args = latch.args(func);
        let changes = params.iter().zip(&args);
        let mut changes = changes
            .filter(|(param, _)| slice.params.contains(param))
            .peekable();
        if changes.peek().is_none() || !changes.all(|(_, &arg)| next.add(arg)) {
            return None;
        }
        Some(Candidate {
            inst,
            address: slice.insts,
            next: next.insts,
            words: words(func.dfg.value_type(func.dfg.first_result(inst))),
        })
    }
}

/// Loads that are done a turn ahead.
#[derive(Default)]
pub(super) struct Loads {
    /// In their order.
    pub(super) insts: SmallVec<[Inst; 4]>,
    /// What their addresses are computed from in a turn.
    addresses: SortedSet<Inst>,
    /// What those of the next turn are computed from.
    pub(super) next: SortedSet<Inst>,
}

impl Loads {
    pub(super) fn add(&mut self, candidate: &Candidate) {
        self.insts.push(candidate.inst);
        self.addresses.extend(candidate.address.iter());
        self.next.extend(candidate.next.iter());
    }

    /// Lets the first turn's be done in front of the loop, on the way from all `entries`, and hands on what they load
    /// behind the parameters of the header; [`Self::replace`] makes the parameters for that. Gives a block for the next
    /// turn's, which nothing leads to.
    pub(super) fn begin(
        &self,
        func: &mut Function,
        uses: &mut Uses,
        (body, entries): (&Body, &[Edge]),
        copy: Copies<'_>,
        location: RelSourceLoc,
    ) -> Block {
        let (before, starts) = entrance(func, uses, body.header, entries);
        let first = self.copy_to(func, uses, body, (&starts, before), copy);
        let handed: Vec<Value> = starts.into_iter().chain(first).collect();
        let inst = jump(func, before, body.header, &handed);
        func.srclocs[inst] = location;
        uses.add(func, inst);
        let aside = func.dfg.make_block();
        func.layout.append_block(aside);
        aside
    }

    /// Makes copies of them at the end of `block`, with `values` for the parameters of the header; gives what they
    /// load.
    pub(super) fn copy_to(
        &self,
        func: &mut Function,
        uses: &mut Uses,
        body: &Body,
        (values, block): (&[Value], Block),
        copy: Copies<'_>,
    ) -> Vec<Value> {
        let params = func.dfg.block_params(body.header).to_vec();
        let mut copied = Copied::with(copy, &params, values);
        let wanted = |inst: &Inst| self.addresses.contains(*inst) || self.insts.contains(inst);
        let insts: Vec<Inst> = body.insts(func).filter(wanted).collect();
        for inst in insts {
            copied.inst(func, uses, inst, block);
        }
        let results = self.insts.iter().map(|&load| func.dfg.first_result(load));
        results.map(|value| copied.value(value)).collect()
    }

    /// Lets the header have what they load as parameters, which take their places.
    pub(super) fn replace(
        &self,
        func: &mut Function,
        uses: &mut Uses,
        header: Block,
        tracking: &Tracking,
    ) -> Vec<Value> {
        let mut params = Vec::new();
        for &load in &self.insts {
            let old = func.dfg.first_result(load);
            let ty = func.dfg.value_type(old);
            let new = func.dfg.append_block_param(header, ty);
            tracking.also(old, new);
            uses.replace(func, (old, new), |_, _| true);
            func.layout.remove_inst(load);
            params.push(new);
        }
        params
    }
}

/// A block in front of `header` that all `entries` of the loop lead to, with the parameters of the header.
fn entrance(
    func: &mut Function,
    uses: &mut Uses,
    header: Block,
    entries: &[Edge],
) -> (Block, Vec<Value>) {
    let before = func.dfg.make_block();
    func.layout.insert_block(before, header);
    let types: Vec<_> = func.dfg.block_param_types(header).collect();
    let types = types.into_iter();
    let starts = types
        .map(|ty| func.dfg.append_block_param(before, ty))
        .collect();
    for entry in entries {
        let args = entry.args(func);
        entry.redirect(func, before, &args);
        uses.add(func, entry.branch);
    }
    (before, starts)
}
