//! The order of a device's launches.
//!
//! Whoever asks for a launch takes a number under the queue's lock; launches run one at a time in the order of their
//! numbers, also those that ended in a fault before, or that are skipped, take their turn. [`Queue::run`] waits for its
//! turn and runs in the thread that asks. What is put on a stream goes to a list, and a thread of the queue's own,
//! which exists while the list has entries, takes its turns.
//!
//! A stream fails with the first error of its launches. What is on it then, or is put on it before somebody has got the
//! error, does not run: the number of its *era*, which ends when the error is got, is that of a failed one.

use super::{DeviceError, DriverError};
use crate::launch::Report;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What came of a launch.
pub(super) type Outcome = Result<Report, DeviceError>;

/// Identity of a stream of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StreamId(u64);

/// The launches of a device.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    /// A turn or a job has ended.
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    /// The number that the next launch gets.
    next: u64,
    /// The number whose turn it is.
    turn: u64,
    /// What is on streams, by number.
    jobs: VecDeque<Job>,
    /// Whether a thread takes the jobs.
    has_worker: bool,
    /// Cycles of all launches.
    cycles: u64,
    streams: BTreeMap<StreamId, StreamState>,
    next_stream: u64,
}

#[derive(Default)]
struct StreamState {
    /// Errors that somebody got.
    era: u64,
    /// Jobs that have not ended.
    waiting: u64,
    /// The launch with the error that nobody has got yet, and its number.
    failed: Option<(u64, Arc<Slot>)>,
    /// Whether nobody holds the stream.
    is_dropped: bool,
}

struct Job {
    number: u64,
    stream: StreamId,
    era: u64,
    work: Work,
}

enum Work {
    Launch {
        kernel: String,
        body: Box<dyn FnOnce() -> Outcome + Send>,
        slot: Arc<Slot>,
    },
    Mark(Arc<OnceLock<Moment>>),
}

/// Where a launch leaves what came of it.
#[derive(Default)]
pub(super) struct Slot {
    content: Mutex<Content>,
}

#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each launch that is under way"
)]
#[derive(Default)]
enum Content {
    #[default]
    Waiting,
    Ended(Outcome),
    Taken,
}

/// When the work before an event had ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// By the host's clock.
    pub at: Instant,
    /// By the device's: cycles of all launches.
    pub cycles: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Slot {
    fn is_ended(&self) -> bool {
        !matches!(*locked(&self.content), Content::Waiting)
    }

    /// What is there; none when it was taken.
    fn take(&self) -> Option<Outcome> {
        let content = &mut *locked(&self.content);
        match std::mem::replace(content, Content::Taken) {
            Content::Ended(outcome) => Some(outcome),
            Content::Taken => None,
            Content::Waiting => {
                *content = Content::Waiting;
                None
            }
        }
    }
}

impl QueueState {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Forgets a stream that nobody can ask for anything.
    fn tidy(&mut self, id: StreamId) {
        let unused = |stream: &StreamState| {
            stream.is_dropped && stream.waiting == 0 && stream.failed.is_none()
        };
        if self.streams.get(&id).is_some_and(unused) {
            self.streams.remove(&id);
        }
    }

    fn moment(&self) -> Moment {
        Moment {
            at: Instant::now(),
            cycles: self.cycles,
        }
    }

    /// Takes the error of a stream and makes the stream clean. `only`: not if it is another launch's.
    fn take_failure(&mut self, id: StreamId, only: Option<&Arc<Slot>>) -> Option<DeviceError> {
        let stream = self.streams.get_mut(&id)?;
        let (_, slot) = stream
            .failed
            .take_if(|(_, slot)| only.is_none_or(|only| Arc::ptr_eq(slot, only)))?;
        stream.era += 1;
        self.tidy(id);
        slot.take()?.err()
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        locked(&self.state)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, QueueState>) -> MutexGuard<'a, QueueState> {
        let state = self.changed.wait(state);
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a launch when its turn has come, in this thread.
    pub fn run(&self, body: impl FnOnce() -> Outcome) -> Outcome {
        let mut state = self.lock();
        let number = state.number();
        while state.turn != number {
            state = self.wait(state);
        }
        drop(state);
        // The turn ends with a panic too.
        let mut turn = TurnEnd {
            queue: self,
            cycles: 0,
        };
        let outcome = body();
        turn.cycles = cycles(&outcome);
        outcome
    }

    /// A new stream.
    pub fn stream(&self) -> StreamId {
        let mut state = self.lock();
        let id = StreamId(state.next_stream);
        state.next_stream += 1;
        state.streams.insert(id, StreamState::default());
        id
    }

    /// Nobody holds the stream any more; what is on it runs.
    pub fn drop_stream(&self, id: StreamId) {
        let mut state = self.lock();
        if let Some(stream) = state.streams.get_mut(&id) {
            stream.is_dropped = true;
        }
        state.tidy(id);
    }

    /// Puts a launch on a stream.
    pub fn enqueue(
        self: &Arc<Self>,
        stream: StreamId,
        kernel: String,
        body: Box<dyn FnOnce() -> Outcome + Send>,
    ) -> Arc<Slot> {
        let slot = Arc::new(Slot::default());
        let work = Work::Launch {
            kernel,
            body,
            slot: slot.clone(),
        };
        self.push(self.lock(), stream, work);
        slot
    }

    /// Puts a mark on a stream: the moment when all before it have ended.
    pub fn mark(self: &Arc<Self>, stream: StreamId) -> Arc<OnceLock<Moment>> {
        let mark = Arc::new(OnceLock::new());
        let state = self.lock();
        if state.streams.get(&stream).is_some_and(|s| s.waiting != 0) {
            self.push(state, stream, Work::Mark(mark.clone()));
        } else {
            mark.get_or_init(|| state.moment());
        }
        mark
    }

    fn push(self: &Arc<Self>, mut state: MutexGuard<'_, QueueState>, id: StreamId, work: Work) {
        let number = state.number();
        let stream = state.streams.entry(id).or_default();
        stream.waiting += 1;
        let era = stream.era;
        state.jobs.push_back(Job {
            number,
            stream: id,
            era,
            work,
        });
        if std::mem::replace(&mut state.has_worker, true) {
            return;
        }
        drop(state);
        let queue = self.clone();
        let worker = thread::Builder::new().name("thisgpu launches".to_string());
        if let Err(error) = worker.spawn(move || queue.work()) {
            log::warn!("launches run in the thread that asks for them: {error}");
            self.work();
        }
    }

    /// Takes jobs until there are none.
    fn work(&self) {
        let mut state = self.lock();
        while let Some(job) = state.jobs.pop_front() {
            while state.turn != job.number {
                state = self.wait(state);
            }
            let stream = state.streams.get(&job.stream);
            let skips = stream.is_some_and(|s| s.failed.is_some() || s.era != job.era);
            drop(state);
            state = match job.work {
                Work::Mark(mark) => {
                    let state = self.lock();
                    mark.get_or_init(|| state.moment());
                    state
                }
                Work::Launch { kernel, body, slot } => {
                    // Either way the launch gives up its buffers before it counts as ended, which asks the driver as
                    // well.
                    let launch = || {
                        if skips {
                            drop(body);
                            Err(DeviceError::Skipped {
                                kernel: kernel.clone(),
                            })
                        } else {
                            body()
                        }
                    };
                    let outcome = catch_unwind(AssertUnwindSafe(launch)).unwrap_or_else(|_| {
                        let message = format!("the driver panicked in kernel `{kernel}`");
                        Err(DriverError::Device(message).into())
                    });
                    let mut state = self.lock();
                    state.cycles += cycles(&outcome);
                    if outcome.is_err()
                        && !skips
                        && let Some(stream) = state.streams.get_mut(&job.stream)
                    {
                        stream.failed = Some((job.number, slot.clone()));
                    }
                    *locked(&slot.content) = Content::Ended(outcome);
                    state
                }
            };
            if let Some(stream) = state.streams.get_mut(&job.stream) {
                stream.waiting -= 1;
            }
            state.tidy(job.stream);
            state.turn += 1;
            self.changed.notify_all();
        }
        state.has_worker = false;
    }

    /// Waits for a launch and takes what came of it. Its error is the stream's no more.
    pub fn outcome(&self, stream: StreamId, kernel: &str, slot: &Arc<Slot>) -> Outcome {
        let mut state = self.lock();
        while !slot.is_ended() {
            state = self.wait(state);
        }
        if let Some(error) = state.take_failure(stream, Some(slot)) {
            return Err(error);
        }
        let kernel = || DeviceError::Reported {
            kernel: kernel.to_string(),
        };
        slot.take().unwrap_or_else(|| Err(kernel()))
    }

    /// Waits until something is so, at most so long; whether it is.
    fn wait_until(&self, limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, limit, |_| !is_so());
        let (_state, result) = waited.unwrap_or_else(PoisonError::into_inner);
        !result.timed_out()
    }

    /// Waits for a launch, at most so long; whether it has ended.
    pub fn wait_for(&self, slot: &Slot, limit: Duration) -> bool {
        self.wait_until(limit, || slot.is_ended())
    }

    /// Whether a launch has ended.
    pub fn is_ended(&self, slot: &Slot) -> bool {
        slot.is_ended()
    }

    /// Waits for a mark.
    pub fn wait_for_mark(&self, mark: &OnceLock<Moment>) -> Moment {
        let mut state = self.lock();
        loop {
            if let Some(moment) = mark.get() {
                return *moment;
            }
            state = self.wait(state);
        }
    }

    /// Waits until all that is on a stream has ended.
    ///
    /// # Errors
    /// Its error, if nobody has got it yet.
    pub fn synchronize_stream(&self, id: StreamId) -> Result<(), DeviceError> {
        let mut state = self.lock();
        while state.streams.get(&id).is_some_and(|s| s.waiting != 0) {
            state = self.wait(state);
        }
        state.take_failure(id, None).map_or(Ok(()), Err)
    }

    /// Waits until everything has ended that has a number now.
    ///
    /// # Errors
    /// The oldest error that nobody has got yet.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        let mut state = self.lock();
        let next = state.next;
        while state.turn < next {
            state = self.wait(state);
        }
        let failed = state.streams.iter();
        let oldest = failed
            .filter_map(|(id, stream)| Some((stream.failed.as_ref()?.0, *id)))
            .min();
        oldest
            .and_then(|(_, id)| state.take_failure(id, None))
            .map_or(Ok(()), Err)
    }
}

/// Cycles of a launch, also of one that ended in a fault.
fn cycles(outcome: &Outcome) -> u64 {
    match outcome {
        Ok(report) => report.stats.cycles,
        Err(DeviceError::Fault { report, .. }) => report.stats.cycles,
        Err(_) => 0,
    }
}

/// Ends a turn of [`Queue::run`].
struct TurnEnd<'a> {
    queue: &'a Queue,
    cycles: u64,
}

impl Drop for TurnEnd<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.turn += 1;
        state.cycles += self.cycles;
        self.queue.changed.notify_all();
    }
}
