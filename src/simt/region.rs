//! What a region of a convergence barrier is, and where its lanes enter and meet.

use super::block_set::BlockSet;
use super::meeting::Meetings;
use crate::analysis::graph::NodeSet;

/// A part of the control flow that lanes enter together and leave together.
///
/// Lanes that enter go to the start of [`Region::meeting`] without a way round, or end, or all go elsewhere together.
/// It may be entered at several places; who enters together leaves together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Lanes enter at the ends of these blocks.
    pub starts: Vec<usize>,
    /// Lanes wait at its start, those that come from inside.
    pub meeting: usize,
    /// What the control flow lacks for the barrier: where lanes enter, then before the meeting point.
    pub places: Vec<EdgeSplit>,
}

/// What is to happen in an [`EdgeSplit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeSplitKind {
    /// Lanes enter the region.
    Entry,
    /// Lanes of the region meet.
    Meeting,
}

/// Edges to a block that need one of their own to lead through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeSplit {
    /// What for.
    pub kind: EdgeSplitKind,
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

/// Which blocks regions hold: those between, with those at whose end the region starts and those in which lanes from
/// inside only end, as the others wait for them until then.
#[derive(Clone, Debug)]
pub enum Extents {
    /// Any two regions are apart, or one lies in the other.
    Nested(Nesting),
    /// By region.
    Sets(Vec<BlockSet>),
}

/// How regions lie in each other.
#[derive(Clone, Debug)]
pub struct Nesting {
    /// By region: how many are around it, and how many blocks it holds.
    pub regions: Vec<(u32, usize)>,
    /// By block: how many regions hold it.
    pub around_block: Vec<u32>,
}

impl Nesting {
    /// How many regions the region of this index lies in.
    pub fn around(&self, region: usize) -> u32 {
        self.regions[region].0
    }

    /// How many blocks the region of this index holds, where it starts included; where lanes only end left out.
    pub fn blocks(&self, region: usize) -> usize {
        self.regions[region].1
    }

    /// How many regions a block is in.
    pub fn around_block(&self, block: usize) -> u32 {
        self.around_block[block]
    }
}

/// The region whose lanes enter at the starts of `entries` and meet at `meeting`; `inside` tells its blocks, and
/// `search` is scratch.
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
        // Lanes that meet at the entry do so before they enter: the region may start at its end, but not at that of a
        // block before it.
        let start = start_before(meetings, entry, meeting, inside);
        if let Some(start) = start.filter(|&start| start == entry || arriving.is_empty()) {
            starts.push(start);
            continue;
        }
        places.push(EdgeSplit {
            kind: EdgeSplitKind::Entry,
            target: entry,
            origins: graph.predecessors(entry).filter(|&p| !inside(p)).collect(),
            branches: arriving,
        });
    }
    if is_entered(meetings, meeting, inside) {
        places.push(EdgeSplit {
            kind: EdgeSplitKind::Meeting,
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

/// Whether lanes of `branch`, which is outside, enter the region apart from each other before they meet at `within`:
/// then they are to leave it together too, so it must hold the branch. `search` is scratch.
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
