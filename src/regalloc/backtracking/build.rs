//! States a function as a problem for regalloc2.

use super::Guide;
use super::machine::{has_number, ra_class, ra_register};
use super::pinned::Pinned;
use super::problem::{BlockInfo, Kind, Problem};
use super::results::Results;
use crate::abi;
use crate::isa::generated::MAX_REGISTERS;
use crate::isa::table::Direction;
use crate::isa::{PReg, Register, RegisterClass, VReg};
use crate::regalloc::colouring::Site;
use crate::regalloc::liveness::{Liveness, edge_arguments};
use crate::regalloc::single_pass::own_uses;
use crate::vcode::{Block, CallInfo, Entry, Terminator, VCode};
use cranelift_codegen::entity::EntityRef;
use regalloc2 as ra;
use regalloc2::OperandKind::{Def, Use};

/// Where the register of an operand entry is found.
#[derive(Clone, Copy, Debug)]
pub(super) enum OperandSource {
    /// At this index of all operands.
    Operand(u32),
    /// It is this one.
    Register(PReg),
}

/// Where an operand is wanted.
#[derive(Clone, Copy)]
enum Want {
    /// Anywhere that instructions of its class can read.
    Loose,
    /// In the register of this number.
    Fixed(u8),
}

/// Where a value is found that regalloc2 does not hear of.
enum Elsewhere {
    /// Always in this register.
    Pinned(PReg),
    /// Where the colouring says.
    Coloured,
}

/// The statement of a function, with what the answer is read by; kept between functions.
#[derive(Debug, Default)]
pub(super) struct Statement {
    pub problem: Problem,
    /// For every entry of [`super::Allocation::registers`].
    pub sources: Vec<OperandSource>,
    /// Entries that are handed over and have to be in one register.
    pub fixed: u32,
    /// Results that are taken to their places behind regalloc2.
    pub results: Results,
    /// regalloc2's number of each value that it knows; [`UNKNOWN`] of the others; of pinned values [`PINNED`] +
    /// register.
    number: Vec<u32>,
}

const UNKNOWN: u32 = u32::MAX;
const PINNED: u32 = UNKNOWN - 256;

/// What a function is stated from.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub code: &'a VCode<VReg>,
    pub live: &'a Liveness,
    pub guide: &'a Guide<'a>,
    pub pinned: &'a Pinned,
    /// Classes that are handed over; the others have their registers from the colouring.
    pub classes: [bool; 3],
    /// What calls overwrite.
    pub clobbered: ra::PRegSet,
}

impl Statement {
    /// States `input`.
    pub fn make(&mut self, input: &Input<'_>) {
        self.problem.clear();
        self.sources.clear();
        self.fixed = 0;
        self.results.find(input.code);
        let mut builder = Builder {
            input: *input,
            next: 0,
            out: self,
        };
        builder.number_parameters();
        builder.run();
    }
}

struct Builder<'a> {
    input: Input<'a>,
    /// Number of the next value that is no parameter.
    next: u32,
    out: &'a mut Statement,
}

impl Builder<'_> {
    /// Parameters have the last numbers, because regalloc2's work on moves is quadratic in them otherwise.
    fn number_parameters(&mut self) {
        let code = self.input.code;
        let number = &mut self.out.number;
        number.clear();
        number.resize(code.vreg_count as usize, UNKNOWN);
        let mut pinned = 0;
        for (v, r) in self.input.pinned.iter() {
            number[v.index()] = PINNED + u32::from(r.number());
            pinned += 1;
        }
        let params = || code.blocks.values().flat_map(|b| &b.params);
        // Every value has a place in regalloc2's tables, so there should be few that it never hears of.
        let values = self.input.live.defined_values() - pinned;
        let first = (values - params().count()) as u32;
        for (n, v) in (first..).zip(params()) {
            number[v.index()] = n;
        }
        self.out.problem.values = values;
    }

    /// Where a value is found that is not handed over: nothing for one that is.
    fn elsewhere(&self, v: VReg) -> Option<Elsewhere> {
        let number = self.out.number[v.index()];
        if (PINNED..UNKNOWN).contains(&number) {
            Some(Elsewhere::Pinned(PReg::gpr((number - PINNED) as u8)))
        } else {
            (!self.input.classes[v.class() as usize]).then_some(Elsewhere::Coloured)
        }
    }

    fn mine(&self, v: VReg) -> bool {
        self.elsewhere(v).is_none()
    }

    #[inline]
    fn value(&mut self, v: VReg) -> ra::VReg {
        let number = &mut self.out.number[v.index()];
        if *number == UNKNOWN {
            *number = self.next;
            self.next += 1;
        }
        ra::VReg::new(*number as usize, ra_class(v.class()))
    }

    fn run(&mut self) {
        let code = self.input.code;
        let sites = self.input.guide.colouring.map_or(&[][..], |c| &c.sites[..]);
        let mut sites = sites.iter().peekable();
        for (block, data) in code.blocks.iter() {
            let start = self.out.problem.instructions.len();
            if block == code.entry_block() {
                self.out.problem.begin(Kind::Plain);
                for (v, r) in &code.entry {
                    self.operand(*v, Want::Fixed(r.number()), Def);
                }
            }
            for (index, entry) in data.insts.clone().zip(code.block_insts(block)) {
                let site = sites.next_if(|(i, _)| *i == index).map(|(_, s)| s);
                self.instruction(entry, site);
            }
            self.terminator(block);
            self.edges(block, start);
        }
        self.out.problem.find_predecessors();
    }

    /// Adds an operand of the current instruction, if its value is handed over.
    fn operand(&mut self, v: VReg, want: Want, kind: ra::OperandKind) {
        if self.mine(v) {
            self.add(v, want, kind);
        }
    }

    /// Adds an operand of the current instruction; returns its index. Fixed ones that are equal are one.
    #[inline]
    fn add(&mut self, v: VReg, want: Want, kind: ra::OperandKind) -> u32 {
        let class = v.class();
        let constraint = match (want, class) {
            (Want::Fixed(number), _) => ra::OperandConstraint::FixedReg(ra_register(class, number)),
            (Want::Loose, RegisterClass::Gpr) => ra::OperandConstraint::Any,
            (Want::Loose, _) => ra::OperandConstraint::Reg,
        };
        let position = match kind {
            Use => ra::OperandPos::Early,
            Def => ra::OperandPos::Late,
        };
        let operand = ra::Operand::new(self.value(v), constraint, kind, position);
        let problem = &mut self.out.problem;
        let known = match want {
            Want::Fixed(_) => problem.find(operand),
            Want::Loose => None,
        };
        known.unwrap_or_else(|| problem.add(operand))
    }

    /// Adds an operand that has an entry, and says where its register is found.
    #[inline]
    fn entry(&mut self, v: VReg, want: Want, kind: ra::OperandKind, otherwise: Option<PReg>) {
        let source = match self.elsewhere(v) {
            None => {
                self.out.fixed += u32::from(matches!(want, Want::Fixed(_)));
                OperandSource::Operand(self.add(v, want, kind))
            }
            Some(Elsewhere::Pinned(register)) => OperandSource::Register(register),
            Some(Elsewhere::Coloured) => {
                OperandSource::Register(otherwise.unwrap_or_else(|| self.colour(v)))
            }
        };
        self.out.sources.push(source);
    }

    /// The colouring's register.
    ///
    /// # Panics
    /// Without a colouring: then every class that has values is handed over.
    fn colour(&self, v: VReg) -> PReg {
        match self.input.guide.colouring {
            Some(colouring) => colouring.register(v),
            None => unreachable!("{v} is of a class that nobody allocates"),
        }
    }

    fn instruction(&mut self, entry: &Entry<VReg>, site: Option<&Site>) {
        let code = self.input.code;
        let call = code.call(entry);
        let kept = code.else_values(entry);
        self.out.problem.begin(Kind::Plain);
        let info = entry.inst.info();
        let values = entry.inst.entries();
        let kind = |place: usize| match info.writes >> place & 1 {
            0 => Use,
            _ => Def,
        };
        let packed = code.packed(entry);
        if !(info.wide
            || !kept.is_empty()
            || call.is_some()
            || site.is_some()
            || !packed.is_empty())
        {
            values.for_each(|(place, v)| self.entry(v, Want::Loose, kind(place), None));
            return;
        }
        let mut registers = [None; MAX_REGISTERS];
        let mut wants = [Want::Loose; MAX_REGISTERS];
        self.fixed_places(entry, call.is_some(), site, &mut registers, &mut wants);
        for (place, v) in values {
            self.entry(v, wants[place], kind(place), registers[place]);
        }
        for &v in packed {
            self.entry(v, Want::Loose, Use, None);
        }
        for (v, place) in self.results(entry).zip(kept) {
            if let (Some(kept), Want::Fixed(register)) = (*place, wants[v]) {
                self.operand(kept, Want::Fixed(register), Use);
            }
        }
        if let Some(call) = call {
            self.call(call);
        }
    }

    /// Places of an instruction's results among its entries, in the order of [`crate::isa::Inst::definitions`].
    fn results<'e>(&self, entry: &'e Entry<VReg>) -> impl Iterator<Item = usize> + use<'e> {
        let writes = entry.inst.info().writes;
        let regs = entry.inst.regs().iter().enumerate();
        regs.filter(move |(place, v)| writes >> place & 1 != 0 && v.is_some())
            .map(|(place, _)| place)
    }

    /// The registers of entries that are not free to be anywhere: those of runs, of guarded results, of a call's return
    /// address.
    fn fixed_places(
        &self,
        entry: &Entry<VReg>,
        is_call: bool,
        site: Option<&Site>,
        registers: &mut [Option<PReg>; MAX_REGISTERS],
        wants: &mut [Want; MAX_REGISTERS],
    ) {
        let kept = self.input.code.else_values(entry);
        for operand in entry.inst.operands() {
            let out = operand.info.direction == Direction::Out;
            for (i, v) in operand.regs.iter().enumerate() {
                let Some(v) = *v else { continue };
                let place = usize::from(operand.info.first) + i;
                if is_call && out {
                    registers[place] = Some(abi::RETURN_ADDRESS[i]);
                    wants[place] = Want::Fixed(abi::RETURN_ADDRESS[i].number());
                    continue;
                }
                let Some(colouring) = self.input.guide.colouring else {
                    continue;
                };
                let moved = site.and_then(|s| s.moved.iter().find(|m| usize::from(m.0) == place));
                let number = moved.map_or(colouring.colour[v.index()], |m| m.1);
                if moved.is_some() {
                    registers[place] = Some(PReg::new(v.class(), number));
                }
                if operand.regs.len() > 1 {
                    wants[place] = Want::Fixed(number);
                }
            }
        }
        if let Some(colouring) = self.input.guide.colouring {
            for (place, kept) in self.results(entry).zip(kept) {
                if kept.is_some()
                    && let Some(v) = entry.inst.regs()[place]
                {
                    let number =
                        registers[place].map_or(colouring.colour[v.index()], |r| r.number());
                    wants[place] = Want::Fixed(number);
                }
            }
        }
    }

    fn call(&mut self, call: &CallInfo<VReg>) {
        let mut clobbered = self.input.clobbered;
        for (v, r) in &call.uses {
            self.operand(*v, Want::Fixed(r.number()), Use);
        }
        for (v, r) in &call.defs {
            self.operand(*v, Want::Fixed(r.number()), Def);
        }
        // What the call defines is not lost.
        for r in call.defs.iter().map(|(_, r)| *r).chain(abi::RETURN_ADDRESS) {
            if has_number(r.number()) {
                clobbered.remove(ra_register(r.class(), r.number()));
            }
        }
        let problem = &mut self.out.problem;
        if let Some(instruction) = problem.instructions.last_mut() {
            instruction.kind = Kind::Call(problem.clobbers.len() as u32);
            problem.clobbers.push(clobbered);
        }
    }

    fn terminator(&mut self, block: Block) {
        let terminator = &self.input.code.blocks[block].terminator;
        let is_branch = matches!(
            terminator,
            Terminator::Jump { .. } | Terminator::Branch { .. } | Terminator::Table { .. }
        );
        self.out.problem.begin(if is_branch {
            Kind::Branch
        } else {
            Kind::Return
        });
        let number = self.out.problem.instructions.len() as u32 - 1;
        let is_return = matches!(terminator, Terminator::Return { .. });
        match terminator {
            Terminator::Return { values, .. } | Terminator::TailCall { values, .. } => {
                let address = match self.input.guide.colouring {
                    Some(colouring) => colouring.exits[block.index()].address,
                    // Results are elsewhere, and nothing restores these.
                    None => Some(abi::RETURN_ADDRESS.map(|r| r.number())),
                };
                for (i, v) in own_uses(terminator).into_iter().enumerate() {
                    let place = address.map(|a| a[i]);
                    let register = match (place, self.elsewhere(v)) {
                        (Some(place), _) => place,
                        (None, Some(Elsewhere::Pinned(register))) => register.number(),
                        (None, _) => self.colour(v).number(),
                    };
                    self.entry(v, Want::Fixed(register), Use, Some(PReg::gpr(register)));
                    self.out.results.keep(number, PReg::gpr(register));
                }
                for (v, r) in values {
                    if self.out.results.is_made_in_a_loop(*v) && self.mine(*v) && is_return {
                        let operand = self.add(*v, Want::Loose, Use);
                        self.out.results.take(number, operand, *r);
                    } else {
                        self.operand(*v, Want::Fixed(r.number()), Use);
                        self.out.results.keep(number, *r);
                    }
                }
            }
            _ => {
                for v in own_uses(terminator) {
                    self.entry(v, Want::Loose, Use, None);
                }
            }
        }
    }

    /// Parameters, arguments and successors of a block whose instructions begin at `start`.
    fn edges(&mut self, block: Block, start: usize) {
        let input = self.input;
        let data = &input.code.blocks[block];
        let problem = &mut self.out.problem;
        let info = BlockInfo {
            instructions: ra::InstRange::new(
                ra::Inst::new(start),
                ra::Inst::new(problem.instructions.len()),
            ),
            successors: problem.successors.len() as u32,
            predecessors: 0,
            params: problem.params.len() as u32,
            args: problem.args.len() as u32,
        };
        problem.blocks.push(info);
        let successors = data.terminator.successors();
        problem
            .successors
            .extend(successors.iter().map(|s| ra::Block::new(s.index())));
        for &v in &data.params {
            if self.mine(v) && !input.live.is_dead(v) {
                let v = self.value(v);
                self.out.problem.params.push(v);
            }
        }
        for (arg, param) in edge_arguments(input.code, block) {
            if self.mine(param) && !input.live.is_dead(param) {
                let arg = self.value(arg);
                self.out.problem.args.push(arg);
            }
        }
    }
}
