//! Constants: patterns of their leaves, and memory for those that are indexed or are too large for values. That memory
//! is the thread's own and is written once, when the kernel begins.

use super::memory::{Address, Space};
use super::reach::Key;
use super::types::{Leaf, Ty};
use super::values::{MOST_LANES, Value};
use super::{Result, Translator};
use crate::error::{invalid, unsupported};
use cranelift_codegen::ir;
use cranelift_codegen::ir::{InstBuilder, StackSlot};
use hashbrown::HashMap;
use naga::{Arena, Constant, Expression, Handle, Literal, Scalar, Type};

/// A constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    Local(Key, Handle<Expression>),
    Global(Handle<Expression>),
    Constant(Handle<Constant>),
    Zero(Handle<Type>),
}

/// Constants in memory.
#[derive(Debug, Default)]
pub(super) struct Constants {
    slots: HashMap<Name, StackSlot>,
    /// What is to be written where.
    written: Vec<(StackSlot, Ty, Contents)>,
}

/// What a constant in memory holds.
#[derive(Debug)]
enum Contents {
    Zeros,
    /// The leaves.
    Patterns(Vec<u64>),
}

/// The pattern of a literal.
pub(super) fn pattern(literal: Literal) -> Result<(Scalar, u64)> {
    let scalar = literal.scalar();
    let pattern = match literal {
        Literal::F64(value) => value.to_bits(),
        Literal::F32(value) => value.to_bits().into(),
        Literal::F16(value) => value.to_bits().into(),
        Literal::U16(value) => value.into(),
        Literal::I16(value) => value as u16 as u64,
        Literal::U32(value) => value.into(),
        Literal::I32(value) => value as u32 as u64,
        Literal::U64(value) => value,
        Literal::I64(value) => value as u64,
        Literal::Bool(value) => value.into(),
        Literal::AbstractInt(_) | Literal::AbstractFloat(_) => {
            return Err(invalid("an abstract literal"));
        }
    };
    Ok((scalar, pattern))
}

impl Translator<'_, '_, '_> {
    /// The patterns of a constant expression's leaves; none if it is not constant.
    fn patterns(
        &self,
        arena: &Arena<Expression>,
        expression: Handle<Expression>,
    ) -> Result<Option<Vec<u64>>> {
        Ok(Some(match arena[expression] {
            Expression::Literal(literal) => vec![pattern(literal)?.1],
            Expression::Constant(constant) => {
                let init = self.module.constants[constant].init;
                return self.patterns(&self.module.global_expressions, init);
            }
            Expression::ZeroValue(ty) => {
                let ty = Ty::Handle(ty);
                // What is larger is not kept in patterns.
                self.is_stored(&ty)?;
                vec![0; self.count(&ty)? as usize]
            }
            Expression::Compose { ref components, .. } => {
                let mut all = Vec::new();
                for &component in components {
                    match self.patterns(arena, component)? {
                        Some(patterns) => all.extend(patterns),
                        None => return Ok(None),
                    }
                }
                all
            }
            Expression::Splat { size, value } => match self.patterns(arena, value)? {
                Some(patterns) => patterns.repeat(u32::from(size) as usize),
                None => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    /// Whether a constant expression is zeros that nobody has to write one by one.
    fn is_zero(&self, arena: &Arena<Expression>, expression: Handle<Expression>) -> bool {
        match arena[expression] {
            Expression::ZeroValue(_) => true,
            Expression::Constant(constant) => {
                let init = self.module.constants[constant].init;
                self.is_zero(&self.module.global_expressions, init)
            }
            _ => false,
        }
    }

    fn contents(
        &self,
        arena: &Arena<Expression>,
        expression: Handle<Expression>,
    ) -> Result<Contents> {
        if self.is_zero(arena, expression) {
            return Ok(Contents::Zeros);
        }
        let patterns = self.patterns(arena, expression)?;
        let patterns =
            patterns.ok_or_else(|| unsupported("a constant that naga has not evaluated"))?;
        Ok(match patterns.iter().all(|&pattern| pattern == 0) {
            true => Contents::Zeros,
            false => Contents::Patterns(patterns),
        })
    }

    /// A constant expression of the module, of a type.
    pub(super) fn global_value(
        &mut self,
        expression: Handle<Expression>,
        ty: &Ty,
    ) -> Result<Value> {
        if self.is_stored(ty)? {
            return self.stored(Name::Global(expression), ty, |this| {
                this.contents(&this.module.global_expressions, expression)
            });
        }
        let patterns = self.patterns(&self.module.global_expressions, expression)?;
        let patterns =
            patterns.ok_or_else(|| unsupported("a constant that naga has not evaluated"))?;
        let leaves = self.leaves(ty)?;
        let mut lanes = Vec::with_capacity(leaves.len());
        for (leaf, pattern) in leaves.iter().zip(patterns) {
            lanes.push(self.constant(leaf.scalar, pattern)?);
        }
        Ok(Value::Lanes(lanes))
    }

    /// A constant of the module.
    pub(super) fn named_constant(&mut self, constant: Handle<Constant>) -> Result<Value> {
        let Constant { ty, init, .. } = self.module.constants[constant];
        self.global_value(init, &Ty::Handle(ty))
    }

    /// Zeros of a type.
    pub(super) fn zero_value(&mut self, ty: Handle<Type>) -> Result<Value> {
        let resolved = Ty::Handle(ty);
        if self.is_stored(&resolved)? {
            return self.stored(Name::Zero(ty), &resolved, |_| Ok(Contents::Zeros));
        }
        self.zero_lanes(&resolved).map(Value::Lanes)
    }

    fn stored(
        &mut self,
        name: Name,
        ty: &Ty,
        contents: impl FnOnce(&Self) -> Result<Contents>,
    ) -> Result<Value> {
        let slot = match self.constants.slots.get(&name) {
            Some(&slot) => slot,
            None => {
                let contents = contents(self)?;
                let slot = self.stack_slot(ty)?;
                self.constants.slots.insert(name, slot);
                self.constants.written.push((slot, ty.clone(), contents));
                slot
            }
        };
        Ok(Value::Stored(self.slot_address(slot)))
    }

    /// The memory of an expression of the current function, if it is constant.
    pub(super) fn constant_slot(
        &mut self,
        expression: Handle<Expression>,
    ) -> Result<Option<Address>> {
        let name = match self.frame.function.expressions[expression] {
            Expression::Constant(constant) => Name::Constant(constant),
            Expression::ZeroValue(ty) => Name::Zero(ty),
            Expression::Compose { .. } => Name::Local(self.frame.key, expression),
            _ => return Ok(None),
        };
        let ty = self.type_of(expression);
        let arena = &self.frame.function.expressions;
        let is_known = self.constants.slots.contains_key(&name) || self.is_zero(arena, expression);
        if !is_known && self.patterns(arena, expression)?.is_none() {
            return Ok(None);
        }
        let value = self.stored(name, &ty, |this| {
            this.contents(&this.frame.function.expressions, expression)
        })?;
        match value {
            Value::Stored(address) => Ok(Some(address)),
            _ => Ok(None),
        }
    }

    /// Writes all constants that lie in memory, where the builder is.
    pub(super) fn write_constants(&mut self) -> Result<()> {
        for (slot, ty, contents) in std::mem::take(&mut self.constants.written) {
            let address = self.slot_address(slot);
            match contents {
                Contents::Zeros => self.clear_memory(address, &ty)?,
                Contents::Patterns(patterns) => self.write_patterns(address, &ty, &patterns)?,
            }
        }
        Ok(())
    }

    fn write_patterns(&mut self, address: Address, ty: &Ty, patterns: &[u64]) -> Result<()> {
        debug_assert_eq!(address.space, Space::Own, "constants are the thread's own");
        let mut known: HashMap<(Scalar, u64), ir::Value> = HashMap::new();
        let leaves = self.leaves(ty)?;
        for (&Leaf { scalar, offset }, &pattern) in leaves.iter().zip(patterns) {
            let value = match known.get(&(scalar, pattern)) {
                Some(&value) if leaves.len() as u64 > MOST_LANES => value,
                _ => self.constant(scalar, pattern)?,
            };
            known.insert((scalar, pattern), value);
            let flags = ir::MemFlagsData::new().with_aligned();
            (self.builder.ins()).store(flags, value, address.base, offset as i32);
        }
        Ok(())
    }
}
