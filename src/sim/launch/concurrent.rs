//! Blocks that may wait for each other on several threads of the host, where the user does without one result.
//!
//! Each worker keeps its share of the blocks that are resident together and gives them turns; for one that has ended it
//! takes the next that nobody has taken. So all resident blocks get turns, and who waits for a block on another thread
//! sees what it does ([`crate::sim::memory::strong`]). Which of them comes first is up to the host. Workers are about equally
//! far: else warps that wait for a worker which the host does not run would use up their budget for nothing. The first
//! fault ends all, and what all have issued until then is added up.

use super::batch::{Batch, Standing, resident};
use super::*;
use crate::launch::Progress;
use crate::sim::launch::cta::{Cta, WARP_TURN, pieces};
use crate::sim::launch::parallel::add;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A worker may be ahead of another one by this part of what a warp may issue (assigned).
const AHEAD: u64 = 8;
/// How long a worker that is ahead sleeps before it looks again (assigned).
const PAUSE: Duration = Duration::from_micros(50);
/// The rounds of a worker that has ended.
const ENDED: u64 = u64::MAX;

/// What the workers of a launch have in common.
pub(super) struct Crowd {
    blocks: u64,
    /// Blocks that are resident together, at most.
    together: u64,
    /// Workers, once all have been started.
    workers: OnceLock<u64>,
    /// How often each worker has given all its blocks a turn; as many as workers are wanted.
    rounds: Box<[AtomicU64]>,
    /// Rounds that a worker may be ahead.
    ahead: u64,
    /// The first block that nobody has taken.
    next: AtomicU64,
    ended: AtomicU64,
    /// Instructions of all blocks.
    issued: AtomicU64,
    /// Instructions of those blocks that have not ended.
    unended: AtomicU64,
    /// Blocks that were resident together.
    most: AtomicU64,
    /// A worker has found a fault.
    is_over: AtomicBool,
    outcome: Mutex<Outcome>,
}

/// What the workers that have ended leave.
#[derive(Default)]
struct Outcome {
    stats: Stats,
    fault: Option<Fault>,
    /// Blocks that have not ended.
    running: Vec<Cta>,
}

impl Crowd {
    fn new(run: &Run, workers: usize, together: u64) -> Crowd {
        let warps = together.saturating_mul(pieces(run).count() as u64);
        let fair = run.config.launch_limit() / warps.max(1);
        let ahead = run.config.warp_limit().min(fair) / (AHEAD * u64::from(WARP_TURN));
        Crowd {
            blocks: run.shape.blocks(),
            together,
            workers: OnceLock::new(),
            rounds: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            ahead: ahead.max(1),
            next: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            issued: AtomicU64::new(0),
            unended: AtomicU64::new(0),
            most: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            outcome: Mutex::default(),
        }
    }

    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks that a worker keeps.
    fn share(&self, worker: usize) -> usize {
        let wanted = self.rounds.len() as u64;
        let workers = self.workers.get().copied().unwrap_or(wanted);
        let more = u64::from((worker as u64) < self.together % workers);
        (self.together / workers + more) as usize
    }

    /// The next block, or none.
    fn take(&self) -> Option<u64> {
        let block = self.next.fetch_add(1, Ordering::Relaxed);
        if block >= self.blocks {
            return None;
        }
        let running = self.standing().running.min(self.together);
        self.most.fetch_max(running, Ordering::Relaxed);
        Some(block)
    }

    /// Blocks that nobody has taken.
    fn left(&self) -> u64 {
        self.blocks
            .saturating_sub(self.next.load(Ordering::Relaxed))
    }

    /// How far the launch is.
    pub(super) fn standing(&self) -> Standing {
        let ended = self.ended.load(Ordering::Relaxed);
        let taken = self.next.load(Ordering::Relaxed).min(self.blocks);
        Standing {
            ended,
            running: taken.saturating_sub(ended),
            issued: self.unended.load(Ordering::Relaxed),
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Counts what a turn has issued, and all that a block has which has ended in it.
    pub(super) fn tell(&self, progress: Option<&Progress>, ended: Option<u64>, new: u64) {
        let issued = self.issued.fetch_add(new, Ordering::Relaxed) + new;
        self.unended.fetch_add(new, Ordering::Relaxed);
        if let Some(instructions) = ended {
            self.unended.fetch_sub(instructions, Ordering::Relaxed);
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(progress) = progress {
            progress.count(self.ended.load(Ordering::Relaxed), issued);
        }
    }

    /// The rounds of the worker that has had the fewest.
    fn slowest(&self) -> u64 {
        let workers = self.workers.get().copied().unwrap_or(0) as usize;
        let rounds = self.rounds.iter().take(workers);
        let rounds = rounds.map(|rounds| rounds.load(Ordering::Relaxed));
        rounds.min().unwrap_or(ENDED)
    }
}

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
