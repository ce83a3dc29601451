//! The CTAs of a launch in turns: one after another, or those that wait for each other side by side.

use super::crowd::{Crowd, Standing};
use super::loaded::Loaded;
use crate::launch::{Fault, FaultKind, Interruption, LaunchRequest, Report, Stats};
use crate::properties::DeviceProperties;
use crate::sim::check::Checker;
use crate::sim::launch::cta::{Cta, Run, Turn, Watchers};
use crate::sim::launch::parallel::Tally;
use crate::sim::launch::shape::Shape;
use crate::sim::memory::global::Table;
use crate::sim::timing::profile::Recorder;
use crate::sim::weak::Weak;

/// CTAs whose room is kept for later launches, at most (assigned).
const ROOMS: usize = 8;
/// Bytes of such room, at most: registers of the largest CTA and some local memory (assigned).
const ROOM_BYTES: usize = 4 << 20;

/// CTAs that the machine holds together; their registers do not count.
pub(super) fn resident(run: &Run) -> u64 {
    let device = DeviceProperties::ASSIGNED;
    let together = device.occupancy(run.shape.threads() as u32, 0, run.shared_bytes);
    u64::from(device.multiprocessors) * u64::from(together.blocks.max(1))
}

impl Loaded {
    /// The fault of CTAs that have begun if none of them can go on: their warps go round or wait, and memory stays as
    /// it is. Others that could change it begin when one of these has ended; `ended` have.
    pub(in crate::sim) fn endless(
        &self,
        run: &Run,
        request: &LaunchRequest,
        checker: &Checker,
        running: &[Cta],
        ended: u64,
    ) -> Option<Fault> {
        let changes = checker.activity.changes();
        let first = running.first()?;
        if !running.iter().all(|cta| cta.is_endless(changes)) {
            return None;
        }
        let (count, blocks) = (running.len() as u64, run.shape.blocks());
        let next = ended + count;
        let kind = FaultKind::Endless {
            running: count,
            ended,
            blocks,
            next: (next < blocks).then(|| Shape::coordinates(run.shape.grid, next)),
        };
        Some(self.fault(first, run, request, first.stop(kind)))
    }
}

/// The CTAs of a launch in turns.
pub(super) struct Batch<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) run: &'a Run<'a>,
    pub(super) request: &'a LaunchRequest<'a>,
    /// CTAs of the launch.
    pub(super) blocks: u64,
    /// CTAs that have ended.
    pub(super) ended: u64,
    /// Instructions of those.
    pub(super) ended_instructions: u64,
    /// Room that ended CTAs have left.
    pub(super) free: Vec<Cta>,
    /// Rooms that were made.
    pub(super) rooms: usize,
    pub(super) checker: Option<Checker>,
    pub(super) recorder: Option<Recorder>,
    pub(super) weak: Option<Weak>,
    pub(super) report: Report,
    /// What other threads have done, where there are some.
    pub(super) tally: Option<&'a Tally>,
    /// Those who run other blocks of the launch meanwhile, where these may wait for each other.
    pub(super) crowd: Option<&'a Crowd>,
    /// Other threads run blocks of the launch at the same time.
    pub(super) is_beside: bool,
    /// Instructions that the tally or the crowd knows.
    pub(super) told: u64,
}

impl<'a> Batch<'a> {
    pub(super) fn new(
        loaded: &'a Loaded,
        run: &'a Run<'a>,
        request: &'a LaunchRequest<'a>,
        tally: Option<&'a Tally>,
    ) -> Batch<'a> {
        Batch {
            loaded,
            run,
            request,
            blocks: run.shape.blocks(),
            ended: 0,
            ended_instructions: 0,
            free: Vec::new(),
            rooms: 0,
            checker: None,
            recorder: None,
            weak: None,
            report: Report::default(),
            tally,
            crowd: None,
            is_beside: false,
            told: 0,
        }
    }

    /// Takes blocks and runs them one after another. Returns how many instructions that took; none where there is
    /// nothing left to do.
    pub(super) fn take(&mut self, tally: &Tally, global: &Table) -> Option<u64> {
        let blocks = tally.take()?;
        (self.ended_instructions, self.told) = (0, 0);
        self.report.stats = Stats::default();
        for block in blocks.clone() {
            self.ended = block;
            if self.is_over() {
                return None;
            }
            self.run(block..block + 1, global);
            if self.ended == block && self.report.fault.is_none() {
                // A lower block has faulted meanwhile.
                return None;
            }
            if let Some(fault) = self.report.fault.take() {
                tally.fault(block, self.report.stats, fault);
                return None;
            }
        }
        tally.done(blocks, self.report.stats);
        Some(self.report.stats.warp_instructions)
    }

    /// Runs CTAs that are resident together in turns until all have ended or one faults.
    pub(super) fn run(&mut self, numbers: std::ops::Range<u64>, global: &Table) {
        let mut cycles = 0;
        if let Some(recorder) = &mut self.recorder {
            recorder.base = self.report.stats.cycles;
        }
        let mut running: Vec<Cta> = Vec::new();
        for number in numbers {
            let mut cta = self.begin(number);
            if let Some(checker) = &mut self.checker {
                checker.start(cta.room, number);
            }
            if let Some(weak) = &mut self.weak {
                weak.start(cta.room, cta.warps.len());
            }
            // Those that end in their first turn make room for the next.
            let others = running.len() as u64;
            self.report.resident = self.report.resident.max(others + 1);
            if !self.turn(&mut cta, others, global, &mut cycles) {
                running.push(cta);
            } else {
                self.free.push(cta);
            }
            if self.report.fault.is_some() {
                break;
            }
        }
        while !running.is_empty() && self.report.fault.is_none() && !self.is_over() {
            let others = running.len() as u64 - 1;
            let mut still = Vec::with_capacity(running.len());
            if let Some(weak) = &mut self.weak {
                weak.shuffle(&mut running);
            }
            for mut cta in std::mem::take(&mut running) {
                let faulted = self.report.fault.is_some();
                if !faulted && self.turn(&mut cta, others, global, &mut cycles) {
                    self.free.push(cta);
                } else {
                    still.push(cta);
                }
            }
            running = still;
            self.end_endless(&running);
        }
        self.tell_waits(&running, global);
        for cta in &running {
            self.collect(cta, &mut cycles);
        }
        self.report.stats.cycles += cycles;
    }

    /// The CTA of this number, which begins.
    pub(super) fn begin(&mut self, number: u64) -> Cta {
        let mut cta = self.free.pop().unwrap_or_else(|| self.room());
        let block = Shape::coordinates(self.run.shape.grid, number);
        cta.start(self.run, block);
        cta
    }

    /// Ends the launch if none of the CTAs that have begun can go on.
    pub(super) fn end_endless(&mut self, running: &[Cta]) {
        let checker = self.checker.as_ref();
        let checker = checker.filter(|_| self.report.fault.is_none());
        let fault = checker.and_then(|checker| {
            (self.loaded).endless(self.run, self.request, checker, running, self.ended)
        });
        if fault.is_some() {
            self.report.fault = fault;
        }
    }

    /// Adds who waits for whom to the fault of a launch that could not go on.
    pub(super) fn tell_waits(&mut self, running: &[Cta], global: &Table) {
        let Some(fault) = &mut self.report.fault else {
            return;
        };
        self.loaded
            .add_waits(fault, self.request, running, self.checker.as_ref(), global);
    }

    /// Whether a lower block has faulted on another thread, or what the threads do has to be taken back.
    pub(super) fn is_over(&self) -> bool {
        let crossed = self.checker.as_ref().is_some_and(Checker::is_crossed);
        self.tally.is_some_and(|tally| {
            if crossed && self.is_beside {
                tally.abandon();
            }
            tally.is_over(self.ended)
        })
    }

    /// Room for one more CTA: that of an earlier launch if that fits.
    pub(super) fn room(&mut self) -> Cta {
        self.rooms += 1;
        let room = self.rooms - 1;
        let kept = self.loaded.rooms().pop().filter(|cta| cta.fits(self.run));
        match kept {
            Some(mut cta) => {
                cta.room = room;
                cta.prepared(self.run)
            }
            None => Cta::new(self.run, room),
        }
    }

    /// A CTA's turn, while so many others run; whether it has ended.
    pub(super) fn turn(
        &mut self,
        cta: &mut Cta,
        others: u64,
        global: &Table,
        cycles: &mut u64,
    ) -> bool {
        let limit = self.run.config.launch_limit();
        let blocks = self.blocks;
        let Standing {
            ended,
            running,
            issued,
        } = match self.crowd {
            Some(crowd) => crowd.standing(),
            None => Standing {
                ended: self.ended,
                running: others + 1,
                issued: self.report.stats.warp_instructions - self.ended_instructions,
            },
        };
        let stopped = if let Some(why) = self.run.interrupt.look() {
            cta.stop(match why {
                Interruption::Cancelled => FaultKind::Cancelled { ended, blocks },
                Interruption::TimeLimit(limit) => FaultKind::TimeLimit {
                    limit,
                    ended,
                    blocks,
                },
            })
        } else {
            let stats = &mut self.report.stats;
            let mut checker = self.checker.as_mut();
            if let Some(checker) = checker.as_deref_mut() {
                checker.enter(cta.room);
            }
            let mut recorder = self.recorder.as_mut();
            if let Some(recorder) = recorder.as_deref_mut() {
                recorder.block = cta.block;
            }
            let left = limit.saturating_sub(issued);
            let weak = self.weak.as_mut();
            let watchers = Watchers {
                checker,
                recorder,
                weak,
            };
            match cta.turn(self.run, global, stats, watchers, left) {
                Ok(Turn::Running) => {
                    self.count(None);
                    return false;
                }
                Ok(Turn::Ended) => {
                    if let Some(weak) = &mut self.weak {
                        weak.end_block(cta.room);
                    }
                    self.ended += 1;
                    self.ended_instructions += cta.issued();
                    if let Some(checker) = &mut self.checker {
                        checker.accesses = 0;
                    }
                    self.collect(cta, cycles);
                    self.count(Some(cta.issued()));
                    return true;
                }
                Ok(Turn::Exhausted) => cta.stop(FaultKind::LaunchBudgetExhausted {
                    limit,
                    running,
                    ended,
                    blocks,
                }),
                Err(stopped) => stopped,
            }
        };
        self.report.fault = Some(self.loaded.fault(cta, self.run, self.request, stopped));
        false
    }

    /// Tells who watches, after a turn; a block that has ended in it had issued so many instructions.
    pub(super) fn count(&mut self, ended: Option<u64>) {
        let issued = self.report.stats.warp_instructions;
        let new = issued - self.told;
        if let Some(crowd) = self.crowd {
            crowd.tell(self.request.progress, ended, new);
            self.told = issued;
            return;
        }
        match (self.request.progress, self.tally) {
            (Some(progress), Some(tally)) => {
                tally.tell(progress, ended.map_or(0, |_| 1), new);
                self.told = issued;
            }
            (Some(progress), None) => progress.count(self.ended, issued),
            (None, _) => {}
        }
    }

    /// Adds a CTA's cycles, hazards and findings to the report.
    pub(super) fn collect(&mut self, cta: &Cta, cycles: &mut u64) {
        let clock = cta.timing.as_ref().map_or(0, |timing| timing.cycle);
        *cycles = clock.max(*cycles);
        self.loaded.collect(cta, self.request, &mut self.report);
    }
}

impl Drop for Batch<'_> {
    /// Leaves its room to later launches. What checks look at is not kept.
    fn drop(&mut self) {
        if !self.run.config.check {
            let mut rooms = self.loaded.rooms();
            let kept = ROOMS.saturating_sub(rooms.len());
            let small = self.free.drain(..).filter(|cta| cta.bytes() <= ROOM_BYTES);
            rooms.extend(small.take(kept));
        }
    }
}
