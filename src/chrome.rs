//! The Chrome trace format, which browsers' trace viewers and Perfetto read, as far as traces of ours need it.
//!
//! A trace is an object with events: slices on a row, which is a thread of a process of the viewer, and names for
//! processes and rows. Times are whole microseconds; slices of a row either lie inside of each other or do not touch.

use serde::{Serialize, Serializer};

/// The number of the first process and the first thread in a file. Some viewers take 0 for what the machine does when
/// it is idle.
const FIRST: u32 = 1;

/// A row: a process and a thread of it, counted from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub process: u32,
    pub thread: u32,
}

/// An event; slices have `A` shown beside them.
#[derive(Serialize)]
pub(crate) struct Event<'a, A> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'a str>,
    ph: &'static str,
    ts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<u64>,
    pid: u32,
    tid: u32,
    args: Arguments<A>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Arguments<A> {
    Name { name: String },
    SortIndex { sort_index: u32 },
    Slice(A),
}

impl<'a, A> Event<'a, A> {
    /// Something that takes time: `start` and `duration` are in microseconds, `category` groups names.
    pub fn slice(
        name: &'a str,
        category: &'a str,
        row: Row,
        start: u64,
        duration: u64,
        arguments: A,
    ) -> Self {
        Event {
            name,
            cat: Some(category),
            ph: "X",
            ts: start,
            dur: Some(duration),
            pid: FIRST + row.process,
            tid: FIRST + row.thread,
            args: Arguments::Slice(arguments),
        }
    }

    /// Names a process.
    pub fn process_name(process: u32, name: String) -> Self {
        let row = Row { process, thread: 0 };
        Self::metadata("process_name", row, Arguments::Name { name })
    }

    /// Names a row, and puts it where its number says.
    pub fn row(row: Row, name: String) -> [Self; 2] {
        let order = Arguments::SortIndex {
            sort_index: row.thread,
        };
        [
            Self::metadata("thread_name", row, Arguments::Name { name }),
            Self::metadata("thread_sort_index", row, order),
        ]
    }

    fn metadata(name: &'a str, row: Row, args: Arguments<A>) -> Self {
        Event {
            name,
            cat: None,
            ph: "M",
            ts: 0,
            dur: None,
            pid: FIRST + row.process,
            tid: FIRST + row.thread,
            args,
        }
    }
}

/// A file: events, and what the whole says of itself.
#[derive(Serialize)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "Events<E>: Serialize, T: Serialize")
)]
pub(crate) struct File<E, T> {
    trace_events: Events<E>,
    display_time_unit: &'static str,
    other_data: T,
}

impl<E, T> File<E, T> {
    /// A file of the events that `events` gives, to be shown in milliseconds. They are made one by one while they are
    /// written, since there may be millions.
    pub fn new(events: E, other_data: T) -> Self {
        File {
            trace_events: Events(events),
            display_time_unit: "ms",
            other_data,
        }
    }
}

/// What gives events.
struct Events<E>(E);

impl<E, I> Serialize for Events<E>
where
    E: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0())
    }
}
