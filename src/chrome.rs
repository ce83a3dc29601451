//! The Chrome trace format, which browsers' trace viewers and Perfetto read, as far as traces of ours need it.
//!
//! A trace is an object with events: slices on a row, which is a thread of a process of the viewer, and names for processes and rows. Times are whole
//! microseconds; slices of a row either lie inside of each other or do not touch.

use serde::Serialize;

/// A row: a process and a thread of it, as the viewer has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub process: usize,
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
    pid: usize,
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
            pid: row.process,
            tid: row.thread,
            args: Arguments::Slice(arguments),
        }
    }

    /// Names a process.
    pub fn process_name(process: usize, name: String) -> Self {
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
            pid: row.process,
            tid: row.thread,
            args,
        }
    }
}

/// A file: events, and what the whole says of itself.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct File<'a, A, T> {
    trace_events: Vec<Event<'a, A>>,
    display_time_unit: &'static str,
    other_data: T,
}

impl<'a, A, T> File<'a, A, T> {
    /// A file of these events, to be shown in milliseconds.
    pub fn new(trace_events: Vec<Event<'a, A>>, other_data: T) -> Self {
        File {
            trace_events,
            display_time_unit: "ms",
            other_data,
        }
    }
}
