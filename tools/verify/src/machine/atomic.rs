//! Atomic operations: this lane is the only one, so that they are a load and a store.

use super::{Machine, State};
use crate::outcome::Open;
use crate::term::{Sort, Term, Unknown};
use crate::words::Vector;
use cranelift_thisgpu::unstable::bits::Bits;
use cranelift_thisgpu::unstable::isa::Role;
use cranelift_thisgpu::unstable::isa::generated::{AtomOp, AtomType};
use cranelift_thisgpu::unstable::sim::atomic::combined;
use cranelift_thisgpu::unstable::sim::decode::{Atomic, Op, ZERO};

impl Machine<'_> {
    /// Reads a place of memory and writes what the operation makes of it.
    pub(super) fn atomic(&self, state: &mut State, op: &Op, atomic: Atomic) -> Result<(), Open> {
        let (Some(address), _) = self.address(state, op, atomic.access)? else {
            return Err(Open::new("an atomic operation on the frame"));
        };
        let bytes = u32::from(atomic.access.bytes);
        let operand = |role: Role| {
            let value = self.value(state, op, op.operand(role))?;
            Ok::<Term, Open>(value.part(0, 8 * bytes))
        };
        let old = address.load(state.memory, bytes);
        let operand_b = operand(Role::B)?;
        let new = match atomic.op {
            None => Term::choose(old.equals(operand_b), operand(Role::C)?, old),
            Some((AtomOp::Add, AtomType::F32 | AtomType::F16V2)) => {
                let function = Unknown {
                    name: format!("an atomic sum {:?}", atomic.op),
                    is_symmetric: false,
                };
                Term::apply(&function, &[old, operand_b], Sort::Bits(32))
            }
            Some((op, ty)) => match bytes {
                1 => of_width::<8>(op, ty, old, operand_b),
                2 => of_width::<16>(op, ty, old, operand_b),
                4 => of_width::<32>(op, ty, old, operand_b),
                _ => of_width::<64>(op, ty, old, operand_b),
            },
        };
        state.memory = address.store(state.memory, new);
        let d = op.operand(Role::D);
        if d.column < ZERO {
            let found = old.zero_extended((8 * bytes).max(32));
            for word in 0..found.width() / 32 {
                let part = found.part(32 * word, 32);
                state.registers.insert(d.column + word as u16, part);
            }
        }
        Ok(())
    }
}

fn of_width<const WIDTH: u32>(op: AtomOp, ty: AtomType, old: Term, operand: Term) -> Term
where
    Vector<WIDTH>: Bits,
{
    combined(op, ty, &Vector::<WIDTH>(old), &Vector(operand)).0
}
