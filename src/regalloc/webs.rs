//! Values that want the same register (webs) and webs that want neighbouring ones (runs).
//!
//! A web holds block parameters with their arguments and guarded results with the values that they keep, as long as no
//! member is alive where another is defined: then all of them can have one register and the copies between them vanish.
//! A run holds the webs of the values of wide operands at their offsets in an aligned pair or quad. Since it holds
//! webs, an address that a loop carries in two words is a pair in the parameters, in what is added to them and in the
//! arguments, and accumulators that are stored together at the end stand side by side from the start.
//!
//! What would put two webs at one place of a run joins these webs, and does not happen where they interfere: half of a
//! pair in the right register is worth nothing. Both are preferences: what the colouring cannot grant costs a copy. So
//! those of the innermost loops come first ([`super::preferences`] collects them).

use super::coloured::Coloured;
use super::constrain::pressure::stack_pointer;
use super::convention::hints;
use super::liveness::Liveness;
use super::preferences::{Preferences, Tuple};
use crate::isa::{Register, VReg};
use crate::vcode::VCode;
use smallvec::SmallVec;

/// No register.
pub(super) const NONE: u8 = u8::MAX;
const NO_RUN: u32 = u32::MAX;
/// Largest product of the sizes of two webs that are compared member by member (*assumed*; keeps the work linear in
/// practice).
const MERGE_WORK: u32 = 4096;

/// Webs for one aligned run of registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// 2 or 4.
    pub width: u8,
    /// A member of the web that is wanted at each offset.
    pub members: [Option<VReg>; 4],
    /// First register, once chosen; [`NONE`] before.
    pub base: u8,
}

/// A value; all but the links counts at the root of its web.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Towards the root; the root's own index there. Direct once all webs are joined.
    parent: u32,
    /// The next member of the web, in a ring.
    next: u32,
    /// Number of members.
    size: u32,
    run: u32,
    offset: u8,
    /// The web's register.
    colour: u8,
    /// A register that the calling convention wants for a member, and how strongly.
    hint: u8,
    hint_depth: u8,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Webs {
    nodes: Vec<Node>,
    /// Whether some webs have been joined.
    united: bool,
    runs: Vec<Run>,
    /// Values with registers of the calling convention.
    hinted: Vec<(VReg, u8)>,
    preferences: Preferences,
}

/// A run that is being put together: what has to happen for it.
#[derive(Clone)]
struct Plan {
    run: Run,
    /// Webs that come to stand at one place.
    joined: SmallVec<[(VReg, VReg); 4]>,
}

impl Webs {
    /// Builds webs and runs of what is coloured.
    pub fn compute(&mut self, code: &VCode<VReg>, live: &Liveness, coloured: &Coloured) {
        self.nodes.clear();
        self.nodes.extend((0..code.vreg_count).map(|index| Node {
            parent: index,
            next: index,
            size: 1,
            run: NO_RUN,
            offset: 0,
            colour: NONE,
            hint: NONE,
            hint_depth: 0,
        }));
        self.runs.clear();
        let mut preferences = std::mem::take(&mut self.preferences);
        preferences.collect(code, coloured, stack_pointer(code));
        let meets = Interference { code, live };
        let mut joins = preferences.joins.iter().peekable();
        for tuple in &preferences.tuples {
            while let Some(join) = joins.next_if(|j| j.comes_before(tuple)) {
                self.join(&meets, join.a, join.b);
            }
            self.join_tuple(&meets, tuple);
        }
        joins.for_each(|join| self.join(&meets, join.a, join.b));
        if std::mem::take(&mut self.united) {
            for i in 0..self.nodes.len() as u32 {
                self.nodes[i as usize].parent = self.find(i);
            }
        }
        self.hinted.clear();
        hints(code, |v, register, depth| {
            if !coloured.contains(v) {
                return;
            }
            let depth = depth.min(u32::from(u8::MAX)) as u8;
            let root = self.nodes[v.index()].parent;
            let node = &mut self.nodes[root as usize];
            if node.hint == NONE || node.hint_depth < depth {
                node.hint = register;
                node.hint_depth = depth;
            }
            self.hinted.push((v, register));
        });
        self.pass_hints_on(code, live);
        self.preferences = preferences;
    }

    /// The root, while webs are being joined.
    fn find(&self, mut i: u32) -> u32 {
        while self.nodes[i as usize].parent != i {
            i = self.nodes[i as usize].parent;
        }
        i
    }

    fn root_of(&self, v: VReg) -> VReg {
        VReg::new(v.class(), self.find(v.index() as u32))
    }

    /// Makes one web of the two of `a` and `b`, and one run of their runs.
    fn join(&mut self, meets: &Interference<'_>, a: VReg, b: VReg) {
        let (a, b) = (self.root_of(a), self.root_of(b));
        if a == b || a.class() != b.class() {
            return;
        }
        let (x, y) = (self.nodes[a.index()], self.nodes[b.index()]);
        if x.run == NO_RUN || y.run == NO_RUN {
            if !self.clash(meets, a, b) {
                let run = if x.run == NO_RUN { y } else { x };
                let root = self.unite(a, b);
                self.stand(root, run.run, run.offset);
            }
            return;
        }
        let wider = self.runs[x.run as usize].width >= self.runs[y.run as usize].width;
        let (x, y) = if wider { (x, y) } else { (y, x) };
        let mut plan = Plan {
            run: self.runs[x.run as usize],
            joined: SmallVec::new(),
        };
        if x.run != y.run && self.absorb(meets, &mut plan, y.run, x.offset, y.offset) {
            self.carry_out(plan, x.run);
        }
    }

    /// Gives the webs of a wide operand's values consecutive places in one run, as far as that agrees with the runs
    /// that they are in.
    fn join_tuple(&mut self, meets: &Interference<'_>, tuple: &Tuple) {
        let mut roots = SmallVec::<[VReg; 4]>::new();
        for v in tuple.regs() {
            roots.push(self.root_of(v));
        }
        let width = roots.len();
        // The widest run that has room for it around one of the values, else a new one.
        let around = |(i, root): (usize, &VReg)| {
            let node = self.nodes[root.index()];
            let run = self.runs.get(node.run as usize)?;
            let shift = usize::from(node.offset).checked_sub(i)?;
            let room = shift % width == 0 && shift + width <= usize::from(run.width);
            room.then_some((*run, node.run, shift))
        };
        let places = roots.iter().enumerate().filter_map(around);
        let widest = places.min_by_key(|(run, ..)| std::cmp::Reverse(run.width));
        let (run, target, shift) = widest.unwrap_or_else(|| {
            let run = Run {
                width: width as u8,
                members: [None; 4],
                base: NONE,
            };
            (run, self.runs.len() as u32, 0)
        });
        let mut plan = Plan {
            run,
            joined: SmallVec::new(),
        };
        for (place, &root) in (shift..).zip(&roots) {
            let node = self.nodes[root.index()];
            if node.run == NO_RUN {
                self.place(meets, &mut plan, place, root);
            } else if node.run != target {
                self.absorb(meets, &mut plan, node.run, place as u8, node.offset);
            }
        }
        self.carry_out(plan, target);
    }

    /// Plans to put the members of `run` into the run of the plan, `there` in place of `here`; all or none of them.
    fn absorb(
        &self,
        meets: &Interference<'_>,
        plan: &mut Plan,
        run: u32,
        here: u8,
        there: u8,
    ) -> bool {
        let run = &self.runs[run as usize];
        let Some(shift) = here.checked_sub(there) else {
            return false;
        };
        if shift % run.width != 0 || shift + run.width > plan.run.width {
            return false;
        }
        let mut larger = plan.clone();
        let mut members = (usize::from(shift)..).zip(run.members);
        let fits = members
            .all(|(place, member)| member.is_none_or(|m| self.place(meets, &mut larger, place, m)));
        if fits {
            *plan = larger;
        }
        fits
    }

    /// Plans to put the web of `root` at a place of the run.
    fn place(&self, meets: &Interference<'_>, plan: &mut Plan, place: usize, root: VReg) -> bool {
        let present = plan.run.members[place];
        if present == Some(root) {
            return true;
        }
        // A web cannot be at two places, and is joined with one other at most.
        let is_placed = |r: VReg| {
            plan.run.members.contains(&Some(r)) || plan.joined.iter().any(|j| j.0 == r || j.1 == r)
        };
        if is_placed(root) {
            return false;
        }
        let Some(present) = present else {
            plan.run.members[place] = Some(root);
            return true;
        };
        let again = plan.joined.iter().any(|j| j.0 == present);
        if again || self.clash(meets, present, root) {
            return false;
        }
        plan.joined.push((present, root));
        true
    }

    /// Makes the planned run number `target`.
    fn carry_out(&mut self, plan: Plan, target: u32) {
        for (a, b) in plan.joined {
            self.unite(a, b);
        }
        let mut run = plan.run;
        for (offset, member) in (0u8..).zip(&mut run.members) {
            if let Some(member) = member {
                *member = self.root_of(*member);
                self.stand(*member, target, offset);
            }
        }
        match self.runs.get_mut(target as usize) {
            Some(place) => *place = run,
            None => self.runs.push(run),
        }
    }

    /// Notes the place of the web of `root` in a run, if it has one.
    fn stand(&mut self, root: VReg, run: u32, offset: u8) {
        let node = &mut self.nodes[root.index()];
        (node.run, node.offset) = (run, offset);
        if let Some(run) = self.runs.get_mut(run as usize) {
            run.members[usize::from(offset)] = Some(root);
        }
    }

    /// Makes one web of two, and returns its root.
    fn unite(&mut self, a: VReg, b: VReg) -> VReg {
        let (keep, gone) = if self.nodes[a.index()].size >= self.nodes[b.index()].size {
            (a, b)
        } else {
            (b, a)
        };
        let (k, g) = (keep.index(), gone.index());
        self.united = true;
        self.nodes[g].parent = k as u32;
        self.nodes[k].size += self.nodes[g].size;
        let next = self.nodes[k].next;
        self.nodes[k].next = self.nodes[g].next;
        self.nodes[g].next = next;
        keep
    }

    /// Whether a member of one web is alive where one of the other is defined, or that would be too long to find out.
    fn clash(&self, meets: &Interference<'_>, a: VReg, b: VReg) -> bool {
        let (x, y) = (self.nodes[a.index()].size, self.nodes[b.index()].size);
        x.saturating_mul(y) > MERGE_WORK
            || self
                .members(a)
                .any(|x| self.members(b).any(|y| meets.interfere(x, y)))
    }

    /// Lets a value that ends where another one with a hint begins have the same hint: what is computed from it in
    /// steps can stay in one register.
    fn pass_hints_on(&mut self, code: &VCode<VReg>, live: &Liveness) {
        if self.hinted.is_empty() {
            return;
        }
        for entry in code.insts.iter().rev() {
            let mut results = entry.inst.definitions();
            let Some(result) = results.next() else {
                continue;
            };
            let hint = self.hint(result);
            if hint == NONE || results.next().is_some() {
                continue;
            }
            let mut ending = entry
                .inst
                .uses()
                .filter(|v| v.class() == result.class() && live.uses(*v).len() == 1);
            if let Some(v) = ending.next() {
                let node = self.node_mut(v);
                if node.hint == NONE {
                    node.hint = hint;
                }
            }
        }
    }

    /// Values that the calling convention gives registers, with those.
    pub fn hinted(&self) -> &[(VReg, u8)] {
        &self.hinted
    }

    fn node(&self, v: VReg) -> &Node {
        &self.nodes[self.nodes[v.index()].parent as usize]
    }

    fn node_mut(&mut self, v: VReg) -> &mut Node {
        let root = self.nodes[v.index()].parent;
        &mut self.nodes[root as usize]
    }

    /// The web of a value, as a number.
    pub fn web(&self, v: VReg) -> u32 {
        self.nodes[v.index()].parent
    }

    /// The web's register.
    pub fn colour(&self, v: VReg) -> u8 {
        self.node(v).colour
    }

    /// Gives the web of `v` a register unless it has one; true if it is new.
    pub fn set_colour(&mut self, v: VReg, colour: u8) -> bool {
        let node = self.node_mut(v);
        let new = node.colour == NONE;
        if new {
            node.colour = colour;
        }
        new
    }

    /// Whether a value has company in its web.
    pub fn is_joined(&self, v: VReg) -> bool {
        self.nodes[v.index()].next != v.index() as u32
    }

    /// Whether a value has company in its web or run.
    pub fn has_company(&self, v: VReg) -> bool {
        let node = &self.nodes[v.index()];
        node.next != v.index() as u32 || node.run != NO_RUN
    }

    /// Members of the web, `v` first.
    pub fn members(&self, v: VReg) -> impl Iterator<Item = VReg> + '_ {
        let start = v.index() as u32;
        let mut next = Some(start);
        std::iter::from_fn(move || {
            let now = next?;
            let behind = self.nodes[now as usize].next;
            next = (behind != start).then_some(behind);
            Some(VReg::new(v.class(), now))
        })
    }

    /// The register that the calling convention wants for the web.
    pub fn hint(&self, v: VReg) -> u8 {
        self.node(v).hint
    }

    /// The run of a value's web: its number and the web's offset.
    pub fn run(&self, v: VReg) -> Option<(u32, u8)> {
        let node = self.node(v);
        (node.run != NO_RUN).then_some((node.run, node.offset))
    }

    /// A run by number.
    pub fn run_info(&self, run: u32) -> &Run {
        &self.runs[run as usize]
    }

    /// Sets the first register of a run.
    pub fn set_base(&mut self, run: u32, base: u8) {
        self.runs[run as usize].base = base;
    }
}

/// Which values are alive at the same time.
struct Interference<'a> {
    code: &'a VCode<VReg>,
    live: &'a Liveness,
}

impl Interference<'_> {
    /// Whether one of two values is alive where the other is defined.
    fn interfere(&self, x: VReg, y: VReg) -> bool {
        let (a, b) = (self.live.def_position(x), self.live.def_position(y));
        let (earlier, at, later) = match a.cmp(&b) {
            std::cmp::Ordering::Equal => return true,
            std::cmp::Ordering::Less => (x, b, y),
            std::cmp::Ordering::Greater => (y, a, x),
        };
        let block = self.live.def_block(later);
        self.live.end(earlier) > at && self.live.is_live_after(self.code, earlier, at, block)
    }
}
