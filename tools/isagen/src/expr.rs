//! Expressions of `Bitwidth` and `__Exception`.

/// An expression over a form's fields; field indices are those of [`crate::model::Form::fields`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A number.
    Number(i64),
    /// The value of a field.
    Field(usize),
    /// `field == value` (1 or 0). The member's name is kept for printing.
    Is {
        /// Index of the field.
        field: usize,
        /// Its code.
        value: u64,
        /// The member.
        name: String,
    },
    /// Binary operation.
    Binary(Op, Box<Expr>, Box<Expr>),
    /// Logical negation.
    Not(Box<Expr>),
}

/// Binary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `+`.
    Add,
    /// `-`.
    Sub,
    /// `*`.
    Mul,
    /// `and`.
    And,
    /// `or`.
    Or,
    /// `==`.
    Equal,
    /// `!=`.
    NotEqual,
}

impl Op {
    /// As written.
    pub fn symbol(self) -> &'static str {
        match self {
            Op::Add => "+",
            Op::Sub => "-",
            Op::Mul => "*",
            Op::And => "and",
            Op::Or => "or",
            Op::Equal => "==",
            Op::NotEqual => "!=",
        }
    }
}

impl Expr {
    /// The value, given the fields' values.
    pub fn evaluate(&self, field: &dyn Fn(usize) -> u64) -> i64 {
        match self {
            Expr::Number(n) => *n,
            Expr::Field(f) => field(*f) as i64,
            Expr::Is {
                field: f, value, ..
            } => i64::from(field(*f) == *value),
            Expr::Not(e) => i64::from(e.evaluate(field) == 0),
            Expr::Binary(op, a, b) => {
                let (a, b) = (a.evaluate(field), b.evaluate(field));
                match op {
                    Op::Add => a.wrapping_add(b),
                    Op::Sub => a.wrapping_sub(b),
                    Op::Mul => a.wrapping_mul(b),
                    Op::And => i64::from(a != 0 && b != 0),
                    Op::Or => i64::from(a != 0 || b != 0),
                    Op::Equal => i64::from(a == b),
                    Op::NotEqual => i64::from(a != b),
                }
            }
        }
    }

    /// As the notation writes it; `name` gives the fields' names.
    pub fn text(&self, name: &dyn Fn(usize) -> String) -> String {
        let operand = |e: &Expr| match e {
            Expr::Binary(Op::Add | Op::Sub | Op::Mul | Op::And | Op::Or, ..) | Expr::Is { .. } => {
                format!("({})", e.text(name))
            }
            _ => e.text(name),
        };
        match self {
            Expr::Number(n) => n.to_string(),
            Expr::Field(f) => name(*f),
            Expr::Is {
                field,
                name: member,
                ..
            } => format!("{}==\"{member}\"", name(*field)),
            Expr::Not(e) => match &**e {
                Expr::Is {
                    field,
                    name: member,
                    ..
                } => format!("{}!=\"{member}\"", name(*field)),
                _ => format!("not {}", operand(e)),
            },
            Expr::Binary(op, a, b) => format!("{} {} {}", operand(a), op.symbol(), operand(b)),
        }
    }

    /// Calls `visit` with every field the expression reads.
    pub fn fields(&self, visit: &mut dyn FnMut(usize)) {
        match self {
            Expr::Number(_) => {}
            Expr::Field(f) | Expr::Is { field: f, .. } => visit(*f),
            Expr::Not(e) => e.fields(visit),
            Expr::Binary(_, a, b) => {
                a.fields(visit);
                b.fields(visit);
            }
        }
    }
}
