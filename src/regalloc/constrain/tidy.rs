//! Leaves out what a rewritten function does not need: new parameters that join one name only, and added instructions
//! that nobody reads.

use super::flow::Flow;
use super::plan::NONE;
use crate::isa::table::Direction;
use crate::isa::{Form, Role, VReg};
use crate::regalloc::check::ADDED;
use crate::vcode::{Block, Entry, Terminator, VCode};
use hashbrown::HashMap;
use smallvec::SmallVec;

/// A new block parameter.
#[derive(Debug)]
pub(super) struct Join {
    pub block: Block,
    /// The value whose names meet.
    pub value: VReg,
    /// The parameter.
    pub name: VReg,
    /// By predecessor, in the order of [`Flow::predecessors`].
    pub args: SmallVec<[VReg; 4]>,
}

/// Adds the parameters of `joins` that are needed and removes instructions nobody reads: added ones, stores to slots
/// that are never loaded among them, and those for which `can_go` holds. Names from `first_new` on are new. Returns the
/// origins of what is left.
pub(super) fn tidy(
    code: &mut VCode<VReg>,
    origin: Vec<u32>,
    mut joins: Vec<Join>,
    flow: &Flow,
    first_new: u32,
    can_go: impl Fn(&VCode<VReg>, &Entry<VReg>) -> bool,
) -> Vec<u32> {
    let mut aliases = Aliases {
        first: first_new as usize,
        of: vec![None; (code.vreg_count - first_new) as usize],
    };
    if aliases.find(&mut joins) {
        rename(code, &aliases);
    }
    for arg in joins.iter_mut().flat_map(|join| &mut join.args) {
        *arg = aliases.resolve(*arg);
    }
    let mut marks = Marks::new(code, &origin, &joins, can_go);
    marks.run(code, &joins);
    joins.retain(|join| marks.names[join.name.index()]);
    add_parameters(code, &joins, flow);
    remove_unread(code, origin, &marks.instructions)
}

/// Names that stand for others, among the new ones.
struct Aliases {
    first: usize,
    of: Vec<Option<VReg>>,
}

impl Aliases {
    fn resolve(&self, mut v: VReg) -> VReg {
        while let Some(i) = v.index().checked_sub(self.first)
            && let Some(up) = self.of[i]
        {
            v = up;
        }
        v
    }

    /// Lets parameters that join one name with themselves stand for that name, and drops them. False if there are none.
    fn find(&mut self, joins: &mut Vec<Join>) -> bool {
        let all = joins.len();
        loop {
            let before = joins.len();
            joins.retain_mut(|join| {
                let mut one = None;
                for arg in &mut join.args {
                    // Chains stay short, because every round shortens them.
                    *arg = self.resolve(*arg);
                    if *arg != join.name && one != Some(*arg) && one.replace(*arg).is_some() {
                        return true;
                    }
                }
                self.of[join.name.index() - self.first] = one;
                one.is_none()
            });
            if joins.len() == before {
                return before < all;
            }
        }
    }
}

/// Puts the names for which others stand into all uses.
fn rename(code: &mut VCode<VReg>, aliases: &Aliases) {
    for entry in &mut code.insts {
        if entry.inst.uses().any(|v| aliases.resolve(v) != v) {
            entry.inst = entry.inst.map_operands(|info, _, v| match info.direction {
                Direction::In => aliases.resolve(v),
                Direction::Out | Direction::Neither => v,
            });
        }
        if let Some(attachment) = entry.attachment {
            code.attachments[attachment].for_each_register(|v| *v = aliases.resolve(*v));
        }
    }
    for data in code.blocks.values_mut() {
        data.terminator
            .for_each_register(|v| *v = aliases.resolve(*v));
    }
}

/// What is needed.
struct Marks {
    names: Vec<bool>,
    instructions: Vec<bool>,
    work: Vec<VReg>,
    /// By name: the instruction that makes it and goes if nobody reads it, or [`NONE`].
    maker: Vec<u32>,
    /// By name: its join, or [`NONE`].
    join: Vec<u32>,
    /// Added stores by slot, until the slot is loaded.
    stores: HashMap<u64, Vec<u32>>,
}

impl Marks {
    fn new(
        code: &VCode<VReg>,
        origin: &[u32],
        joins: &[Join],
        can_go: impl Fn(&VCode<VReg>, &Entry<VReg>) -> bool,
    ) -> Marks {
        let values = code.vreg_count as usize;
        let mut marks = Marks {
            names: vec![false; values],
            instructions: vec![true; code.insts.len()],
            work: Vec::new(),
            maker: vec![NONE; values],
            join: vec![NONE; values],
            stores: HashMap::new(),
        };
        for (i, (entry, origin)) in code.insts.iter().zip(origin).enumerate() {
            let added = *origin == ADDED;
            if !added && !can_go(code, entry) {
                continue;
            }
            marks.instructions[i] = false;
            for v in entry.inst.definitions() {
                marks.maker[v.index()] = i as u32;
            }
            if added && entry.inst.form() == Form::STL_RR {
                let slot = entry.inst.number(Role::Addr).unwrap_or_default();
                marks.stores.entry(slot).or_default().push(i as u32);
            }
        }
        for (i, join) in joins.iter().enumerate() {
            marks.join[join.name.index()] = i as u32;
        }
        marks
    }

    fn need(&mut self, v: VReg) {
        if !std::mem::replace(&mut self.names[v.index()], true) {
            self.work.push(v);
        }
    }

    fn need_instruction(&mut self, code: &VCode<VReg>, index: u32) {
        if std::mem::replace(&mut self.instructions[index as usize], true) {
            return;
        }
        let entry = &code.insts[index as usize];
        code.uses(entry).for_each(|v| self.need(v));
        if entry.inst.form() == Form::LDL_R {
            let slot = entry.inst.number(Role::Addr).unwrap_or_default();
            for store in self.stores.remove(&slot).unwrap_or_default() {
                self.need_instruction(code, store);
            }
        }
    }

    fn run(&mut self, code: &VCode<VReg>, joins: &[Join]) {
        for (i, entry) in code.insts.iter().enumerate() {
            if self.instructions[i] {
                code.uses(entry).for_each(|v| self.need(v));
            }
        }
        for data in code.blocks.values() {
            data.terminator.uses().for_each(|v| self.need(v));
        }
        while let Some(v) = self.work.pop() {
            if let Some(join) = joins.get(self.join[v.index()] as usize) {
                join.args.iter().for_each(|arg| self.need(*arg));
            }
            if self.maker[v.index()] != NONE {
                self.need_instruction(code, self.maker[v.index()]);
            }
        }
    }
}

fn add_parameters(code: &mut VCode<VReg>, joins: &[Join], flow: &Flow) {
    for join in joins {
        code.blocks[join.block].params.push(join.name);
        for (from, arg) in flow.predecessors(join.block).zip(&join.args) {
            if let Terminator::Jump { args, .. } = &mut code.blocks[from].terminator {
                args.push(*arg);
            }
        }
    }
}

fn remove_unread(code: &mut VCode<VReg>, origin: Vec<u32>, needed: &[bool]) -> Vec<u32> {
    if needed.iter().all(|n| *n) {
        return origin;
    }
    let old = std::mem::take(&mut code.insts);
    let mut kept = Vec::with_capacity(origin.len());
    for data in code.blocks.values_mut() {
        let start = code.insts.len() as u32;
        for i in data.insts.start as usize..data.insts.end as usize {
            if needed[i] {
                code.insts.push(old[i]);
                kept.push(origin[i]);
            }
        }
        data.insts = start..code.insts.len() as u32;
    }
    kept
}
