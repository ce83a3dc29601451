//! When every pass ran, over which function and in which thread.
//!
//! A [`TimeTrace`] serializes in the Chrome trace format: a row for each thread, on it a slice for each function, and
//! in that a slice for each pass. Nothing is kept, and no clock is read, unless it is asked for
//! ([`super::Compiler::record_passes`]).

use super::Pass;
use crate::chrome;
use serde::Serialize;
use serde::ser::Serializer;
use std::collections::BTreeSet;
use std::iter;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A pass over a function, or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassSlice {
    /// The pass; none stands for the whole function, with what is between passes.
    pub pass: Option<Pass>,
    /// The function.
    pub function: Arc<str>,
    /// Threads count from 0, which is the one that compiles.
    pub thread: u32,
    /// From the moment when recording began.
    pub start: Duration,
    /// How long it took.
    pub duration: Duration,
}

/// What was compiled when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeTrace {
    /// In the order of their end, thread by thread.
    pub slices: Vec<PassSlice>,
}

impl TimeTrace {
    /// Adds what was recorded of a later compilation, as if it had begun when this one ended.
    pub fn append(&mut self, later: &TimeTrace) {
        let ends = self.slices.iter().map(|slice| slice.start + slice.duration);
        let end = ends.max().unwrap_or_default();
        self.slices
            .extend(later.slices.iter().map(|slice| PassSlice {
                start: slice.start + end,
                ..slice.clone()
            }));
    }
}

/// What a viewer shows beside a slice.
#[derive(Serialize)]
struct Arguments<'a> {
    function: &'a str,
    nanoseconds: u64,
}

/// What the whole file says of itself.
#[derive(Serialize)]
struct Totals {
    threads: usize,
    functions: usize,
    pass_nanoseconds: u64,
}

type Event<'a> = chrome::Event<'a, Arguments<'a>>;

impl PassSlice {
    fn chrome(&self) -> Event<'_> {
        let row = chrome::Row {
            process: 0,
            thread: self.thread,
        };
        // Both ends are rounded down: so slices that touch still do, and those inside of others stay there.
        let start = self.start.as_micros() as u64;
        let duration = (self.start + self.duration).as_micros() as u64 - start;
        let (name, category) = match self.pass {
            Some(pass) => (pass.name(), "pass"),
            None => (&*self.function, "function"),
        };
        let arguments = Arguments {
            function: &self.function,
            nanoseconds: self.duration.as_nanos() as u64,
        };
        Event::slice(name, category, row, start, duration, arguments)
    }
}

impl Serialize for TimeTrace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let threads: BTreeSet<u32> = self.slices.iter().map(|slice| slice.thread).collect();
        let events = || {
            let process = Event::process_name(0, "compile".to_owned());
            let rows = threads.iter().flat_map(|&thread| {
                Event::row(
                    chrome::Row { process: 0, thread },
                    format!("thread {thread}"),
                )
            });
            let slices = self.slices.iter().map(PassSlice::chrome);
            iter::once(process).chain(rows).chain(slices)
        };
        let passes = self.slices.iter().filter(|slice| slice.pass.is_some());
        let time: Duration = passes.map(|slice| slice.duration).sum();
        let totals = Totals {
            threads: threads.len(),
            functions: self.slices.iter().filter(|s| s.pass.is_none()).count(),
            pass_nanoseconds: time.as_nanos() as u64,
        };
        chrome::File::new(events, totals).serialize(serializer)
    }
}

/// Keeps slices while a thread compiles.
#[derive(Debug)]
pub(super) struct Recorder {
    /// When recording began, for all threads.
    epoch: Instant,
    thread: u32,
    /// What is being compiled.
    function: Arc<str>,
    trace: TimeTrace,
}

impl Recorder {
    /// Begins to record.
    pub fn new() -> Self {
        Recorder {
            epoch: Instant::now(),
            thread: 0,
            function: Arc::default(),
            trace: TimeTrace::default(),
        }
    }

    /// One for another thread.
    pub fn of_thread(&self, thread: usize) -> Self {
        Recorder {
            epoch: self.epoch,
            thread: thread as u32,
            ..Recorder::new()
        }
    }

    /// What was recorded so far.
    pub fn trace(&self) -> &TimeTrace {
        &self.trace
    }

    /// Adds what another thread has recorded.
    pub fn append(&mut self, other: Recorder) {
        self.trace.slices.extend(other.trace.slices);
    }

    /// A function begins.
    pub fn enter(&mut self, function: &str) {
        self.function = function.into();
    }

    /// A pass, or the function, is over.
    pub fn record(&mut self, pass: Option<Pass>, start: Instant, duration: Duration) {
        self.trace.slices.push(PassSlice {
            pass,
            function: self.function.clone(),
            thread: self.thread,
            start: start.duration_since(self.epoch),
            duration,
        });
    }
}
