//! Random statements, and loops over arrays that end where their allocations end.

use super::features::{Feature, Features};
use super::plan::{Bound, Element, Form, Index, Loop, Plan, Role, Stmt, Test};
use crate::random::Random;
use crate::simt::kernel::{Compare, Condition, Op, Operand, VARS};

/// Operations of assignments.
const OPS: [Op; 8] = [
    Op::Add,
    Op::Sub,
    Op::Mul,
    Op::Xor,
    Op::Or,
    Op::Shr,
    Op::Max,
    Op::Min,
];

/// A place in a kernel.
pub(super) struct Scope<'a> {
    pub(super) features: Features,
    pub(super) random: Random,
    pub(super) plan: &'a Plan,
    /// Arrays that may be used here.
    pub(super) arrays: Vec<usize>,
    /// How deep statements may lie in each other.
    pub(super) depth: usize,
    /// Messages of the thread before may be read.
    pub(super) previous: bool,
}

impl Scope<'_> {
    fn wants(&mut self, feature: Feature) -> bool {
        self.features.has(feature) && self.random.once_in(2)
    }

    /// So many statements.
    pub(super) fn some(&mut self, count: usize) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        for _ in 0..count {
            match self.random.below(10) {
                0 if self.depth > 0 => self.condition_around(&mut stmts),
                1 if self.depth > 0 => self.nest(1, &mut stmts),
                _ => self.simple(&mut stmts),
            }
        }
        stmts
    }

    fn condition_around(&mut self, stmts: &mut Vec<Stmt>) {
        let when = Test::Value(self.condition());
        self.depth -= 1;
        let count = self.random.between(1, 2);
        let then = self.some(count);
        self.depth += 1;
        stmts.push(Stmt::If { when, then });
    }

    fn var(&mut self) -> usize {
        self.random.below(VARS)
    }

    fn operand(&mut self) -> Operand {
        match self.random.once_in(5) {
            true => Operand::Const(self.random.below(1000) as u32),
            false => Operand::Var(self.var()),
        }
    }

    fn condition(&mut self) -> Condition {
        Condition {
            value: Operand::Var(self.var()),
            salted: true,
            mask: self.random.pick(&[1, 3, 4, 7]),
            compare: self.random.pick(&[Compare::Equal, Compare::NotEqual]),
            with: self.random.below(2) as u32,
        }
    }

    /// A statement without others in it.
    pub(super) fn simple(&mut self, stmts: &mut Vec<Stmt>) {
        if self.arrays.is_empty() || self.random.once_in(4) {
            let (to, op, a, b) = (
                self.var(),
                self.random.pick(&OPS),
                self.operand(),
                self.operand(),
            );
            stmts.push(Stmt::Assign { to, op, a, b });
            return;
        }
        let array = self.random.pick(&self.arrays);
        let stmt = self.access(array, None);
        stmts.push(stmt);
    }

    /// An access to an element: of an index, or of any.
    fn access(&mut self, array: usize, index: Option<Index>) -> Stmt {
        let data = self.plan.arrays[array];
        let message = data.role == Role::Message;
        let index = match index {
            _ if message => self.message(data.count),
            Some(index) => index,
            None if self.random.once_in(2) => Index::var(self.var()),
            None => Index::constant(self.random.below(data.count as usize) as u32),
        };
        let flags = self.wants(Feature::Flags);
        let mut element = Element {
            array,
            index,
            previous: false,
            flags,
        };
        let (var, value) = (self.var(), self.operand());
        match data.role {
            Role::Input => Stmt::Load {
                to: var,
                from: element,
            },
            Role::Atomic(_) | Role::Locked(_) => Stmt::Update { to: element, value },
            Role::Message if self.previous && self.random.once_in(2) => {
                element.previous = true;
                let load = Stmt::Load {
                    to: var,
                    from: element,
                };
                Stmt::If {
                    when: Test::HasPrevious,
                    then: vec![load],
                }
            }
            _ if self.random.once_in(2) => Stmt::Load {
                to: var,
                from: element,
            },
            _ => Stmt::Store { to: element, value },
        }
    }

    /// An element of this round.
    fn message(&mut self, count: u32) -> Index {
        let of_round = count / self.plan.rounds;
        let mut index = Index::constant(self.random.below(of_round as usize) as u32);
        if self.plan.rounds > 1 {
            index.terms = vec![(0, of_round)];
        }
        index
    }

    fn bound(&mut self, number: u32) -> Bound {
        let passed = self.random.once_in(2);
        Bound { number, passed }
    }

    /// Loops over an array, `depth` of them at most around each other.
    pub(super) fn nest(&mut self, depth: usize, stmts: &mut Vec<Stmt>) {
        let in_loops = |role| matches!(role, Role::Message);
        let arrays: Vec<usize> = (self.arrays.iter().copied())
            .filter(|array| !in_loops(self.plan.arrays[*array].role))
            .collect();
        if arrays.is_empty() {
            return self.simple(stmts);
        }
        let array = self.random.pick(&arrays);
        let count = self.plan.arrays[array].count;
        let divisors = (2..count).filter(|d| count.is_multiple_of(*d));
        let divisors: Vec<u32> = divisors.collect();
        // Level 0 is the round.
        if depth > 1 && !divisors.is_empty() && self.random.once_in(2) {
            let columns = self.random.pick(&divisors);
            let mut outer = self.counted(count / columns, 1);
            let mut inner = self.counted(columns, 1);
            let terms = vec![(1, columns), (2, 1)];
            let index = self.index(terms, 0, count);
            inner.body.push(self.access(array, Some(index)));
            self.more(array, 2, &mut inner);
            outer.body.push(Stmt::Loop(inner));
            self.more(array, 1, &mut outer);
            stmts.push(Stmt::Loop(outer));
            return;
        }
        let mut inner = self.over(array, 1);
        if depth > 1 {
            let other = self.random.pick(&arrays);
            let nested = self.over(other, 2);
            inner.body.push(Stmt::Loop(nested));
            inner.body.push(self.any_of(array, 1, 0));
        }
        self.guarded(array, stmts);
        stmts.push(Stmt::Loop(inner));
    }

    /// A loop over all elements of an array.
    fn over(&mut self, array: usize, level: usize) -> Loop {
        let data = self.plan.arrays[array];
        let count = data.count;
        let steps = [2, 3, 4, 5].into_iter().filter(|step| step <= &count);
        let steps: Vec<u32> = steps.collect();
        let step = match self.wants(Feature::Strides) && !steps.is_empty() {
            true => self.random.pick(&steps),
            false => 1,
        };
        let pointers = self.wants(Feature::Pointers) && count.is_multiple_of(step);
        let mut inner = self.counted(count, step);
        if pointers {
            let down = self.wants(Feature::Downwards);
            inner.form = if down {
                Form::PointerDown(array)
            } else {
                Form::PointerUp(array)
            };
        }
        let whole = match inner.form {
            Form::Down => step,
            _ if count.is_multiple_of(step) => step,
            _ => 1,
        };
        for plus in 0..whole {
            let stmt = self.any_of(array, level, plus as i32);
            inner.body.push(stmt);
        }
        self.more(array, level, &mut inner);
        inner
    }

    /// An access at the position of a level and so many elements behind it.
    fn any_of(&mut self, array: usize, level: usize, plus: i32) -> Stmt {
        let count = self.plan.arrays[array].count;
        let mut index = self.index(vec![(level, 1)], plus, count);
        index.pointer = self.random.once_in(3) || self.features.has(Feature::Pointers);
        self.access(array, Some(index))
    }

    /// A loop that counts so far.
    fn counted(&mut self, number: u32, step: u32) -> Loop {
        let mut forms = vec![Form::Up];
        if step == 1 {
            forms.push(Form::UpTo);
            if self.features.has(Feature::Negative) {
                forms.push(Form::Negative);
            }
        }
        if self.features.has(Feature::Downwards) {
            forms.extend([Form::Down; 2]);
        }
        let mut widths = vec![32];
        if self.features.has(Feature::NarrowCounters) && number + step < 256 {
            widths.extend([8, 16]);
        }
        if self.features.has(Feature::WideCounters) {
            widths.push(64);
        }
        let (form, bits) = (self.random.pick(&forms), self.random.pick(&widths));
        let leaves = self.wants(Feature::Breaks) && self.random.once_in(2);
        Loop {
            form,
            bound: self.bound(number),
            step: Bound {
                number: step,
                passed: self.random.once_in(3),
            },
            bits,
            rotated: number != 0 && self.wants(Feature::Rotated),
            body: Vec::new(),
            leave: leaves.then(|| self.condition()),
        }
    }

    fn index(&mut self, terms: Vec<(usize, u32)>, plus: i32, count: u32) -> Index {
        let mut widths = vec![32];
        if self.features.has(Feature::NarrowCounters) {
            widths.push(16);
            if count < 128 {
                widths.push(8);
            }
        }
        if self.features.has(Feature::WideCounters) {
            widths.push(64);
        }
        let (split, offset) = match self.wants(Feature::Offsets) {
            true => (self.random.once_in(2), true),
            false => (false, false),
        };
        Index {
            terms,
            plus,
            var: None,
            bits: self.random.pick(&widths),
            signed: self.random.once_in(2),
            split,
            offset: offset && !split,
            pointer: false,
        }
    }

    /// Other accesses in a loop over an array.
    fn more(&mut self, array: usize, level: usize, inner: &mut Loop) {
        let count = self.plan.arrays[array].count;
        let reaches = inner.bound.number <= count;
        if self.wants(Feature::Neighbours) && reaches {
            let plus = self.random.pick(&[-2, -1, -1, 1, 1, 2, 3]);
            inner.body.push(self.beside(array, level, plus));
        }
        if self.wants(Feature::Adjacent) && reaches {
            for plus in 0..self.random.between(2, 4) as i32 {
                let stmt = self.beside(array, level, plus);
                inner.body.push(stmt);
            }
        }
        self.guarded(array, &mut inner.body);
        if self.random.once_in(2) {
            self.simple(&mut inner.body);
        }
    }

    /// An access beside the position, if that is in the array.
    fn beside(&mut self, array: usize, level: usize, plus: i32) -> Stmt {
        let count = self.plan.arrays[array].count;
        let when = Test::Inside {
            level,
            plus,
            below: self.bound(count),
            form: self.random.below(2) as u8,
        };
        let then = vec![self.any_of(array, level, plus)];
        Stmt::If { when, then }
    }

    /// Accesses at constants, which are perhaps not in the array, if they are.
    fn guarded(&mut self, array: usize, stmts: &mut Vec<Stmt>) {
        if !self.wants(Feature::Guarded) {
            return;
        }
        let count = self.plan.arrays[array].count;
        let most = self.random.pick(&[1, 2, 4, 16]);
        for constant in count.saturating_sub(1)..count + most {
            let below = Bound {
                number: count,
                passed: true,
            };
            let index = Index::constant(constant);
            let then = vec![self.access(array, Some(index))];
            stmts.push(Stmt::If {
                when: Test::Fits { constant, below },
                then,
            });
        }
    }
}
