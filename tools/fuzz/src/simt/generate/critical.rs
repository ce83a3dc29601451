//! Critical sections: nobody leaves one without giving its lock back, and nobody waits for another lock in it but for
//! one with a larger number.

use super::{Held, Writer, can_try};
use crate::simt::kernel::{End, Operand, Stmt};

impl Writer<'_> {
    pub(super) fn critical(&mut self) {
        let smallest = match self.held {
            Held::Nothing => 0,
            Held::Lock(lock) => lock + 1,
            Held::Partly(..) => self.kernel.locks.len(),
        };
        if smallest >= self.kernel.locks.len() || self.turns > 30 {
            return self.simple();
        }
        self.locks = true;
        let lock = self.random.between(smallest, self.kernel.locks.len() - 1);
        let kind = self.kernel.locks[lock];
        let under = self
            .kernel
            .cells
            .iter()
            .position(|cell| cell.lock == Some(lock));
        match self.random.below(4) {
            0 if self.held == Held::Nothing => self.over_join(lock),
            1 if can_try(kind.kind) && !kind.by_function => {
                if let Some(cell) = under {
                    let value = self.operand();
                    self.stmts.push(Stmt::TryLock { lock, cell, value });
                }
            }
            _ => {
                self.stmts.push(Stmt::Lock { lock, when: None });
                let held = std::mem::replace(&mut self.held, Held::Lock(lock));
                let floor = std::mem::replace(&mut self.floor, self.loops.len());
                self.update();
                self.inside();
                (self.held, self.floor) = (held, floor);
                self.stmts.push(Stmt::Unlock { lock, when: None });
            }
        }
    }

    /// `if (c) lock(); …; if (c) unlock();`, with what all lanes do and what only the owners do between.
    fn over_join(&mut self, lock: usize) {
        let condition = self.condition();
        let Operand::Var(var) = condition.value else {
            return;
        };
        let was_fixed = self.fixed.contains(&var);
        self.fixed.push(var);
        let floor = std::mem::replace(&mut self.floor, self.loops.len());
        self.stmts.push(Stmt::Lock {
            lock,
            when: Some(condition),
        });
        self.held = Held::Partly(lock, condition);
        for _ in 0..self.random.between(1, 3) {
            if self.random.once_in(2) {
                let (then, join) = (self.new_block(), self.new_block());
                self.end(End::Branch {
                    condition,
                    fuel: false,
                    then,
                    other: join,
                });
                self.switch_to(then);
                self.held = Held::Lock(lock);
                self.inside();
                self.update();
                self.held = Held::Partly(lock, condition);
                self.end(End::Jump(join));
                self.switch_to(join);
            } else {
                self.inside();
            }
        }
        self.held = Held::Nothing;
        self.stmts.push(Stmt::Unlock {
            lock,
            when: Some(condition),
        });
        self.floor = floor;
        self.fixed.pop();
        debug_assert_eq!(was_fixed, self.fixed.contains(&var));
    }
}
