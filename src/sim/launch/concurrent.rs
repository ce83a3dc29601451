//! Blocks that may wait for each other on several threads of the host, where the user does without one result.
//!
//! Each worker keeps its share of the blocks that are resident together and gives them turns; for one that has ended it
//! takes the next that nobody has taken. So all resident blocks get turns, and who waits for a block on another thread
//! sees what it does ([`crate::sim::memory::strong`]). Which of them comes first is up to the host. Workers are about
//! equally far: else warps that wait for a worker which the host does not run would use up their budget for nothing.
//! The first fault ends all, and what all have issued until then is added up.

use super::batch::{Batch, resident};
use super::crowd::{Crowd, ENDED, Outcome, PAUSE};
use super::*;
use crate::sim::launch::cta::Cta;
use crate::sim::launch::parallel::add;
use std::sync::atomic::Ordering;

/// A thread of the host with its blocks.
struct Worker<'a> {
    crowd: &'a Crowd,
    batch: Batch<'a>,
    /// Its number.
    index: usize,
    running: Vec<Cta>,
    /// All workers have had so many rounds.
    slowest: u64,
}

impl<'a> Worker<'a> {
    fn new(
        loaded: &'a Loaded,
        run: &'a Run<'a>,
        request: &'a LaunchRequest<'a>,
        crowd: &'a Crowd,
        index: usize,
    ) -> Worker<'a> {
        let mut batch = Batch::new(loaded, run, request, None);
        batch.crowd = Some(crowd);
        Worker {
            crowd,
            batch,
            index,
            running: Vec::new(),
            slowest: 0,
        }
    }

    /// Whether it has nothing to do any more.
    fn is_done(&self) -> bool {
        self.crowd.is_over() || self.batch.report.fault.is_some()
    }

    /// Instructions that it has issued.
    fn issued(&self) -> u64 {
        self.batch.report.stats.warp_instructions
    }

    /// Gives its blocks turns until there are none, the launch is over, or it has issued so many instructions.
    fn work(&mut self, global: &Table, limit: u64) {
        loop {
            for cta in std::mem::take(&mut self.running) {
                if self.is_done() {
                    self.running.push(cta);
                } else {
                    self.turn(cta, global);
                }
            }
            let share = self.crowd.share(self.index);
            for _ in self.running.len()..share {
                if self.is_done() || self.issued() >= limit {
                    return;
                }
                let Some(block) = self.crowd.take() else {
                    break;
                };
                let cta = self.batch.begin(block);
                self.turn(cta, global);
            }
            let is_idle = self.running.is_empty() && self.crowd.left() == 0;
            if is_idle || self.is_done() || self.issued() >= limit {
                return;
            }
            self.wait();
        }
    }

    /// A block's turn.
    fn turn(&mut self, mut cta: Cta, global: &Table) {
        let others = self.running.len() as u64;
        if self.batch.turn(&mut cta, others, global, &mut 0) {
            self.batch.free.push(cta);
        } else {
            self.running.push(cta);
        }
        if self.batch.report.fault.is_some() {
            self.crowd.is_over.store(true, Ordering::Relaxed);
        }
    }

    /// Ends a round; waits for those that are too far behind.
    fn wait(&mut self) {
        let rounds = self.crowd.rounds[self.index].fetch_add(1, Ordering::Relaxed) + 1;
        if self.crowd.workers.get().is_none() {
            // Nobody else has begun.
            return;
        }
        let is_ahead = |slowest: u64| rounds > slowest.saturating_add(self.crowd.ahead);
        while is_ahead(self.slowest) {
            self.slowest = self.crowd.slowest();
            if !is_ahead(self.slowest)
                || self.crowd.is_over()
                || self.batch.run.interrupt.look().is_some()
            {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Worker<'_> {
    /// Leaves what it has done, also where it did not come to its end: nobody waits for it any more.
    fn drop(&mut self) {
        self.crowd.rounds[self.index].store(ENDED, Ordering::Relaxed);
        let Report { stats, fault, .. } = std::mem::take(&mut self.batch.report);
        let mut outcome = self.crowd.outcome();
        add(&mut outcome.stats, stats);
        outcome.running.append(&mut self.running);
        if outcome.fault.is_none() {
            outcome.fault = fault;
        }
    }
}

impl Loaded {
    /// Who uses device memory while a block of a launch of so many runs.
    pub(crate) fn concurrency(&self, config: &SimConfig, blocks: u64) -> Concurrency {
        let in_order = config.deterministic
            || config.timed
            || config.check
            || config.weak.is_some()
            || config.turns.is_some();
        match &self.program {
            program if in_order || !program.is_ordered => Concurrency::Alone,
            _ if blocks < 2 || threads(config.threads) < 2 => Concurrency::Alone,
            program if program.wide_atomics => Concurrency::Wide,
            _ => Concurrency::Words,
        }
    }

    /// Runs blocks that may wait for each other on so many threads; on one until it is worth more.
    pub(super) fn concurrent(
        &self,
        run: &Run,
        request: &LaunchRequest,
        global: &Table,
        threads: usize,
    ) -> Report {
        let blocks = run.shape.blocks();
        if let Some(progress) = request.progress {
            progress.begin(blocks);
        }
        let together = resident(run).min(blocks);
        let threads = (threads as u64).min(together) as usize;
        let crowd = &Crowd::new(run, threads, together);
        thread::scope(|scope| {
            let mut first = Worker::new(self, run, request, crowd, 0);
            first.work(global, ALONE);
            let others = if first.is_done() { 0 } else { crowd.left() };
            let mut workers = 1;
            for index in (1..threads).take(others as usize) {
                let rounds = crowd.rounds[0].load(Ordering::Relaxed);
                crowd.rounds[index].store(rounds, Ordering::Relaxed);
                let work = move || {
                    crowd.workers.wait();
                    Worker::new(self, run, request, crowd, index).work(global, u64::MAX);
                };
                // Where the host has no more threads, those that there are do the work.
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
                workers += 1;
            }
            // Nobody else has set it.
            let _ = crowd.workers.set(workers);
            first.work(global, u64::MAX);
        });
        let Outcome {
            mut stats,
            fault,
            running,
        } = std::mem::take(&mut *crowd.outcome());
        stats.faults = u64::from(fault.is_some());
        let mut report = Report {
            stats,
            fault,
            resident: crowd.most.load(Ordering::Relaxed),
            ..Report::default()
        };
        if let Some(fault) = &mut report.fault {
            self.add_waits(fault, request, &running, None, global);
        }
        report
    }
}
