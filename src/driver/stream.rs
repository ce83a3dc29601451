//! Streams, what is pending on them, and events.

use super::device::Device;
use super::error::DeviceError;
use super::queue::{Moment, Queue, Slot, StreamId};
use crate::launch::{Progress, Report};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A queue of launches: each begins when those before it have ended.
///
/// All streams of a device share it: one launch runs at a time, in the order in which they were enqueued, whatever
/// their streams. Streams are apart in what a fault does. It skips what is behind it on its stream, until somebody gets
/// it: [`Pending::wait`] of the launch, or `synchronize` of the stream or the device, whichever is called first. Then
/// the stream is clean, and what is put on it from then on runs.
///
/// Launches stay on a stream that is dropped, and run.
pub struct Stream {
    device: Device,
    id: StreamId,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.id).finish()
    }
}

impl Device {
    /// A new stream: launches that are put on it run one after the other.
    pub fn stream(&self) -> Stream {
        Stream {
            id: self.queue().stream(),
            device: self.clone(),
        }
    }
}

impl Stream {
    pub(super) fn id(&self) -> StreamId {
        self.id
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until all that is on it has ended.
    ///
    /// # Errors
    /// The error of the launch that failed, if nobody has got it yet.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.device.queue().synchronize_stream(self.id)
    }

    /// An event behind all that is on it now. It happens when those have ended, in a fault or not at all too.
    pub fn record(&self) -> Event {
        let queue = self.device.queue();
        Event {
            mark: queue.mark(self.id),
            queue: queue.clone(),
            counts_cycles: self.device.driver().counts_cycles(),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.device.queue().drop_stream(self.id);
    }
}

/// A launch on a stream. It keeps its module and the buffers among its arguments alive until it has ended. Dropped, it
/// runs all the same, and an error stays with the stream.
#[must_use = "wait for it, or the stream keeps its error"]
pub struct Pending {
    pub(super) queue: Arc<Queue>,
    pub(super) stream: StreamId,
    pub(super) slot: Arc<Slot>,
    pub(super) kernel: String,
    pub(super) progress: Progress,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("kernel", &self.kernel)
            .field("is_done", &self.is_done())
            .finish_non_exhaustive()
    }
}

impl Pending {
    /// Waits until it has ended.
    ///
    /// # Errors
    /// Its fault, or why it could not be launched; that a fault before it on the stream has skipped it; that a
    /// `synchronize` has returned its error already.
    pub fn wait(self) -> Result<Report, DeviceError> {
        self.queue.outcome(self.stream, &self.kernel, &self.slot)
    }

    /// Waits at most so long; whether it has ended.
    pub fn wait_for(&self, limit: Duration) -> bool {
        self.queue.wait_for(&self.slot, limit)
    }

    /// Whether it has ended.
    pub fn is_done(&self) -> bool {
        self.queue.is_ended(&self.slot)
    }

    /// Asks it to end, with the fault [`crate::launch::FaultKind::Cancelled`]. If it has not begun it does nothing when
    /// its turn comes. It may end before it sees this.
    pub fn cancel(&self) {
        self.progress.cancel();
    }

    /// How far it is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }
}

/// A place in a stream, and when it was reached.
#[derive(Clone)]
pub struct Event {
    queue: Arc<Queue>,
    mark: Arc<OnceLock<Moment>>,
    counts_cycles: bool,
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Event").field(&self.mark.get()).finish()
    }
}

/// What passed between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Elapsed {
    /// By the host's clock.
    pub host: Duration,
    /// Cycles of the device's launches, where it counts them and both events are its own.
    pub cycles: Option<u64>,
}

impl Event {
    /// Whether it has happened.
    pub fn is_done(&self) -> bool {
        self.mark.get().is_some()
    }

    /// Waits until it has happened.
    pub fn wait(&self) {
        self.queue.wait_for_mark(&self.mark);
    }

    /// What passed since an earlier event; zero if that was the later one. Waits for both.
    pub fn since(&self, earlier: &Event) -> Elapsed {
        let start = earlier.queue.wait_for_mark(&earlier.mark);
        let end = self.queue.wait_for_mark(&self.mark);
        let counts = self.counts_cycles && Arc::ptr_eq(&self.queue, &earlier.queue);
        Elapsed {
            host: end.at.saturating_duration_since(start.at),
            cycles: counts.then(|| end.cycles.saturating_sub(start.cycles)),
        }
    }
}
