//! What an instruction reads and writes, as the scheduler sees it.
//!
//! Where a function has ordered accesses, what must have been performed before something else is issued is a resource,
//! too ([`Memory`]): an access with a result writes one, those that stay behind it read that, and so its scoreboard is
//! waited for. Two writes of one are no matter, and a fence does what the wait would do.

use crate::isa::table::{Direction, Effects, FieldType, LatencyInfo};
use crate::isa::{PInst, PReg, Register, RegisterClass, Role};
use crate::linear::{Linear, ends_path};
use crate::vcode::{AtomicSpace, Entry, MemoryEffect, MemoryOrder};
use std::fmt;
use std::ops::Range;

/// A 32-bit register, a predicate, a convergence barrier, or what is to be performed in [`Memory`], numbered through
/// all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(u16);

impl Resource {
    /// Numbers are below this.
    pub const COUNT: usize = FIRST_OF_MEMORY as usize + Memory::COUNT;

    /// A register.
    pub fn register(reg: PReg) -> Resource {
        let base = match reg.class() {
            RegisterClass::Gpr => 0,
            RegisterClass::Uniform => 256,
            RegisterClass::Predicate => 256 + 64,
        };
        Resource(base + u16::from(reg.number()))
    }

    /// A convergence barrier.
    pub fn barrier(number: u8) -> Resource {
        Resource(256 + 64 + 8 + u16::from(number))
    }

    /// Accesses to memory that may not have been performed.
    fn memory(kind: Memory) -> Resource {
        Resource(FIRST_OF_MEMORY + kind.number())
    }

    /// Whether it is accesses to memory, of which several may be on their way at once.
    pub fn is_memory(self) -> bool {
        self.0 >= FIRST_OF_MEMORY
    }

    /// Its number.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// All registers that can be written, file by file, then the convergence barriers. Each is shown as its name.
    pub fn all() -> impl Iterator<Item = (Resource, ResourceName)> {
        let registers = RegisterClass::ALL.iter().flat_map(|&class| {
            let numbers = 0..class.hardwired();
            numbers.map(move |n| PReg::new(class, n))
        });
        let registers = registers.map(|r| (Resource::register(r), ResourceName::Register(r)));
        let barriers = (0..16).map(|n| (Resource::barrier(n), ResourceName::Barrier(n)));
        registers.chain(barriers)
    }
}

/// The number of the first resource that is in no file of registers.
const FIRST_OF_MEMORY: u16 = 256 + 64 + 8 + 16;

/// Accesses whose scoreboard tells that they have been performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// Loads; ordered ones, which all that is behind waits for, or others, which only releases wait for.
    Loads(bool),
    /// Atomic operations, in the same way.
    Atomics(AtomicSpace, bool),
}

impl Memory {
    /// Numbers are below this.
    const COUNT: usize = 8;

    /// All of them.
    fn all() -> impl Iterator<Item = Memory> {
        [false, true].into_iter().flat_map(|ordered| {
            let atomics = AtomicSpace::ALL.map(|space| Memory::Atomics(space, ordered));
            std::iter::once(Memory::Loads(ordered)).chain(atomics)
        })
    }

    fn number(self) -> u16 {
        let (number, ordered) = match self {
            Memory::Loads(ordered) => (0, ordered),
            Memory::Atomics(space, ordered) => (1 + space as u16, ordered),
        };
        number + 4 * u16::from(ordered)
    }

    /// What tells that an access has been performed. Of stores nothing does, a fence apart.
    fn of(part: MemoryEffect, order: MemoryOrder, signals: bool) -> Option<Memory> {
        let ordered = order == MemoryOrder::Ordered;
        match part {
            _ if !signals => None,
            MemoryEffect::Load => Some(Memory::Loads(ordered)),
            MemoryEffect::Atomic(space) => Some(Memory::Atomics(space, ordered)),
            MemoryEffect::Store | MemoryEffect::Fence => None,
        }
    }

    /// Whether these have been performed before an access is.
    fn is_before(self, part: MemoryEffect, order: MemoryOrder) -> bool {
        let releases = order == MemoryOrder::Ordered && part != MemoryEffect::Load;
        match (self, part) {
            (_, MemoryEffect::Fence) => false,
            (Memory::Atomics(space, _), MemoryEffect::Atomic(own))
                if space.is_ordered_with(own) =>
            {
                false
            }
            (Memory::Loads(ordered) | Memory::Atomics(_, ordered), _) => ordered || releases,
        }
    }
}

/// What a resource is called.
#[derive(Clone, Copy, Debug)]
pub enum ResourceName {
    /// That of a register.
    Register(PReg),
    /// That of a convergence barrier.
    Barrier(u8),
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResourceName::Register(register) => register.fmt(f),
            ResourceName::Barrier(number) => write!(f, "B{number}"),
        }
    }
}

/// A resource that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Which.
    pub resource: Resource,
    /// Cycles from issue to the earliest dependent issue; an estimate when the time varies.
    pub latency: u16,
}

/// What one instruction reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct Accesses<'a> {
    /// Everything read.
    pub reads: &'a [Resource],
    /// What of it is still being read after issue, until a scoreboard says that it is done.
    pub slow_reads: &'a [Resource],
    /// Written. Under a guard the old value stays where the guard is false.
    pub writes: &'a [Write],
    /// Cycles until the sources have been read, an estimate.
    pub sources: u16,
    /// The writes arrive at a time that is not fixed.
    pub variable: bool,
    /// Control may leave the function for other code.
    pub leaves: bool,
    /// Control never reaches the next instruction.
    pub ends_path: bool,
    /// What is issued behind it is performed behind all that is issued before.
    pub fences: bool,
}

impl Accesses<'_> {
    /// Whether it reads or writes a register that `earlier` writes.
    pub fn touches_results_of(&self, earlier: &Accesses<'_>) -> bool {
        earlier.registers().any(|w| {
            self.reads.contains(&w.resource)
                || self.writes.iter().any(|own| own.resource == w.resource)
        })
    }

    /// Whether it has to be behind the performance of `earlier` in memory, if there is no fence between.
    pub fn is_ordered_behind(&self, earlier: &Accesses<'_>) -> bool {
        let mut performed = earlier.writes.iter().map(|w| w.resource);
        performed.any(|w| w.is_memory() && self.reads.contains(&w))
    }

    /// What it writes, but for memory.
    pub fn registers(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter().filter(|w| !w.resource.is_memory())
    }

    /// Whether its performance in memory is something that others may wait for.
    pub fn is_performed(&self) -> bool {
        self.writes.last().is_some_and(|w| w.resource.is_memory())
    }

    /// Whether it writes what `earlier` still reads after issue.
    pub fn overwrites_sources_of(&self, earlier: &Accesses<'_>) -> bool {
        let mut writes = self.writes.iter();
        writes.any(|w| earlier.slow_reads.contains(&w.resource))
    }
}

/// What the instructions of a function read and write, by their positions.
#[derive(Debug, Default)]
pub struct AccessLists {
    /// By position plus one; the first is of no instruction.
    insts: Vec<Lists>,
    reads: Vec<Resource>,
    writes: Vec<Write>,
}

/// The parts of an instruction in [`AccessLists`]: they begin where those of the instruction before it end.
#[derive(Clone, Copy, Debug, Default)]
struct Lists {
    reads_end: u32,
    writes_end: u32,
    /// How many of the reads, from the first on, are slow.
    slow: u16,
    sources: u16,
    variable: bool,
    leaves: bool,
    ends_path: bool,
    fences: bool,
}

/// Effects of the instructions that have operands without registers that are resources all the same.
const SPECIAL: Effects = Effects::CONVERGENCE
    .union(Effects::PREDICATES)
    .union(Effects::ANY_GPR);

impl AccessLists {
    /// Makes them those of `code`.
    pub fn fill(&mut self, code: &Linear) {
        self.insts.clear();
        self.reads.clear();
        self.writes.clear();
        self.insts.reserve(code.len() + 1);
        self.insts.push(Lists::default());
        let mut entries = code.runs().flatten();
        let has_orders = entries.any(Entry::is_ordered);
        for run in code.runs() {
            for entry in run {
                let part = match has_orders {
                    true => entry.part().map(|part| (part, entry.order)),
                    false => None,
                };
                self.push(&entry.inst, code.leaves_function(entry), part);
            }
        }
    }

    /// What each instruction reads and writes, in order.
    pub fn iter(&self) -> impl Iterator<Item = Accesses<'_>> {
        self.insts.windows(2).map(|lists| self.between(lists))
    }

    /// What the instruction at a position reads and writes.
    pub fn get(&self, position: usize) -> Accesses<'_> {
        self.between(&self.insts[position..position + 2])
    }

    /// Whether the time of an instruction among these is not fixed.
    pub fn any_is_variable(&self, positions: Range<usize>) -> bool {
        let mut lists = self.insts[positions.start + 1..=positions.end].iter();
        lists.any(|lists| lists.variable)
    }

    /// Whether control may leave the function before the last instruction.
    pub fn any_leaves_early(&self) -> bool {
        let mut lists = self.insts.iter().rev().skip(1);
        lists.any(|lists| lists.leaves)
    }

    /// What the second of two instructions reads and writes.
    fn between(&self, lists: &[Lists]) -> Accesses<'_> {
        let (before, lists) = (&lists[0], &lists[1]);
        let reads = &self.reads[before.reads_end as usize..lists.reads_end as usize];
        Accesses {
            reads,
            slow_reads: &reads[..usize::from(lists.slow)],
            writes: &self.writes[before.writes_end as usize..lists.writes_end as usize],
            sources: lists.sources,
            variable: lists.variable,
            leaves: lists.leaves,
            ends_path: lists.ends_path,
            fences: lists.fences,
        }
    }

    /// Adds an instruction, and what it does in memory if that matters. Hard-wired registers do not count.
    fn push(&mut self, inst: &PInst, leaves: bool, part: Option<(MemoryEffect, MemoryOrder)>) {
        debug_assert!(inst.has_clean_entries(), "{inst}");
        let info = inst.info();
        let optype = info.optype.info();
        let latency = &optype.latency;
        let reads = self.reads.len();
        // The guard is looked at when the instruction issues, so it comes behind the others, which may be read later.
        let guard = inst.operand(Role::Pg).map_or(0, |guard| 1 << guard.first);
        inst.registers(info.reads & !guard)
            .for_each(|reg| self.reads.push(Resource::register(reg)));
        let slow = match latency.variable && latency.sources > 0 {
            true => self.reads.len() - reads,
            false => 0,
        };
        inst.registers(info.reads & guard)
            .for_each(|reg| self.reads.push(Resource::register(reg)));
        if info.wide && latency.wide != latency.result {
            self.add_wide_writes(inst, latency);
        } else {
            inst.definitions().for_each(|reg| {
                self.writes.push(Write {
                    resource: Resource::register(reg),
                    latency: result_latency(latency, Some(reg.class()), 32),
                });
            });
        }
        if optype.effects.intersects(SPECIAL) {
            self.add_special(inst, latency);
        }
        if let Some((part, order)) = part {
            let performed = Memory::all().filter(|kind| kind.is_before(part, order));
            self.reads.extend(performed.map(Resource::memory));
            let has_result = inst
                .info()
                .operands
                .iter()
                .any(|o| o.direction == Direction::Out);
            let own = Memory::of(part, order, has_result && latency.variable);
            self.writes.extend(own.map(|kind| Write {
                resource: Resource::memory(kind),
                latency: latency.result,
            }));
        }
        self.insts.push(Lists {
            reads_end: self.reads.len() as u32,
            writes_end: self.writes.len() as u32,
            slow: slow as u16,
            sources: latency.sources,
            variable: latency.variable,
            leaves,
            ends_path: ends_path(inst),
            // One under a guard may not be there.
            fences: inst.is_unguarded() && matches!(part, Some((MemoryEffect::Fence, _))),
        });
    }

    /// Adds the registers that an instruction writes whose latency depends on the width of the result.
    fn add_wide_writes(&mut self, inst: &PInst, latency: &LatencyInfo) {
        let results = inst
            .operands()
            .filter(|operand| operand.info.direction == Direction::Out);
        for operand in results {
            let width = (operand.info.width)(inst.word());
            let latency = result_latency(latency, operand.info.class, width);
            let regs = operand.regs.iter().flatten();
            self.writes.extend(regs.map(|&reg| Write {
                resource: Resource::register(reg),
                latency,
            }));
        }
    }

    /// Adds what is no register operand: convergence barriers, the set of all predicates, registers known only at run
    /// time.
    fn add_special(&mut self, inst: &PInst, latency: &LatencyInfo) {
        let info = inst.info();
        for operand in info.operands.iter().filter(|o| o.class.is_none()) {
            let field = info.fields.get(usize::from(operand.field));
            match field.map(|field| field.ty) {
                Some(FieldType::Convergence) => {
                    let barrier = Resource::barrier(inst.field(operand.field) as u8);
                    let latency = result_latency(latency, None, 32);
                    self.add(operand.direction, std::iter::once(barrier), latency);
                }
                Some(_) => {}
                // The set of all predicates is an operand without a field.
                None => {
                    let class = RegisterClass::Predicate;
                    let latency = result_latency(latency, Some(class), 32);
                    self.add(operand.direction, all(class), latency);
                }
            }
        }
        if inst.optype().info().effects.contains(Effects::ANY_GPR) {
            self.add(Direction::In, all(RegisterClass::Gpr), 0);
            self.add(Direction::Out, all(RegisterClass::Gpr), latency.result);
        }
    }

    fn add(
        &mut self,
        direction: Direction,
        resources: impl Iterator<Item = Resource>,
        latency: u16,
    ) {
        match direction {
            Direction::Out => {
                (self.writes).extend(resources.map(|resource| Write { resource, latency }))
            }
            Direction::In | Direction::Neither => self.reads.extend(resources),
        }
    }
}

/// Every register of a class that can be written.
fn all(class: RegisterClass) -> impl Iterator<Item = Resource> {
    (0..class.hardwired()).map(move |n| Resource::register(PReg::new(class, n)))
}

/// Cycles until a result of a class and width can be used.
fn result_latency(latency: &LatencyInfo, class: Option<RegisterClass>, width: u8) -> u16 {
    match class {
        Some(RegisterClass::Predicate) => latency.predicate,
        _ if width > 32 => latency.wide,
        _ => latency.result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::encode::all_forms;

    /// [`AccessLists`] looks for resources in operands without registers only where an effect tells of them.
    #[test]
    fn special_operands_are_told_of_by_effects() {
        for form in all_forms() {
            let info = form.info();
            let special = info.operands.iter().any(|operand| {
                let field = info.fields.get(usize::from(operand.field));
                operand.class.is_none()
                    && field.is_none_or(|f| matches!(f.ty, FieldType::Convergence))
            });
            let told = info.optype.info().effects.intersects(SPECIAL);
            assert!(told || !special, "{}", info.name);
        }
    }
}
