//! What every warp of a launch did, cycle by cycle, in the format that browsers' trace viewers read.

use super::profile::Stall;
use crate::chrome;
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
/// It serializes as an object of the Chrome trace format, which Perfetto reads too: a process for each block, a thread
/// for each warp and each scoreboard that it raised, one microsecond a cycle.
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

/// What a viewer shows beside an event.
#[derive(Serialize)]
struct Arguments<'a> {
    pc: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lanes: Option<u32>,
    instruction: &'a str,
}

type ChromeEvent<'a> = chrome::Event<'a, Arguments<'a>>;

/// What the whole file says of itself.
#[derive(Serialize)]
struct Totals<'a> {
    kernel: &'a str,
    unit: &'a str,
    cycles: u64,
    warp_instructions: u64,
    dropped_events: u64,
}

impl Trace {
    fn text(&self, address: u32) -> &str {
        self.texts.get(&address).map_or("?", String::as_str)
    }

    fn chrome<'a>(&'a self, event: &Event, process: u32) -> ChromeEvent<'a> {
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
        let row = chrome::Row {
            process,
            thread: thread(event.warp, event.row),
        };
        let arguments = Arguments {
            pc: format!("{address:#06x}"),
            lanes,
            instruction: self.text(address),
        };
        ChromeEvent::slice(name, category, row, event.start, event.cycles, arguments)
    }
}

impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let events = ChromeEvents::new(self);
        let totals = Totals {
            kernel: &self.kernel,
            unit: "1 us is a cycle",
            cycles: self.cycles,
            warp_instructions: self.warp_instructions,
            dropped_events: self.dropped,
        };
        chrome::File::new(|| events.iter(), totals).serialize(serializer)
    }
}

/// The events of a file: names of processes and threads, then those of the trace.
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
        index.unwrap_or_default() as u32
    }

    fn iter(&self) -> impl Iterator<Item = ChromeEvent<'a>> {
        let processes = (0..).zip(&self.blocks).map(|(process, [z, y, x])| {
            ChromeEvent::process_name(process, format!("block {x},{y},{z}"))
        });
        let threads = self.rows.iter().flat_map(|&(process, warp, row)| {
            let name = match row {
                Row::Warp => format!("warp {warp}"),
                Row::Scoreboard(number) => format!("warp {warp} scoreboard {number}"),
            };
            let thread = thread(warp, row);
            ChromeEvent::row(chrome::Row { process, thread }, name)
        });
        let events = self.trace.events.iter();
        let events = events.map(|event| self.trace.chrome(event, self.process(event.block)));
        processes.chain(threads).chain(events)
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
    warp * ROWS + place
}

/// An instruction's name without guard and operands.
fn mnemonic(text: &str) -> &str {
    let words = text.split_whitespace();
    let mut words = words.skip_while(|word| word.starts_with('@'));
    words.next().unwrap_or(text)
}
