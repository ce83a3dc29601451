//! Whether the control bits of finished words keep instructions apart.
//!
//! A second derivation that shares nothing with the computation of the control bits but the latency table: it decodes
//! the words, finds the control flow in them, and follows for each *instruction* on its way how long ago, at least, it
//! was issued. An instruction is on its way until its cycles have passed or a scoreboard that it signals has been
//! waited for; results of variable latency never arrive by time alone. Reported is whatever touches a register too
//! early on some path, and whatever is still on its way when control leaves for other code.

use crate::emit::Code;
use crate::isa::control::Scoreboard;
use crate::isa::encode::WORD_BYTES;
use crate::isa::table::{Direction, Effects, FieldType, LatencyInfo};
use crate::isa::{Control, PInst, PReg, RegisterClass, Role, decode};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HazardKind {
    /// Read before the result has arrived.
    ReadAfterWrite,
    /// Written so that an earlier result would arrive at the same time or later.
    WriteAfterWrite,
    /// Written while an earlier instruction may still read it.
    WriteAfterRead,
    /// On its way when control leaves for other code.
    NotComplete,
    /// The word is no instruction.
    Illegal,
    /// Control goes to a place outside of the function.
    Outside,
}

impl fmt::Display for HazardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HazardKind::ReadAfterWrite => "reads before it has arrived",
            HazardKind::WriteAfterWrite => "overwrites before it has arrived",
            HazardKind::WriteAfterRead => "overwrites while it may still be read",
            HazardKind::NotComplete => "leaves the function before it has arrived or been read",
            HazardKind::Illegal => "is no instruction",
            HazardKind::Outside => "leads out of the function",
        })
    }
}

/// A hazard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hazard {
    /// What.
    pub kind: HazardKind,
    /// Byte offset of the instruction that comes too early.
    pub offset: u32,
    /// Byte offset of the instruction that it should have waited for.
    pub earlier: u32,
    /// The register, if there is one.
    pub register: Option<String>,
    /// The instruction.
    pub instruction: String,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}: {} {}", self.offset, self.instruction, self.kind)?;
        if let Some(register) = &self.register {
            write!(f, ": {register} of the instruction at {:#x}", self.earlier)?;
        }
        Ok(())
    }
}

/// A register or convergence barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Register(PReg),
    Barrier(u64),
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Register(r) => r.fmt(f),
            Cell::Barrier(n) => write!(f, "B{n}"),
        }
    }
}

/// A decoded instruction.
pub(super) struct Op {
    pub(super) inst: PInst,
    pub(super) control: Control,
    latency: LatencyInfo,
    /// What must be there when it issues, and when it reads: the guard is read at issue.
    reads: BTreeSet<Cell>,
    /// What of it is read later.
    late: BTreeSet<Cell>,
    writes: BTreeMap<Cell, u16>,
    /// Instructions that may follow.
    pub(super) next: Vec<usize>,
    /// Control may go to other code.
    leaves: bool,
}

impl Op {
    /// Whether it waits for a scoreboard.
    pub(super) fn waits_for(&self, board: Option<Scoreboard>) -> bool {
        board.is_some_and(|b| self.control.wait() >> b.number() & 1 != 0)
    }

    /// Whether it needs results of variable latency of `earlier`.
    pub(super) fn needs_results(&self, earlier: &Op) -> bool {
        let touches = |cell| self.reads.contains(cell) || self.writes.contains_key(cell);
        self.leaves || earlier.writes.keys().any(touches)
    }

    /// Whether it overwrites what `earlier` reads late.
    pub(super) fn needs_sources(&self, earlier: &Op) -> bool {
        self.leaves
            || earlier
                .late
                .iter()
                .any(|cell| self.writes.contains_key(cell))
    }

    /// Whether scoreboards, not time, tell that it is complete.
    pub(super) fn is_variable(&self) -> bool {
        self.latency.variable
    }
}

/// An instruction on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flight {
    /// Cycles since it was issued, at least.
    age: u16,
    /// Results are outstanding.
    pub(super) results: bool,
    /// Sources may be unread.
    pub(super) sources: bool,
}

/// What is on its way, by the index of the instruction.
pub(super) type State = BTreeMap<usize, Flight>;

/// All hazards of a function, in the order of the code.
pub fn verify(code: &Code) -> Vec<Hazard> {
    let mut hazards = BTreeSet::new();
    let ops = operations(code, &mut hazards);
    if hazards.is_empty() {
        follow(&ops, |index, state| step(&ops, index, state, &mut hazards));
    }
    hazards.into_iter().collect()
}

/// The decoded instructions, as far as they are some.
pub(super) fn operations(code: &Code, hazards: &mut BTreeSet<Hazard>) -> Vec<Op> {
    (0..code.words.len())
        .map_while(|i| operation(code, i, hazards))
        .collect()
}

pub(super) fn offset(index: usize) -> u32 {
    (index * WORD_BYTES) as u32
}

fn operation(code: &Code, index: usize, hazards: &mut BTreeSet<Hazard>) -> Option<Op> {
    let hazard = |kind, instruction: String| Hazard {
        kind,
        offset: offset(index),
        earlier: offset(index),
        register: None,
        instruction,
    };
    let (inst, control) = match decode(code.words[index]) {
        Ok(decoded) => decoded,
        Err(reason) => {
            hazards.insert(hazard(HazardKind::Illegal, reason.to_string()));
            return None;
        }
    };
    let optype = inst.optype().info();
    let has = |effects| optype.effects.intersects(effects);
    let relocated = code.relocations.iter().any(|r| r.offset == offset(index));
    let table = code.tables.iter().find(|t| t.0 == offset(index));
    let mut next: Vec<i64> = Vec::new();
    let leaves = has(Effects::CALL.union(Effects::RETURN))
        || has(Effects::BRANCH) && (relocated || label(&inst).is_none());
    if has(Effects::BRANCH) && !leaves {
        match table {
            Some((_, targets)) => {
                next.extend(targets.iter().map(|&t| i64::from(t) / WORD_BYTES as i64))
            }
            None => next.extend(
                label(&inst)
                    .map(|distance| index as i64 + 1 + i64::from(distance) / WORD_BYTES as i64),
            ),
        }
    }
    let stops = has(Effects::BRANCH
        .union(Effects::RETURN)
        .union(Effects::EXIT)
        .union(Effects::TRAP));
    if !stops || inst.guard() != (None, false) {
        next.push(index as i64 + 1);
    }
    let within = |n: &i64| (0..code.words.len() as i64).contains(n);
    if !next.iter().all(within) {
        hazards.insert(hazard(HazardKind::Outside, inst.to_string()));
    }
    let next = next
        .into_iter()
        .filter(within)
        .map(|n| n as usize)
        .collect();
    let (reads, late, writes) = cells(&inst, optype.latency, optype.effects);
    Some(Op {
        inst,
        control,
        latency: optype.latency,
        reads,
        late,
        writes,
        next,
        leaves,
    })
}

/// The signed distance in the label of an instruction.
fn label(inst: &PInst) -> Option<i32> {
    let field = inst
        .info()
        .fields
        .iter()
        .find(|f| matches!(f.ty, FieldType::Label))?;
    Some(field.get(inst.word()) as u32 as i32)
}

type Cells = (BTreeSet<Cell>, BTreeSet<Cell>, BTreeMap<Cell, u16>);

fn cells(inst: &PInst, latency: LatencyInfo, effects: Effects) -> Cells {
    let (mut reads, mut late, mut writes) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    let every = |class: RegisterClass| {
        (0..class.hardwired()).map(move |n| Cell::Register(PReg::new(class, n)))
    };
    for operand in inst.info().operands {
        let mut touched: Vec<Cell> = Vec::new();
        let mut time = latency.result;
        match (
            operand.class,
            inst.info().fields.get(usize::from(operand.field)),
        ) {
            (Some(class), _) => {
                touched.extend(
                    inst.operand_regs(operand)
                        .iter()
                        .flatten()
                        .map(|r| Cell::Register(*r)),
                );
                let width = (operand.width)(inst.word());
                time = if class == RegisterClass::Predicate {
                    latency.predicate
                } else if width > 32 {
                    latency.wide
                } else {
                    latency.result
                };
            }
            (None, None) => {
                touched.extend(every(RegisterClass::Predicate));
                time = latency.predicate;
            }
            (None, Some(field)) => {
                if let FieldType::Convergence = field.ty {
                    touched.push(Cell::Barrier(field.get(inst.word())));
                }
            }
        }
        if operand.direction == Direction::Out {
            writes.extend(touched.into_iter().map(|c| (c, time)));
        } else {
            if latency.sources > 0 && operand.role != Role::Pg && operand.class.is_some() {
                late.extend(touched.iter().copied());
            }
            reads.extend(touched);
        }
    }
    if effects.contains(Effects::ANY_GPR) {
        reads.extend(every(RegisterClass::Gpr));
        writes.extend(every(RegisterClass::Gpr).map(|c| (c, latency.result)));
    }
    (reads, late, writes)
}

/// Follows all paths until nothing new is found: shows `visit` each instruction with what is on its way before it, on
/// the worst of the paths that are known so far, for it to bring that up to date.
pub(super) fn follow(ops: &[Op], mut visit: impl FnMut(usize, &mut State)) {
    if ops.is_empty() {
        return;
    }
    let mut leaders = vec![false; ops.len()];
    leaders[0] = true;
    for (index, op) in ops.iter().enumerate() {
        if op.next[..] != [index + 1] {
            op.next.iter().for_each(|&n| leaders[n] = true);
        }
    }
    let mut entry: Vec<Option<State>> = vec![None; ops.len()];
    entry[0] = Some(State::new());
    let mut work = BTreeSet::from([0]);
    while let Some(leader) = work.pop_first() {
        let mut state = entry[leader].clone().expect("a leader that was reached");
        let mut index = leader;
        loop {
            visit(index, &mut state);
            if let [next] = ops[index].next[..]
                && next == index + 1
                && !leaders[next]
            {
                index = next;
                continue;
            }
            for &next in &ops[index].next {
                let changed = match &mut entry[next] {
                    Some(old) => merge(old, &state),
                    empty => {
                        *empty = Some(state.clone());
                        true
                    }
                };
                if changed {
                    work.insert(next);
                }
            }
            break;
        }
    }
}

/// The worse of both, for each instruction; whether that is worse than `into` was.
fn merge(into: &mut State, from: &State) -> bool {
    let mut changed = false;
    for (index, theirs) in from {
        match into.get_mut(index) {
            Some(mine) => {
                let worst = Flight {
                    age: mine.age.min(theirs.age),
                    results: mine.results | theirs.results,
                    sources: mine.sources | theirs.sources,
                };
                changed |= worst != *mine;
                *mine = worst;
            }
            None => {
                into.insert(*index, *theirs);
                changed = true;
            }
        }
    }
    changed
}

/// Issues one instruction: adds what it comes too early for to `hazards`.
pub(super) fn step(ops: &[Op], index: usize, state: &mut State, hazards: &mut BTreeSet<Hazard>) {
    let op = &ops[index];
    let mut report = |kind, earlier: usize, cell: Option<&Cell>| {
        hazards.insert(Hazard {
            kind,
            offset: offset(index),
            earlier: offset(earlier),
            register: cell.map(Cell::to_string),
            instruction: op.inst.to_string(),
        });
    };
    let waited = |board: Option<Scoreboard>| op.waits_for(board);
    state.retain(|&earlier, flight| {
        let control = ops[earlier].control;
        if ops[earlier].latency.variable {
            flight.results &= !waited(control.write);
            flight.sources &= !waited(control.write) && !waited(control.read);
        }
        flight.results || flight.sources
    });
    for (&earlier, flight) in state.iter() {
        let before = &ops[earlier];
        for (cell, &time) in &before.writes {
            let outstanding = flight.results && (before.latency.variable || flight.age < time);
            if outstanding && op.reads.contains(cell) {
                report(HazardKind::ReadAfterWrite, earlier, Some(cell));
            }
            if let Some(&own) = op.writes.get(cell) {
                // A result of variable latency may arrive in the next cycle.
                let arrives = flight.age + if op.latency.variable { 1 } else { own };
                if flight.results && (before.latency.variable || arrives <= time) {
                    report(HazardKind::WriteAfterWrite, earlier, Some(cell));
                }
            }
        }
        for cell in before
            .late
            .iter()
            .filter(|c| flight.sources && op.writes.contains_key(c))
        {
            report(HazardKind::WriteAfterRead, earlier, Some(cell));
        }
    }
    let flight = Flight {
        age: 0,
        results: !op.writes.is_empty(),
        sources: !op.late.is_empty(),
    };
    if flight.results || flight.sources {
        state.insert(index, flight);
    }
    let cycles = u16::from(op.control.stall().max(1));
    state.retain(|&earlier, flight| {
        let before = &ops[earlier];
        flight.age = flight.age.saturating_add(cycles);
        let slowest = before.writes.values().copied().max().unwrap_or(0);
        before.latency.variable || flight.age < slowest
    });
    if op.leaves {
        for &earlier in state.keys() {
            let cell = ops[earlier].writes.keys().chain(&ops[earlier].late).next();
            report(HazardKind::NotComplete, earlier, cell);
        }
        state.clear();
    }
}
