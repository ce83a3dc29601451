//! Checks an allocation from the allocated code alone.
//!
//! An abstract machine runs the allocated code: each register holds a set of values of the code before allocation. A definition puts its
//! value into its register and takes it out of all others, a copy copies the set, a call empties what callees may overwrite, an edge gives
//! each parameter the places of its argument; where paths meet the sets are intersected. Every operand must then find its value in its
//! register. Nothing of the allocator is used: neither liveness nor colours.
//!
//! Also checked: wide operands lie in aligned, consecutive registers; a guarded result starts from the value it keeps; no uniform register
//! is written in a divergent block; R1 is not overwritten.

use super::liveness::edge_arguments;
use super::moves;
use super::parallel::Copy;
use crate::abi;
use crate::isa::table::{Direction, Effects};
use crate::isa::{Form, PInst, PReg, Register, RegisterClass, Role, VReg};
use crate::vcode::{Attachment, Block, Callee, Entry, Terminator, VCode};
use cranelift_entity::EntityRef;
use smallvec::SmallVec;

/// Instruction of the allocated code that the allocator has added.
pub(super) const ADDED: u32 = u32::MAX;

/// Registers of all classes in one numbering.
const LOCATIONS: usize = 256 + 64 + 8;

fn location(r: PReg) -> usize {
    let start = match r.class() {
        RegisterClass::Gpr => 0,
        RegisterClass::Uniform => 256,
        RegisterClass::Predicate => 320,
    };
    start + usize::from(r.number())
}

type Values = SmallVec<[VReg; 2]>;

#[derive(Clone, Debug, PartialEq)]
struct State {
    held: Vec<Values>,
}

impl State {
    fn new() -> State {
        State {
            held: vec![Values::new(); LOCATIONS],
        }
    }

    fn holds(&self, r: PReg, v: VReg) -> bool {
        self.held[location(r)].contains(&v)
    }

    /// `v` comes into being, in `r` if anywhere.
    fn define(&mut self, v: VReg, r: Option<PReg>) {
        self.forget(v);
        if let Some(r) = r {
            self.held[location(r)] = SmallVec::from_slice(&[v]);
        }
    }

    /// The former `v` of a loop is no longer this `v`.
    fn forget(&mut self, v: VReg) {
        for set in &mut self.held {
            set.retain(|x| *x != v);
        }
    }

    fn copy(&mut self, from: PReg, to: PReg) {
        self.held[location(to)] = self.held[location(from)].clone();
    }

    /// Keeps what both states hold; true if this one has changed.
    fn meet(&mut self, other: &State) -> bool {
        let mut changed = false;
        for (set, with) in self.held.iter_mut().zip(&other.held) {
            let before = set.len();
            set.retain(|v| with.contains(v));
            changed |= set.len() != before;
        }
        changed
    }
}

/// Checks that `after` is an allocation of `before`. `origin` has for each instruction of `after` its index in `before`, or [`ADDED`].
///
/// # Errors
/// The first mistake, with its place.
pub(super) fn check(
    before: &VCode<VReg>,
    after: &VCode<PReg>,
    origin: &[u32],
) -> Result<(), String> {
    let mut states: Vec<Option<State>> = vec![None; before.blocks.len()];
    let mut start = State::new();
    for (v, r) in &before.entry {
        start.define(*v, Some(*r));
    }
    states[before.entry_block().index()] = Some(start);
    let mut work: std::collections::BTreeSet<usize> = [before.entry_block().index()].into();
    while let Some(index) = work.pop_first() {
        let block = Block::new(index);
        let Some(mut state) = states[index].clone() else {
            continue;
        };
        // Sets only shrink, so a mistake found before the fixed point is one after it as well.
        run_block(before, after, origin, block, &mut state)
            .map_err(|e| format!("{}: {block}: {e}", before.name))?;
        let params: Vec<(VReg, VReg)> = edge_arguments(before, block).collect();
        let moved: Vec<(usize, VReg)> = params
            .iter()
            .flat_map(|(arg, param)| {
                (0..LOCATIONS)
                    .filter(|&l| state.held[l].contains(arg))
                    .map(|l| (l, *param))
            })
            .collect();
        params.iter().for_each(|(_, param)| state.forget(*param));
        for (l, param) in moved {
            state.held[l].push(param);
        }
        for successor in before.blocks[block].terminator.successors() {
            let slot = &mut states[successor.index()];
            let changed = match slot {
                Some(known) => known.meet(&state),
                None => {
                    *slot = Some(state.clone());
                    true
                }
            };
            if changed {
                work.insert(successor.index());
            }
        }
    }
    Ok(())
}

fn run_block(
    before: &VCode<VReg>,
    after: &VCode<PReg>,
    origin: &[u32],
    block: Block,
    state: &mut State,
) -> Result<(), String> {
    let data = &after.blocks[block];
    let mut next = before.blocks[block].insts.start;
    let mut index = data.insts.start as usize;
    while index < data.insts.end as usize {
        let entry = &after.insts[index];
        let in_place = |e: String| format!("`{}`: {e}", entry.inst);
        for r in entry.inst.definitions() {
            if data.divergent && r.class() == RegisterClass::Uniform {
                return Err(in_place(format!("writes {r} in a divergent block")));
            }
            if r == abi::STACK_POINTER {
                return Err(in_place("writes the stack pointer".to_string()));
            }
        }
        aligned(&entry.inst).map_err(in_place)?;
        match origin[index] {
            ADDED => index += added(after, index, state).map_err(in_place)?,
            number => {
                if number != next {
                    return Err(in_place(format!(
                        "stands where instruction {next} should be"
                    )));
                }
                next += 1;
                original(before, &before.insts[number as usize], after, entry, state)
                    .map_err(in_place)?;
                index += 1;
            }
        }
    }
    if next != before.blocks[block].insts.end {
        return Err(format!("instruction {next} is missing"));
    }
    terminator(&before.blocks[block].terminator, &data.terminator, state)
}

fn aligned(inst: &PInst) -> Result<(), String> {
    for operand in inst.operands() {
        let Some(first) = operand.regs[0] else {
            continue;
        };
        let width = operand.regs.len();
        let numbers = operand
            .regs
            .iter()
            .map(|r| r.map(|r| (r.class(), usize::from(r.number()))));
        let expected = (0..width).map(|i| Some((first.class(), usize::from(first.number()) + i)));
        if usize::from(first.number()) % width != 0 || !numbers.eq(expected) {
            return Err(format!(
                "operand {} is not an aligned run: {:?}",
                operand.info.name, operand.regs
            ));
        }
    }
    Ok(())
}

fn expect(state: &State, r: PReg, v: VReg) -> Result<(), String> {
    if state.holds(r, v) {
        return Ok(());
    }
    let found = state.held[location(r)]
        .iter()
        .map(|v| v.to_string())
        .collect::<Vec<_>>()
        .join(", ");
    Err(format!(
        "{r} should hold {v} and holds {}",
        if found.is_empty() { "nothing" } else { &found }
    ))
}

fn original(
    before: &VCode<VReg>,
    old: &Entry<VReg>,
    after: &VCode<PReg>,
    new: &Entry<PReg>,
    state: &mut State,
) -> Result<(), String> {
    if old.inst.form() != new.inst.form() || old.inst.word() != new.inst.word() {
        return Err(format!("is not `{}`", old.inst));
    }
    for (o, n) in old.inst.operands().zip(new.inst.operands()) {
        for (v, r) in o.regs.iter().zip(n.regs) {
            match (v, r, o.info.direction) {
                (Some(v), Some(r), Direction::In) => expect(state, *r, *v)?,
                (Some(_), Some(_), _) | (None, None, _) => {}
                _ => {
                    return Err(format!(
                        "operand {} differs from `{}`",
                        o.info.name, old.inst
                    ));
                }
            }
        }
    }
    let results: SmallVec<[(VReg, PReg); 4]> =
        old.inst.definitions().zip(new.inst.definitions()).collect();
    for ((_, r), kept) in results.iter().zip(before.else_values(old)) {
        if let Some(kept) = kept {
            expect(state, *r, *kept).map_err(|e| format!("when its guard is false: {e}"))?;
        }
    }
    if let (Some(call), Some(Attachment::Call(new_call))) = (
        before.call(old),
        new.attachment.map(|a| &after.attachments[a]),
    ) {
        if call.uses.len() != new_call.uses.len() || call.defs.len() != new_call.defs.len() {
            return Err("other arguments or results than before".to_string());
        }
        for (v, r) in &call.uses {
            expect(state, *r, *v)?;
        }
        for r in 0..255 {
            let r = PReg::gpr(r);
            if !abi::CALLEE_SAVED.contains(&r.number()) && r != abi::STACK_POINTER {
                state.held[location(r)].clear();
            }
        }
        state.held[256..].iter_mut().for_each(|set| set.clear());
        if results
            .iter()
            .zip(abi::RETURN_ADDRESS)
            .any(|((_, r), address)| *r != address)
        {
            return Err("the return address is not in its registers".to_string());
        }
        call.defs
            .iter()
            .for_each(|(v, r)| state.define(*v, Some(*r)));
    } else if new.inst.optype().info().effects.contains(Effects::CALL) {
        return Err("a call without its convention".to_string());
    }
    let mut written = SmallVec::<[PReg; 4]>::new();
    for (v, r) in results {
        if written.contains(&r) {
            return Err(format!("{r} has two results"));
        }
        written.push(r);
        state.define(v, Some(r));
    }
    Ok(())
}

/// Runs what the allocator added at `index`: a copy, or three operations that exchange two registers. Returns how many instructions.
fn added(after: &VCode<PReg>, index: usize, state: &mut State) -> Result<usize, String> {
    let inst = &after.insts[index].inst;
    if !inst.is_unguarded() {
        return Err("an added instruction with a guard".to_string());
    }
    let runs = |i: &PInst, role: Role| -> SmallVec<[PReg; 4]> {
        i.operand(role)
            .map(|o| i.operand_regs(o).iter().copied().flatten().collect())
            .unwrap_or_default()
    };
    let computes = |i: &PInst, table: u8| i.number(Role::Lut) == Some(table.into());
    match inst.form() {
        Form::MOV_R | Form::UMOV_U => {
            let (to, from) = (runs(inst, Role::D), runs(inst, Role::B));
            let old = state.clone();
            for (to, from) in to.iter().zip(&from) {
                state.held[location(*to)] = old.held[location(*from)].clone();
            }
            Ok(1)
        }
        // Between register files.
        Form::SEL_RI | Form::ISETP_RI | Form::MOV_U | Form::R2UR_R => {
            let (to, from) = match inst.form() {
                Form::SEL_RI => (Role::D, Role::Pp),
                Form::ISETP_RI => (Role::Pu, Role::A),
                _ => (Role::D, Role::B),
            };
            let (Some(to), Some(from)) = (inst.reg(to), inst.reg(from)) else {
                return Err("a copy without registers".to_string());
            };
            let expected = moves::copy(Copy { from, to });
            if *inst != expected {
                return Err(format!("is no copy, which would be `{expected}`"));
            }
            state.copy(from, to);
            Ok(1)
        }
        Form::PLOP3_X if computes(inst, 0xf0) => {
            let (to, from) = (inst.reg(Role::Pu), inst.reg(Role::Pa));
            let (Some(to), Some(from)) = (to, from) else {
                return Err("a copy without registers".to_string());
            };
            state.copy(from, to);
            Ok(1)
        }
        Form::PLOP3_X | Form::LOP3_RRR | Form::UIADD_RU => {
            let roles = if inst.form() == Form::PLOP3_X {
                (Role::Pu, Role::Pa, Role::Pb)
            } else {
                (Role::D, Role::A, Role::B)
            };
            let (Some(a), Some(b)) = (inst.reg(roles.1), inst.reg(roles.2)) else {
                return Err("no exchange".to_string());
            };
            for (step, to) in [a, b, a].into_iter().enumerate() {
                let Some(entry) = after.insts.get(index + step) else {
                    return Err("half an exchange".to_string());
                };
                let i = &entry.inst;
                let shape = i.form() == inst.form() && i.reg(roles.0) == Some(to);
                let reads = i.reg(roles.1) == Some(a) && i.reg(roles.2) == Some(b);
                let operation = match i.form() {
                    Form::UIADD_RU => i.is_negated(Role::B) == (step > 0),
                    _ => computes(i, 0x3c),
                };
                if !(shape && reads && operation) {
                    return Err("no exchange of two registers".to_string());
                }
            }
            state.held.swap(location(a), location(b));
            Ok(3)
        }
        form => Err(format!(
            "{} is nothing that the allocator adds",
            form.info().name
        )),
    }
}

fn terminator(old: &Terminator<VReg>, new: &Terminator<PReg>, state: &State) -> Result<(), String> {
    let fixed = |values: &[(VReg, PReg)], new: &[(PReg, PReg)]| -> Result<(), String> {
        if values.len() != new.len() {
            return Err("other results than before".to_string());
        }
        values.iter().try_for_each(|(v, r)| expect(state, *r, *v))
    };
    let pair = |old: &[VReg; 2], new: &[PReg; 2]| -> Result<(), String> {
        if !new[0].number().is_multiple_of(2) || new[1].number() != new[0].number() + 1 {
            return Err(format!("address {new:?} is not an aligned pair"));
        }
        old.iter()
            .zip(new)
            .try_for_each(|(v, r)| expect(state, *r, *v))
    };
    let result = match (old, new) {
        (Terminator::Jump { target: a, .. }, Terminator::Jump { target: b, args })
            if a == b && args.is_empty() =>
        {
            Ok(())
        }
        (
            Terminator::Branch {
                guard: g,
                taken: t,
                fallthrough: f,
                ..
            },
            Terminator::Branch {
                guard: h,
                taken: u,
                fallthrough: e,
                ..
            },
        ) if g.negated == h.negated && t == u && f == e => expect(state, h.reg, g.reg),
        (
            Terminator::Table {
                index: i,
                targets: t,
                ..
            },
            Terminator::Table {
                index: r,
                targets: u,
                ..
            },
        ) if t == u => expect(state, *r, *i),
        (
            Terminator::Return {
                address: a,
                values: v,
            },
            Terminator::Return {
                address: b,
                values: w,
            },
        ) => pair(a, b).and_then(|()| fixed(v, w)),
        (
            Terminator::TailCall {
                callee: a,
                values: v,
            },
            Terminator::TailCall {
                callee: b,
                values: w,
            },
        ) => match (a, b) {
            (Callee::Symbol(a), Callee::Symbol(b)) if a == b => fixed(v, w),
            (Callee::Registers(a), Callee::Registers(b)) => pair(a, b).and_then(|()| fixed(v, w)),
            _ => Err("another callee".to_string()),
        },
        (Terminator::Exit, Terminator::Exit) => Ok(()),
        (Terminator::Trap(a), Terminator::Trap(b)) if a == b => Ok(()),
        _ => Err(format!("is not `{old}`")),
    };
    result.map_err(|e| format!("`{new}`: {e}"))
}
