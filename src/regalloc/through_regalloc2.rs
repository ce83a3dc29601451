//! A function as regalloc2 sees it, and its answer.
//!
//! Ordinary GPR operands are unconstrained (`Any`): a slot of regalloc2 becomes one more register above the allocatable ones, so nothing is ever
//! evicted. Entries of wide operands, and guarded results with the values they keep, are fixed to the registers of the colouring, which is
//! how pairs and quads come out aligned. Predicates and uniform registers must be in registers.
//!
//! Only the classes of `classes` are handed over; the others keep the colouring and their own copies. GPRs are kept back where a slot could
//! not be a register: in functions with calls (registers above R31 do not survive them), and beyond the 63 registers of a class.
//!
//! Of the allocator's limits the following are kept to: no `Reuse`; one operand for equal values in equal fixed registers; blocks that
//! pass arguments end in an instruction without operands; parameters are numbered last (its move insertion is quadratic in them otherwise).

use super::colouring::Colouring;
use super::constrain::pressure::stack_pointer;
use super::liveness::{Liveness, edge_arguments};
use super::parallel::Copy;
use super::registers::Numbers;
use crate::abi;
use crate::isa::table::Direction;
use crate::isa::{PReg, Register, RegisterClass, VReg};
use crate::vcode::{Block, Callee, Entry, FunctionKind, Terminator, VCode};
use cranelift_entity::EntityRef;
use regalloc2 as ra;

/// regalloc2's class for one of ours.
fn ra_class(class: RegisterClass) -> ra::RegClass {
    match class {
        RegisterClass::Gpr => ra::RegClass::Int,
        RegisterClass::Predicate => ra::RegClass::Float,
        RegisterClass::Uniform => ra::RegClass::Vector,
    }
}

/// Our class for one of regalloc2's.
fn own_class(class: ra::RegClass) -> RegisterClass {
    match class {
        ra::RegClass::Int => RegisterClass::Gpr,
        ra::RegClass::Float => RegisterClass::Predicate,
        ra::RegClass::Vector => RegisterClass::Uniform,
    }
}

/// Where an operand belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An entry of `Inst::regs`.
    Entry(u8),
    /// The register that a terminator reads: guard, index, low and high word of an address.
    Exit(u8),
    /// Nothing in the word: a value kept, a register of the calling convention.
    Hidden,
}

/// regalloc2's allocation.
pub(super) struct Answer {
    problem: Problem,
    output: ra::Output,
    /// Classes that it allocated.
    pub classes: [bool; 3],
}

/// A function for regalloc2.
struct Problem {
    blocks: Vec<ra::InstRange>,
    successors: Vec<Vec<ra::Block>>,
    predecessors: Vec<Vec<ra::Block>>,
    params: Vec<Vec<ra::VReg>>,
    args: Vec<Vec<ra::VReg>>,
    operands: Vec<ra::Operand>,
    ranges: Vec<(u32, u32)>,
    purposes: Vec<(u32, Purpose)>,
    purpose_ranges: Vec<(u32, u32)>,
    is_branch: Vec<bool>,
    is_return: Vec<bool>,
    clobbers: Vec<bool>,
    values: usize,
    clobbered: ra::PRegSet,
    environment: ra::MachineEnv,
    /// First register that a slot stands for.
    slot_base: u32,
}

/// Which classes regalloc2 can allocate in `code`.
pub(super) fn classes(code: &VCode<VReg>, colouring: &Colouring) -> [bool; 3] {
    let pinned = stack_pointer(code);
    let top = colouring.used.of(RegisterClass::Gpr).last().unwrap_or(0);
    let calls = code.insts.iter().any(|e| code.call(e).is_some());
    let read_in_run = |e: &Entry<VReg>| {
        e.inst
            .operands()
            .any(|o| o.regs.len() > 1 && o.regs.contains(&pinned))
    };
    let kept = |e: &Entry<VReg>| code.else_values(e).contains(&pinned);
    let passed = |v: &VReg| Some(*v) == pinned;
    let awkward = pinned.is_some()
        && (code.insts.iter().any(|e| read_in_run(e) || kept(e))
            || code
                .blocks
                .values()
                .any(|b| b.terminator.uses().any(|v| passed(&v))));
    let exits = code.blocks.values().any(|b| {
        matches!(
            &b.terminator,
            Terminator::TailCall {
                callee: Callee::Registers(_),
                ..
            }
        )
    });
    let mut classes = [true; 3];
    classes[RegisterClass::Gpr as usize] =
        usize::from(top) < ra::PReg::MAX && !calls && !awkward && !exits;
    classes
}

impl Answer {
    /// Lets regalloc2 allocate `classes` of `code`.
    ///
    /// # Errors
    /// Its error, in words; in debug builds also what its checker finds.
    pub fn find(
        code: &VCode<VReg>,
        live: &Liveness,
        colouring: &Colouring,
        classes: [bool; 3],
    ) -> Result<Answer, String> {
        let problem = Builder::new(code, live, colouring, classes).build();
        let options = ra::RegallocOptions {
            verbose_log: false,
            validate_ssa: cfg!(debug_assertions),
            algorithm: ra::Algorithm::Ion,
        };
        let output = ra::run(&problem, &problem.environment, &options)
            .map_err(|e| format!("regalloc2: {e}"))?;
        if cfg!(debug_assertions) {
            let mut checker = ra::checker::Checker::new(&problem, &problem.environment);
            checker.prepare(&output);
            checker
                .run()
                .map_err(|e| format!("regalloc2's checker: {e:?}"))?;
        }
        Ok(Answer {
            problem,
            output,
            classes,
        })
    }

    /// Number of GPRs with those that slots stand for.
    pub fn gprs(&self) -> usize {
        self.problem.slot_base as usize + self.output.num_spillslots
    }

    /// The machine's register for an allocation. A slot is the register so many above the last.
    fn register(&self, allocation: ra::Allocation) -> PReg {
        match (allocation.as_reg(), allocation.as_stack()) {
            (Some(r), _) => PReg::new(own_class(r.class()), r.hw_enc() as u8),
            (None, Some(slot)) => PReg::gpr((self.problem.slot_base as usize + slot.index()) as u8),
            (None, None) => unreachable!("every operand has an allocation"),
        }
    }

    /// The register of an operand of an instruction; none if it is of a class that was not handed over.
    pub fn operand(&self, inst: usize, purpose: Purpose) -> Option<PReg> {
        let (start, end) = self.problem.purpose_ranges[inst];
        let purposes = &self.problem.purposes[start as usize..end as usize];
        let index = purposes.iter().find(|(_, p)| *p == purpose)?.0;
        Some(self.register(self.output.inst_allocs(ra::Inst::new(inst))[index as usize]))
    }

    /// Copies in the order of their places: `(instruction, whether behind it, copy)`.
    pub fn edits(&self) -> impl Iterator<Item = (usize, bool, Copy)> {
        self.output
            .edits
            .iter()
            .map(|(point, ra::Edit::Move { from, to })| {
                let behind = point.pos() == ra::InstPosition::After;
                (
                    point.inst().index(),
                    behind,
                    Copy {
                        from: self.register(*from),
                        to: self.register(*to),
                    },
                )
            })
    }
}

/// regalloc2's number of instruction `index` of `block`: entry and terminators are instructions as well.
pub(super) fn number(block: Block, index: u32) -> usize {
    index as usize + 1 + block.index()
}

/// Where an operand is wanted.
#[derive(Clone, Copy)]
enum Want {
    /// Anywhere that instructions of its class can read.
    Loose,
    /// In the register of this number.
    Fixed(u8),
}

struct Builder<'a> {
    code: &'a VCode<VReg>,
    live: &'a Liveness,
    colouring: &'a Colouring,
    classes: [bool; 3],
    pinned: Option<VReg>,
    number: Vec<u32>,
    problem: Problem,
}

impl<'a> Builder<'a> {
    fn new(
        code: &'a VCode<VReg>,
        live: &'a Liveness,
        colouring: &'a Colouring,
        classes: [bool; 3],
    ) -> Self {
        let problem = Problem {
            blocks: Vec::with_capacity(code.blocks.len()),
            successors: Vec::with_capacity(code.blocks.len()),
            predecessors: vec![Vec::new(); code.blocks.len()],
            params: Vec::with_capacity(code.blocks.len()),
            args: Vec::with_capacity(code.blocks.len()),
            operands: Vec::with_capacity(4 * code.insts.len()),
            ranges: Vec::with_capacity(code.insts.len()),
            purposes: Vec::with_capacity(4 * code.insts.len()),
            purpose_ranges: Vec::with_capacity(code.insts.len()),
            is_branch: Vec::new(),
            is_return: Vec::new(),
            clobbers: Vec::new(),
            values: 0,
            clobbered: ra::PRegSet::empty(),
            environment: environment(code, colouring),
            slot_base: 0,
        };
        let mut builder = Builder {
            code,
            live,
            colouring,
            classes,
            pinned: stack_pointer(code),
            number: Vec::new(),
            problem,
        };
        builder.number_values();
        builder
    }

    /// Parameters last.
    fn number_values(&mut self) {
        let values = self.code.vreg_count as usize;
        self.number = vec![u32::MAX; values];
        let mut is_param = vec![false; values];
        for data in self.code.blocks.values() {
            data.params.iter().for_each(|v| is_param[v.index()] = true);
        }
        let mut next = 0;
        for param in [false, true] {
            for (number, _) in self
                .number
                .iter_mut()
                .zip(&is_param)
                .filter(|(_, p)| **p == param)
            {
                *number = next;
                next += 1;
            }
        }
        self.problem.values = values;
    }

    fn mine(&self, v: VReg) -> bool {
        self.classes[v.class() as usize] && Some(v) != self.pinned
    }

    fn value(&self, v: VReg) -> ra::VReg {
        ra::VReg::new(self.number[v.index()] as usize, ra_class(v.class()))
    }

    fn build(mut self) -> Problem {
        let code = self.code;
        let mut sites = self.colouring.sites.iter().peekable();
        for (block, data) in code.blocks.iter() {
            let start = self.problem.ranges.len();
            if block == code.entry_block() {
                self.begin();
                for (v, r) in &code.entry {
                    self.operand(
                        *v,
                        Want::Fixed(r.number()),
                        ra::OperandKind::Def,
                        Purpose::Hidden,
                    );
                }
                self.end(false, false, false);
            }
            for (index, entry) in data.insts.clone().zip(code.block_insts(block)) {
                let site = sites.next_if(|(i, _)| *i == index).map(|(_, s)| s);
                self.begin();
                self.instruction(entry, |place| {
                    site.and_then(|s| s.moved.iter().find(|m| m.0 == place))
                        .map(|m| m.1)
                });
                self.end(false, false, code.call(entry).is_some());
            }
            self.begin();
            self.terminator(block);
            let branches = !data.terminator.successors().is_empty();
            self.end(branches, !branches, false);
            self.edges(block);
            let range = ra::InstRange::new(
                ra::Inst::new(start),
                ra::Inst::new(self.problem.ranges.len()),
            );
            self.problem.blocks.push(range);
        }
        let problem = &mut self.problem;
        for class in [RegisterClass::Predicate, RegisterClass::Uniform] {
            for r in problem.environment.preferred_regs_by_class[ra_class(class) as usize] {
                problem.clobbered.add(r);
            }
        }
        problem.slot_base = slot_base(code, self.colouring);
        self.problem
    }

    fn begin(&mut self) {
        let (operands, purposes) = (
            self.problem.operands.len() as u32,
            self.problem.purposes.len() as u32,
        );
        self.problem.ranges.push((operands, operands));
        self.problem.purpose_ranges.push((purposes, purposes));
    }

    fn end(&mut self, is_branch: bool, is_return: bool, clobbers: bool) {
        let problem = &mut self.problem;
        problem.ranges.last_mut().expect("begun").1 = problem.operands.len() as u32;
        problem.purpose_ranges.last_mut().expect("begun").1 = problem.purposes.len() as u32;
        problem.is_branch.push(is_branch);
        problem.is_return.push(is_return);
        problem.clobbers.push(clobbers);
    }

    /// Adds an operand of the current instruction; equal ones are shared.
    fn operand(&mut self, v: VReg, want: Want, kind: ra::OperandKind, purpose: Purpose) {
        if !self.mine(v) {
            return;
        }
        let constraint = match (want, v.class()) {
            (Want::Fixed(number), class) => {
                ra::OperandConstraint::FixedReg(ra::PReg::new(usize::from(number), ra_class(class)))
            }
            (Want::Loose, RegisterClass::Gpr) => ra::OperandConstraint::Any,
            (Want::Loose, _) => ra::OperandConstraint::Reg,
        };
        let position = match kind {
            ra::OperandKind::Use => ra::OperandPos::Early,
            ra::OperandKind::Def => ra::OperandPos::Late,
        };
        let operand = ra::Operand::new(self.value(v), constraint, kind, position);
        let first = self.problem.ranges.last().expect("begun").0 as usize;
        let known = self.problem.operands[first..]
            .iter()
            .position(|o| *o == operand);
        let index = known.unwrap_or_else(|| {
            self.problem.operands.push(operand);
            self.problem.operands.len() - 1 - first
        });
        self.problem.purposes.push((index as u32, purpose));
    }

    fn instruction(&mut self, entry: &Entry<VReg>, moved: impl Fn(u8) -> Option<u8>) {
        let code = self.code;
        let kept = code.else_values(entry);
        let mut number = 0;
        for operand in entry.inst.operands() {
            let out = operand.info.direction == Direction::Out;
            let kind = if out {
                ra::OperandKind::Def
            } else {
                ra::OperandKind::Use
            };
            for (i, v) in operand.regs.iter().enumerate() {
                let Some(v) = *v else { continue };
                let place = operand.info.first + i as u8;
                let kept = if out {
                    kept.get(number).copied().flatten()
                } else {
                    None
                };
                number += usize::from(out);
                let register = moved(place).unwrap_or_else(|| self.colouring.colour[v.index()]);
                let guarded = kept.is_some();
                let constraint = if operand.regs.len() > 1 || guarded {
                    Want::Fixed(register)
                } else {
                    Want::Loose
                };
                self.operand(v, constraint, kind, Purpose::Entry(place));
                if let Some(kept) = kept {
                    let constraint = Want::Fixed(register);
                    self.operand(kept, constraint, ra::OperandKind::Use, Purpose::Hidden);
                }
            }
        }
        if let Some(call) = code.call(entry) {
            for (v, r) in &call.uses {
                self.operand(
                    *v,
                    Want::Fixed(r.number()),
                    ra::OperandKind::Use,
                    Purpose::Hidden,
                );
            }
            for (v, r) in &call.defs {
                self.operand(
                    *v,
                    Want::Fixed(r.number()),
                    ra::OperandKind::Def,
                    Purpose::Hidden,
                );
            }
        }
    }

    fn terminator(&mut self, block: Block) {
        let use_ = ra::OperandKind::Use;
        match &self.code.blocks[block].terminator {
            Terminator::Jump { .. } | Terminator::Exit | Terminator::Trap(_) => {}
            Terminator::Branch { guard, .. } => {
                self.operand(guard.reg, Want::Loose, use_, Purpose::Exit(0))
            }
            Terminator::Table { index, .. } => {
                self.operand(*index, Want::Loose, use_, Purpose::Exit(0))
            }
            Terminator::Return { address, values } => {
                let place = self.colouring.exits[block.index()].address;
                for (i, v) in address.iter().enumerate() {
                    let register = place.map_or_else(|| self.colouring.colour[v.index()], |p| p[i]);
                    self.operand(*v, Want::Fixed(register), use_, Purpose::Exit(i as u8));
                }
                for (v, r) in values {
                    self.operand(*v, Want::Fixed(r.number()), use_, Purpose::Hidden);
                }
            }
            Terminator::TailCall { values, .. } => {
                for (v, r) in values {
                    self.operand(*v, Want::Fixed(r.number()), use_, Purpose::Hidden);
                }
            }
        }
    }

    fn edges(&mut self, block: Block) {
        let data = &self.code.blocks[block];
        let successors = data.terminator.successors();
        for s in &successors {
            self.problem.predecessors[s.index()].push(ra::Block::new(block.index()));
        }
        self.problem.successors.push(
            successors
                .iter()
                .map(|s| ra::Block::new(s.index()))
                .collect(),
        );
        let used = |v: &VReg| self.mine(*v) && !self.live.is_dead(*v);
        let params: Vec<ra::VReg> = data
            .params
            .iter()
            .filter(|v| used(v))
            .map(|v| self.value(*v))
            .collect();
        let args = edge_arguments(self.code, block).filter(|(_, param)| used(param));
        let args: Vec<ra::VReg> = args.map(|(arg, _)| self.value(arg)).collect();
        self.problem.params.push(params);
        self.problem.args.push(args);
    }
}

/// The register behind the highest that the colouring uses.
fn slot_base(code: &VCode<VReg>, colouring: &Colouring) -> u32 {
    let used = allocatable(code, colouring, RegisterClass::Gpr);
    let all = colouring.used.of(RegisterClass::Gpr).union(used);
    all.last().map_or(0, |r| u32::from(r) + 1).max(2)
}

/// Registers that regalloc2 may use: those below the highest of the colouring, callee-saved ones only if the colouring has them.
fn allocatable(code: &VCode<VReg>, colouring: &Colouring, class: RegisterClass) -> Numbers {
    let used = *colouring.used.of(class);
    let below = used.last().map_or(0, |r| u32::from(r) + 1);
    match class {
        // Operands that must be in registers need some to move in.
        RegisterClass::Predicate => Numbers::below(u32::from(class.hardwired())),
        RegisterClass::Uniform => Numbers::below((below + 4).min(u32::from(class.hardwired()))),
        RegisterClass::Gpr => {
            let mut all = Numbers::below(below.min(ra::PReg::MAX as u32));
            all.remove(abi::STACK_POINTER.number());
            if code.kind == FunctionKind::Device {
                all = all.minus(Numbers::range(abi::CALLEE_SAVED).minus(used));
            }
            all
        }
    }
}

fn environment(code: &VCode<VReg>, colouring: &Colouring) -> ra::MachineEnv {
    let mut preferred = [ra::PRegSet::empty(); 3];
    for class in RegisterClass::ALL {
        let set = &mut preferred[ra_class(class) as usize];
        for n in allocatable(code, colouring, class).iter() {
            set.add(ra::PReg::new(usize::from(n), ra_class(class)));
        }
    }
    ra::MachineEnv {
        preferred_regs_by_class: preferred,
        non_preferred_regs_by_class: [ra::PRegSet::empty(); 3],
        scratch_by_class: [None; 3],
        fixed_stack_slots: Vec::new(),
    }
}

impl ra::Function for Problem {
    fn num_insts(&self) -> usize {
        self.ranges.len()
    }
    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }
    fn entry_block(&self) -> ra::Block {
        ra::Block::new(0)
    }
    fn block_insns(&self, block: ra::Block) -> ra::InstRange {
        self.blocks[block.index()]
    }
    fn block_succs(&self, block: ra::Block) -> &[ra::Block] {
        &self.successors[block.index()]
    }
    fn block_preds(&self, block: ra::Block) -> &[ra::Block] {
        &self.predecessors[block.index()]
    }
    fn block_params(&self, block: ra::Block) -> &[ra::VReg] {
        &self.params[block.index()]
    }
    fn is_ret(&self, inst: ra::Inst) -> bool {
        self.is_return[inst.index()]
    }
    fn is_branch(&self, inst: ra::Inst) -> bool {
        self.is_branch[inst.index()]
    }
    fn branch_blockparams(&self, block: ra::Block, _: ra::Inst, _: usize) -> &[ra::VReg] {
        &self.args[block.index()]
    }
    fn inst_operands(&self, inst: ra::Inst) -> &[ra::Operand] {
        let (start, end) = self.ranges[inst.index()];
        &self.operands[start as usize..end as usize]
    }
    fn inst_clobbers(&self, inst: ra::Inst) -> ra::PRegSet {
        if self.clobbers[inst.index()] {
            self.clobbered
        } else {
            ra::PRegSet::empty()
        }
    }
    fn num_vregs(&self) -> usize {
        self.values
    }
    fn spillslot_size(&self, _: ra::RegClass) -> usize {
        1
    }
}
