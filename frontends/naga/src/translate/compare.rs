//! Comparisons, and questions about numbers.

use super::values::Lanes;
use super::{Result, Translator};
use crate::error::invalid;
use crate::mistakes::{Mistake, planted};
use cranelift_codegen::ir;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use naga::{BinaryOperator, Expression, Handle, RelationalFunction, Scalar, ScalarKind};

impl Translator<'_, '_, '_> {
    /// A comparison of scalars. All but `!=` are false of a NaN.
    pub(super) fn comparison(
        &mut self,
        op: BinaryOperator,
        scalar: Scalar,
        a: ir::Value,
        b: ir::Value,
    ) -> Result<ir::Value> {
        use BinaryOperator as B;
        let (float, signed, unsigned) = match op {
            B::Equal => (FloatCC::Equal, IntCC::Equal, IntCC::Equal),
            B::NotEqual if planted(Mistake::OrderedNotEqual) => {
                (FloatCC::OrderedNotEqual, IntCC::NotEqual, IntCC::NotEqual)
            }
            B::NotEqual => (FloatCC::NotEqual, IntCC::NotEqual, IntCC::NotEqual),
            B::Less => (
                FloatCC::LessThan,
                IntCC::SignedLessThan,
                IntCC::UnsignedLessThan,
            ),
            B::LessEqual => (
                FloatCC::LessThanOrEqual,
                IntCC::SignedLessThanOrEqual,
                IntCC::UnsignedLessThanOrEqual,
            ),
            B::Greater => (
                FloatCC::GreaterThan,
                IntCC::SignedGreaterThan,
                IntCC::UnsignedGreaterThan,
            ),
            B::GreaterEqual => (
                FloatCC::GreaterThanOrEqual,
                IntCC::SignedGreaterThanOrEqual,
                IntCC::UnsignedGreaterThanOrEqual,
            ),
            other => return Err(invalid(format!("{other:?} as a comparison"))),
        };
        Ok(match scalar.kind {
            ScalarKind::Float => self.builder.ins().fcmp(float, a, b),
            ScalarKind::Sint => self.builder.ins().icmp(signed, a, b),
            _ => self.builder.ins().icmp(unsigned, a, b),
        })
    }

    /// `Expression::Relational`.
    pub(super) fn relational(
        &mut self,
        fun: RelationalFunction,
        argument: Handle<Expression>,
    ) -> Result<Lanes> {
        let scalar = self.scalar(&self.type_of(argument))?;
        let lanes = self.lanes(argument)?;
        let mut results = Vec::new();
        match fun {
            RelationalFunction::All | RelationalFunction::Any => {
                let mut rest = lanes.into_iter();
                let first = rest.next();
                let mut result = first.ok_or_else(|| invalid("a vector without components"))?;
                for lane in rest {
                    result = match fun {
                        RelationalFunction::All => self.builder.ins().band(result, lane),
                        _ => self.builder.ins().bor(result, lane),
                    };
                }
                results.push(result);
            }
            RelationalFunction::IsNan => {
                for lane in lanes {
                    results.push(self.builder.ins().fcmp(FloatCC::Unordered, lane, lane));
                }
            }
            RelationalFunction::IsInf => {
                let infinity = self.float_constant(scalar, f64::INFINITY)?;
                for lane in lanes {
                    let size = self.builder.ins().fabs(lane);
                    results.push(self.builder.ins().fcmp(FloatCC::Equal, size, infinity));
                }
            }
        }
        Ok(results)
    }
}
