//! Where virtual registers are in allocated code.
//!
//! In: the function as it came, the code that has been allocated, for each of its instructions where that comes from,
//! and the [`Holder`]s: virtual registers that hold values of the source. Out: for each holder whether the machine has
//! it, and where, at every instruction ([`Places`]).
//!
//! Nothing is asked of the allocator, so all of them are followed alike: what it does is seen in its code. It is a
//! forward data flow ([`flow`]) over what the places of the machine hold ([`state`]). An instruction that was there
//! before puts its results into its registers; copies, stores to the spill area and loads from it hand on what they
//! read; whatever else is written is lost. Where control meets, a place holds what it holds on all ways in; a parameter
//! is the argument that each of them passes.
//!
//! A value is the one that its definition gave last. The definition of a word takes the word from all places that it
//! was in, and makes the whole value unknown until its last word is there, or a debugger would show halves of two
//! turns.

mod flow;
mod state;

use super::check::{ADDED, StorageLocation, layout::Layout};
use crate::isa::{PReg, VReg};
use crate::values::{Holder, Place};
use crate::vcode::{Terminator, VCode};
use smallvec::SmallVec;

/// The words of a value.
pub type Words = SmallVec<[Place; 4]>;

/// Where holders are.
#[derive(Debug, Default)]
pub struct Places {
    /// The holders.
    pub holders: Vec<Holder>,
    /// By block, those that are somewhere at its start.
    pub starts: Vec<Vec<(u32, Words)>>,
    /// What changes behind instructions, in their order: the instruction, the holder, where it is now.
    pub changes: Vec<(u32, u32, Option<Words>)>,
}

/// What is put where by an instruction that was there before.
#[derive(Clone, Copy, Debug)]
struct Definition {
    /// The instruction of the allocated code.
    index: u32,
    value: VReg,
    register: PReg,
}

/// The results of the instructions that were there before, by the instructions that give them now.
#[derive(Debug, Default)]
pub(super) struct Definitions(Vec<Definition>);

impl Definitions {
    /// Those of `after`, of whose instructions `origin` has the index in `before`.
    pub fn of(before: &VCode<VReg>, after: &VCode<PReg>, origin: &[u32]) -> Definitions {
        let mut found = Vec::new();
        for (index, &origin) in (0..).zip(origin).filter(|(_, origin)| **origin != ADDED) {
            let old = &before.insts[origin as usize];
            let new = &after.insts[index as usize];
            let kept = before.else_values(old);
            let is_unguarded = old.inst.is_unguarded();
            let mut add = |value: VReg, register: PReg| {
                found.push(Definition {
                    index,
                    value,
                    register,
                });
            };
            // The return address is the callee's, and lost when it comes back.
            if let Some(call) = before.call(old) {
                call.defs
                    .iter()
                    .for_each(|(value, register)| add(*value, *register));
                continue;
            }
            let results = old.inst.definitions().zip(new.inst.definitions());
            for (number, (value, register)) in results.enumerate() {
                // Under a guard there is a value only where another one is kept otherwise.
                if is_unguarded || kept.get(number).is_some_and(Option::is_some) {
                    add(value, register);
                }
            }
        }
        Definitions(found)
    }

    /// Instructions are done by others, each first one of `moved` by the second; then those that are `gone` are left
    /// out.
    pub fn moved(&mut self, moved: impl Iterator<Item = (u32, u32)>, gone: &[bool]) {
        let mut left = 0;
        let mut places: Vec<u32> = (gone.iter())
            .map(|gone| {
                let place = left;
                left += u32::from(!gone);
                place
            })
            .collect();
        for (from, to) in moved {
            places[from as usize] = places[to as usize];
        }
        for found in &mut self.0 {
            found.index = places[found.index as usize];
        }
        self.0.sort_by_key(|found| found.index);
    }
}

/// Finds where `holders` are in `after`.
///
/// # Errors
/// When the frames of the two do not belong together.
pub(super) fn find(
    before: &VCode<VReg>,
    after: &VCode<PReg>,
    definitions: Definitions,
    holders: Vec<Holder>,
) -> Result<Places, String> {
    let layout = Layout::new(&before.frame, &after.frame)?;
    let tracked = Tracked::of(before, &holders);
    Ok(flow::places(
        before,
        after,
        &layout,
        definitions,
        tracked,
        holders,
    ))
}

/// No number.
const NONE: u32 = u32::MAX;

/// The virtual registers that are followed: those of holders, and those that become them by parameters.
struct Tracked {
    /// By virtual register its number, or [`NONE`].
    numbers: Vec<u32>,
    /// By number, the holders that it is a word of.
    holders: Vec<SmallVec<[u32; 2]>>,
    /// By number, the holders whose other words are all there when it is defined.
    last_of: Vec<SmallVec<[u32; 2]>>,
}

impl Tracked {
    fn of(before: &VCode<VReg>, holders: &[Holder]) -> Tracked {
        let wanted = wanted(before, holders);
        let mut numbers = vec![NONE; wanted.len()];
        let mut count = 0;
        for (number, _) in numbers
            .iter_mut()
            .zip(&wanted)
            .filter(|(_, wanted)| **wanted)
        {
            *number = count;
            count += 1;
        }
        let mut tracked = Tracked {
            numbers,
            holders: vec![SmallVec::new(); count as usize],
            last_of: vec![SmallVec::new(); count as usize],
        };
        let order = definition_order(before);
        for (holder, held) in (0..).zip(holders) {
            let registers = held.held.registers();
            for &register in &registers {
                let number = tracked.numbers[register.index()] as usize;
                if !tracked.holders[number].contains(&holder) {
                    tracked.holders[number].push(holder);
                }
            }
            if let Some(last) = registers.iter().max_by_key(|r| order[r.index()]) {
                let time = order[last.index()];
                for register in registers.iter().filter(|r| order[r.index()] == time) {
                    let number = tracked.numbers[register.index()] as usize;
                    if !tracked.last_of[number].contains(&holder) {
                        tracked.last_of[number].push(holder);
                    }
                }
            }
        }
        tracked
    }

    fn number(&self, register: VReg) -> Option<u32> {
        Some(self.numbers[register.index()]).filter(|number| *number != NONE)
    }
}

/// Which virtual registers matter.
fn wanted(before: &VCode<VReg>, holders: &[Holder]) -> Vec<bool> {
    let mut wanted = vec![false; before.vreg_count as usize];
    let mut work: Vec<VReg> = Vec::new();
    let mut want = |register: VReg, work: &mut Vec<VReg>| {
        if !std::mem::replace(&mut wanted[register.index()], true) {
            work.push(register);
        }
    };
    for register in holders.iter().flat_map(|holder| holder.held.registers()) {
        want(register, &mut work);
    }
    // By parameter, the arguments that become it.
    let mut arguments: Vec<SmallVec<[VReg; 2]>> = vec![SmallVec::new(); before.vreg_count as usize];
    for data in before.blocks.values() {
        if let Terminator::Jump { target, args } = &data.terminator {
            for (param, arg) in before.blocks[*target].params.iter().zip(args) {
                arguments[param.index()].push(*arg);
            }
        }
    }
    while let Some(register) = work.pop() {
        for argument in &arguments[register.index()] {
            want(*argument, &mut work);
        }
    }
    wanted
}

/// When each virtual register is defined, so that of two that are there at once the later one is greater.
fn definition_order(before: &VCode<VReg>) -> Vec<u64> {
    let mut order = vec![u64::MAX; before.vreg_count as usize];
    for (register, _) in &before.entry {
        order[register.index()] = 0;
    }
    let mut time = 1;
    // Blocks are in reverse postorder, so what dominates comes first.
    for block in before.blocks.keys() {
        for param in &before.blocks[block].params {
            order[param.index()] = time;
        }
        time += 1;
        for entry in before.block_insts(block) {
            for register in before.definitions(entry) {
                order[register.index()] = time;
            }
            time += 1;
        }
    }
    order
}

/// A place of the machine as a debugger knows it.
fn place(location: StorageLocation, layout: &Layout, negated: bool) -> Place {
    match location.register() {
        Some(register) => Place::of_register(register, negated),
        None => Place::Frame(layout.offset_of(location)),
    }
}
