//! From blocks with terminators to instructions in their final order.
//!
//! Takes allocated code and makes [`Linear`]: empty blocks are threaded away, of short blocks that do the same one is
//! left, blocks ordered ([`super::order`]), and each terminator becomes the branches that the order needs. A branch to
//! a block that only exits or traps becomes a guarded EXIT or TRAP, unless that would be one branch more and nothing
//! depends on who goes first; a jump to a block that only returns becomes RET. Jumps carry no arguments any more:
//! allocation has turned them into moves. Instructions are not moved: the branches are put behind those of allocation.

use super::order::{BlockTraits, block_order};
use crate::analysis::graph::Graph;
use crate::isa::table::Effects;
use crate::isa::{PInst, PReg, Register, RegisterClass, Role, build};
use crate::linear::{Linear, LinearBlock, Target};
use crate::vcode::{
    Attachment, AttachmentId, Block, BlockData, Callee, Entry, Guard, SourceLine, SymbolKind,
    SymbolUse, Terminator, VCode,
};
use cranelift_codegen::entity::{EntityRef, EntitySet, PrimaryMap};
use hashbrown::HashMap;
use std::ops::Range;
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

/// Most instructions of a block that is joined with another one (*assumed*: edges that pass constants have fewer).
const TWIN: usize = 8;

/// Where an edge goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Destination {
    Block(Block),
    /// To a block that holds nothing but this terminator.
    Exit(Block),
    Trap(Block, u8),
    Return(Block, [PReg; 2]),
}

impl Destination {
    /// True if lanes that go there are gone.
    fn ends_lanes(self) -> bool {
        matches!(self, Destination::Exit(_) | Destination::Trap(..))
    }
}

/// Memory that is kept between functions.
#[derive(Debug, Default)]
pub(super) struct LayoutBuffers {
    /// For each block, where control gets to from its start without doing anything.
    threads: Vec<Block>,
    /// [`LayoutBuffers::threads`] as far as it is known.
    ends: Vec<Option<Block>>,
    path: Vec<Block>,
    /// Blocks that stand for others as well.
    shared: EntitySet<Block>,
    /// Blocks from whose start a write of a uniform register may be come to. Of a function in which it does not matter
    /// there is none.
    uniform_ahead: EntitySet<Block>,
    /// Blocks whose predecessors have not been looked at for that.
    work: Vec<Block>,
    traits: Vec<BlockTraits>,
    /// By block of the [`VCode`] its place in the order.
    places: Vec<usize>,
    /// Empty: for the blocks of the next function.
    pub blocks: Vec<LinearBlock>,
}

/// Lays out a function.
///
/// # Errors
/// See [`LayoutError`].
pub(super) fn layout(
    mut code: VCode<PReg>,
    scratch: &mut LayoutBuffers,
) -> Result<Linear, LayoutError> {
    scratch.thread(&code);
    scratch.join_twins(&code);
    scratch.find_uniform_writes(&code);
    let targets = code.attachments.iter().map(|_| Target::None).collect();
    let mut out = Emitter {
        insts: std::mem::take(&mut code.insts),
        targets,
        blocks: std::mem::take(&mut scratch.blocks),
        line: SourceLine::default(),
    };
    let attachments = std::mem::take(&mut code.attachments);
    scratch.places.clear();
    scratch.places.resize(code.blocks.len(), usize::MAX);
    let layout = Layout {
        code: &code,
        threads: &scratch.threads,
        uniform_ahead: &scratch.uniform_ahead,
    };
    let order = layout.order(&mut scratch.traits);
    for (i, &block) in order.iter().enumerate() {
        let data = &code.blocks[block];
        let origin = Some(block).filter(|block| !scratch.shared.contains(*block));
        scratch.places[block.index()] = out.begin(data, origin);
        if !attachments.is_empty() {
            layout.attached(data.insts.clone(), &attachments, &mut out)?;
        }
        layout.terminator(block, order.get(i + 1).copied(), &mut out)?;
    }
    let place = |block: usize| scratch.places[scratch.threads[block].index()];
    Ok(Linear {
        blocks: out.numbered_blocks(),
        targets: out.resolved_targets(place),
        insts: out.insts,
        name: code.name,
        kind: code.kind,
        frame: code.frame,
        values: Vec::new(),
        scopes: Vec::new(),
    })
}

impl LayoutBuffers {
    /// Of blocks that compute the same in the same registers and go on to the same block one is left: edges that pass
    /// the same values. What lanes do together stays where it is.
    fn join_twins(&mut self, code: &VCode<PReg>) {
        self.shared.clear();
        let target = |block: Block| match code.blocks[block].terminator {
            Terminator::Jump { target, .. } => Some(self.threads[target.index()]),
            _ => None,
        };
        let computes = |entry: &Entry<PReg>| {
            let effects = entry.inst.optype().info().effects;
            entry.attachment.is_none() && !effects.intersects(Effects::KEPT.union(Effects::LOAD))
        };
        let is_short = |block: &Block| {
            let insts = code.block_insts(*block);
            (1..=TWIN).contains(&insts.len()) && insts.iter().all(computes)
        };
        let candidates = || code.blocks.keys().filter(is_short);
        if candidates()
            .filter(|&block| target(block).is_some())
            .take(2)
            .count()
            < 2
        {
            return;
        }
        let mut known: HashMap<(Block, usize, PInst), Block> = HashMap::new();
        let mut twins: HashMap<Block, Block> = HashMap::new();
        for block in candidates() {
            let Some(target) = target(block) else {
                continue;
            };
            let insts = code.block_insts(block);
            let first = *known
                .entry((target, insts.len(), insts[0].inst))
                .or_insert(block);
            let mut both = insts.iter().zip(code.block_insts(first));
            let place = |block: Block| (code.blocks[block].loop_depth, code.blocks[block].cold);
            let is_twin = first != block && place(first) == place(block);
            if is_twin && both.all(|(a, b)| a.inst == b.inst) {
                twins.insert(block, first);
                self.shared.insert(first);
            }
        }
        for end in &mut self.threads {
            *end = twins.get(end).copied().unwrap_or(*end);
        }
    }

    /// Finds what leads to writes of uniform registers, where lanes part of which some only end. Who called this
    /// function may write some behind it.
    fn find_uniform_writes(&mut self, code: &VCode<PReg>) {
        self.uniform_ahead.clear();
        let ends = |edge: Block| {
            let data = &code.blocks[self.threads[edge.index()]];
            data.insts.is_empty()
                && matches!(data.terminator, Terminator::Exit | Terminator::Trap(_))
        };
        let parts = |terminator: &Terminator<PReg>| match terminator {
            Terminator::Branch {
                taken,
                fallthrough,
                divergent: true,
                ..
            } => ends(*taken) || ends(*fallthrough),
            _ => false,
        };
        if !code.blocks.values().any(|data| parts(&data.terminator)) {
            return;
        }
        let writes = |entry: &Entry<PReg>| {
            let effects = entry.inst.optype().info().effects;
            effects.intersects(Effects::CALL)
                || entry
                    .inst
                    .definitions()
                    .any(|reg| reg.class() == RegisterClass::Uniform)
        };
        for (block, data) in code.blocks.iter() {
            let returns = matches!(
                data.terminator,
                Terminator::Return { .. } | Terminator::TailCall { .. }
            );
            if returns || code.block_insts(block).iter().any(writes) {
                self.uniform_ahead.insert(block);
                self.work.push(block);
            }
        }
        let predecessors = code.predecessors();
        while let Some(block) = self.work.pop() {
            for &before in &predecessors[block] {
                if self.uniform_ahead.insert(before) {
                    self.work.push(before);
                }
            }
        }
    }

    /// Finds where control gets to from each block. All blocks of an empty endless loop get to the same one.
    fn thread(&mut self, code: &VCode<PReg>) {
        let LayoutBuffers {
            threads,
            ends,
            path,
            ..
        } = self;
        let next = |block: Block| match code.blocks[block].terminator {
            Terminator::Jump { target, .. } if code.blocks[block].insts.is_empty() => Some(target),
            _ => None,
        };
        threads.clear();
        threads.extend(code.blocks.keys());
        if !code.blocks.keys().any(|block| next(block).is_some()) {
            return;
        }
        // A block is its own end while that is not known: then the path has come round to it.
        ends.clear();
        ends.resize(code.blocks.len(), None);
        for start in code.blocks.keys() {
            let mut block = start;
            while ends[block.index()].is_none()
                && let Some(target) = next(block)
            {
                ends[block.index()] = Some(block);
                path.push(block);
                block = target;
            }
            let end = match path.iter().position(|&b| b == block) {
                Some(first) => path[first..].iter().copied().min().expect("the block"),
                None => ends[block.index()].unwrap_or(block),
            };
            ends[block.index()] = Some(end);
            path.drain(..).for_each(|b| ends[b.index()] = Some(end));
        }
        for (thread, end) in threads.iter_mut().zip(ends) {
            *thread = end.unwrap_or(*thread);
        }
    }
}

struct Layout<'a> {
    /// The function; its instructions have gone to the [`Emitter`].
    code: &'a VCode<PReg>,
    threads: &'a [Block],
    uniform_ahead: &'a EntitySet<Block>,
}

impl Layout<'_> {
    fn destination(&self, edge: Block) -> Destination {
        let block = self.threads[edge.index()];
        if !self.code.blocks[block].insts.is_empty() {
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

    /// True if lanes that part at a branch have to be gone before the others come to `other`: those are all that have
    /// not ended, and write uniform registers from there on. Nothing but a guarded EXIT or TRAP sees to that.
    fn ends_before(&self, end: Destination, other: Block) -> bool {
        end.ends_lanes() && self.uniform_ahead.contains(other)
    }

    /// Edges between the blocks that will be laid out; the successor of a branch that should follow directly comes
    /// last.
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
                    .for_each(|t| edge(Destination::Block(self.threads[t.index()]))),
                _ => {}
            }
        }
        graph
    }

    /// The blocks that are laid out, in order.
    fn order(&self, traits: &mut Vec<BlockTraits>) -> Vec<Block> {
        if self.code.blocks.len() == 1 {
            return vec![self.code.entry_block()];
        }
        traits.clear();
        traits.extend(self.code.blocks.values().map(|block| BlockTraits {
            cold: block.cold,
            jumps: matches!(block.terminator, Terminator::Jump { .. }),
        }));
        let order = block_order(&self.graph(), traits).into_iter();
        order.map(Block::new).collect()
    }

    /// Turns what is attached to instructions of a block into what their fields refer to.
    fn attached(
        &self,
        range: Range<u32>,
        attachments: &PrimaryMap<AttachmentId, Attachment<PReg>>,
        out: &mut Emitter,
    ) -> Result<(), LayoutError> {
        for entry in &out.insts[range.start as usize..range.end as usize] {
            let Some(id) = entry.attachment else { continue };
            let no_field = |field: &str| LayoutError::NoField {
                function: self.code.name.clone(),
                instruction: entry.inst.info().name.to_string(),
                field: field.to_string(),
            };
            let label = || entry.inst.label().ok_or_else(|| no_field("Label"));
            let target = match &attachments[id] {
                Attachment::Symbol(symbol) => {
                    if entry.inst.number_operand(symbol.role).is_none() {
                        return Err(no_field(&format!("{:?}", symbol.role)));
                    }
                    Target::Symbol(symbol.clone())
                }
                Attachment::Label(block) => {
                    label()?;
                    Target::Block(block.index())
                }
                Attachment::Call(call) => match &call.callee {
                    Some(callee) => Target::Symbol(relative(label()?.role, callee)),
                    None => Target::None,
                },
                Attachment::Else(_) | Attachment::Pack(_) | Attachment::Bit(_) => Target::None,
            };
            out.targets[id] = target;
        }
        Ok(())
    }

    fn terminator(
        &self,
        block: Block,
        next: Option<Block>,
        out: &mut Emitter,
    ) -> Result<(), LayoutError> {
        match &self.code.blocks[block].terminator {
            Terminator::Jump { target, .. } => self.jump(self.destination(*target), next, out),
            Terminator::Branch {
                guard,
                taken,
                fallthrough,
                divergent,
                ..
            } => {
                let sides = (self.side(*taken), self.side(*fallthrough));
                self.two_ways(*guard, sides, *divergent, next, out);
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
                let targets = targets.iter().map(|t| t.index()).collect();
                out.push(build::brx_rel_r(*index), Target::Table { offset, targets });
            }
            Terminator::Return { address, .. } => out.push(build::ret_r(*address), Target::None),
            Terminator::TailCall {
                callee: Callee::Symbol(name),
                ..
            } => {
                let inst = build::bra_x();
                let label = inst.label().expect("BRA has a label");
                out.push(inst, Target::Symbol(relative(label.role, name)));
            }
            Terminator::TailCall {
                callee: Callee::Registers(address),
                ..
            } => {
                out.push(build::brx_r(*address), Target::None);
            }
            Terminator::Exit => out.push(build::exit_x(), Target::None),
            Terminator::Trap(code) => out.push(build::trap_x(*code), Target::None),
        }
        Ok(())
    }

    /// Goes to the first side if the guard holds, else to the second.
    fn two_ways(
        &self,
        guard: Guard<PReg>,
        sides: (Destination, Destination),
        divergent: bool,
        next: Option<Block>,
        out: &mut Emitter,
    ) {
        let inverted = |guard: Guard<PReg>| Guard {
            reg: guard.reg,
            negated: !guard.negated,
        };
        // The branch comes first, and the end of a kernel behind it: the other way round there would be another branch
        // to be gone through, which a loop pays in each turn.
        let (guard, first, second) = match sides {
            (taken, fallthrough) if taken == fallthrough => return self.jump(taken, next, out),
            (end, other) if end.ends_lanes() && !other.ends_lanes() => {
                (inverted(guard), other, end)
            }
            (taken, fallthrough) => (guard, taken, fallthrough),
        };
        let second_first = matches!(first, Destination::Block(first) if Some(first) == next
            || divergent && self.ends_before(second, first));
        if second_first {
            self.branch(inverted(guard), second, out);
            self.jump(first, next, out);
        } else {
            self.branch(guard, first, out);
            self.jump(second, next, out);
        }
    }

    /// Goes to `destination` always.
    fn jump(&self, destination: Destination, next: Option<Block>, out: &mut Emitter) {
        match destination {
            Destination::Block(target) if Some(target) == next => {}
            Destination::Block(target) => out.push(build::bra_x(), Target::Block(target.index())),
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
    fn branch(&self, guard: Guard<PReg>, destination: Destination, out: &mut Emitter) {
        let guarded = |mut inst: PInst| {
            inst.set_guard(Some(guard.reg), guard.negated);
            inst
        };
        match destination {
            Destination::Block(target) | Destination::Return(target, _) => {
                out.push(guarded(build::bra_x()), Target::Block(target.index()));
                let divergent = out.blocks.last().is_some_and(|block| block.divergent);
                out.blocks.push(LinearBlock {
                    divergent,
                    ..LinearBlock::default()
                });
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

/// Collects blocks and their branches. Targets are blocks of the [`VCode`] as yet.
struct Emitter {
    insts: Vec<Entry<PReg>>,
    targets: PrimaryMap<AttachmentId, Target>,
    blocks: Vec<LinearBlock>,
    /// Place of the terminator.
    line: SourceLine,
}

impl Emitter {
    /// Begins with a block; its place in the order. A block without instructions gives its place to the one behind it.
    fn begin(&mut self, data: &BlockData<PReg>, origin: Option<Block>) -> usize {
        self.line = data.line;
        if self.blocks.last().is_none_or(|last| last.len() > 0) {
            self.blocks.push(LinearBlock::default());
        }
        let place = self.blocks.len() - 1;
        self.blocks[place].body = data.insts.clone();
        self.blocks[place].divergent = data.divergent;
        self.blocks[place].origin = origin;
        self.blocks[place].line = data.line;
        place
    }

    /// Appends to the last block.
    fn push(&mut self, inst: PInst, target: Target) {
        let attachment = (target != Target::None).then(|| self.targets.push(target));
        let line = self.line;
        self.push_entry(Entry::new(inst, line).with(attachment));
    }

    /// Appends an instruction of another block's terminator.
    fn push_from(&mut self, line: SourceLine, inst: PInst) {
        self.push_entry(Entry::new(inst, line));
    }

    fn push_entry(&mut self, entry: Entry<PReg>) {
        let at = self.insts.len() as u32;
        self.insts.push(entry);
        let block = self.blocks.last_mut().expect("a block was begun");
        if Range::is_empty(&block.branches) {
            block.branches.start = at;
        }
        block.branches.end = at + 1;
    }

    /// The blocks, with their positions.
    fn numbered_blocks(&mut self) -> Vec<LinearBlock> {
        let mut blocks = std::mem::take(&mut self.blocks);
        let mut position = 0;
        for block in &mut blocks {
            block.position = position;
            position += block.len();
        }
        blocks
    }

    /// The targets, with blocks as places in the order.
    fn resolved_targets(
        &mut self,
        place: impl Fn(usize) -> usize,
    ) -> PrimaryMap<AttachmentId, Target> {
        let mut targets = std::mem::take(&mut self.targets);
        for target in targets.values_mut() {
            match target {
                Target::Block(block) => *block = place(*block),
                Target::Table { targets, .. } => targets.iter_mut().for_each(|t| *t = place(*t)),
                Target::None | Target::Symbol(_) => {}
            }
        }
        targets
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
