//! Whether what a loop carries from round to round arrives in time.

use super::search::{Definition, Search};
use crate::isa::{Register, RegisterClass, VReg};
use crate::vcode::Block;
use cranelift_codegen::entity::EntityRef;
use smallvec::SmallVec;

/// Cycles until a result of the uniform datapath can be used (latency.isa, *assumed*).
const LATENCY: usize = 6;
/// Cycles of the shortest loop: a counter, its comparison and the branch (*assumed*).
const SHORTEST_LOOP: usize = 2 * LATENCY;
/// Operations in a chain and values side by side in it that are looked at: what is longer or wider counts as too long
/// (*assumed*: generous).
const DEEPEST: usize = 6;
const WIDEST: usize = 32;

impl Search<'_> {
    /// Instructions of each loop outside of the uniform datapath, those of loops in it too.
    pub fn loop_sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.loops.all().len()];
        for (block, data) in self.code.blocks.iter() {
            let general = (self.code.block_insts(block).iter())
                .filter(|entry| !entry.inst.form().is_on_uniform_datapath())
                .count();
            // A branch at the end.
            let branch = usize::from(data.terminator.successors().len() > 1);
            for number in self.loops.around(block.index()) {
                sizes[number] += general + branch;
            }
        }
        sizes
    }

    /// Whether the chain that computes a loop's next value of an offered parameter is hidden by the loop's
    /// instructions.
    pub fn is_hidden(&self, number: usize, block: Block, sizes: &[usize]) -> bool {
        self.loops.innermost(block.index()).is_none_or(|around| {
            let chain = self.chain(&self.offers[number].uniform, around) * LATENCY;
            chain <= SHORTEST_LOOP || chain <= sizes[around]
        })
    }

    /// The longest chain of operations in a loop from the words of a parameter to what is passed for them.
    fn chain(&self, words: &[VReg], around: usize) -> usize {
        let mut longest = 0;
        let arguments = words.iter().flat_map(|&word| self.arguments.of(word));
        let mut level: SmallVec<[VReg; WIDEST]> = arguments.collect();
        for length in 0..=DEEPEST {
            let mut next: SmallVec<[VReg; WIDEST]> = SmallVec::new();
            for reg in level {
                if words.contains(&reg) {
                    longest = length;
                    continue;
                }
                let Definition::Inst(index) = self.definitions[reg.index()] else {
                    continue;
                };
                let block = self.block_of[index as usize];
                if !self.loops.contains(around, block.index()) {
                    continue;
                }
                for operand in self.code.insts[index as usize].inst.uses() {
                    if operand.class() == RegisterClass::Uniform && !next.contains(&operand) {
                        next.push(operand);
                    }
                }
                if next.len() > WIDEST {
                    return DEEPEST + 1;
                }
            }
            if next.is_empty() {
                return longest;
            }
            level = next;
        }
        // Something is left, which may lead to the parameter.
        DEEPEST + 1
    }
}
