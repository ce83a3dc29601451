//! R2P: one instruction for predicates that come back next to each other from the bits of one GPR.
//!
//! In: allocated code in which some instructions are known to test a bit each of a packed register
//! ([`super::constrain`]). Where two or more tests of one register stand next to each other and write the predicates of
//! their bits' numbers, one R2P takes their place, first of them all. The document can be read so that the predicates
//! that an R2P does not select become false, so no other may be alive there.

use super::moves;
use crate::isa::table::Effects;
use crate::isa::{Form, PInst, PReg, Register, RegisterClass, Role};
use crate::vcode::{Block, Entry, Terminator, VCode};
use cranelift_codegen::entity::SecondaryMap;
use std::ops::Range;

/// A set of predicates, P0 in bit 0.
type Set = u8;

/// Predicates that exist.
const ALL: Set = (1 << RegisterClass::Predicate.hardwired()) - 1;

/// Puts R2P in place of `tests`, indices of instructions in order. `origins` loses the entries of the instructions that
/// go.
pub(super) fn combine(code: &mut VCode<PReg>, tests: &[u32], mut origins: Option<&mut Vec<u32>>) {
    let groups = groups(code, tests);
    if groups.is_empty() {
        return;
    }
    let alive = alive_at_ends(code);
    let mut gone = vec![false; code.insts.len()];
    for (block, group) in groups {
        let mask = in_place(code, &group);
        let written = group.clone().fold(0, |set, i| set | result(code, i));
        let behind = group.end as usize..code.blocks[block].insts.end as usize;
        let behind = code.insts[behind].iter().rev();
        let alive = behind.fold(alive[block], |alive, entry| before(entry, alive));
        if alive & !written == 0 {
            replace(code, group, mask, &mut gone);
        }
    }
    remove(code, &gone);
    if let Some(origins) = &mut origins {
        let mut gone = gone.into_iter();
        origins.retain(|_| !gone.next().unwrap_or(false));
    }
}

/// Tests of one register next to each other of which two or more are of their own bits.
fn groups(code: &VCode<PReg>, tests: &[u32]) -> Vec<(Block, Range<u32>)> {
    let register = |i: u32| code.insts[i as usize].inst.reg(Role::A);
    let mut groups = Vec::new();
    let mut rest = tests;
    for (block, data) in code.blocks.iter() {
        let (here, later) = rest.split_at(rest.partition_point(|i| *i < data.insts.end));
        rest = later;
        for group in here.chunk_by(|a, b| a + 1 == *b && register(*a) == register(*b)) {
            let group = group[0]..group[0] + group.len() as u32;
            if in_place(code, &group).count_ones() > 1 {
                groups.push((block, group));
            }
        }
    }
    groups
}

/// The predicate that a test writes.
fn result(code: &VCode<PReg>, test: u32) -> Set {
    let inst = &code.insts[test as usize].inst;
    inst.definitions().fold(0, |set, r| set | bit(r))
}

/// The predicates of a group of tests that are written from the bits of their numbers.
fn in_place(code: &VCode<PReg>, group: &Range<u32>) -> Set {
    let tested = |i: u32| code.insts[i as usize].inst.number(Role::B);
    let own = |i: &u32| tested(*i) == Some(u64::from(result(code, *i)));
    group
        .clone()
        .filter(own)
        .fold(0, |set, i| set | result(code, i))
}

/// Puts one R2P before those of `group` that have to stay.
fn replace(code: &mut VCode<PReg>, group: Range<u32>, mask: Set, gone: &mut [bool]) {
    let first = group.start as usize;
    let range = first..group.end as usize;
    let Some(from) = code.insts[first].inst.reg(Role::A) else {
        return;
    };
    let stays = |entry: &Entry<PReg>| entry.inst.definitions().any(|r| bit(r) & mask == 0);
    let line = code.insts[first].line;
    let others: Vec<Entry<PReg>> = code.insts[range.clone()]
        .iter()
        .filter(|e| stays(e))
        .copied()
        .collect();
    let reload = Entry::new(moves::to_predicates(from, mask), line);
    let left = 1 + others.len();
    for (place, entry) in code.insts[range.clone()]
        .iter_mut()
        .zip([reload].into_iter().chain(others))
    {
        *place = entry;
    }
    gone[range][left..].fill(true);
}

/// Leaves instructions out.
pub(super) fn remove(code: &mut VCode<PReg>, gone: &[bool]) {
    let mut left = 0;
    for data in code.blocks.values_mut() {
        let range = data.insts.start as usize..data.insts.end as usize;
        let start = left;
        left += gone[range].iter().filter(|gone| !**gone).count() as u32;
        data.insts = start..left;
    }
    let mut gone = gone.iter();
    code.insts
        .retain(|_| !gone.next().copied().unwrap_or(false));
}

fn bit(r: PReg) -> Set {
    match r.class() {
        RegisterClass::Predicate => 1 << r.number(),
        RegisterClass::Gpr | RegisterClass::Uniform => 0,
    }
}

/// Predicates alive before an instruction behind which `alive` are.
fn before(entry: &Entry<PReg>, alive: Set) -> Set {
    let inst: &PInst = &entry.inst;
    let set = |set: Set, r: PReg| set | bit(r);
    let written = match inst.is_unguarded() {
        true => inst.definitions().fold(0, set),
        false => 0,
    };
    let implicit = match inst.form() {
        Form::P2R_RI => inst.number(Role::B).map_or(ALL, |mask| mask as Set & ALL),
        _ if inst.optype().info().effects.contains(Effects::PREDICATES) => ALL,
        _ => 0,
    };
    inst.uses().fold(alive & !written | implicit, set)
}

/// Predicates alive behind the last instruction of each block.
fn alive_at_ends(code: &VCode<PReg>) -> SecondaryMap<Block, Set> {
    let mut ends: SecondaryMap<Block, Set> = SecondaryMap::with_capacity(code.blocks.len());
    let mut starts = ends.clone();
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (block, data) in code.blocks.iter().rev() {
            let successors = data.terminator.successors();
            let passed = successors.iter().fold(0, |set, s| set | starts[*s]);
            let end = passed
                | match &data.terminator {
                    Terminator::Branch { guard, .. } => bit(guard.reg),
                    _ => 0,
                };
            let insts = code.block_insts(block).iter().rev();
            let start = insts.fold(end, |alive, entry| before(entry, alive));
            changed |= start != starts[block];
            (ends[block], starts[block]) = (end, start);
        }
    }
    ends
}
