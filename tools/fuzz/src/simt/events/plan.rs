//! A kernel of events: arrays, what threads do with them, and how they wait for each other.
//!
//! A thread has [`VARS`] variables of 32 bits. It does its *rounds*: something by itself, a wait, something that nobody
//! else does at the same time or that others have published, a release, something by itself. Whoever runs first, the
//! outcome is the same: that of the events in order.

use super::features::Feature;
use crate::simt::kernel::{Condition, Op, Operand, Space, Update, VARS};

/// Who has a copy of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// All threads together have one.
    All,
    /// Each block has one.
    Block,
    /// Each thread has one.
    Thread,
}

/// Where an array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An allocation of its own, which ends where the array ends.
    Global,
    /// In shared memory, by offsets.
    Shared,
    /// In shared memory, by generic addresses.
    Generic,
    /// A stack slot.
    Stack,
}

impl Place {
    /// Whether it is in shared memory.
    pub fn is_shared(self) -> bool {
        matches!(self, Place::Shared | Place::Generic)
    }
}

/// What may be done with an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Only read.
    Input,
    /// Its owner's alone.
    Own,
    /// Used by whose turn it is.
    Common,
    /// Written by its owner before a release, read by the next one behind it.
    Message,
    /// Changes by one commuting operation, under a lock.
    Locked(Update),
    /// Changes by one commuting atomic operation.
    Atomic(Update),
    /// What is in it at the end does not matter.
    Scratch,
}

/// An array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    /// Where it is.
    pub place: Place,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub bytes: u32,
    /// Elements of a copy.
    pub count: u32,
    /// Who has a copy.
    pub owner: Owner,
    /// What is done with it.
    pub role: Role,
}

impl Array {
    /// Bytes of a copy.
    pub fn size(&self) -> u32 {
        self.bytes * self.count
    }
}

/// A number that the compiler may know or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The number.
    pub number: u32,
    /// Whether the launch passes it.
    pub passed: bool,
}

/// An index: a sum of counters with factors, and a constant; or a variable modulo the number of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Level of the loop, from the outermost, and factor.
    pub terms: Vec<(usize, u32)>,
    /// Is added.
    pub plus: i32,
    /// Is added modulo the number of elements, and then there are no terms.
    pub var: Option<usize>,
    /// Bits in which it is computed.
    pub bits: u32,
    /// Extended by the sign.
    pub signed: bool,
    /// The constant is added to the address.
    pub split: bool,
    /// The constant stands in the access.
    pub offset: bool,
    /// The pointer of the loop of the only term is used.
    pub pointer: bool,
}

impl Index {
    /// A constant.
    pub fn constant(plus: u32) -> Index {
        Index {
            terms: Vec::new(),
            plus: plus as i32,
            var: None,
            bits: 32,
            signed: false,
            split: false,
            offset: false,
            pointer: false,
        }
    }

    /// A variable.
    pub fn var(var: usize) -> Index {
        Index {
            var: Some(var),
            ..Index::constant(0)
        }
    }
}

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Of which array.
    pub array: usize,
    /// Which one.
    pub index: Index,
    /// Of the copy of the thread before, in the order of the ranks.
    pub previous: bool,
    /// With `notrap`, and `readonly` for a load of what nobody writes.
    pub flags: bool,
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Of a variable.
    Value(Condition),
    /// The counter of a level and a constant are together below a number, and not negative.
    Inside {
        /// Level of the loop.
        level: usize,
        /// Is added.
        plus: i32,
        /// The number.
        below: Bound,
        /// How it is asked: 0 in one unsigned comparison, 1 by two comparisons.
        form: u8,
    },
    /// A constant is below a number.
    Fits {
        /// The constant.
        constant: u32,
        /// The number.
        below: Bound,
    },
    /// There is a thread before this one in this round.
    HasPrevious,
}

/// How a loop counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// From 0, while it is below the number.
    Up,
    /// From 0, until it is the number; step 1.
    UpTo,
    /// From the number, by steps, while there is a whole step.
    Down,
    /// From minus the number to 0; step 1.
    Negative,
    /// A pointer from the beginning of an array to its end.
    PointerUp(usize),
    /// A pointer from the end of an array to its beginning.
    PointerDown(usize),
}

/// A loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// How it counts.
    pub form: Form,
    /// How far.
    pub bound: Bound,
    /// By how much.
    pub step: Bound,
    /// Bits of the counter.
    pub bits: u32,
    /// Tests at the end of a turn; there is one at least.
    pub rotated: bool,
    /// What is done in each turn.
    pub body: Vec<Stmt>,
    /// The loop is left behind a turn for which this holds.
    pub leave: Option<Condition>,
}

impl Loop {
    /// The positions of all turns.
    pub fn positions(&self) -> Vec<i64> {
        let (number, step) = (
            i64::from(self.bound.number),
            i64::from(self.step.number.max(1)),
        );
        let up = || (0..number).step_by(step as usize).collect();
        match self.form {
            Form::Up | Form::UpTo | Form::Negative | Form::PointerUp(_) => up(),
            Form::Down | Form::PointerDown(_) => {
                let turns = 1..=number / step;
                turns.map(|turn| number - turn * step).collect()
            }
        }
    }
}

/// A step of a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// A variable gets a value.
    Assign {
        /// Which one.
        to: usize,
        /// What is computed.
        op: Op,
        /// First operand.
        a: Operand,
        /// Second operand.
        b: Operand,
    },
    /// A variable and an element become the variable: three times it, plus the element.
    Load {
        /// The variable.
        to: usize,
        /// The element.
        from: Element,
    },
    /// An element gets a value.
    Store {
        /// The element.
        to: Element,
        /// The value.
        value: Operand,
    },
    /// An element changes by the operation of its array.
    Update {
        /// The element.
        to: Element,
        /// Second operand.
        value: Operand,
    },
    /// Something is done if a condition holds.
    If {
        /// The condition.
        when: Test,
        /// What is done.
        then: Vec<Stmt>,
    },
    /// A loop.
    Loop(Loop),
}

/// How a flag is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// An atomic load.
    Load,
    /// An atomic operation that changes nothing.
    Update,
    /// A compare-and-swap of what is waited for with itself.
    Swap,
    /// A compare-and-swap of what is waited for with a number that nobody waits for.
    Busy,
    /// An addition of 256; the low eight bits count.
    Count,
    /// A bit is set; it was not (locks).
    Bit,
    /// An exchange with 1 (locks).
    Exchange,
}

/// What is done with what was read before it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// Nothing.
    Nothing,
    /// It is stored to a slot and loaded again.
    Stack,
    /// The same, at a place in the slot that the compiler does not know.
    Element,
    /// It is stored to the scratch array of this number and loaded again.
    Scratch(usize),
    /// A callee writes it through a pointer to a slot.
    Callee,
    /// A callee writes it through a pointer to the scratch array of this number.
    CalleeScratch(usize),
}

/// The loop of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turning {
    /// One look a turn.
    Plain,
    /// Two looks a turn, each with its exit.
    Twice,
    /// Something else between looks.
    Sleep,
    /// Some looks, then something else.
    Bounded,
    /// An inner loop that waits for any change.
    Nested,
    /// What is waited for is done in the loop.
    Inside,
    /// A function that calls itself in tail position.
    Tail,
}

/// How a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// How it reads.
    pub look: Look,
    /// What it does with that.
    pub through: Through,
    /// The loop.
    pub turning: Turning,
    /// A device function waits.
    pub function: bool,
}

/// How a flag is changed at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// An atomic store.
    Store,
    /// An exchange.
    Exchange,
    /// An addition.
    Add,
    /// A compare-and-swap.
    Swap,
}

/// The order of the participants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By their numbers.
    Up,
    /// Against them.
    Down,
    /// The number times an odd one, plus another one, modulo their number, a power of two.
    Mixed(u32, u32),
}

/// What threads wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Nothing.
    Nothing,
    /// A counter says whose turn it is.
    Turns,
    /// Flags of the threads; with the first one waiting for the last one of the round before or not.
    Links {
        /// Whether the first one waits.
        ring: bool,
    },
    /// A lock.
    Lock,
    /// A lock with tickets.
    Tickets,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Where it came from.
    pub seed: u64,
    /// Its family.
    pub family: Feature,
    /// Blocks.
    pub grid: u32,
    /// Threads of a block.
    pub threads: u32,
    /// The arrays.
    pub arrays: Vec<Array>,
    /// What threads wait for.
    pub sync: Sync,
    /// The space of the flags.
    pub space: Space,
    /// Flags in shared memory have generic addresses.
    pub generic: bool,
    /// Bytes of a flag.
    pub flag_bytes: u32,
    /// Flags before the first one that is used.
    pub skipped: u32,
    /// What a counter starts with.
    pub start: u64,
    /// One thread of so many takes part.
    pub stride: u32,
    /// Their order.
    pub order: Order,
    /// How they wait.
    pub wait: Wait,
    /// How they let others go on.
    pub release: Release,
    /// Whether what the release read is used.
    pub release_read: bool,
    /// Rounds.
    pub rounds: u32,
    /// Values that live from the beginning to the end, see [`Plan::kept`].
    pub pressure: u32,
    /// Done before the wait.
    pub before: Vec<Stmt>,
    /// Done behind it.
    pub body: Vec<Stmt>,
    /// Done behind the release.
    pub after: Vec<Stmt>,
}

impl Plan {
    /// Threads of the grid.
    pub fn all_threads(&self) -> u32 {
        self.grid * self.threads
    }

    /// Whether one order holds for the whole grid.
    pub fn is_grid_wide(&self) -> bool {
        self.space == Space::Global
    }

    /// Threads among which there is one order.
    pub fn scope(&self) -> u32 {
        match self.is_grid_wide() {
            true => self.all_threads(),
            false => self.threads,
        }
    }

    /// Threads that take part in an order.
    pub fn participants(&self) -> u32 {
        self.scope().div_ceil(self.stride)
    }

    /// The participant of a rank.
    pub fn participant(&self, rank: u32) -> u32 {
        let count = self.participants();
        match self.order {
            Order::Up => rank,
            Order::Down => count - 1 - rank,
            Order::Mixed(factor, plus) => {
                let inverse = inverse(factor);
                rank.wrapping_sub(plus).wrapping_mul(inverse) & (count - 1)
            }
        }
    }

    /// Flags, those before the first one included.
    pub fn flags(&self) -> u32 {
        let used = match self.sync {
            Sync::Nothing => return 0,
            Sync::Turns | Sync::Lock => 1,
            Sync::Links { .. } => self.participants(),
            Sync::Tickets => 2,
        };
        self.skipped + used
    }

    /// Copies of an array.
    pub fn copies(&self, array: &Array) -> u32 {
        match (array.place, array.owner) {
            (Place::Stack, _) | (_, Owner::All) => 1,
            (Place::Global, Owner::Block) => self.grid,
            (Place::Global, Owner::Thread) => self.all_threads(),
            (_, Owner::Block) => 1,
            (_, Owner::Thread) => self.threads,
        }
    }

    /// Where each array in shared memory begins, and where the flags do; last the end.
    pub fn shared_layout(&self) -> (Vec<u32>, u32, u32) {
        let mut end = 0u32;
        let mut offsets = Vec::new();
        for array in &self.arrays {
            if array.place.is_shared() {
                end = end.next_multiple_of(array.bytes);
                offsets.push(end);
                end += self.copies(array) * array.size();
            } else {
                offsets.push(0);
            }
        }
        // No plain access to a word with flags.
        let flags = end.next_multiple_of(8);
        if self.space == Space::Shared && self.flags() != 0 {
            end = flags + self.flags() * self.flag_bytes;
        }
        (offsets, flags, end)
    }

    /// The numbers that the launch passes.
    pub fn passed(&self) -> Vec<u32> {
        let mut numbers = Vec::new();
        for stmts in [&self.before, &self.body, &self.after] {
            collect(stmts, &mut numbers);
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Initial contents of an element of an array in global memory.
    pub fn initial(&self, array: usize, element: u32) -> u64 {
        let data = &self.arrays[array];
        let ones = u64::MAX >> (64 - 8 * data.bytes);
        match data.role {
            // Shared memory and slots are cleared.
            _ if data.place != Place::Global => 0,
            Role::Locked(update) | Role::Atomic(update) => match update {
                Update::And | Update::Umin => ones,
                Update::Smin => ones >> 1,
                _ => 0,
            },
            _ => {
                let mixed = (self.seed ^ (array as u64) << 32 ^ u64::from(element))
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (mixed ^ mixed >> 29) & ones
            }
        }
    }

    /// Initial variables of a thread.
    pub fn first(&self, thread: u32) -> [u32; VARS] {
        std::array::from_fn(|var| {
            let factor = FACTORS[var];
            thread.wrapping_mul(factor).wrapping_add(factor >> 5)
        })
    }

    /// The values of a thread that live from the beginning to the end. Each is made of the one before it; all go into
    /// the thread's first variable.
    pub fn kept(&self, thread: u32) -> impl Iterator<Item = u32> {
        let next = |value: &u32| Some(value.wrapping_mul(*value).wrapping_add(KEPT));
        std::iter::successors(Some(thread), next).take(self.pressure as usize)
    }

    /// All statements, also those in others.
    pub fn stmts(&self) -> Vec<&Stmt> {
        let mut all = Vec::new();
        for stmts in [&self.before, &self.body, &self.after] {
            flatten(stmts, &mut all);
        }
        all
    }
}

/// What initial variables are made of, by multiplication with the thread's number.
pub const FACTORS: [u32; VARS] = [1, 0x9e37, 0x85eb_ca6b, 0xc2b2_ae35, 77, 0x27d4_eb2f];

/// Is added to the square of a kept value.
pub const KEPT: u32 = 0x2545_f491;

fn flatten<'a>(stmts: &'a [Stmt], all: &mut Vec<&'a Stmt>) {
    for stmt in stmts {
        all.push(stmt);
        match stmt {
            Stmt::If { then, .. } => flatten(then, all),
            Stmt::Loop(inner) => flatten(&inner.body, all),
            _ => {}
        }
    }
}

fn collect(stmts: &[Stmt], numbers: &mut Vec<u32>) {
    for stmt in stmts {
        let (bounds, inner) = match stmt {
            Stmt::If { when, then } => match when {
                Test::Inside { below, .. } | Test::Fits { below, .. } => (vec![below], then),
                Test::Value(_) | Test::HasPrevious => (Vec::new(), then),
            },
            Stmt::Loop(inner) => (vec![&inner.bound, &inner.step], &inner.body),
            _ => continue,
        };
        let passed = bounds.into_iter().filter(|bound| bound.passed);
        numbers.extend(passed.map(|bound| bound.number));
        collect(inner, numbers);
    }
}

/// The inverse of an odd number modulo 2^32.
pub fn inverse(odd: u32) -> u32 {
    let mut inverse = odd;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse
}
