//! Operations on floats: unknown functions of what they read.
//!
//! A function is named by the mnemonic and the values of the fields that say what the operation does. Signs and absolute
//! values of operands of 32 and 64 bits are no part of the name: they are operations on bits, done before.

use super::lane::Lane;
use super::{Machine, State};
use crate::outcome::Open;
use crate::term::{Sort, Term};
use cranelift_thisgpu::unstable::isa::encode::value_text;
use cranelift_thisgpu::unstable::isa::table::{Direction, FieldType, FieldValue, OperandInfo};
use cranelift_thisgpu::unstable::isa::{Inst, PReg, RegisterClass};
use cranelift_thisgpu::unstable::sim::decode::Op;

impl Machine<'_> {
    /// Writes what an operation on floats gives where its guard holds.
    pub(super) fn unknown(
        &self,
        state: &mut State,
        op: &Op,
        inst: &Inst<PReg>,
        guard: Term,
    ) -> Result<(), Open> {
        let info = inst.info();
        let (word, operands) = (inst.word(), info.operands);
        let flag = |field: Option<u8>| field.is_some_and(|index| inst.field(index) != 0);
        // The guard is none of them: it stands first.
        let read = operands[1..]
            .iter()
            .filter(|operand| operand.direction == Direction::In);
        let mut sources = Vec::new();
        for operand in read {
            sources.push(match operand.class {
                Some(RegisterClass::Predicate) => {
                    let place = op.operand(operand.role);
                    let holds = state.predicate(usize::from(place.column));
                    if place.invert { holds.not() } else { holds }
                }
                _ => {
                    let value = self.value(state, op, op.operand(operand.role))?;
                    let sign = Term::number(1 << (value.width() - 1), value.width());
                    let value = match flag(operand.absolute) && is_whole(operand) {
                        true => value.and(sign.not()),
                        false => value,
                    };
                    match flag(operand.negate) && is_whole(operand) {
                        true => value.xor(sign),
                        false => value,
                    }
                }
            });
        }
        let hidden: Vec<u8> = operands
            .iter()
            .flat_map(|o| {
                let signs = [o.negate, o.absolute].map(|field| field.filter(|_| is_whole(o)));
                [Some(o.field), o.not, signs[0], signs[1]]
            })
            .flatten()
            .collect();
        let mut name = inst.optype().info().mnemonic.to_owned();
        for (index, field) in (0..).zip(info.fields) {
            let is_constant = matches!(field.value, FieldValue::Constant(_));
            if matches!(field.ty, FieldType::Enum(_)) && !is_constant && !hidden.contains(&index) {
                let value = value_text(&field.ty, field.get(word));
                name.push_str(&format!(" {}={value}", field.name));
            }
        }
        for operand in operands
            .iter()
            .filter(|o| o.direction == Direction::Neither)
        {
            let value = inst.field(operand.field);
            name.push_str(&format!(" {}={value}", operand.name));
        }
        let mut lane = Lane::new(self, state, op, guard);
        for operand in operands.iter().filter(|o| o.direction == Direction::Out) {
            let name = format!("{name} {:?}", operand.role);
            match operand.class {
                Some(RegisterClass::Predicate) => {
                    let value = Term::apply(&name, &sources, Sort::Truth);
                    lane.set(op.operand(operand.role).column.into(), value);
                }
                _ => {
                    let width = 32 * u32::from(op.operand(operand.role).words);
                    let value = Term::apply(&name, &sources, Sort::Bits(width));
                    lane.write(operand.role, value);
                }
            }
        }
        Ok(())
    }
}

/// Whether an operand is one number, not halves.
fn is_whole(operand: &OperandInfo) -> bool {
    operand.select.is_none()
}
