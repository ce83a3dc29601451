//! What every warp of a launch did, cycle by cycle, in the format that browsers' trace viewers read.

use super::profile::Stall;
use serde::Serialize;
use serde::ser::Serializer;
use std::collections::{BTreeMap, BTreeSet};

/// A row of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Row {
    /// What it issues and waits for.
    Warp,
    /// One of its scoreboards.
    Scoreboard(u8),
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An instruction issues.
    Issue {
        /// Its code address in bytes.
        address: u32,
        /// The lanes that it runs in.
        lanes: u32,
    },
    /// An instruction cannot issue.
    Wait {
        /// Its code address in bytes.
        address: u32,
        /// Why.
        stall: Stall,
    },
    /// A scoreboard is not zero.
    Raised {
        /// Code address in bytes of the instruction that raised it.
        address: u32,
    },
}

impl What {
    /// The code address in bytes of the instruction that it is about.
    pub fn address(self) -> u32 {
        match self {
            What::Issue { address, .. } | What::Wait { address, .. } | What::Raised { address } => {
                address
            }
        }
    }
}

/// Something that takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Coordinates of the block.
    pub block: [u32; 3],
    /// The warp's number in it; where fewer than 32 lanes run together, every such part of a warp counts as one.
    pub warp: u32,
    /// Where.
    pub row: Row,
    /// First cycle, from the beginning of the launch.
    pub start: u64,
    /// Cycles.
    pub cycles: u64,
    /// What.
    pub what: What,
}

/// What the warps of a launch did.
///
/// It serializes as an object of the Chrome trace format, which Perfetto reads too: a process for each block, a thread for each warp and each
/// scoreboard that it raised, one microsecond a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The kernel.
    pub kernel: String,
    /// Cycles of the launch.
    pub cycles: u64,
    /// Instructions issued by warps in the launch.
    pub warp_instructions: u64,
    /// As the blocks ran: an issue behind the wait before it, a scoreboard where the instruction issues that raises it.
    pub events: Vec<Event>,
    /// Events that did not fit behind those.
    pub dropped: u64,
    /// Text of the instructions that events name, by code address.
    pub texts: BTreeMap<u32, String>,
}

/// Threads of a viewer that a warp has.
const ROWS: u32 = 8;
/// The first process and the first thread of a viewer. Some take number 0 for what the machine does when it is idle.
const FIRST: u32 = 1;

/// An event of the Chrome format.
#[derive(Serialize)]
struct ChromeEvent<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'a str>,
    ph: &'a str,
    ts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<u64>,
    pid: u32,
    tid: u32,
    args: ChromeArguments<'a>,
}

impl<'a> ChromeEvent<'a> {
    /// What a viewer is told of a process or a thread.
    fn metadata(name: &'a str, pid: u32, tid: u32, args: ChromeArguments<'a>) -> Self {
        ChromeEvent {
            name,
            cat: None,
            ph: "M",
            ts: 0,
            dur: None,
            pid,
            tid,
            args,
        }
    }
}

/// What a viewer shows beside an event.
#[derive(Default, Serialize)]
struct ChromeArguments<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lanes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction: Option<&'a str>,
}

/// What the whole file says of itself.
#[derive(Serialize)]
struct ChromeTotals<'a> {
    kernel: &'a str,
    unit: &'a str,
    cycles: u64,
    warp_instructions: u64,
    dropped_events: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChromeTrace<'a> {
    trace_events: ChromeEvents<'a>,
    display_time_unit: &'a str,
    other_data: ChromeTotals<'a>,
}

impl Trace {
    fn text(&self, address: u32) -> &str {
        self.texts.get(&address).map_or("?", String::as_str)
    }

    fn chrome<'a>(&'a self, event: &Event, pid: u32) -> ChromeEvent<'a> {
        let (name, category, address, lanes) = match event.what {
            What::Issue { address, lanes } => (
                mnemonic(self.text(address)),
                "issue",
                address,
                Some(lanes.count_ones()),
            ),
            What::Wait { address, stall } => (stall.name(), "wait", address, None),
            What::Raised { address } => (mnemonic(self.text(address)), "scoreboard", address, None),
        };
        ChromeEvent {
            name,
            cat: Some(category),
            ph: "X",
            ts: event.start,
            dur: Some(event.cycles),
            pid,
            tid: thread(event.warp, event.row),
            args: ChromeArguments {
                pc: Some(format!("{address:#06x}")),
                lanes,
                instruction: Some(self.text(address)),
                ..ChromeArguments::default()
            },
        }
    }
}

impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ChromeTrace {
            trace_events: ChromeEvents::new(self),
            display_time_unit: "ms",
            other_data: ChromeTotals {
                kernel: &self.kernel,
                unit: "1 us is a cycle",
                cycles: self.cycles,
                warp_instructions: self.warp_instructions,
                dropped_events: self.dropped,
            },
        }
        .serialize(serializer)
    }
}

/// The events of a file: names of processes and threads, then those of the trace. They are made one by one while they are written, since
/// there may be millions.
struct ChromeEvents<'a> {
    trace: &'a Trace,
    /// In the order of their processes, [`reversed`].
    blocks: Vec<[u32; 3]>,
    /// Process, warp and row of all threads.
    rows: BTreeSet<(u32, u32, Row)>,
}

impl<'a> ChromeEvents<'a> {
    fn new(trace: &'a Trace) -> Self {
        let blocks: BTreeSet<[u32; 3]> = trace.events.iter().map(|e| reversed(e.block)).collect();
        let mut events = ChromeEvents {
            trace,
            blocks: blocks.into_iter().collect(),
            rows: BTreeSet::new(),
        };
        let rows = trace.events.iter().map(|event| {
            let process = events.process(event.block);
            (process, event.warp, event.row)
        });
        events.rows = rows.collect();
        events
    }

    /// The number of a block's process.
    fn process(&self, block: [u32; 3]) -> u32 {
        let index = self.blocks.binary_search(&reversed(block));
        FIRST + index.unwrap_or_default() as u32
    }

    /// The names of processes, and the names and the order of threads.
    fn metadata(&self) -> impl Iterator<Item = ChromeEvent<'a>> {
        let named = |name| ChromeArguments {
            name: Some(name),
            ..ChromeArguments::default()
        };
        let processes = (FIRST..).zip(&self.blocks).map(move |(pid, [z, y, x])| {
            let name = format!("block {x},{y},{z}");
            ChromeEvent::metadata("process_name", pid, FIRST, named(name))
        });
        let threads = self.rows.iter().flat_map(move |&(pid, warp, row)| {
            let name = match row {
                Row::Warp => format!("warp {warp}"),
                Row::Scoreboard(number) => format!("warp {warp} scoreboard {number}"),
            };
            let tid = thread(warp, row);
            let order = ChromeArguments {
                sort_index: Some(tid),
                ..ChromeArguments::default()
            };
            [
                ChromeEvent::metadata("thread_name", pid, tid, named(name)),
                ChromeEvent::metadata("thread_sort_index", pid, tid, order),
            ]
        });
        processes.chain(threads)
    }
}

impl Serialize for ChromeEvents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let events = self.trace.events.iter();
        let events = events.map(|event| self.trace.chrome(event, self.process(event.block)));
        serializer.collect_seq(self.metadata().chain(events))
    }
}

/// Blocks in the order of their numbers: x counts first.
fn reversed([x, y, z]: [u32; 3]) -> [u32; 3] {
    [z, y, x]
}

/// The viewer's thread of a row.
fn thread(warp: u32, row: Row) -> u32 {
    let place = match row {
        Row::Warp => 0,
        Row::Scoreboard(number) => 1 + u32::from(number),
    };
    FIRST + warp * ROWS + place
}

/// An instruction's name without guard and operands.
fn mnemonic(text: &str) -> &str {
    let words = text.split_whitespace();
    let mut words = words.skip_while(|word| word.starts_with('@'));
    words.next().unwrap_or(text)
}
