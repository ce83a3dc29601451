//! What an instruction reads and writes, as the scheduler sees it.

use crate::isa::table::{Direction, Effects, FieldType, LatencyInfo};
use crate::isa::{PInst, PReg, Register, RegisterClass, Role};
use smallvec::SmallVec;

/// A 32-bit register, a predicate or a convergence barrier, numbered through all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(u16);

impl Resource {
    /// Numbers are below this.
    pub const COUNT: usize = 256 + 64 + 8 + 16;

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

    /// Its number.
    pub fn index(self) -> usize {
        usize::from(self.0)
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
#[derive(Clone, Debug, Default)]
pub struct Accesses {
    /// Everything read.
    pub reads: SmallVec<[Resource; 8]>,
    /// What of it is still being read after issue, until a scoreboard says that it is done.
    pub slow_reads: SmallVec<[Resource; 8]>,
    /// Written. Under a guard the old value stays where the guard is false.
    pub writes: SmallVec<[Write; 4]>,
    /// Cycles until the sources have been read, an estimate.
    pub sources: u16,
    /// The writes arrive at a time that is not fixed.
    pub variable: bool,
}

impl Accesses {
    /// What `inst` reads and writes. Hard-wired registers do not count.
    pub fn of(inst: &PInst) -> Accesses {
        let info = inst.info();
        let optype = info.optype.info();
        let latency = &optype.latency;
        let mut out = Accesses {
            sources: latency.sources,
            variable: latency.variable,
            ..Accesses::default()
        };
        let slow = latency.variable && latency.sources > 0;
        for operand in inst.operands() {
            let width = (operand.info.width)(inst.word());
            for &reg in operand.regs.iter().flatten() {
                let resource = Resource::register(reg);
                if operand.info.direction == Direction::Out {
                    out.writes.push(Write {
                        resource,
                        latency: result_latency(latency, operand.info.class, width),
                    });
                } else {
                    out.reads.push(resource);
                    // The guard is looked at when the instruction issues.
                    if slow && operand.info.role != Role::Pg {
                        out.slow_reads.push(resource);
                    }
                }
            }
        }
        for operand in info.operands.iter().filter(|o| o.class.is_none()) {
            // The set of all predicates is an operand without a field.
            let (resources, class): (SmallVec<[Resource; 8]>, _) =
                match info.fields.get(usize::from(operand.field)) {
                    Some(field) if matches!(field.ty, FieldType::Convergence) => (
                        SmallVec::from_slice(&[Resource::barrier(inst.field(operand.field) as u8)]),
                        None,
                    ),
                    Some(_) => continue,
                    None => (
                        all(RegisterClass::Predicate).collect(),
                        Some(RegisterClass::Predicate),
                    ),
                };
            match operand.direction {
                Direction::Out => out.add_writes(resources, result_latency(latency, class, 32)),
                _ => out.reads.extend(resources),
            }
        }
        if optype.effects.contains(Effects::ANY_GPR) {
            out.reads.extend(all(RegisterClass::Gpr));
            out.add_writes(all(RegisterClass::Gpr), latency.result);
        }
        out
    }

    /// Whether it reads or writes what `earlier` writes.
    pub fn touches_results_of(&self, earlier: &Accesses) -> bool {
        earlier.writes.iter().any(|w| {
            self.reads.contains(&w.resource)
                || self.writes.iter().any(|own| own.resource == w.resource)
        })
    }

    /// Whether it writes what `earlier` still reads after issue.
    pub fn overwrites_sources_of(&self, earlier: &Accesses) -> bool {
        let mut writes = self.writes.iter();
        writes.any(|w| earlier.slow_reads.contains(&w.resource))
    }

    fn add_writes(&mut self, resources: impl IntoIterator<Item = Resource>, latency: u16) {
        self.writes.extend(
            resources
                .into_iter()
                .map(|resource| Write { resource, latency }),
        );
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
