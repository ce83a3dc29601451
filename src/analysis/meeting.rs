//! Where lanes meet that a branch or a call parts.
//!
//! Two things are asked of the place: that it is as early as possible, and that every lane that could go on by itself
//! does go on, although others wait for it there. This module decides both, once, for all that follows: uniformity
//! rests on it, blocks of machine code carry it, and `simt` puts the convergence barriers where it says.
//!
//! **The rule.** Lanes that a branch parts meet at its immediate post-dominator ([`ControlFlow`]: paths on which lanes
//! only end do not count), lanes that come back from a call directly behind it, unless lanes may poll on the way
//! ([`Progress`]): unless the way holds a whole polling cycle, or a call that polls. Then they meet at the first
//! post-dominator from which no release can be reached any more (around loops, and behind the return of a device
//! function, too), or only through an operation for which the whole warp has to be there anyway (`bar_sync`, shuffles,
//! `warp_sync` of all lanes). If there is none, they do not meet: their groups go on by themselves.
//!
//! Lanes that leave for good are not waited for, but that a barrier of the block counts them until they have ended: if
//! one may follow, the others wait for them where the branch's remaining ways come together.
//!
//! **Why every lane progresses.** Suppose some lanes never go on though each by itself would. Each waits at a meeting
//! point for a lane of its region that has not come, or polls. A lane that waits at a meeting point with no polling on
//! the way waits for lanes that run in finite time, or wait at points inside. A lane that waits at a point chosen
//! because no release can be reached from it will never write what anybody polls for: to let it go on would help
//! nobody. A lane before an operation that needs the whole warp could not go on by itself either. So the lanes that
//! poll wait for each other alone, and would without any convergence barrier: the program's own deadlock. (It does not
//! suffice to look at what is polled *in the region*: a lane that waits because of one lock may hold another.)
//!
//! **Cost.** Functions that do not poll, which is nearly all, take their immediate post-dominators. In the others each
//! branch walks its region; when that exceeds a constant times the size of the function, the rest of the branches count
//! as having polling on the way, which delays where their lanes meet and nothing else.

use super::calls::Callees;
use super::components::components;
use super::control_flow::{ControlFlow, PostDominator};
use super::graph::Graph;
use super::progress::Progress;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{Block, Function, Inst, Opcode};

/// Where parted lanes go on together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Meeting {
    /// Each group by itself.
    #[default]
    Nowhere,
    /// At the start of a block.
    At(Block),
}

/// Block visits, per block of the function, that looking for polling may take (*assumed*: generous for nested code).
const VISITS_PER_BLOCK: usize = 16;

/// Where the lanes of a function meet.
#[derive(Default)]
pub struct Meetings {
    /// By the block that ends in the branch.
    branches: SecondaryMap<Block, Meeting>,
    /// By the block whose last instruction before a jump is a call that polls; none: directly behind it.
    calls: SecondaryMap<Block, Option<Meeting>>,
    /// Branches whose lanes meet later than their ways come together.
    late: SecondaryMap<Block, bool>,
    /// Branches at which lanes leave for good that the others have to wait for.
    awaited: SecondaryMap<Block, bool>,
}

impl Meetings {
    /// Decides for all branches and calls of `func`, whose blocks are split at its [`places`].
    pub fn of(
        func: &Function,
        flow: &ControlFlow,
        callees: &Callees,
        progress: &Progress,
        kernel: bool,
    ) -> Self {
        let mut found = Meetings::default();
        let nearest = |block| match flow.immediate_post_dominator(block) {
            Some(PostDominator::Block(meeting) | PostDominator::NextTurn(meeting)) => {
                Meeting::At(meeting)
            }
            None => Meeting::Nowhere,
        };
        found.await_ended(flow);
        if !progress.polls() {
            for &block in flow.reverse_postorder() {
                if ends_in_branch(func, block) {
                    found.branches[block] = nearest(block);
                }
            }
            return found;
        }
        let mut chooser = Chooser::new(func, flow, callees, progress, kernel);
        let blocks = || flow.reverse_postorder().iter().copied();
        let parting: Vec<Block> = blocks().filter(|&b| ends_in_branch(func, b)).collect();
        // One answer for all: a region in which nobody polls holds none in which somebody may.
        let mut polling: Vec<bool> = parting
            .iter()
            .map(|&block| match nearest(block) {
                Meeting::At(meeting) => chooser.polls_between(block, meeting),
                Meeting::Nowhere => false,
            })
            .collect();
        if chooser.visits_left == 0 {
            polling.fill(true);
        }
        for (&block, &polls) in parting.iter().zip(&polling) {
            found.branches[block] = match nearest(block) {
                Meeting::At(meeting) if polls => chooser.late_meeting(meeting),
                nearest => nearest,
            };
            found.late[block] = found.branches[block] != nearest(block);
        }
        for &block in flow.reverse_postorder() {
            if progress.calls_polling(block) {
                let behind = flow.successors(block).next();
                found.calls[block] = match behind {
                    Some(behind) if chooser.may_meet_at(behind) => None,
                    Some(behind) => Some(chooser.late_meeting(behind)),
                    // A jump to another function.
                    None => None,
                };
            }
        }
        found
    }

    /// A barrier of the block counts all lanes that have not ended. Where one can be reached from a branch at which
    /// lanes leave that do something before they end, the others wait for them first.
    fn await_ended(&mut self, flow: &ControlFlow) {
        for &block in flow.reverse_postorder() {
            if flow.ends_some_later(block) {
                let mut staying = flow.continuing_successors(block);
                self.awaited[block] = staying.any(|next| flow.is_before_barrier(next));
            }
        }
    }

    /// Whether the lanes that stay at the end of `block` wait, where they meet, for those that leave there for good.
    pub fn awaits_ended(&self, block: Block) -> bool {
        self.awaited[block]
    }

    /// Where the lanes meet that part at the end of `block`.
    pub fn branch(&self, block: Block) -> Meeting {
        self.branches[block]
    }

    /// Whether they run apart where their ways have come together already.
    pub fn is_late(&self, block: Block) -> bool {
        self.late[block]
    }

    /// Where the lanes meet that make the call at the end of `block`, if it is not directly behind it.
    pub fn call(&self, block: Block) -> Option<Meeting> {
        self.calls[block]
    }
}

/// Whether the block ends in a branch, be it one whose ways lead to the same block.
fn ends_in_branch(func: &Function, block: Block) -> bool {
    func.layout.last_inst(block).is_some_and(|inst| {
        matches!(
            func.dfg.insts[inst].opcode(),
            Opcode::Brif | Opcode::BrTable
        )
    })
}

/// Before which instructions of a function that polls the blocks are to be split, so that every place where lanes may
/// have to meet is the start of a block: behind the last release of a block and behind calls that poll, and before
/// operations that gather the warp.
pub fn places(
    func: &Function,
    flow: &ControlFlow,
    callees: &Callees,
    progress: &Progress,
) -> Vec<Inst> {
    let mut found = Vec::new();
    if !progress.polls() {
        return found;
    }
    for &block in flow.reverse_postorder() {
        let mut last_release: Option<Inst> = None;
        let first = found.len();
        let mut previous: Option<Inst> = None;
        for inst in func.layout.block_insts(block) {
            let call = callees.call(func, inst);
            let behind_polling = previous
                .and_then(|before| callees.call(func, before))
                .is_some_and(|call| call.summary.polls);
            let gathers = call.is_some_and(|call| call.gathers) && previous.is_some();
            if behind_polling || gathers {
                found.push(inst);
            }
            if progress.releases(inst) {
                last_release = Some(inst);
            }
            previous = Some(inst);
        }
        // A jump that would be alone in its block leads to a block already.
        if let Some(next) = last_release.and_then(|inst| func.layout.next_inst(inst))
            && func.dfg.insts[next].opcode() != Opcode::Jump
            && !found[first..].contains(&next)
        {
            found.push(next);
        }
    }
    found
}

struct Chooser<'a> {
    flow: &'a ControlFlow,
    progress: &'a Progress,
    /// Blocks from whose start a release can be reached without an operation for which the whole warp has to be there.
    before_release: SecondaryMap<Block, bool>,
    /// Where lanes meet that must not meet before a block, once it has been asked for.
    late: SecondaryMap<Block, Option<Meeting>>,
    visits_left: usize,
}

impl<'a> Chooser<'a> {
    fn new(
        func: &Function,
        flow: &'a ControlFlow,
        callees: &Callees,
        progress: &'a Progress,
        kernel: bool,
    ) -> Self {
        let mut before_release: SecondaryMap<Block, bool> = SecondaryMap::new();
        let mut work: Vec<Block> = Vec::new();
        for &block in flow.reverse_postorder() {
            let releases = |inst: Inst| {
                let opcode = func.dfg.insts[inst].opcode();
                progress.releases(inst) || (!kernel && opcode.is_return())
            };
            if func.layout.block_insts(block).any(releases) {
                work.push(block);
            }
        }
        // A block is split before an operation that gathers.
        let gathers = |block: Block| {
            let first = func.layout.first_inst(block);
            let call = first.and_then(|inst| callees.call(func, inst));
            call.is_some_and(|call| call.gathers)
        };
        while let Some(block) = work.pop() {
            if !gathers(block) && !std::mem::replace(&mut before_release[block], true) {
                work.extend(flow.predecessors(block));
            }
        }
        Chooser {
            flow,
            progress,
            before_release,
            late: SecondaryMap::new(),
            visits_left: flow.reverse_postorder().len() * VISITS_PER_BLOCK,
        }
    }

    /// Whether lanes that wait at the start of `block` keep nobody from going on.
    fn may_meet_at(&self, block: Block) -> bool {
        !self.before_release[block]
    }

    /// The first of `block` and its post-dominators at which lanes may meet. Each block is looked at once for all that
    /// ask.
    fn late_meeting(&mut self, block: Block) -> Meeting {
        let mut passed: Vec<Block> = Vec::new();
        let mut next = Some(block);
        let found = loop {
            let Some(block) = next else {
                break Meeting::Nowhere;
            };
            if let Some(known) = self.late[block] {
                break known;
            }
            passed.push(block);
            if self.may_meet_at(block) {
                break Meeting::At(block);
            }
            next = match self.flow.immediate_post_dominator(block) {
                Some(PostDominator::Block(block)) => Some(block),
                // Behind the end of a turn comes nothing that all lanes reach.
                Some(PostDominator::NextTurn(header)) if self.may_meet_at(header) => {
                    break Meeting::At(header);
                }
                Some(PostDominator::NextTurn(_)) | None => None,
            };
        };
        for block in passed {
            self.late[block] = Some(found);
        }
        found
    }

    /// Whether lanes may poll on their way from the end of `block` to `meeting`.
    fn polls_between(&mut self, block: Block, meeting: Block) -> bool {
        let mut seen: EntitySet<Block> = EntitySet::new();
        let mut polling: Vec<Block> = Vec::new();
        let mut work: Vec<Block> = self.flow.successors(block).collect();
        while let Some(block) = work.pop() {
            if block == meeting || !seen.insert(block) {
                continue;
            }
            if self.visits_left == 0 || self.progress.calls_polling(block) {
                return true;
            }
            self.visits_left -= 1;
            if self.progress.cycle(block).is_some() {
                polling.push(block);
            }
            work.extend(self.flow.successors(block));
        }
        self.has_cycle(polling)
    }

    /// Whether a polling cycle goes round among `blocks`.
    fn has_cycle(&self, blocks: Vec<Block>) -> bool {
        let mut places: SecondaryMap<Block, Option<usize>> = SecondaryMap::new();
        for (place, &block) in blocks.iter().enumerate() {
            places[block] = Some(place);
        }
        let inner = |from: Block| {
            let (flow, places) = (self.flow, &places);
            flow.successors(from).filter_map(move |to| places[to])
        };
        let edges = (blocks.iter().enumerate())
            .flat_map(|(place, &block)| inner(block).map(move |to| (place, to)));
        let graph = Graph::from_edges(blocks.len(), edges);
        components(&graph).iter().any(|members| {
            let cyclic = match members[..] {
                [only] => graph.successors(only).any(|to| to == only),
                _ => true,
            };
            let through = |place: &usize| self.progress.polls_through(blocks[*place]);
            cyclic && members.iter().any(through)
        })
    }
}
