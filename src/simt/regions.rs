//! Between which blocks lanes must be kept track of: the regions of convergence barriers.
//!
//! Regions of structured code lie in each other, and are found level by level in time that grows with the function
//! ([`super::nesting`]). Where some do not (several places where lanes enter, ways on which lanes end that have regions
//! of their own) all are found one by one as sets of blocks, which takes the sum of their sizes.

use super::block_set::BlockSet;
use super::meeting::Meetings;
use super::nesting;
use super::region::{Extents, Region, Regions, enters_apart, is_entered, region};
use crate::analysis::graph::NodeSet;

/// The regions of a function.
///
/// Branches with the same meeting point share a region. It holds all ways from them to the meeting point, so it starts
/// outside of every loop that the meeting point is outside of. A branch whose lanes do not meet gets none. No lane
/// misses the meeting point: it post-dominates the branches, and so everything between.
pub fn regions(meetings: &Meetings) -> Regions {
    let branches = branches_by_meeting(meetings);
    nesting::search(meetings, &branches).unwrap_or_else(|| search_one_by_one(meetings, &branches))
}

/// By block: the branches whose lanes meet there, in reverse postorder.
pub fn branches_by_meeting(meetings: &Meetings) -> Vec<Vec<usize>> {
    let mut branches: Vec<Vec<usize>> = vec![Vec::new(); meetings.graph().len()];
    for &block in meetings.dominators().reverse_postorder() {
        if let Some(meeting) = meetings.meeting_point(block) {
            branches[meeting].push(block);
        }
    }
    branches
}

/// The regions as sets of blocks, each searched by itself.
pub fn search_one_by_one(meetings: &Meetings, branches: &[Vec<usize>]) -> Regions {
    let mut finder = Finder::new(meetings, branches);
    let (mut found, mut sets) = (Vec::new(), Vec::new());
    for (meeting, branches) in branches.iter().enumerate().filter(|(_, b)| !b.is_empty()) {
        let (region, blocks) = finder.region(branches, meeting);
        found.push(region);
        sets.push(blocks);
    }
    Regions {
        found,
        extents: Extents::Sets(sets),
        apart: apart(meetings),
    }
}

/// See [`Regions::apart`].
fn apart(meetings: &Meetings) -> Vec<bool> {
    let graph = meetings.graph();
    let mut apart = vec![false; graph.len()];
    let mut reached = NodeSet::new(graph.len());
    for branch in (0..graph.len()).filter(|&b| meetings.parts(b)) {
        let meeting = meetings.meeting_point(branch);
        let ways = graph.successors(branch).filter(|w| Some(*w) != meeting);
        reached.fill_reachable(graph, ways, meeting);
        reached.nodes().iter().for_each(|&b| apart[b] = true);
    }
    apart
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
    /// Scratch: what one branch leads to.
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

    /// The region of `branches` that ends at `meeting`, and what it holds.
    fn region(&mut self, branches: &[usize], meeting: usize) -> (Region, BlockSet) {
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
        let inside = |block: usize| self.inside.contains(block);
        // Of the meeting point itself only the end can be inside, and every edge to it leaves the region.
        members.retain(|&b| b == 0 || b == meeting || is_entered(self.meetings, b, &inside));
        let region = region(
            self.meetings,
            self.branches,
            &members,
            meeting,
            &inside,
            &mut self.apart,
        );
        let blocks = self.ahead.nodes().iter().chain(&region.starts).copied();
        let blocks = blocks.collect();
        (region, blocks)
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

    /// The branches outside whose lanes enter the region apart from each other and meet in it ([`enters_apart`]).
    fn entered_apart(&mut self, meeting: usize) -> Vec<usize> {
        let (inside, mut found) = (&self.inside, Vec::new());
        let is_inside = |block: usize| inside.contains(block);
        for &within in inside.nodes().iter().filter(|&&b| b != meeting) {
            for &branch in &self.branches[within] {
                let search = &mut self.apart;
                if !is_inside(branch)
                    && enters_apart(self.meetings, branch, within, &is_inside, search)
                {
                    found.push(branch);
                }
            }
        }
        found
    }
}
