//! If-conversion: the short sides of a divergent branch run under a guard instead of behind it.
//!
//! Lanes that disagree run both sides one after the other anyway, and pay for the branch and the convergence barrier besides. Where both sides of
//! a divergent branch go straight to the same block, are short, and may be guarded, their instructions move before the branch, which becomes a
//! jump: what only computes runs in all lanes; what touches memory, and what depends on it, under the branch's guard, so that no register is
//! read that was not written. A parameter of the join for which the sides have different arguments is chosen: the instruction that makes the one
//! argument gets the guard and keeps the other where it is false, or there is a SEL (PLOP3 for predicates). If nothing else comes to the join
//! it becomes part of the branching block, so that an outer branch can follow.
//!
//! Convergent instructions, calls, barriers and instructions that carry a guard already are never touched.

use super::edit::Editor;
use crate::isa::generated::{MOVW, mov};
use crate::isa::operand::PT;
use crate::isa::table::Effects;
use crate::isa::{Inst, Register, RegisterClass, Role, VReg, build};
use crate::remarks::{Missed, Remarks};
use crate::vcode::{Attachment, Block, Entry, Guard, Meeting, SourceLine, Terminator, VCode};
use cranelift_entity::{EntityRef, SecondaryMap};
use hashbrown::HashSet;
use smallvec::SmallVec;

/// Most instructions of one side (*assumed*: about what a branch with its barrier costs a warp whose lanes agree).
const SIDE: usize = 7;
/// Most instructions of both sides and of the choices together.
const TOTAL: usize = 12;
/// Most accesses to memory of both sides.
const ACCESSES: usize = 4;

/// Converts what is worth it, inner branches first; `remarks` hear of what is not.
pub fn convert_ifs(code: VCode<VReg>, remarks: &mut Remarks) -> VCode<VReg> {
    let candidate = |t: &Terminator<VReg>| {
        matches!(
            t,
            Terminator::Branch {
                divergent: true,
                ..
            }
        )
    };
    if !code.blocks.values().any(|b| candidate(&b.terminator)) {
        return code;
    }
    let uses = count_uses(&code);
    let mut entered: Vec<usize> = code.predecessors().values().map(|p| p.len()).collect();
    entered.resize(code.blocks.len(), 0);
    let mut met = vec![0; code.blocks.len()];
    for data in code.blocks.values() {
        if let Meeting::At(block) = data.meeting {
            met[block.index()] += 1;
        }
    }
    let mut conversion = Conversion {
        editor: Editor::new(code),
        uses,
        entered,
        met,
        partial: HashSet::new(),
        remarks,
        behind: SecondaryMap::new(),
    };
    for block in conversion.editor.blocks().rev() {
        conversion.convert(block);
    }
    // A block has a higher number than the one that it became part of.
    for block in conversion.editor.blocks() {
        conversion.gather(block);
    }
    conversion.editor.finish()
}

/// How often each register is read, by index.
fn count_uses(code: &VCode<VReg>) -> Vec<u32> {
    let mut uses = vec![0; code.vreg_count as usize];
    let instructions = code.insts.iter().flat_map(|e| code.uses(e));
    let ends = code.blocks.values().flat_map(|b| b.terminator.uses());
    instructions.chain(ends).for_each(|r| uses[r.index()] += 1);
    uses
}

struct Conversion<'a> {
    remarks: &'a mut Remarks,
    editor: Editor<VReg>,
    uses: Vec<u32>,
    /// Number of edges to each block.
    entered: Vec<usize>,
    /// Number of branches whose lanes meet at each block.
    met: Vec<usize>,
    /// Registers that are written under the guard of a side only.
    partial: HashSet<VReg>,
    /// The block that became part of a block. Its instructions stay where they are until they are asked for, or a long row of merged
    /// blocks would be moved again and again.
    behind: SecondaryMap<Block, Option<Block>>,
}

/// One way from the branch to the join.
struct Side {
    block: Block,
    guard: Guard<VReg>,
    args: Vec<VReg>,
}

/// Why a branch stays.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    NoJoin,
    Long,
    Accesses,
    Choice,
    /// An instruction has a guard already.
    Nested,
    /// An instruction of this operation may not be guarded.
    Instruction(&'static str),
}

impl Refusal {
    fn text(self) -> String {
        match self {
            Refusal::NoJoin => {
                "its sides do not meet in one block, or others come to them".to_owned()
            }
            Refusal::Long => {
                format!(
                    "a side has more than {SIDE} instructions, or both and their choices more than {TOTAL}"
                )
            }
            Refusal::Accesses => format!("the sides have more than {ACCESSES} accesses to memory"),
            Refusal::Choice => {
                "the sides leave values between which lanes cannot choose".to_owned()
            }
            Refusal::Nested => "a side has guards already, and an instruction has one".to_owned(),
            Refusal::Instruction(name) => format!("{name} may not run under a guard"),
        }
    }
}

impl Conversion<'_> {
    fn convert(&mut self, block: Block) {
        let Terminator::Branch {
            guard,
            taken,
            fallthrough,
            divergent: true,
        } = *self.editor.terminator(block)
        else {
            return;
        };
        let opposite = Guard {
            negated: !guard.negated,
            ..guard
        };
        let line = self.editor.data(block).line;
        let sides = self.side(taken, guard);
        let sides = sides.and_then(|then| Ok((then, self.side(fallthrough, opposite)?)));
        let worthwhile = sides.and_then(|((then, join), (otherwise, other_join))| {
            if join != other_join || then.block == otherwise.block || join == block {
                return Err(Refusal::NoJoin);
            }
            self.is_worth_it(&then, &otherwise)?;
            Ok((then, otherwise, join))
        });
        let (then, otherwise, join) = match worthwhile {
            Ok(sides) => sides,
            Err(refusal) => {
                self.remarks
                    .missed(line, Missed::Guarding, || refusal.text());
                return;
            }
        };
        for side in [&otherwise, &then] {
            for entry in std::mem::take(self.editor.body(side.block)) {
                let entry = self.guarded_if_needed(entry, side.guard);
                self.editor.body(block).push(entry);
            }
        }
        if let Meeting::At(met) = std::mem::take(&mut self.editor.data(block).meeting) {
            self.met[met.index()] -= 1;
        }
        let alike = self.editor.data(join).divergent == self.editor.data(block).divergent;
        let merges = alike && self.entered[join.index()] == 2 && self.met[join.index()] == 0;
        let params = self.editor.data(join).params.clone();
        let mut chosen = Vec::new();
        for (&param, (&a, &b)) in params.iter().zip(then.args.iter().zip(&otherwise.args)) {
            if a == b && !merges {
                chosen.push(a);
                continue;
            }
            let result = if merges {
                param
            } else {
                self.editor.code().new_vreg(param.class())
            };
            self.choose(block, result, [(a, then.guard), (b, otherwise.guard)], line);
            chosen.push(result);
        }
        self.uses.resize(self.editor.code().vreg_count as usize, 1);
        for side in [&then, &otherwise] {
            // Out of reach from now on.
            self.editor.data(side.block).terminator = Terminator::Exit;
            self.entered[side.block.index()] = 0;
        }
        if merges {
            self.behind[block] = Some(join);
            let ended = self.editor.data(join).clone();
            self.editor.data(join).params.clear();
            self.editor.data(join).terminator = Terminator::Exit;
            self.entered[join.index()] = 0;
            let data = self.editor.data(block);
            (data.terminator, data.line) = (ended.terminator, ended.line);
            data.meeting = ended.meeting;
        } else {
            self.entered[join.index()] -= 1;
            self.editor.data(block).terminator = Terminator::Jump {
                target: join,
                args: chosen,
            };
        }
    }

    /// The way through `block`, if only the branch leads there and it may be guarded.
    fn side(&mut self, block: Block, guard: Guard<VReg>) -> Result<(Side, Block), Refusal> {
        let Terminator::Jump { target, ref args } = *self.editor.terminator(block) else {
            return Err(Refusal::NoJoin);
        };
        let args = args.clone();
        let only = self.entered[block.index()] == 1 && self.editor.data(block).params.is_empty();
        if self.is_long(block) {
            return Err(Refusal::Long);
        }
        self.gather(block);
        let body = self.editor.body(block);
        let mut partial = HashSet::new();
        let illegal = body
            .iter()
            .find(|entry| !may_be_guarded(entry, &mut partial));
        if let Some(entry) = illegal {
            return Err(match entry.inst.is_unguarded() {
                true => Refusal::Instruction(entry.inst.optype().info().name),
                false => Refusal::Nested,
            });
        }
        if !only {
            return Err(Refusal::NoJoin);
        }
        self.partial.extend(partial);
        Ok((Side { block, guard, args }, target))
    }

    /// Whether a block has more instructions than a side may have.
    fn is_long(&mut self, block: Block) -> bool {
        let (mut length, mut next) = (0, Some(block));
        while let Some(part) = next.filter(|_| length <= SIDE) {
            length += self.editor.body(part).len();
            next = self.behind[part];
        }
        length > SIDE
    }

    /// Puts the instructions of the blocks that became part of a block into it.
    fn gather(&mut self, block: Block) {
        while let Some(next) = self.behind[block].take() {
            self.behind[block] = self.behind[next].take();
            let rest = std::mem::take(self.editor.body(next));
            self.editor.body(block).extend(rest);
        }
    }

    fn is_worth_it(&mut self, then: &Side, otherwise: &Side) -> Result<(), Refusal> {
        let pairs = || {
            then.args
                .iter()
                .zip(&otherwise.args)
                .filter(|(a, b)| a != b)
        };
        let choosable = pairs().all(|(a, b)| {
            let both = self.partial.contains(a) && self.partial.contains(b);
            // Lanes that disagree cannot choose for a uniform register.
            a.class() != RegisterClass::Uniform
                && (!both || self.is_only_argument(*a) || self.is_only_argument(*b))
        });
        let (mut count, mut accesses) = (pairs().count(), 0);
        for side in [then, otherwise] {
            count += self.editor.body(side.block).len();
            accesses += self
                .editor
                .body(side.block)
                .iter()
                .filter(|e| !only_computes(&e.inst))
                .count();
        }
        match () {
            () if !choosable => Err(Refusal::Choice),
            () if count > TOTAL => Err(Refusal::Long),
            () if accesses > ACCESSES => Err(Refusal::Accesses),
            () => Ok(()),
        }
    }

    /// Whether `reg` is read nowhere but in one place.
    fn is_only_argument(&self, reg: VReg) -> bool {
        self.uses.get(reg.index()) == Some(&1)
    }

    /// An instruction of a side where both sides run.
    fn guarded_if_needed(&mut self, mut entry: Entry<VReg>, guard: Guard<VReg>) -> Entry<VReg> {
        let partial = entry.inst.definitions().any(|r| self.partial.contains(&r));
        if only_computes(&entry.inst) && !partial {
            return entry;
        }
        entry.inst.set_guard(Some(guard.reg), guard.negated);
        let results = entry.inst.definitions().count();
        if results > 0 {
            // Nobody reads the results where the guard is false.
            entry.attachment = self
                .editor
                .attach(Attachment::Else(SmallVec::from_elem(None, results)));
        }
        entry
    }

    /// `result` = the first of `ways` where its guard holds, else the second.
    fn choose(
        &mut self,
        block: Block,
        result: VReg,
        ways: [(VReg, Guard<VReg>); 2],
        line: SourceLine,
    ) {
        let [(a, guard), (b, _)] = ways;
        for ((made, guard), (kept, _)) in [(ways[0], ways[1]), (ways[1], ways[0])] {
            if a != b && self.keeps_at_definition(block, result, (made, guard), kept) {
                return;
            }
        }
        let entry = match (self.partial.contains(&a), self.partial.contains(&b)) {
            (false, false) => {
                let inst = match result.class() {
                    _ if a == b => copy(result, a),
                    RegisterClass::Predicate => select_predicate(guard, result, a, b),
                    _ => select(guard, result, a, b),
                };
                Entry {
                    inst,
                    line,
                    attachment: None,
                }
            }
            // What is kept may be in the same register only if nobody else reads it.
            (true, true) if !self.is_only_argument(b) => {
                self.guarded_copy(result, ways[1], a, line)
            }
            (true, _) => self.guarded_copy(result, ways[0], b, line),
            (false, true) => self.guarded_copy(result, ways[1], a, line),
        };
        self.editor.body(block).push(entry);
    }

    /// `@guard result = made`, else `kept`.
    fn guarded_copy(
        &mut self,
        result: VReg,
        (made, guard): (VReg, Guard<VReg>),
        kept: VReg,
        line: SourceLine,
    ) -> Entry<VReg> {
        let mut inst = copy(result, made);
        inst.set_guard(Some(guard.reg), guard.negated);
        Entry {
            inst,
            line,
            attachment: self
                .editor
                .attach(Attachment::Else(SmallVec::from_elem(Some(kept), 1))),
        }
    }

    /// Lets the instruction that makes `made`, which is for nothing but the choice, make the result and keep `kept` where its guard is false;
    /// false if that cannot be done.
    fn keeps_at_definition(
        &mut self,
        block: Block,
        result: VReg,
        (made, guard): (VReg, Guard<VReg>),
        kept: VReg,
    ) -> bool {
        let lost = self.partial.contains(&kept) && !self.is_only_argument(kept);
        if lost || !self.is_only_argument(made) {
            return false;
        }
        let body = self.editor.body(block);
        let defined = |reg: VReg| {
            body.iter()
                .position(|e| e.inst.definitions().any(|d| d == reg))
        };
        let (place, kept_place) = (defined(made), defined(kept));
        let Some(place) = place.filter(|&p| body[p].inst.definitions().eq([made])) else {
            return false;
        };
        let entry = body[place];
        // What only computes can go to the end of the block: all that it reads is written once. The others stay in their order.
        let movable = only_computes(&entry.inst) && entry.attachment.is_none();
        let in_place =
            entry.inst.guard() == (Some(guard.reg), guard.negated) && self.partial.contains(&made);
        let kept_before = kept_place.is_none_or(|k| k < place);
        if !movable && (!in_place || !kept_before) {
            return false;
        }
        let mut inst = entry.inst;
        let operand = inst
            .operands()
            .find(|o| o.regs == [Some(made)])
            .map(|o| o.info)
            .expect("it writes one register");
        inst.set_regs(operand, &[Some(result)]);
        inst.set_guard(Some(guard.reg), guard.negated);
        let attachment = self
            .editor
            .attach(Attachment::Else(SmallVec::from_elem(Some(kept), 1)));
        let entry = Entry {
            inst,
            attachment,
            ..entry
        };
        let body = self.editor.body(block);
        if movable {
            body.remove(place);
            body.push(entry);
        } else {
            body[place] = entry;
        }
        true
    }
}

/// Whether an instruction has no effect but its results, so that it may run in lanes that do not need it.
fn only_computes(inst: &Inst<VReg>) -> bool {
    let effects = inst.optype().info().effects;
    (effects == Effects::default() || effects == Effects::SPECIAL) && inst.is_unguarded()
}

/// Whether an instruction may run under a guard, or where it is not needed; collects the registers that are written under the guard only.
fn may_be_guarded(entry: &Entry<VReg>, partial: &mut HashSet<VReg>) -> bool {
    let memory = Effects::LOAD
        .union(Effects::STORE)
        .union(Effects::ATOMIC)
        .union(Effects::GLOBAL)
        .union(Effects::SHARED);
    let memory = memory
        .union(Effects::LOCAL)
        .union(Effects::GENERIC)
        .union(Effects::CONSTANT);
    let inst = &entry.inst;
    let uniform = inst
        .definitions()
        .any(|r| r.class() == RegisterClass::Uniform);
    if uniform || !inst.is_unguarded() || inst.operand(Role::Pg).is_none() {
        return false;
    }
    if only_computes(inst) && !inst.uses().any(|r| partial.contains(&r)) {
        return true;
    }
    partial.extend(inst.definitions());
    let accesses = inst.optype().info().effects.0 & !memory.0 == 0;
    (only_computes(inst) || accesses)
        && (entry.attachment.is_none() || inst.definitions().next().is_none())
}

/// `result = value`.
fn copy(result: VReg, value: VReg) -> Inst<VReg> {
    /// The truth table of the first input alone.
    const FIRST: u8 = 0xf0;
    if result.class() == RegisterClass::Predicate {
        return build::plop3_x(result, value, PT, PT, FIRST);
    }
    build::mov_r(mov::Options::new(MOVW::W32), result, value)
}

/// `SEL result, a, b, guard`.
fn select(guard: Guard<VReg>, result: VReg, a: VReg, b: VReg) -> Inst<VReg> {
    build::sel_rr(result, a, b, guard)
}

/// `PLOP3 result, guard, a, b, 0xca`: document 003 numbers the truth table by `pa`·4 + `pb`·2 + `pc`.
fn select_predicate(guard: Guard<VReg>, result: VReg, a: VReg, b: VReg) -> Inst<VReg> {
    const CHOICE: u8 = 0xca;
    build::plop3_x(result, guard, a, b, CHOICE)
}
