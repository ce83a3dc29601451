//! What the threads of a test do in memory, by the words of its code.
//!
//! One instance of the test is followed: a lane of each thread. A reader of the few instructions that such kernels
//! have, as they are printed, computes addresses and says which of them go together: lanes of a warp that have met. What
//! an access reads is not known here; it is followed to where it is stored as a result. This shares nothing with the
//! simulator. An instruction that it does not know, or a branch on what was read, ends the test.

use crate::shapes::{Placement, Program};
use crate::text;
use cranelift_thisgpu::object::Object;
use cranelift_thisgpu::unstable::isa::{Control, decode};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Addresses of the two buffers.
const DATA: u64 = 1 << 32;
const OUT: u64 = 2 << 32;
/// Where shared memory begins among generic addresses.
const SHARED: u64 = 1 << 56;
/// Where parameters begin in their bank.
const PARAMETERS: u64 = 0x160;
const WORD_BYTES: i64 = 16;

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    Number(u32),
    /// What an access has read.
    Read(usize),
}

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

/// An instruction in parts.
struct Line<'a> {
    guard: Option<&'a str>,
    name: &'a str,
    operands: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn new(text: &'a str) -> Line<'a> {
        let (guard, text) = match text.strip_prefix('@').and_then(|t| t.split_once(' ')) {
            Some((guard, rest)) => (Some(guard), rest),
            None => (None, text),
        };
        let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
        let operands = operands.split(", ").filter(|o| !o.is_empty());
        Line {
            guard,
            name,
            operands: operands.collect(),
        }
    }
}

fn number(text: &str) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.trim_start_matches('+')),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// A word of the parameters.
fn constant(text: &str) -> Option<u32> {
    let offset = text.strip_prefix("c[0x0][")?.strip_suffix(']')?;
    let at = number(offset)?.checked_sub(PARAMETERS)?;
    let words = [DATA, OUT, 1];
    let word = words.get(at as usize / 8)?;
    Some((word >> (8 * (at % 8))) as u32)
}

/// The low and the high register of a pair.
fn pair(text: &str) -> Option<(String, String)> {
    let (file, numbers) = text.strip_suffix(']')?.split_once('[')?;
    let (low, high) = numbers.split_once(':')?;
    Some((format!("{file}{low}"), format!("{file}{high}")))
}

/// What a table says of three words, bit by bit; the last of them is worth most.
fn table(table: u32, words: [u32; 3]) -> u32 {
    let bit = |bit: u32| {
        let [c, b, a] = words.map(|word| word >> bit & 1);
        (table >> (4 * a + 2 * b + c) & 1) << bit
    };
    (0..32).map(bit).sum()
}

/// A thread.
#[derive(Clone, Debug, Default)]
struct Lane {
    registers: HashMap<String, Value>,
    tid: u32,
    ctaid: u32,
}

impl Lane {
    fn value(&self, operand: &str) -> Value {
        if let Some(other) = operand.strip_prefix('!') {
            return Value::Number(1 ^ self.number(other));
        }
        let known = match operand {
            "RZ" | "URZ" => Some(0),
            "PT" | "UPT" => Some(1),
            "SR_TID_X" => Some(self.tid),
            "SR_CTAID_X" => Some(self.ctaid),
            _ => constant(operand).or_else(|| number(operand).map(|n| n as u32)),
        };
        let value = known.map(Value::Number);
        let value = value.or_else(|| self.registers.get(operand).copied());
        value.unwrap_or_else(|| panic!("no value in {operand}"))
    }

    fn number(&self, operand: &str) -> u32 {
        match self.value(operand) {
            Value::Number(number) => number,
            Value::Read(_) => panic!("{operand} was read"),
        }
    }

    fn wide(&self, operand: &str) -> u64 {
        let words = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        if let Some((low, high)) = pair(operand) {
            return words(self.number(&low), self.number(&high));
        }
        let next = operand.strip_prefix("c[0x0][").and_then(|offset| {
            let offset = number(offset.strip_suffix(']')?)?;
            constant(&format!("c[0x0][{:#x}]", offset + 4))
        });
        words(self.number(operand), next.unwrap_or(0))
    }

    fn set(&mut self, register: &str, value: Value) {
        if !register.ends_with('Z') && !register.ends_with("PT") {
            self.registers.insert(register.to_string(), value);
        }
    }

    fn set_wide(&mut self, registers: &str, value: u64) {
        let (low, high) = pair(registers).unwrap_or_else(|| panic!("{registers} is no pair"));
        self.set(&low, Value::Number(value as u32));
        self.set(&high, Value::Number((value >> 32) as u32));
    }

    fn address(&self, operand: &str) -> u64 {
        let inner = operand.strip_prefix('[').and_then(|o| o.strip_suffix(']'));
        let terms = inner.unwrap_or_else(|| panic!("{operand} is no address"));
        let sum = terms.split('+').map(|term| self.wide(term));
        sum.fold(0, u64::wrapping_add)
    }

    /// Computes what has nothing to do with memory.
    fn compute(&mut self, line: &Line) {
        let o = &line.operands;
        let at = |index: usize| self.number(o[index]);
        match line.name {
            "MOV" | "S2R" | "S2UR" => {
                let value = self.value(o[1]);
                self.set(o[0], value);
            }
            "SEL" => {
                let value = self.value(if at(3) != 0 { o[1] } else { o[2] });
                self.set(o[0], value);
            }
            "ULDC.64" => self.set_wide(o[0], self.wide(o[1])),
            "SHF.L.WRAP.U32" => {
                let value = (u64::from(at(3)) << 32 | u64::from(at(1))) << (at(2) & 31);
                assert_eq!(at(3), 0, "the high word of a shift");
                self.set(o[0], Value::Number(value as u32));
            }
            "SHF.R.HI.WRAP.U32" => {
                let value = at(3) >> (at(2) & 31);
                self.set(o[0], Value::Number(value));
            }
            "LEA.HI.X" => {
                let value = (u64::from(at(3)) << 32 | u64::from(at(1))) << at(4);
                let value = at(2).wrapping_add((value >> 32) as u32);
                self.set(o[0], Value::Number(value));
            }
            "LOP3.POR" => {
                let value = table(at(4), [3, 2, 1].map(at));
                self.set(o[0], Value::Number(value));
            }
            "IMAD.WIDE.U32" => {
                let product = u64::from(at(1)) * u64::from(at(2));
                self.set_wide(o[0], product.wrapping_add(self.wide(o[3])));
            }
            "IADD.X" => self.add(o),
            name if name.contains("ISETP.EQ.AND") || name.contains("ISETP.NE.AND") => {
                let equal = at(1) == at(2);
                let value = (equal == name.contains("EQ")) && at(3) != 0;
                self.set(o[0], Value::Number(value.into()));
            }
            "PLOP3" => {
                let value = table(at(o.len() - 1), [2, 3, 4].map(|back| at(o.len() - back)));
                self.set(o[0], Value::Number(value & 1));
            }
            name => panic!("what {name} {o:?} does is not known"),
        }
    }

    /// An addition, with a carry in behind its operands and one out before them.
    fn add(&mut self, operands: &[&str]) {
        let is_predicate = |o: &&&str| o.trim_start_matches('!').starts_with('P');
        let out = operands.get(1).filter(is_predicate);
        let first = 1 + usize::from(out.is_some());
        let carry = operands.get(first + 2).filter(is_predicate);
        let [a, b] = [first, first + 1].map(|index| u64::from(self.number(operands[index])));
        let sum = a + b + carry.map_or(0, |c| u64::from(self.number(c)));
        self.set(operands[0], Value::Number(sum as u32));
        if let Some(out) = out {
            self.set(out, Value::Number((sum >> 32) as u32));
        }
    }
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
            let lane = |&(ctaid, tid): &(u32, u32)| Lane {
                ctaid,
                tid,
                ..Lane::default()
            };
            let mut walk = Walk {
                code: &code,
                lanes: places.iter().map(lane).collect(),
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
