//! Pointers: what they point to and where that is. A pointer is known while translating but for indices.

use super::memory::Address;
use super::types::Ty;
use super::values::{Lanes, Value};
use super::{Result, Translator};
use crate::error::invalid;
use cranelift_codegen::ir::InstBuilder;
use cranelift_frontend::Variable;
use std::rc::Rc;

/// Where something can be loaded and stored.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// What is there.
    pub ty: Ty,
    pub storage: Storage,
}

/// Memory or variables.
#[derive(Clone, Debug)]
pub(super) enum Storage {
    /// A variable of the builder for each leaf of a whole variable, and the first leaf of this part of it.
    Variables {
        variables: Rc<[Variable]>,
        first: usize,
    },
    /// Memory.
    Memory(Address),
}

impl Translator<'_, '_, '_> {
    /// A part of what is at a place.
    pub(super) fn part_of(&mut self, place: &Place, index: u32) -> Result<Place> {
        let part = self.part(&place.ty, index)?;
        let storage = match &place.storage {
            Storage::Variables { variables, first } => Storage::Variables {
                variables: variables.clone(),
                first: first + part.first as usize,
            },
            Storage::Memory(address) => Storage::Memory(address.plus(part.offset)?),
        };
        Ok(Place {
            ty: part.ty,
            storage,
        })
    }

    /// What is at a place.
    pub(super) fn load(&mut self, place: &Place) -> Result<Value> {
        match &place.storage {
            Storage::Variables { variables, first } => {
                let count = self.count(&place.ty)? as usize;
                let part = variables.get(*first..first + count);
                let part = part.ok_or_else(|| invalid("a part outside of its variable"))?;
                let lanes: Lanes = part.iter().map(|v| self.builder.use_var(*v)).collect();
                Ok(Value::Lanes(lanes))
            }
            // Nobody writes there while the kernel runs.
            Storage::Memory(address)
                if address.inside.is_none()
                    && address.is_readonly()
                    && self.is_stored(&place.ty)? =>
            {
                Ok(Value::Stored(*address))
            }
            Storage::Memory(address) if self.is_stored(&place.ty)? => {
                let copy = self.slot(&place.ty)?;
                self.copy(copy, *address, &place.ty)?;
                Ok(Value::Stored(copy))
            }
            Storage::Memory(address) => {
                let lanes = self.load_lanes(*address, &place.ty)?;
                Ok(Value::Lanes(lanes))
            }
        }
    }

    /// Puts a value at a place.
    pub(super) fn store(&mut self, place: &Place, value: &Value) -> Result<()> {
        match (&place.storage, value) {
            (Storage::Variables { variables, first }, Value::Lanes(lanes)) => {
                let part = variables.get(*first..first + lanes.len());
                let part = part.ok_or_else(|| invalid("a part outside of its variable"))?;
                for (variable, lane) in part.iter().zip(lanes) {
                    self.builder.def_var(*variable, *lane);
                }
                Ok(())
            }
            (Storage::Memory(address), Value::Lanes(lanes)) => {
                self.store_lanes(*address, &place.ty, lanes)
            }
            (Storage::Memory(address), Value::Stored(from)) => {
                self.copy(*address, *from, &place.ty)
            }
            _ => Err(invalid("a store of a pointer")),
        }
    }

    /// A new variable; `needs_memory` if it is accessed by indices that are not constant. It holds nothing yet.
    pub(super) fn variable(&mut self, ty: Ty, needs_memory: bool) -> Result<Place> {
        let storage = if needs_memory || self.is_stored(&ty)? {
            Storage::Memory(self.slot(&ty)?)
        } else {
            let mut variables = Vec::new();
            for leaf in self.leaves(&ty)? {
                variables.push((self.builder).declare_var(super::types::clif(leaf.scalar)?));
            }
            Storage::Variables {
                variables: variables.into(),
                first: 0,
            }
        };
        Ok(Place { ty, storage })
    }

    /// Puts zeros at a place.
    pub(super) fn clear(&mut self, place: &Place) -> Result<()> {
        match &place.storage {
            Storage::Memory(address) => self.clear_memory(*address, &place.ty),
            Storage::Variables { .. } => {
                let zeros = self.zero_lanes(&place.ty)?;
                self.store(place, &Value::Lanes(zeros))
            }
        }
    }

    /// Goes on where `condition` holds, in a block of its own, if there is one; what the block that comes behind gets
    /// is `body`'s, or zeros like them.
    pub(super) fn inside(
        &mut self,
        condition: Option<cranelift_codegen::ir::Value>,
        body: impl FnOnce(&mut Self) -> Result<Lanes>,
    ) -> Result<Lanes> {
        let Some(condition) = condition else {
            return body(self);
        };
        let [then, otherwise, behind] = [(); 3].map(|()| self.builder.create_block());
        (self.builder.ins()).brif(condition, then, &[], otherwise, &[]);
        self.builder.switch_to_block(then);
        let lanes = body(self)?;
        let arguments: Vec<_> = lanes.iter().map(|&lane| lane.into()).collect();
        self.builder.ins().jump(behind, &arguments);
        self.builder.switch_to_block(otherwise);
        let mut zeros = Vec::new();
        let mut results = Vec::new();
        for &lane in &lanes {
            let ty = self.builder.func.dfg.value_type(lane);
            zeros.push(self.zero_of(ty).into());
            results.push(self.builder.append_block_param(behind, ty));
        }
        self.builder.ins().jump(behind, &zeros);
        self.builder.switch_to_block(behind);
        Ok(results)
    }
}
