//! One instruction of one warp.
//!
//! [`Warp::step`] issues the next instruction of the warp's current group in all its lanes whose guard holds, and
//! leaves the warp at the next one. Families with more to say have their own files: memory in
//! [`crate::sim::execute::access`], lanes among each other in [`crate::sim::execute::convergent`], control in
//! [`super::warp`].

pub(crate) mod access;
pub(crate) mod checked;
pub(crate) mod convergent;
mod rounds;
pub(crate) mod stop;
pub(crate) mod together;

use super::check::Checker;
use super::memory::banks::Banks;
use super::warp::{GROUP_TURN, Warp, WarpState};
use crate::isa::Optype;
use crate::isa::Role;
use crate::isa::generated::SReg;
use crate::launch::{FaultKind, Stats};
use crate::sim::decode::action::{Action, NOWHERE};
use crate::sim::decode::program::{BroadcastSource, Op, Program, WORD_BYTES};
use crate::sim::execute::stop::Stop;
use crate::sim::launch::shape::Shape;
use crate::sim::memory::bytes::Bytes;
use crate::sim::memory::global::Table;
use crate::sim::memory::strong::Concurrency;
use crate::sim::timing::profile::{Recorder, Touches};
use crate::sim::warp::registers::{Column, GENERAL, LANE, LANES, Operand, THREADS, lanes};

/// What a warp sees beside itself.
pub struct Environment<'a> {
    /// The code.
    pub program: &'a Program,
    /// Constants.
    pub banks: &'a Banks,
    /// Sizes.
    pub shape: Shape,
    /// Warp instructions a warp may issue.
    pub budget: u64,
    /// Coordinates of the CTA.
    pub block: [u32; 3],
    /// Device memory.
    pub global: &'a Table,
    /// The CTA's memory.
    pub shared: &'a mut Bytes,
    /// What SR_CLOCKLO reads: cycles in timed mode, else the warp's instructions.
    pub clock: Option<u64>,
    /// Checks, if they are on.
    pub checker: Option<&'a mut Checker>,
    /// What counts accesses, if it is wanted.
    pub recorder: Option<&'a mut Recorder>,
    /// Who else uses device memory meanwhile.
    pub concurrency: Concurrency,
}

impl Environment<'_> {
    /// The places that an instruction is about to touch, if they are counted.
    pub(super) fn touches(&self, bytes: u32) -> Option<Touches> {
        self.recorder.as_deref()?.touches(bytes)
    }

    /// Counts the places that the instruction at `pc` has touched.
    pub(super) fn touched(&mut self, pc: u32, touches: &Option<Touches>) {
        if let (Some(recorder), Some(touches)) = (self.recorder.as_deref_mut(), touches) {
            recorder.touched(pc, touches);
        }
    }
}

/// An issued instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Index in the program.
    pub pc: u32,
    /// Lanes it ran in.
    pub mask: u32,
}

/// Nothing, or the fault.
pub(super) type Executed = Result<(), Box<Stop>>;

impl Warp {
    /// Issues one instruction of the current group; the warp must be ready.
    ///
    /// # Errors
    /// The fault, with everything that happened before it done.
    #[inline]
    pub fn step(&mut self, env: &mut Environment) -> Result<Issued, Box<Stop>> {
        let group = self.group();
        let program = env.program;
        let Some(op) = program.ops.get(group.pc as usize) else {
            return Err(Stop::lanes(
                FaultKind::BadJump {
                    target: u64::from(group.pc) * WORD_BYTES,
                },
                group.mask,
            ));
        };
        self.count(env, group.mask)?;
        let mask = group.mask & self.registers.holds(op.guard);
        if let Some(checker) = env.checker.as_deref_mut() {
            checker.before(self, op, group, mask);
        }
        match (&op.action, mask) {
            // Only what involves other lanes than those whose guard holds looks at a false guard.
            (_, 0) => self.advance(),
            (Action::Pure(body), _) => {
                self.broadcast(op, env.banks, mask)?;
                body.run(&op.operands, &mut self.registers, mask);
                self.advance();
            }
            (Action::Load(_) | Action::Store(_), _) if self.access_together(op, env, mask) => {
                self.advance();
            }
            _ => self.effect(op, env, mask)?,
        }
        Ok(Issued { pc: group.pc, mask })
    }

    /// Counts an instruction that lanes are about to issue.
    ///
    /// # Errors
    /// When the budget is exhausted.
    #[inline(always)]
    pub(super) fn count(&mut self, env: &Environment, lanes: u32) -> Executed {
        if self.issued >= env.budget {
            let limit = env.budget;
            return Err(Stop::lanes(FaultKind::BudgetExhausted { limit }, lanes));
        }
        self.issued += 1;
        Ok(())
    }

    /// Issues instructions until it cannot go on or has issued `limit`, and counts them. As many [`Warp::step`]s would
    /// do the same.
    ///
    /// # Errors
    /// The fault of the instruction that its current group is at.
    pub fn run(&mut self, env: &mut Environment, stats: &mut Stats, limit: u64) -> Executed {
        let end = stats.warp_instructions.saturating_add(limit);
        if env.checker.is_none() && env.recorder.is_none() && !self.lacks_constants {
            let host = env.program.host;
            host.run(
                #[inline(always)]
                || self.issue(env, stats, limit),
            )?;
        }
        while stats.warp_instructions < end && self.state() == WarpState::Ready {
            let issued = self.step(env)?;
            let lanes = issued.mask.count_ones();
            stats.warp_instructions += 1;
            stats.thread_instructions += u64::from(lanes);
            self.look_for_rounds(env, lanes, stats, end);
        }
        Ok(())
    }

    /// Issues instructions when nobody looks on and all constants are there, until it cannot go on, has issued `limit`
    /// or is at one that is a fault before it does anything.
    #[inline(always)]
    fn issue(&mut self, env: &mut Environment, stats: &mut Stats, limit: u64) -> Executed {
        if self.state() != WarpState::Ready {
            return Ok(());
        }
        let program = env.program;
        let before = self.issued;
        let limit = limit.min(env.budget.saturating_sub(before));
        let (mut count, mut threads) = (0u64, 0u64);
        let (mut group, mut left) = self.position();
        let outcome = loop {
            let Some(op) = program.ops.get(group.pc as usize).filter(|_| count < limit) else {
                self.set_position(group.pc, left);
                break Ok(());
            };
            let mask = group.mask & self.registers.holds(op.guard);
            match &op.action {
                _ if mask == 0 => group.pc += 1,
                Action::Pure(body) => {
                    if !op.broadcasts.is_empty()
                        && let Err(stop) = self.broadcast(op, env.banks, mask)
                    {
                        self.set_position(group.pc, left);
                        break Err(stop);
                    }
                    body.run(&op.operands, &mut self.registers, mask);
                    group.pc += 1;
                }
                Action::Branch(target) if mask == group.mask && *target != NOWHERE => {
                    if *target <= group.pc {
                        // As the last of its turn.
                        left = 1;
                    }
                    group.pc = *target;
                }
                Action::Load(access) if self.load_together(op, env, *access, mask) => group.pc += 1,
                Action::Store(access) if self.store_together(op, env, *access, mask) => {
                    group.pc += 1;
                }
                _ => {
                    self.set_position(group.pc, left);
                    self.issued = before + count + 1;
                    if let Err(stop) = self.effect(op, env, mask) {
                        break Err(stop);
                    }
                    count += 1;
                    threads += u64::from(mask.count_ones());
                    if self.state() != WarpState::Ready {
                        break Ok(());
                    }
                    (group, left) = self.position();
                    continue;
                }
            }
            count += 1;
            threads += u64::from(mask.count_ones());
            left -= 1;
            if left == 0 {
                if self.is_split() {
                    self.set_position(group.pc, 0);
                    (group, left) = self.position();
                } else {
                    left = GROUP_TURN;
                }
            }
        };
        self.issued = before + count;
        stats.warp_instructions += count;
        stats.thread_instructions += threads;
        outcome
    }

    /// Everything that is not pure.
    fn effect(&mut self, op: &Op, env: &mut Environment, mask: u32) -> Executed {
        self.broadcast(op, env.banks, mask)?;
        match &op.action {
            Action::Illegal(reason) => {
                return Err(Stop::lanes(
                    FaultKind::IllegalInstruction((**reason).clone()),
                    mask,
                ));
            }
            Action::Pure(body) => body.run(&op.operands, &mut self.registers, mask),
            Action::PureOnce(body) => body.run_once(
                &op.operands,
                &mut self.registers,
                mask.trailing_zeros() as usize,
            ),
            Action::UniformLoad => {
                let (d, b) = (op.operand(Role::D), op.operand(Role::B));
                self.set_uniform(d, self.registers.words(b, 0));
            }
            Action::Load(access) => self.load(op, env, *access, mask)?,
            Action::LoadConstant { bank, access } => {
                self.load_constant(op, env, *bank, *access, mask)?
            }
            Action::Store(access) => self.store(op, env, *access, mask)?,
            Action::Atomic(atomic) => self.atomic(op, env, *atomic, mask)?,
            Action::Fence(_) => env.concurrency.fence(),
            Action::ReadSpecial(register) => {
                let values = self.special(*register, env, mask);
                let d = op.operand(Role::D);
                self.registers.set_column(d.column, &values, mask);
            }
            Action::ReadSpecialOnce(register) => {
                let values = self.special(*register, env, mask);
                let value = values[(mask.trailing_zeros() & 31) as usize];
                self.set_uniform(op.operand(Role::D), [value, 0, 0, 0]);
            }
            Action::ToUniform => {
                // The documents pick any active lane; the first, as the simulator is deterministic.
                let words = self
                    .registers
                    .words(op.operand(Role::B), mask.trailing_zeros() as usize);
                self.set_uniform(op.operand(Role::D), words);
            }
            Action::IndexedRead(offset) => {
                let source = self.indexed(op, *offset, mask)?;
                self.copy(op.operand(Role::D).column, source, mask);
            }
            Action::IndexedWrite(offset) => {
                let destination = self.indexed(op, *offset, mask)?;
                self.copy(destination, op.operand(Role::A).column, mask);
            }
            Action::Shuffle(mode) => self.shuffle(op, *mode, mask)?,
            Action::Vote(mode) => self.vote(op, *mode, mask),
            Action::Match => self.match_any(op, mask),
            _ => return self.control(op, env, mask),
        }
        self.advance();
        Ok(())
    }

    /// What moves the program counter otherwise than to the next instruction, or waits.
    fn control(&mut self, op: &Op, env: &mut Environment, mask: u32) -> Executed {
        let pc = self.group().pc;
        match op.action {
            Action::Branch(target) => self.jump(mask, self.inside(env, target, mask)?),
            Action::Indirect => {
                self.jump_to(op.operand(Role::A), 0, env, mask)?;
                if op.optype == Some(Optype::RET) {
                    self.calls.leave(mask);
                }
            }
            Action::IndirectFrom(base) => self.jump_to(op.operand(Role::A), base, env, mask)?,
            Action::Call(target) => {
                let target = self.inside(env, target, mask)?;
                self.link(op, pc, mask);
                self.calls.enter(mask, pc, &self.registers);
                self.jump(mask, target);
            }
            Action::CallIndirect => {
                let targets = self.targets(op.operand(Role::B), 0, env, mask)?;
                self.link(op, pc, mask);
                self.calls.enter(mask, pc, &self.registers);
                self.jump_lanes(mask, &targets);
            }
            Action::Exit => self.exit(mask),
            Action::Trap(code) => return Err(Stop::lanes(FaultKind::Trap { code }, mask)),
            Action::SetBarrier(number) => {
                self.set_barrier(number, mask);
                self.advance();
            }
            Action::Reconverge(number) => self.reconverge(number, mask),
            Action::ReadBarrier(number) => {
                let d = op.operand(Role::D).column;
                for lane in lanes(mask) {
                    self.registers.column_mut(d)[lane] = self.barrier(number, lane);
                }
                self.advance();
            }
            Action::WriteBarrier(number) => {
                let a = op.operand(Role::A).column;
                for lane in lanes(mask) {
                    self.write_barrier(number, lane, self.registers.column(a)[lane]);
                }
                self.advance();
            }
            Action::WarpSync => {
                let masks = self.registers.column(op.operand(Role::B).column);
                let wanted = masks[mask.trailing_zeros() as usize];
                let alike = lanes(mask)
                    .filter(|lane| masks[*lane] == wanted)
                    .fold(0, |m, lane| m | 1 << lane);
                // Lanes that wait for others have their turn after these.
                self.leave_here(mask & !alike);
                let mask = alike;
                // All lanes of a warp are all of the piece: the compiler has them meet in front of a barrier of the
                // block.
                let missing = wanted & self.apart;
                if missing != 0 && wanted != u32::MAX {
                    return Err(Stop::lanes(FaultKind::LanesApart { missing }, mask));
                }
                if let Some(checker) = env.checker.as_deref_mut() {
                    checker.warp_synchronised(mask, wanted);
                }
                self.warp_sync(mask, wanted);
            }
            Action::CtaBarrier if mask == self.live => self.wait_at_cta_barrier(),
            Action::CtaBarrier => {
                return Err(Stop::lanes(
                    FaultKind::BarrierDivergence {
                        arrived: mask,
                        live: self.live,
                    },
                    mask,
                ));
            }
            _ => self.advance(),
        }
        Ok(())
    }

    /// Fills the columns of sources that are the same for all lanes, as far as the launch has not done so.
    #[inline(always)]
    pub(super) fn broadcast(&mut self, op: &Op, banks: &Banks, mask: u32) -> Executed {
        if self.lacks_constants {
            for source in &op.constants {
                source
                    .fixed(banks)
                    .map_err(|kind| Stop::lanes(kind, mask))?;
            }
        }
        for broadcast in &op.broadcasts {
            let value = match broadcast.source {
                BroadcastSource::Uniform(number) => {
                    self.registers.uniform[usize::from(number) & 63]
                }
                fixed => fixed.fixed(banks).map_err(|kind| Stop::lanes(kind, mask))?,
            };
            *self.registers.column_mut(broadcast.column) = [value; LANES];
        }
        Ok(())
    }

    fn set_uniform(&mut self, d: Operand, words: [u32; 4]) {
        for (i, word) in words.into_iter().enumerate().take(d.words as usize) {
            self.registers.set_uniform(d.column as usize + i, word);
        }
    }

    fn copy(&mut self, destination: u16, source: u16, mask: u32) {
        for lane in lanes(mask) {
            let value = self.registers.column(source)[lane];
            self.registers.column_mut(destination)[lane] = value;
        }
    }

    /// The register of SETGPR and GETGPR (errata I-83: a signed sum, out of range is a fault).
    fn indexed(&self, op: &Op, offset: i32, mask: u32) -> Result<u16, Box<Stop>> {
        let base = self.registers.column(op.operand(Role::B).column)[0] as i32;
        let index = i64::from(base) + i64::from(offset);
        match u16::try_from(index) {
            Ok(number) if usize::from(number) < GENERAL => Ok(number),
            _ => Err(Stop::lanes(FaultKind::RegisterIndex { index }, mask)),
        }
    }

    /// The value of a special register in every lane.
    fn special(&self, register: SReg, env: &Environment, mask: u32) -> Column {
        let value = match register {
            SReg::SrTidX => return *self.registers.column(THREADS),
            SReg::SrTidY => return *self.registers.column(THREADS + 1),
            SReg::SrTidZ => return *self.registers.column(THREADS + 2),
            SReg::SrLaneid => return *self.registers.column(LANE),
            SReg::SrCtaidX => env.block[0],
            SReg::SrCtaidY => env.block[1],
            SReg::SrCtaidZ => env.block[2],
            SReg::SrNtidX => env.shape.block[0],
            SReg::SrNtidY => env.shape.block[1],
            SReg::SrNtidZ => env.shape.block[2],
            SReg::SrNctaidX => env.shape.grid[0],
            SReg::SrNctaidY => env.shape.grid[1],
            SReg::SrNctaidZ => env.shape.grid[2],
            SReg::SrWarpid => self.index,
            SReg::SrActivemask => mask,
            SReg::SrClocklo => env.clock.unwrap_or(self.issued) as u32,
        };
        [value; LANES]
    }

    /// A branch target inside the code.
    fn inside(&self, env: &Environment, target: u32, mask: u32) -> Result<u32, Box<Stop>> {
        if target == NOWHERE {
            let end = env.program.ops.len() as u64 * WORD_BYTES;
            return Err(Stop::lanes(FaultKind::BadJump { target: end }, mask));
        }
        Ok(target)
    }

    /// The instruction of each lane's code address, `base` plus an operand.
    fn targets(
        &self,
        operand: Operand,
        base: i64,
        env: &Environment,
        mask: u32,
    ) -> Result<[u32; LANES], Box<Stop>> {
        let mut targets = [0; LANES];
        for lane in lanes(mask) {
            let target = match operand.words {
                2 => self.registers.pair(operand, lane),
                _ => (base + i64::from(self.registers.pair(operand, lane) as i32)) as u64,
            };
            if target % WORD_BYTES != 0 || target / WORD_BYTES >= env.program.ops.len() as u64 {
                return Err(Stop::new(FaultKind::BadJump { target }, lane));
            }
            targets[lane] = (target / WORD_BYTES) as u32;
        }
        Ok(targets)
    }

    fn jump_to(&mut self, operand: Operand, base: i64, env: &Environment, mask: u32) -> Executed {
        let targets = self.targets(operand, base, env, mask)?;
        self.jump_lanes(mask, &targets);
        Ok(())
    }

    /// The return address of a call.
    fn link(&mut self, op: &Op, pc: u32, mask: u32) {
        let address = (u64::from(pc) + 1) * WORD_BYTES;
        for lane in lanes(mask) {
            self.registers.set_words(
                op.operand(Role::D),
                lane,
                [address as u32, (address >> 32) as u32, 0, 0],
            );
        }
    }
}
