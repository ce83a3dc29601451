//! What a value is computed from in a turn.

use super::super::LoopContext;
use super::super::shape::Body;
use super::super::sorted_set::SortedSet;
use crate::analysis::uses::{for_each_operand, has_effect};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Inst, Value, ValueDef};
use smallvec::SmallVec;

/// Most operations that an address or a test takes (*assumed*).
const LONGEST: usize = 32;

/// What values are computed from in a turn, by operations that may be done at any time.
pub(super) struct Slice<'a> {
    context: &'a Context,
    given: &'a LoopContext<'a>,
    body: &'a Body,
    /// Loads whose results are taken as they are.
    known: &'a [Inst],
    pub(super) insts: SortedSet<Inst>,
    count: usize,
    /// The parameters of the header that it depends on.
    pub(super) params: SmallVec<[Value; 4]>,
    /// Of the known loads those that it depends on.
    pub(super) read: SmallVec<[Inst; 4]>,
}

impl<'a> Slice<'a> {
    /// Of nothing. It does not go behind the results of the loads `known`.
    pub(super) fn new(
        context: &'a Context,
        given: &'a LoopContext<'a>,
        body: &'a Body,
        known: &'a [Inst],
    ) -> Self {
        Slice {
            context,
            given,
            body,
            known,
            insts: SortedSet::default(),
            count: 0,
            params: SmallVec::new(),
            read: SmallVec::new(),
        }
    }

    /// Adds what `value` is computed from; false if that is something else.
    pub(super) fn add(&mut self, value: Value) -> bool {
        let func = &self.context.func;
        let inst = match func.dfg.value_def(value) {
            ValueDef::Param(block, _) if block == self.body.header => {
                if !self.params.contains(&value) {
                    self.params.push(value);
                }
                return true;
            }
            ValueDef::Param(block, _) => return !self.body.holds(block),
            ValueDef::Result(inst, _) => inst,
            ValueDef::Union(..) => return false,
        };
        let home = func.layout.inst_block(inst);
        if home.is_none_or(|block| !self.body.holds(block)) || self.insts.contains(inst) {
            return true;
        }
        if self.known.contains(&inst) {
            if !self.read.contains(&inst) {
                self.read.push(inst);
            }
            return true;
        }
        if func.dfg.insts[inst].opcode().can_load()
            || has_effect(func, inst, self.given.intrinsics)
            || self.count == LONGEST
        {
            return false;
        }
        self.count += 1;
        self.insts.insert(inst);
        let mut is_pure = true;
        let mut operands: SmallVec<[Value; 4]> = SmallVec::new();
        for_each_operand(func, inst, |operand| operands.push(operand));
        for operand in operands {
            is_pure = is_pure && self.add(operand);
        }
        is_pure
    }
}
