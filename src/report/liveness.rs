//! Which registers are alive where in finished code.
//!
//! A backward flow over the final words, since moves and waits were added after allocation. A guarded write keeps the
//! old value where its guard is false, so it ends no life. Calls, returns and tail calls also read and write what the
//! convention has them pass ([`Conventions`]).

use crate::analysis::graph::{Dominators, Graph};
use crate::isa::PReg;
use crate::isa::table::Effects;
use crate::linear::Linear;
use crate::sched::access::{AccessLists, Accesses, Resource};
use crate::vcode::{AttachmentId, Entry, Terminator, VCode};
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Words of a set of resources.
const WORDS: usize = Resource::COUNT.div_ceil(64);

/// A set of registers, predicates and convergence barriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ResourceSet([u64; WORDS]);

impl ResourceSet {
    pub(super) fn insert(&mut self, resource: Resource) {
        self.0[resource.index() / 64] |= 1 << (resource.index() % 64);
    }

    fn remove(&mut self, resource: Resource) {
        self.0[resource.index() / 64] &= !(1 << (resource.index() % 64));
    }

    fn contains(&self, resource: Resource) -> bool {
        self.0[resource.index() / 64] >> (resource.index() % 64) & 1 != 0
    }

    /// Adds another set; whether that is more than before.
    fn merge(&mut self, other: &ResourceSet) -> bool {
        let before = *self;
        (self.0.iter_mut().zip(other.0)).for_each(|(word, more)| *word |= more);
        *self != before
    }

    /// The names of its members, file by file.
    pub(super) fn names(&self) -> Vec<String> {
        let all = Resource::all().filter(|(resource, _)| self.contains(*resource));
        all.map(|(_, name)| name.to_string()).collect()
    }
}

/// What a call passes: registers that it reads and writes by its convention.
#[derive(Clone, Debug, Default)]
struct Passed {
    reads: SmallVec<[PReg; 8]>,
    writes: SmallVec<[PReg; 4]>,
}

/// What the calls and the ends of a function read and write by convention.
#[derive(Clone, Debug, Default)]
pub struct Conventions {
    calls: HashMap<AttachmentId, Passed>,
    /// Registers that returns hand over.
    returned: SmallVec<[PReg; 4]>,
    /// Registers that tail calls hand over, those of all together.
    passed_on: SmallVec<[PReg; 8]>,
}

impl Conventions {
    /// Those of allocated code.
    pub fn of(code: &VCode<PReg>) -> Self {
        let mut conventions = Conventions::default();
        for (block, data) in code.blocks.iter() {
            for entry in code.block_insts(block) {
                if let (Some(attachment), Some(call)) = (entry.attachment, code.call(entry)) {
                    let passed = Passed {
                        reads: call.uses.iter().map(|pair| pair.1).collect(),
                        writes: call.defs.iter().map(|pair| pair.1).collect(),
                    };
                    conventions.calls.insert(attachment, passed);
                }
            }
            match &data.terminator {
                Terminator::Return { values, .. } => {
                    let results = values.iter().map(|pair| pair.1);
                    conventions.returned.extend(results);
                }
                Terminator::TailCall { values, .. } => {
                    let arguments = values.iter().map(|pair| pair.1);
                    conventions.passed_on.extend(arguments);
                }
                _ => {}
            }
        }
        conventions
    }
}

/// Which registers are alive where.
pub(super) struct Liveness<'a> {
    code: &'a Linear,
    accesses: &'a AccessLists,
    conventions: &'a Conventions,
}

impl<'a> Liveness<'a> {
    /// Of code, what its instructions read and write, and what its calls and ends do by convention.
    pub(super) fn new(
        code: &'a Linear,
        accesses: &'a AccessLists,
        conventions: &'a Conventions,
    ) -> Self {
        Liveness {
            code,
            accesses,
            conventions,
        }
    }

    /// Goes from behind an instruction to before it.
    fn step_back(&self, alive: &mut ResourceSet, entry: &Entry<PReg>, access: &Accesses<'_>) {
        let passed = entry
            .attachment
            .and_then(|a| self.conventions.calls.get(&a));
        let register = |reg: &PReg| Resource::register(*reg);
        if entry.inst.is_unguarded() {
            let writes = access.writes.iter().map(|write| write.resource);
            writes.for_each(|resource| alive.remove(resource));
            if let Some(passed) = passed {
                let writes = passed.writes.iter().map(register);
                writes.for_each(|resource| alive.remove(resource));
            }
        }
        access.reads.iter().for_each(|r| alive.insert(*r));
        if let Some(passed) = passed {
            let reads = passed.reads.iter().map(register);
            reads.for_each(|resource| alive.insert(resource));
        } else if access.leaves && access.ends_path {
            let effects = entry.inst.optype().info().effects;
            let over = match effects.contains(Effects::RETURN) {
                true => self.conventions.returned.as_slice(),
                false => self.conventions.passed_on.as_slice(),
            };
            let over = over.iter().map(register);
            over.for_each(|resource| alive.insert(resource));
        }
    }

    /// What is alive behind a block.
    fn end(&self, block: usize, starts: &[ResourceSet]) -> ResourceSet {
        let mut alive = ResourceSet::default();
        let next = self.code.successors(block);
        next.filter_map(|next| starts.get(next)).for_each(|start| {
            alive.merge(start);
        });
        alive
    }

    /// What is alive behind each instruction of a block.
    pub(super) fn through(&self, block: usize, starts: &[ResourceSet]) -> Vec<ResourceSet> {
        let mut alive = self.end(block, starts);
        let positions = self.code.positions(block);
        let mut all = Vec::with_capacity(positions.len());
        for (entry, position) in self.code.insts(block).rev().zip(positions.rev()) {
            all.push(alive);
            self.step_back(&mut alive, entry, &self.accesses.get(position));
        }
        all.reverse();
        all
    }

    /// What is alive at the start of each block.
    pub(super) fn starts(&self, graph: &Graph, dominators: &Dominators) -> Vec<ResourceSet> {
        let mut starts = vec![ResourceSet::default(); graph.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for &block in dominators.reverse_postorder().iter().rev() {
                let mut alive = self.end(block, &starts);
                let positions = self.code.positions(block);
                for (entry, position) in self.code.insts(block).rev().zip(positions.rev()) {
                    self.step_back(&mut alive, entry, &self.accesses.get(position));
                }
                changed |= starts[block].merge(&alive);
            }
        }
        starts
    }
}
