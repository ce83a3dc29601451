//! What a function needs of the machine, counted on its final code.

use crate::analysis::graph::{Dominators, Loops};
use crate::isa::table::Effects;
use crate::isa::{PReg, Register, RegisterClass};
use crate::linear::{Linear, Target};
use crate::vcode::{Entry, FunctionKind};
use serde::{Deserialize, Serialize};

/// Effects of the instructions at which control may leave the function for code that comes back, and of some others.
const LEAVES: Effects = Effects::CALL.union(Effects::BRANCH);

/// What a function needs, without what it calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Its instructions.
    pub instructions: u32,
    /// General-purpose registers of a thread: the highest number used, plus one.
    pub registers: u32,
    /// Predicates: the highest number used, plus one.
    pub predicates: u32,
    /// Uniform registers: the highest number used, plus one.
    pub uniform: u32,
    /// Where the spill slots begin, in bytes from R1.
    pub spill_offset: u32,
    /// Bytes of spill slots in local memory.
    pub spill_bytes: u32,
    /// Bytes of local memory, spill slots included.
    pub local_bytes: u32,
    /// Bytes of static shared memory.
    pub shared_bytes: u32,
    /// Whether it waits at the CTA's barrier.
    pub uses_barrier: bool,
    /// Instructions of each innermost loop, in the order of the code.
    pub loops: Vec<u32>,
    /// Whether it calls by address.
    pub calls_by_address: bool,
}

impl Resources {
    /// What is known of `code` before its instructions are counted one by one ([`Resources::count`]).
    pub(super) fn new(code: &Linear) -> Resources {
        Resources {
            instructions: code.len() as u32,
            spill_offset: code.frame.spill_offset(),
            spill_bytes: code.frame.spill_bytes,
            local_bytes: code.frame.size(),
            shared_bytes: match &code.kind {
                FunctionKind::Kernel(kernel) => kernel.shared_bytes,
                FunctionKind::Device => 0,
            },
            loops: innermost_loops(code),
            ..Resources::default()
        }
    }

    /// Counts an instruction.
    pub(super) fn count(&mut self, code: &Linear, entry: &Entry<PReg>) {
        let inst = &entry.inst;
        let info = inst.info();
        inst.registers(info.reads | info.writes).for_each(|reg| {
            let most = match reg.class() {
                RegisterClass::Gpr => &mut self.registers,
                RegisterClass::Predicate => &mut self.predicates,
                RegisterClass::Uniform => &mut self.uniform,
            };
            *most = (*most).max(u32::from(reg.number()) + 1);
        });
        let effects = info.optype.info().effects;
        self.uses_barrier |= effects.contains(Effects::BARRIER);
        if effects.intersects(LEAVES)
            && !effects.contains(Effects::RETURN)
            && code.leaves_function(entry)
            && !matches!(code.target(entry), Target::Symbol(_))
        {
            self.calls_by_address = true;
        }
    }
}

/// Instruction counts of the loops without a loop inside.
fn innermost_loops(code: &Linear) -> Vec<u32> {
    // A loop has an edge that goes back.
    let goes_back = |block: usize| code.successors(block).any(|next| next <= block);
    if !(0..code.block_count()).any(goes_back) {
        return Vec::new();
    }
    let graph = code.graph();
    let loops = Loops::new(&graph, &Dominators::new(&graph, 0));
    let mut found: Vec<(usize, u32)> = (0..loops.all().len())
        .filter(|&l| loops.is_innermost(l))
        .map(|l| {
            let nodes = &loops.all()[l].nodes;
            let first = nodes.iter().copied().min().unwrap_or(0);
            (
                first,
                nodes.iter().map(|&b| code.positions(b).len() as u32).sum(),
            )
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|f| f.1).collect()
}
