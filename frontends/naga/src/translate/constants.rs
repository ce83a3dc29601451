//! Constants: patterns of their leaves, and memory for those that are indexed or are too large for values: data
//! objects, which come with the code. Zeros are the thread's own memory and are written once, when the kernel begins.

use super::memory::{Address, Space};
use super::reach::Key;
use super::types::Ty;
use super::values::Value;
use super::{Result, Translator};
use crate::error::{invalid, unsupported};
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{ExternalName, GlobalValue, GlobalValueData, InstBuilder, StackSlot};
use cranelift_thisgpu::object::{DataContents, DataObject, Linkage};
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
    homes: HashMap<Name, Home>,
    /// Where zeros are to be written.
    zeros: Vec<(StackSlot, Ty)>,
    /// What is loaded with the code.
    pub data: Vec<DataObject>,
}

/// Where a constant is.
#[derive(Clone, Copy, Debug)]
enum Home {
    Slot(StackSlot),
    Data(GlobalValue),
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
        let home = match self.constants.homes.get(&name) {
            Some(&home) => home,
            None => {
                let home = match contents(self)? {
                    Contents::Zeros => {
                        let slot = self.stack_slot(ty)?;
                        self.constants.zeros.push((slot, ty.clone()));
                        Home::Slot(slot)
                    }
                    Contents::Patterns(patterns) => Home::Data(self.data(ty, &patterns)?),
                };
                self.constants.homes.insert(name, home);
                home
            }
        };
        Ok(Value::Stored(self.home_address(home)))
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
        let is_known = self.constants.homes.contains_key(&name) || self.is_zero(arena, expression);
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

    /// Writes the zeros that lie in memory, where the builder is.
    pub(super) fn write_zeros(&mut self) -> Result<()> {
        for (slot, ty) in std::mem::take(&mut self.constants.zeros) {
            let address = self.slot_address(slot);
            self.clear_memory(address, &ty)?;
        }
        Ok(())
    }

    /// A new data object with the leaves of a type.
    fn data(&mut self, ty: &Ty, patterns: &[u64]) -> Result<GlobalValue> {
        let (size, alignment) = self.shape(ty)?;
        let mut bytes = vec![0; size as usize];
        for (leaf, pattern) in self.leaves(ty)?.iter().zip(patterns) {
            let (first, width) = (leaf.offset as usize, usize::from(leaf.scalar.width));
            let place = bytes.get_mut(first..first + width);
            let place = place.ok_or_else(|| invalid("a leaf outside of its type"))?;
            place.copy_from_slice(&pattern.to_le_bytes()[..width]);
        }
        // No name of a shader has a dot.
        let name = format!("constant.{}", self.constants.data.len());
        let symbol = self.builder.create_global_value(GlobalValueData::Symbol {
            name: ExternalName::testcase(&name),
            offset: Imm64::new(0),
            colocated: true,
            tls: false,
        });
        self.constants.data.push(DataObject {
            name,
            linkage: Linkage::Local,
            writable: false,
            align: 1 << alignment,
            contents: DataContents::Bytes(bytes),
            relocations: Vec::new(),
        });
        Ok(symbol)
    }

    fn home_address(&mut self, home: Home) -> Address {
        match home {
            Home::Slot(slot) => self.slot_address(slot),
            Home::Data(symbol) => Address {
                base: self.builder.ins().symbol_value(I64, symbol),
                offset: 0,
                space: Space::Constants,
                inside: None,
            },
        }
    }
}
