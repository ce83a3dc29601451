//! Functions of vectors.

use super::math::Operands;
use super::values::Lanes;
use super::{Result, Translator};
use cranelift_codegen::ir;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::FloatCC;
use naga::{MathFunction, Scalar, ScalarKind};

impl Translator<'_, '_, '_> {
    /// A function of the geometric family.
    pub(super) fn geometry(&mut self, fun: MathFunction, operands: &Operands) -> Result<Lanes> {
        let scalar = operands.scalar;
        let first = operands.get(0)?;
        Ok(match fun {
            MathFunction::Dot => vec![self.dot(scalar, first, operands.get(1)?)?],
            MathFunction::Cross => {
                let second = operands.get(1)?;
                let ([a, b, c], [d, e, f]) = (&first[..], &second[..]) else {
                    return Err(self.undefined(fun));
                };
                let (x, y, z) = ((*b, *f, *c, *e), (*c, *d, *a, *f), (*a, *e, *b, *d));
                let parts = [x, y, z].map(|(a, b, c, d)| {
                    let (main, other) =
                        (self.builder.ins().fmul(a, b), self.builder.ins().fmul(c, d));
                    self.builder.ins().fsub(main, other)
                });
                parts.to_vec()
            }
            MathFunction::Length => vec![self.length(scalar, first)?],
            MathFunction::Distance => {
                let pairs = first.iter().zip(operands.get(1)?);
                let ways: Lanes = pairs
                    .map(|(&a, &b)| self.builder.ins().fsub(a, b))
                    .collect();
                vec![self.length(scalar, &ways)?]
            }
            MathFunction::Normalize => {
                let length = self.length(scalar, first)?;
                first
                    .iter()
                    .map(|&lane| self.builder.ins().fdiv(lane, length))
                    .collect()
            }
            MathFunction::FaceForward => {
                let dot = self.dot(scalar, operands.get(1)?, operands.get(2)?)?;
                let zero = self.float_constant(scalar, 0.0)?;
                let is_below = self.builder.ins().fcmp(FloatCC::LessThan, dot, zero);
                let lanes = first.iter().map(|&lane| {
                    let other = self.builder.ins().fneg(lane);
                    self.builder.ins().select(is_below, lane, other)
                });
                lanes.collect()
            }
            MathFunction::Reflect => {
                let normal = operands.get(1)?;
                let dot = self.dot(scalar, normal, first)?;
                let two = self.float_constant(scalar, 2.0)?;
                let double = self.builder.ins().fmul(two, dot);
                let lanes = first.iter().zip(normal).map(|(&lane, &normal)| {
                    let back = self.builder.ins().fmul(double, normal);
                    self.builder.ins().fsub(lane, back)
                });
                lanes.collect()
            }
            MathFunction::Refract => {
                self.refract(scalar, first, operands.get(1)?, operands.single(2)?)?
            }
            _ => return Err(self.undefined(fun)),
        })
    }

    /// The sum of the products of components.
    pub(super) fn dot(
        &mut self,
        scalar: Scalar,
        a: &[ir::Value],
        b: &[ir::Value],
    ) -> Result<ir::Value> {
        let is_float = scalar.kind == ScalarKind::Float;
        let mut sum = None;
        for (&a, &b) in a.iter().zip(b) {
            let product = match is_float {
                true => self.builder.ins().fmul(a, b),
                false => self.builder.ins().imul(a, b),
            };
            sum = Some(match sum {
                None => product,
                Some(sum) if is_float => self.builder.ins().fadd(sum, product),
                Some(sum) => self.builder.ins().iadd(sum, product),
            });
        }
        sum.ok_or_else(|| self.undefined(MathFunction::Dot))
    }

    fn length(&mut self, scalar: Scalar, lanes: &[ir::Value]) -> Result<ir::Value> {
        if let [lane] = *lanes {
            return Ok(self.builder.ins().fabs(lane));
        }
        let square = self.dot(scalar, lanes, lanes)?;
        Ok(self.builder.ins().sqrt(square))
    }

    fn refract(
        &mut self,
        scalar: Scalar,
        incident: &[ir::Value],
        normal: &[ir::Value],
        ratio: ir::Value,
    ) -> Result<Lanes> {
        let (zero, one) = (
            self.float_constant(scalar, 0.0)?,
            self.float_constant(scalar, 1.0)?,
        );
        let dot = self.dot(scalar, normal, incident)?;
        // k = 1 - ratio^2 (1 - dot^2)
        let square = self.builder.ins().fmul(dot, dot);
        let sine = self.builder.ins().fsub(one, square);
        let ratios = self.builder.ins().fmul(ratio, ratio);
        let part = self.builder.ins().fmul(ratios, sine);
        let k = self.builder.ins().fsub(one, part);
        let is_total = self.builder.ins().fcmp(FloatCC::LessThan, k, zero);
        let root = self.builder.ins().sqrt(k);
        let along = self.builder.ins().fmul(ratio, dot);
        let along = self.builder.ins().fadd(along, root);
        let lanes = incident.iter().zip(normal).map(|(&lane, &normal)| {
            let bent = self.builder.ins().fmul(ratio, lane);
            let back = self.builder.ins().fmul(along, normal);
            let bent = self.builder.ins().fsub(bent, back);
            self.builder.ins().select(is_total, zero, bent)
        });
        Ok(lanes.collect())
    }
}
