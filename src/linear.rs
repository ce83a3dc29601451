//! Code in its final order: blocks one after the other, branches as instructions, targets still symbolic.
//!
//! The instructions stay where allocation left them; the branches that layout makes stand behind them all. The order is
//! one of ranges: a block is some instructions of allocation and the branches at its end.

use crate::analysis::graph::Graph;
use crate::isa::table::Effects;
use crate::isa::{PInst, PReg};
use crate::values::{self, ValueLocations};
use crate::variables::ScopeLocations;
use crate::vcode::print::origin;
use crate::vcode::{AttachmentId, Block, Entry, Frame, FunctionKind, SourceLine, SymbolUse};
use cranelift_codegen::entity::PrimaryMap;
use std::fmt;
use std::iter::Chain;
use std::ops::Range;
use thiserror::Error;

/// A function in its final order.
///
/// Control leaves a block only behind its last instruction, except that a guarded EXIT, and a TRAP, may stand anywhere.
/// A block whose last instruction does not always go elsewhere is followed by the next block. No block is empty.
#[derive(Clone, Debug)]
pub struct Linear {
    /// Symbol name.
    pub name: String,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Frame in local memory.
    pub frame: Frame,
    /// Instructions in no order, some perhaps in no block; label fields hold 0.
    pub(crate) insts: Vec<Entry<PReg>>,
    /// What the label of an instruction, or another field that is filled in later, refers to: by its attachment.
    pub(crate) targets: PrimaryMap<AttachmentId, Target>,
    /// Blocks in order; the first is the entry.
    pub(crate) blocks: Vec<LinearBlock>,
    /// Where values of the source are, if somebody wants to know; in numbers of instructions.
    pub(crate) values: Vec<ValueLocations>,
    /// Where variables of the source are, in the same way.
    pub(crate) scopes: Vec<ScopeLocations>,
}

/// A run of instructions that is entered at its start only: its parts of the instructions.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinearBlock {
    /// Number of instructions of all blocks before it.
    pub position: u32,
    /// Instructions of allocation.
    pub body: Range<u32>,
    /// The branches at its end.
    pub branches: Range<u32>,
    /// Lanes may be elsewhere while it runs.
    pub divergent: bool,
    /// The block of allocation whose instructions these are, if it is one and all of it.
    pub origin: Option<Block>,
    /// Where the way on from it comes from.
    pub line: SourceLine,
}

impl LinearBlock {
    /// Number of its instructions.
    pub fn len(&self) -> u32 {
        self.body.len() as u32 + self.branches.len() as u32
    }
}

/// Instructions of a block in order.
pub type Insts<'a> = Chain<std::slice::Iter<'a, Entry<PReg>>, std::slice::Iter<'a, Entry<PReg>>>;

/// What a field that is filled in after layout refers to. Blocks are positions in the order of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nothing.
    None,
    /// The start of a block of this function.
    Block(usize),
    /// One of several blocks, by a table of code offsets in the module's constants or data.
    Table {
        /// Byte offset of the table.
        offset: u32,
        /// By index; may repeat.
        targets: Vec<usize>,
    },
    /// The address of a symbol.
    Symbol(SymbolUse),
}

fn effects(inst: &PInst) -> Effects {
    inst.optype().info().effects
}

/// Whether control may go elsewhere than to the next instruction and not come back by itself (a call comes back).
pub fn is_transfer(inst: &PInst) -> bool {
    effects(inst).intersects(TRANSFER)
}

/// Whether control never reaches the next instruction.
pub fn ends_path(inst: &PInst) -> bool {
    is_transfer(inst) && inst.is_unguarded()
}

/// Why code in its final order is not legal; a mistake of layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinearError {
    /// A block without instructions.
    #[error("L{0} is empty")]
    Empty(usize),
    /// Control leaves the middle of a block.
    #[error("control leaves L{0} before its end")]
    LeavesEarly(usize),
    /// A target that is no block.
    #[error("L{from} goes to L{to}, which is not there")]
    NoBlock {
        /// The block that goes there.
        from: usize,
        /// The target.
        to: usize,
    },
}

const TRANSFER: Effects = Effects::BRANCH
    .union(Effects::RETURN)
    .union(Effects::EXIT)
    .union(Effects::TRAP);

impl Linear {
    /// Checks what the type promises.
    ///
    /// # Errors
    /// See [`LinearError`].
    pub fn verify(&self) -> Result<(), LinearError> {
        for block in 0..self.block_count() {
            let mut insts = self.insts(block);
            if insts.next_back().is_none() {
                return Err(LinearError::Empty(block));
            }
            let leaves = |entry: &Entry<PReg>| {
                let traps = effects(&entry.inst).contains(Effects::TRAP);
                ends_path(&entry.inst) && !traps || !self.branch_targets(entry).is_empty()
            };
            if insts.any(leaves) {
                return Err(LinearError::LeavesEarly(block));
            }
            if let Some(to) = self.successors(block).find(|&to| to >= self.block_count()) {
                return Err(LinearError::NoBlock { from: block, to });
            }
        }
        Ok(())
    }

    /// Number of blocks.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// The instructions of a block.
    pub fn insts(&self, block: usize) -> Insts<'_> {
        let LinearBlock { body, branches, .. } = &self.blocks[block];
        let part = |range: &Range<u32>| &self.insts[range.start as usize..range.end as usize];
        part(body).iter().chain(part(branches))
    }

    /// The block of allocation whose instructions a block has.
    pub(crate) fn origin(&self, block: usize) -> Option<Block> {
        self.blocks[block].origin
    }

    /// Where the way on from a block comes from.
    pub(crate) fn line(&self, block: usize) -> SourceLine {
        self.blocks[block].line
    }

    /// The instructions of allocation in a block, in its numbers.
    pub(crate) fn body(&self, block: usize) -> Range<u32> {
        self.blocks[block].body.clone()
    }

    /// The instructions in order, as runs of the list.
    pub fn runs(&self) -> impl Iterator<Item = &[Entry<PReg>]> {
        let ranges = (self.blocks.iter()).flat_map(|block| [&block.body, &block.branches]);
        ranges.map(|range| &self.insts[range.start as usize..range.end as usize])
    }

    /// Where the instructions of a block stand in the whole function.
    pub fn positions(&self, block: usize) -> Range<usize> {
        let LinearBlock { position, .. } = self.blocks[block];
        position as usize..(position + self.blocks[block].len()) as usize
    }

    /// The last instruction of a block.
    fn last(&self, block: usize) -> Option<&Entry<PReg>> {
        let LinearBlock { body, branches, .. } = &self.blocks[block];
        let range = if branches.is_empty() { body } else { branches };
        (!range.is_empty()).then(|| &self.insts[range.end as usize - 1])
    }

    /// What an instruction refers to.
    pub fn target(&self, entry: &Entry<PReg>) -> &Target {
        entry.attachment.map_or(&Target::None, |a| &self.targets[a])
    }

    /// Whether control may leave the function for other code at an instruction: calls, returns, branches to other
    /// functions.
    pub fn leaves_function(&self, entry: &Entry<PReg>) -> bool {
        let effects = effects(&entry.inst);
        effects.intersects(Effects::CALL.union(Effects::RETURN))
            || effects.contains(Effects::BRANCH)
                && matches!(self.target(entry), Target::None | Target::Symbol(_))
    }

    /// Whether lanes may be elsewhere while a block runs.
    pub fn is_divergent(&self, block: usize) -> bool {
        self.blocks[block].divergent
    }

    /// The block that the label of an instruction names, if it names one.
    pub fn label_block(&self, entry: &Entry<PReg>) -> Option<usize> {
        match self.target(entry) {
            Target::Block(block) => Some(*block),
            _ => None,
        }
    }

    /// The blocks of this function that an instruction may branch to.
    pub fn branch_targets(&self, entry: &Entry<PReg>) -> &[usize] {
        match self.target(entry) {
            Target::Block(b) if effects(&entry.inst).contains(Effects::BRANCH) => {
                std::slice::from_ref(b)
            }
            Target::Table { targets, .. } => targets,
            _ => &[],
        }
    }

    /// Blocks that may run after a block.
    pub fn successors(&self, block: usize) -> impl Iterator<Item = usize> + '_ {
        let last = self.last(block);
        let falls = last.is_none_or(|entry| !ends_path(&entry.inst));
        let targets = last.map_or(&[][..], |entry| self.branch_targets(entry));
        let next = falls.then_some(block + 1);
        next.into_iter().chain(targets.iter().copied())
    }

    /// The control flow between the blocks.
    pub fn graph(&self) -> Graph {
        let edges =
            (0..self.block_count()).flat_map(|b| self.successors(b).map(move |next| (b, next)));
        Graph::from_edges(self.block_count(), edges)
    }

    /// Number of instructions.
    pub fn len(&self) -> usize {
        let last = self.blocks.last();
        last.map_or(0, |block| (block.position + block.len()) as usize)
    }

    /// The list of blocks, empty, to be used again.
    pub(crate) fn into_blocks(mut self) -> Vec<LinearBlock> {
        self.blocks.clear();
        self.blocks
    }

    /// Puts other instructions in the place of all; `lens` are the numbers of those of each block, and `places` says
    /// where the old ones are among them.
    pub fn replace_insts(&mut self, insts: Vec<Entry<PReg>>, lens: &[u32], places: &[u32]) {
        self.insts = insts;
        // Behind the instruction before: what was put in between belongs to what follows.
        let to = |position: u32| match position.checked_sub(1) {
            Some(before) => places[before as usize] + 1,
            None => 0,
        };
        values::ranges::moved(&mut self.values, to);
        for scope in &mut self.scopes {
            scope.move_ranges(to);
        }
        let mut start = 0;
        for (block, len) in self.blocks.iter_mut().zip(lens) {
            *block = LinearBlock {
                position: start,
                body: start..start + len,
                branches: 0..0,
                divergent: block.divergent,
                origin: block.origin,
                line: block.line,
            };
            start += len;
        }
    }
}

impl fmt::Display for Linear {
    /// With `#` lines of instructions begin with the numbers of their places in the source.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {{", self.name)?;
        for block in 0..self.block_count() {
            writeln!(f, "L{block}:")?;
            for entry in self.insts(block) {
                origin(f, entry.line)?;
                write!(f, "    {}", entry.inst)?;
                match self.target(entry) {
                    Target::None => {}
                    Target::Block(b) => write!(f, " // L{b}")?,
                    Target::Table { offset, targets } => {
                        write!(f, " // table {offset:#x} {targets:?}")?
                    }
                    Target::Symbol(s) => write!(f, " // {}", s.print(&entry.inst))?,
                }
                writeln!(f)?;
            }
        }
        writeln!(f, "}}")
    }
}
