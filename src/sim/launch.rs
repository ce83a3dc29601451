//! Launching a kernel: constant bank 0, the order of CTAs, what is reported.
//!
//! CTAs run one after another in the order of their numbers, or on several threads as if they did ([`super::parallel`]). Where the program has atomics on global memory, CTAs may wait for each
//! other: then as many as the machine's multiprocessors hold are resident together and take turns. Either way the same launch on the
//! same memory gives the same result, unless the user does without ([`concurrent`]). The state of a CTA is made when it begins and passed on when it ends, so a launch takes memory for
//! those CTAs only that really wait.

mod concurrent;

use self::concurrent::Crowd;
use super::SimConfig;
use super::check::{Checker, Outcome, RawFinding, Spot, Undo};
use super::cta::{Cta, Run, Stopped, Turn, Watchers};
use super::decoded::{Program, WORD_BYTES};
use super::execute::Banks;
use super::global::Table;
use super::memory::MAX_SHARED;
use super::parallel::{ALONE, Tally, threads};
use super::profile::Recorder;
use super::registers::{GENERAL, LANES};
use super::shape::Shape;
use super::specialised::Decoding;
use super::strong::Concurrency;
use super::warp::Warp;
use super::weak::Weak;
use crate::abi::{MAX_LOCAL, MAX_THREADS, bank0};
use crate::isa::decode;
use crate::launch::is_library;
use crate::launch::profile::{Counts, InstructionProfile, Profile};
use crate::launch::trace::Trace;
use crate::launch::{
    Fault, FaultKind, Finding, Hazard, Image, Interrupt, Interruption, LaunchError, LaunchRequest,
    MAX_GRID, Place, Report, Stats,
};
use crate::locations::Location;
use crate::locations::name_of;
use crate::properties::DeviceProperties;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// First parameter in constant bank 0.
const PARAMETERS: usize = bank0::PARAMETERS as usize;
/// Bytes of parameters, at most.
const MAX_PARAMETERS: usize = bank0::MAX_PARAMETERS as usize;
/// Reports of one kind that are kept with their place.
const KEPT: usize = 100;

/// A loaded module.
pub struct Loaded {
    /// Code, constants, names and lines.
    pub image: Image,
    /// The code decoded.
    pub program: Program,
    /// Room that the CTAs of earlier launches have left.
    rooms: Mutex<Vec<Cta>>,
}

/// CTAs whose room is kept for later launches, at most (assigned).
const ROOMS: usize = 8;
/// Bytes of such room, at most: registers of the largest CTA and some local memory (assigned).
const ROOM_BYTES: usize = 4 << 20;

impl Loaded {
    /// Decodes an image.
    pub fn new(image: Image, config: &SimConfig) -> Loaded {
        Loaded {
            program: Program::new(&image.words, Decoding::new(config.semantics, config.simd)),
            image,
            rooms: Mutex::default(),
        }
    }

    /// The rooms, which are whole also after a panic of who held them.
    fn rooms(&self) -> MutexGuard<'_, Vec<Cta>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a kernel to its end or first fault.
    ///
    /// # Errors
    /// When the request is not possible; nothing has run then.
    pub fn launch(
        &self,
        request: &LaunchRequest,
        global: &Table,
        config: &SimConfig,
    ) -> Result<Report, LaunchError> {
        let shape = Shape {
            grid: request.grid,
            block: request.block,
        };
        if request.block.contains(&0) || shape.threads() > MAX_THREADS {
            return Err(LaunchError::Block(request.block));
        }
        if request
            .grid
            .iter()
            .zip(MAX_GRID)
            .any(|(&extent, most)| extent == 0 || extent > most)
        {
            return Err(LaunchError::Grid(request.grid));
        }
        let shared = u64::from(request.static_shared) + u64::from(request.dynamic_shared);
        if shared > u64::from(MAX_SHARED) {
            return Err(LaunchError::Shared(shared));
        }
        if request.parameters.len() > MAX_PARAMETERS {
            return Err(LaunchError::Parameters(request.parameters.len()));
        }
        let entry = request.entry / WORD_BYTES as u32;
        if u64::from(request.entry) % WORD_BYTES != 0 || entry as usize >= self.program.ops.len() {
            return Err(LaunchError::Entry(request.entry));
        }
        if request.local_bytes > MAX_LOCAL {
            return Err(LaunchError::Local(request.local_bytes));
        }
        let stack_bytes = config
            .stack_bytes
            .min(MAX_LOCAL)
            .max(request.local_bytes)
            .next_multiple_of(16);
        let run = Run {
            program: &self.program,
            banks: Banks::of_launch(
                launch_bank(request, stack_bytes),
                self.image.constants.clone(),
            ),
            shape,
            entry,
            shared_bytes: shared as u32,
            stack_bytes,
            config,
            concurrency: self.concurrency(config, shape.blocks()),
            interrupt: Interrupt::new(request.progress, request.time_limit),
        };
        Ok(self.run(&run, request, global))
    }

    fn run(&self, run: &Run, request: &LaunchRequest, global: &Table) -> Report {
        let config = run.config;
        let blocks = run.shape.blocks();
        let threads = (threads(config.threads) as u64).min(blocks) as usize;
        if run.concurrency != Concurrency::Alone {
            return self.concurrent(run, request, global, threads);
        }
        let in_order = config.timed || config.weak.is_some();
        if threads > 1
            && !in_order
            && !self.program.is_ordered
            && let Some(report) = self.parallel(run, request, global, threads)
        {
            return report;
        }
        self.alone(run, request, global)
    }

    /// Runs all blocks on this thread.
    fn alone(&self, run: &Run, request: &LaunchRequest, global: &Table) -> Report {
        let config = run.config;
        let blocks = run.shape.blocks();
        let Program {
            global_atomics,
            is_ordered,
            ..
        } = self.program;
        let resident = if is_ordered || global_atomics && config.timed || config.weak.is_some() {
            resident(run)
        } else {
            1
        };
        if let Some(progress) = request.progress {
            progress.begin(blocks);
        }
        let mut batch = Batch::new(self, run, request, None);
        batch.checker = (config.check)
            .then(|| Checker::new(run.shape, &self.image, &self.program, resident == 1, None));
        batch.recorder = (config.timed)
            .then(|| Recorder::new(config, self.program.ops.len()))
            .flatten();
        batch.weak = config.weak.map(Weak::new);
        let mut first = 0;
        while first < blocks && batch.report.fault.is_none() {
            let count = resident.min(blocks - first);
            batch.run(first..first + count, global);
            first += count;
        }
        if let Some(weak) = &mut batch.weak {
            weak.end(global);
        }
        let mut report = std::mem::take(&mut batch.report);
        let findings = batch.checker.take().map_or(Vec::new(), |c| c.findings);
        report.findings = self.findings(request, findings);
        report.stats.faults = u64::from(report.fault.is_some());
        if let Some(recorder) = batch.recorder.take() {
            self.tell(recorder, request, &mut report);
        }
        report
    }

    /// The first findings, with their places.
    fn findings(&self, request: &LaunchRequest, found: Vec<RawFinding>) -> Vec<Finding> {
        let found = found.into_iter().take(KEPT);
        let with_place = |finding: RawFinding| {
            let place = |spot: Spot| self.place(request, spot.block, spot.thread, spot.pc);
            Finding {
                kind: finding.kind,
                place: place(finding.at),
                other: finding.other.map(place),
            }
        };
        found.map(with_place).collect()
    }

    /// Runs blocks that do not wait for each other on so many threads; on one until it is worth more. None if that was taken back: the checks
    /// have found that blocks use what others write, and what they find then is up to the order of the blocks.
    fn parallel(
        &self,
        run: &Run,
        request: &LaunchRequest,
        global: &Table,
        threads: usize,
    ) -> Option<Report> {
        if let Some(progress) = request.progress {
            progress.begin(run.shape.blocks());
        }
        let tally = Tally::new(run.shape.blocks(), threads);
        let undo = (run.config.check).then(|| Arc::new(Undo::new(global)));
        let checker = || {
            let undo = undo.clone()?;
            let (image, program) = (&self.image, &self.program);
            Some(Checker::new(run.shape, image, program, true, Some(undo)))
        };
        let checkers = Mutex::new(Vec::new());
        let leave = |batch: &mut Batch| {
            let mut checkers = checkers.lock().unwrap_or_else(PoisonError::into_inner);
            checkers.extend(batch.checker.take());
        };
        let mut batch = Batch::new(self, run, request, Some(&tally));
        batch.checker = checker();
        let mut alone = 0;
        while alone < ALONE
            && let Some(issued) = batch.take(&tally, global)
        {
            alone += issued;
        }
        // Where blocks race already, one thread finds all that there is.
        let others = match &batch.checker {
            Some(checker) if checker.is_crossed() => 0,
            _ => (threads as u64 - 1).min(tally.left()),
        };
        batch.is_beside = others > 0;
        thread::scope(|scope| {
            for _ in 0..others {
                let work = || {
                    let mut batch = Batch::new(self, run, request, Some(&tally));
                    batch.checker = checker();
                    batch.is_beside = true;
                    while batch.take(&tally, global).is_some() {}
                    leave(&mut batch);
                };
                // Where the host has no more threads, those that there are do the work.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
            while batch.take(&tally, global).is_some() {}
        });
        let resident = batch.report.resident;
        leave(&mut batch);
        drop(batch);
        let (mut stats, fault) = tally.outcome();
        let mut findings = Vec::new();
        if let Some(undo) = undo {
            let last = fault.as_ref().map_or(u64::MAX, |(block, _)| *block);
            let checkers = checkers
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner);
            let cut = fault.as_ref().is_some_and(|(_, fault)| {
                matches!(
                    fault.kind,
                    FaultKind::Cancelled { .. } | FaultKind::TimeLimit { .. }
                )
            });
            match Checker::merge(checkers, last, cut, &undo, global) {
                Outcome::Found(found) => findings = self.findings(request, found),
                Outcome::Undone => return None,
            }
        }
        stats.faults = u64::from(fault.is_some());
        Some(Report {
            stats,
            fault: fault.map(|(_, fault)| fault),
            resident,
            findings,
            ..Report::default()
        })
    }

    /// Adds what was recorded to the report.
    fn tell(&self, recorder: Recorder, request: &LaunchRequest, report: &mut Report) {
        let stats = report.stats;
        if let Some(counts) = recorder.counts {
            let spent = |counts: &Counts| counts.issues > 0 || counts.stalls.total() > 0;
            let all = (0u32..).zip(counts).filter(|(_, counts)| spent(counts));
            let instructions = all.map(|(pc, counts)| {
                let address = pc * WORD_BYTES as u32;
                let location = self.image.line_at(address).map(|line| line.location);
                let function = self.image.function_at(address);
                InstructionProfile {
                    address,
                    text: self.text(pc),
                    function: function.map(|f| f.name.clone()),
                    offset: address - function.map_or(0, |f| f.address),
                    file: location
                        .and_then(|at| name_of(&self.image.files, at.file))
                        .map(String::from),
                    line: location.map_or(0, |at| at.line),
                    counts,
                }
            });
            report.profile = Some(Profile {
                kernel: request.kernel.to_string(),
                cycles: stats.cycles,
                instructions: instructions.collect(),
            });
        }
        if let Some(events) = recorder.events {
            let named: BTreeSet<u32> = events.iter().map(|event| event.what.address()).collect();
            let text = |address| (address, self.text(address / WORD_BYTES as u32));
            report.trace = Some(Trace {
                kernel: request.kernel.to_string(),
                cycles: stats.cycles,
                warp_instructions: stats.warp_instructions,
                texts: named.into_iter().map(text).collect(),
                events,
                dropped: recorder.dropped,
            });
        }
    }

    pub(super) fn place(
        &self,
        request: &LaunchRequest,
        block: [u32; 3],
        thread: u32,
        pc: u32,
    ) -> Place {
        let address = pc * WORD_BYTES as u32;
        Place {
            kernel: request.kernel.to_string(),
            function: self.image.function_at(address).map(|f| f.name.clone()),
            block,
            thread: Shape::coordinates(request.block, u64::from(thread)),
            pc: address,
            instruction: self.text(pc),
            source: self.image.source_at(address),
            location: (self.image.line_at(address))
                .map_or(Location::default(), |line| line.location),
            library: is_library(address, &self.image),
        }
    }

    /// An instruction as text.
    fn text(&self, pc: u32) -> String {
        match self.program.words.get(pc as usize) {
            None => "(no instruction)".to_string(),
            Some(word) => match decode(*word) {
                Ok((inst, _)) => inst.to_string(),
                Err(_) => format!("{word:#034x}"),
            },
        }
    }

    fn fault(&self, cta: &Cta, run: &Run, request: &LaunchRequest, stopped: Stopped) -> Fault {
        let Stopped { stop, warp, pc } = stopped;
        let lane = usize::from(stop.lane);
        let Warp {
            registers, index, ..
        } = &cta.warps[warp];
        let values = (0..GENERAL.min(run.program.registers))
            .map(|n| (n as u8, registers.column(n as u16)[lane]));
        let predicates = registers
            .predicates
            .iter()
            .take(super::registers::PT)
            .enumerate();
        Fault {
            kind: stop.kind,
            place: self.place(request, cta.block, index * LANES as u32 + lane as u32, pc),
            registers: values.filter(|v| v.1 != 0).collect(),
            predicates: predicates.fold(0, |set, (i, mask)| set | ((mask >> lane & 1) as u8) << i),
            calls: cta.warps[warp].calls.frames(lane, &self.image),
            depth: cta.warps[warp].calls.depth(lane),
            waits: Vec::new(),
        }
    }

    /// Adds who waits for whom to a fault, if it is that these blocks could not go on.
    fn add_waits(
        &self,
        fault: &mut Fault,
        request: &LaunchRequest,
        running: &[Cta],
        checker: Option<&Checker>,
        global: &Table,
    ) {
        let is_stuck = matches!(
            fault.kind,
            FaultKind::Endless { .. }
                | FaultKind::Deadlock { .. }
                | FaultKind::BudgetExhausted { .. }
                | FaultKind::LaunchBudgetExhausted { .. }
        );
        if is_stuck {
            fault.waits = self.waits(request, running, checker, global);
        }
    }

    /// Adds a CTA's hazards to the report.
    fn collect(&self, cta: &Cta, request: &LaunchRequest, report: &mut Report) {
        if let Some(timing) = &cta.timing {
            report.stats.hazards += timing.count;
            for hazard in &timing.hazards {
                let earlier = (
                    hazard.earlier * WORD_BYTES as u32,
                    self.text(hazard.earlier),
                );
                let known = |h: &Hazard| {
                    (h.kind, h.register, h.place.pc, h.earlier.0)
                        == (
                            hazard.kind,
                            hazard.register,
                            hazard.pc * WORD_BYTES as u32,
                            earlier.0,
                        )
                };
                if report.hazards.len() < KEPT && !report.hazards.iter().any(known) {
                    let place = self.place(request, cta.block, hazard.thread, hazard.pc);
                    report.hazards.push(Hazard {
                        kind: hazard.kind,
                        register: hazard.register,
                        place,
                        earlier,
                        cycle: hazard.cycle,
                    });
                }
            }
        }
    }
}

/// CTAs that the machine holds together; their registers do not count.
fn resident(run: &Run) -> u64 {
    let device = DeviceProperties::ASSIGNED;
    let together = device.occupancy(run.shape.threads() as u32, 0, run.shared_bytes);
    u64::from(device.multiprocessors) * u64::from(together.blocks.max(1))
}

/// How far a launch is.
struct Standing {
    /// CTAs that have ended.
    ended: u64,
    /// CTAs that have begun and not ended.
    running: u64,
    /// Instructions that those have issued.
    issued: u64,
}

/// The CTAs of a launch in turns.
struct Batch<'a> {
    loaded: &'a Loaded,
    run: &'a Run<'a>,
    request: &'a LaunchRequest<'a>,
    /// CTAs of the launch.
    blocks: u64,
    /// CTAs that have ended.
    ended: u64,
    /// Instructions of those.
    ended_instructions: u64,
    /// Room that ended CTAs have left.
    free: Vec<Cta>,
    /// Rooms that were made.
    rooms: usize,
    checker: Option<Checker>,
    recorder: Option<Recorder>,
    weak: Option<Weak>,
    report: Report,
    /// What other threads have done, where there are some.
    tally: Option<&'a Tally>,
    /// Those who run other blocks of the launch meanwhile, where these may wait for each other.
    crowd: Option<&'a Crowd>,
    /// Other threads run blocks of the launch at the same time.
    is_beside: bool,
    /// Instructions that the tally or the crowd knows.
    told: u64,
}

impl<'a> Batch<'a> {
    fn new(
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

    /// Takes blocks and runs them one after another. Returns how many instructions that took; none where there is nothing left to do.
    fn take(&mut self, tally: &Tally, global: &Table) -> Option<u64> {
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
    fn run(&mut self, numbers: std::ops::Range<u64>, global: &Table) {
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
    fn begin(&mut self, number: u64) -> Cta {
        let mut cta = self.free.pop().unwrap_or_else(|| self.room());
        let block = Shape::coordinates(self.run.shape.grid, number);
        cta.start(self.run, block);
        cta
    }

    /// Ends the launch if none of the CTAs that have begun can go on: their warps go round or wait, and memory stays as it is. Others that could
    /// change it begin when one of these has ended.
    fn end_endless(&mut self, running: &[Cta]) {
        let Some(checker) = self
            .checker
            .as_ref()
            .filter(|_| self.report.fault.is_none())
        else {
            return;
        };
        let changes = checker.activity.changes();
        let Some(first) = running.first() else {
            return;
        };
        if !running.iter().all(|cta| cta.is_endless(changes)) {
            return;
        }
        let (count, ended, blocks) = (running.len() as u64, self.ended, self.blocks);
        let next = ended + count;
        let kind = FaultKind::Endless {
            running: count,
            ended,
            blocks,
            next: (next < blocks).then(|| Shape::coordinates(self.run.shape.grid, next)),
        };
        let fault = self
            .loaded
            .fault(first, self.run, self.request, first.stop(kind));
        self.report.fault = Some(fault);
    }

    /// Adds who waits for whom to the fault of a launch that could not go on.
    fn tell_waits(&mut self, running: &[Cta], global: &Table) {
        let Some(fault) = &mut self.report.fault else {
            return;
        };
        self.loaded
            .add_waits(fault, self.request, running, self.checker.as_ref(), global);
    }

    /// Whether a lower block has faulted on another thread, or what the threads do has to be taken back.
    fn is_over(&self) -> bool {
        let crossed = self.checker.as_ref().is_some_and(Checker::is_crossed);
        self.tally.is_some_and(|tally| {
            if crossed && self.is_beside {
                tally.abandon();
            }
            tally.is_over(self.ended)
        })
    }

    /// Room for one more CTA: that of an earlier launch if that fits.
    fn room(&mut self) -> Cta {
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
    fn turn(&mut self, cta: &mut Cta, others: u64, global: &Table, cycles: &mut u64) -> bool {
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
    fn count(&mut self, ended: Option<u64>) {
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
    fn collect(&mut self, cta: &Cta, cycles: &mut u64) {
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

/// Constant bank 0 of a launch.
pub(crate) fn launch_bank(request: &LaunchRequest, stack_bytes: u32) -> Vec<u8> {
    let mut bank = vec![0; PARAMETERS + request.parameters.len().next_multiple_of(16)];
    let mut put = |offset: u32, value: u32| {
        bank[offset as usize..offset as usize + 4].copy_from_slice(&value.to_le_bytes());
    };
    for (axis, offset) in [0, 4, 8].into_iter().enumerate() {
        put(bank0::BLOCK_SIZE + offset, request.block[axis]);
        put(bank0::GRID_SIZE + offset, request.grid[axis]);
    }
    put(bank0::DYNAMIC_SHARED, request.dynamic_shared);
    put(bank0::STACK_POINTER, stack_bytes);
    bank[PARAMETERS..PARAMETERS + request.parameters.len()].copy_from_slice(request.parameters);
    bank
}
