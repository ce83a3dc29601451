//! Launching a kernel: constant bank 0, the order of CTAs, what is reported.
//!
//! CTAs run one after another in the order of their numbers, or on several threads as if they did
//! ([`crate::sim::launch::parallel`]). Where the program has atomics on global memory, CTAs may wait for each other:
//! then as many as the machine's multiprocessors hold are resident together and take turns. Either way the same launch
//! on the same memory gives the same result, unless the user does without ([`concurrent`]). The state of a CTA is made
//! when it begins and passed on when it ends, so a launch takes memory for those CTAs only that really wait.

pub(crate) mod cta;
pub(crate) mod parallel;
pub(crate) mod shape;
pub(crate) mod waits;

mod batch;
mod concurrent;
mod crowd;
mod loaded;
mod report;

pub use self::loaded::Loaded;

use self::batch::{Batch, resident};
use super::SimConfig;
use super::check::{Checker, Outcome, Undo};
use super::memory::MAX_SHARED;
use super::memory::banks::Banks;
use super::weak::Weak;
use crate::abi::{MAX_LOCAL, MAX_THREADS, bank0};
use crate::launch::{FaultKind, Interrupt, LaunchError, LaunchRequest, MAX_GRID, Report};
use crate::sim::decode::program::{Program, WORD_BYTES};
use crate::sim::launch::cta::Run;
use crate::sim::launch::parallel::{ALONE, Tally, threads};
use crate::sim::launch::shape::Shape;
use crate::sim::memory::global::Table;
use crate::sim::memory::strong::Concurrency;
use crate::sim::timing::profile::Recorder;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// What a launch takes, once it is known to be possible.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) shape: Shape,
    /// Index of the first instruction.
    pub(super) entry: u32,
    /// Shared memory of a CTA.
    pub(super) shared_bytes: u32,
    /// Local memory of a thread.
    pub(super) stack_bytes: u32,
}

/// First parameter in constant bank 0.
const PARAMETERS: usize = bank0::PARAMETERS as usize;
/// Bytes of parameters, at most.
const MAX_PARAMETERS: usize = bank0::MAX_PARAMETERS as usize;

impl Loaded {
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
        let extent = self.extent(request, config)?;
        Ok(self.run(&self.prepare(extent, request, config), request, global))
    }

    /// What a launch takes.
    ///
    /// # Errors
    /// When the request is not possible.
    pub(super) fn extent(
        &self,
        request: &LaunchRequest,
        config: &SimConfig,
    ) -> Result<Extent, LaunchError> {
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
        Ok(Extent {
            shape,
            entry,
            shared_bytes: shared as u32,
            stack_bytes: config
                .stack_bytes
                .min(MAX_LOCAL)
                .max(request.local_bytes)
                .next_multiple_of(16),
        })
    }

    /// What all blocks of a launch share that takes so much.
    pub(super) fn prepare<'a>(
        &'a self,
        extent: Extent,
        request: &LaunchRequest<'a>,
        config: &'a SimConfig,
    ) -> Run<'a> {
        let Extent {
            shape,
            entry,
            shared_bytes,
            stack_bytes,
        } = extent;
        Run {
            program: &self.program,
            banks: Banks::of_launch(
                launch_bank(request, stack_bytes),
                self.image.constants.clone(),
            ),
            shape,
            entry,
            shared_bytes,
            stack_bytes,
            config,
            concurrency: self.concurrency(config, shape.blocks()),
            interrupt: Interrupt::new(request.progress, request.time_limit),
        }
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

    /// Blocks that are resident together: more than one where blocks may wait for each other.
    pub(super) fn together(&self, run: &Run) -> u64 {
        let config = run.config;
        let Program {
            global_atomics,
            is_ordered,
            ..
        } = self.program;
        match is_ordered || global_atomics && config.timed || config.weak.is_some() {
            true => resident(run),
            false => 1,
        }
    }

    /// Runs all blocks on this thread.
    fn alone(&self, run: &Run, request: &LaunchRequest, global: &Table) -> Report {
        let config = run.config;
        let blocks = run.shape.blocks();
        let resident = self.together(run);
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

    /// Runs blocks that do not wait for each other on so many threads; on one until it is worth more. None if that was
    /// taken back: the checks have found that blocks use what others write, and what they find then is up to the order
    /// of the blocks.
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
