//! One instruction of a lane, for the semantics: its operands as terms, and where its results go.

use super::{Machine, State};
use crate::outcome::Open;
use crate::term::Term;
use crate::words::{Condition, Vector};
use cranelift_thisgpu::unstable::isa::Role;
use cranelift_thisgpu::unstable::isa::semantics::{Gather, Scatter};
use cranelift_thisgpu::unstable::sim::decode::{Action, Op, PT, ZERO};
use std::cell::RefCell;

/// One instruction's operands and results, for the semantics.
pub(super) struct Lane<'a> {
    machine: &'a Machine<'a>,
    /// Before the instruction: its results do not change what it reads.
    before: State,
    state: &'a mut State,
    op: &'a Op,
    guard: Term,
    is_uniform: bool,
    /// Why something that was read is not known.
    open: RefCell<Option<Open>>,
}

impl<'a> Lane<'a> {
    /// Of an instruction that runs where its guard holds.
    pub(super) fn new(
        machine: &'a Machine<'a>,
        state: &'a mut State,
        op: &'a Op,
        guard: Term,
    ) -> Self {
        Lane {
            machine,
            before: state.clone(),
            state,
            op,
            guard,
            is_uniform: matches!(op.action, Action::PureOnce(_)),
            open: RefCell::default(),
        }
    }

    /// What was read that is not known.
    ///
    /// # Errors
    /// That.
    pub(super) fn finish(self) -> Result<(), Open> {
        self.open.into_inner().map_or(Ok(()), Err)
    }

    fn read(&self, role: Role, words: u8) -> Term {
        let operand = self.op.operand(role);
        let width = 32 * u32::from(words);
        match self.machine.value(&self.before, self.op, operand) {
            Ok(term) if term.width() == width => term,
            Ok(term) if term.width() > width => term.part(0, width),
            Ok(term) => term.zero_extended(width),
            Err(open) => {
                self.open.replace(Some(open));
                Term::number(0, width)
            }
        }
    }

    /// Writes a result to registers.
    pub(super) fn write(&mut self, role: Role, value: Term) {
        let operand = self.op.operand(role);
        let words = (value.width() / 32).min(operand.words.into());
        for word in 0..words {
            let new = value.part(32 * word, 32);
            let column = operand.column + word as u16;
            if self.is_uniform {
                if column < 63 {
                    let before = self.before.uniform(column as u8);
                    let new = Term::choose(self.guard, new, before);
                    self.state.uniform.insert(column as u8, new);
                }
            } else if column < ZERO {
                let new = Term::choose(self.guard, new, self.before.register(column));
                self.state.registers.insert(column, new);
            }
        }
    }

    /// Writes a predicate.
    pub(super) fn set(&mut self, number: usize, value: Term) {
        if number < PT {
            let new = Term::choose(self.guard, value, self.before.predicate(number));
            self.state.predicates[number] = Some(new);
        }
    }
}

impl Gather<Vector<32>> for Lane<'_> {
    fn word(&self, role: Role) -> Vector<32> {
        Vector(self.read(role, 1))
    }

    fn pair(&self, role: Role) -> Vector<64> {
        Vector(self.read(role, 2))
    }

    fn quad(&self, role: Role) -> Vector<128> {
        Vector(self.read(role, 4))
    }

    fn predicate(&self, role: Role) -> Condition {
        let operand = self.op.operand(role);
        let holds = self.before.predicate(usize::from(operand.column));
        Condition(if operand.invert { holds.not() } else { holds })
    }

    fn predicates(&self) -> Vector<8> {
        let bits = (0..8).map(|i| {
            let holds = self.before.predicate(i);
            Term::choose(holds, Term::number(1, 1), Term::number(0, 1))
        });
        let all = bits.reduce(|low, bit| bit.above(low));
        Vector(all.unwrap_or_else(|| Term::number(0, 8)))
    }

    fn number(&self, role: Role) -> u32 {
        let number = self.read(role, 1).as_number();
        if number.is_none() {
            let open = Open::new("a number that is not known");
            self.open.replace(Some(open));
        }
        number.unwrap_or(0) as u32
    }

    fn signed(&self, role: Role) -> i32 {
        Gather::number(self, role) as i32
    }
}

impl Scatter<Vector<32>> for Lane<'_> {
    fn word(&mut self, role: Role, value: Vector<32>) {
        self.write(role, value.0);
    }

    fn pair(&mut self, role: Role, value: Vector<64>) {
        self.write(role, value.0);
    }

    fn quad(&mut self, role: Role, value: Vector<128>) {
        self.write(role, value.0);
    }

    fn predicate(&mut self, role: Role, value: Condition) {
        self.set(self.op.operand(role).column.into(), value.0);
    }

    fn predicates(&mut self, value: Vector<8>) {
        for number in 0..PT {
            let bit = value.0.part(number as u32, 1).equals(Term::number(1, 1));
            self.set(number, bit);
        }
    }
}
