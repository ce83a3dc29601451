//! Follows the questions where a value comes from, backwards.

use super::added::{Action, is_address_addition, is_fixed};
use super::location::{AddressWord, Content, StorageLocation, What};
use super::{ADDED, Checker, Position, compare};
use crate::abi;
use crate::isa::{PReg, Register, RegisterClass, Role, VReg};
use crate::vcode::Block;
use hashbrown::HashSet;

/// Whether a place holds what it has to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    /// The block that is being looked at.
    pub block: Block,
    /// The place is read here: nothing behind matters.
    pub point: Position,
    /// The instruction of the block that wrote the place last before; none: it was written before the block.
    pub writer: Option<u32>,
    /// The place.
    pub place: StorageLocation,
    /// What it has to hold.
    pub content: Content,
    /// Who wants to know: block and point of the use.
    pub user: (Block, Position),
}

/// Questions that wait, and those that were asked.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// At the start of blocks, to be handed on to their predecessors.
    waiting: Vec<Question>,
    /// In the block that is being looked at.
    open: Vec<Question>,
    asked: HashSet<(Asked, StorageLocation, Content)>,
}

/// Where a question was asked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Asked {
    /// At the start of a block.
    Block(Block),
    /// Of an instruction that handed it on.
    Writer(u32),
}

impl Checker<'_> {
    /// Follows a question to the start of its block.
    pub(super) fn ask(&mut self, question: Question) -> Result<(), String> {
        self.questions.open.push(question);
        while let Some(question) = self.questions.open.pop() {
            self.one(&question)
                .map_err(|e| self.mistake(&question, &e))?;
        }
        Ok(())
    }

    /// Follows the questions that have come to the start of their blocks.
    pub(super) fn follow_edges(&mut self) -> Result<(), String> {
        while let Some(question) = self.questions.waiting.pop() {
            let block = question.block;
            let used = |this: &Self, e: String| {
                format!("{}: {e}", this.describe(question.user.0, question.user.1))
            };
            if block == self.entry() {
                let answer = self.at_entry(&question);
                answer.map_err(|e| used(self, self.mistake(&question, &e)))?;
                continue;
            }
            for i in 0..self.predecessors[block].len() {
                let from = self.predecessors[block][i];
                let mut content = question.content;
                if let What::Value(v) = content.what {
                    content.what = What::Value(self.argument(v, from, block));
                }
                let answer = self.ask(Question {
                    block: from,
                    point: 2 * self.after.blocks[from].insts.end,
                    writer: self.written.at_end(from, question.place),
                    content,
                    ..question
                });
                answer.map_err(|e| used(self, e))?;
            }
        }
        Ok(())
    }

    fn one(&mut self, question: &Question) -> Result<(), String> {
        let &Question {
            block,
            writer,
            place,
            content,
            ..
        } = question;
        if !content.fits(place) {
            return Err("which it cannot hold".to_string());
        }
        if place == StorageLocation::from(abi::STACK_POINTER) {
            // That it is the frame's has been checked wherever it is read.
            return match (content.what, self.pointer) {
                (What::Value(v), Some(pointer)) if v == pointer => Ok(()),
                _ => Err("which is the stack pointer".to_string()),
            };
        }
        self.is_not_older(question)?;
        match writer {
            Some(index) => self.at_writer(question, index),
            None if matches!(content.what, What::Sum(_) | What::Carry(_)) => {
                Err("which is not made in the block that needs it".to_string())
            }
            None => {
                let key = (Asked::Block(block), place, content);
                if self.questions.asked.insert(key) {
                    self.questions.waiting.push(*question);
                }
                Ok(())
            }
        }
    }

    /// Between the place's last write and its use no value may be defined again that the content depends on.
    fn is_not_older(&self, question: &Question) -> Result<(), String> {
        let start = 2 * self.after.blocks[question.block].insts.start;
        let low = question
            .writer
            .map_or(i64::from(start) - 2, |index| 2 * i64::from(index));
        let older = |v: VReg| {
            let placed = self.placed.get(self.definition[v.index()] as usize);
            placed.is_some_and(|p| low < i64::from(*p) && *p < question.point)
                && !self.is_constant(v)
        };
        let found = match question.content.what {
            What::Value(v) => older(v).then_some(v),
            What::Sum(part) | What::Carry(part) => self
                .before
                .insts
                .get(part.access as usize)
                .and_then(|entry| entry.inst.uses().find(|v| older(*v))),
            What::Entry(_) => None,
        };
        match found {
            Some(v) => Err(format!("but {v} is defined after {}", question.place)),
            None => Ok(()),
        }
    }

    fn at_entry(&self, question: &Question) -> Result<(), String> {
        let found = match question.content.what {
            What::Value(v) => self
                .before
                .entry
                .iter()
                .any(|(known, r)| *known == v && StorageLocation::from(*r) == question.place),
            What::Entry(r) => StorageLocation::from(r) == question.place,
            What::Sum(_) | What::Carry(_) => false,
        };
        if found && question.content.bit.is_none() {
            Ok(())
        } else {
            Err("which it does not at entry".to_string())
        }
    }

    /// The instruction `index` wrote the place.
    fn at_writer(&mut self, question: &Question, index: u32) -> Result<(), String> {
        let origin = self.origin[index as usize];
        if origin != ADDED {
            return self.at_original(question, index, origin);
        }
        let key = (Asked::Writer(index), question.place, question.content);
        if !self.questions.asked.insert(key) {
            return Ok(());
        }
        let Some(action) = self.written.action(index).cloned() else {
            return Err(self.overwritten(index));
        };
        match action {
            Action::Move(pairs) => {
                let pair = pairs.iter().position(|(to, _)| *to == question.place);
                match pair {
                    Some(i) => self.hand_on(question, index, i, pairs[i].1, question.content),
                    None => Err(self.overwritten(index)),
                }
            }
            Action::Pack { shift, mask, .. } => {
                let bit = question.content.bit.and_then(|b| b.checked_sub(shift));
                let read = (0..8).filter(|p| mask >> p & 1 != 0);
                match read.clone().position(|p| Some(p) == bit) {
                    Some(i) => {
                        let from = PReg::predicate(bit.expect("found")).into();
                        self.hand_on(question, index, i, from, question.content.what.into())
                    }
                    None => Err(self.overwritten(index)),
                }
            }
            Action::Unpack { from, shift, mask } => {
                let number = question.place.register().map_or(8, PReg::number);
                if mask.checked_shr(number.into()).unwrap_or(0) & 1 == 0
                    || question.content.bit.is_some()
                {
                    return Err(self.overwritten(index));
                }
                let content = Content {
                    what: question.content.what,
                    bit: Some(number + shift),
                };
                self.hand_on(question, index, 0, from.into(), content)
            }
            Action::Test { from, bit, .. } => {
                if question.content.bit.is_some() {
                    return Err(self.overwritten(index));
                }
                let content = Content {
                    what: question.content.what,
                    bit: Some(bit),
                };
                self.hand_on(question, index, 0, from.into(), content)
            }
            Action::Compute => self.at_computation(question, index),
            Action::Adjust(_) | Action::Start => Err(self.overwritten(index)),
        }
    }

    /// Asks for the source `number` of instruction `index`.
    fn hand_on(
        &mut self,
        question: &Question,
        index: u32,
        number: usize,
        place: StorageLocation,
        content: Content,
    ) -> Result<(), String> {
        self.questions.open.push(Question {
            block: question.block,
            point: 2 * index,
            writer: self.written.before(index, number),
            place,
            content,
            user: question.user,
        });
        Ok(())
    }

    /// An instruction of the function wrote the place: it must have defined the value. Where its guard is false the
    /// place has what it had.
    fn at_original(&mut self, question: &Question, index: u32, origin: u32) -> Result<(), String> {
        let old = &self.before.insts[origin as usize];
        let new = &self.after.insts[index as usize];
        let call = self.before.call(old).map_or(&[][..], |call| &call.defs);
        let results = old.inst.definitions().zip(new.inst.definitions());
        let mut results = results.chain(call.iter().copied()).enumerate();
        let found = results.find(|(_, (v, r))| {
            StorageLocation::from(*r) == question.place && Content::value(*v) == question.content
        });
        let Some((number, _)) = found else {
            return Err(self.overwritten(index));
        };
        let kept = self.before.else_values(old);
        if let Some(value) = kept.get(number).copied().flatten() {
            let key = (Asked::Writer(index), question.place, question.content);
            if self.questions.asked.insert(key) {
                let content = Content::value(value);
                return self.hand_on(question, index, number, question.place, content);
            }
        }
        Ok(())
    }

    /// An added computation wrote the place: the value's own definition once more, or a word of an address.
    fn at_computation(&mut self, question: &Question, index: u32) -> Result<(), String> {
        if question.content.bit.is_some() {
            return Err(self.overwritten(index));
        }
        match question.content.what {
            What::Value(v) => self.made_again(question, index, v),
            What::Sum(part) => self.added_up(question, index, part, Role::D),
            What::Carry(part) => self.added_up(question, index, part, Role::Pu),
            What::Entry(_) => Err(self.overwritten(index)),
        }
    }

    fn made_again(&mut self, question: &Question, index: u32, v: VReg) -> Result<(), String> {
        let before = self.before;
        let after = self.after;
        let new = &after.insts[index as usize];
        let Some(old) = before.insts.get(self.definition[v.index()] as usize) else {
            return Err(self.overwritten(index));
        };
        let (expected, symbol) = compare::resolved(before, old, &self.layout);
        let same = expected.form() == new.inst.form()
            && expected.word() == new.inst.word()
            && is_fixed(&old.inst)
            && old.inst.is_unguarded()
            && if symbol {
                new.attachment.is_none()
            } else {
                compare::attachment((before, old), (after, new)).is_ok()
            };
        let mut results = expected.definitions().zip(new.inst.definitions());
        let result = results.any(|(d, r)| d == v && StorageLocation::from(r) == question.place);
        let word = expected.definitions().position(|d| d == v);
        if !symbol
            && word.is_some_and(|word| compare::is_word_of(&expected, &new.inst, word as u64))
            && new.attachment.is_none()
            && new.inst.definitions().map(StorageLocation::from).next() == Some(question.place)
        {
            return Ok(());
        }
        if !same || !result {
            return Err(format!(
                "{}, which is not `{}`",
                self.overwritten(index),
                old.inst
            ));
        }
        // The operands are those of the value: its definition comes before every place where it is needed, and they
        // come before it.
        for (number, (value, r)) in expected.uses().zip(new.inst.uses()).enumerate() {
            self.hand_on(question, index, number, r.into(), Content::value(value))?;
        }
        Ok(())
    }

    fn added_up(
        &mut self,
        question: &Question,
        index: u32,
        part: AddressWord,
        role: Role,
    ) -> Result<(), String> {
        let after = self.after;
        let inst = &after.insts[index as usize].inst;
        let result = inst.reg(role).map(StorageLocation::from) == Some(question.place);
        if !result || !is_address_addition(inst, part.word) {
            return Err(self.overwritten(index));
        }
        let access = &self.before.insts[part.access as usize].inst;
        let word = usize::from(part.word);
        let (Some(address), Some(uniform)) =
            (compare::address(access), compare::uniform_address(access))
        else {
            return Err(self.overwritten(index));
        };
        let (Some(a), Some(b)) = (
            address.regs.get(word).copied().flatten(),
            uniform.regs.get(word).copied().flatten(),
        ) else {
            return Err(self.overwritten(index));
        };
        for (number, r) in inst.uses().enumerate() {
            let content = match r.class() {
                RegisterClass::Predicate => What::Carry(AddressWord {
                    word: part.word - 1,
                    ..part
                })
                .into(),
                _ if number == 0 => Content::value(a),
                _ => Content::value(b),
            };
            self.hand_on(question, index, number, r.into(), content)?;
        }
        Ok(())
    }

    fn overwritten(&self, index: u32) -> String {
        format!("but `{}` writes it", self.after.insts[index as usize].inst)
    }

    /// `in block1 R5 has to hold %v7, but …`
    fn mistake(&self, question: &Question, why: &str) -> String {
        let (block, point) = question.user;
        let place = if question.point == point && question.block == block {
            String::new()
        } else {
            format!("at {} ", self.describe(question.block, question.point))
        };
        format!(
            "{place}{} has to hold {}, {why}",
            question.place, question.content,
        )
    }
}
