//! Between which blocks lanes must be kept track of: the regions of convergence barriers.

use super::meeting::Meetings;

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
    pub inside: Vec<bool>,
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

/// Regions for all divergent branches.
///
/// Branches with the same meeting point share a region if they can, otherwise each has one of its own. A region holds all ways from its
/// branches to the meeting point, so it starts outside of every loop that the meeting point is outside of. A branch gets none if its lanes
/// do not meet, or if the lanes of another branch on the way may miss its meeting point; then they do not meet there for good.
pub fn regions(meetings: &Meetings) -> Vec<Region> {
    let mut branches: Vec<Vec<usize>> = vec![Vec::new(); meetings.graph().len()];
    for &block in meetings.dominators().reverse_postorder() {
        if meetings.parts(block)
            && let Some(meeting) = meetings.meeting_point(block)
        {
            branches[meeting].push(block);
        }
    }
    let mut found = Vec::new();
    for (meeting, branches) in branches.iter().enumerate().filter(|(_, b)| !b.is_empty()) {
        if let Some(region) = region(meetings, branches, meeting) {
            found.push(region);
            continue;
        }
        let first = found.len();
        for branch in branches {
            // Dominators come first, so a region that covers the branch is there already.
            if !found[first..].iter().any(|r: &Region| r.inside[*branch]) {
                found.extend(region(meetings, std::slice::from_ref(branch), meeting));
            }
        }
    }
    found
}

/// The region of `branches` that ends at `meeting`.
fn region(meetings: &Meetings, branches: &[usize], meeting: usize) -> Option<Region> {
    let graph = meetings.graph();
    let reaches_meeting = reaching(meetings, meeting);
    let mut roots = branches.to_vec();
    let mut inside;
    loop {
        inside = graph.reachable(roots.iter().copied(), &[meeting]);
        inside
            .iter_mut()
            .zip(&reaches_meeting)
            .for_each(|(i, r)| *i &= r);
        let added: Vec<usize> = (0..graph.len())
            .filter(|&b| !inside[b] && meets_within(meetings, &inside, b, meeting))
            .collect();
        if added.is_empty() {
            break;
        }
        roots.extend(added);
    }
    let members: Vec<usize> = (0..graph.len()).filter(|&b| inside[b]).collect();
    if members
        .iter()
        .any(|&b| meetings.parts(b) && !stays_with_others(meetings, b, meeting))
    {
        return None;
    }
    let from_outside = |block: usize| {
        graph
            .predecessors(block)
            .any(|p| meetings.dominators().is_reachable(p) && !inside[p])
    };
    // Of the meeting point itself only the end can be inside, and every edge to it leaves the region.
    let entries = members
        .iter()
        .copied()
        .filter(|&b| b == 0 || b == meeting || from_outside(b));
    let starts: Vec<Start> = entries
        .map(|e| start_before(meetings, &inside, e, meeting))
        .collect();
    let shared = from_outside(meeting);
    for start in &starts {
        if let Start::EndOf(block) = start {
            inside[*block] = true;
        }
    }
    Some(Region {
        starts,
        meeting,
        inside,
        shared,
    })
}

/// Whether lanes that part at `branch`, outside, enter a region apart from each other and meet in it: then they are to leave it together
/// too, so the region must hold the branch.
fn meets_within(meetings: &Meetings, inside: &[bool], branch: usize, meeting: usize) -> bool {
    let (graph, dominators) = (meetings.graph(), meetings.dominators());
    if !meetings.parts(branch) || !dominators.is_reachable(branch) {
        return false;
    }
    let Some(within) = meetings
        .meeting_point(branch)
        .filter(|&m| inside[m] && m != meeting)
    else {
        return false;
    };
    let apart = graph.reachable([branch], &[within]);
    (0..graph.len())
        .any(|b| inside[b] && apart[b] && graph.predecessors(b).any(|p| apart[p] && !inside[p]))
}

/// Where lanes that enter a region at the start of `entry` do so.
fn start_before(meetings: &Meetings, inside: &[bool], entry: usize, meeting: usize) -> Start {
    let graph = meetings.graph();
    if entry == meeting || graph.predecessors(entry).all(|p| !inside[p]) {
        return Start::EndOf(entry);
    }
    let mut outside = graph
        .predecessors(entry)
        .filter(|&p| !inside[p] && meetings.dominators().is_reachable(p));
    match (outside.next(), outside.next()) {
        (Some(only), None) if graph.successors(only).len() == 1 => Start::EndOf(only),
        _ => Start::Before(entry),
    }
}

/// Whether each block reaches `meeting`.
fn reaching(meetings: &Meetings, meeting: usize) -> Vec<bool> {
    let mut seen = vec![false; meetings.graph().len()];
    let mut stack = vec![meeting];
    while let Some(block) = stack.pop() {
        if !std::mem::replace(&mut seen[block], true) {
            stack.extend(meetings.graph().predecessors(block));
        }
    }
    seen
}

/// Whether the lanes that part at `branch` all reach `meeting`, or none does, or they meet before.
fn stays_with_others(meetings: &Meetings, branch: usize, meeting: usize) -> bool {
    if meetings.reaches_surely(branch, meeting) {
        return true;
    }
    let barrier = meetings.meeting_point(branch);
    let seen = meetings.graph().reachable(
        meetings
            .graph()
            .successors(branch)
            .filter(|s| Some(*s) != barrier),
        barrier.as_slice(),
    );
    !seen[meeting]
}
