//! Walks over the blocks of the allocated code from their starts: what each instruction is, what was written last, and what is needed.

use super::added::{self, Action};
use super::place::{Content, Part, Place, What};
use super::trace::Question;
use super::{ADDED, Checker, NONE, Point, compare};
use crate::abi;
use crate::isa::table::{Direction, Effects};
use crate::isa::{PInst, PReg, Register, RegisterClass, Role, VInst, VReg};
use crate::vcode::{Block, Callee, FunctionKind, Terminator, VCode};
use cranelift_entity::EntityRef;
use smallvec::SmallVec;

/// Which instruction wrote which place last.
pub(super) struct Written {
    /// By place: the block, as [`Written::block`] counts them, and the instruction.
    last: Vec<(u32, u32)>,
    block: u32,
    /// Places written in the block.
    touched: Vec<Place>,
    /// The last call in the block.
    call: Option<u32>,
    /// For all blocks: places written, in order, each with the last instruction that did.
    ends: Vec<(Place, u32)>,
    /// For each block its range of [`Written::ends`], and its last call.
    blocks: Vec<(std::ops::Range<u32>, Option<u32>)>,
    /// What added instructions do.
    actions: Vec<Action>,
    /// By instruction: an index of [`Written::actions`], and where its writers begin in [`Written::sources`].
    steps: Vec<(u32, u32)>,
    /// What wrote each place before that an added instruction reads, or a guarded result stands in.
    sources: Vec<Option<u32>>,
}

impl Written {
    /// Nothing is known of `after`, which has so many words of spill area.
    pub fn new(words: u32, after: &VCode<PReg>) -> Written {
        Written {
            last: vec![(0, 0); Place::count(words)],
            block: 0,
            touched: Vec::new(),
            call: None,
            ends: Vec::new(),
            blocks: Vec::with_capacity(after.blocks.len()),
            actions: Vec::new(),
            steps: vec![(NONE, 0); after.insts.len()],
            sources: Vec::new(),
        }
    }

    fn begin(&mut self) {
        self.block += 1;
        self.touched.clear();
        self.call = None;
    }

    /// The instruction of the block that wrote `place` last so far.
    fn now(&self, place: Place) -> Option<u32> {
        let (block, index) = self.last[place.index()];
        let own = (block == self.block).then_some(index);
        own.max(self.call.filter(|_| !place.survives_call()))
    }

    fn write(&mut self, place: Place, index: u32) {
        let last = &mut self.last[place.index()];
        if last.0 != self.block {
            self.touched.push(place);
        }
        *last = (self.block, index);
    }

    fn end(&mut self) {
        self.touched.sort_unstable();
        let start = self.ends.len() as u32;
        let last = &self.last;
        self.ends
            .extend(self.touched.iter().map(|p| (*p, last[p.index()].1)));
        self.blocks.push((start..self.ends.len() as u32, self.call));
    }

    /// The instruction of `block` that wrote `place` last.
    pub fn at_end(&self, block: Block, place: Place) -> Option<u32> {
        let (range, call) = &self.blocks[block.index()];
        let ends = &self.ends[range.start as usize..range.end as usize];
        let found = ends.binary_search_by_key(&place, |(p, _)| *p);
        let own = found.ok().map(|i| ends[i].1);
        own.max(call.filter(|_| !place.survives_call()))
    }

    /// What an added instruction does; none for one that belongs to the instructions before it.
    pub fn action(&self, index: u32) -> Option<&Action> {
        self.actions.get(self.steps[index as usize].0 as usize)
    }

    /// What wrote the place that is source `number` of instruction `index`, or its result of that number under a guard.
    pub fn before(&self, index: u32, number: usize) -> Option<u32> {
        self.sources[self.steps[index as usize].1 as usize + number]
    }
}

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
        let mut index = new.start;
        while index < new.end {
            let place =
                |this: &Self, e: String| format!("{}: {e}", this.describe(block, 2 * index));
            let origin = self.origin[index as usize];
            let count = if origin == ADDED {
                self.added(block, index, &mut lowered)
            } else {
                self.original(block, index, origin, &mut next, lowered)
            };
            let count = count.map_err(|e| place(self, e))?;
            for i in index..index + count {
                let inst = &self.after.insts[i as usize].inst;
                self.registers(block, inst).map_err(|e| place(self, e))?;
            }
            index += count;
        }
        self.left_out(next..old.end, 2 * new.end)
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

    fn limit(&self, r: PReg) -> Result<(), String> {
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
        written.steps[index as usize] =
            (written.actions.len() as u32, written.sources.len() as u32);
        let mut read = |place: Place| {
            let before = written.now(place);
            written.sources.push(before);
        };
        match &action {
            Action::Move(pairs) => pairs.iter().for_each(|(_, from)| read(*from)),
            Action::Pack { mask, .. } => (0..8)
                .filter(|p| mask >> p & 1 != 0)
                .for_each(|p| read(PReg::predicate(p).into())),
            Action::Unpack { from, .. } => read((*from).into()),
            Action::Compute => inst.uses().for_each(|r| read(r.into())),
            Action::Adjust(_) | Action::Start => {}
        }
        match &action {
            Action::Move(pairs) => pairs.iter().for_each(|(to, _)| written.write(*to, index)),
            Action::Pack { to, .. } => written.write((*to).into(), index),
            Action::Unpack { .. } => (0..RegisterClass::Predicate.hardwired())
                .for_each(|p| written.write(PReg::predicate(p).into(), index)),
            Action::Compute => inst
                .definitions()
                .for_each(|r| written.write(r.into(), index)),
            Action::Adjust(amount) => {
                *lowered = Some(lowered.ok_or("R1 has no value yet")?.wrapping_add(*amount));
            }
            Action::Start => *lowered = Some(0),
        }
        let moves_pointer = matches!(action, Action::Adjust(_) | Action::Start);
        written.actions.push(action);
        if !moves_pointer && inst.uses().any(|r| r == abi::STACK_POINTER) {
            self.frame_exists(*lowered)?;
        }
        Ok(count as u32)
    }

    /// Instructions before that are not in the allocated code: they may only give results.
    fn left_out(&mut self, range: std::ops::Range<u32>, point: Point) -> Result<(), String> {
        for number in range {
            let inst = &self.before.insts[number as usize].inst;
            if !added::is_fixed(inst) {
                return Err(format!("`{inst}` is missing before"));
            }
            self.placed[number as usize] = point.saturating_sub(1);
        }
        Ok(())
    }

    /// An instruction that was there before, as `origin`.
    fn original(
        &mut self,
        block: Block,
        index: u32,
        origin: u32,
        next: &mut u32,
        lowered: Lowered,
    ) -> Result<u32, String> {
        let (before, after) = (self.before, self.after);
        if origin < *next || origin >= before.blocks[block].insts.end {
            return Err(format!("stands where instruction {next} should be"));
        }
        self.left_out(*next..origin, 2 * index)?;
        *next = origin + 1;
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
        self.keeps_out(&expected)?;
        self.operands((block, 2 * index), origin, &same)?;
        self.results(block, index, origin)?;
        Ok(1)
    }

    /// Asks for the operands of an instruction that was `origin`.
    fn operands(
        &mut self,
        user: (Block, Point),
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
                        What::Sum(Part {
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

    /// An access of the function to its own frame does not touch the spill area.
    fn keeps_out(&self, expected: &VInst) -> Result<(), String> {
        let local = Effects::LOCAL;
        if !expected.optype().info().effects.contains(local) {
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
            written.steps[index as usize].1 = written.sources.len() as u32;
            for r in inst.definitions() {
                let last = written.now(r.into());
                written.sources.push(last);
            }
        }
        if call.is_some() {
            written.call = Some(index);
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

    /// Asks whether `place` holds `content` for the instruction or terminator that stands at the current end of the walk.
    fn need(&mut self, user: (Block, Point), place: Place, content: Content) -> Result<(), String> {
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

    /// Compares the terminator, and asks for its operands.
    fn terminator(&mut self, block: Block) -> Result<(), String> {
        let (before, after) = (self.before, self.after);
        let (old, new) = (
            &before.blocks[block].terminator,
            &after.blocks[block].terminator,
        );
        let mut needs: SmallVec<[(VReg, PReg); 8]> = SmallVec::new();
        let same = match (old, new) {
            (Terminator::Jump { target: a, .. }, Terminator::Jump { target: b, args }) => {
                a == b && args.is_empty()
            }
            (
                Terminator::Branch {
                    guard: g,
                    taken: t,
                    fallthrough: f,
                    divergent: d,
                },
                Terminator::Branch {
                    guard: h,
                    taken: u,
                    fallthrough: e,
                    divergent: i,
                },
            ) => {
                needs.push((g.reg, h.reg));
                (g.negated, t, f, d) == (h.negated, u, e, i)
            }
            (
                Terminator::Table {
                    index: v,
                    table: a,
                    targets: t,
                    divergent: d,
                },
                Terminator::Table {
                    index: r,
                    table: b,
                    targets: u,
                    divergent: e,
                },
            ) => {
                needs.push((*v, *r));
                (a, t, d) == (b, u, e)
            }
            (
                Terminator::Return {
                    address: a,
                    values: v,
                },
                Terminator::Return {
                    address: b,
                    values: w,
                },
            ) => pair(a, b, &mut needs) && fixed(v, w, &mut needs),
            (
                Terminator::TailCall {
                    callee: a,
                    values: v,
                },
                Terminator::TailCall {
                    callee: b,
                    values: w,
                },
            ) => {
                fixed(v, w, &mut needs)
                    && match (a, b) {
                        (Callee::Symbol(a), Callee::Symbol(b)) => a == b,
                        (Callee::Registers(a), Callee::Registers(b)) => pair(a, b, &mut needs),
                        _ => false,
                    }
            }
            (Terminator::Exit, Terminator::Exit) => true,
            (Terminator::Trap(a), Terminator::Trap(b)) => a == b,
            _ => false,
        };
        if !same {
            return Err(format!("is not `{old}`"));
        }
        let user = (block, 2 * after.blocks[block].insts.end);
        for (v, r) in needs {
            self.limit(r)?;
            self.need(user, r.into(), Content::value(v))?;
        }
        let leaves = matches!(new, Terminator::Return { .. } | Terminator::TailCall { .. });
        if leaves && before.kind == FunctionKind::Device {
            for r in abi::CALLEE_SAVED.map(PReg::gpr) {
                self.need(user, r.into(), What::Entry(r).into())?;
            }
        }
        Ok(())
    }
}

/// An address in an aligned pair of registers.
fn pair(old: &[VReg; 2], new: &[PReg; 2], needs: &mut SmallVec<[(VReg, PReg); 8]>) -> bool {
    needs.extend(old.iter().copied().zip(new.iter().copied()));
    new[0].number().is_multiple_of(2) && new[1].number() == new[0].number() + 1
}

/// Values in the registers of the convention.
fn fixed(
    old: &[(VReg, PReg)],
    new: &[(PReg, PReg)],
    needs: &mut SmallVec<[(VReg, PReg); 8]>,
) -> bool {
    needs.extend_from_slice(old);
    old.iter().map(|(_, r)| (*r, *r)).eq(new.iter().copied())
}
