//! Shifts of a block by constants, so that the shift of a sum becomes the sum of one that is there and of another.
//!
//! Cranelift's rules make one shift of the sum of two. Where one of the two is there anyway, LEA adds the other to it
//! in one instruction, without the sum of what is not shifted.

use crate::constants::integer;
use cranelift_codegen::ir::{Block, Function, InstructionData, Opcode, Value, types};
use hashbrown::HashSet;

/// The values of a block that are shifted to the left, and by how much.
#[derive(Default)]
pub(super) struct Shifts {
    /// The block that was looked through: none before somebody asks.
    block: Option<Block>,
    known: HashSet<(Value, u64)>,
}

impl Shifts {
    /// Whether `block` shifts `value`, a word, by so much.
    pub(super) fn has(&mut self, func: &Function, block: Block, value: Value, by: u64) -> bool {
        if self.block.replace(block) != Some(block) {
            self.known.clear();
            let insts = func.layout.block_insts(block);
            self.known.extend(insts.filter_map(|inst| {
                let InstructionData::Binary {
                    opcode: Opcode::Ishl,
                    args: [value, by],
                } = func.dfg.insts[inst]
                else {
                    return None;
                };
                let by = u64::try_from(integer(func, by)?).ok()?;
                let is_word = func.dfg.value_type(value) == types::I32;
                is_word.then(|| (func.dfg.resolve_aliases(value), by))
            }));
        }
        self.known.contains(&(func.dfg.resolve_aliases(value), by))
    }
}
