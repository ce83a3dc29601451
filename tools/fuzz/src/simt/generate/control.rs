//! Branches, loops, tangles, calls and returns.

use super::{FUEL_TURNS, Held, Loop, MAX_COST, Writer};
use crate::simt::kernel::{Compare, Condition, End, Label, Op, Operand, Stmt};

/// What a loop is like.
struct Form {
    /// Whether there is another turn.
    condition: Condition,
    /// How many turns there are, about.
    turns: u64,
    /// What counts down; a loop without it is on fuel.
    counter: Option<usize>,
    /// Whether the body may go on to the next turn or leave, from anywhere.
    may_leave: bool,
}

/// Whether turns are left.
fn is_left(counter: usize) -> Condition {
    Condition {
        value: Operand::Var(counter),
        salted: false,
        mask: u32::MAX,
        compare: Compare::Greater,
        with: 0,
    }
}

impl Writer<'_> {
    /// Writes a block that is entered at its top and goes on at `join`.
    fn arm(&mut self, block: Label, join: Label, together: bool) {
        self.switch_to(block);
        self.inside_of(together);
        self.end(End::Jump(join));
    }

    /// Goes on where lanes meet, and often looks who is there.
    fn meet(&mut self, join: Label) {
        self.switch_to(join);
        if self.probes() && !self.random.once_in(3) {
            self.stmts.push(Stmt::Probe);
        }
    }

    pub(super) fn branch(&mut self) {
        let (then, join) = (self.new_block(), self.new_block());
        let other = if self.random.once_in(2) {
            join
        } else {
            self.new_block()
        };
        let together = self.together && self.random.once_in(2);
        let condition = match together {
            true => self.common_condition(),
            false => self.condition(),
        };
        self.end(End::Branch {
            condition,
            fuel: false,
            then,
            other,
        });
        self.arm(then, join, together);
        if other != join {
            self.arm(other, join, together);
        }
        self.meet(join);
    }

    pub(super) fn switch(&mut self) {
        let join = self.new_block();
        let arms: Vec<Label> = (0..self.random.between(1, 4))
            .map(|_| self.new_block())
            .collect();
        let mut targets = arms.clone();
        for _ in 0..self.random.below(4) {
            let again = self.random.pick(&[&arms[..], &[join]].concat());
            let place = self.random.below(targets.len() + 1);
            targets.insert(place, again);
        }
        let value = Operand::Var(self.random.below(super::VARS));
        let mask = self.random.pick(&[3, 7, 31]);
        self.end(End::Table {
            value,
            mask,
            targets,
        });
        for arm in arms {
            self.arm(arm, join, false);
        }
        self.meet(join);
    }

    /// A loop: on fuel, or with a counter; tested at its top or at its bottom.
    pub(super) fn repeat(&mut self) {
        let counter = if self.fixed.len() < 3 && self.random.once_in(2) {
            self.free_var()
        } else {
            None
        };
        let (condition, turns) = match counter {
            Some(counter) => {
                let uniform = self.random.once_in(3);
                let turns = self.random.between(1, 3) as u32;
                let from = if uniform {
                    Operand::Const(turns)
                } else if self.common {
                    self.common_operand()
                } else {
                    self.operand()
                };
                self.stmts.push(Stmt::Assign {
                    to: counter,
                    op: Op::And,
                    a: from,
                    b: Operand::Const(3),
                });
                (is_left(counter), 3)
            }
            None => (self.condition(), FUEL_TURNS),
        };
        let together = self.common && counter.is_some();
        let form = Form {
            condition,
            turns,
            counter,
            may_leave: true,
        };
        let exit = self.around(form, |writer| {
            writer.inside_of(together);
            if together && writer.random.once_in(3) {
                writer.leave();
            }
            if together && writer.random.once_in(3) {
                let list = writer.commons().to_vec();
                writer.stmts.push(Stmt::Exchange { list, times: None });
            }
        });
        self.meet(exit);
    }

    /// A loop of which all threads have the counter, with nothing that leaves it before. Goes on behind it.
    pub(super) fn counted(&mut self, counter: usize, body: impl FnOnce(&mut Self)) {
        let form = Form {
            condition: is_left(counter),
            turns: 3,
            counter: Some(counter),
            may_leave: false,
        };
        let exit = self.around(form, body);
        self.switch_to(exit);
    }

    /// Writes a loop around a body; returns where it is left for.
    fn around(&mut self, form: Form, body: impl FnOnce(&mut Self)) -> Label {
        let Form {
            condition,
            turns,
            counter,
            may_leave,
        } = form;
        let (header, exit) = (self.new_block(), self.new_block());
        let fuel = counter.is_none();
        let outer = self.turns;
        let fixed = self.fixed.len();
        self.turns *= turns;
        self.fixed.extend(counter);
        let every = self.every_turn();
        let count_down = |counter: Option<usize>| {
            counter.map(|to| Stmt::Assign {
                to,
                op: Op::Sub,
                a: Operand::Var(to),
                b: Operand::Const(1),
            })
        };
        self.end(End::Jump(header));
        self.switch_to(header);
        self.stmts.extend(every);
        let loops = self.loops.len();
        if self.random.once_in(2) {
            // Tested at the top; what counts down is done before the body, so that whoever leaves it early has counted.
            let inside = self.new_block();
            self.end(End::Branch {
                condition,
                fuel,
                then: inside,
                other: exit,
            });
            self.switch_to(inside);
            self.stmts.extend(count_down(counter));
            let again = header;
            self.loops.extend(may_leave.then_some(Loop { again, exit }));
            body(self);
            self.loops.truncate(loops);
            self.end(End::Jump(header));
        } else {
            let again = self.new_block();
            self.loops.extend(may_leave.then_some(Loop { again, exit }));
            body(self);
            self.loops.truncate(loops);
            self.end(End::Jump(again));
            self.switch_to(again);
            self.stmts.extend(count_down(counter));
            self.end(End::Branch {
                condition,
                fuel,
                then: header,
                other: exit,
            });
        }
        self.fixed.truncate(fixed);
        self.turns = outer;
        exit
    }

    /// Often a variable changes in each turn in the same way in all lanes that are still there, so that it says behind
    /// the loop when a lane has left it.
    fn every_turn(&mut self) -> Option<Stmt> {
        if self.fixed.len() > 2 || !self.random.once_in(3) {
            return None;
        }
        let to = self.free_var()?;
        let first = self.constant();
        self.stmts.push(Stmt::Assign {
            to,
            op: Op::Or,
            a: first,
            b: Operand::Const(0),
        });
        self.fixed.push(to);
        Some(Stmt::Assign {
            to,
            op: self.random.pick(&[Op::Add, Op::Sub, Op::Mul, Op::Xor]),
            a: Operand::Var(to),
            b: self.constant(),
        })
    }

    /// Two blocks that go to each other and are both entered from outside.
    pub(super) fn two_entries(&mut self) {
        let [left, right, join] = [(); 3].map(|()| self.new_block());
        let condition = self.condition();
        self.end(End::Branch {
            condition,
            fuel: false,
            then: left,
            other: right,
        });
        let outer = self.turns;
        self.turns *= FUEL_TURNS;
        for (block, then) in [(left, right), (right, left)] {
            self.switch_to(block);
            self.inside();
            let condition = self.condition();
            self.end(End::Branch {
                condition,
                fuel: true,
                then,
                other: join,
            });
        }
        self.turns = outer;
        self.meet(join);
    }

    /// Some blocks that go to each other in any way; backwards for fuel.
    pub(super) fn tangle(&mut self) {
        let count = self.random.between(2, 6);
        let blocks: Vec<Label> = (0..count).map(|_| self.new_block()).collect();
        let join = self.new_block();
        let (then, other) = (self.random.pick(&blocks), self.random.pick(&blocks));
        let condition = self.condition();
        self.end(End::Branch {
            condition,
            fuel: false,
            then,
            other,
        });
        let (outer, depth) = (self.turns, self.depth);
        (self.turns, self.depth) = (outer * FUEL_TURNS, depth + 2);
        for (index, &block) in blocks.iter().enumerate() {
            self.switch_to(block);
            self.inside();
            let mut later = blocks[index + 1..].to_vec();
            later.push(join);
            let end = match self.random.below(6) {
                0 => End::Jump(self.random.pick(&later)),
                1 => End::Table {
                    value: Operand::Var(self.random.below(super::VARS)),
                    mask: self.random.pick(&[3, 7]),
                    targets: (0..self.random.between(2, 4))
                        .map(|_| self.random.pick(&later))
                        .collect(),
                },
                2 | 3 => End::Branch {
                    condition: self.condition(),
                    fuel: true,
                    then: self.random.pick(&blocks[..=index]),
                    other: self.random.pick(&later),
                },
                _ => End::Branch {
                    condition: self.condition(),
                    fuel: false,
                    then: self.random.pick(&later),
                    other: self.random.pick(&later),
                },
            };
            self.end(end);
        }
        (self.turns, self.depth) = (outer, depth);
        self.meet(join);
    }

    /// Some lanes leave: a loop, a turn of it, or the function.
    pub(super) fn leave(&mut self) {
        let loops = &self.loops[self.floor..];
        let may_return = self.held == Held::Nothing
            && self.floor == 0
            && (self.index != 0 || self.kernel.leaves_early);
        let to_loops = !loops.is_empty();
        if !to_loops && (!may_return || self.loops.is_empty() && !self.random.once_in(2)) {
            return self.simple();
        }
        let stay = self.new_block();
        let mut condition = self.condition();
        if may_return && (!to_loops || self.random.once_in(2)) {
            // Few lanes, so that some are left.
            if self.index == 0 {
                condition.mask |= 12;
                condition.compare = Compare::Equal;
            }
            let gone = self.new_block();
            self.end(End::Branch {
                condition,
                fuel: false,
                then: gone,
                other: stay,
            });
            self.switch_to(gone);
            self.farewell();
        } else {
            let Loop { again, exit } = {
                let loops = self.loops[self.floor..].to_vec();
                self.random.pick(&loops)
            };
            let then = if self.random.once_in(3) { again } else { exit };
            self.end(End::Branch {
                condition,
                fuel: false,
                then,
                other: stay,
            });
        }
        self.switch_to(stay);
    }

    /// The rest of lanes that return early.
    fn farewell(&mut self) {
        let depth = std::mem::replace(&mut self.depth, super::MAX_DEPTH - 1);
        self.quiet = true;
        for _ in 0..self.random.pick(&[0, 0, 1, 1, 2, 4]) {
            match self.random.below(3) {
                0 => self.branch(),
                1 => self.repeat(),
                _ => self.simple(),
            }
        }
        self.quiet = false;
        // Behind a barrier nobody may be apart, and a probe keeps lanes apart that return early.
        if self.index == 0 && self.probes() && self.spine.is_empty() && self.random.once_in(10) {
            self.stmts.push(Stmt::Probe);
            self.loud = true;
        }
        if self.index != 0 && self.tail && self.random.once_in(2) {
            self.tail_call();
        } else if self.random.once_in(3) {
            let (then, other) = (self.new_block(), self.new_block());
            let condition = self.condition();
            self.end(End::Branch {
                condition,
                fuel: false,
                then,
                other,
            });
            for block in [then, other] {
                self.switch_to(block);
                self.simple();
                let value = self.operand();
                self.end(End::Return(value));
            }
        } else {
            let value = self.operand();
            self.end(End::Return(value));
        }
        self.depth = depth;
    }

    /// What may be called here: later functions that are not too expensive.
    fn choices(&mut self) -> Vec<usize> {
        let (turns, cost) = (self.turns, self.cost);
        let locks = self.held == Held::Nothing;
        let known = self.callees.iter();
        let legal = known.filter(|c| (locks || !c.locks) && cost + turns * c.cost <= MAX_COST);
        legal.map(|c| c.index).collect()
    }

    /// Some of the functions, seldom one twice.
    fn some(&mut self, choices: &[usize]) -> Vec<usize> {
        let count = self.random.pick(&[1, 1, 2, 3]);
        (0..count).map(|_| self.random.pick(choices)).collect()
    }

    fn count_call(&mut self, callees: &[usize]) {
        let called: Vec<_> = self
            .callees
            .iter()
            .filter(|c| callees.contains(&c.index))
            .copied()
            .collect();
        self.cost += self.turns * called.iter().map(|c| c.cost).max().unwrap_or(0);
        self.locks |= called.iter().any(|c| c.locks);
    }

    /// A call: of a later function or one of several, or for fuel of this function.
    pub(super) fn call(&mut self) {
        let choices = self.choices();
        let own = self.index != 0 && self.held == Held::Nothing && self.random.once_in(3);
        let Some(to) = self.free_var() else {
            return self.simple();
        };
        if !own && choices.is_empty() {
            return self.simple();
        }
        let mut callees = if choices.is_empty() {
            Vec::new()
        } else {
            self.some(&choices)
        };
        if own {
            callees.truncate(2);
            callees.push(self.index);
        }
        self.count_call(&callees);
        let call = Stmt::Call {
            which: self.operand(),
            indirect: self.random.once_in(3),
            to,
            arguments: [self.operand(), self.operand()],
            callees,
        };
        if !own {
            self.stmts.push(call);
        } else {
            self.recursive = true;
            let (then, join) = (self.new_block(), self.new_block());
            let condition = self.condition();
            self.end(End::Branch {
                condition,
                fuel: true,
                then,
                other: join,
            });
            self.switch_to(then);
            self.stmts.push(call);
            self.end(End::Jump(join));
            self.switch_to(join);
        }
        if self.probes() && !self.random.once_in(3) {
            self.stmts.push(Stmt::Probe);
        }
    }

    /// The function ends in another one, or for fuel in itself.
    fn tail_call(&mut self) {
        let choices = self.choices();
        let own = self.random.once_in(3);
        if !own && choices.is_empty() {
            let value = self.operand();
            return self.end(End::Return(value));
        }
        let mut callees = if choices.is_empty() {
            Vec::new()
        } else {
            self.some(&choices)
        };
        if own {
            callees.truncate(2);
            callees.push(self.index);
            self.recursive = true;
            let (then, other) = (self.new_block(), self.new_block());
            let condition = self.condition();
            self.end(End::Branch {
                condition,
                fuel: true,
                then,
                other,
            });
            self.switch_to(other);
            let value = self.operand();
            self.end(End::Return(value));
            self.switch_to(then);
        }
        self.count_call(&callees);
        let end = End::TailCall {
            which: self.operand(),
            arguments: [self.operand(), self.operand()],
            callees,
        };
        self.end(end);
    }
}
