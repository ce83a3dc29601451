//! Writes a kernel whose result does not depend on the order in which its threads run.
//!
//! Control flow is written from the entry on (the `Writer`): forms that are entered at their top and left at their
//! bottom, and inside of them whatever a graph can hold (`control`): loops with several exits and entries, tangles of
//! blocks, switches, early returns. A cycle uses up fuel or counts a variable down that nothing else writes; a function
//! calls later ones, and itself for fuel. Cells change by one commuting operation each.
//!
//! Some kernels call nothing and keep two to four variables that are the same in all threads of a block as long as no
//! branch parts them (`COMMON`): what is made of them may live in uniform registers.
//!
//! A kernel has either probes or statements in which lanes wait for each other, not both: where lanes that wait meet is
//! the compiler's choice.

mod control;
mod critical;

use super::emit::can_try;
use super::kernel::{
    Block, COUNTED, Cell, Compare, Condition, Counting, End, Function, Kernel, Label, Lock,
    LockKind, OWN, Op, Operand, Phase, Space, Stmt, Update, VARS,
};
use crate::random::Random;

/// Device functions, at most.
const FUNCTIONS: usize = 4;
/// Steps that a call of a function may take, about.
const MAX_COST: u64 = 1500;
/// Forms inside of each other.
const MAX_DEPTH: u32 = 4;
/// Turns of a loop on fuel, about.
const FUEL_TURNS: u64 = 5;

/// Variables that in some kernels only hold what is made of each other and of constants: at first the number of the
/// block and the parameter.
const COMMON: [usize; 4] = [2, 3, 4, 5];

/// The kernel of a seed.
pub fn kernel(seed: u64) -> Kernel {
    drawn(seed, &Random::new(seed))
}

/// What `random` draws; `seed` is its name.
pub fn drawn(seed: u64, random: &Random) -> Kernel {
    let mut random = random.fork(0x51d7);
    let waits = random.once_in(3);
    let leaves_early = random.once_in(3);
    let common = random.once_in(2);
    let shared = !leaves_early && random.once_in(2);
    let mut locks = Vec::new();
    if waits {
        for _ in 0..random.between(1, 3) {
            locks.push(Lock {
                space: space(&mut random, shared),
                kind: random.pick(&[
                    LockKind::Swap,
                    LockKind::SwapStore,
                    LockKind::Watch,
                    LockKind::Ticket,
                ]),
                by_function: !common && random.once_in(3),
            });
        }
    }
    // The machine has no signed order of one and two bytes. In a loop that reads memory the loops around a swap that
    // stand for it may be taken for waiting.
    let sizes = |update: Update| match update {
        Update::Smin | Update::Smax if !waits => [4, 4, 4, 8, 4, 8],
        _ => [4, 4, 4, 8, 2, 1],
    };
    let cell = |random: &mut Random, lock: Option<usize>| {
        let space = match lock {
            Some(lock) => locks[lock].space,
            None => space(random, shared),
        };
        let update = random.pick(&Update::ALL);
        Cell {
            space,
            update,
            bytes: random.pick(&sizes(update)),
            lock,
        }
    };
    let mut cells: Vec<Cell> = (0..random.between(1, 4))
        .map(|_| cell(&mut random, None))
        .collect();
    cells.extend((0..locks.len()).map(|lock| cell(&mut random, Some(lock))));
    let mut kernel = Kernel {
        seed,
        functions: Vec::new(),
        cells,
        locks,
        grid: random.pick(&[1, 1, 2, 3]),
        threads: random.pick(&[32, 32, 64, 64, 48, 40, 33, 20, 7, 2]),
        spine: Vec::new(),
        leaves_early,
    };
    let device = if common || random.once_in(4) {
        0
    } else {
        random.between(1, FUNCTIONS)
    };
    let tail = !random.once_in(4);
    let mut callees: Vec<Callee> = Vec::new();
    for index in (1..=device).rev() {
        let mut writer = Writer::new(&kernel, index, random.fork(index as u64), callees.clone());
        writer.tail = tail;
        writer.size = writer.random.pick(&[6, 12, 25]);
        writer.device_body();
        let callee = Callee {
            index,
            cost: writer.cost * if writer.recursive { 4 } else { 1 },
            locks: writer.locks,
        };
        callees.push(callee);
        let (function, _) = writer.finish();
        kernel.functions.push(function);
    }
    let mut writer = Writer::new(&kernel, 0, random.fork(0), callees);
    (writer.common, writer.together) = (common, common);
    writer.size = writer.random.pick(&[10, 20, 40]);
    writer.start_common();
    writer.kernel_body(waits, shared);
    let (function, spine) = writer.finish();
    kernel.functions.push(function);
    kernel.functions.reverse();
    kernel.spine = spine;
    kernel
}

fn space(random: &mut Random, shared: bool) -> Space {
    if shared && random.once_in(2) {
        Space::Shared
    } else {
        Space::Global
    }
}

/// A function that may be called.
#[derive(Clone, Copy, Debug)]
struct Callee {
    index: usize,
    cost: u64,
    /// Takes a lock, itself or in what it calls.
    locks: bool,
}

/// A loop around the place that is written.
#[derive(Clone, Copy, Debug)]
struct Loop {
    again: Label,
    exit: Label,
}

/// What is held at the place that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    /// A lock, by all lanes that come here, each in its turn.
    Lock(usize),
    /// A lock, by the lanes for which a condition holds.
    Partly(usize, Condition),
}

/// A function that is being written.
struct Writer<'a> {
    kernel: &'a Kernel,
    index: usize,
    random: Random,
    callees: Vec<Callee>,
    tail: bool,
    blocks: Vec<Option<Block>>,
    /// The block that is being written, and its steps so far.
    at: Label,
    stmts: Vec<Stmt>,
    loops: Vec<Loop>,
    /// Loops that may be left from here are those from this one on.
    floor: usize,
    /// Variables that are only read here.
    fixed: Vec<usize>,
    held: Held,
    depth: u32,
    /// How often this place is reached, about.
    turns: u64,
    cost: u64,
    recursive: bool,
    locks: bool,
    /// Lanes that return early do something together.
    loud: bool,
    /// Blocks after which only simple statements follow.
    size: usize,
    /// Whether some of [`COMMON`] are kept, and how many.
    common: bool,
    commons: usize,
    /// Whether no branch parts threads around this place, but where some have left.
    together: bool,
    /// No probes here: these lanes are on their way out.
    quiet: bool,
    spine: Vec<Label>,
}

impl<'a> Writer<'a> {
    fn new(kernel: &'a Kernel, index: usize, random: Random, callees: Vec<Callee>) -> Self {
        Writer {
            kernel,
            index,
            random,
            callees,
            tail: false,
            blocks: vec![None],
            at: 0,
            stmts: Vec::new(),
            loops: Vec::new(),
            floor: 0,
            fixed: Vec::new(),
            held: Held::Nothing,
            depth: 0,
            turns: 1,
            cost: 0,
            recursive: false,
            locks: false,
            loud: false,
            size: 0,
            common: false,
            commons: 2,
            together: false,
            quiet: false,
            spine: Vec::new(),
        }
    }

    fn device_body(&mut self) {
        let count = self.random.between(1, 4);
        self.sequence(count);
        let value = self.operand();
        self.end(End::Return(value));
    }

    fn kernel_body(&mut self, waits: bool, shared: bool) {
        if shared {
            self.on_spine(Phase::Clear);
        }
        let in_turns = self.random.once_in(3);
        if in_turns {
            self.turns_together();
            if !shared && self.random.once_in(2) {
                // The kernel is left where the loop is.
                let value = self.operand();
                return self.end(End::Return(value));
            }
        }
        if !in_turns || self.random.once_in(2) {
            self.phases(waits);
        }
        let count = self.random.between(0, 2);
        self.sequence(count);
        if shared {
            self.on_spine(Phase::Collect);
        }
        if self.probes() {
            self.stmts.push(Stmt::Probe);
        }
        let value = self.operand();
        self.end(End::Return(value));
    }

    /// Steps of all threads together, and what each does between them; where threads wait for each other, also those
    /// that can be taken once.
    fn phases(&mut self, waits: bool) {
        let (mut ordered, mut pushed) = (!waits, !waits);
        for _ in 0..self.random.between(1, 3) {
            let count = self.random.between(1, 4);
            self.sequence(count);
            let phase = if self.kernel.leaves_early {
                Phase::Barrier
            } else {
                let var = self.random.below(VARS);
                match self.random.below(8) {
                    0..=2 => Phase::Exchange {
                        var,
                        distance: self.random.below(40) as u32,
                    },
                    3 if !ordered => {
                        ordered = true;
                        Phase::InOrder { var }
                    }
                    // Its swaps may fail by what the thread itself stores, as far as the compiler knows.
                    4 if !pushed => {
                        pushed = true;
                        Phase::Stack
                    }
                    5 => Phase::Barrier,
                    _ => continue,
                }
            };
            if !self.kernel.leaves_early || (!self.loud && self.random.once_in(3)) {
                self.on_spine(phase);
            }
        }
    }

    /// A loop of so many turns for all threads of the block, in which they meet.
    fn turns_together(&mut self) {
        let Some(counter) = self.free_var() else {
            return;
        };
        let (turns, before) = (self.random.between(1, 3), self.spine.len());
        self.stmts.push(Stmt::Assign {
            to: counter,
            op: Op::Or,
            a: Operand::Const(turns as u32),
            b: Operand::Const(0),
        });
        self.counted(counter, |writer| writer.phases(false));
        let turn = self.spine[before..].to_vec();
        for _ in 1..turns {
            self.spine.extend(&turn);
        }
    }

    /// All threads come here.
    fn on_spine(&mut self, phase: Phase) {
        let block = self.new_block();
        self.end(End::Jump(block));
        self.switch_to(block);
        self.stmts.push(Stmt::Phase(phase));
        if self.probes() && self.random.once_in(2) {
            self.stmts.push(Stmt::Probe);
        }
        self.spine.push(block);
    }

    /// The function without blocks that nothing reaches, and the spine.
    fn finish(self) -> (Function, Vec<Label>) {
        let done = |block: Option<Block>| {
            block.unwrap_or(Block {
                stmts: Vec::new(),
                end: End::Return(Operand::Const(0)),
            })
        };
        let mut function = Function {
            blocks: self.blocks.into_iter().map(done).collect(),
            tail: self.tail,
        };
        let mut spine = self.spine;
        prune(&mut function, &mut spine);
        (function, spine)
    }

    fn new_block(&mut self) -> Label {
        self.blocks.push(None);
        self.blocks.len() - 1
    }

    /// Ends the block that is being written.
    fn end(&mut self, end: End) {
        let stmts = std::mem::take(&mut self.stmts);
        self.cost += self.turns * (1 + stmts.len() as u64);
        self.blocks[self.at] = Some(Block { stmts, end });
    }

    fn switch_to(&mut self, block: Label) {
        self.at = block;
    }

    /// Whether there may be probes here.
    fn probes(&self) -> bool {
        self.kernel.locks.is_empty() && !self.quiet
    }

    fn sequence(&mut self, count: usize) {
        for _ in 0..count {
            self.statement();
        }
    }

    /// A few statements inside of a form.
    fn inside(&mut self) {
        self.inside_of(false);
    }

    /// The same in a form whose ways all threads of a block go together, if so.
    fn inside_of(&mut self, together: bool) {
        self.depth += 1;
        let outer = self.together;
        self.together &= together;
        let count = self.random.between(0, 3);
        self.sequence(count);
        self.together = outer;
        self.depth -= 1;
    }

    fn statement(&mut self) {
        if self.depth >= MAX_DEPTH || self.cost > MAX_COST || self.blocks.len() > self.size {
            return self.simple();
        }
        match self.random.below(24) {
            0..=6 => self.simple(),
            7..=9 => self.branch(),
            10 => self.switch(),
            11..=13 => self.repeat(),
            14 => self.two_entries(),
            15 | 16 => self.tangle(),
            17 | 18 => self.call(),
            19 | 20 => self.leave(),
            21 if self.kernel.leaves_early && self.index == 0 => self.leave(),
            21 => self.probe(),
            _ => self.critical(),
        }
    }

    fn probe(&mut self) {
        if self.probes() {
            self.stmts.push(Stmt::Probe);
        } else {
            self.simple();
        }
    }

    /// A statement that neither branches nor waits.
    fn simple(&mut self) {
        let stmt = match self.random.below(if self.together { 15 } else { 10 }) {
            0..=3 => self.assignment(),
            8 => match self.free_var() {
                Some(to) => self.count(to),
                None => return,
            },
            9 => return self.exchange(),
            10 => {
                let list = self.commons().to_vec();
                let times = self.random.once_in(2).then(|| self.common_operand());
                self.exchanged(list, times)
            }
            11.. => self.common_assignment(),
            4 => Stmt::StoreOwn {
                index: self.random.below(OWN),
                value: self.operand(),
                slot: self.random.once_in(2),
            },
            5 => match self.free_var() {
                Some(to) => Stmt::LoadOwn {
                    to,
                    index: self.random.below(OWN),
                    slot: self.random.once_in(2),
                },
                None => return,
            },
            _ => return self.update(),
        };
        self.stmts.push(stmt);
    }

    fn assignment(&mut self) -> Stmt {
        match self.free_var() {
            Some(to) => Stmt::Assign {
                to,
                op: self.random.pick(&Op::ALL),
                a: self.operand(),
                b: match self.common && self.random.once_in(2) {
                    true => self.common_operand(),
                    false => self.operand(),
                },
            },
            None => Stmt::StoreOwn {
                index: self.random.below(OWN),
                value: self.operand(),
                slot: false,
            },
        }
    }

    /// The variables of [`COMMON`] that are kept.
    fn commons(&self) -> &'static [usize] {
        &COMMON[..self.commons]
    }

    /// Often there are more of them than those that are the same at the entry.
    fn start_common(&mut self) {
        if !self.common || self.random.once_in(2) {
            return;
        }
        for &to in &COMMON[2..self.random.between(3, COMMON.len())] {
            let stmt = Stmt::Assign {
                to,
                op: self.random.pick(&[Op::Add, Op::Mul, Op::Xor]),
                a: Operand::Var(self.random.pick(&COMMON[..2])),
                b: self.constant(),
            };
            self.stmts.push(stmt);
            self.commons += 1;
        }
    }

    /// A variable of [`COMMON`] gets a value.
    fn common_assignment(&mut self) -> Stmt {
        Stmt::Assign {
            to: self.random.pick(self.commons()),
            op: self.random.pick(&Op::ALL),
            a: Operand::Var(self.random.pick(self.commons())),
            b: self.common_operand(),
        }
    }

    fn common_operand(&mut self) -> Operand {
        match self.random.below(4) {
            0 => self.constant(),
            _ => Operand::Var(self.random.pick(self.commons())),
        }
    }

    fn count(&mut self, to: usize) -> Stmt {
        self.cost += self.turns * u64::from(COUNTED);
        Stmt::Count {
            to,
            number: match self.common && !self.random.once_in(3) {
                true => self.common_operand(),
                false => self.operand(),
            },
            counting: match self.random.below(4) {
                0 => Counting::Up,
                1 => Counting::Down,
                2 => Counting::Shift,
                _ => Counting::Steps(match self.common {
                    true => self.common_operand(),
                    false => self.operand(),
                }),
            },
            wide: self.random.once_in(2),
        }
    }

    /// Some variables that may be written here are exchanged.
    fn exchange(&mut self) {
        let mut list = Vec::new();
        for _ in 0..self.random.between(2, 4) {
            list.extend(self.free_var().filter(|var| !list.contains(var)));
        }
        if list.len() > 1 {
            let times = self.random.once_in(3).then(|| self.operand());
            let stmt = self.exchanged(list, times);
            self.stmts.push(stmt);
        }
    }

    /// Exchanges variables once, or in each turn of a loop of so many turns.
    fn exchanged(&mut self, list: Vec<usize>, times: Option<Operand>) -> Stmt {
        let turns = times.as_ref().map_or(1, |_| u64::from(COUNTED));
        self.cost += self.turns * turns;
        Stmt::Exchange { list, times }
    }

    /// A cell that may change here changes.
    fn update(&mut self) {
        let lock = match self.held {
            Held::Lock(lock) => Some(lock),
            Held::Nothing | Held::Partly(..) => None,
        };
        let cells = self.kernel.cells.iter().enumerate();
        let legal = cells.filter(|(_, cell)| cell.lock.is_none() || cell.lock == lock);
        let legal: Vec<usize> = legal.map(|(index, _)| index).collect();
        let cell = self.random.pick(&legal);
        let (which, value) = (self.operand(), self.operand());
        self.stmts.push(Stmt::Update { cell, which, value });
    }

    /// A variable that may be written here.
    fn free_var(&mut self) -> Option<usize> {
        let kept = |var: &usize| self.common && self.commons().contains(var);
        let free: Vec<usize> = (0..VARS)
            .filter(|var| !self.fixed.contains(var) && !kept(var))
            .collect();
        (!free.is_empty()).then(|| self.random.pick(&free))
    }

    fn operand(&mut self) -> Operand {
        match self.random.below(4) {
            0 => self.constant(),
            _ => Operand::Var(self.any_var()),
        }
    }

    fn constant(&mut self) -> Operand {
        Operand::Const(match self.random.below(4) {
            0 => self.random.bits() as u32,
            _ => self.random.below(10) as u32,
        })
    }

    /// A variable, of [`COMMON`] only where it does not matter that all threads of a block have the same.
    fn any_var(&mut self) -> usize {
        let var = self.random.below(VARS);
        if self.common && self.commons().contains(&var) {
            0
        } else {
            var
        }
    }

    /// One that all threads of a block decide in the same way, as far as they have come the same way.
    fn common_condition(&mut self) -> Condition {
        Condition {
            value: Operand::Var(self.random.pick(self.commons())),
            ..self.condition()
        }
    }

    fn condition(&mut self) -> Condition {
        let mask = self
            .random
            .pick(&[1, 1, 2, 3, 3, 4, 5, 7, 16, 31, u32::MAX]);
        let compare = self.random.pick(&[
            Compare::Equal,
            Compare::NotEqual,
            Compare::Less,
            Compare::Greater,
        ]);
        let small = self.random.below(8) as u32 & mask;
        Condition {
            value: Operand::Var(self.any_var()),
            salted: true,
            mask,
            compare,
            // Either way is possible.
            with: match compare {
                Compare::Less => small.max(1),
                Compare::Greater => small & mask >> 1,
                Compare::Equal | Compare::NotEqual => small,
            },
        }
    }
}

/// Removes the blocks that nothing reaches.
pub fn prune(function: &mut Function, spine: &mut Vec<Label>) {
    let mut reached = vec![false; function.blocks.len()];
    let mut stack = vec![0];
    while let Some(block) = stack.pop() {
        if !std::mem::replace(&mut reached[block], true) {
            stack.extend(function.blocks[block].end.targets());
        }
    }
    let mut numbers = vec![0; reached.len()];
    let mut count = 0;
    for (number, reached) in numbers.iter_mut().zip(&reached) {
        *number = count;
        count += usize::from(*reached);
    }
    let mut index = 0;
    function.blocks.retain(|_| {
        index += 1;
        reached[index - 1]
    });
    for block in &mut function.blocks {
        block.end.map_targets(|target| numbers[target]);
    }
    spine.retain(|&block| reached[block]);
    spine.iter_mut().for_each(|block| *block = numbers[*block]);
}
