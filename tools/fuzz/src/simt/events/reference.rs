//! What a kernel of events should leave: its events one after another.

use super::plan::{
    Array, Bound, Element, Index, Owner, Place, Plan, Release, Role, Stmt, Sync, Test,
};
use crate::simt::kernel::{Condition, Operand, Update, VARS, salt};

/// What a kernel leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The bytes of each array, all copies, those in shared memory block by block; none of scratch arrays and of slots.
    pub arrays: Vec<Option<Vec<u8>>>,
    /// The variables of each thread.
    pub vars: Vec<[u32; VARS]>,
}

struct State<'a> {
    plan: &'a Plan,
    memory: Vec<Vec<u64>>,
    vars: Vec<[u32; VARS]>,
    /// The thread that runs, its rank, and the positions of the loops around.
    thread: u32,
    rank: u32,
    positions: Vec<i64>,
    steps: u64,
}

/// Steps of all threads, at most.
const STEPS: u64 = 400_000;

/// Does the events in order.
///
/// # Errors
/// When the kernel does what it must not: an index outside of an array, a number that does not fit its bits, too many
/// steps.
pub fn execute(plan: &Plan) -> Result<Expected, String> {
    let arrays = plan.arrays.iter().enumerate();
    let memory = arrays.map(|(index, array)| {
        let count = copies(plan, array) * array.count;
        (0..count)
            .map(|element| plan.initial(index, element))
            .collect()
    });
    let mut state = State {
        plan,
        memory: memory.collect(),
        vars: (0..plan.all_threads())
            .map(|thread| plan.first(thread))
            .collect(),
        thread: 0,
        rank: 0,
        positions: Vec::new(),
        steps: 0,
    };
    let scopes = plan.all_threads() / plan.scope();
    for scope in 0..scopes {
        for round in 0..plan.rounds {
            for rank in 0..plan.participants() {
                let thread = scope * plan.scope() + plan.participant(rank) * plan.stride;
                (state.thread, state.rank) = (thread, rank);
                state.positions = vec![i64::from(round)];
                state.run(&plan.before)?;
                state.run(&plan.body)?;
                if let Some(old) = released(plan, round, rank) {
                    state.vars[thread as usize][0] ^= old;
                }
                state.run(&plan.after)?;
            }
        }
    }
    for (thread, vars) in (0..).zip(&mut state.vars) {
        vars[0] = plan.kept(thread).fold(vars[0], |var, kept| var ^ kept);
    }
    let contents = plan.arrays.iter().zip(&state.memory);
    let contents = contents.map(|(array, elements)| {
        let compared = array.role != Role::Scratch && array.place != Place::Stack;
        compared.then(|| {
            let bytes = elements.iter().map(|element| element.to_le_bytes());
            bytes
                .flat_map(|b| b.into_iter().take(array.bytes as usize))
                .collect()
        })
    });
    Ok(Expected {
        arrays: contents.collect(),
        vars: state.vars,
    })
}

/// Copies of an array in all blocks.
pub fn copies(plan: &Plan, array: &Array) -> u32 {
    match array.place {
        Place::Global => plan.copies(array),
        Place::Shared | Place::Generic => plan.grid * plan.copies(array),
        Place::Stack => plan.all_threads(),
    }
}

/// What a release reads, if that is used.
fn released(plan: &Plan, round: u32, rank: u32) -> Option<u32> {
    if !plan.release_read || plan.release == Release::Store {
        return None;
    }
    let mask = u64::MAX >> (64 - 8 * plan.flag_bytes);
    let turn = u64::from(round * plan.participants() + rank);
    let old = match plan.sync {
        Sync::Nothing => return None,
        Sync::Turns => plan.start.wrapping_add(turn) & mask,
        Sync::Links { .. } => u64::from(round),
        Sync::Lock => 1,
        // Who has which ticket is open.
        Sync::Tickets => return None,
    };
    Some(fold(old))
}

/// A number of 64 bits as one of 32.
fn fold(value: u64) -> u32 {
    (value ^ value >> 32) as u32
}

impl State<'_> {
    fn run(&mut self, stmts: &[Stmt]) -> Result<(), String> {
        stmts.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), String> {
        self.steps += 1;
        if self.steps > STEPS {
            return Err("too many steps".to_owned());
        }
        match stmt {
            Stmt::Assign { to, op, a, b } => {
                let value = op.apply(self.operand(*a), self.operand(*b));
                self.vars()[*to] = value;
            }
            Stmt::Load { to, from } => {
                let value = fold(*self.element(from)?);
                let var = &mut self.vars()[*to];
                *var = var.wrapping_mul(3).wrapping_add(value);
            }
            Stmt::Store { to, value } => {
                let value = u64::from(self.operand(*value));
                let ones = u64::MAX >> (64 - 8 * self.plan.arrays[to.array].bytes);
                *self.element(to)? = value & ones;
            }
            Stmt::Update { to, value } => {
                let value = u64::from(self.operand(*value));
                let array = self.plan.arrays[to.array];
                let update = match array.role {
                    Role::Locked(update) | Role::Atomic(update) => update,
                    _ => Update::Add,
                };
                let element = self.element(to)?;
                *element = update.apply(array.bytes, *element, value);
            }
            Stmt::If { when, then } => {
                if self.holds(when)? {
                    self.run(then)?;
                }
            }
            Stmt::Loop(inner) => {
                fits(i64::from(inner.bound.number), inner.bits, false)?;
                if matches!(inner.form, super::plan::Form::Up) {
                    let last = i64::from(inner.bound.number) + i64::from(inner.step.number);
                    fits(last, inner.bits, false)?;
                }
                for position in inner.positions() {
                    self.positions.push(position);
                    self.run(&inner.body)?;
                    self.positions.pop();
                    if let Some(leave) = &inner.leave
                        && self.condition(leave)
                    {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn vars(&mut self) -> &mut [u32; VARS] {
        &mut self.vars[self.thread as usize]
    }

    fn operand(&self, operand: Operand) -> u32 {
        match operand {
            Operand::Var(var) => self.vars[self.thread as usize][var],
            Operand::Const(value) => value,
        }
    }

    fn condition(&self, condition: &Condition) -> bool {
        let value = self.operand(condition.value);
        let salt = if condition.salted {
            salt(self.plan.seed as u32)
        } else {
            0
        };
        condition.holds(value ^ salt)
    }

    fn position(&self, level: usize) -> Result<i64, String> {
        let position = self.positions.get(level).copied();
        position.ok_or_else(|| format!("no loop of level {level}"))
    }

    fn holds(&self, test: &Test) -> Result<bool, String> {
        let below = |value: i64, below: &Bound| (0..i64::from(below.number)).contains(&value);
        Ok(match test {
            Test::Value(condition) => self.condition(condition),
            Test::Inside {
                level,
                plus,
                below: end,
                ..
            } => below(self.position(*level)? + i64::from(*plus), end),
            Test::Fits {
                constant,
                below: end,
            } => below(i64::from(*constant), end),
            Test::HasPrevious => self.rank != 0,
        })
    }

    /// The number of an element in its copy.
    fn index(&self, index: &Index, count: u32) -> Result<i64, String> {
        if let Some(var) = index.var {
            return Ok(i64::from(self.operand(Operand::Var(var)) % count));
        }
        let mut sum = 0;
        for (level, factor) in &index.terms {
            sum += self.position(*level)? * i64::from(*factor);
        }
        let all = sum + i64::from(index.plus);
        let computed = if index.split || index.offset {
            sum
        } else {
            all
        };
        fits(computed, index.bits, index.signed)?;
        Ok(all)
    }

    fn element(&mut self, element: &Element) -> Result<&mut u64, String> {
        let array = &self.plan.arrays[element.array];
        let index = self.index(&element.index, array.count)?;
        if !(0..i64::from(array.count)).contains(&index) {
            return Err(format!("element {index} of {}", array.count));
        }
        let thread = if element.previous {
            let Some(rank) = self.rank.checked_sub(1) else {
                return Err("nobody is before the first one".to_owned());
            };
            let scope = self.thread / self.plan.scope() * self.plan.scope();
            scope + self.plan.participant(rank) * self.plan.stride
        } else {
            self.thread
        };
        let block = thread / self.plan.threads;
        let copy = match (array.owner, array.place) {
            (_, Place::Stack) | (Owner::Thread, _) => thread,
            (Owner::All, Place::Global) => 0,
            (Owner::Block, _) | (Owner::All, _) => block,
        };
        let place = i64::from(copy * array.count) + index;
        Ok(&mut self.memory[element.array][place as usize])
    }
}

/// Whether a number has so many bits.
fn fits(value: i64, bits: u32, signed: bool) -> Result<(), String> {
    let (low, high) = match (bits, signed) {
        (64, _) => return Ok(()),
        (_, true) => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
        (_, false) => (0, (1i64 << bits) - 1),
    };
    match (low..=high).contains(&value) {
        true => Ok(()),
        false => Err(format!("{value} has not {bits} bits")),
    }
}
