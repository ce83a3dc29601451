//! Where lanes that a divergent branch parts meet again, on machine code.
//!
//! `analysis::meeting` has decided, and the blocks carry it ([`Meeting`]): this is the control flow beside it, as the
//! search for regions needs both.

use super::edit::control_flow;
use crate::analysis::graph::{Dominators, Graph};
use crate::isa::Register;
use crate::vcode::{Meeting, VCode};
use cranelift_codegen::entity::EntityRef;

/// Control flow of a function, and where its lanes meet. Nodes are numbers of blocks.
pub struct Meetings {
    graph: Graph,
    dominators: Dominators,
    meetings: Vec<Meeting>,
}

impl Meetings {
    /// Reads them from the blocks.
    pub fn of<R: Register>(code: &VCode<R>) -> Self {
        let graph = control_flow(code);
        let dominators = Dominators::new(&graph, 0);
        Meetings {
            graph,
            dominators,
            meetings: code.blocks.values().map(|data| data.meeting).collect(),
        }
    }

    /// The control flow.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Its dominators.
    pub fn dominators(&self) -> &Dominators {
        &self.dominators
    }

    /// Whether lanes that go on may part at the end of a block, or in the call that follows.
    pub fn parts(&self, block: usize) -> bool {
        self.meetings[block] != Meeting::Together
    }

    /// Where the lanes that part at the end of `block` meet; none when they do not.
    pub fn meeting_point(&self, block: usize) -> Option<usize> {
        match self.meetings[block] {
            Meeting::At(meeting) => Some(meeting.index()),
            Meeting::Together | Meeting::Nowhere => None,
        }
    }
}
