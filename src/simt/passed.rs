//! Constants that both sides of a branch pass on are loaded once, in front of it.
//!
//! In: lowered code, in which every edge loads the constants that it passes in registers of its own, at its end. A loop
//! that may be left out has its first values on the edge into it, and the same values on the edge around it as what it
//! would have left. They are the same registers in the end if the same value comes into both parameters: what a turn
//! of the loop passes to its next turn and to what follows. Of such a pair one constant is left, loaded at the end of
//! the block with the branch.
//!
//! Then the same where the other side does not pass its constant at its end but behind branches of its own: a sum that
//! begins before two loops, and is zero where both are left out. The two are one register in the end if the parameters
//! belong to one web, that is, if jumps pass values between them. Out: the same with fewer moves; no path runs more of
//! them.
//!
//! Constants without a partner stay where they are: their registers would be two, and one would have to be copied.

use super::edit::Editor;
use super::if_convert::count_uses;
use crate::isa::generated::{MOVW, mov};
use crate::isa::{Form, Inst, Role, VReg};
use crate::vcode::{Block, BlockData, Entry, Terminator, VCode};
use cranelift_codegen::entity::SecondaryMap;
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

/// Most predecessors of a block that is looked at (*assumed*): what they pass is compared for every branch.
const PREDECESSORS: usize = 8;

/// Most constants of a side that are compared with those of the other one, where that passes them on later
/// (*assumed*: a loop has few sums).
const COMPARED: usize = 32;

/// The constants that both sides of a branch load and pass.
struct Shared {
    /// The block with the branch.
    branch: Block,
    /// The sides.
    sides: [Block; 2],
    /// Their registers at the sides; those of the first are what is left.
    registers: Vec<[VReg; 2]>,
}

/// Loads once what both sides of a branch load for parameters that the same value comes into, or one web.
pub fn share(code: VCode<VReg>) -> VCode<VReg> {
    share_with_later(share_passed(code))
}

fn share_passed(code: VCode<VReg>) -> VCode<VReg> {
    let passes = |block: Block| jump(&code.blocks[block]).is_some_and(|(_, args)| !args.is_empty());
    let candidates: Vec<(Block, [Block; 2])> = branches(&code)
        .filter(|(_, sides)| sides[0] != sides[1] && sides.iter().all(|&side| passes(side)))
        .collect();
    if candidates.is_empty() {
        return code;
    }
    let predecessors = code.predecessors();
    let uses = count_uses(&code);
    let shared: Vec<Shared> = (candidates.into_iter())
        .filter(|(branch, sides)| {
            let is_entered_once = |side: &Block| predecessors[*side].as_slice() == [*branch];
            sides.iter().all(is_entered_once)
        })
        .map(|(branch, sides)| Shared {
            branch,
            sides,
            registers: find(&code, &predecessors, &uses, sides),
        })
        .filter(|shared| !shared.registers.is_empty())
        .collect();
    if shared.is_empty() {
        return code;
    }
    let mut editor = Editor::new(code);
    for shared in shared {
        shared.load_before_branch(&mut editor);
    }
    editor.finish()
}

impl Shared {
    /// Moves the loads of the first side in front of the branch, and drops those of the second.
    fn load_before_branch(&self, editor: &mut Editor<VReg>) {
        let [first, second] = self.sides;
        let kept: HashSet<VReg> = self.registers.iter().map(|pair| pair[0]).collect();
        let (moved, rest): (Vec<_>, Vec<_>) = std::mem::take(editor.body(first))
            .into_iter()
            .partition(|entry| entry.inst.definitions().any(|reg| kept.contains(&reg)));
        *editor.body(first) = rest;
        editor.body(self.branch).extend(moved);
        let of_second = self
            .registers
            .iter()
            .map(|&[first, second]| (second, first));
        let renamed: HashMap<VReg, VReg> = of_second.collect();
        let is_gone = |reg: VReg| renamed.contains_key(&reg);
        editor
            .body(second)
            .retain(|entry| !entry.inst.definitions().any(is_gone));
        editor.data(second).terminator.for_each_register(|reg| {
            *reg = renamed.get(reg).copied().unwrap_or(*reg);
        });
    }
}

/// Loads once what one side of a branch passes on at its end, and the other side behind a branch.
fn share_with_later(code: VCode<VReg>) -> VCode<VReg> {
    let candidates: Vec<(Block, [Block; 2])> = branches(&code)
        .flat_map(|(block, [taken, other])| [(block, [taken, other]), (block, [other, taken])])
        .filter(|&(_, [side, other])| {
            let passes = jump(&code.blocks[side]).is_some_and(|(_, args)| !args.is_empty());
            let ends = code.block_insts(side).last();
            let branches = matches!(code.blocks[other].terminator, Terminator::Branch { .. });
            passes && branches && ends.is_some_and(|entry| constant(&entry.inst).is_some())
        })
        .collect();
    if candidates.is_empty() {
        return code;
    }
    let predecessors = code.predecessors();
    let uses = count_uses(&code);
    let mut webs = Webs::of(&code);
    let mut shared = Vec::new();
    for (branch, sides) in candidates {
        let is_entered_once = |side: &Block| predecessors[*side].as_slice() == [branch];
        if sides.iter().all(is_entered_once) {
            let registers = find_later(&code, &uses, &mut webs, sides);
            if !registers.is_empty() {
                shared.push(Shared {
                    branch,
                    sides,
                    registers,
                });
            }
        }
    }
    if shared.is_empty() {
        return code;
    }
    let mut editor = Editor::new(code);
    for shared in shared {
        shared.load_before_branch(&mut editor);
        let [_, other] = shared.sides;
        for target in editor.terminator(other).successors() {
            let renamed = |reg: VReg| {
                let pair = shared.registers.iter().find(|pair| pair[1] == reg);
                pair.map_or(reg, |pair| pair[0])
            };
            editor
                .data(target)
                .terminator
                .for_each_register(|reg| *reg = renamed(*reg));
        }
    }
    editor.finish()
}

/// The registers of constants that the first of a branch's sides passes on, and the second side's successors.
fn find_later(
    code: &VCode<VReg>,
    uses: &[u32],
    webs: &mut Webs,
    [side, other]: [Block; 2],
) -> Vec<[VReg; 2]> {
    let loaded = loaded(code.block_insts(side), uses);
    let Some((target, args)) = jump(&code.blocks[side]) else {
        return Vec::new();
    };
    // What it passes: the register, the parameter, the number; what has found a partner is taken out.
    let passed_here = args.iter().zip(&code.blocks[target].params);
    let mut offered: Vec<(VReg, VReg, u32)> = passed_here
        .filter_map(|(arg, param)| Some((*arg, *param, *loaded.get(arg)?)))
        .take(COMPARED)
        .collect();
    let successors = code.blocks[other].terminator.successors();
    let entries = code.block_insts(other).iter();
    let constants = entries
        .filter(|entry| entry.attachment.is_none())
        .filter_map(|entry| Some((entry.inst.definitions().next()?, constant(&entry.inst)?)));
    let mut shared: Vec<[VReg; 2]> = Vec::new();
    for (later, value) in constants.take(COMPARED) {
        // Where the successors pass it, and nobody else reads it.
        let passed = successors
            .iter()
            .filter_map(|&block| jump(&code.blocks[block]));
        let passed = passed.flat_map(|(block, args)| args.iter().zip(&code.blocks[block].params));
        let params: SmallVec<[VReg; 2]> = passed
            .filter(|(arg, _)| **arg == later)
            .map(|(_, param)| *param)
            .collect();
        if params.is_empty() || params.len() != uses[later.index()] as usize {
            continue;
        }
        let partner = offered.iter().position(|&(_, param, number)| {
            number == value && params.iter().all(|&other| webs.are_one(param, other))
        });
        if let Some(partner) = partner {
            shared.push([offered.remove(partner).0, later]);
        }
    }
    shared
}

/// Which registers jumps pass values between, directly or through others.
struct Webs(Vec<u32>);

impl Webs {
    fn of(code: &VCode<VReg>) -> Self {
        let mut webs = Webs((0..code.vreg_count).collect());
        for (target, args) in code.blocks.values().filter_map(jump) {
            for (arg, param) in args.iter().zip(&code.blocks[target].params) {
                let (arg, param) = (
                    webs.root(arg.index() as u32),
                    webs.root(param.index() as u32),
                );
                webs.0[arg as usize] = param;
            }
        }
        webs
    }

    fn root(&mut self, mut reg: u32) -> u32 {
        while self.0[reg as usize] != reg {
            let above = self.0[self.0[reg as usize] as usize];
            self.0[reg as usize] = above;
            reg = above;
        }
        reg
    }

    fn are_one(&mut self, a: VReg, b: VReg) -> bool {
        self.root(a.index() as u32) == self.root(b.index() as u32)
    }
}

/// The registers of constants that a branch's sides, which have no other predecessor, have in common.
fn find(
    code: &VCode<VReg>,
    predecessors: &SecondaryMap<Block, SmallVec<[Block; 2]>>,
    uses: &[u32],
    sides: [Block; 2],
) -> Vec<[VReg; 2]> {
    let loaded = sides.map(|side| loaded(code.block_insts(side), uses));
    if loaded.iter().any(HashMap::is_empty) {
        return Vec::new();
    }
    let ends = sides.map(|side| jump(&code.blocks[side]));
    let [Some((first, first_args)), Some((second, second_args))] = ends else {
        return Vec::new();
    };
    let is_crowded = |block: Block| predecessors[block].len() > PREDECESSORS;
    if is_crowded(first) || is_crowded(second) {
        return Vec::new();
    }
    // What comes into the parameters of the second from elsewhere, and where.
    let mut places: HashMap<VReg, usize> = HashMap::new();
    let mut note = |values: &[VReg]| {
        for (index, &value) in values.iter().enumerate() {
            places.insert(value, index);
        }
    };
    for &other in predecessors[second]
        .iter()
        .filter(|&&other| !sides.contains(&other))
    {
        if let Some((_, args)) = jump(&code.blocks[other]) {
            note(args);
        }
    }
    note(&code.blocks[second].params);
    let mut shared: Vec<[VReg; 2]> = Vec::new();
    let mut taken: HashSet<usize> = HashSet::new();
    for (index, register) in first_args.iter().enumerate() {
        let Some(value) = loaded[0].get(register) else {
            continue;
        };
        let partner = match first == second {
            true => Some(index),
            false => {
                let from = predecessors[first]
                    .iter()
                    .filter(|&&other| !sides.contains(&other));
                let passed = from.filter_map(|&other| Some(jump(&code.blocks[other])?.1[index]));
                let mut same = passed.chain([code.blocks[first].params[index]]);
                same.find_map(|value| places.get(&value).copied())
            }
        };
        let Some(partner) = partner.filter(|partner| !taken.contains(partner)) else {
            continue;
        };
        let other = second_args[partner];
        if loaded[1].get(&other) == Some(value) {
            taken.insert(partner);
            shared.push([*register, other]);
        }
    }
    shared
}

/// The blocks that end in a branch of two ways, and where these lead.
fn branches(code: &VCode<VReg>) -> impl Iterator<Item = (Block, [Block; 2])> + '_ {
    code.blocks
        .iter()
        .filter_map(|(block, data)| match data.terminator {
            Terminator::Branch {
                taken, fallthrough, ..
            } => Some((block, [taken, fallthrough])),
            _ => None,
        })
}

/// Where a block jumps to, and what it passes.
fn jump(data: &BlockData<VReg>) -> Option<(Block, &[VReg])> {
    match &data.terminator {
        Terminator::Jump { target, args } => Some((*target, args)),
        _ => None,
    }
}

/// The constants that a block loads at its end, by their registers, which are read once.
fn loaded(insts: &[Entry<VReg>], uses: &[u32]) -> HashMap<VReg, u32> {
    let constants = insts.iter().rev().map_while(|entry| {
        let value = constant(&entry.inst).filter(|_| entry.attachment.is_none())?;
        Some((entry.inst.definitions().next()?, value))
    });
    constants
        .filter(|(reg, _)| uses[reg.index()] == 1)
        .collect()
}

/// What a MOV of one word loads, if that is a constant.
fn constant(inst: &Inst<VReg>) -> Option<u32> {
    let is_word = inst.is_unguarded() && inst.get(mov::WIDTH) == Some(MOVW::W32);
    match inst.form() {
        Form::MOV_I if is_word => inst.number(Role::B).map(|number| number as u32),
        Form::MOV_R if is_word && inst.uses().next().is_none() => Some(0),
        _ => None,
    }
}
