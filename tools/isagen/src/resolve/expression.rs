//! Expressions over a form's fields.

use super::Context;
use crate::ast::{Expression, Name};
use crate::diagnostic::Diagnostic;
use crate::expr::{Expr, Op};
use crate::model::Field;

/// The field of that name.
pub(super) fn find(fields: &[Field], name: &str) -> Option<usize> {
    fields.iter().position(|field| field.name == name)
}

/// Whether `fields` has every field the expression names.
pub(super) fn has_all_fields(expression: &Expression, fields: &[Field]) -> bool {
    match expression {
        Expression::Number(_) | Expression::Quoted(_) => true,
        Expression::Name(name) => find(fields, &name.text).is_some(),
        Expression::Not(inner, _) => has_all_fields(inner, fields),
        // The right side of a comparison with a field may be a member without quotes.
        Expression::Binary(Op::Equal | Op::NotEqual, left, right) => {
            has_all_fields(left, fields)
                && (matches!(
                    (&**left, &**right),
                    (Expression::Name(_), Expression::Name(_))
                ) || has_all_fields(right, fields))
        }
        Expression::Binary(_, left, right) => {
            has_all_fields(left, fields) && has_all_fields(right, fields)
        }
    }
}

impl Context<'_> {
    /// Resolves an expression; reports and returns none for one that names what is not there.
    pub(super) fn expression(&self, expression: &Expression, fields: &[Field]) -> Option<Expr> {
        match expression {
            Expression::Number(number) => match i64::try_from(number.value) {
                Ok(value) => Some(Expr::Number(value)),
                Err(_) => {
                    self.error(number.span, "this number is too large for an expression");
                    None
                }
            },
            Expression::Name(name) => match find(fields, &name.text) {
                Some(field) => Some(Expr::Field(field)),
                None => {
                    self.unknown_field(name, fields);
                    None
                }
            },
            Expression::Quoted(name) => {
                self.report(
                    Diagnostic::error(name.span, "a member stands alone here")
                        .help("compare a field with it: `field==\"MEMBER\"`"),
                );
                None
            }
            Expression::Not(inner, _) => {
                let inner = self.expression(inner, fields)?;
                Some(Expr::Not(Box::new(inner)))
            }
            Expression::Binary(op @ (Op::Equal | Op::NotEqual), left, right) => {
                self.comparison(*op, left, right, fields)
            }
            Expression::Binary(op, left, right) => {
                let left = self.expression(left, fields);
                let right = self.expression(right, fields)?;
                Some(Expr::Binary(*op, Box::new(left?), Box::new(right)))
            }
        }
    }

    fn comparison(
        &self,
        op: Op,
        left: &Expression,
        right: &Expression,
        fields: &[Field],
    ) -> Option<Expr> {
        let member = match right {
            Expression::Quoted(name) => Some(name),
            Expression::Name(name) if find(fields, &name.text).is_none() => Some(name),
            _ => None,
        };
        let (Expression::Name(field), Some(member)) = (left, member) else {
            let left = self.expression(left, fields);
            let right = self.expression(right, fields)?;
            return Some(Expr::Binary(op, Box::new(left?), Box::new(right)));
        };
        let Some(index) = find(fields, &field.text) else {
            self.unknown_field(field, fields);
            return None;
        };
        let is = Expr::Is {
            field: index,
            value: self.value(member, &fields[index]),
            name: member.text.clone(),
        };
        Some(match op {
            Op::NotEqual => Expr::Not(Box::new(is)),
            _ => is,
        })
    }

    /// Reports a name that is no field of the form.
    pub(super) fn unknown_field(&self, name: &Name, fields: &[Field]) {
        let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let message = format!("there is no field `{}`", name.text);
        let help = match crate::outline::closest(&name.text, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the fields are {}", known.join(", ")),
        };
        self.report(Diagnostic::error(name.span, message).help(help));
    }
}
