//! The regions of code in which they lie in each other, in time that grows with the code.
//!
//! A region is *closed* when it has been found: for the searches around it, it is one element that is entered at its
//! entries and left for its meeting point. So each search sees its own level, and the work is the sum of the levels.
//! Every block and every closed region knows the region that closed over it; the outermost one is found along
//! compressed paths. A search that comes to a region by some of its entries alone would see too much.
//!
//! A search ([`Walk`]) goes forward from the branches of one meeting point. When it comes to a branch whose region has
//! not been found, it waits until it has, so inner regions come first whatever the order of the blocks is. What it
//! walked block by block before it came to a branch of a region that holds those blocks counts as that region in the
//! end. From the meeting point it then goes back over the edges that it went forward over.
//!
//! Blocks from which no meeting point can be reached are in no region, nor is a region in them: no search goes there.
//! Whatever else does not fit (a branch in a closed region whose lanes meet outside of it, a meeting point in one,
//! lanes that end where others have regions) ends the search without a result, and all regions are found without
//! closing any.

use super::meeting::Meetings;
use super::region::{Extents, Nesting, Region, Regions, enters_apart, is_entered, region};
use crate::analysis::graph::NodeSet;
use hashbrown::{HashMap, HashSet};
use std::cell::Cell;

/// The regions of the branches, which are given by meeting point; none if they do not all lie in each other.
pub fn search(meetings: &Meetings, branches: &[Vec<usize>]) -> Option<Regions> {
    let mut search = Search::new(meetings, branches);
    search.find_all()?;
    search.finish()
}

/// Number of edges that [`search`] follows, and whether it comes to a result.
#[cfg(test)]
pub fn steps(meetings: &Meetings, branches: &[Vec<usize>]) -> (usize, bool) {
    let mut search = Search::new(meetings, branches);
    let found = search.find_all().is_some();
    (search.steps, found && search.finish().is_some())
}

/// A block by its number, or a closed region by its own behind the blocks.
type Element = usize;

/// No element.
const NONE: u32 = u32::MAX;

struct Search<'a> {
    meetings: &'a Meetings,
    /// By meeting point.
    branches: &'a [Vec<usize>],
    /// By block: no meeting point can be reached from it.
    lost: Vec<bool>,
    /// By element: the closed region that holds it, or one around that.
    above: Vec<Cell<u32>>,
    /// By element: the innermost closed region that holds it.
    holder: Vec<u32>,
    /// By meeting point: whether the search has begun.
    begun: Vec<bool>,
    /// Inner before outer ones.
    found: Vec<Level>,
    /// By element: lanes may be there while others are elsewhere.
    apart: Vec<bool>,
    /// Lost blocks, and those behind branches whose lanes do not meet, that lanes come to.
    apart_for_good: Vec<usize>,
    /// Whether all regions were closed.
    closed: bool,
    /// Edges followed.
    steps: usize,
    scratch: NodeSet,
}

/// A region that has been found.
struct Level {
    region: Region,
    /// The blocks at which lanes enter, ascending.
    entries: Vec<usize>,
    /// What it holds that no region in it does.
    members: Vec<Element>,
}

/// The search for one region.
struct Walk {
    meeting: usize,
    roots: Vec<usize>,
    seen: HashSet<Element>,
    /// Those seen, in order.
    ahead: Vec<Element>,
    /// Those seen from which nothing has been followed.
    work: Vec<Element>,
    edges: Vec<(Element, Element)>,
    /// The blocks that edges lead to.
    entered: HashSet<usize>,
    /// From which edges lead to the meeting point.
    last: Vec<Element>,
}

impl Walk {
    fn new(meeting: usize, roots: Vec<usize>) -> Self {
        let mut walk = Walk {
            meeting,
            seen: HashSet::new(),
            ahead: Vec::new(),
            work: Vec::new(),
            edges: Vec::new(),
            entered: HashSet::new(),
            last: Vec::new(),
            roots,
        };
        for index in 0..walk.roots.len() {
            walk.see(walk.roots[index]);
        }
        walk
    }

    fn see(&mut self, element: Element) {
        if self.seen.insert(element) {
            self.ahead.push(element);
            self.work.push(element);
        }
    }
}

/// What a search that came to its end is to do.
enum Next {
    /// The region has been found.
    Done,
    /// It must hold these branches too.
    Widen(Vec<usize>),
}

impl<'a> Search<'a> {
    fn new(meetings: &'a Meetings, branches: &'a [Vec<usize>]) -> Self {
        let graph = meetings.graph();
        let len = graph.len();
        let mut reaching = NodeSet::new(len);
        reaching.fill_reaching(graph, (0..len).filter(|&m| !branches[m].is_empty()));
        let nowhere =
            (0..len).filter(|&b| meetings.parts(b) && meetings.meeting_point(b).is_none());
        Search {
            meetings,
            branches,
            lost: (0..len).map(|b| !reaching.contains(b)).collect(),
            above: vec![Cell::new(NONE); len],
            holder: vec![NONE; len],
            begun: vec![false; len],
            found: Vec::new(),
            apart: vec![false; len],
            apart_for_good: nowhere.flat_map(|b| graph.successors(b)).collect(),
            closed: true,
            steps: 0,
            scratch: reaching,
        }
    }

    fn len(&self) -> usize {
        self.lost.len()
    }

    /// The outermost closed part that holds `element`, or that itself.
    fn top(&self, mut element: Element) -> Element {
        loop {
            let above = self.above[element].get();
            if above == NONE {
                return element;
            }
            let next = self.above[above as usize].get();
            if next != NONE {
                self.above[element].set(next);
            }
            element = above as usize;
        }
    }

    /// The blocks at which lanes come to `element`.
    fn entries<'b>(&'b self, element: &'b Element) -> &'b [usize] {
        match element.checked_sub(self.len()) {
            None => std::slice::from_ref(element),
            Some(region) => &self.found[region].entries,
        }
    }

    /// Finds the regions of all meeting points; none if they do not lie in each other.
    fn find_all(&mut self) -> Option<()> {
        let branches = self.branches;
        (0..branches.len())
            .filter(|&m| !branches[m].is_empty())
            .try_for_each(|meeting| self.find(meeting))
    }

    /// Finds the region that ends at `meeting` and all in it; none if they do not lie in each other.
    fn find(&mut self, meeting: usize) -> Option<()> {
        let mut walks = Vec::new();
        let mut next = Some(meeting);
        loop {
            if let Some(meeting) = next.take() {
                if self.begun[meeting] {
                    return Some(());
                }
                self.begun[meeting] = true;
                walks.push(Walk::new(meeting, self.branches[meeting].clone()));
            }
            let Some(walk) = walks.last_mut() else {
                return Some(());
            };
            next = self.advance(walk);
            if next.is_some() {
                continue;
            }
            match self.close(walk)? {
                Next::Done => {
                    walks.pop();
                }
                Next::Widen(added) => {
                    let mut roots = std::mem::take(&mut walk.roots);
                    roots.extend(added);
                    *walk = Walk::new(walk.meeting, roots);
                }
            }
        }
    }

    /// Goes on until everything has been followed, or until another region has to be found first: then its meeting
    /// point.
    fn advance(&mut self, walk: &mut Walk) -> Option<usize> {
        let graph = self.meetings.graph();
        while let Some(element) = walk.work.pop() {
            let top = self.top(element);
            if top != element {
                walk.see(top);
                continue;
            }
            let Some(inner) = element.checked_sub(self.len()) else {
                if let Some(meeting) = self.meetings.meeting_point(element)
                    && !self.begun[meeting]
                {
                    walk.work.push(element);
                    return Some(meeting);
                }
                for to in graph.successors(element) {
                    self.follow(walk, element, to);
                }
                continue;
            };
            self.follow(walk, element, self.found[inner].region.meeting);
        }
        None
    }

    /// Lanes go from `element` to the block `to`.
    fn follow(&mut self, walk: &mut Walk, element: Element, to: usize) {
        self.steps += 1;
        if to == walk.meeting {
            walk.last.push(element);
        } else if self.lost[to] {
            self.apart_for_good.push(to);
        } else {
            let block = to;
            let to = self.top(block);
            self.apart[to] = true;
            walk.entered.insert(block);
            walk.edges.push((element, to));
            walk.see(to);
        }
    }

    /// Makes a region of what was seen; none if it does not fit those closed before.
    fn close(&mut self, walk: &Walk) -> Option<Next> {
        let meeting = walk.meeting;
        let around_meeting = self.top(meeting);
        if walk.roots.iter().any(|&root| self.top(root) != root)
            || !self.entries(&around_meeting).contains(&meeting)
        {
            return None;
        }
        // Regions have been closed meanwhile.
        let mut numbers: HashMap<Element, usize> = HashMap::new();
        let mut elements: Vec<Element> = Vec::new();
        for &element in &walk.ahead {
            let top = self.top(element);
            self.apart[top] |= top != element;
            numbers.entry(top).or_insert_with(|| {
                elements.push(top);
                elements.len() - 1
            });
        }
        // Whoever comes to a region by some of its entries does not come to all of it.
        let comes_to_all = |element: &Element| {
            let mut entries = self.entries(element).iter();
            *element < self.len() || entries.all(|entry| walk.entered.contains(entry))
        };
        if !elements.iter().all(comes_to_all)
            || around_meeting != meeting && numbers.contains_key(&around_meeting)
        {
            return None;
        }
        let inside = self.inside(walk, &numbers);
        // Lanes that end outside of it may do so where other regions are.
        if inside.contains(&false) {
            return None;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let is_inside = |block: usize| numbers.contains_key(&self.top(block));
        let mut entries: Vec<usize> = Vec::new();
        elements
            .iter()
            .for_each(|e| entries.extend(self.entries(e)));
        // Of the meeting point itself only the end can be inside, and every edge to it leaves the region.
        entries.retain(|&b| b == 0 || b == meeting || is_entered(self.meetings, b, &is_inside));
        entries.sort_unstable();
        let (mut added, mut meets_others, mut steps) = (Vec::new(), false, 0);
        for &within in elements.iter().flat_map(|element| self.entries(element)) {
            // Whoever meets where all enter comes to nothing else before.
            if within == meeting || entries == [within] {
                continue;
            }
            for &branch in self.branches[within].iter().filter(|&&b| !is_inside(b)) {
                meets_others |= entries.binary_search(&within).is_err();
                let apart = enters_apart(self.meetings, branch, within, &is_inside, &mut scratch);
                steps += scratch.nodes().len();
                if apart {
                    added.push(branch);
                }
            }
        }
        if !added.is_empty() {
            self.steps += steps;
            self.scratch = scratch;
            return Some(Next::Widen(added));
        }
        let region = region(
            self.meetings,
            self.branches,
            &entries,
            meeting,
            &is_inside,
            &mut scratch,
        );
        self.scratch = scratch;
        self.steps += steps;
        if !meets_others && !numbers.contains_key(&meeting) {
            let closed = (self.len() + self.found.len()) as u32;
            for &element in &elements {
                self.above[element].set(closed);
                self.holder[element] = closed;
            }
        } else {
            self.closed = false;
        }
        self.above.push(Cell::new(NONE));
        self.holder.push(NONE);
        self.apart.push(false);
        self.found.push(Level {
            region,
            entries,
            members: elements,
        });
        Some(Next::Done)
    }

    /// By number: whether the meeting point can be reached.
    fn inside(&self, walk: &Walk, numbers: &HashMap<Element, usize>) -> Vec<bool> {
        let number = |element: Element| numbers[&self.top(element)];
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); numbers.len()];
        for &(from, to) in &walk.edges {
            before[number(to)].push(number(from));
        }
        let mut inside = vec![false; numbers.len()];
        let mut work: Vec<usize> = walk.last.iter().map(|&element| number(element)).collect();
        work.extend(numbers.get(&walk.meeting));
        while let Some(at) = work.pop() {
            if !std::mem::replace(&mut inside[at], true) {
                work.extend(&before[at]);
            }
        }
        inside
    }

    /// What was found.
    fn finish(mut self) -> Option<Regions> {
        let places = |level: &Level| !level.region.places.is_empty();
        let nesting = match self.nesting() {
            Some(nesting) => nesting,
            // What the regions hold is asked for when they lack no places.
            None if self.found.iter().any(places) => Nesting {
                regions: Vec::new(),
                around_block: Vec::new(),
            },
            None => return None,
        };
        let len = self.len();
        for (index, level) in self.found.iter().enumerate().rev() {
            if self.apart[len + index] {
                level.members.iter().for_each(|&m| self.apart[m] = true);
            }
        }
        self.apart.truncate(len);
        let reached = &mut self.scratch;
        reached.fill_reachable(self.meetings.graph(), self.apart_for_good, None);
        reached.nodes().iter().for_each(|&b| self.apart[b] = true);
        let mut found: Vec<Region> = self.found.into_iter().map(|level| level.region).collect();
        found.sort_by_key(|region| region.meeting);
        Some(Regions {
            found,
            extents: Extents::Nested(nesting),
            apart: self.apart,
        })
    }

    /// How the regions lie in each other, where they start included; none if some overlap in another way, or lack
    /// places.
    fn nesting(&self) -> Option<Nesting> {
        if !self.closed {
            return None;
        }
        let len = self.len();
        let region_around = |element: Element| {
            let holder = self.holder[element];
            (holder != NONE).then(|| holder as usize - len)
        };
        // By region: how many are around it, and for each entry the outermost region that is entered there too.
        let mut around: Vec<u32> = vec![0; self.found.len()];
        let mut outermost: Vec<Vec<usize>> = vec![Vec::new(); self.found.len()];
        for (index, level) in self.found.iter().enumerate().rev() {
            if !level.region.places.is_empty() {
                return None;
            }
            let outer = region_around(len + index);
            around[index] = outer.map_or(0, |outer| around[outer] + 1);
            for (start, entry) in level.region.starts.iter().zip(&level.entries) {
                let same = outer.and_then(|outer| {
                    let at = self.found[outer].entries.binary_search(entry).ok()?;
                    Some(outermost[outer][at])
                });
                let first = same.unwrap_or(index);
                outermost[index].push(first);
                // A start before the entry lies where the outermost region does that begins there.
                if start != entry && region_around(*start) != region_around(len + first) {
                    return None;
                }
            }
        }
        let mut blocks: Vec<usize> = Vec::with_capacity(self.found.len());
        let mut regions: Vec<(usize, (u32, usize))> = Vec::with_capacity(self.found.len());
        for (level, around) in self.found.iter().zip(&around) {
            let of_member = |&member: &Element| member.checked_sub(len).map_or(1, |r| blocks[r]);
            let held: usize = level.members.iter().map(of_member).sum();
            blocks.push(held);
            let starts = level.region.starts.iter().zip(&level.entries);
            let outside = starts.filter(|(start, entry)| start != entry).count();
            regions.push((level.region.meeting, (*around, held + outside)));
        }
        regions.sort_unstable();
        Some(Nesting {
            regions: regions.into_iter().map(|(_, region)| region).collect(),
            around_block: (0..len)
                .map(|block| region_around(block).map_or(0, |region| around[region] + 1))
                .collect(),
        })
    }
}
