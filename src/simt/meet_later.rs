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
use cranelift_codegen::entity::EntitySet;

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
    let blocks: Vec<Block> = code.blocks.keys().collect();
    for block in blocks {
        let Meeting::At(meeting) = code.blocks[block].meeting else {
            continue;
        };
        let later = later(code, &meetings, meeting);
        if matches!(code.blocks[block].terminator, Terminator::Branch { .. }) {
            code.blocks[block].meeting = later;
        }
    }
}

/// Where lanes meet that have nothing to do before the last of several places.
fn later(code: &VCode<VReg>, meetings: &EntitySet<Block>, first: Block) -> Meeting {
    let mut place = first;
    let mut block = first;
    // Blocks are in reverse postorder, so the way ends.
    loop {
        let data = &code.blocks[block];
        if !data.insts.is_empty() {
            return Meeting::At(place);
        }
        match &data.terminator {
            Terminator::Exit => return Meeting::Nowhere,
            Terminator::Jump { target, args } if *target > block && args.len() <= PASSED => {
                let is_uniform = |reg: &VReg| reg.class() == RegisterClass::Uniform;
                let params = &code.blocks[*target].params;
                if args
                    .iter()
                    .chain(params)
                    .chain(&data.params)
                    .any(is_uniform)
                {
                    return Meeting::At(place);
                }
                block = *target;
                if meetings.contains(block) {
                    place = block;
                }
            }
            _ => return Meeting::At(place),
        }
    }
}
