//! A kernel as the generator writes it: a graph of blocks over variables of 32 bits, small enough that lanes can be
//! followed through it by hand.
//!
//! A thread has [`VARS`] variables a function call, *fuel* that every loop without a constant number of turns uses up,
//! and a *record* in memory for itself. What threads share is [`Cell`]s, which change only by operations that commute,
//! so that the result does not depend on who comes first.

/// Variables of a function.
pub const VARS: usize = 6;
/// Words of a thread's record: the number of its events, the masks that it saw, its values.
pub const RECORD: usize = 64;
/// First word of the masks in a record.
pub const MASKS: usize = 1;
/// First word of the values in a record; the last mask is replaced when there are more events.
pub const VALUES: usize = RECORD - 16;
/// Values that a thread may write and read while it runs, behind the [`VARS`] that it leaves at its end.
pub const OWN: usize = 8;
/// Fuel that a thread starts with.
pub const FUEL: u32 = 20;
/// Cells of a [`Cell`] group.
pub const GROUP: u32 = 4;
/// Bytes of a group.
pub const GROUP_BYTES: u32 = 32;

/// Index of a block in its function.
pub type Label = usize;

/// A variable or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A variable's value.
    Var(usize),
    /// A number.
    Const(u32),
}

/// What an assignment computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// a + b.
    Add,
    /// a - b.
    Sub,
    /// a * b.
    Mul,
    /// a & b.
    And,
    /// a | b.
    Or,
    /// a ^ b.
    Xor,
    /// a << b mod 32.
    Shl,
    /// a >> b mod 32.
    Shr,
    /// The larger one, unsigned.
    Max,
    /// The smaller one, signed.
    Min,
    /// a >> b mod 32, signed.
    Sar,
    /// The larger one, signed.
    Smax,
    /// The smaller one, unsigned.
    Umin,
    /// a if its bit 2 is set, b otherwise.
    Pick,
    /// The upper half of ((a << 29) + b) - (b << 7), in 64 bits, a signed.
    Wide,
    /// Both halves of a - b, exclusive or, in 64 bits and signed; of a + b if that is the smaller one.
    WidePick,
}

/// How the counter of [`Stmt::Count`] runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// From 0 up to the number.
    Up,
    /// From the number down to 0.
    Down,
    /// The number, shifted right until nothing is left.
    Shift,
    /// From the number down by steps of 1 or 3, until it is not positive: 3 if bit 1 of the operand is set.
    Steps(Operand),
}

impl Counting {
    /// The counters of the turns, and what the counter is behind them; the operand of [`Counting::Steps`] is `step`.
    pub fn turns(self, number: u32, step: u32) -> (Vec<u32>, u32) {
        let step = step_of(step);
        match self {
            Counting::Up => ((0..number).collect(), number),
            Counting::Down => ((1..=number).rev().collect(), 0),
            Counting::Shift => {
                let shifted = |n: &u32| Some(n >> 1);
                let turns = std::iter::successors(Some(number), shifted);
                (turns.take_while(|n| *n != 0).collect(), 0)
            }
            Counting::Steps(_) => {
                let turns: Vec<u32> = (1..=number).rev().step_by(step as usize).collect();
                let last = number.wrapping_sub(step * turns.len() as u32);
                (turns, last)
            }
        }
    }
}

/// The step that an operand of [`Counting::Steps`] stands for.
fn step_of(operand: u32) -> u32 {
    operand & 2 | 1
}

/// The largest number that [`Stmt::Count`] counts to.
pub const COUNTED: u32 = 7;

impl Op {
    /// All of them.
    pub const ALL: [Op; 16] = [
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::And,
        Op::Or,
        Op::Xor,
        Op::Shl,
        Op::Shr,
        Op::Max,
        Op::Min,
        Op::Sar,
        Op::Smax,
        Op::Umin,
        Op::Pick,
        Op::Wide,
        Op::WidePick,
    ];

    /// The result.
    pub fn apply(self, a: u32, b: u32) -> u32 {
        match self {
            Op::Add => a.wrapping_add(b),
            Op::Sub => a.wrapping_sub(b),
            Op::Mul => a.wrapping_mul(b),
            Op::And => a & b,
            Op::Or => a | b,
            Op::Xor => a ^ b,
            Op::Shl => a << (b & 31),
            Op::Shr => a >> (b & 31),
            Op::Max => a.max(b),
            Op::Min => (a as i32).min(b as i32) as u32,
            Op::Sar => (a as i32 >> (b & 31)) as u32,
            Op::Smax => (a as i32).max(b as i32) as u32,
            Op::Umin => a.min(b),
            Op::Pick => {
                if a & 4 != 0 {
                    a
                } else {
                    b
                }
            }
            Op::Wide => {
                let (a, b) = (i64::from(a as i32), i64::from(b));
                ((a << 29).wrapping_add(b).wrapping_sub(b << 7) >> 32) as u32
            }
            Op::WidePick => {
                let (a, b) = (i64::from(a as i32), i64::from(b as i32));
                let chosen = (a - b).min(a + b);
                (chosen ^ chosen >> 32) as u32
            }
        }
    }
}

/// How a masked value is compared with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Less, unsigned.
    Less,
    /// Greater, signed.
    Greater,
}

/// `(value & mask) compare with`, where the value may be salted: xored with a number that the compiler does not know
/// ([`salt`]), so that it cannot decide what the generator takes for a decision. Where lanes meet depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What is looked at.
    pub value: Operand,
    /// Whether it is salted.
    pub salted: bool,
    /// Its bits that count.
    pub mask: u32,
    /// How.
    pub compare: Compare,
    /// With what.
    pub with: u32,
}

/// A multiplier that is odd.
pub const SALT: u32 = 0x9e37_79b1;

/// The salt of a function, of its first argument or the kernel's number.
pub fn salt(first: u32) -> u32 {
    first.wrapping_mul(SALT)
}

impl Condition {
    /// Whether it holds for a value, salted if it is to be.
    pub fn holds(&self, value: u32) -> bool {
        let value = value & self.mask;
        match self.compare {
            Compare::Equal => value == self.with,
            Compare::NotEqual => value != self.with,
            Compare::Less => value < self.with,
            Compare::Greater => value as i32 > self.with as i32,
        }
    }
}

/// Operations on cells; each commutes with itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Sum.
    Add,
    /// Intersection.
    And,
    /// Union.
    Or,
    /// Symmetric difference.
    Xor,
    /// Unsigned maximum.
    Umax,
    /// Unsigned minimum.
    Umin,
    /// Signed maximum.
    Smax,
    /// Signed minimum.
    Smin,
}

impl Update {
    /// All of them.
    pub const ALL: [Update; 8] = [
        Update::Add,
        Update::And,
        Update::Or,
        Update::Xor,
        Update::Umax,
        Update::Umin,
        Update::Smax,
        Update::Smin,
    ];

    /// The new contents of a cell of so many bytes.
    pub fn apply(self, bytes: u32, old: u64, value: u64) -> u64 {
        let shift = 64 - 8 * bytes;
        let (a, b) = (old << shift, value << shift);
        let (sa, sb) = (a as i64, b as i64);
        let new = match self {
            Update::Add => a.wrapping_add(b),
            Update::And => a & b,
            Update::Or => a | b,
            Update::Xor => a ^ b,
            Update::Umax => a.max(b),
            Update::Umin => a.min(b),
            Update::Smax => sa.max(sb) as u64,
            Update::Smin => sa.min(sb) as u64,
        };
        new >> shift
    }
}

/// Where a group of cells is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// In global memory, one for all threads.
    Global,
    /// In shared memory, one for each block.
    Shared,
}

/// A group of [`GROUP`] cells beside each other that change by one operation only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Where.
    pub space: Space,
    /// How they change.
    pub update: Update,
    /// Bytes of a cell: 1, 2, 4 or 8.
    pub bytes: u32,
    /// The lock under which they change, by plain loads and stores; without one they change by atomic operations.
    pub lock: Option<usize>,
}

/// How a lock is taken and given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Compare-and-swap from 0 to 1 until it works; an exchange gives it back.
    Swap,
    /// The same; an atomic store gives it back.
    SwapStore,
    /// Loads until it is free, then an exchange.
    Watch,
    /// A ticket, and a second word that says whose turn it is.
    Ticket,
}

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Where its two words are.
    pub space: Space,
    /// How it works.
    pub kind: LockKind,
    /// Whether device functions take it and give it back.
    pub by_function: bool,
}

/// Bytes of a lock.
pub const LOCK_BYTES: u32 = 8;

/// A step of a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// A variable gets a value.
    Assign {
        /// Which variable.
        to: usize,
        /// What is computed.
        op: Op,
        /// First operand.
        a: Operand,
        /// Second operand.
        b: Operand,
    },
    /// A loop: in each turn the variable becomes three times itself, plus the counter, plus the record's value of the
    /// counter's number. Behind it what the counter is then is added.
    Count {
        /// The variable.
        to: usize,
        /// The number of the counter, modulo one more than [`COUNTED`].
        number: Operand,
        /// How it counts.
        counting: Counting,
        /// Whether the counter has 64 bits.
        wide: bool,
    },
    /// Variables are exchanged: each gets the value of the next one, the last one that of the first.
    Exchange {
        /// The variables.
        list: Vec<usize>,
        /// In a loop, so many times modulo one more than [`COUNTED`]; once without it.
        times: Option<Operand>,
    },
    /// The mask of the lanes that are here goes into the record.
    Probe,
    /// A value of the record is written, in memory or in a stack slot.
    StoreOwn {
        /// Which one, below [`OWN`].
        index: usize,
        /// The value.
        value: Operand,
        /// In the function's stack slot, not in the record.
        slot: bool,
    },
    /// A value of the record is read, or of the stack slot.
    LoadOwn {
        /// The variable that it goes to.
        to: usize,
        /// Which one.
        index: usize,
        /// In the function's stack slot, not in the record.
        slot: bool,
    },
    /// A cell changes.
    Update {
        /// The group.
        cell: usize,
        /// Says which cell of the group: modulo [`GROUP`].
        which: Operand,
        /// The operand.
        value: Operand,
    },
    /// Takes a lock, if a condition holds.
    Lock {
        /// Which.
        lock: usize,
        /// When; always without it.
        when: Option<Condition>,
    },
    /// Gives a lock back, if a condition holds.
    Unlock {
        /// Which.
        lock: usize,
        /// When; always without it.
        when: Option<Condition>,
    },
    /// Tries to take a lock in a loop; who gets it updates a cell there and gives it back.
    TryLock {
        /// Which, not [`LockKind::Ticket`] and not in functions.
        lock: usize,
        /// The group.
        cell: usize,
        /// The operand.
        value: Operand,
    },
    /// Calls a device function.
    Call {
        /// The functions, one of which is called.
        callees: Vec<usize>,
        /// Says which one, modulo their number; not looked at if there is only one.
        which: Operand,
        /// Whether one alone is called through its address too.
        indirect: bool,
        /// The variable that gets the result.
        to: usize,
        /// The arguments, its first variables.
        arguments: [Operand; 2],
    },
    /// All threads of the block meet: see [`Phase`].
    Phase(Phase),
}

/// Steps that all threads of a block take together, only on the spine of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The first thread fills cells and locks in shared memory; a barrier.
    Clear,
    /// A barrier, and the first thread copies the cells in shared memory to global memory.
    Collect,
    /// Each thread writes a value and reads the one of another thread, with barriers between and behind.
    Exchange {
        /// The variable that is written and replaced.
        var: usize,
        /// How far away the other thread is.
        distance: u32,
    },
    /// A barrier.
    Barrier,
    /// All threads in the order of their numbers, grid-wide: a word becomes its 31-fold plus the variable.
    InOrder {
        /// The variable.
        var: usize,
    },
    /// Each thread pushes its number onto a stack without a lock and pops one, whose record's last word grows by 1.
    Stack,
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// Goes on there.
    Jump(Label),
    /// One way or the other.
    Branch {
        /// What decides.
        condition: Condition,
        /// Whether the way of `then` costs fuel, and without fuel is not taken.
        fuel: bool,
        /// When it holds.
        then: Label,
        /// When not.
        other: Label,
    },
    /// By a table, the last one if the value is beyond it.
    Table {
        /// What decides, salted.
        value: Operand,
        /// Its bits that count.
        mask: u32,
        /// The targets, at least one.
        targets: Vec<Label>,
    },
    /// Returns a value. In a kernel the variables are left in the record, and this value, each with the thread's number
    /// in its block added.
    Return(Operand),
    /// Continues in another function with these first variables.
    TailCall {
        /// The functions, one of which is called.
        callees: Vec<usize>,
        /// Says which one, modulo their number.
        which: Operand,
        /// The arguments.
        arguments: [Operand; 2],
    },
}

impl End {
    /// The blocks that it may go to.
    pub fn targets(&self) -> Vec<Label> {
        match self {
            End::Jump(target) => vec![*target],
            End::Branch { then, other, .. } => vec![*then, *other],
            End::Table { targets, .. } => targets.clone(),
            End::Return(_) | End::TailCall { .. } => Vec::new(),
        }
    }

    /// The same with other targets.
    pub fn map_targets(&mut self, map: impl Fn(Label) -> Label) {
        match self {
            End::Jump(target) => *target = map(*target),
            End::Branch { then, other, .. } => (*then, *other) = (map(*then), map(*other)),
            End::Table { targets, .. } => {
                targets.iter_mut().for_each(|target| *target = map(*target))
            }
            End::Return(_) | End::TailCall { .. } => {}
        }
    }
}

/// A block.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its steps.
    pub stmts: Vec<Stmt>,
    /// How it ends.
    pub end: End,
}

/// A function; block 0 is its entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its blocks.
    pub blocks: Vec<Block>,
    /// Whether it has the convention that allows tail calls.
    pub tail: bool,
}

/// A kernel with the device functions it calls, and how it is launched.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Where it comes from.
    pub seed: u64,
    /// Function 0 is the kernel.
    pub functions: Vec<Function>,
    /// Groups of cells.
    pub cells: Vec<Cell>,
    /// Locks.
    pub locks: Vec<Lock>,
    /// Blocks of the grid.
    pub grid: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks of function 0 that all threads reach in this order, each beginning with a [`Phase`]; those in a loop as
    /// often as it has turns.
    pub spine: Vec<Label>,
    /// Some threads may return before others of their block come to a barrier.
    pub leaves_early: bool,
}

impl Kernel {
    /// Whether blocks of the spine are in a loop.
    pub fn meets_in_loops(&self) -> bool {
        let blocks = &self.functions[0].blocks;
        let is_in_loop = |block: Label| {
            let mut seen = vec![false; blocks.len()];
            let mut work = blocks[block].end.targets();
            while let Some(next) = work.pop() {
                if !std::mem::replace(&mut seen[next], true) {
                    work.extend(blocks[next].end.targets());
                }
            }
            seen[block]
        };
        self.spine.iter().any(|block| is_in_loop(*block))
    }

    /// Threads of the grid.
    pub fn all_threads(&self) -> u32 {
        self.grid * self.threads
    }

    /// Where each group of cells begins: in `data` or in shared memory, in bytes.
    pub fn cell_offset(&self, cell: usize) -> u32 {
        let space = self.cells[cell].space;
        let before = self.cells[..cell].iter().filter(|c| c.space == space);
        before.count() as u32 * GROUP_BYTES
    }

    /// Bytes of the cells of a space.
    pub fn cell_bytes(&self, space: Space) -> u32 {
        self.cells.iter().filter(|c| c.space == space).count() as u32 * GROUP_BYTES
    }

    /// Where a lock is, behind the cells.
    pub fn lock_offset(&self, lock: usize) -> u32 {
        let space = self.locks[lock].space;
        let before = self.locks[..lock].iter().filter(|l| l.space == space);
        self.cell_bytes(space) + before.count() as u32 * LOCK_BYTES
    }

    /// Bytes of the cells and locks of a space.
    pub fn common_bytes(&self, space: Space) -> u32 {
        let locks = self.locks.iter().filter(|l| l.space == space).count();
        self.cell_bytes(space) + locks as u32 * LOCK_BYTES
    }

    /// Shared memory of a block: cells, locks, a word for each thread.
    pub fn shared_bytes(&self) -> u32 {
        self.common_bytes(Space::Shared) + 4 * self.threads
    }

    /// In `data`, behind cells and locks: whose turn it is and what came of it, see [`Phase::InOrder`].
    pub fn order_offset(&self) -> u32 {
        self.common_bytes(Space::Global)
    }

    /// In `data`: the head of the stack, see [`Phase::Stack`].
    pub fn head_offset(&self) -> u32 {
        self.order_offset() + 8
    }

    /// In `data`: the collected cells of each block's shared memory.
    pub fn collected_offset(&self) -> u32 {
        self.head_offset() + 8
    }

    /// In `data`: the links of the stack, which may hold anything at the end.
    pub fn links_offset(&self) -> u32 {
        self.collected_offset() + self.grid * self.cell_bytes(Space::Shared)
    }

    /// Bytes of `data`.
    pub fn data_bytes(&self) -> u32 {
        self.links_offset() + 4 * self.all_threads()
    }

    /// All statements.
    pub fn stmts(&self) -> impl Iterator<Item = &Stmt> {
        let blocks = self.functions.iter().flat_map(|f| &f.blocks);
        blocks.flat_map(|b| &b.stmts)
    }

    /// Whether each function is called, by the kernel or by what it calls.
    pub fn called(&self) -> Vec<bool> {
        let mut called = vec![false; self.functions.len()];
        let mut stack = vec![0];
        while let Some(function) = stack.pop() {
            if std::mem::replace(&mut called[function], true) {
                continue;
            }
            for block in &self.functions[function].blocks {
                for stmt in &block.stmts {
                    if let Stmt::Call { callees, .. } = stmt {
                        stack.extend(callees);
                    }
                }
                if let End::TailCall { callees, .. } = &block.end {
                    stack.extend(callees);
                }
            }
        }
        called
    }

    /// Initial contents of a thread's inputs: variables 3 to 5 are made of them.
    pub fn input(&self, thread: u32) -> u32 {
        (thread ^ self.seed as u32)
            .wrapping_mul(0x9e37_79b9)
            .rotate_left(thread & 31)
    }

    /// The number that all threads get.
    pub fn parameter(&self) -> u32 {
        (self.seed as u32).wrapping_mul(0x85eb_ca6b) >> 13
    }

    /// Initial contents of a cell.
    pub fn initial(&self, cell: usize) -> u64 {
        match self.cells[cell].update {
            Update::And | Update::Umin => u64::MAX >> (64 - 8 * self.cells[cell].bytes),
            Update::Smin => u64::MAX >> (65 - 8 * self.cells[cell].bytes),
            _ => 0,
        }
    }
}
