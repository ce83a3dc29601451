//! The values that can be read at a place.

use crate::operation::TYPES;
use cranelift_codegen::ir::{Type, Value};

/// Values by type, in the order in which they were defined.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    values: [Vec<Value>; TYPES.len()],
}

/// A state of a scope to which it can return.
#[derive(Clone, Copy, Debug)]
pub struct Mark([usize; TYPES.len()]);

fn index(ty: Type) -> Option<usize> {
    TYPES.iter().position(|known| *known == ty)
}

impl Scope {
    /// Adds a value. One whose type no operation takes is left out.
    pub fn add(&mut self, value: Value, ty: Type) {
        if let Some(index) = index(ty) {
            self.values[index].push(value);
        }
    }

    /// The values of a type.
    pub fn of(&self, ty: Type) -> &[Value] {
        index(ty).map_or(&[], |index| &self.values[index])
    }

    /// All values.
    pub fn all(&self) -> impl Iterator<Item = Value> {
        self.values.iter().flatten().copied()
    }

    /// The state now.
    pub fn mark(&self) -> Mark {
        Mark(std::array::from_fn(|index| self.values[index].len()))
    }

    /// Forgets what was added since the mark.
    pub fn return_to(&mut self, mark: Mark) {
        for (values, length) in self.values.iter_mut().zip(mark.0) {
            values.truncate(length);
        }
    }
}
