//! Choices become guards: what a select chooses is computed where it is wanted, into the register of the other value.
//!
//! Takes lowered code, in which each register is written once, and gives the same with fewer instructions, block by
//! block:
//!
//! * `t = op …; r = SEL t, k, P`, with nobody else reading `t`, is `@P r = op …` that keeps `k`;
//! * `r = SEL v, 0, P; s = y + r` is `@P s = y + v` that keeps `y`, also where the choice is a guarded move of zero, or
//!   a guarded instruction, such as a load, that keeps one;
//! * `t = op1 …; @P r = op2 x … else t; jump to the block of which x is a parameter, with r for it`: where the guard
//!   holds `t` may be `x` as well, so `@!P t = op1 … else x; @P r = op2 t … else t`, and all three are one register.
//!
//! What is kept must end there, or the instruction saved comes back as a copy. Other blocks are not searched for
//! readers: a value that comes into a loop from outside is taken to live on.

use super::edit::Editor;
use super::if_convert::count_uses;
use crate::isa::generated::{IExt, iadd};
use crate::isa::table::Effects;
use crate::isa::{Form, Inst, Optype, Register, RegisterClass, Role, VReg};
use crate::vcode::{Attachment, Block, Entry, Guard, Terminator, VCode};
use cranelift_codegen::entity::EntityRef;
use hashbrown::HashSet;
use smallvec::SmallVec;

/// Turns choices into guards where that saves an instruction.
pub fn guard_choices(code: VCode<VReg>) -> VCode<VReg> {
    let chooses = |entry: &Entry<VReg>| {
        entry.inst.optype() == Optype::SEL || !code.else_values(entry).is_empty()
    };
    if !code.insts.iter().any(chooses) {
        return code;
    }
    let count = code.vreg_count as usize;
    let mut entered = vec![0; code.blocks.len()];
    for data in code.blocks.values() {
        for target in data.terminator.successors() {
            entered[target.index()] += 1;
        }
    }
    let mut choices = Choices {
        uses: count_uses(&code),
        editor: Editor::new(code),
        read: vec![0; count],
        made: vec![None; count],
        entered,
        body: Vec::new(),
        repurposed: HashSet::new(),
    };
    for block in choices.editor.blocks() {
        choices.block(block);
    }
    for block in choices.editor.blocks() {
        choices.update_in_place(block);
    }
    let mut code = choices.editor.finish();
    code.drop_holders(&choices.repurposed);
    code
}

struct Choices {
    editor: Editor<VReg>,
    /// Registers that have another meaning than before.
    repurposed: HashSet<VReg>,
    /// How often each register is read, by index.
    uses: Vec<u32>,
    /// The same so far in the block at hand.
    read: Vec<u32>,
    /// Where each register is made: the block, and the place in its body, in the block at hand before anything went
    /// elsewhere.
    made: Vec<Option<(Block, u32)>>,
    /// Number of edges to each block.
    entered: Vec<u32>,
    /// The body at hand; an instruction that went elsewhere leaves its place empty.
    body: Vec<Option<Entry<VReg>>>,
}

/// A value or zero.
struct OrZero {
    value: VReg,
    /// When it is the value.
    guard: Guard<VReg>,
}

impl Choices {
    fn block(&mut self, block: Block) {
        self.body = std::mem::take(self.editor.body(block))
            .into_iter()
            .map(Some)
            .collect();
        for place in 0..self.body.len() {
            let Some(entry) = self.body[place] else {
                continue;
            };
            self.count_reads(&entry);
            match entry.inst.optype() {
                Optype::SEL => self.select(block, place, &entry),
                Optype::IADD => self.add(block, place, &entry),
                _ => {}
            }
            self.note(block, place, &entry);
        }
        let body: Vec<Entry<VReg>> = self.body.drain(..).flatten().collect();
        for (place, entry) in body.iter().enumerate() {
            for reg in self.editor.code().uses(entry) {
                self.read[reg.index()] = 0;
            }
            self.note(block, place, entry);
        }
        *self.editor.body(block) = body;
    }

    /// Notes where an instruction's results are made.
    fn note(&mut self, block: Block, place: usize, entry: &Entry<VReg>) {
        for made in entry.inst.definitions() {
            self.made[made.index()] = Some((block, place as u32));
        }
    }

    fn count_reads(&mut self, entry: &Entry<VReg>) {
        for reg in self.editor.code().uses(entry) {
            self.read[reg.index()] += 1;
        }
    }

    /// Whether nobody reads a register behind the place at hand.
    fn ends(&mut self, block: Block, reg: VReg) -> bool {
        let data = self.editor.data(block);
        let here = self.made[reg.index()].is_some_and(|(b, _)| b == block)
            || data.loop_depth == 0
            || data.params.contains(&reg);
        here && self.read[reg.index()] == self.uses[reg.index()]
    }

    /// The instruction that makes `reg` for one reader in this block, if it can be made later, under a guard, and as
    /// soon.
    fn maker(&self, block: Block, reg: VReg) -> Option<(usize, Entry<VReg>)> {
        let (made_in, place) = self.made[reg.index()]?;
        if made_in != block || self.uses[reg.index()] != 1 {
            return None;
        }
        let entry = self.body[place as usize]?;
        let can = is_movable(&entry) && entry.inst.definitions().eq([reg]);
        can.then_some((place as usize, entry))
    }

    /// `SEL result, a, b, P`.
    fn select(&mut self, block: Block, place: usize, entry: &Entry<VReg>) {
        let inst = entry.inst;
        let guard = choice_guard(&inst);
        let (Some(result), Some(a), Some(b), Some(guard)) = (
            inst.reg(Role::D),
            inst.reg(Role::A),
            inst.reg(Role::B),
            guard,
        ) else {
            return;
        };
        if inst.form() != Form::SEL_RR || !inst.is_unguarded() || a == b {
            return;
        }
        for (made, kept, guard) in [(a, b, guard), (b, a, opposite(guard))] {
            if !self.ends(block, kept) {
                continue;
            }
            if let Some((from, mut moved)) = self.maker(block, made) {
                moved.inst.rename(|r| if r == made { result } else { r });
                self.keep(&mut moved, guard, kept);
                self.body[from] = None;
                self.body[place] = Some(moved);
                return;
            }
        }
    }

    /// `IADD result, y, r` where `r` is a value or zero.
    fn add(&mut self, block: Block, place: usize, entry: &Entry<VReg>) {
        let inst = entry.inst;
        let plain = inst.form() == Form::IADD_RR
            && is_movable(entry)
            && inst.get(iadd::EXT) == Some(IExt::NoX);
        if !plain {
            return;
        }
        for (kept, chosen) in [(Role::A, Role::B), (Role::B, Role::A)] {
            let (Some(y), Some(r)) = (inst.reg(kept), inst.reg(chosen)) else {
                continue;
            };
            if y == r || is_negated(&inst, kept) || !self.ends(block, y) {
                continue;
            }
            let Some((from, choice)) = self.value_or_zero(block, r) else {
                continue;
            };
            let mut sum = *entry;
            sum.inst.set(chosen, choice.value);
            self.keep(&mut sum, choice.guard, y);
            self.body[from] = None;
            self.body[place] = Some(sum);
            return;
        }
    }

    /// What makes `reg` for one reader in this block, if it is a value or zero.
    fn value_or_zero(&mut self, block: Block, reg: VReg) -> Option<(usize, OrZero)> {
        let (made_in, place) = self.made[reg.index()]?;
        if made_in != block || self.uses[reg.index()] != 1 {
            return None;
        }
        let entry = self.body[place as usize]?;
        let inst = &entry.inst;
        let choice = match inst.form() {
            Form::SEL_RR if inst.is_unguarded() => {
                let guard = choice_guard(inst)?;
                match (inst.reg(Role::A), inst.reg(Role::B)) {
                    (Some(value), None) => OrZero { value, guard },
                    (None, Some(value)) => OrZero {
                        value,
                        guard: opposite(guard),
                    },
                    _ => return None,
                }
            }
            Form::MOV_R if inst.reg(Role::B).is_none() => {
                let guard = match inst.guard() {
                    (Some(reg), negated) => Guard { reg, negated },
                    _ => return None,
                };
                let &[Some(value)] = self.editor.code().else_values(&entry) else {
                    return None;
                };
                OrZero {
                    value,
                    guard: opposite(guard),
                }
            }
            _ => return self.result_or_zero(place as usize, reg),
        };
        Some((place as usize, choice))
    }

    /// The same where a guarded instruction keeps zero, which nobody else reads: from now on it keeps nothing.
    fn result_or_zero(&mut self, place: usize, reg: VReg) -> Option<(usize, OrZero)> {
        let entry = self.body[place]?;
        let (Some(guard), negated) = entry.inst.guard() else {
            return None;
        };
        let &[Some(kept)] = self.editor.code().else_values(&entry) else {
            return None;
        };
        let (_, zero) = self.made[kept.index()].filter(|_| self.uses[kept.index()] == 1)?;
        let made = self.body.get(zero as usize).copied().flatten()?.inst;
        let is_zero = made.form() == Form::MOV_R && made.reg(Role::B).is_none();
        if !is_zero || !made.is_unguarded() || !made.definitions().eq([kept]) {
            return None;
        }
        let nothing = Attachment::Else(SmallVec::from_elem(None, 1));
        let attachment = self.editor.attach(nothing);
        self.body[place] = Some(Entry {
            attachment,
            ..entry
        });
        let guard = Guard {
            reg: guard,
            negated,
        };
        Some((zero as usize, OrZero { value: reg, guard }))
    }

    /// Puts a guard on an instruction with one result, which keeps a value where it is false.
    fn keep(&mut self, entry: &mut Entry<VReg>, guard: Guard<VReg>, kept: VReg) {
        entry.inst.set_guard(Some(guard.reg), guard.negated);
        let values = SmallVec::from_elem(Some(kept), 1);
        entry.attachment = self.editor.attach(Attachment::Else(values));
    }

    /// Lets the two instructions that make an argument write the register of the parameter.
    fn update_in_place(&mut self, block: Block) {
        let Terminator::Jump { target, ref args } = *self.editor.terminator(block) else {
            return;
        };
        if args.is_empty() {
            return;
        }
        let args = args.clone();
        let params = self.editor.data(target).params.clone();
        for (&x, &r) in params.iter().zip(&args) {
            if x != r && x.class() == RegisterClass::Gpr && !args.contains(&x) {
                self.update(block, target, x, r);
            }
        }
    }

    /// The same for one parameter and its argument.
    fn update(&mut self, block: Block, target: Block, x: VReg, r: VReg) {
        let Some((made_in, last)) = self.made[r.index()] else {
            return;
        };
        let last = last as usize;
        let entry = self.editor.body(made_in)[last];
        let (Some(guard), negated) = entry.inst.guard() else {
            return;
        };
        let &[Some(t)] = self.editor.code().else_values(&entry) else {
            return;
        };
        let Some((_, first)) = self.made[t.index()].filter(|(b, _)| *b == made_in) else {
            return;
        };
        let first = first as usize;
        let mut earlier = self.editor.body(made_in)[first];
        // One that makes a pair would have to keep a value for the other half too.
        let alone = earlier.inst.definitions().eq([t]) && self.uses[t.index()] == 1;
        let movable = first < last && is_movable(&earlier) && alone;
        if !movable || r == t || !self.follows(block, made_in) {
            return;
        }
        let reads_x = |e: &Entry<VReg>| e.inst.uses().filter(|u| *u == x).count() as u32;
        let in_time: u32 = self.editor.body(made_in)[..=last].iter().map(reads_x).sum();
        let at_start: u32 = match target == made_in {
            true => 0,
            false => self.editor.body(target).iter().map(reads_x).sum(),
        };
        if in_time + at_start != self.uses[x.index()] || reads_x(&entry) == 0 {
            return;
        }
        let guard = Guard {
            reg: guard,
            negated: !negated,
        };
        self.keep(&mut earlier, guard, x);
        self.repurposed.insert(t);
        let body = self.editor.body(made_in);
        body[last].inst.rename(|u| if u == x { t } else { u });
        body[first] = earlier;
        body[first..last].rotate_left(1);
        for place in first..last {
            let entry = self.editor.body(made_in)[place];
            self.note(made_in, place, &entry);
        }
    }

    /// Whether `block` is the one at hand, or an edge without instructions from it.
    fn follows(&mut self, block: Block, from: Block) -> bool {
        block == from
            || self.editor.body(block).is_empty()
                && self.entered[block.index()] == 1
                && (self.editor.terminator(from).successors()).contains(&block)
    }
}

/// Whether an instruction only computes, in all lanes, in a time that is known, so that it may stand further down and
/// under a guard.
fn is_movable(entry: &Entry<VReg>) -> bool {
    let info = entry.inst.optype().info();
    info.effects == Effects::default()
        && !info.latency.variable
        && !info.write_scoreboard
        && entry.inst.is_unguarded()
        && entry.inst.operand(Role::Pg).is_some()
        && entry.attachment.is_none()
        && (entry.inst.definitions()).all(|d| d.class() == RegisterClass::Gpr)
}

/// When a SEL gives its first operand; none if that is known.
fn choice_guard(inst: &Inst<VReg>) -> Option<Guard<VReg>> {
    let reg = inst.reg(Role::Pp)?;
    let not = inst.operand(Role::Pp).and_then(|o| o.not);
    let negated = not.is_some_and(|field| inst.field(field) != 0);
    Some(Guard { reg, negated })
}

fn opposite(guard: Guard<VReg>) -> Guard<VReg> {
    Guard {
        negated: !guard.negated,
        ..guard
    }
}

fn is_negated(inst: &Inst<VReg>, role: Role) -> bool {
    let negate = inst.operand(role).and_then(|o| o.negate);
    negate.is_some_and(|field| inst.field(field) != 0)
}
