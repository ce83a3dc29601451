//! Lanes that meet where nothing is done before another meeting, meet there.
//!
//! In: code whose branches say where their lanes meet. Out: the same with fewer places. A loop behind a test has the
//! block behind the loop and the one behind the test; where the first does nothing but jump to the second, lanes that
//! wait there wait for the same lanes as those that wait in the second, and one barrier does for both. At the end of a
//! kernel nobody has to wait at all.
//!
//! No lane waits for more than it did: between the two places there is no instruction, and whoever is to come to the
//! first is to come to the second. Values that the jump passes are copied by groups of lanes instead of by all at once,
//! so they have to be few.

use crate::isa::{Register, RegisterClass, VReg};
use crate::vcode::{Block, Meeting, Terminator, VCode};
use cranelift_codegen::entity::{EntitySet, SecondaryMap};

/// Most values that the jump between the two places passes (*assumed*).
const PASSED: usize = 4;

/// Moves meeting points on.
pub(super) fn meet_later(code: &mut VCode<VReg>) {
    let mut meetings: EntitySet<Block> = EntitySet::new();
    for data in code.blocks.values() {
        if let Meeting::At(block) = data.meeting {
            meetings.insert(block);
        }
    }
    if meetings.is_empty() {
        return;
    }
    // Where lanes meet instead that would meet at a block. Blocks are in reverse postorder, and what follows comes first.
    let mut later: SecondaryMap<Block, Option<Meeting>> = SecondaryMap::new();
    for block in code.blocks.keys().rev() {
        later[block] = match next(code, block) {
            Next::End => Some(Meeting::Nowhere),
            Next::Block(target) => {
                let here = meetings.contains(target).then_some(Meeting::At(target));
                later[target].or(here)
            }
            Next::Other => None,
        };
    }
    for data in code.blocks.values_mut() {
        if let (Meeting::At(block), Terminator::Branch { .. }) = (data.meeting, &data.terminator) {
            data.meeting = later[block].unwrap_or(data.meeting);
        }
    }
}

/// What comes behind a block in which nothing is done.
enum Next {
    /// The end of the kernel.
    End,
    /// A block that lanes come to at once.
    Block(Block),
    /// Something is done, or what follows is not to be shared.
    Other,
}

fn next(code: &VCode<VReg>, block: Block) -> Next {
    let data = &code.blocks[block];
    let is_uniform = |reg: &VReg| reg.class() == RegisterClass::Uniform;
    if !data.insts.is_empty() || data.params.iter().any(is_uniform) {
        return Next::Other;
    }
    match &data.terminator {
        Terminator::Exit => Next::End,
        Terminator::Jump { target, args } if *target > block && args.len() <= PASSED => {
            let target_data = &code.blocks[*target];
            let enters_loop = target_data.loop_depth > data.loop_depth;
            match enters_loop || target_data.params.iter().any(is_uniform) {
                true => Next::Other,
                false => Next::Block(*target),
            }
        }
        _ => Next::Other,
    }
}
