//! What the threads of a test do in memory, by the words of its code.
//!
//! One instance of the test is followed: a [`Lane`] of each thread, and which of them go together: those of a warp that
//! have met. What an access reads is not known here; it is followed to where it is stored as a result. This shares
//! nothing with the simulator. An instruction that it does not know, or a branch on what was read, ends the test.

use crate::lane::{DATA, Lane, Line, OUT, Value, number};
use crate::shapes::{Placement, Program};
use crate::text;
use cranelift_thisgpu::object::Object;
use cranelift_thisgpu::unstable::isa::{Control, decode};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Where shared memory begins among generic addresses.
const SHARED: u64 = 1 << 56;
const WORD_BYTES: i64 = 16;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Load,
    Store(u32),
    Exchange(u32),
    Add(u32),
    /// If there is the first, it becomes the second.
    Swap(u32, u32),
}

/// An access to a location of the test.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    pub thread: usize,
    pub location: usize,
    /// Whether the location is in shared memory.
    pub shared: bool,
    pub kind: Kind,
    pub strong: bool,
    /// Of an atomic, the spaces with whose atomics it is in order.
    pub global_order: bool,
    pub shared_order: bool,
    /// Whether the outcome has what it reads.
    pub is_read: bool,
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// It waits, and accesses these.
    Access(Vec<usize>),
    /// MEMBAR, and of which threads.
    Fence { device: bool, by: u8 },
    /// BAR.SYNC.
    Meeting,
}

/// An instruction that threads come to together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// The threads: a mask.
    pub threads: u8,
    /// Accesses whose scoreboards it waits for: a mask.
    pub waits: u32,
    pub what: What,
}

/// A test as its words have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Words {
    pub accesses: Vec<Access>,
    pub events: Vec<Event>,
    /// By thread, its events in order.
    pub threads: Vec<Vec<usize>>,
    /// By thread.
    pub blocks: Vec<usize>,
    /// What is stored as results; none for what the host reads from the locations.
    pub results: Vec<Option<Value>>,
}

/// Lanes of a warp that run together.
#[derive(Clone, Debug)]
struct Group {
    pc: usize,
    threads: u8,
    /// The convergence register at whose BSYNC they wait.
    waits: Option<String>,
}

/// Where the lane of instance 0 of a thread is: its block, and its number there.
fn place(placement: Placement, thread: usize) -> (u32, u32) {
    let thread = thread as u32;
    match placement {
        Placement::Warp => (0, 8 * thread),
        Placement::Block => (0, 32 * thread),
        Placement::Pairs => (thread / 2, thread % 2 * 32),
        Placement::Grid => (thread, 0),
    }
}

/// A warp on its way.
struct Walk<'a> {
    code: &'a [(String, Control)],
    lanes: Vec<Lane>,
    groups: Vec<Group>,
    /// The threads that meet, by convergence register.
    meetings: HashMap<String, u8>,
    words: &'a mut Words,
    /// By access, the scoreboard that it releases: a mask.
    boards: Vec<u8>,
    /// By block and number, the event of a barrier.
    barriers: &'a mut BTreeMap<(usize, usize), usize>,
    barriers_passed: usize,
}

fn threads_of(mask: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |thread| mask >> thread & 1 != 0)
}

impl Words {
    /// Of a kernel's words.
    pub fn new(program: &Program, object: &Object) -> Words {
        let code: Vec<(String, Control)> = (object.functions.iter().flat_map(|f| &f.words))
            .map(|word| decode(*word).unwrap_or_else(|e| panic!("{program}: {e}")))
            .map(|(inst, control)| (inst.to_string().trim().to_string(), control))
            .collect();
        let count = program.threads.len();
        let places: Vec<(u32, u32)> = (0..count).map(|t| place(program.placement, t)).collect();
        let mut words = Words {
            accesses: Vec::new(),
            events: Vec::new(),
            threads: vec![Vec::new(); count],
            blocks: places.iter().map(|place| place.0 as usize).collect(),
            results: vec![None; text::results(program)],
        };
        let warp = |thread: usize| (places[thread].0, places[thread].1 / 32);
        let warps: BTreeSet<(u32, u32)> = (0..count).map(warp).collect();
        let mut barriers = BTreeMap::new();
        for one in warps {
            let threads = (0..count).filter(|t| warp(*t) == one);
            let mut walk = Walk {
                code: &code,
                lanes: places
                    .iter()
                    .map(|p| Lane::new(p.0, p.1, &object.constants))
                    .collect(),
                groups: vec![Group {
                    pc: 0,
                    threads: threads.fold(0, |mask, thread| mask | 1 << thread),
                    waits: None,
                }],
                meetings: HashMap::new(),
                boards: vec![0; words.accesses.len()],
                words: &mut words,
                barriers: &mut barriers,
                barriers_passed: 0,
            };
            walk.run();
        }
        for result in words.results.iter().flatten() {
            if let Value::Read(access) = *result {
                words.accesses[access].is_read = true;
            }
        }
        words
    }
}

impl Walk<'_> {
    fn run(&mut self) {
        for _ in 0..10_000 {
            let Some(index) = self.groups.iter().position(|group| group.waits.is_none()) else {
                assert!(self.groups.is_empty(), "they wait for each other");
                return;
            };
            let group = self.groups.swap_remove(index);
            self.step(group);
            self.meet();
        }
        panic!("it does not end");
    }

    /// Groups go on that have met all that they wait for.
    fn meet(&mut self) {
        let alive = self
            .groups
            .iter()
            .fold(0, |mask, group| mask | group.threads);
        for (register, &threads) in &self.meetings {
            let waits = |group: &Group| group.waits.as_deref() == Some(register);
            let waiting = self.groups.iter().filter(|group| waits(group));
            let here = waiting.fold(0, |mask, group| mask | group.threads);
            if here != 0 && here == threads & alive {
                let pc = self.groups.iter().find(|group| waits(group)).map(|g| g.pc);
                self.groups.retain(|group| !waits(group));
                self.groups.push(Group {
                    pc: pc.unwrap_or(0) + 1,
                    threads: here,
                    waits: None,
                });
            }
        }
    }

    /// The lanes of a group whose guard holds.
    fn holds(&self, guard: Option<&str>, threads: u8) -> u8 {
        let Some(guard) = guard else {
            return threads;
        };
        let holds = threads_of(threads).filter(|t| self.lanes[*t].number(guard) != 0);
        holds.fold(0, |mask, thread| mask | 1 << thread)
    }

    fn step(&mut self, mut group: Group) {
        let code = self.code;
        let (text, control) = &code[group.pc];
        let line = Line::new(text);
        let mask = self.holds(line.guard, group.threads);
        let target = |offset: &str| {
            let offset = offset.strip_prefix('.').and_then(number);
            let offset = offset.unwrap_or_else(|| panic!("{text}: no place")) as i64;
            (group.pc as i64 + 1 + offset / WORD_BYTES) as usize
        };
        let mut what = What::Access(Vec::new());
        let mut taken = None;
        match line.name {
            "BRA" => taken = Some(target(line.operands[0])),
            "EXIT" => taken = Some(usize::MAX),
            "BSSY" => {
                let register = line.operands[0].to_string();
                self.meetings.insert(register, group.threads);
            }
            "BSYNC" => group.waits = Some(line.operands[0].to_string()),
            "BAR.SYNC" => what = What::Meeting,
            "MEMBAR.CTA" | "MEMBAR.GL" => {
                let device = line.name == "MEMBAR.GL";
                what = What::Fence { device, by: mask };
            }
            "NOP" => {}
            name if is_access(name) => {
                let made = threads_of(mask).filter_map(|t| self.access(t, &line, *control));
                what = What::Access(made.collect::<Vec<usize>>());
            }
            _ => threads_of(mask).for_each(|t| self.lanes[t].compute(&line)),
        }
        self.event(group.threads, control.wait(), what);
        if group.waits.is_some() {
            self.groups.push(group);
            return;
        }
        let jumps = if taken.is_some() { mask } else { 0 };
        for (pc, threads) in [
            (group.pc + 1, group.threads & !jumps),
            (taken.unwrap_or(0), jumps),
        ] {
            if threads != 0 && pc != usize::MAX {
                self.groups.push(Group {
                    pc,
                    threads,
                    waits: None,
                });
            }
        }
    }

    /// Notes an instruction for the threads that come to it.
    fn event(&mut self, threads: u8, waits: u8, what: What) {
        let (is_nothing, is_known) = match &what {
            What::Access(made) => (made.is_empty(), false),
            What::Fence { by, .. } => (*by == 0, false),
            What::Meeting => (false, true),
        };
        let accesses = self.words.accesses.iter().zip(&self.boards).enumerate();
        let waited = accesses.filter(|(index, (access, board))| {
            let is_new = matches!(&what, What::Access(made) if made.contains(index));
            threads >> access.thread & 1 != 0 && *board & waits != 0 && !is_new
        });
        let waits = waited.fold(0, |mask, (index, _)| mask | 1 << index);
        if is_nothing && waits == 0 {
            return;
        }
        let new = self.words.events.len();
        let block = self.words.blocks[threads.trailing_zeros() as usize];
        let event = match is_known {
            true => *(self.barriers.entry((block, self.barriers_passed))).or_insert(new),
            false => new,
        };
        self.barriers_passed += usize::from(is_known);
        if event == new {
            self.words.events.push(Event {
                threads: 0,
                waits: 0,
                what,
            });
        }
        self.words.events[event].threads |= threads;
        self.words.events[event].waits |= waits;
        for thread in threads_of(threads) {
            self.words.threads[thread].push(event);
        }
    }

    /// A lane's access; its number if it is one to a location.
    fn access(&mut self, thread: usize, line: &Line, control: Control) -> Option<usize> {
        let (lane, o) = (&self.lanes[thread], &line.operands);
        let (base, rest) = line.name.split_once('.').unwrap_or((line.name, ""));
        let is_store = base.starts_with("ST") || base == "RED";
        let (address, values) = if is_store {
            (o[0], &o[1..])
        } else {
            (o[1], &o[2..])
        };
        let address = lane.address(address);
        if (OUT..OUT + DATA).contains(&address) {
            assert!(base == "ST" || base == "STG", "{} of results", line.name);
            assert!(
                !rest.contains("64") && !rest.contains("128"),
                "{}",
                line.name
            );
            self.words.results[(address - OUT) as usize / 4] = Some(lane.value(values[0]));
            return None;
        }
        let is_shared = base.ends_with('S') && base != "S";
        let generic_shared = address >= SHARED;
        let (shared, offset) = match (is_shared, generic_shared) {
            (true, _) => (true, address),
            (false, true) => (true, address - SHARED),
            (false, false) => (false, address.checked_sub(DATA)?),
        };
        let value = |index: usize| lane.number(values[index]);
        let is_atomic = base.starts_with("ATOM") || base == "RED";
        let kind = match rest.split('.').next() {
            Some("ADD") => Kind::Add(value(0)),
            Some("EXCH") => Kind::Exchange(value(0)),
            Some("CAS") => Kind::Swap(value(0), value(1)),
            _ if is_atomic => panic!("what {} does is not known", line.name),
            _ if is_store => Kind::Store(value(0)),
            _ => Kind::Load,
        };
        let place = offset as usize;
        assert_eq!(place % text::STRIDE, 0, "{} of another instance", line.name);
        let access = self.words.accesses.len();
        let board = control.write.map_or(0, |board| 1 << board.number());
        self.boards.push(board);
        self.words.accesses.push(Access {
            thread,
            location: place / text::STRIDE,
            shared,
            kind,
            strong: is_atomic || rest.contains("STRONG"),
            global_order: is_atomic && !is_shared,
            shared_order: is_atomic && base != "ATOMG",
            is_read: false,
        });
        if !is_store {
            self.lanes[thread].set(o[0], Value::Read(access));
        }
        Some(access)
    }
}

fn is_access(name: &str) -> bool {
    let base = name.split('.').next().unwrap_or(name);
    let all = ["LD", "LDG", "LDS", "ST", "STG", "STS"];
    all.contains(&base) || base.starts_with("ATOM") || base == "RED"
}
