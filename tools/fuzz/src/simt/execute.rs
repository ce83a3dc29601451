//! What a kernel leaves in memory, and which lanes are together at each probe, found lane by lane with a stack of
//! meeting points.
//!
//! Lanes that part at a branch go on one way after the other, each until the meeting point of the branch; from there
//! they go on together. Results of threads do not depend on that, masks do: they are what the machine has to show. A
//! mask is left open where nothing is promised: on the ways of a switch, which may be a tree of branches, and where
//! several exits of a kernel count.

use super::kernel::*;
use super::meeting::{Meetings, convergent_functions};

/// Statements that a kernel may take, all threads together.
const PATIENCE: u64 = 4_000_000;
/// Calls that may be in each other: more than the fuel of a thread allows, and less than what the stack of the host
/// holds.
const MAX_DEPTH: u32 = 4 * FUEL;

/// What a kernel leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The records of all threads; an event without a known mask is `None`.
    pub records: Vec<[Option<u32>; RECORD]>,
    /// `data`, up to the links of the stack.
    pub data: Vec<u8>,
    /// How many events have a known mask.
    pub known: u64,
    /// How many of these show a part of the lanes that are in the kernel.
    pub partial: u64,
}

/// A thread in a function.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    vars: [u32; VARS],
    slot: [u32; OWN],
    salt: u32,
    result: u32,
}

/// A call of a function by some lanes.
struct Frame {
    function: usize,
    threads: Vec<Thread>,
}

struct Machine<'a> {
    kernel: &'a Kernel,
    meetings: Vec<Meetings>,
    fuel: Vec<u32>,
    /// Cells of global memory, or of each block's shared memory one after the other.
    cells: Vec<Vec<u64>>,
    records: Vec<[Option<u32>; RECORD]>,
    /// The warp's first thread.
    first: u32,
    /// How often each lock was taken.
    tickets: Vec<u64>,
    in_order: Vec<(u32, u32)>,
    pushed: bool,
    expected: (u64, u64),
    steps: u64,
    /// Calls that are in each other.
    depth: u32,
}

/// Runs it.
///
/// # Errors
/// When it takes too long, which the generator avoids and a reduction may not.
pub fn execute(kernel: &Kernel) -> Result<Expected, String> {
    let converges = convergent_functions(&kernel.functions);
    let meetings = kernel.functions.iter().enumerate();
    let meetings = meetings
        .map(|(i, f)| Meetings::new(f, i == 0, &converges))
        .collect();
    let cells = (0..kernel.cells.len()).map(|cell| {
        let copies = match kernel.cells[cell].space {
            Space::Global => 1,
            Space::Shared => kernel.grid,
        };
        vec![kernel.initial(cell); (copies * GROUP) as usize]
    });
    let mut machine = Machine {
        kernel,
        meetings,
        fuel: vec![FUEL; kernel.all_threads() as usize],
        cells: cells.collect(),
        records: vec![[Some(0); RECORD]; kernel.all_threads() as usize],
        first: 0,
        tickets: vec![0; kernel.locks.len()],
        in_order: Vec::new(),
        pushed: false,
        expected: (0, 0),
        steps: 0,
        depth: 0,
    };
    for block in 0..kernel.grid {
        machine.block(block)?;
    }
    Ok(machine.finish())
}

impl Machine<'_> {
    fn block(&mut self, block: u32) -> Result<(), String> {
        let kernel = self.kernel;
        let start = block * kernel.threads;
        let firsts: Vec<u32> = (0..kernel.threads).step_by(32).map(|t| start + t).collect();
        let mut warps: Vec<(Frame, u32)> = firsts
            .iter()
            .map(|&first| {
                let lanes = (start + kernel.threads - first).min(32);
                let thread = |lane| self.kernel_thread(block, first + lane);
                let frame = Frame {
                    function: 0,
                    threads: (0..lanes).map(thread).collect(),
                };
                (frame, u32::MAX >> (32 - lanes))
            })
            .collect();
        // Lanes that leave before a barrier of a later turn are apart from those that come to it, wherever that is.
        let known = !(kernel.leaves_early && kernel.meets_in_loops());
        let mut at = 0;
        for stop in kernel.spine.iter().copied().map(Some).chain([None]) {
            let mut exchanged = Vec::new();
            for ((frame, lanes), &first) in warps.iter_mut().zip(&firsts) {
                self.first = first;
                *lanes = self.run(frame, at, *lanes, stop, known)?;
                if let Some(stop) = stop {
                    self.phase(frame, *lanes, stop, &mut exchanged)?;
                }
            }
            let Some(stop) = stop else { break };
            let mut threads = warps.iter_mut().flat_map(|(frame, _)| &mut frame.threads);
            if let Some(Stmt::Phase(Phase::Exchange { var, distance })) =
                kernel.functions[0].blocks[stop].stmts.first()
            {
                for index in 0..kernel.threads {
                    let from = (index + distance) % kernel.threads;
                    if let Some(thread) = threads.next() {
                        thread.vars[*var] = exchanged[from as usize];
                    }
                }
            }
            at = stop;
        }
        Ok(())
    }

    fn kernel_thread(&self, block: u32, thread: u32) -> Thread {
        let input = self.kernel.input(thread);
        let index = thread - block * self.kernel.threads;
        Thread {
            vars: [
                thread,
                index,
                block,
                self.kernel.parameter(),
                input,
                index & 31,
            ],
            salt: salt(self.kernel.parameter()),
            ..Thread::default()
        }
    }

    /// What all threads of the warp do in a block of the spine.
    fn phase(
        &mut self,
        frame: &mut Frame,
        lanes: u32,
        stop: Label,
        exchanged: &mut Vec<u32>,
    ) -> Result<(), String> {
        let Some(Stmt::Phase(phase)) = self.kernel.functions[0].blocks[stop].stmts.first() else {
            return Err("a block of the spine does not begin with a phase".to_owned());
        };
        for lane in bits(lanes) {
            let thread = self.first + lane as u32;
            match *phase {
                Phase::Clear | Phase::Collect | Phase::Barrier => {}
                Phase::Exchange { var, .. } => exchanged.push(frame.threads[lane].vars[var]),
                Phase::InOrder { var } => {
                    self.in_order.push((thread, frame.threads[lane].vars[var]))
                }
                Phase::Stack => {
                    self.pushed = true;
                    let word = &mut self.records[thread as usize][RECORD - 1];
                    *word = word.map(|count| count + 1);
                }
            }
        }
        Ok(())
    }

    /// Runs lanes from the steps of a block on until they reach `stop`, which may be the same block in the next turn of
    /// a loop, and returns those that do. The steps of a block of the spine are its phase, which has been taken, and
    /// what follows.
    fn run(
        &mut self,
        frame: &mut Frame,
        start: Label,
        lanes: u32,
        stop: Option<Label>,
        known: bool,
    ) -> Result<u32, String> {
        let kernel = self.kernel;
        let (mut at, mut lanes) = (start, lanes);
        loop {
            if lanes == 0 {
                return Ok(0);
            }
            let block = &kernel.functions[frame.function].blocks[at];
            for stmt in &block.stmts {
                self.stmt(frame, stmt, lanes, known)?;
            }
            self.step(1)?;
            let Some(ways) = self.end(frame, &block.end, lanes, known)? else {
                return Ok(0);
            };
            // Entries of a switch that lead to one block are ways of their own.
            let repeats = match &block.end {
                End::Table { targets, .. } => {
                    let goes = |target: &&Label| ways.iter().any(|way| way.0 == **target);
                    targets.iter().filter(goes).count() > ways.len()
                }
                _ => false,
            };
            if let [(target, _)] = ways[..]
                && !repeats
            {
                at = target;
                if stop == Some(at) {
                    return Ok(lanes);
                }
                continue;
            }
            let meeting = self.meetings[frame.function].point(at);
            // In a kernel without a meeting point several exits count, and lanes may be brought together for either.
            let apart = frame.function == 0 && meeting.is_none();
            let known = known && !apart && !matches!(block.end, End::Table { .. });
            let mut met = 0;
            for (target, mask) in ways {
                met |= match meeting == Some(target) {
                    true => mask,
                    false => self.run(frame, target, mask, meeting, known)?,
                };
            }
            let Some(meeting) = meeting else { return Ok(0) };
            (at, lanes) = (meeting, met);
            if stop == Some(at) {
                return Ok(lanes);
            }
        }
    }

    /// Which lanes go where from the end of a block; none if they return.
    fn end(
        &mut self,
        frame: &mut Frame,
        end: &End,
        lanes: u32,
        known: bool,
    ) -> Result<Option<Vec<(Label, u32)>>, String> {
        let mut ways: Vec<(Label, u32)> = Vec::new();
        let mut send = |to: Label, mask: u32| match ways.iter_mut().find(|way| way.0 == to) {
            Some(way) => way.1 |= mask,
            None => ways.push((to, mask)),
        };
        match end {
            End::Jump(target) => send(*target, lanes),
            End::Branch {
                condition,
                fuel,
                then,
                other,
            } => {
                for lane in bits(lanes) {
                    let left = &mut self.fuel[self.first as usize + lane];
                    let can = !fuel || *left != 0;
                    *left -= u32::from(*fuel && *left != 0);
                    let holds = holds(frame, lane, condition);
                    send(if can && holds { *then } else { *other }, 1 << lane);
                }
            }
            End::Table {
                value: v,
                mask,
                targets,
            } => {
                for lane in bits(lanes) {
                    let salted = value(frame, lane, *v) ^ frame.threads[lane].salt;
                    let index = (salted & mask) as usize;
                    send(targets[index.min(targets.len() - 1)], 1 << lane);
                }
            }
            End::Return(v) => {
                self.leave(frame, lanes, *v);
                return Ok(None);
            }
            End::TailCall {
                callees,
                which,
                arguments,
            } => {
                for (callee, mask) in self.callees(frame, lanes, callees, *which) {
                    let threads = self.call(frame, callee, mask, arguments, known)?;
                    for lane in bits(mask) {
                        frame.threads[lane].result = threads[lane].result;
                    }
                }
                return Ok(None);
            }
        }
        Ok(Some(ways))
    }

    /// Lanes return; of the kernel their variables are recorded.
    fn leave(&mut self, frame: &mut Frame, lanes: u32, v: Operand) {
        for lane in bits(lanes) {
            let result = value(frame, lane, v);
            frame.threads[lane].result = result;
            if frame.function == 0 {
                let thread = frame.threads[lane];
                let record = &mut self.records[self.first as usize + lane];
                let number = (self.first + lane as u32) % self.kernel.threads;
                let left = thread.vars.into_iter().chain([result]);
                for (word, value) in record[VALUES + OWN..].iter_mut().zip(left) {
                    *word = Some(value.wrapping_add(number));
                }
            }
        }
    }

    fn step(&mut self, count: u64) -> Result<(), String> {
        self.steps += count;
        if self.steps > PATIENCE {
            return Err(format!("more than {PATIENCE} steps"));
        }
        Ok(())
    }

    /// The functions that lanes call, and which lanes each.
    fn callees(
        &self,
        frame: &Frame,
        lanes: u32,
        callees: &[usize],
        which: Operand,
    ) -> Vec<(usize, u32)> {
        let mut calls: Vec<(usize, u32)> = Vec::new();
        for lane in bits(lanes) {
            let callee = callees[value(frame, lane, which) as usize % callees.len()];
            match calls.iter_mut().find(|call| call.0 == callee) {
                Some(call) => call.1 |= 1 << lane,
                None => calls.push((callee, 1 << lane)),
            }
        }
        calls
    }

    fn call(
        &mut self,
        frame: &Frame,
        callee: usize,
        lanes: u32,
        arguments: &[Operand; 2],
        known: bool,
    ) -> Result<Vec<Thread>, String> {
        let thread = |lane: usize| {
            let [a, b] = arguments.map(|argument| value(frame, lane, argument));
            Thread {
                vars: [a, b, a ^ b, a.wrapping_add(b), 1, 2],
                salt: salt(a),
                ..Thread::default()
            }
        };
        let mut inner = Frame {
            function: callee,
            threads: (0..frame.threads.len()).map(thread).collect(),
        };
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} calls in each other"));
        }
        self.run(&mut inner, 0, lanes, None, known)?;
        self.depth -= 1;
        Ok(inner.threads)
    }

    fn stmt(
        &mut self,
        frame: &mut Frame,
        stmt: &Stmt,
        lanes: u32,
        known: bool,
    ) -> Result<(), String> {
        self.step(u64::from(lanes.count_ones()))?;
        match stmt {
            Stmt::Assign { to, op, a, b } => {
                for lane in bits(lanes) {
                    frame.threads[lane].vars[*to] =
                        op.apply(value(frame, lane, *a), value(frame, lane, *b));
                }
            }
            Stmt::Count {
                to,
                number,
                counting,
                ..
            } => {
                for lane in bits(lanes) {
                    let record = &self.records[self.first as usize + lane];
                    let number = value(frame, lane, *number) & COUNTED;
                    let step = match counting {
                        Counting::Steps(step) => value(frame, lane, *step),
                        _ => 0,
                    };
                    let var = &mut frame.threads[lane].vars[*to];
                    let (turns, last) = counting.turns(number, step);
                    for counter in turns {
                        let own = record[VALUES + counter as usize].unwrap_or(0);
                        *var = var.wrapping_mul(3).wrapping_add(counter).wrapping_add(own);
                    }
                    *var = var.wrapping_add(last);
                }
            }
            Stmt::Exchange { list, times } => {
                for lane in bits(lanes) {
                    let times = times.map_or(1, |times| value(frame, lane, times) & COUNTED);
                    let vars = &mut frame.threads[lane].vars;
                    let old = list.iter().map(|var| vars[*var]).cycle();
                    let old = old.skip(times as usize);
                    let new: Vec<u32> = old.take(list.len()).collect();
                    list.iter()
                        .zip(new)
                        .for_each(|(var, value)| vars[*var] = value);
                }
            }
            Stmt::Probe => self.probe(frame.threads.len() as u32, lanes, known),
            Stmt::StoreOwn {
                index,
                value: v,
                slot,
            } => {
                for lane in bits(lanes) {
                    let v = value(frame, lane, *v);
                    match slot {
                        true => frame.threads[lane].slot[*index] = v,
                        false => self.records[self.first as usize + lane][VALUES + index] = Some(v),
                    }
                }
            }
            Stmt::LoadOwn { to, index, slot } => {
                for lane in bits(lanes) {
                    frame.threads[lane].vars[*to] = match slot {
                        true => frame.threads[lane].slot[*index],
                        false => {
                            self.records[self.first as usize + lane][VALUES + index].unwrap_or(0)
                        }
                    };
                }
            }
            Stmt::Update {
                cell,
                which,
                value: v,
            } => {
                for lane in bits(lanes) {
                    let (which, v) = (value(frame, lane, *which), value(frame, lane, *v));
                    self.update(*cell, self.first + lane as u32, which, v);
                }
            }
            Stmt::TryLock { cell, value: v, .. } => {
                for lane in bits(lanes) {
                    let v = value(frame, lane, *v);
                    self.update(*cell, self.first + lane as u32, 0, v);
                }
            }
            // Nobody comes between the steps of a critical section: they commute.
            Stmt::Lock { lock, when } => {
                let takes = |lane: &usize| when.is_none_or(|when| holds(frame, *lane, &when));
                self.tickets[*lock] += bits(lanes).filter(takes).count() as u64;
            }
            Stmt::Unlock { .. } => {}
            Stmt::Call {
                callees,
                which,
                to,
                arguments,
                ..
            } => {
                for (callee, mask) in self.callees(frame, lanes, callees, *which) {
                    let threads = self.call(frame, callee, mask, arguments, known)?;
                    for lane in bits(mask) {
                        frame.threads[lane].vars[*to] = threads[lane].result;
                    }
                }
            }
            Stmt::Phase(_) => {}
        }
        Ok(())
    }

    /// Records which lanes of so many are together.
    fn probe(&mut self, all: u32, lanes: u32, known: bool) {
        if known {
            self.expected.0 += 1;
            self.expected.1 += u64::from(lanes.count_ones() < all);
        }
        for lane in bits(lanes) {
            let record = &mut self.records[self.first as usize + lane];
            let count = record[0].unwrap_or(0);
            let index = MASKS + (count as usize).min(VALUES - MASKS - 1);
            (record[index], record[0]) = (known.then_some(lanes), Some(count + 1));
        }
    }

    fn update(&mut self, cell: usize, thread: u32, which: u32, value: u32) {
        let Cell {
            space,
            update,
            bytes,
            ..
        } = self.kernel.cells[cell];
        let copy = match space {
            Space::Global => 0,
            Space::Shared => thread / self.kernel.threads,
        };
        let index = (copy * GROUP + which % GROUP) as usize;
        let old = self.cells[cell][index];
        // The operand is the value, zero-extended.
        let mask = u64::MAX >> (64 - 8 * bytes);
        self.cells[cell][index] = update.apply(bytes, old, u64::from(value) & mask) & mask;
    }

    fn finish(mut self) -> Expected {
        let kernel = self.kernel;
        let mut data = vec![0; kernel.links_offset() as usize];
        let mut put = |offset: u32, bytes: u32, value: u64| {
            let at = offset as usize;
            data[at..at + bytes as usize].copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
        };
        for (cell, &Cell { space, bytes, .. }) in kernel.cells.iter().enumerate() {
            let offset = kernel.cell_offset(cell);
            for (index, &value) in (0..).zip(&self.cells[cell]) {
                let (copy, index) = (index / GROUP, index % GROUP);
                let base = match space {
                    Space::Global => offset,
                    Space::Shared => {
                        kernel.collected_offset() + copy * kernel.cell_bytes(space) + offset
                    }
                };
                put(base + index * bytes, bytes, value);
            }
        }
        for (lock, &Lock { space, kind, .. }) in kernel.locks.iter().enumerate() {
            if space == Space::Global && kind == LockKind::Ticket {
                put(kernel.lock_offset(lock), 4, self.tickets[lock]);
                put(kernel.lock_offset(lock) + 4, 4, self.tickets[lock]);
            }
        }
        self.in_order.sort_by_key(|turn| turn.0);
        let order = self.in_order.iter().fold(0u32, |hash, turn| {
            hash.wrapping_mul(31).wrapping_add(turn.1)
        });
        put(kernel.order_offset(), 4, self.in_order.len() as u64);
        put(kernel.order_offset() + 4, 4, u64::from(order));
        if self.pushed {
            put(
                kernel.head_offset() + 4,
                4,
                2 * u64::from(kernel.all_threads()),
            );
        }
        Expected {
            records: self.records,
            data,
            known: self.expected.0,
            partial: self.expected.1,
        }
    }
}

/// The value of an operand in a lane.
fn value(frame: &Frame, lane: usize, operand: Operand) -> u32 {
    match operand {
        Operand::Var(var) => frame.threads[lane].vars[var],
        Operand::Const(value) => value,
    }
}

/// Whether a condition holds in a lane.
fn holds(frame: &Frame, lane: usize, condition: &Condition) -> bool {
    let salt = if condition.salted {
        frame.threads[lane].salt
    } else {
        0
    };
    condition.holds(value(frame, lane, condition.value) ^ salt)
}

/// The lanes of a mask.
fn bits(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 != 0)
}
