//! Code in its final order: blocks one after the other, branches as instructions, targets still symbolic.

use crate::analysis::graph::Graph;
use crate::isa::PInst;
use crate::isa::table::Effects;
use crate::vcode::{Frame, FunctionKind, SourceLine, SymbolUse};
use smallvec::SmallVec;
use std::fmt;
use thiserror::Error;

/// A function in its final order.
///
/// Control leaves a block only behind its last instruction, except that a guarded EXIT, and a TRAP, may stand anywhere. A block whose last
/// instruction does not always go elsewhere is followed by the next block.
#[derive(Clone, Debug)]
pub struct Linear {
    /// Symbol name.
    pub name: String,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Frame in local memory.
    pub frame: Frame,
    /// Blocks in order; the first is the entry. None is empty.
    pub blocks: Vec<LinearBlock>,
}

/// A run of instructions that is entered at its start only.
#[derive(Clone, Debug, Default)]
pub struct LinearBlock {
    /// Its instructions.
    pub insts: Vec<LinearInst>,
}

/// An instruction at its place.
#[derive(Clone, Debug)]
pub struct LinearInst {
    /// The instruction; a label field holds 0.
    pub inst: PInst,
    /// Place in the source.
    pub line: SourceLine,
    /// What its label, or another field that is filled in later, refers to.
    pub target: Target,
}

/// What a field that is filled in after layout refers to. Blocks are positions in [`Linear::blocks`].
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

impl LinearInst {
    /// An instruction without a target.
    pub fn new(inst: PInst, line: SourceLine) -> Self {
        LinearInst {
            inst,
            line,
            target: Target::None,
        }
    }

    fn effects(&self) -> Effects {
        self.inst.optype().info().effects
    }

    /// Whether control may go elsewhere than to the next instruction and not come back by itself (a call comes back).
    pub fn is_transfer(&self) -> bool {
        self.effects().intersects(TRANSFER)
    }

    /// Whether control never reaches the next instruction.
    pub fn ends_path(&self) -> bool {
        self.is_transfer() && self.inst.is_unguarded()
    }

    /// Whether control may leave the function for other code: calls, returns, branches to other functions.
    pub fn leaves_function(&self) -> bool {
        self.effects()
            .intersects(Effects::CALL.union(Effects::RETURN))
            || self.effects().contains(Effects::BRANCH)
                && matches!(self.target, Target::None | Target::Symbol(_))
    }

    /// The blocks of this function that it may branch to.
    pub fn branch_targets(&self) -> &[usize] {
        match &self.target {
            Target::Block(b) if self.effects().contains(Effects::BRANCH) => std::slice::from_ref(b),
            Target::Table { targets, .. } => targets,
            _ => &[],
        }
    }
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
        for (index, block) in self.blocks.iter().enumerate() {
            let Some((_, before)) = block.insts.split_last() else {
                return Err(LinearError::Empty(index));
            };
            let leaves = |i: &LinearInst| {
                let traps = i.effects().contains(Effects::TRAP);
                i.ends_path() && !traps || !i.branch_targets().is_empty()
            };
            if before.iter().any(leaves) {
                return Err(LinearError::LeavesEarly(index));
            }
            let missing = |to: &usize| *to >= self.blocks.len();
            if let Some(to) = self.successors(index).into_iter().find(missing) {
                return Err(LinearError::NoBlock { from: index, to });
            }
        }
        Ok(())
    }

    /// Blocks that may run after block `index`.
    pub fn successors(&self, index: usize) -> SmallVec<[usize; 2]> {
        let block = &self.blocks[index];
        let mut list = SmallVec::new();
        let last = block.insts.last();
        if last.is_none_or(|l| !l.ends_path()) {
            list.push(index + 1);
        }
        list.extend(
            last.into_iter()
                .flat_map(|l| l.branch_targets().iter().copied()),
        );
        list
    }

    /// The control flow between the blocks.
    pub fn graph(&self) -> Graph {
        let edges = (0..self.blocks.len())
            .flat_map(|b| self.successors(b).into_iter().map(move |s| (b, s)));
        Graph::from_edges(self.blocks.len(), edges.collect::<Vec<_>>())
    }

    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(|b| b.insts.len()).sum()
    }

    /// Whether it has no instruction.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for Linear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {{", self.name)?;
        for (index, block) in self.blocks.iter().enumerate() {
            writeln!(f, "L{index}:")?;
            for i in &block.insts {
                write!(f, "    {}", i.inst)?;
                match &i.target {
                    Target::None => {}
                    Target::Block(b) => write!(f, " // L{b}")?,
                    Target::Table { offset, targets } => {
                        write!(f, " // table {offset:#x} {targets:?}")?
                    }
                    Target::Symbol(s) => write!(f, " // {}", s.print(&i.inst))?,
                }
                writeln!(f)?;
            }
        }
        writeln!(f, "}}")
    }
}
