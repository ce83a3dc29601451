//! Expressions: which family each belongs to.

use super::values::{Lanes, Value};
use super::{Result, Translator, constants};
use crate::error::{invalid, unsupported};
use cranelift_codegen::ir::InstBuilder;
use naga::{Expression, Handle, TypeInner};

impl Translator<'_, '_, '_> {
    /// Evaluates an expression where naga says that it is evaluated.
    pub(super) fn emit(&mut self, expression: Handle<Expression>) -> Result<()> {
        if self.frame.info[expression].ref_count == 0 {
            return Ok(());
        }
        self.at(self.frame.function.expressions.get_span(expression));
        let value = self.evaluate(expression)?;
        self.frame.values[expression.index()] = Some(value);
        Ok(())
    }

    /// The value of an expression that has been evaluated, or that is always there.
    pub(super) fn value(&mut self, expression: Handle<Expression>) -> Result<Value> {
        if self.frame.bypassed.contains(&expression) {
            return Err(unsupported(
                "a value in `continuing` that is declared behind a `continue`: make it a variable in front of that",
            ));
        }
        if let Some(value) = &self.frame.values[expression.index()] {
            return Ok(value.clone());
        }
        self.evaluate(expression)
    }

    fn evaluate(&mut self, expression: Handle<Expression>) -> Result<Value> {
        let lanes: Lanes = match self.frame.function.expressions[expression] {
            Expression::Literal(literal) => {
                let (scalar, pattern) = constants::pattern(literal)?;
                vec![self.constant(scalar, pattern)?]
            }
            Expression::Constant(constant) => return self.named_constant(constant),
            Expression::Override(_) => return Err(invalid("an override without a value")),
            Expression::ZeroValue(ty) => return self.zero_value(ty),
            Expression::Compose { ref components, .. } => {
                return self.compose(expression, components);
            }
            Expression::Access { base, index } => return self.access(base, index),
            Expression::AccessIndex { base, index } => {
                let value = self.value(base)?;
                let ty = self.type_of(base);
                return self.access_part(value, &ty, index);
            }
            Expression::Splat { size, value } => {
                vec![self.single(value)?; u32::from(size) as usize]
            }
            Expression::Swizzle {
                size,
                vector,
                pattern,
            } => {
                let lanes = self.lanes(vector)?;
                let chosen = pattern.iter().take(u32::from(size) as usize);
                let chosen = chosen.map(|component| lanes.get(component.index() as usize).copied());
                let chosen: Option<Lanes> = chosen.collect();
                chosen.ok_or_else(|| invalid("a swizzle of a component that there is not"))?
            }
            Expression::FunctionArgument(number) => {
                let argument = self.frame.arguments.get(number as usize).cloned();
                return argument.ok_or_else(|| invalid("an argument that there is not"));
            }
            Expression::GlobalVariable(variable) => {
                return self.global_place(variable).map(Value::Place);
            }
            Expression::LocalVariable(variable) => {
                return self.local_place(variable).map(Value::Place);
            }
            Expression::Load { pointer } => {
                let place = self.place(pointer)?;
                return match *self.inner(&place.ty) {
                    TypeInner::Atomic(scalar) => self.atomic_load(&place, scalar),
                    _ => self.load(&place),
                };
            }
            Expression::Unary { op, expr } => self.unary(op, expr)?,
            Expression::Binary { op, left, right } => self.binary(op, left, right)?,
            Expression::Select {
                condition,
                accept,
                reject,
            } => self.select(condition, accept, reject)?,
            Expression::Relational { fun, argument } => self.relational(fun, argument)?,
            Expression::Math {
                fun,
                arg,
                arg1,
                arg2,
                arg3,
            } => self.math(fun, arg, [arg1, arg2, arg3])?,
            Expression::As {
                expr,
                kind,
                convert,
            } => self.convert(expr, kind, convert)?,
            Expression::ArrayLength(array) => vec![self.array_length_of(array)?],
            Expression::CallResult(_)
            | Expression::AtomicResult { .. }
            | Expression::WorkGroupUniformLoadResult { .. }
            | Expression::SubgroupBallotResult
            | Expression::SubgroupOperationResult { .. } => {
                return Err(invalid("a result in front of the statement that it is of"));
            }
            Expression::ImageSample { .. }
            | Expression::ImageLoad { .. }
            | Expression::ImageQuery { .. } => return Err(unsupported("textures")),
            Expression::Derivative { .. } => {
                return Err(invalid("a derivative in a compute shader"));
            }
            Expression::RayQueryVertexPositions { .. }
            | Expression::RayQueryProceedResult
            | Expression::RayQueryGetIntersection { .. } => return Err(unsupported("ray queries")),
            Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. } => {
                return Err(unsupported("cooperative matrices"));
            }
        };
        Ok(Value::Lanes(lanes))
    }

    fn compose(
        &mut self,
        whole: Handle<Expression>,
        components: &[Handle<Expression>],
    ) -> Result<Value> {
        let ty = self.type_of(whole);
        if !self.is_stored(&ty)? {
            let mut lanes = Vec::new();
            for &component in components {
                lanes.extend(self.lanes(component)?);
            }
            return Ok(Value::Lanes(lanes));
        }
        if let Some(address) = self.constant_slot(whole)? {
            return Ok(Value::Stored(address));
        }
        let address = self.slot(&ty)?;
        let place = super::places::Place {
            ty,
            storage: super::places::Storage::Memory(address),
        };
        for (number, &component) in components.iter().enumerate() {
            let value = self.value(component)?;
            let part = self.part_of(&place, number as u32)?;
            self.store(&part, &value)?;
        }
        Ok(Value::Stored(address))
    }

    fn select(
        &mut self,
        condition: Handle<Expression>,
        accept: Handle<Expression>,
        reject: Handle<Expression>,
    ) -> Result<Lanes> {
        let conditions = self.lanes(condition)?;
        let (accept, reject) = (self.lanes(accept)?, self.lanes(reject)?);
        let mut lanes = Vec::with_capacity(accept.len());
        for (number, (&a, &b)) in accept.iter().zip(&reject).enumerate() {
            let condition = conditions.get(number).or(conditions.first()).copied();
            let condition = condition.ok_or_else(|| invalid("a selection without a condition"))?;
            lanes.push(self.builder.ins().select(condition, a, b));
        }
        Ok(lanes)
    }
}
