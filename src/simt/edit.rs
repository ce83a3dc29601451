//! Editing a function block by block.

use crate::analysis::graph::Graph;
use crate::isa::Register;
use crate::vcode::{Attachment, AttachmentId, Block, BlockData, Entry, Meeting, Terminator, VCode};
use cranelift_codegen::entity::{EntityRef, PrimaryMap, SecondaryMap};

/// A function whose blocks can be changed and added to independently.
///
/// [`Editor::finish`] puts the blocks into reverse postorder again; those out of reach are dropped.
pub struct Editor<R: Register> {
    /// Everything but the instructions.
    code: VCode<R>,
    bodies: PrimaryMap<Block, Vec<Entry<R>>>,
}

impl<R: Register> Editor<R> {
    /// Takes a function apart.
    pub fn new(mut code: VCode<R>) -> Self {
        let bodies = code
            .blocks
            .keys()
            .map(|b| code.block_insts(b).to_vec())
            .collect();
        code.insts.clear();
        Editor { code, bodies }
    }

    /// The function without its instructions: ranges of blocks mean nothing.
    pub fn code(&mut self) -> &mut VCode<R> {
        &mut self.code
    }

    /// All blocks.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = Block> + use<R> {
        self.bodies.keys()
    }

    /// What is known of a block.
    pub fn data(&mut self, block: Block) -> &mut BlockData<R> {
        &mut self.code.blocks[block]
    }

    /// How a block ends.
    pub fn terminator(&self, block: Block) -> &Terminator<R> {
        &self.code.blocks[block].terminator
    }

    /// The instructions of a block.
    pub fn body(&mut self, block: Block) -> &mut Vec<Entry<R>> {
        &mut self.bodies[block]
    }

    /// Adds a block.
    pub fn add_block(&mut self, data: BlockData<R>, body: Vec<Entry<R>>) -> Block {
        self.bodies.push(body);
        self.code.blocks.push(data)
    }

    /// Adds an attachment.
    pub fn attach(&mut self, attachment: Attachment<R>) -> Option<AttachmentId> {
        Some(self.code.attachments.push(attachment))
    }

    /// Where instructions of `block` come from, as far as known at its start.
    pub fn line_at_start(&self, block: Block) -> crate::vcode::SourceLine {
        self.bodies[block]
            .first()
            .map_or(self.code.blocks[block].line, |e| e.line)
    }

    /// The function.
    pub fn finish(self) -> VCode<R> {
        let Editor {
            mut code,
            mut bodies,
        } = self;
        let order = control_flow(&code).reverse_postorder(0);
        let mut numbers: SecondaryMap<Block, Option<Block>> = SecondaryMap::with_default(None);
        for (number, &old) in order.iter().enumerate() {
            numbers[Block::new(old)] = Some(Block::new(number));
        }
        let mut old_blocks: Vec<Option<BlockData<R>>> = std::mem::take(&mut code.blocks)
            .into_iter()
            .map(|(_, b)| Some(b))
            .collect();
        for &old in &order {
            let mut data = old_blocks[old].take().expect("each block once");
            let first = code.insts.len() as u32;
            code.insts.append(&mut bodies[Block::new(old)]);
            data.insts = first..code.insts.len() as u32;
            renumber(&mut data.meeting, &numbers);
            data.terminator
                .for_each_target(|t| *t = numbers[*t].expect("a successor of a block in reach"));
            code.blocks.push(data);
        }
        // Labels out of reach belong to instructions out of reach.
        for attachment in code.attachments.values_mut() {
            match attachment {
                Attachment::Label(target) => {
                    *target = numbers[*target].unwrap_or(Block::new(0));
                }
                Attachment::Call(call) => renumber(&mut call.meeting, &numbers),
                Attachment::Else(_)
                | Attachment::Symbol(_)
                | Attachment::Pack(_)
                | Attachment::Bit(_) => {}
            }
        }
        code
    }
}

/// Lanes that cannot reach where they were to meet go on apart.
fn renumber(meeting: &mut Meeting, numbers: &SecondaryMap<Block, Option<Block>>) {
    if let Meeting::At(block) = *meeting {
        *meeting = numbers[block].map_or(Meeting::Nowhere, Meeting::At);
    }
}

/// The control flow of a function: block n is node n.
pub fn control_flow<R: Register>(code: &VCode<R>) -> Graph {
    let edges = code.blocks.iter().flat_map(|(b, data)| {
        let successors = data.terminator.successors();
        successors.into_iter().map(move |s| (b.index(), s.index()))
    });
    Graph::from_edges(code.blocks.len(), edges.collect::<Vec<_>>())
}
