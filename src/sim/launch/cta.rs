//! A CTA: its warps, their shared memory and their barrier.
//!
//! Functional mode gives every warp that can run a turn of [`WARP_TURN`] instructions; timed mode lets the clock
//! choose. A CTA gives control back after a turn of all its warps, so that CTAs that wait for each other can take turns
//! too.

use crate::isa::random::Random;
use crate::launch::Stats;
use crate::launch::{FaultKind, Interrupt};
use crate::sim::SimConfig;
use crate::sim::check::Checker;
use crate::sim::decode::program::{Program, WORD_BYTES};
use crate::sim::execute::stop::{Stop, Stopped};
use crate::sim::launch::shape::Shape;
use crate::sim::memory::bytes::Bytes;
use crate::sim::memory::global::Table;
use crate::sim::memory::local::Local;
use crate::sim::memory::strong::Concurrency;
use crate::sim::timing::profile::Recorder;
use crate::sim::timing::timed::Timing;
use crate::sim::warp::calls::Calls;
use crate::sim::warp::registers::{LANES, Registers};
use crate::sim::warp::{Warp, WarpState, random_turn};
use crate::sim::weak::Weak;
use crate::sim::{execute::Environment, memory::banks::Banks};
use std::hash::{Hash, Hasher};

/// Instructions of a warp before another one has its turn (assigned).
pub(in crate::sim) const WARP_TURN: u32 = 1024;

/// What all CTAs of a launch share.
pub struct Run<'a> {
    /// The code.
    pub program: &'a Program,
    /// Constants.
    pub banks: Banks,
    /// Sizes.
    pub shape: Shape,
    /// Index of the first instruction.
    pub entry: u32,
    /// Shared memory of a CTA in bytes.
    pub shared_bytes: u32,
    /// Local memory of a thread in bytes.
    pub stack_bytes: u32,
    /// Budget and switches.
    pub config: &'a SimConfig,
    /// Who else uses device memory while a block runs.
    pub concurrency: Concurrency,
    /// What may end it early.
    pub interrupt: Interrupt<'a>,
}

/// Who looks on.
#[derive(Default)]
pub struct Watchers<'a> {
    /// Checks, if they are on.
    pub checker: Option<&'a mut Checker>,
    /// What records issues, stalls and accesses of timed mode, if it is wanted.
    pub recorder: Option<&'a mut Recorder>,
    /// Memory that keeps no order, if it is wanted: it does not only look on.
    pub weak: Option<&'a mut Weak>,
}

impl Watchers<'_> {
    /// The same for a shorter time.
    fn reborrow(&mut self) -> Watchers<'_> {
        Watchers {
            checker: self.checker.as_deref_mut(),
            recorder: self.recorder.as_deref_mut(),
            weak: self.weak.as_deref_mut(),
        }
    }
}

/// How a turn of a CTA left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It can go on.
    Running,
    /// All its threads have ended.
    Ended,
    /// It has used all the instructions it was given.
    Exhausted,
}

/// A CTA.
pub struct Cta {
    /// Its coordinates.
    pub block: [u32; 3],
    /// Its warps.
    pub warps: Vec<Warp>,
    /// The clock, in timed mode.
    pub timing: Option<Timing>,
    /// Number of this room among those of the launch.
    pub room: usize,
    shared: Bytes,
    /// Where turns of warps are random, what decides on them.
    random: Option<Random>,
    /// Where its turn is, in functional mode.
    cursor: Cursor,
}

impl Hash for Cta {
    /// Without a clock, which only timed mode has.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.block, &self.warps, self.room).hash(state);
        (&self.shared, &self.random, self.cursor).hash(state);
    }
}

/// Where a turn of a CTA is.
#[derive(Clone, Copy, Debug, Default, Hash)]
struct Cursor {
    /// Turns of warps that have begun.
    begun: usize,
    /// The warp whose turn it is.
    warp: usize,
    /// Instructions that it may still issue.
    left: u64,
}

/// The number of each warp of 32 threads, once for each of its pieces, and the lanes of the piece
/// ([`SimConfig::warp_lanes`]).
pub(in crate::sim) fn pieces(run: &Run) -> impl Iterator<Item = (u32, u32)> {
    let threads = run.shape.threads() as usize;
    let width = run.config.warp_lanes.clamp(1, LANES as u32) as usize;
    let warps = (0..threads).step_by(LANES).enumerate();
    warps.flat_map(move |(number, start)| {
        let lanes = LANES.min(threads - start);
        (0..lanes).step_by(width).map(move |first| {
            let count = width.min(lanes - first);
            (number as u32, u32::MAX >> (LANES - count) << first)
        })
    })
}

impl Cta {
    /// Room for a CTA of a launch.
    pub fn new(run: &Run, room: usize) -> Cta {
        let warp = |_| Warp::new(Local::new(run.stack_bytes, run.config.check));
        Cta {
            block: [0; 3],
            warps: pieces(run).map(warp).collect(),
            timing: None,
            room,
            shared: Bytes::new(run.shared_bytes as usize, run.config.check),
            random: None,
            cursor: Cursor::default(),
        }
        .prepared(run)
    }

    /// With what its warps need for this launch.
    pub fn prepared(mut self, run: &Run) -> Cta {
        let threads = run.shape.threads();
        for (warp, (index, mask)) in self.warps.iter_mut().zip(pieces(run)) {
            warp.prepare(index, run.program, &run.banks, run.shape.block);
            let lanes = (threads - u64::from(index) * LANES as u64).min(LANES as u64);
            warp.apart = u32::MAX >> (LANES as u64 - lanes) & !mask;
        }
        self
    }

    /// Whether it has room for a CTA of a launch.
    pub fn fits(&self, run: &Run) -> bool {
        let local = |warp: &Warp| warp.local.fits(run.stack_bytes, run.config.check);
        self.warps.len() == pieces(run).count() && self.warps.iter().all(local)
    }

    /// Bytes that its warps take, about.
    pub fn bytes(&self) -> usize {
        let bytes = |warp: &Warp| Registers::BYTES + warp.local.bytes() + warp.calls.bytes();
        self.warps.iter().map(bytes).sum()
    }

    /// Starts the CTA of these coordinates.
    pub fn start(&mut self, run: &Run, block: [u32; 3]) {
        self.block = block;
        self.cursor = Cursor::default();
        self.shared.reset(run.shared_bytes as usize);
        for (warp, (_, mask)) in self.warps.iter_mut().zip(pieces(run)) {
            warp.start(mask, run.entry, run.program.registers);
        }
        let [x, y, z] = block.map(u64::from);
        let turns = run.config.turns.filter(|_| !run.config.timed);
        self.random = turns.map(|seed| Random::new(seed).fork(x).fork(y).fork(z));
        for (index, warp) in (1..).zip(&mut self.warps) {
            warp.take_turns(self.random.as_ref().map(|random| random.fork(index)));
        }
        match &mut self.timing {
            Some(timing) if run.config.timed => timing.reset(),
            timing => *timing = run.config.timed.then(|| Timing::new(self.warps.len())),
        }
    }

    /// Lets its warps keep what calls find again in registers.
    pub(in crate::sim) fn keep_registers(&mut self) {
        let calls = self.warps.iter_mut().map(|warp| &mut warp.calls);
        calls.for_each(Calls::keep_registers);
    }

    /// Instructions that its warps have issued.
    pub fn issued(&self) -> u64 {
        self.warps.iter().map(|warp| warp.issued).sum()
    }

    /// Runs for a while, at most `limit` instructions. Where the launch is to end early, that is less; what it did is
    /// no turn then.
    ///
    /// # Errors
    /// The first fault.
    pub fn turn(
        &mut self,
        run: &Run,
        global: &Table,
        stats: &mut Stats,
        mut watchers: Watchers,
        limit: u64,
    ) -> Result<Turn, Stopped> {
        let end = stats.warp_instructions.saturating_add(limit);
        let weak = watchers.weak.take();
        match (self.timing.take(), weak) {
            (_, Some(weak)) => self.weak_turn(run, global, stats, weak, limit)?,
            (Some(mut timing), None) => {
                let watchers = watchers.reborrow();
                let result = self.timed_turn(run, global, stats, watchers, &mut timing, limit);
                self.timing = Some(timing);
                result?;
            }
            (None, None) => {
                while let Some((index, left)) = self.next_warp() {
                    if run.interrupt.look().is_some() {
                        return Ok(Turn::Running);
                    }
                    let room = end - stats.warp_instructions;
                    if room == 0 {
                        return Ok(Turn::Exhausted);
                    }
                    let checker = watchers.checker.as_deref_mut();
                    self.run_warp(index, run, global, stats, checker, left.min(room))?;
                }
            }
        }
        if settle(&mut self.warps, watchers.checker)? {
            Ok(Turn::Ended)
        } else if stats.warp_instructions == end {
            Ok(Turn::Exhausted)
        } else {
            Ok(Turn::Running)
        }
    }

    /// In functional mode, the warp that issues next in this turn, and how many instructions it may; none where the
    /// turn is over, and the next one begins.
    pub(in crate::sim) fn next_warp(&mut self) -> Option<(usize, u64)> {
        loop {
            let Cursor { begun, warp, left } = self.cursor;
            if left > 0 && self.warps[warp].state() == WarpState::Ready {
                return Some((warp, left));
            }
            if begun == self.warps.len() {
                self.cursor = Cursor::default();
                return None;
            }
            let (warp, most) = match &mut self.random {
                None => (begun, WARP_TURN),
                Some(random) => (random.below(self.warps.len()), random_turn(random)),
            };
            self.cursor = Cursor {
                begun: begun + 1,
                warp,
                left: most.into(),
            };
        }
    }

    /// What follows a turn of all its warps: opens their barrier if they wait at it. Whether all threads have ended.
    ///
    /// # Errors
    /// Warps that nothing can help.
    pub(in crate::sim) fn settle(
        &mut self,
        checker: Option<&mut Checker>,
    ) -> Result<bool, Stopped> {
        settle(&mut self.warps, checker)
    }

    /// Its shared memory.
    pub(in crate::sim) fn shared(&self) -> &Bytes {
        &self.shared
    }

    /// Where it is, in functional mode.
    pub(in crate::sim) fn copy(&self) -> Cta {
        Cta {
            block: self.block,
            warps: self.warps.clone(),
            timing: None,
            room: self.room,
            shared: self.shared.clone(),
            random: self.random.clone(),
            cursor: self.cursor,
        }
    }

    /// Whether none of its warps can go on before memory changes, which has changed so often.
    pub fn is_endless(&self, changes: u64) -> bool {
        self.warps.iter().all(|warp| match warp.state() {
            WarpState::Ready => warp.rounds.is_endless(changes),
            _ => true,
        })
    }

    /// A stop of a CTA that has not ended, for a reason that is none of its instructions'.
    pub fn stop(&self, kind: FaultKind) -> Stopped {
        let ready = |warp: &Warp| warp.state() == WarpState::Ready;
        let live = |warp: &Warp| warp.state() != WarpState::Done;
        let warp = self.warps.iter().position(ready);
        let warp = warp.or_else(|| self.warps.iter().position(live));
        let group = warp.map(|warp| self.warps[warp].group());
        Stopped {
            stop: Stop::lanes(kind, group.map_or(1, |group| group.mask)),
            warp: warp.unwrap_or(0),
            pc: group.map_or(0, |group| group.pc),
        }
    }

    /// Lets the warp whose turn it is issue so many instructions at most.
    ///
    /// # Errors
    /// The first fault.
    pub(in crate::sim) fn run_warp(
        &mut self,
        index: usize,
        run: &Run,
        global: &Table,
        stats: &mut Stats,
        checker: Option<&mut Checker>,
        limit: u64,
    ) -> Result<(), Stopped> {
        let warp = &mut self.warps[index];
        let mut env = Environment {
            program: run.program,
            banks: &run.banks,
            shape: run.shape,
            budget: run.config.warp_limit(),
            block: self.block,
            global,
            shared: &mut self.shared,
            clock: None,
            checker,
            recorder: None,
            concurrency: run.concurrency,
        };
        let before = stats.warp_instructions;
        warp.run(&mut env, stats, limit).map_err(|stop| Stopped {
            stop,
            warp: index,
            pc: warp.group().pc,
        })?;
        self.cursor.left -= stats.warp_instructions - before;
        Ok(())
    }

    fn weak_turn(
        &mut self,
        run: &Run,
        global: &Table,
        stats: &mut Stats,
        weak: &mut Weak,
        limit: u64,
    ) -> Result<(), Stopped> {
        let mut env = Environment {
            program: run.program,
            banks: &run.banks,
            shape: run.shape,
            budget: run.config.budget,
            block: self.block,
            global,
            shared: &mut self.shared,
            clock: None,
            checker: None,
            recorder: None,
            concurrency: run.concurrency,
        };
        weak.turn(self.room, &mut self.warps, &mut env, stats, limit)
    }

    fn timed_turn(
        &mut self,
        run: &Run,
        global: &Table,
        stats: &mut Stats,
        watchers: Watchers,
        timing: &mut Timing,
        limit: u64,
    ) -> Result<(), Stopped> {
        let ops = &run.program.ops;
        let next = |warp: &Warp| {
            (warp.state() == WarpState::Ready)
                .then(|| ops.get(warp.group().pc as usize))
                .flatten()
        };
        // A program counter outside of the code has no timing; stepping reports it.
        let is_lost = |warp: &Warp| warp.state() == WarpState::Ready && next(warp).is_none();
        let warps = &mut self.warps[..];
        let mut lost = warps.iter().position(is_lost);
        for (index, warp) in warps.iter().enumerate() {
            timing.plan(index, next(warp));
        }
        let mut env = Environment {
            program: run.program,
            banks: &run.banks,
            shape: run.shape,
            budget: run.config.warp_limit(),
            block: self.block,
            global,
            shared: &mut self.shared,
            clock: None,
            checker: watchers.checker,
            recorder: watchers.recorder,
            concurrency: run.concurrency,
        };
        for count in 0..(u64::from(WARP_TURN) * warps.len() as u64).min(limit) {
            if count % u64::from(WARP_TURN) == 0 && run.interrupt.look().is_some() {
                return Ok(());
            }
            let Some(index) = lost.or_else(|| timing.select()) else {
                return Ok(());
            };
            let warp = &mut warps[index];
            let group = warp.group();
            let op = ops.get(group.pc as usize);
            if let Some(op) = op {
                let mask = group.mask & warp.registers.holds(op.guard);
                timing.before(index, warp, op, group.mask, mask);
            }
            env.clock = Some(timing.cycle);
            let issued = warp.step(&mut env).map_err(|stop| Stopped {
                stop,
                warp: index,
                pc: group.pc,
            })?;
            stats.warp_instructions += 1;
            let lanes = issued.mask.count_ones();
            stats.thread_instructions += u64::from(lanes);
            let now = stats.warp_instructions;
            warp.look_for_rounds(&mut env, lanes, stats, now);
            if let Some(op) = op {
                let recorder = env.recorder.as_deref_mut();
                timing.after(index, warp, op, (issued.pc, issued.mask), recorder);
            }
            let following = next(warp);
            timing.plan(index, following);
            if following.is_some() {
                continue;
            }
            if is_lost(warp) {
                lost = lost.map_or(Some(index), |other| Some(other.min(index)));
            } else if warps.iter().all(|w| w.state() != WarpState::Ready) {
                settle(warps, env.checker.as_deref_mut())?;
                timing.open_barrier();
                lost = warps.iter().position(is_lost);
                for (index, warp) in warps.iter().enumerate() {
                    timing.plan(index, next(warp));
                }
            }
        }
        Ok(())
    }
}

/// Opens the barrier when every live warp waits at it; finds warps that nothing can help. Returns whether all threads
/// have ended.
fn settle(warps: &mut [Warp], checker: Option<&mut Checker>) -> Result<bool, Stopped> {
    if let Some(index) = warps.iter().position(|w| w.state() == WarpState::Stuck) {
        let warp = &warps[index];
        let stop = Stop::lanes(
            FaultKind::Deadlock {
                waiting: warp.waiting(),
            },
            warp.waiting(),
        );
        return Err(Stopped {
            stop,
            warp: index,
            pc: warp.group().pc,
        });
    }
    let waiting = |w: &Warp| matches!(w.state(), WarpState::AtCtaBarrier | WarpState::Done);
    if warps.iter().all(|w| w.state() == WarpState::Done) {
        return Ok(true);
    }
    if warps.iter().all(waiting) {
        meet(warps)?;
        if let Some(checker) = checker {
            let mut waiting = warps.iter().filter(|w| w.live != 0);
            let first = waiting.next().expect("a warp waits");
            let live = warps.iter().map(|w| w.live.count_ones()).sum();
            let lane = first.live.trailing_zeros();
            checker.cta_synchronised(first.index, lane, first.group().pc, live);
        }
        warps.iter_mut().for_each(Warp::open_cta_barrier);
    }
    Ok(false)
}

/// All live warps wait at a barrier: a fault unless it is the same for all.
fn meet(warps: &[Warp]) -> Result<(), Stopped> {
    let mut waiting = warps.iter().filter(|w| w.live != 0);
    let Some(first) = waiting.next() else {
        return Ok(());
    };
    let pc = first.group().pc;
    match waiting.find(|w| w.group().pc != pc) {
        None => Ok(()),
        Some(other) => {
            let kind = FaultKind::DifferentBarriers {
                other_thread: first.index * LANES as u32 + first.live.trailing_zeros(),
                other_pc: pc * WORD_BYTES as u32,
            };
            Err(Stopped {
                stop: Stop::lanes(kind, other.live),
                warp: other.index as usize,
                pc: other.group().pc,
            })
        }
    }
}
