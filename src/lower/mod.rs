//! From CLIF to machine instructions: `ir::Function` and the facts about it in, [`VCode`] of virtual registers out.
//!
//! As in Cranelift: blocks in postorder, each bottom-up; an instruction is lowered only if it has an effect or its
//! value was asked for. The selection is ISLE (`isle/lower/*.isle`, one file per family), sequences as well as single
//! instructions. Rules hand typed operands over – a value with the modifiers peeled off that an instruction can apply –
//! and a generated constructor for each way to write an operation picks the form (module `operation`). Rust is what the
//! rules ask (module `context`), and the few terms that emit and are no pattern: trees and
//! tables of LOP3, accesses in pieces, calls; `docs/lowering.md` lists them.
//!
//! Edges that carry arguments out of a block with several successors get a block of their own, so arguments travel on
//! jumps only.

mod access;
mod address;
mod blocks;
mod call;
mod clif;
mod constants;
mod context;
mod convert;
mod float;
mod frame;
mod holders;
mod home;
mod intrinsic;
mod logic;
mod memory;
mod multiply;
mod operands;
mod operation;
mod registers;
mod results;
mod rules;
mod source;
mod state;
mod table;
mod typed;
mod uniform;
mod values;
mod vector;

pub use state::{Facts, Input};

use crate::analysis::definitions::Definitions;
use crate::analysis::ordering::Access;
use crate::analysis::uses::has_effect;
use crate::emit;
use crate::error::{ErrorList, Errors};
use crate::isa::generated::membar;
use crate::isa::{VReg, build};
use crate::remarks::Remarks;
use crate::vcode::{BlockFacts, Frame, FunctionKind, Meeting, MemoryOrder, VCode, VCodeBuilder};
use blocks::BlockOrder;
use constants::Constants;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{self, Inst, Value};
use hashbrown::HashMap;
use home::Home;
use operation::pool::Pool;
use smallvec::{SmallVec, smallvec};
use source::{Base, InstOutput, Output, PSrc};
use state::Lower;
use std::cell::OnceCell;

/// Memory that is kept from one function to the next.
#[derive(Default)]
pub struct Scratch {
    builder: VCodeBuilder,
    homes: SecondaryMap<Value, Home>,
    constants: SecondaryMap<ir::Block, Constants>,
    order: BlockOrder,
    pool: HashMap<u64, u32>,
}

/// Lowers one function; wide immediates go to its `constants`, and `remarks` hear of accesses in pieces.
///
/// # Errors
/// Every operation that has no rule, all at once, with opcode, type and line.
pub fn lower(
    input: &Input<'_>,
    scratch: &mut Scratch,
    function_constants: &mut emit::Constants,
    remarks: &mut Remarks,
) -> Result<VCode<VReg>, Errors> {
    let Scratch {
        builder,
        homes,
        constants,
        order,
        pool,
    } = scratch;
    pool.clear();
    homes.clear();
    homes.resize(input.func.dfg.num_values());
    constants.clear();
    constants.resize(input.func.dfg.num_blocks());
    order.recompute(input);
    let has_calls = has_calls(input);
    builder.begin(order.len());
    let mut lowering = Lower {
        definitions: Definitions {
            func: input.func,
            users: input.facts.users,
            intrinsics: input.facts.intrinsics,
            flow: input.facts.flow,
            truths: input.facts.truths,
        },
        input,
        builder,
        homes,
        use_counts: OnceCell::new(),
        pool: Pool {
            constants: function_constants,
            places: pool,
        },
        constants,
        passed: SmallVec::new(),
        current: None,
        call_meeting: Meeting::Together,
        hoisted: 0,
        offers_uniform: !has_calls && matches!(input.kind, FunctionKind::Kernel(_)),
        uniform_parameters: Vec::new(),
        frame: Frame {
            has_calls,
            ..Frame::default()
        },
        slots: Vec::new(),
        entry: Vec::new(),
        stack_pointer: None,
        return_address: None,
        errors: ErrorList::new(),
        remarks,
    };
    lowering.lay_out_slots();
    for block in order.backwards() {
        lowering.block(order, block);
    }
    let holders = lowering.holders();
    let Lower {
        builder,
        frame,
        entry,
        errors,
        ..
    } = lowering;
    // Blocks were lowered backwards.
    errors.in_order_of_lines().finish(()).map(|()| {
        let mut code = builder.finish(input.name.to_string(), input.kind.clone(), entry, frame);
        let offers = builder.take_offers();
        code.holders = holders::with_offers(holders, &offers);
        crate::cse::eliminate(crate::uniform::run(code, &offers))
    })
}

/// Whether the function calls others.
fn has_calls(input: &Input<'_>) -> bool {
    let (dfg, layout) = (&input.func.dfg, &input.func.layout);
    let is_call = |inst| {
        dfg.insts[inst].opcode().is_call()
            && input.facts.intrinsics.of_call(input.func, inst).is_none()
    };
    // Nothing is called without a signature.
    !dfg.signatures.is_empty() && layout.blocks().any(|b| layout.block_insts(b).any(is_call))
}

impl Lower<'_> {
    fn block(&mut self, order: &BlockOrder, block: blocks::LoweredBlock) {
        let terminator = match block.origin {
            blocks::Origin::Edge {
                block: from,
                target,
                args,
            } => {
                let facts = order.facts(self.input, from);
                let facts = BlockFacts {
                    divergent: facts.divergent || block.divergent_edge,
                    meeting: Meeting::Together,
                    line: self.line_at_end(from),
                    ..facts
                };
                self.builder.set_line(facts.line);
                let args = self.arguments(args);
                let jump = crate::vcode::Terminator::Jump { target, args };
                self.builder.start_block(block.number, jump, facts);
                self.load_passed();
                self.builder.end_block(Vec::new());
                return;
            }
            blocks::Origin::Clif(b) => b,
        };
        let clif = terminator;
        let Some(last) = self.func.layout.last_inst(clif) else {
            return;
        };
        let mut facts = order.facts(self.input, clif);
        facts.line = self.line_of(last);
        self.current = Some(clif);
        self.call_meeting = order.meeting_of_call(self.input, clif);
        self.builder.set_line(facts.line);
        let terminator = self.terminator(order, clif, last);
        facts.cold |= matches!(terminator, crate::vcode::Terminator::Trap(_));
        self.builder.start_block(block.number, terminator, facts);
        self.load_passed();
        self.fence_before(last);
        let mut inst = self.func.layout.prev_inst(last);
        while let Some(current) = inst {
            self.instruction(current);
            self.fence_before(current);
            inst = self.func.layout.prev_inst(current);
        }
        self.truths_as_words(clif);
        self.load_constants(clif);
        let params = self.block_params(clif);
        self.builder.end_block(params);
    }

    /// Where the last instruction of a block comes from.
    fn line_at_end(&self, block: ir::Block) -> crate::vcode::SourceLine {
        let last = self.func.layout.last_inst(block);
        last.map_or_else(Default::default, |last| self.line_of(last))
    }

    /// Asks for the operands of an instruction that is not lowered, so that what is unsupported among them is reported
    /// too.
    fn ask_operands(&mut self, inst: Inst) {
        for &value in self.func.dfg.inst_args(inst) {
            let ty = self.type_of(value);
            let is_known = !ty.is_dynamic_vector() && ty.bits() <= 128;
            if is_known && matches!(self.src(value).base, Base::Value { .. }) {
                self.regs_of(value);
            }
        }
    }

    /// The MEMBAR that the order of accesses asks for directly before an instruction. Blocks are lowered backwards, so
    /// it comes now.
    fn fence_before(&mut self, inst: Inst) {
        if let Some(scope) = self.input.facts.ordering.fence_before(inst) {
            self.builder.set_line(self.line_of(inst));
            self.builder.set_order(MemoryOrder::Ordered);
            let options = membar::Options::new(scope);
            self.builder.emit(build::membar_x(options));
            self.builder.end_unit();
        }
    }

    fn instruction(&mut self, inst: Inst) {
        let results = self.func.dfg.inst_results(inst);
        let asked = results.iter().any(|&v| self.homes[v].is_asked());
        if !asked && !has_effect(self.func, inst, self.input.facts.intrinsics) {
            return;
        }
        self.builder.set_line(self.line_of(inst));
        crate::rules::trace("lower", self.func, inst);
        if let [value] = *results {
            self.in_uniform_registers(inst, value);
            if asked && !self.homes[value].is_asked_by_lanes() {
                self.builder.end_unit();
                return;
            }
        }
        if let Some(access) = Access::of(self.func, self.input.facts.intrinsics, inst) {
            self.builder.set_order(access.order);
        }
        match self.apply_rules(inst) {
            Some(outputs) => {
                // A rule may give nothing for results that nobody reads.
                debug_assert!(
                    results[outputs.len().min(results.len())..]
                        .iter()
                        .all(|&v| !self.homes[v].is_asked()),
                    "{}",
                    self.func.dfg.display_inst(inst)
                );
                for (&value, output) in results.iter().zip(outputs) {
                    debug_assert!(self.leaves_as_said(value, output), "{value}: {output:?}");
                    self.bind(value, output);
                }
            }
            None => {
                self.unsupported(inst, "rewrite it with operations that are supported");
                self.ask_operands(inst);
            }
        }
        self.builder.end_unit();
    }

    /// Applies the first rule that matches, in the order of the stages.
    fn apply_rules(&mut self, inst: Inst) -> Option<InstOutput> {
        if self.defines_truth(inst) {
            let truth = rules::constructor_lower_truth(self, inst)?;
            if let Some(uniform) = rules::constructor_lower_uniform_truth(self, inst) {
                self.offer_truth(truth, uniform);
            }
            return Some(smallvec![Output::Predicate(truth)]);
        }
        debug_assert!(
            rules::constructor_lower_truth(self, inst).is_none(),
            "{} is no truth for analysis::definitions",
            self.func.dfg.display_inst(inst)
        );
        rules::constructor_lower_fused(self, inst).or_else(|| rules::constructor_lower(self, inst))
    }

    /// Whether rules left a result as [`crate::analysis::definitions`] says: a truth as a predicate, negated where that
    /// holds the opposite, anything else in registers.
    fn leaves_as_said(&self, value: Value, output: Output) -> bool {
        let overflow = || {
            let inst = self.def_of(value);
            inst.is_some_and(|inst| self.func.dfg.inst_results(inst).len() == 2)
        };
        match output {
            Output::Predicate(PSrc {
                reg: Some(_),
                negated,
            }) if overflow() => negated == self.holds_opposite(value),
            Output::Predicate(_) => self.is_truth(value),
            Output::Regs(_) => !self.is_truth(value),
        }
    }
}
