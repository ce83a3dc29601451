//! Between which blocks lanes must be kept track of: the regions of convergence barriers.
//!
//! Regions of structured code lie in each other, and are found level by level in time that grows with the function ([`super::nesting`]).
//! Where some do not (several places where lanes enter, ways on which lanes end that have regions of their own) all are found one by one as
//! sets of blocks, which takes the sum of their sizes.

use super::block_set::BlockSet;
use super::meeting::Meetings;
use super::nesting::{self, Nesting};
use crate::analysis::graph::NodeSet;

/// A part of the control flow that lanes enter together and leave together.
///
/// Lanes that enter go to the start of [`Region::meeting`] without a way round, or end, or all go elsewhere together. It may be entered at
/// several places; who enters together leaves together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Lanes enter at the ends of these blocks.
    pub starts: Vec<usize>,
    /// Lanes wait at its start, those that come from inside.
    pub meeting: usize,
    /// What the control flow lacks for the barrier: where lanes enter, then before the meeting point.
    pub places: Vec<Place>,
}

/// What is to happen in a [`Place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceKind {
    /// Lanes enter the region.
    Entry,
    /// Lanes of the region meet.
    Meeting,
}

/// Edges to a block that need one of their own to lead through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What for.
    pub kind: PlaceKind,
    /// Where they lead.
    pub target: usize,
    /// The blocks at whose ends they begin.
    pub origins: Vec<usize>,
    /// The branches whose lanes meet at the target, and come there by these edges alone.
    pub branches: Vec<usize>,
}

/// Regions for all divergent branches, and for calls from which lanes come back apart.
#[derive(Clone, Debug)]
pub struct Regions {
    /// In the order of their meeting points.
    pub found: Vec<Region>,
    /// Which blocks they hold: told once they lack no [`Region::places`].
    pub extents: Extents,
    /// By block: whether lanes may be there while others that were parted from them are elsewhere.
    pub apart: Vec<bool>,
}

/// Which blocks regions hold: those between, with those at whose end the region starts and those in which lanes from inside only end, as the
/// others wait for them until then.
#[derive(Clone, Debug)]
pub enum Extents {
    /// Any two regions are apart, or one lies in the other.
    Nested(Nesting),
    /// By region.
    Sets(Vec<BlockSet>),
}

/// The regions of a function.
///
/// Branches with the same meeting point share a region. It holds all ways from them to the meeting point, so it starts outside of every loop
/// that the meeting point is outside of. A branch whose lanes do not meet gets none. No lane misses the meeting point: it
/// post-dominates the branches, and so everything between.
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

/// The region whose lanes enter at the starts of `entries` and meet at `meeting`; `inside` tells its blocks, and `search` is scratch.
pub fn region(
    meetings: &Meetings,
    branches: &[Vec<usize>],
    entries: &[usize],
    meeting: usize,
    inside: &dyn Fn(usize) -> bool,
    search: &mut NodeSet,
) -> Region {
    let graph = meetings.graph();
    let (mut starts, mut places) = (Vec::new(), Vec::new());
    for &entry in entries {
        // Who enters elsewhere may come to the entry from inside.
        let mut comes_past = |branch: usize| {
            search.fill_reachable(graph, [branch], Some(entry));
            let mut origins = graph.predecessors(entry);
            origins.any(|from| search.contains(from) && inside(from))
        };
        let only_entry = entries.len() == 1;
        let arriving: Vec<usize> = (branches[entry].iter().copied())
            .filter(|&b| !inside(b) && (only_entry || !comes_past(b)))
            .collect();
        // Lanes that meet at the entry do so before they enter: the region may start at its end, but not at that of a block before it.
        let start = start_before(meetings, entry, meeting, inside);
        if let Some(start) = start.filter(|&start| start == entry || arriving.is_empty()) {
            starts.push(start);
            continue;
        }
        places.push(Place {
            kind: PlaceKind::Entry,
            target: entry,
            origins: graph.predecessors(entry).filter(|&p| !inside(p)).collect(),
            branches: arriving,
        });
    }
    if is_entered(meetings, meeting, inside) {
        places.push(Place {
            kind: PlaceKind::Meeting,
            target: meeting,
            origins: graph.predecessors(meeting).filter(|&p| inside(p)).collect(),
            branches: (branches[meeting].iter().copied())
                .filter(|&b| inside(b))
                .collect(),
        });
    }
    Region {
        starts,
        meeting,
        places,
    }
}

/// Whether an edge leads to `block` from a block that is not `inside`.
pub fn is_entered(meetings: &Meetings, block: usize, inside: &dyn Fn(usize) -> bool) -> bool {
    entries(meetings, block, inside).next().is_some()
}

/// The origins of the edges to `block` that are not `inside`.
fn entries<'a>(
    meetings: &'a Meetings,
    block: usize,
    inside: &'a dyn Fn(usize) -> bool,
) -> impl Iterator<Item = usize> + 'a {
    let (graph, dominators) = (meetings.graph(), meetings.dominators());
    graph
        .predecessors(block)
        .filter(move |&p| dominators.is_reachable(p) && !inside(p))
}

/// At the end of which block lanes enter that come to the start of `entry`; none if it lacks.
fn start_before(
    meetings: &Meetings,
    entry: usize,
    meeting: usize,
    inside: &dyn Fn(usize) -> bool,
) -> Option<usize> {
    let graph = meetings.graph();
    if entry == meeting || graph.predecessors(entry).all(|p| !inside(p)) {
        return Some(entry);
    }
    let mut outside = entries(meetings, entry, inside);
    match (outside.next(), outside.next()) {
        (Some(only), None) if graph.successors(only).len() == 1 => Some(only),
        _ => None,
    }
}

/// Whether lanes of `branch`, which is outside, enter the region apart from each other before they meet at `within`: then they are to leave it
/// together too, so it must hold the branch. `search` is scratch.
pub fn enters_apart(
    meetings: &Meetings,
    branch: usize,
    within: usize,
    inside: &dyn Fn(usize) -> bool,
    search: &mut NodeSet,
) -> bool {
    let graph = meetings.graph();
    search.fill_reachable(graph, [branch], Some(within));
    let outside = |p: usize| search.contains(p) && !inside(p);
    (search.nodes().iter()).any(|&b| inside(b) && graph.predecessors(b).any(outside))
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
