//! What an instruction reads and writes, for checks and timing.

use crate::isa::Inst;
use crate::isa::Role;
use crate::isa::register::{PReg, RegisterClass};
use crate::isa::table::{Direction, Effects, FieldType};
use crate::launch::Resource;
use crate::sim::warp::registers::PT;

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
