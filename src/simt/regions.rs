//! Between which blocks lanes must be kept track of: the regions of convergence barriers.

use super::block_set::BlockSet;
use super::meeting::Meetings;
use crate::analysis::graph::NodeSet;

/// A part of the control flow that lanes enter together and leave together.
///
/// Lanes that enter go to the start of [`Region::meeting`] without a way round, or end, or all go elsewhere together. On the way to the
/// meeting point they are in [`Region::inside`] only. It may be entered at several places; who enters together leaves together.
#[derive(Clone, Debug)]
pub struct Region {
    /// Where lanes enter.
    pub starts: Vec<Start>,
    /// Lanes wait at its start, those that come from inside.
    pub meeting: usize,
    /// The blocks between; those at whose end the region starts are among them.
    pub inside: BlockSet,
    /// Those, and the blocks in which lanes from inside only end: the others wait for them until then.
    pub occupied: BlockSet,
    /// The meeting point can be reached from outside too: those inside need a place of their own before it.
    pub shared: bool,
}

/// Where lanes enter a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the end of a block.
    EndOf(usize),
    /// On the edges from outside to a block, which lack a place of their own.
    Before(usize),
}

/// Regions for all divergent branches, and for calls from which lanes come back apart, in the order of their meeting points.
///
/// Branches with the same meeting point share a region. It holds all ways from them to the meeting point, so it starts outside of every loop
/// that the meeting point is outside of. A branch whose lanes do not meet gets none. No lane misses the meeting point: it
/// post-dominates the branches, and so everything between.
pub fn regions(meetings: &Meetings) -> Vec<Region> {
    let mut branches: Vec<Vec<usize>> = vec![Vec::new(); meetings.graph().len()];
    for &block in meetings.dominators().reverse_postorder() {
        if meetings.parts(block)
            && let Some(meeting) = meetings.meeting_point(block)
        {
            branches[meeting].push(block);
        }
    }
    let mut finder = Finder::new(meetings, &branches);
    let mut found = Vec::new();
    for (meeting, branches) in branches.iter().enumerate().filter(|(_, b)| !b.is_empty()) {
        found.push(finder.region(branches, meeting));
    }
    found
}

/// Finds one region after the other.
struct Finder<'a> {
    meetings: &'a Meetings,
    /// By meeting point.
    branches: &'a [Vec<usize>],
    /// What the roots of the region lead to before the meeting point.
    ahead: NodeSet,
    /// Of those the blocks from which the meeting point is reached.
    inside: NodeSet,
    /// What one branch leads to.
    apart: NodeSet,
}

impl<'a> Finder<'a> {
    fn new(meetings: &'a Meetings, branches: &'a [Vec<usize>]) -> Self {
        let empty = NodeSet::new(meetings.graph().len());
        Finder {
            meetings,
            branches,
            ahead: empty.clone(),
            inside: empty.clone(),
            apart: empty,
        }
    }

    /// The region of `branches` that ends at `meeting`.
    fn region(&mut self, branches: &[usize], meeting: usize) -> Region {
        let mut roots = branches.to_vec();
        loop {
            self.find_inside(&roots, meeting);
            let added = self.entered_apart(meeting);
            if added.is_empty() {
                break;
            }
            roots.extend(added);
        }
        let mut members = self.inside.nodes().to_vec();
        members.sort_unstable();
        // Of the meeting point itself only the end can be inside, and every edge to it leaves the region.
        let starts: Vec<Start> = members
            .iter()
            .filter(|&&b| b == 0 || b == meeting || self.is_entered(b))
            .map(|&entry| self.start_before(entry, meeting))
            .collect();
        let ends = starts.iter().filter_map(|start| match start {
            Start::EndOf(block) => Some(*block),
            Start::Before(_) => None,
        });
        Region {
            inside: members.iter().copied().chain(ends.clone()).collect(),
            occupied: self.ahead.nodes().iter().copied().chain(ends).collect(),
            starts,
            meeting,
            shared: self.is_entered(meeting),
        }
    }

    /// The blocks on the ways from `roots` to `meeting`.
    fn find_inside(&mut self, roots: &[usize], meeting: usize) {
        let graph = self.meetings.graph();
        let (ahead, inside) = (&mut self.ahead, &mut self.inside);
        ahead.fill_reachable(graph, roots.iter().copied(), Some(meeting));
        let before = |node: usize| graph.predecessors(node).filter(|&p| ahead.contains(p));
        let last = before(meeting).chain(Some(meeting).filter(|&m| ahead.contains(m)));
        inside.fill(last, |node, visit| before(node).for_each(visit));
    }

    /// The branches outside whose lanes enter the region apart from each other and meet in it: then they are to leave it together too, so
    /// the region must hold the branch.
    fn entered_apart(&mut self, meeting: usize) -> Vec<usize> {
        let graph = self.meetings.graph();
        let mut found = Vec::new();
        for &within in self.inside.nodes().iter().filter(|&&b| b != meeting) {
            for &branch in &self.branches[within] {
                if self.inside.contains(branch) {
                    continue;
                }
                self.apart.fill_reachable(graph, [branch], Some(within));
                let (inside, apart) = (&self.inside, &self.apart);
                if apart.nodes().iter().any(|&b| {
                    inside.contains(b)
                        && graph
                            .predecessors(b)
                            .any(|p| apart.contains(p) && !inside.contains(p))
                }) {
                    found.push(branch);
                }
            }
        }
        found
    }

    /// Whether an edge from outside leads to `block`.
    fn is_entered(&self, block: usize) -> bool {
        self.entries(block).next().is_some()
    }

    /// The origins of the edges from outside to `block`.
    fn entries(&self, block: usize) -> impl Iterator<Item = usize> + '_ {
        let (graph, dominators) = (self.meetings.graph(), self.meetings.dominators());
        graph
            .predecessors(block)
            .filter(|&p| dominators.is_reachable(p) && !self.inside.contains(p))
    }

    /// Where lanes that enter the region at the start of `entry` do so.
    fn start_before(&self, entry: usize, meeting: usize) -> Start {
        let graph = self.meetings.graph();
        if entry == meeting || graph.predecessors(entry).all(|p| !self.inside.contains(p)) {
            return Start::EndOf(entry);
        }
        let mut outside = self.entries(entry);
        match (outside.next(), outside.next()) {
            (Some(only), None) if graph.successors(only).len() == 1 => Start::EndOf(only),
            _ => Start::Before(entry),
        }
    }
}
