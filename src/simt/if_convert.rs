//! If-conversion: the short sides of a divergent branch run under a guard instead of behind it.
//!
//! Lanes that disagree run both sides one after the other anyway, and pay for the branch and the convergence barrier
//! besides. Where both sides of a divergent branch go straight to the same block, are short, and may be guarded, their
//! instructions move before the branch, which becomes a jump: what only computes runs in all lanes; what touches
//! memory, and what depends on it, under the branch's guard, so that no register is read that was not written. A
//! parameter of the join for which the sides have different arguments is chosen: the instruction that makes the one
//! argument gets the guard and keeps the other where it is false, or there is a SEL (PLOP3 for predicates). If nothing
//! else comes to the join it becomes part of the branching block, so that an outer branch can follow: what has a guard
//! by then and keeps values where it is false only computes as well, the rest gets both guards as one (PLOP3). What
//! both sides compute is computed once. Short sides of branches on which all lanes agree go the same way.
//!
//! Convergent instructions, calls and barriers are never touched.

mod side;

use super::edit::Editor;
use crate::isa::generated::{MOVW, mov, umov};
use crate::isa::operand::PT;
use crate::isa::{Inst, Register, RegisterClass, VReg, build};
use crate::remarks::{Missed, Remarks};
use crate::vcode::{Attachment, Block, Entry, Guard, Meeting, SourceLine, Terminator, VCode};
use cranelift_codegen::entity::{EntityRef, SecondaryMap};
use hashbrown::{HashMap, HashSet};
use side::{Legality, Side, Treatment, accesses_shared, has_only_results, only_computes, share};
use smallvec::SmallVec;

// The limits are *measured* in simulated cycles of loops of 64 turns around a branch with sides of dependent
// instructions, with eight warps and the branch in place = 1. Where lanes disagree a guard always wins (0.60 for one
// instruction, 0.83 for 12). Where a warp's lanes happen to agree, they pay for a side that they do not want: 0.75 for
// one instruction, 1.33 for four, 1.72 for six; both alike break even at the limits.

/// Most instructions of one side.
const SIDE: usize = 7;
/// Most instructions of both sides and of the choices together.
const TOTAL: usize = 12;
/// Most accesses to memory of both sides (0.92 where lanes disagree; 1.15, 1.41, 1.67 for two, three, four where they
/// do not want them).
///
/// Loads and stores of shared memory count half: they take a tenth of the time (*measured*, with six: 0.85 for bitonic,
/// whose lanes disagree; where lanes hardly ever want them 0.96 for loads and 1.36 for stores).
const ACCESSES: usize = 3;
/// Most instructions of one side where lanes are known to agree (0.87 and 1.00 for one, 0.83 and 1.48 for two); none of
/// them accesses memory.
const AGREED_SIDE: usize = 1;
/// Most instructions of both sides and of the choices together there.
const AGREED_TOTAL: usize = 3;

/// Converts what is worth it, inner branches first; `remarks` hear of what is not.
pub fn convert_ifs(code: VCode<VReg>, remarks: &mut Remarks) -> VCode<VReg> {
    let candidate = |t: &Terminator<VReg>| matches!(t, Terminator::Branch { .. });
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
        of_sides: HashSet::new(),
        partial: HashSet::new(),
        settled: HashMap::new(),
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
    let mut code = conversion.editor.finish();
    code.drop_holders(&conversion.of_sides);
    code
}

/// How often each register is read, by index.
pub fn count_uses(code: &VCode<VReg>) -> Vec<u32> {
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
    /// Registers that a side computes: they are no values of the source where its lanes do not come.
    of_sides: HashSet<VReg>,
    /// Registers that are written under the guard of a side only.
    partial: HashSet<VReg>,
    /// Registers that keep another one's value wherever they are not written, and that one.
    settled: HashMap<VReg, VReg>,
    /// The block that became part of a block. Its instructions stay where they are until they are asked for, or a long
    /// row of merged blocks would be moved again and again.
    behind: SecondaryMap<Block, Option<Block>>,
}

/// Why a branch stays.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    /// A way ends: nothing can be said of it.
    NoSide,
    /// A side has a branch that stays.
    Branches,
    /// A side can be come to from elsewhere.
    Entered,
    NoJoin,
    Long,
    Accesses,
    Choice,
    /// The guard of an instruction of this operation depends on what only lanes of its side have.
    Nested(&'static str, SourceLine),
    /// An instruction of this operation may not be guarded.
    Instruction(&'static str, SourceLine),
}

impl Refusal {
    fn text(self, divergent: bool) -> String {
        let at = |line: SourceLine| match line.0 {
            0 => String::new(),
            line => format!(" of line {line}"),
        };
        match self {
            Refusal::NoSide | Refusal::NoJoin => "its sides do not meet in one block".to_owned(),
            Refusal::Branches => "a side has a branch that stays".to_owned(),
            Refusal::Entered => "others come to one of its sides".to_owned(),
            Refusal::Long if !divergent => format!(
                "lanes agree, and a side has more than {AGREED_SIDE} instructions, both and their choices more than \
                 {AGREED_TOTAL}, or one accesses memory"
            ),
            Refusal::Long => {
                format!(
                    "a side has more than {SIDE} instructions, or both and their choices more than {TOTAL}"
                )
            }
            Refusal::Accesses => format!(
                "the sides have more than {ACCESSES} accesses to memory, those of shared memory counted half"
            ),
            Refusal::Choice => {
                "the sides leave values between which lanes cannot choose".to_owned()
            }
            Refusal::Nested(name, line) => format!(
                "{name}{} has a guard that is known in lanes of its side only",
                at(line)
            ),
            Refusal::Instruction(name, line) => {
                format!("{name}{} may not run under a guard", at(line))
            }
        }
    }
}

impl Conversion<'_> {
    fn convert(&mut self, block: Block) {
        let Terminator::Branch {
            guard,
            taken,
            fallthrough,
            divergent,
        } = *self.editor.terminator(block)
        else {
            return;
        };
        let opposite = Guard {
            negated: !guard.negated,
            ..guard
        };
        let line = self.editor.data(block).line;
        if self.editor.data(taken).loop_depth != self.editor.data(fallthrough).loop_depth {
            // The way out of a loop.
            return;
        }
        let sides = self.side(taken, guard);
        let sides = sides.and_then(|then| Ok((then, self.side(fallthrough, opposite)?)));
        let worthwhile = sides.and_then(|((mut then, join), (otherwise, other_join))| {
            if join != other_join || then.block == otherwise.block || join == block {
                return Err(Refusal::NoJoin);
            }
            let shared = share(&otherwise, &mut then);
            self.is_worth_it(&then, &otherwise, divergent)?;
            Ok((then, otherwise, join, shared))
        });
        let (then, otherwise, join, shared) = match worthwhile {
            Ok(sides) => sides,
            Err(Refusal::NoSide) => return,
            Err(refusal) => {
                self.remarks
                    .missed(line, Missed::Guarding, || refusal.text(divergent));
                return;
            }
        };
        self.rename_kept(&then, &shared);
        for side in [&otherwise, &then] {
            self.editor.body(side.block).clear();
            self.run_before(block, side);
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
        let (target, args) = match self.editor.terminator(block) {
            Terminator::Jump { target, args } => (*target, args.clone()),
            Terminator::Branch { .. } | Terminator::Table { .. } => return Err(Refusal::Branches),
            _ => return Err(Refusal::NoSide),
        };
        let only = self.entered[block.index()] == 1 && self.editor.data(block).params.is_empty();
        if self.is_long(block) {
            return Err(Refusal::Long);
        }
        if !only {
            return Err(Refusal::Entered);
        }
        self.gather(block);
        let entries = self.editor.body(block).clone();
        let mut legality = Legality {
            partial: &self.partial,
            partial_here: HashSet::new(),
        };
        let code = self.editor.code();
        let body = entries
            .into_iter()
            .map(|entry| Ok((entry, legality.treatment(code, &entry)?)))
            .collect::<Result<_, Refusal>>()?;
        let partial = legality.partial_here;
        self.partial.extend(partial);
        let side = Side {
            block,
            guard,
            args,
            body,
        };
        Ok((side, target))
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

    fn is_worth_it(
        &mut self,
        then: &Side,
        otherwise: &Side,
        divergent: bool,
    ) -> Result<(), Refusal> {
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
        let (mut count, mut half_accesses, mut longest) = (pairs().count(), 0, 0);
        for side in [then, otherwise] {
            let length = side.body.len() + side.own_guards().len();
            count += length;
            longest = longest.max(length);
            half_accesses += (side.body.iter())
                .filter(|(entry, _)| !has_only_results(&entry.inst))
                .map(|(entry, _)| if accesses_shared(&entry.inst) { 1 } else { 2 })
                .sum::<usize>();
        }
        match () {
            () if !choosable => Err(Refusal::Choice),
            () if !divergent => {
                let short = longest <= AGREED_SIDE && count <= AGREED_TOTAL && half_accesses == 0;
                short.then_some(()).ok_or(Refusal::Long)
            }
            () if count > TOTAL => Err(Refusal::Long),
            () if half_accesses > 2 * ACCESSES => Err(Refusal::Accesses),
            () => Ok(()),
        }
    }

    /// Whether `reg` is read nowhere but in one place.
    fn is_only_argument(&self, reg: VReg) -> bool {
        self.uses.get(reg.index()) == Some(&1)
    }

    /// Values that instructions of a side keep, after some of its registers became others.
    fn rename_kept(&mut self, side: &Side, shared: &[(VReg, VReg)]) {
        for &(old, new) in shared {
            self.uses[new.index()] += self.uses[old.index()];
            for (entry, _) in &side.body {
                let attachment = entry
                    .attachment
                    .map(|a| &mut self.editor.code().attachments[a]);
                if let Some(Attachment::Else(values)) = attachment {
                    values
                        .iter_mut()
                        .filter(|v| **v == Some(old))
                        .for_each(|v| *v = Some(new));
                }
            }
        }
    }

    /// The guard of an instruction of a side and the side's as one.
    fn both_guards(
        &mut self,
        block: Block,
        side: &Side,
        entry: &Entry<VReg>,
        known: &mut SmallVec<[(Guard<VReg>, VReg); 2]>,
    ) -> VReg {
        let (reg, negated) = entry.inst.guard();
        let own = Guard {
            reg: reg.expect("only an instruction with a guard has one to combine"),
            negated,
        };
        if let Some((_, both)) = known.iter().find(|(guard, _)| *guard == own) {
            return *both;
        }
        let both = self.editor.code().new_vreg(RegisterClass::Predicate);
        known.push((own, both));
        self.editor.body(block).push(Entry::new(
            build::plop3_x(both, own, side.guard, PT, BOTH),
            entry.line,
        ));
        both
    }

    /// Puts the instructions of a side behind those of `block`.
    fn run_before(&mut self, block: Block, side: &Side) {
        if !self.editor.code().holders.is_empty() {
            let made = side
                .body
                .iter()
                .flat_map(|(entry, _)| entry.inst.definitions());
            self.of_sides.extend(made);
        }
        let mut combined: SmallVec<[(Guard<VReg>, VReg); 2]> = SmallVec::new();
        for &(mut entry, treatment) in &side.body {
            match treatment {
                Treatment::AsItIs => {}
                Treatment::Guarded => {
                    entry
                        .inst
                        .set_guard(Some(side.guard.reg), side.guard.negated);
                    let results = entry.inst.definitions().count();
                    if results > 0 {
                        // Nobody reads the results where the guard is false.
                        entry.attachment = self
                            .editor
                            .attach(Attachment::Else(SmallVec::from_elem(None, results)));
                    }
                }
                Treatment::Combined => {
                    let both = self.both_guards(block, side, &entry, &mut combined);
                    entry.inst.set_guard(Some(both), false);
                    let kept = self.editor.code().else_values(&entry);
                    if let (&[Some(kept)], Some(made)) = (kept, entry.inst.definitions().next()) {
                        self.settled.insert(made, kept);
                    }
                }
            }
            self.editor.body(block).push(entry);
        }
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
        if self.settled.get(&a) == Some(&b) && self.becomes(block, a, result) {
            return;
        }
        if self.settled.get(&b) == Some(&a) && self.becomes(block, b, result) {
            return;
        }
        // What has a guard anyway keeps what has none: then that need not get one, and waits for nothing.
        let guarded_first = match self.partial.contains(&b) && !self.partial.contains(&a) {
            true => [(ways[1], ways[0]), (ways[0], ways[1])],
            false => [(ways[0], ways[1]), (ways[1], ways[0])],
        };
        for ((made, guard), (kept, _)) in guarded_first {
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
                Entry::new(inst, line)
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

    /// Lets what makes `made`, which nobody else reads, make `result`.
    fn becomes(&mut self, block: Block, made: VReg, result: VReg) -> bool {
        if !self.is_only_argument(made) {
            return false;
        }
        let mut entries = self.editor.body(block).iter_mut().rev();
        let Some(entry) = entries.find(|e| e.inst.definitions().any(|d| d == made)) else {
            return false;
        };
        entry.inst.rename(|r| if r == made { result } else { r });
        true
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
        Entry::new(inst, line).with(
            self.editor
                .attach(Attachment::Else(SmallVec::from_elem(Some(kept), 1))),
        )
    }

    /// Lets the instruction that makes `made`, which is for nothing but the choice, make the result and keep `kept`
    /// where its guard is false; false if that cannot be done.
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
        // A constant can be loaded before anything that replaces it.
        let early = kept_place.filter(|&kept| {
            let entry = &body[kept];
            let reads_nothing = entry.inst.uses().next().is_none();
            reads_nothing && only_computes(&entry.inst) && entry.attachment.is_none()
        });
        // What only computes can go to the end of the block: all that it reads is written once. The others stay in
        // their order.
        let movable = only_computes(&entry.inst) && entry.attachment.is_none();
        let in_place =
            entry.inst.guard() == (Some(guard.reg), guard.negated) && self.partial.contains(&made);
        let kept_before = early.is_some() || kept_place.is_none_or(|k| k < place);
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
            if let Some(kept) = early.filter(|&kept| kept > place) {
                body[place..=kept].rotate_right(1);
            }
        }
        true
    }
}

/// The truth table of both of the first two inputs (document 003, PLOP3).
const BOTH: u8 = 0xc0;

/// `result = value`.
fn copy(result: VReg, value: VReg) -> Inst<VReg> {
    /// The truth table of the first input alone.
    const FIRST: u8 = 0xf0;
    match result.class() {
        RegisterClass::Predicate => build::plop3_x(result, value, PT, PT, FIRST),
        RegisterClass::Uniform => build::umov_u(umov::Options::new(MOVW::W32), result, value),
        RegisterClass::Gpr => build::mov_r(mov::Options::new(MOVW::W32), result, value),
    }
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
