//! What the records of debug information say that variables are, in values and slots of CLIF.

use super::PendingAssignment;
use crate::data::{Scalar, scalar};
use crate::model::{Operand, Record, Step, Value};
use crate::translate::function::{Body, Parts};
use cranelift_codegen::ir;
use cranelift_thisgpu::variables::{Assigned, Base, Position};

impl<'p> Body<'_, 'p, '_> {
    /// What a record says at this place.
    pub fn record(&mut self, record: &'p Record) {
        let Some(block) = self.builder.current_block() else {
            return;
        };
        let from = match self.builder.func.layout.last_inst(block) {
            Some(inst) => Position::Behind(inst),
            None => Position::Start(block),
        };
        let (assigned, bytes) = self.recorded(record).unwrap_or((Assigned::Nothing, None));
        self.pending.push(PendingAssignment {
            variable: record.variable,
            location: record.location,
            fragment: record.expression.fragment,
            bytes,
            assigned,
            from,
        });
    }

    /// What a record says, and how many bytes of it are known, if not all.
    fn recorded(&mut self, record: &Record) -> Option<(Assigned, Option<u32>)> {
        let operand = record.value.as_ref()?;
        let Some((last, steps)) = record.expression.steps.split_last() else {
            return self.as_value(operand);
        };
        if *last != Step::Dereference {
            return None;
        }
        let mut path: Vec<i64> = vec![0];
        for step in steps {
            match step {
                Step::Dereference => path.push(0),
                Step::Plus(more) => {
                    let offset = path.last_mut()?;
                    *offset = offset.checked_add(*more)?;
                }
                Step::Unknown => return None,
            }
        }
        let first = path.remove(0);
        let base = self.base(operand, first)?;
        Some((Assigned::Memory { base, path }, None))
    }

    /// A value, or a constant.
    fn as_value(&mut self, operand: &Operand) -> Option<(Assigned, Option<u32>)> {
        if let Value::Constant(constant) = &operand.value {
            return match scalar(&operand.ty, constant).ok()? {
                Scalar::Bits(bits) => {
                    let low = bits as u64;
                    (u128::from(low) == bits).then_some((Assigned::Constant(low), None))
                }
                Scalar::Address(..) => None,
            };
        }
        let value = self.alone(operand)?;
        let bytes = self.builder.func.dfg.value_type(value).bytes();
        Some((Assigned::Value(value), Some(bytes)))
    }

    /// Memory so many bytes behind what an operand points to.
    fn base(&mut self, operand: &Operand, offset: i64) -> Option<Base> {
        if let Value::Local(local) = &operand.value
            && let Some(Some(slot)) = self.slots.get(local)
        {
            return Some(Base::Slot(*slot, u32::try_from(offset).ok()?));
        }
        Some(Base::Value(self.alone(operand)?, offset))
    }

    /// The value of CLIF that a value of the function is, if it is one.
    fn alone(&mut self, operand: &Operand) -> Option<ir::Value> {
        let parts: Parts = self.operand(operand).ok()?;
        match (&operand.value, &parts[..]) {
            (Value::Local(_), [value]) => Some(*value),
            _ => None,
        }
    }
}
