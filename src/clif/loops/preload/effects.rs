//! What a turn does to memory, and which loads it may be passed by.

use super::super::LoopContext;
use super::super::overlap::is_plain;
use super::super::shape::Body;
use super::super::size::size;
use crate::analysis::calls::Callees;
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::provenance::{Provenance, Space};
use crate::analysis::uses::has_effect;
use crate::intrinsics::Lowering;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Value};
use smallvec::SmallVec;

/// What is known when it is asked for first.
#[derive(Default)]
pub(super) struct Facts(Option<Provenance>);

impl Facts {
    fn space(&mut self, context: &Context, given: &LoopContext<'_>, address: Value) -> Space {
        let func = &context.func;
        let provenance = self.0.get_or_insert_with(|| {
            let flow = ControlFlow::compute(func, given.kernel, &Callees::default());
            Provenance::compute(func, &flow, given.intrinsics, given.kernel)
        });
        provenance.space(func, address)
    }
}

/// What a turn does to the world.
pub(super) struct Effects {
    /// Addresses that are written.
    stores: SmallVec<[Value; 8]>,
    /// The first barrier of the header.
    pub(super) barrier: Option<Inst>,
    /// Whether there is a barrier at all.
    pub(super) has_barrier: bool,
}

impl Effects {
    /// None if loads may not pass them, or the loop has more than `largest` machine instructions.
    pub(super) fn of(
        func: &Function,
        given: &LoopContext<'_>,
        body: &Body,
        largest: u32,
    ) -> Option<Effects> {
        let mut effects = Effects {
            stores: SmallVec::new(),
            barrier: None,
            has_barrier: false,
        };
        let mut total = 0;
        for inst in body.insts(func) {
            total += size(func, given.intrinsics, inst);
            if total > largest {
                return None;
            }
            if let Some(row) = given.intrinsics.of_call(func, inst) {
                if row.lowering == Lowering::BarSync {
                    effects.has_barrier = true;
                    if func.layout.inst_block(inst) == Some(body.header) {
                        effects.barrier.get_or_insert(inst);
                    }
                } else if !row.is_pure() {
                    return None;
                }
                continue;
            }
            match func.dfg.insts[inst] {
                InstructionData::Load { opcode, .. } if is_plain(opcode) => {}
                InstructionData::Store { args, .. } => effects.stores.push(args[1]),
                InstructionData::Jump { .. } | InstructionData::Brif { .. } => {}
                _ if has_effect(func, inst, given.intrinsics) => return None,
                _ => {}
            }
        }
        Some(effects)
    }

    /// Whether they leave what the load `inst` reads as it is.
    pub(super) fn leave(
        &self,
        context: &Context,
        given: &LoopContext<'_>,
        facts: &mut Facts,
        inst: Inst,
    ) -> bool {
        let InstructionData::Load { arg, flags, .. } = context.func.dfg.insts[inst] else {
            return false;
        };
        if context.func.dfg.mem_flags[flags].readonly() {
            return true;
        }
        let space = facts.space(context, given, arg);
        space != Space::Generic
            && (self.stores.iter()).all(|&store| {
                let written = facts.space(context, given, store);
                written != Space::Generic && written != space
            })
    }
}
