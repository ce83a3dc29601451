//! The table of litmus tests: shapes, and the ways in which their accesses are ordered, spread over threads and put
//! into memory.
//!
//! A shape is a few threads of a few accesses to a few locations, as in Alglave, Maranget and Tautschnig, "Herding
//! cats" (2014). A [`Style`] says by which operations of CLIF its loads and stores are made and what stands between
//! them, a [`Placement`] where its threads run, and each location has a [`Space`]. What comes of it is a [`Program`];
//! `model.rs` says what it may leave, `text.rs` makes a kernel of it.

use std::fmt::{self, Display};

/// Where a location is, and by what kind of address threads reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Global,
    Shared,
    /// Global memory by an address that could be of shared memory too.
    GenericGlobal,
    GenericShared,
}

impl Space {
    pub fn is_shared(self) -> bool {
        matches!(self, Space::Shared | Space::GenericShared)
    }

    pub fn letter(self) -> char {
        match self {
            Space::Global => 'g',
            Space::Shared => 's',
            Space::GenericGlobal => 'G',
            Space::GenericShared => 'S',
        }
    }
}

/// Where the threads of a test run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In one warp.
    Warp,
    /// In warps of one block.
    Block,
    /// Two and two in a block.
    Pairs,
    /// Each in a block of its own.
    Grid,
}

impl Placement {
    /// The block of a thread.
    pub fn block(self, thread: usize) -> usize {
        match self {
            Placement::Warp | Placement::Block => 0,
            Placement::Pairs => thread / 2,
            Placement::Grid => thread,
        }
    }
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Load,
    Store(u32),
    /// `atomic_rmw xchg`, with the old value as a result or without.
    Exchange(u32, bool),
    /// `atomic_rmw add`, likewise.
    Add(u32, bool),
    /// `atomic_cas` of an expected value and a new one.
    Swap(u32, u32),
}

/// How strong it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `load` and `store`.
    Plain,
    /// Atomic with `can_move`.
    Relaxed,
    /// Atomic, as CLIF has it.
    Strong,
}

/// A step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Access(usize, Kind, Order),
    /// `fence`.
    Fence,
    /// `%gpu_membar_cta`.
    BlockFence,
    /// `%gpu_bar_sync`.
    Barrier,
}

impl Step {
    /// Whether it leaves a value in the outcome.
    pub fn is_read(self) -> bool {
        match self {
            Step::Access(_, kind, _) => match kind {
                Kind::Load | Kind::Swap(..) => true,
                Kind::Exchange(_, read) | Kind::Add(_, read) => read,
                Kind::Store(_) => false,
            },
            Step::Fence | Step::BlockFence | Step::Barrier => false,
        }
    }
}

/// A litmus test.
#[derive(Clone, Debug)]
pub struct Program {
    pub name: String,
    pub threads: Vec<Vec<Step>>,
    /// By location.
    pub spaces: Vec<Space>,
    pub placement: Placement,
    /// The outcome that only weak memory has, if there is one: what is read, thread by thread, then what the locations
    /// hold. None is anything.
    pub weak: Vec<Option<u32>>,
}

impl Program {
    pub fn locations(&self) -> usize {
        self.spaces.len()
    }

    /// The name of its style.
    pub fn style(&self) -> &str {
        self.name.split('.').nth(1).unwrap_or("")
    }

    /// Values of the outcome that are read; the others are what locations hold.
    pub fn reads(&self) -> usize {
        let steps = self.threads.iter().flatten();
        steps.filter(|step| step.is_read()).count()
    }

    /// Whether the machine gives more order than the model asks for: strong accesses are performed for all threads at
    /// one time, so fences of the block order them for other blocks too.
    pub fn is_stronger_here(&self) -> bool {
        self.placement == Placement::Pairs && self.style() == "block_fences"
    }

    /// Whether an outcome is the one that only weak memory has.
    pub fn is_weak(&self, outcome: &[u32]) -> bool {
        let same = |(wanted, got): (&Option<u32>, &u32)| wanted.is_none_or(|w| w == *got);
        !self.weak.is_empty() && self.weak.iter().zip(outcome).all(same)
    }
}

impl Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}

/// An access of a shape.
#[derive(Clone, Copy, Debug)]
enum Do {
    Load(usize),
    Store(usize, u32),
}
use Do::{Load, Store};

/// A shape. Locations from `flags` on tell others something, those before hold what is told.
struct Shape {
    name: &'static str,
    threads: &'static [&'static [Do]],
    locations: usize,
    flags: usize,
    weak: &'static [Option<u32>],
}

const X: usize = 0;
const Y: usize = 1;
const Z: usize = 2;
/// Anything.
const ANY: Option<u32> = None;

const fn is(value: u32) -> Option<u32> {
    Some(value)
}

const fn shape(
    name: &'static str,
    locations: usize,
    flags: usize,
    threads: &'static [&'static [Do]],
    weak: &'static [Option<u32>],
) -> Shape {
    Shape {
        name,
        threads,
        locations,
        flags,
        weak,
    }
}

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    shape("mp", 2, Y, &[&[Store(X, 1), Store(Y, 1)], &[Load(Y), Load(X)]], &[is(1), is(0)]),
    shape("sb", 2, X, &[&[Store(X, 1), Load(Y)], &[Store(Y, 1), Load(X)]], &[is(0), is(0)]),
    shape("lb", 2, X, &[&[Load(X), Store(Y, 1)], &[Load(Y), Store(X, 1)]], &[is(1), is(1)]),
    shape("s", 2, Y, &[&[Store(X, 2), Store(Y, 1)], &[Load(Y), Store(X, 1)]], &[is(1), is(2)]),
    shape("r", 2, X, &[&[Store(X, 1), Store(Y, 1)], &[Store(Y, 2), Load(X)]], &[is(0), ANY, is(2)]),
    shape("2+2w", 2, X, &[&[Store(X, 1), Store(Y, 2)], &[Store(Y, 1), Store(X, 2)]], &[is(1), is(1)]),
    shape("iriw", 2, X, &[&[Store(X, 1)], &[Load(X), Load(Y)], &[Store(Y, 1)], &[Load(Y), Load(X)]],
        &[is(1), is(0), is(1), is(0)]),
    shape("wrc", 2, X, &[&[Store(X, 1)], &[Load(X), Store(Y, 1)], &[Load(Y), Load(X)]], &[is(1), is(1), is(0)]),
    shape("isa2", 3, Y, &[&[Store(X, 1), Store(Y, 1)], &[Load(Y), Store(Z, 1)], &[Load(Z), Load(X)]],
        &[is(1), is(1), is(0)]),
    shape("corr", 1, X, &[&[Store(X, 1)], &[Load(X), Load(X)]], &[]),
    shape("coww", 1, X, &[&[Store(X, 1), Store(X, 2)], &[Load(X)]], &[]),
    shape("corw1", 1, X, &[&[Load(X), Store(X, 1)], &[Load(X)]], &[]),
    shape("corw2", 1, X, &[&[Load(X), Store(X, 1)], &[Store(X, 2)]], &[]),
    shape("cowr", 1, X, &[&[Store(X, 1), Load(X)], &[Store(X, 2), Load(X)]], &[]),
];

/// How the accesses of a shape are made. Where a style orders, what holds the data is accessed by `load` and `store`,
/// and flags as the style says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    Relaxed,
    /// A release store is `fence` and a relaxed store, an acquire load a relaxed load and `fence`.
    Release,
    Strong,
    /// Relaxed, with `fence` between all accesses.
    Fences,
    /// The same with `%gpu_membar_cta`.
    BlockFences,
    /// Plain, with a fence between all accesses.
    PlainFences,
    /// Stores are exchanges whose result nobody reads, loads are additions of 0.
    Modify,
    /// The same, and the result of an exchange is read.
    ModifyRead,
    /// The same by compare-and-swap; a store expects 0, or does nothing.
    Swap,
}

const STYLES: [(Style, &str); 10] = [
    (Style::Plain, "plain"),
    (Style::Relaxed, "relaxed"),
    (Style::Release, "release"),
    (Style::Strong, "strong"),
    (Style::Fences, "fences"),
    (Style::BlockFences, "block_fences"),
    (Style::PlainFences, "plain_fences"),
    (Style::Modify, "modify"),
    (Style::ModifyRead, "modify_read"),
    (Style::Swap, "swap"),
];

fn step(access: Do, style: Style, is_flag: bool) -> Step {
    let order = match style {
        Style::Plain | Style::PlainFences => Order::Plain,
        Style::Relaxed | Style::Fences | Style::BlockFences => Order::Relaxed,
        _ if !is_flag => Order::Plain,
        Style::Release => Order::Relaxed,
        Style::Strong | Style::Modify | Style::ModifyRead | Style::Swap => Order::Strong,
    };
    let (location, kind) = match access {
        Load(location) => (location, Kind::Load),
        Store(location, value) => (location, Kind::Store(value)),
    };
    let kind = match (style, kind) {
        _ if !is_flag => kind,
        (Style::Modify, Kind::Store(value)) => Kind::Exchange(value, false),
        (Style::ModifyRead, Kind::Store(value)) => Kind::Exchange(value, true),
        (Style::Modify | Style::ModifyRead, _) => Kind::Add(0, true),
        // A value that nobody stores.
        (Style::Swap, Kind::Load) => Kind::Swap(99, 98),
        (Style::Swap, Kind::Store(value)) => Kind::Swap(0, value),
        _ => kind,
    };
    Step::Access(location, kind, order)
}

fn thread(accesses: &[Do], style: Style, flags: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for (index, access) in accesses.iter().enumerate() {
        let (Load(location) | Store(location, _)) = *access;
        let is_flag = location >= flags;
        let fence = match style {
            Style::Fences | Style::PlainFences => Some(Step::Fence),
            Style::BlockFences => Some(Step::BlockFence),
            _ => None,
        };
        steps.extend(fence.filter(|_| index > 0));
        let release = style == Style::Release && is_flag;
        let is_load = matches!(access, Load(_));
        steps.extend((release && !is_load).then_some(Step::Fence));
        steps.push(step(*access, style, is_flag));
        steps.extend((release && is_load).then_some(Step::Fence));
    }
    steps
}

/// The outcome of a shape with all that a style reads beside what the shape does: anything there.
fn weak(shape: &Shape, threads: &[Vec<Step>]) -> Vec<Option<u32>> {
    let mut wanted = shape.weak.iter();
    let mut weak = Vec::new();
    if shape.weak.is_empty() {
        return weak;
    }
    for (accesses, steps) in shape.threads.iter().zip(threads) {
        let accesses = accesses.iter();
        let made = steps.iter().filter(|s| matches!(s, Step::Access(..)));
        for (access, step) in accesses.zip(made) {
            match access {
                Load(_) => weak.push(wanted.next().copied().flatten()),
                Store(..) if step.is_read() => weak.push(None),
                Store(..) => {}
            }
        }
    }
    weak.extend(wanted);
    weak
}

/// The spaces of the locations of tests in one block, and in several.
const MIXED: &[&[Space]] = &[
    &[Space::Global, Space::Global, Space::Global],
    &[Space::Shared, Space::Shared, Space::Shared],
    &[Space::Global, Space::Shared, Space::Global],
    &[Space::Shared, Space::Global, Space::Shared],
    &[
        Space::GenericGlobal,
        Space::GenericGlobal,
        Space::GenericShared,
    ],
    &[
        Space::GenericGlobal,
        Space::GenericShared,
        Space::GenericGlobal,
    ],
    &[
        Space::GenericShared,
        Space::GenericGlobal,
        Space::GenericShared,
    ],
    &[Space::Global, Space::GenericShared, Space::Global],
    &[Space::GenericGlobal, Space::Shared, Space::GenericGlobal],
];
const ACROSS: &[&[Space]] = &[
    &[Space::Global, Space::Global, Space::Global],
    &[
        Space::GenericGlobal,
        Space::GenericGlobal,
        Space::GenericGlobal,
    ],
    &[Space::Global, Space::GenericGlobal, Space::Global],
];

/// All tests without loops.
pub fn all() -> Vec<Program> {
    let mut all = Vec::new();
    for shape in SHAPES {
        for placement in [
            Placement::Warp,
            Placement::Block,
            Placement::Pairs,
            Placement::Grid,
        ] {
            let is_one_block = matches!(placement, Placement::Warp | Placement::Block);
            // Two threads in pairs are one block.
            if placement == Placement::Pairs && shape.threads.len() < 3 {
                continue;
            }
            let spaces = if is_one_block { MIXED } else { ACROSS };
            let mut done: Vec<&[Space]> = Vec::new();
            for spaces in spaces {
                let spaces = &spaces[..shape.locations];
                if done.contains(&spaces) {
                    continue;
                }
                done.push(spaces);
                for (style, style_name) in STYLES {
                    // What is one block's orders nothing between blocks.
                    if style == Style::BlockFences && placement == Placement::Grid {
                        continue;
                    }
                    let threads = shape.threads.iter();
                    let threads: Vec<_> = threads.map(|t| thread(t, style, shape.flags)).collect();
                    let letters: String = spaces.iter().map(|s| s.letter()).collect();
                    let place = format!("{placement:?}").to_lowercase();
                    all.push(Program {
                        name: format!("{}.{style_name}.{place}.{letters}", shape.name),
                        weak: weak(shape, &threads),
                        threads,
                        spaces: spaces.to_vec(),
                        placement,
                    });
                }
            }
        }
    }
    all.extend(barriers());
    all.push(mixed());
    all
}

/// A strong load and a weak one behind it, of one place: coherence holds between them.
fn mixed() -> Program {
    let load = |order| Step::Access(X, Kind::Load, order);
    let store = Step::Access(X, Kind::Store(1), Order::Plain);
    Program {
        name: String::from("corr.mixed.grid.g"),
        threads: vec![vec![store], vec![load(Order::Relaxed), load(Order::Plain)]],
        spaces: vec![Space::Global],
        placement: Placement::Grid,
        weak: Vec::new(),
    }
}

/// Data that is published by a barrier of the block, both ways.
fn barriers() -> Vec<Program> {
    let plain = |location, kind| Step::Access(location, kind, Order::Plain);
    let thread = |own, other, value| {
        vec![
            plain(own, Kind::Store(value)),
            Step::Barrier,
            plain(other, Kind::Load),
            Step::Barrier,
            plain(other, Kind::Store(value + 10)),
        ]
    };
    let test = |spaces: &&[Space]| {
        let spaces = &spaces[..2];
        let letters: String = spaces.iter().map(|s| s.letter()).collect();
        Program {
            name: format!("barrier.plain.block.{letters}"),
            threads: vec![thread(X, Y, 1), thread(Y, X, 2)],
            spaces: spaces.to_vec(),
            placement: Placement::Block,
            weak: Vec::new(),
        }
    };
    let mut all: Vec<Program> = MIXED.iter().map(test).collect();
    all.dedup_by(|a, b| a.name == b.name);
    all
}
