//! From blocks with terminators to instructions in their final order.
//!
//! Takes allocated code and makes [`Linear`]: empty blocks are threaded away, blocks ordered ([`super::order`]), and each terminator becomes
//! the branches that the order needs. A branch to a block that only exits or traps becomes a guarded EXIT or TRAP, a jump to a block that only
//! returns becomes RET. Jumps carry no arguments any more: allocation has turned them into moves.

use super::linear::{Linear, LinearBlock, LinearInst, Target};
use super::order::{BlockTraits, block_order};
use crate::analysis::graph::Graph;
use crate::isa::{PInst, PReg, Role, build};
use crate::vcode::{
    Attachment, Block, Callee, Entry, Guard, SourceLine, SymbolKind, SymbolUse, Terminator, VCode,
};
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use thiserror::Error;

/// Why code cannot be laid out; both are mistakes of an earlier pass.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// A jump table without code that reads it.
    #[error("{function}: {block} has a jump table without a place in the constants")]
    NoTable {
        /// Function.
        function: String,
        /// Block.
        block: String,
    },
    /// A label or symbol for a field that the instruction does not have.
    #[error("{function}: {instruction} has no field {field}")]
    NoField {
        /// Function.
        function: String,
        /// Its form.
        instruction: String,
        /// The field.
        field: String,
    },
}

/// Where an edge goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Destination {
    Block(Block),
    /// To a block that holds nothing but this terminator.
    Exit(Block),
    Trap(Block, u8),
    Return(Block, [PReg; 2]),
}

/// Lays out a function.
///
/// # Errors
/// See [`LayoutError`].
pub fn layout(code: &VCode<PReg>) -> Result<Linear, LayoutError> {
    let layout = Layout {
        code,
        threads: thread(code),
    };
    let graph = layout.graph();
    let traits: Vec<BlockTraits> = code
        .blocks
        .values()
        .map(|b| BlockTraits {
            cold: b.cold,
            jumps: matches!(b.terminator, Terminator::Jump { .. }),
        })
        .collect();
    let order: Vec<Block> = block_order(&graph, &traits)
        .into_iter()
        .map(Block::new)
        .collect();
    layout.linearize(&order)
}

/// For each block, where control gets to from its start without doing anything. All blocks of an empty endless loop get to the same one.
fn thread(code: &VCode<PReg>) -> PrimaryMap<Block, Block> {
    let next = |block: Block| match code.blocks[block].terminator {
        Terminator::Jump { target, .. } if code.block_insts(block).is_empty() => Some(target),
        _ => None,
    };
    // A block is its own end while that is not known: then the path has come round to it.
    let mut ends: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
    let mut path = Vec::new();
    for start in code.blocks.keys() {
        let mut block = start;
        while ends[block].is_none()
            && let Some(target) = next(block)
        {
            ends[block] = Some(block);
            path.push(block);
            block = target;
        }
        let end = match path.iter().position(|&b| b == block) {
            Some(first) => path[first..].iter().copied().min().expect("the block"),
            None => ends[block].unwrap_or(block),
        };
        ends[block] = Some(end);
        path.drain(..).for_each(|b| ends[b] = Some(end));
    }
    code.blocks
        .keys()
        .map(|block| ends[block].unwrap_or(block))
        .collect()
}

struct Layout<'a> {
    code: &'a VCode<PReg>,
    threads: PrimaryMap<Block, Block>,
}

impl Layout<'_> {
    fn destination(&self, edge: Block) -> Destination {
        let block = self.threads[edge];
        if !self.code.block_insts(block).is_empty() {
            return Destination::Block(block);
        }
        match &self.code.blocks[block].terminator {
            Terminator::Exit => Destination::Exit(block),
            Terminator::Trap(trap) => Destination::Trap(block, *trap),
            Terminator::Return { address, .. } => Destination::Return(block, *address),
            _ => Destination::Block(block),
        }
    }

    /// Where a side of a two-way branch goes: a return stays a block, because everything is waited for before it.
    fn side(&self, edge: Block) -> Destination {
        match self.destination(edge) {
            Destination::Return(block, _) => Destination::Block(block),
            other => other,
        }
    }

    /// Edges between the blocks that will be laid out; the successor of a branch that should follow directly comes last.
    fn graph(&self) -> Graph {
        let mut graph = Graph::new(self.code.blocks.len());
        for (block, data) in self.code.blocks.iter() {
            let mut edge = |destination| {
                if let Destination::Block(target) = destination {
                    graph.add_edge(block.index(), target.index());
                }
            };
            match &data.terminator {
                Terminator::Jump { target, .. } => edge(self.destination(*target)),
                Terminator::Branch {
                    taken, fallthrough, ..
                } => {
                    edge(self.side(*taken));
                    edge(self.side(*fallthrough));
                }
                Terminator::Table { targets, .. } => targets
                    .iter()
                    .for_each(|&t| edge(Destination::Block(self.threads[t]))),
                _ => {}
            }
        }
        graph
    }

    fn linearize(&self, order: &[Block]) -> Result<Linear, LayoutError> {
        let mut starts: SecondaryMap<Block, usize> = SecondaryMap::with_default(usize::MAX);
        let mut blocks: Vec<Pending> = Vec::new();
        for (i, &block) in order.iter().enumerate() {
            starts[block] = blocks.len();
            let next = order.get(i + 1).copied();
            let mut out = Emitter {
                blocks: &mut blocks,
                line: self.code.blocks[block].line,
            };
            out.blocks.push(Vec::new());
            for entry in self.code.block_insts(block) {
                out.push_entry(self.instruction(entry)?);
            }
            self.terminator(block, next, &mut out)?;
        }
        // A block without instructions is at the place of the one behind it.
        let mut place = Vec::with_capacity(blocks.len());
        let mut kept = 0;
        for block in &blocks {
            place.push(kept);
            kept += usize::from(!block.is_empty());
        }
        let resolve = |b: Block| place[starts[self.threads[b]]];
        let blocks = blocks
            .into_iter()
            .filter(|b| !b.is_empty())
            .map(|b| LinearBlock {
                insts: b.into_iter().map(|i| i.resolve(&resolve)).collect(),
            })
            .collect();
        Ok(Linear {
            name: self.code.name.clone(),
            kind: self.code.kind.clone(),
            frame: self.code.frame.clone(),
            blocks,
        })
    }

    /// An instruction of a block with what is attached to it.
    fn instruction(&self, entry: &Entry<PReg>) -> Result<PendingInst, LayoutError> {
        let no_field = |field: &str| LayoutError::NoField {
            function: self.code.name.clone(),
            instruction: entry.inst.info().name.to_string(),
            field: field.to_string(),
        };
        let target = match entry.attachment.map(|a| &self.code.attachments[a]) {
            Some(Attachment::Symbol(symbol)) => {
                if entry.inst.number_operand(symbol.role).is_none() {
                    return Err(no_field(&format!("{:?}", symbol.role)));
                }
                PendingTarget::Symbol(symbol.clone())
            }
            Some(Attachment::Label(block)) => PendingTarget::Block(*block),
            Some(Attachment::Call(call)) => match &call.callee {
                Some(callee) => PendingTarget::Symbol(relative(
                    entry.inst.label().ok_or_else(|| no_field("Label"))?.role,
                    callee,
                )),
                None => PendingTarget::None,
            },
            Some(Attachment::Else(_)) | None => PendingTarget::None,
        };
        if matches!(target, PendingTarget::Block(_)) && entry.inst.label().is_none() {
            return Err(no_field("Label"));
        }
        Ok(PendingInst {
            inst: entry.inst,
            line: entry.line,
            target,
        })
    }

    fn terminator(
        &self,
        block: Block,
        next: Option<Block>,
        out: &mut Emitter<'_>,
    ) -> Result<(), LayoutError> {
        match &self.code.blocks[block].terminator {
            Terminator::Jump { target, .. } => self.jump(self.destination(*target), next, out),
            Terminator::Branch {
                guard,
                taken,
                fallthrough,
                ..
            } => {
                let (taken, fallthrough) = (self.side(*taken), self.side(*fallthrough));
                let inverted = Guard {
                    reg: guard.reg,
                    negated: !guard.negated,
                };
                match (taken, fallthrough) {
                    (t, f) if t == f => self.jump(f, next, out),
                    (Destination::Block(t), f)
                        if Some(t) == next || !matches!(f, Destination::Block(_)) =>
                    {
                        self.branch(inverted, f, out);
                        self.jump(taken, next, out);
                    }
                    (t, f) => {
                        self.branch(*guard, t, out);
                        self.jump(f, next, out);
                    }
                }
            }
            Terminator::Table {
                index,
                table,
                targets,
                ..
            } => {
                let offset = table.ok_or_else(|| LayoutError::NoTable {
                    function: self.code.name.clone(),
                    block: block.to_string(),
                })?;
                let target = PendingTarget::Table(offset, targets.clone());
                out.push(build::brx_rel_r(*index), target);
            }
            Terminator::Return { address, .. } => {
                out.push(build::ret_r(*address), PendingTarget::None)
            }
            Terminator::TailCall {
                callee: Callee::Symbol(name),
                ..
            } => {
                let inst = build::bra_x();
                let label = inst.label().expect("BRA has a label");
                out.push(inst, PendingTarget::Symbol(relative(label.role, name)));
            }
            Terminator::TailCall {
                callee: Callee::Registers(address),
                ..
            } => {
                out.push(build::brx_r(*address), PendingTarget::None);
            }
            Terminator::Exit => out.push(build::exit_x(), PendingTarget::None),
            Terminator::Trap(code) => out.push(build::trap_x(*code), PendingTarget::None),
        }
        Ok(())
    }

    /// Goes to `destination` always.
    fn jump(&self, destination: Destination, next: Option<Block>, out: &mut Emitter<'_>) {
        match destination {
            Destination::Block(target) if Some(target) == next => {}
            Destination::Block(target) => out.push(build::bra_x(), PendingTarget::Block(target)),
            Destination::Exit(at) => out.push_from(self.code.blocks[at].line, build::exit_x()),
            Destination::Trap(at, code) => {
                out.push_from(self.code.blocks[at].line, build::trap_x(code))
            }
            Destination::Return(at, address) => {
                out.push_from(self.code.blocks[at].line, build::ret_r(address))
            }
        }
    }

    /// Goes to `destination` if the guard holds.
    fn branch(&self, guard: Guard<PReg>, destination: Destination, out: &mut Emitter<'_>) {
        let guarded = |mut inst: PInst| {
            inst.set_guard(Some(guard.reg), guard.negated);
            inst
        };
        match destination {
            Destination::Block(target) | Destination::Return(target, _) => {
                out.push(guarded(build::bra_x()), PendingTarget::Block(target));
                out.blocks.push(Vec::new());
            }
            Destination::Exit(at) => {
                out.push_from(self.code.blocks[at].line, guarded(build::exit_x()))
            }
            Destination::Trap(at, code) => {
                out.push_from(self.code.blocks[at].line, guarded(build::trap_x(code)))
            }
        }
    }
}

/// [`LinearInst`] while targets are still blocks of the [`VCode`].
struct PendingInst {
    inst: PInst,
    line: SourceLine,
    target: PendingTarget,
}

enum PendingTarget {
    None,
    Block(Block),
    Table(u32, Vec<Block>),
    Symbol(SymbolUse),
}

type Pending = Vec<PendingInst>;

impl PendingInst {
    fn resolve(self, place: &impl Fn(Block) -> usize) -> LinearInst {
        let target = match self.target {
            PendingTarget::None => Target::None,
            PendingTarget::Block(b) => Target::Block(place(b)),
            PendingTarget::Table(offset, targets) => Target::Table {
                offset,
                targets: targets.into_iter().map(place).collect(),
            },
            PendingTarget::Symbol(symbol) => Target::Symbol(symbol),
        };
        LinearInst {
            inst: self.inst,
            line: self.line,
            target,
        }
    }
}

/// Appends to the last block.
struct Emitter<'a> {
    blocks: &'a mut Vec<Pending>,
    /// Place of the terminator.
    line: SourceLine,
}

impl Emitter<'_> {
    fn push_entry(&mut self, inst: PendingInst) {
        self.blocks
            .last_mut()
            .expect("a block was begun")
            .push(inst);
    }

    fn push(&mut self, inst: PInst, target: PendingTarget) {
        self.push_entry(PendingInst {
            inst,
            line: self.line,
            target,
        });
    }

    fn push_from(&mut self, line: SourceLine, inst: PInst) {
        self.push_entry(PendingInst {
            inst,
            line,
            target: PendingTarget::None,
        });
    }
}

fn relative(role: Role, name: &str) -> SymbolUse {
    SymbolUse {
        role,
        kind: SymbolKind::Relative,
        name: name.to_string(),
        addend: 0,
    }
}
