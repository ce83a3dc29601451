//! The order of blocks, edges with arguments, and how blocks end.

use super::rules::{
    constructor_table_index, constructor_truth_copy, constructor_truth_of, constructor_truth_word,
};
use super::source::{Base, VALUE_CLASS};
use super::state::{Input, Lower};
use crate::analysis::control_flow::destinations;
use crate::analysis::meeting;
use crate::isa::VReg;
use crate::vcode::{Block, BlockFacts, Guard, Meeting, SourceLine, Terminator};
use cranelift_codegen::entity::{EntityRef, SecondaryMap};
use cranelift_codegen::ir::{self, BlockArg, BlockCall, Inst, InstructionData, Opcode};

/// Where a machine block comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    /// A CLIF block.
    Clif(ir::Block),
    /// An edge out of a block with several successors.
    Edge {
        /// The block it leaves.
        block: ir::Block,
        /// Where it goes.
        target: Block,
        /// Its arguments.
        args: BlockCall,
    },
}

/// A machine block to be lowered.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoweredBlock {
    pub number: Block,
    pub origin: Origin,
    /// For edges: the branch is divergent.
    pub divergent_edge: bool,
}

/// Machine blocks in reverse postorder: every CLIF block is followed by its edges.
#[derive(Default)]
pub(super) struct BlockOrder {
    blocks: Vec<LoweredBlock>,
    numbers: SecondaryMap<ir::Block, Option<Block>>,
    /// First entry of each CLIF block in `targets`.
    edges: SecondaryMap<ir::Block, u32>,
    /// Where the branches of blocks with several successors go: the edge's own block, or the successor.
    targets: Vec<Block>,
    cold: SecondaryMap<ir::Block, bool>,
    /// Edges that enter each CLIF block.
    entering: SecondaryMap<ir::Block, u32>,
}

impl BlockOrder {
    /// Orders the blocks of a function, in the memory of the one before.
    pub fn recompute(&mut self, input: &Input<'_>) {
        let func = input.func;
        let lists = &func.dfg.value_lists;
        self.clear(func.dfg.num_blocks());
        for &block in input.facts.flow.reverse_postorder() {
            for call in func
                .layout
                .last_inst(block)
                .map_or(&[][..], |last| destinations(func, last))
            {
                self.entering[call.block(lists)] += 1;
            }
        }
        let entering = std::mem::take(&mut self.entering);
        let own_block =
            |call: &BlockCall| call.args(lists).len() > 0 || entering[call.block(lists)] > 1;
        let mut next = 0;
        for &block in input.facts.flow.reverse_postorder() {
            self.numbers[block] = Some(Block::new(next));
            next += 1;
            let Some(last) = func.layout.last_inst(block) else {
                continue;
            };
            self.cold[block] =
                func.layout.is_cold(block) || func.dfg.insts[last].opcode() == Opcode::Trap;
            let calls = destinations(func, last);
            if calls.len() > 1 {
                next += calls.iter().filter(|c| own_block(c)).count();
            }
        }
        for &block in input.facts.flow.reverse_postorder() {
            self.blocks.push(LoweredBlock {
                number: self.number(block),
                origin: Origin::Clif(block),
                divergent_edge: false,
            });
            self.edges[block] = self.targets.len() as u32;
            let Some(last) = func.layout.last_inst(block) else {
                continue;
            };
            let calls = destinations(func, last);
            if calls.len() <= 1 {
                continue;
            }
            let divergent_edge = input.facts.uniformity.divergent_branch(last);
            for call in calls {
                let target = self.number(call.block(lists));
                if !own_block(call) {
                    self.targets.push(target);
                    continue;
                }
                let number = Block::new(self.blocks.len());
                self.targets.push(number);
                self.blocks.push(LoweredBlock {
                    number,
                    origin: Origin::Edge {
                        block,
                        target,
                        args: *call,
                    },
                    divergent_edge,
                });
            }
        }
        self.entering = entering;
    }

    /// Nothing, in as much memory as a function of so many blocks needs.
    fn clear(&mut self, blocks: usize) {
        self.blocks.clear();
        self.targets.clear();
        self.numbers.clear();
        self.numbers.resize(blocks);
        self.edges.clear();
        self.edges.resize(blocks);
        self.cold.clear();
        self.cold.resize(blocks);
        self.entering.clear();
        self.entering.resize(blocks);
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    pub fn backwards(&self) -> impl Iterator<Item = LoweredBlock> {
        self.blocks.iter().rev().copied()
    }

    pub fn number(&self, block: ir::Block) -> Block {
        self.numbers[block].expect("a reachable block")
    }

    /// The block of the edge `index` of a block with several successors.
    pub fn edge(&self, block: ir::Block, index: usize) -> Block {
        self.targets[self.edges[block] as usize + index]
    }

    pub fn facts(&self, input: &Input<'_>, block: ir::Block) -> BlockFacts {
        BlockFacts {
            line: SourceLine(0),
            divergent: input.facts.uniformity.divergent_block(block),
            loop_depth: input.facts.flow.loop_depth(block) as u32,
            cold: self.cold[block],
            meeting: self.meeting(input, block),
        }
    }

    /// Where the lanes meet that part at the end of `block`. They do not part where only one way goes on.
    fn meeting(&self, input: &Input<'_>, block: ir::Block) -> Meeting {
        let flow = input.facts.flow;
        let Some(last) = input.func.layout.last_inst(block) else {
            return Meeting::Together;
        };
        let lists = &input.func.dfg.value_lists;
        let mut ways = destinations(input.func, last)
            .iter()
            .filter(|call| flow.continues(block, call.block(lists)));
        let meetings = input.facts.meetings;
        let parts = ways.nth(1).is_some() || meetings.awaits_ended(block);
        if !input.facts.uniformity.divergent_branch(last) || !parts {
            return Meeting::Together;
        }
        self.numbered(meetings.branch(block))
    }

    /// Where the lanes meet again that make the call at the end of `block`.
    pub fn meeting_of_call(&self, input: &Input<'_>, block: ir::Block) -> Meeting {
        let meeting = input.facts.meetings.call(block);
        meeting.map_or(Meeting::Together, |meeting| self.numbered(meeting))
    }

    fn numbered(&self, meeting: meeting::Meeting) -> Meeting {
        match meeting {
            meeting::Meeting::At(block) => Meeting::At(self.number(block)),
            meeting::Meeting::Nowhere => Meeting::Nowhere,
        }
    }
}

impl Lower<'_> {
    /// The registers of an edge's arguments.
    pub(super) fn arguments(&mut self, call: BlockCall) -> Vec<VReg> {
        let lists = &self.func.dfg.value_lists;
        let parameters = self.func.dfg.block_params(call.block(lists));
        let mut regs = Vec::new();
        for (argument, &parameter) in call.args(lists).zip(parameters) {
            if let BlockArg::Value(value) = argument {
                if self.is_truth(parameter) {
                    regs.push(self.passed_truth(value));
                    continue;
                }
                match self.src(value).base {
                    Base::Imm(bits) => self.pass_immediate(bits, self.words_of(value), &mut regs),
                    _ => regs.extend_from_slice(self.regs_of(value).as_slice()),
                }
                if self.may_pass_uniform(parameter) {
                    regs.extend_from_slice(self.uniform_of(value).as_slice());
                }
            }
        }
        regs
    }

    /// The predicate in which an edge passes a truth.
    fn passed_truth(&mut self, value: ir::Value) -> VReg {
        let truth = constructor_truth_of(self, value);
        match truth.reg {
            Some(reg) if !truth.negated => reg,
            _ => constructor_truth_copy(self, truth).reg(),
        }
    }

    /// Makes the parameters of a block that are truths numbers, where somebody reads them so.
    pub(super) fn truths_as_words(&mut self, block: ir::Block) {
        if Some(block) == self.func.layout.entry_block() {
            return;
        }
        for &parameter in self.func.dfg.block_params(block) {
            if self.is_truth(parameter)
                && let Some(asked) = self.homes[parameter].regs
            {
                let truth = self.truth_predicate(parameter);
                let word = constructor_truth_word(self, truth);
                self.builder.bind(asked.first, word.reg());
                self.builder.end_unit();
            }
        }
    }

    /// Registers for the words of an immediate that an edge passes: each of its own, so that it can be the parameter's.
    fn pass_immediate(&mut self, bits: u128, words: usize, regs: &mut Vec<VReg>) {
        for word in 0..words {
            let reg = self.builder.vreg(VALUE_CLASS);
            self.passed.push(((bits >> (32 * word)) as u32, reg));
            regs.push(reg);
        }
    }

    /// Loads the immediates that the edge at the end of the block passes, behind all other instructions.
    pub(super) fn load_passed(&mut self) {
        for (value, reg) in std::mem::take(&mut self.passed) {
            let loaded = self.load_immediate(value);
            self.builder.bind(reg, loaded);
        }
        self.builder.end_unit();
    }

    /// Whether a parameter may be in uniform registers, and is passed in both: the whole warp runs where it is passed.
    fn may_pass_uniform(&self, parameter: ir::Value) -> bool {
        let facts = &self.input.facts;
        let together = |block| !facts.uniformity.divergent_block(block);
        let ir::ValueDef::Param(block, _) = self.func.dfg.value_def(parameter) else {
            return false;
        };
        self.may_be_uniform(parameter)
            && together(block)
            && facts.flow.predecessors(block).all(together)
    }

    /// Registers of a block's parameters; the entry block's are filled from where the caller put them.
    pub(super) fn block_params(&mut self, block: ir::Block) -> Vec<VReg> {
        if Some(block) == self.func.layout.entry_block() {
            self.entry_params(block);
            return Vec::new();
        }
        let mut regs = Vec::new();
        for &param in self.func.dfg.block_params(block) {
            if self.is_truth(param) {
                regs.extend(self.truth_predicate(param).reg);
                continue;
            }
            let general = self.regs_of(param);
            regs.extend_from_slice(general.as_slice());
            if self.may_pass_uniform(param) {
                let uniform = self.uniform_of(param);
                self.offer(general, uniform);
                regs.extend_from_slice(uniform.as_slice());
            }
        }
        regs
    }

    /// How a block ends. What the terminator needs is emitted before it.
    pub(super) fn terminator(
        &mut self,
        order: &BlockOrder,
        block: ir::Block,
        last: Inst,
    ) -> Terminator<VReg> {
        crate::rules::trace("lower", self.func, last);
        let divergent = self.input.facts.uniformity.divergent_branch(last);
        match self.func.dfg.insts[last] {
            InstructionData::Jump { destination, .. } => {
                let target = order.number(destination.block(&self.func.dfg.value_lists));
                Terminator::Jump {
                    target,
                    args: self.arguments(destination),
                }
            }
            InstructionData::Brif { arg, .. } => {
                let condition = constructor_truth_of(self, arg);
                // A constant condition keeps both ways: the mid-end is where they go.
                let guard = match condition.reg {
                    Some(reg) => Guard {
                        reg,
                        negated: condition.negated,
                    },
                    None => Guard {
                        reg: constructor_truth_copy(self, condition).reg(),
                        negated: false,
                    },
                };
                Terminator::Branch {
                    guard,
                    taken: order.edge(block, 0),
                    fallthrough: order.edge(block, 1),
                    divergent,
                }
            }
            InstructionData::BranchTable { arg, table, .. } => {
                let cases = self.func.dfg.jump_tables[table].as_slice().len();
                if cases == 0 {
                    let call = destinations(self.func, last)[0];
                    let target = order.number(call.block(&self.func.dfg.value_lists));
                    return Terminator::Jump {
                        target,
                        args: self.arguments(call),
                    };
                }
                let targets: Vec<Block> = (0..=cases)
                    .map(|i| order.edge(block, if i == cases { 0 } else { i + 1 }))
                    .collect();
                Terminator::Table {
                    index: constructor_table_index(self, arg, cases as u32).reg(),
                    table: None,
                    targets,
                    divergent,
                }
            }
            InstructionData::Trap { code, .. } => Terminator::Trap(code.as_raw().get()),
            InstructionData::MultiAry {
                opcode: Opcode::Return,
                ..
            } => self.return_terminator(last),
            InstructionData::Call {
                opcode: Opcode::ReturnCall,
                ..
            }
            | InstructionData::CallIndirect {
                opcode: Opcode::ReturnCallIndirect,
                ..
            } => self.tail_call(last),
            _ => {
                self.unsupported(
                    last,
                    "end the block with jump, brif, br_table, return, a tail call or trap",
                );
                Terminator::Exit
            }
        }
    }
}
