//! Walks over the blocks of the allocated code from their starts: what each instruction is, what was written last, and
//! what is needed.

use super::added::{self, Action};
use super::location::{AddressWord, Content, StorageLocation, What};
use super::trace::Question;
use super::{ADDED, Checker, Position, compare};
use crate::abi;
use crate::isa::table::{Direction, Effects};
use crate::isa::{PInst, PReg, Register, RegisterClass, Role, VInst, VReg};
use crate::vcode::{Block, Entry, FunctionKind, Terminator};
use smallvec::SmallVec;
use std::ops::Range;

/// How far R1 is from where it was at entry; none while it has no value.
type Lowered = Option<i32>;

impl Checker<'_> {
    /// Walks over all blocks.
    pub(super) fn scan(&mut self) -> Result<(), String> {
        let mut inside = None;
        for block in self.before.blocks.keys() {
            let lowered = if block != self.entry() {
                inside
            } else if self.before.kind == FunctionKind::Device {
                Some(0)
            } else {
                None
            };
            let lowered = self.block(block, lowered)?;
            let leaves = matches!(
                self.before.blocks[block].terminator,
                Terminator::Return { .. } | Terminator::TailCall { .. }
            );
            if block == self.entry() {
                inside = lowered;
            }
            let expected = if leaves && self.before.kind == FunctionKind::Device {
                Some(0)
            } else {
                inside
            };
            if lowered != expected {
                return Err(format!(
                    "{block}: R1 is {lowered:?} from its first value at the end, not {expected:?}"
                ));
            }
        }
        Ok(())
    }

    /// Walks over one block; returns where R1 is at its end.
    fn block(&mut self, block: Block, mut lowered: Lowered) -> Result<Lowered, String> {
        self.written.begin();
        let old = self.before.blocks[block].insts.clone();
        let new = self.after.blocks[block].insts.clone();
        let mut next = old.start;
        // Where an instruction stands that is left out: directly behind the one before it.
        let mut behind = (2 * new.start).saturating_sub(1);
        let mut index = new.start;
        while index < new.end {
            let place =
                |this: &Self, e: String| format!("{}: {e}", this.describe(block, 2 * index));
            let origin = self.origin[index as usize];
            let count = if origin == ADDED {
                self.added(block, index, &mut lowered)
            } else {
                let known = next..old.end;
                next = origin.saturating_add(1);
                let left_out = behind;
                behind = 2 * index + 1;
                self.original(block, index, origin, known, left_out, lowered)
            };
            let count = count.map_err(|e| place(self, e))?;
            for i in index..index + count {
                let inst = &self.after.insts[i as usize].inst;
                self.registers(block, inst).map_err(|e| place(self, e))?;
            }
            index += count;
        }
        self.left_out(next..old.end, behind)
            .map_err(|e| format!("{block}: {e}"))?;
        self.terminator(block)
            .map_err(|e| format!("{}: {e}", self.describe(block, 2 * new.end)))?;
        self.written.end();
        Ok(lowered)
    }

    /// What every instruction of the block has to keep to.
    fn registers(&self, block: Block, inst: &PInst) -> Result<(), String> {
        let divergent = self.after.blocks[block].divergent;
        for r in inst.regs().iter().flatten() {
            self.limit(*r)?;
        }
        if divergent
            && let Some(r) = inst
                .definitions()
                .find(|r| r.class() == RegisterClass::Uniform)
        {
            return Err(format!("writes {r} in a divergent block"));
        }
        if !inst.info().wide {
            return Ok(());
        }
        for operand in inst.operands() {
            let Some(first) = operand.regs.first().copied().flatten() else {
                continue;
            };
            let width = operand.regs.len();
            let start = usize::from(first.number());
            let numbers = operand.regs.iter().flatten();
            let run = numbers
                .map(|r| (r.class(), usize::from(r.number())))
                .eq((start..start + width).map(|n| (first.class(), n)));
            if !start.is_multiple_of(width) || !run {
                return Err(format!(
                    "operand {} is not an aligned run: {:?}",
                    operand.info.name, operand.regs
                ));
            }
        }
        Ok(())
    }

    pub(super) fn limit(&self, r: PReg) -> Result<(), String> {
        if r.class() == RegisterClass::Gpr && r.number() >= self.limit {
            return Err(format!("{r} is not below the limit of {}", self.limit));
        }
        Ok(())
    }

    /// R1 is read: it must be where the frame is.
    fn frame_exists(&self, lowered: Lowered) -> Result<(), String> {
        if lowered == Some(-(self.layout.size as i32)) {
            return Ok(());
        }
        Err(format!(
            "R1 is {lowered:?} from its first value, the frame {} below it",
            self.layout.size
        ))
    }

    /// Notes what an instruction does that has been added; returns how many belong to it.
    fn added(&mut self, block: Block, index: u32, lowered: &mut Lowered) -> Result<u32, String> {
        let end = self.after.blocks[block].insts.end as usize;
        let all = (index as usize..end).take_while(|i| self.origin[*i] == ADDED);
        let rest = &self.after.insts[index as usize..index as usize + all.take(3).count()];
        let (action, count) = added::action(rest, &self.layout)?;
        let inst = &rest[0].inst;
        let written = &mut self.written;
        match &action {
            Action::Move(pairs) => {
                written.read(index, pairs.iter().map(|(_, from)| *from));
                pairs.iter().for_each(|(to, _)| written.write(*to, index));
            }
            Action::Pack { to, mask, .. } => {
                let packed = (0..8).filter(|p| mask >> p & 1 != 0);
                written.read(index, packed.map(|p| PReg::predicate(p).into()));
                written.write((*to).into(), index);
            }
            Action::Test { to, from, .. } => {
                written.read(index, std::iter::once((*from).into()));
                written.write((*to).into(), index);
            }
            Action::Unpack { from, .. } => {
                written.read(index, std::iter::once((*from).into()));
                (0..RegisterClass::Predicate.hardwired())
                    .for_each(|p| written.write(PReg::predicate(p).into(), index));
            }
            Action::Compute => {
                written.read(index, inst.uses().map(StorageLocation::from));
                inst.definitions()
                    .for_each(|r| written.write(r.into(), index));
            }
            Action::Adjust(amount) => {
                *lowered = Some(lowered.ok_or("R1 has no value yet")?.wrapping_add(*amount));
            }
            Action::Start => *lowered = Some(0),
        }
        let moves_pointer = matches!(action, Action::Adjust(_) | Action::Start);
        written.act(index, action);
        if !moves_pointer && inst.uses().any(|r| r == abi::STACK_POINTER) {
            self.frame_exists(*lowered)?;
        }
        Ok(count as u32)
    }

    /// Instructions before that are not in the allocated code, where they would stand at `point`: they may only give
    /// results.
    fn left_out(&mut self, range: Range<u32>, point: Position) -> Result<(), String> {
        for number in range {
            let inst = &self.before.insts[number as usize].inst;
            if !added::is_fixed(inst) {
                return Err(format!("`{inst}` is missing before"));
            }
            self.placed[number as usize] = point;
        }
        Ok(())
    }

    /// An instruction that was there before, as `origin`; it must be one of `known`, of which those before it are left
    /// out.
    fn original(
        &mut self,
        block: Block,
        index: u32,
        origin: u32,
        known: Range<u32>,
        left_out: Position,
        lowered: Lowered,
    ) -> Result<u32, String> {
        let (before, after) = (self.before, self.after);
        if !known.contains(&origin) {
            return Err(format!("stands where one of {known:?} should be"));
        }
        self.left_out(known.start..origin, left_out)?;
        self.placed[origin as usize] = 2 * index;
        let old = &before.insts[origin as usize];
        let new = &after.insts[index as usize];
        let (expected, symbol) = compare::resolved(before, old, &self.layout);
        if !symbol {
            compare::attachment((before, old), (after, new))?;
        } else if new.attachment.is_some() {
            return Err("has an attachment besides its symbol of the frame".to_string());
        }
        let same = compare::same(&expected, &new.inst)?;
        if new.inst.uses().any(|r| r == abi::STACK_POINTER) {
            self.frame_exists(lowered)?;
        }
        self.keeps_out(old, &expected)?;
        self.operands((block, 2 * index), origin, &same)?;
        self.results(block, index, origin)?;
        Ok(1)
    }

    /// Asks for the operands of an instruction that was `origin`.
    fn operands(
        &mut self,
        user: (Block, Position),
        origin: u32,
        same: &compare::Same<'_>,
    ) -> Result<(), String> {
        let old = &self.before.insts[origin as usize].inst;
        let address = compare::address(old).map(|a| a.info.role);
        for (o, n) in &same.operands {
            let differs = || format!("operand {} differs from `{old}`", o.info.name);
            if o.regs.len() != n.regs.len() {
                return Err(differs());
            }
            let added = same.folded.filter(|_| Some(o.info.role) == address);
            for (word, (v, r)) in (0..).zip(o.regs.iter().zip(n.regs)) {
                let uniform = added.and_then(|u| u.regs.get(usize::from(word)).copied().flatten());
                let content = match (*v, uniform) {
                    (Some(_), Some(_)) => Some(
                        What::Sum(AddressWord {
                            access: origin,
                            word,
                        })
                        .into(),
                    ),
                    (v, u) => v.or(u).map(Content::value),
                };
                match (content, *r) {
                    (Some(content), Some(r)) => {
                        if o.info.direction == Direction::In {
                            self.need(user, r.into(), content)?;
                        }
                    }
                    (None, None) => {}
                    _ => return Err(differs()),
                }
            }
        }
        Ok(())
    }

    /// An access of the function to its own frame does not touch the spill area. One that begins outside of the stack
    /// slots by its constant may: a path that never runs has such constants, an unrolled turn behind the last one too.
    /// No frame makes it right, so all that can be wrong here is its offset, which has been compared.
    fn keeps_out(&self, old: &Entry<VReg>, expected: &VInst) -> Result<(), String> {
        let local = Effects::LOCAL;
        let astray = compare::is_outside_of_slots(self.before, old);
        if astray || !expected.optype().info().effects.contains(local) {
            return Ok(());
        }
        let direct = self.pointer.is_some() && expected.reg(Role::A) == self.pointer;
        let words = expected.operands().map(|o| o.regs.len()).max();
        match (direct, expected.number(Role::Addr), words) {
            (true, Some(offset), Some(words)) if self.layout.touches(offset, words) => {
                Err("lies among spilled values".to_string())
            }
            _ => Ok(()),
        }
    }

    /// Notes the results of an instruction that was `origin`, and asks for what a call takes.
    fn results(&mut self, block: Block, index: u32, origin: u32) -> Result<(), String> {
        let (before, after) = (self.before, self.after);
        let old = &before.insts[origin as usize];
        let inst = &after.insts[index as usize].inst;
        let call = before.call(old);
        if let Some(call) = call {
            for (v, r) in &call.uses {
                self.need((block, 2 * index), (*r).into(), Content::value(*v))?;
            }
            if inst
                .definitions()
                .zip(abi::RETURN_ADDRESS)
                .any(|(r, address)| r != address)
            {
                return Err("the return address is not in its registers".to_string());
            }
        } else if inst.optype().info().effects.contains(Effects::CALL) {
            return Err("a call without its convention".to_string());
        }
        let written = &mut self.written;
        let kept = before.else_values(old);
        if !kept.is_empty() {
            written.read(index, inst.definitions().map(StorageLocation::from));
        }
        if call.is_some() {
            written.call(index);
        }
        let fixed = call.map_or(&[][..], |call| &call.defs);
        let results = inst.definitions().chain(fixed.iter().map(|(_, r)| *r));
        let results: SmallVec<[PReg; 6]> = results.collect();
        for (i, r) in results.iter().enumerate() {
            if *r == abi::STACK_POINTER {
                return Err("writes the stack pointer".to_string());
            }
            if results[..i].contains(r) {
                return Err(format!("{r} has two results"));
            }
            written.write((*r).into(), index);
        }
        Ok(())
    }

    /// Asks whether `place` holds `content` for the instruction or terminator that stands at the current end of the
    /// walk.
    pub(super) fn need(
        &mut self,
        user: (Block, Position),
        place: StorageLocation,
        content: Content,
    ) -> Result<(), String> {
        let writer = self.written.now(place);
        self.ask(Question {
            block: user.0,
            point: user.1,
            writer,
            place,
            content,
            user,
        })
    }
}
