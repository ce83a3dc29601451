//! Query sets and the clock of timestamps.

use cranelift_thisgpu::Device;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Values of queries. Only timestamps can be asked for; an occlusion query needs a pass that renders. Clones are the
/// same set.
#[derive(Clone, Debug)]
pub struct QuerySet {
    values: Arc<Mutex<Vec<u64>>>,
}

impl QuerySet {
    pub(crate) fn new(count: u32) -> QuerySet {
        QuerySet {
            values: Arc::new(Mutex::new(vec![0; count as usize])),
        }
    }

    fn values(&self) -> MutexGuard<'_, Vec<u64>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, index: u32, value: u64) {
        if let Some(place) = self.values().get_mut(index as usize) {
            *place = value;
        }
    }

    pub(crate) fn reset(&self, range: Range<u32>) {
        for index in range {
            self.set(index, 0);
        }
    }

    /// The values of a range, 0 for what is not there.
    pub(crate) fn get(&self, range: Range<u32>) -> Vec<u64> {
        let values = self.values();
        range
            .map(|index| values.get(index as usize).copied().unwrap_or(0))
            .collect()
    }
}

/// The time of an instance's devices in nanoseconds: the cycles of all their dispatches where they are counted, one a
/// nanosecond, and the host's clock where not.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    cycles: AtomicU64,
    counts_cycles: bool,
}

impl Clock {
    pub fn new(device: &Device) -> Clock {
        let stream = device.stream();
        let event = stream.record();
        Clock {
            start: Instant::now(),
            cycles: AtomicU64::new(0),
            counts_cycles: event.since(&event).cycles.is_some(),
        }
    }

    /// Whether it counts cycles.
    pub fn counts_cycles(&self) -> bool {
        self.counts_cycles
    }

    /// So many cycles have passed.
    pub fn pass(&self, cycles: u64) {
        self.cycles.fetch_add(cycles, Ordering::Relaxed);
    }

    /// Now. It is never 0, which stands for a query that nothing was written to.
    pub fn now(&self) -> u64 {
        let passed = match self.counts_cycles {
            true => self.cycles.load(Ordering::Relaxed),
            false => self.start.elapsed().as_nanos() as u64,
        };
        passed + 1
    }
}
