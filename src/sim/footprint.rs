//! What an instruction reads and writes, for checks and timing.

use super::registers::PT;
use crate::isa::Inst;
use crate::isa::Role;
use crate::isa::register::{PReg, Register, RegisterClass};
use crate::isa::table::{Direction, Effects, FieldType};

/// A register of any file, or a convergence barrier, as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(u16);

impl Resource {
    /// Numbers are below this.
    pub const COUNT: usize = 0x401;

    /// Some general register, known only at run time.
    pub const ANY_GENERAL: Resource = Resource(0x400);

    /// A register.
    pub fn register(class: RegisterClass, number: u8) -> Self {
        Resource((class as u16) << 8 | u16::from(number))
    }

    /// A convergence barrier.
    pub fn barrier(number: u8) -> Self {
        Resource(0x300 | u16::from(number))
    }

    /// Its register file; none for a barrier and for [`Resource::ANY_GENERAL`].
    pub fn class(self) -> Option<RegisterClass> {
        RegisterClass::ALL.get(usize::from(self.0 >> 8)).copied()
    }

    /// Its number in its file.
    pub fn number(self) -> u8 {
        self.0 as u8
    }

    /// Its number among all.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Whether two may be the same.
    pub fn meets(self, other: Resource) -> bool {
        let general = |r: Resource| r == Self::ANY_GENERAL || r.class() == Some(RegisterClass::Gpr);
        self == other
            || ((self == Self::ANY_GENERAL || other == Self::ANY_GENERAL)
                && general(self)
                && general(other))
    }
}

impl From<PReg> for Resource {
    fn from(register: PReg) -> Self {
        Resource::register(register.class(), register.number())
    }
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.class() {
            Some(class) => write!(f, "{}{}", class.prefix(), self.number()),
            None if *self == Self::ANY_GENERAL => f.write_str("R[]"),
            None => write!(f, "B{}", self.number()),
        }
    }
}

/// Resources of an instruction, hard-wired registers left out.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    /// Read, the guard left out.
    pub reads: Box<[Resource]>,
    /// Read as the guard.
    pub guard: Option<Resource>,
    /// Written, with the cycles from issue until the result has arrived.
    pub writes: Box<[(Resource, u16)]>,
    /// Cycles until the sources have been read.
    pub sources: u16,
    /// The times are not fixed: scoreboards signal them.
    pub variable: bool,
}

impl Footprint {
    /// What an instruction reads and writes, its times from the latency table.
    pub fn of(inst: &Inst<PReg>) -> Footprint {
        let optype = inst.optype().info();
        let latency = optype.latency;
        let mut footprint = Footprint {
            sources: latency.sources,
            variable: latency.variable,
            ..Footprint::default()
        };
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for operand in inst.operands() {
            let registers = operand.regs.iter().copied().flatten().map(Resource::from);
            if operand.info.role == Role::Pg {
                footprint.guard = registers.into_iter().next();
                continue;
            }
            let cycles = match operand.info.class {
                Some(RegisterClass::Predicate) => latency.predicate,
                _ if operand.regs.len() > 1 => latency.wide,
                _ => latency.result,
            };
            match operand.info.direction {
                Direction::Out => writes.extend(registers.map(|r| (r, cycles))),
                _ => reads.extend(registers),
            }
        }
        for operand in inst.info().operands.iter().filter(|o| o.class.is_none()) {
            let (resources, cycles): (Vec<Resource>, u16) =
                match inst.info().fields.get(usize::from(operand.field)) {
                    // The set of all predicates has no field.
                    None => {
                        let all =
                            (0..PT as u8).map(|n| Resource::register(RegisterClass::Predicate, n));
                        (all.collect(), latency.predicate)
                    }
                    Some(field) if matches!(field.ty, FieldType::Convergence) => (
                        vec![Resource::barrier(inst.field(operand.field) as u8)],
                        latency.result,
                    ),
                    Some(_) => continue,
                };
            match operand.direction {
                Direction::Out => writes.extend(resources.into_iter().map(|r| (r, cycles))),
                _ => reads.extend(resources),
            }
        }
        if optype.effects.contains(Effects::ANY_GPR) {
            // What has a result reads the unknown register, what has none writes it.
            match inst.operand(Role::D) {
                Some(_) => reads.push(Resource::ANY_GENERAL),
                None => writes.push((Resource::ANY_GENERAL, latency.result)),
            }
        }
        footprint.reads = reads.into_boxed_slice();
        footprint.writes = writes.into_boxed_slice();
        footprint
    }
}
