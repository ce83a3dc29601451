//! Choosing where values of a class are in registers.
//!
//! Where more values are alive than there are registers, some must live elsewhere: a predicate or a uniform value in a
//! GPR, a GPR value in local memory, a constant nowhere (it is made again). Blocks are walked in reverse postorder with
//! the set of values that are in registers (Braun and Hack, "Register spilling and live-range splitting for SSA-form
//! programs", CC 2009): a value that is used and not in the set is brought back, where the set is full the value with
//! the farthest next use leaves it. At the header of a loop the set begins with what the loop uses; values that live
//! through the loop unused get what its pressure leaves. Where paths meet, a value is in the set if it is in a register
//! on all of them, or on some and there is room; the others bring it back at their ends.
//!
//! The result is a [`Plan`]: sets at the borders of blocks and the places where values come back. [`super::homes`]
//! decides where they come back from, [`super::rewrite`] writes the code.

use super::capacity::Capacity;
use super::distance::NEVER;
use super::flow::{Flow, OUTSIDE};
use super::plan::Plan;
use super::pressure::stack_pointer;
use super::walk::{Feedback, Walk};
use crate::isa::{Register, RegisterClass, VReg};
use crate::regalloc::liveness::{Liveness, edge_arguments};
use crate::vcode::{Block, VCode};
use hashbrown::HashSet;

pub(in crate::regalloc) use super::walk::Spiller;

/// Walks with new knowledge of where values cannot come back, before the headers of loops start without registers
/// (*assumed*).
const PATIENCE: u32 = 6;

impl Spiller {
    /// Plans registers for the values of `class` so that at most `capacity` are in registers anywhere. `plan` is left
    /// empty if all values can stay where they are.
    ///
    /// # Errors
    /// The block where one instruction needs more values than fit.
    pub fn choose(
        &mut self,
        code: &VCode<VReg>,
        live: &Liveness,
        class: RegisterClass,
        capacity: &Capacity,
        plan: &mut Plan,
    ) -> Result<(), Block> {
        let flow = Flow::compute(code);
        let pinned = stack_pointer(code);
        let mine = |v: &VReg| v.class() == class && Some(*v) != pinned;
        let values = code.vreg_count as usize;
        self.distances.compute(code, live, &flow, mine);
        plan.rematerializable.find(code, class);
        self.next.clear();
        self.next.resize(values, NEVER);
        // A walk that found no room has left some of another function.
        self.touched.clear();
        for list in [&mut self.count, &mut self.mark] {
            list.clear();
            list.resize(values, 0);
        }
        self.marks = 0;
        let limit = capacity.registers[class as usize];
        let across = capacity.across(class);
        self.find_pressure(code, live, &flow, &mine, class, limit - across.min(limit));
        let mut feedback = Feedback::default();
        let mut rounds = 0;
        let walk = |this: &mut Self, plan: &mut Plan, feedback: &Feedback| {
            this.left.clear();
            this.left.resize(values, false);
            plan.begin(code, class, limit);
            let mut walk = Walk {
                code,
                live,
                flow: &flow,
                class,
                pinned,
                limit,
                across,
                feedback,
                spiller: this,
                plan,
            };
            code.blocks.keys().try_for_each(|block| {
                walk.enter(block);
                walk.run(block)
            })
        };
        loop {
            walk(self, plan, &feedback)?;
            if class != RegisterClass::Uniform {
                break;
            }
            let before = feedback.banned.len();
            ban(code, &flow, plan, &mut feedback.banned);
            if feedback.banned.len() == before {
                break;
            }
            rounds += 1;
            feedback.strict = rounds > PATIENCE;
        }
        if !plan.is_needed(code, &flow) {
            return Ok(());
        }
        if class != RegisterClass::Uniform && feedback.keep(code, &flow, plan) {
            // What a round of a loop ends with is often the cheapest to begin the next one with.
            let first = plan.cost(code, &flow);
            walk(self, plan, &feedback)?;
            if plan.cost(code, &flow) >= first {
                walk(self, plan, &Feedback::default())?;
            }
        }
        plan.settle(code, live, flow);
        Ok(())
    }

    /// The most values of `class` alive at once in each loop; a call counts as if it took all registers that callees do
    /// not keep.
    fn find_pressure(
        &mut self,
        code: &VCode<VReg>,
        live: &Liveness,
        flow: &Flow,
        mine: &impl Fn(&VReg) -> bool,
        class: RegisterClass,
        lost: u32,
    ) {
        self.pressure.clear();
        self.pressure.resize(flow.loop_count(), 0);
        let alive = &mut self.present;
        for (block, data) in code.blocks.iter() {
            if flow.innermost(block) == OUTSIDE {
                continue;
            }
            alive.reset(code.vreg_count as usize);
            for v in live.live_out(block).chain(data.terminator.uses()) {
                if mine(&v) {
                    alive.insert(v);
                }
            }
            let mut most = alive.count(class);
            for entry in code.block_insts(block).iter().rev() {
                let mut dead = 0;
                for v in code.definitions(entry).filter(mine) {
                    dead += u32::from(!alive.remove(v));
                }
                let defined = code.definitions(entry).filter(mine).count() as u32;
                most = most.max(alive.count(class) + defined.max(dead));
                if code.call(entry).is_some() {
                    most = most.max(alive.count(class) + lost);
                }
                let kept = code.else_values(entry).iter().flatten().filter(|v| mine(v));
                let kept = kept.count() as u32;
                for v in code.uses(entry).filter(mine) {
                    alive.insert(v);
                }
                most = most.max(alive.count(class) + kept);
            }
            let params = data
                .params
                .iter()
                .filter(|v| mine(v) && !alive.contains(**v));
            most = most.max(alive.count(class) + params.count() as u32);
            let mut around = flow.innermost(block);
            while around != OUTSIDE {
                let place = &mut self.pressure[around as usize];
                *place = (*place).max(most);
                around = flow.parent(around);
            }
        }
    }
}

/// Finds values that would have to be written to a uniform register where lanes are elsewhere: at the end of a
/// divergent block where they would have to come back, or where names of theirs might meet.
fn ban(code: &VCode<VReg>, flow: &Flow, plan: &Plan, banned: &mut HashSet<(Block, VReg)>) {
    let mut returning: HashSet<VReg> = plan.reloads.iter().map(|(v, _)| *v).collect();
    let joins = || code.blocks.keys().filter(|b| flow.is_join(*b));
    for block in joins() {
        for from in flow.predecessors(block) {
            let divergent = code.blocks[from].divergent;
            plan.missing(code, from, block, |v, wanted| {
                returning.insert(v);
                if divergent {
                    banned.insert((block, wanted));
                }
            });
        }
    }
    for block in joins() {
        let divergent = |b: Block| code.blocks[b].divergent;
        if divergent(block) || flow.predecessors(block).any(divergent) {
            let meeting = plan.entry.of(block).iter();
            let meeting = meeting.filter(|v| returning.contains(*v));
            banned.extend(meeting.map(|v| (block, *v)));
        }
    }
}

impl Feedback {
    /// Notes, for the next walk, that loops begin with what they end with. False if they do.
    fn keep(&mut self, code: &VCode<VReg>, flow: &Flow, plan: &Plan) -> bool {
        let mut differs = false;
        for header in code.blocks.keys().filter(|b| flow.is_header(*b)) {
            for latch in flow.predecessors(header).filter(|p| *p >= header) {
                plan.missing(code, latch, header, |_, _| differs = true);
                let end = plan.exit.of(latch).iter();
                self.kept.extend(end.map(|v| (header, *v)));
                let there = |v: &VReg| plan.exit.has(latch, *v);
                let passed = edge_arguments(code, latch).filter(|(arg, _)| there(arg));
                self.kept.extend(passed.map(|(_, param)| (header, param)));
            }
        }
        differs
    }
}
