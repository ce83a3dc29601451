//! Expressions of widths and conditions.
//!
//! Precedence, loosest first: `or`, `and`, `not`, comparison (`==`, `=`, `!=`; not chained), `+ -`, `*`.

use super::Parser;
use crate::ast::Expression;
use crate::diagnostic::Diagnostic;
use crate::expr::Op;
use crate::lexer::{Cursor, Kind};

/// The most operators and parentheses an expression may have, so that walking it needs no more stack than there is.
const MAX_NODES: usize = 200;

impl<'a> Parser<'a> {
    /// Parses an expression; reports and returns none if there is none.
    pub(super) fn expression(&mut self, cursor: &mut Cursor<'a>) -> Option<Expression> {
        let mut budget = MAX_NODES;
        self.disjunction(cursor, &mut budget)
    }

    fn spend(&mut self, cursor: &Cursor<'a>, budget: &mut usize) -> Option<()> {
        if let Some(left) = budget.checked_sub(1) {
            *budget = left;
            return Some(());
        }
        self.diagnostics.push(
            Diagnostic::error(cursor.peek().span, "this expression is too long")
                .help(format!("at most {MAX_NODES} operators and parentheses")),
        );
        None
    }

    fn disjunction(&mut self, cursor: &mut Cursor<'a>, budget: &mut usize) -> Option<Expression> {
        let mut left = self.conjunction(cursor, budget)?;
        while is_word(cursor, "or") {
            self.spend(cursor, budget)?;
            cursor.next();
            let right = self.conjunction(cursor, budget)?;
            left = Expression::Binary(Op::Or, Box::new(left), Box::new(right));
        }
        Some(left)
    }

    fn conjunction(&mut self, cursor: &mut Cursor<'a>, budget: &mut usize) -> Option<Expression> {
        let mut left = self.negation(cursor, budget)?;
        while is_word(cursor, "and") {
            self.spend(cursor, budget)?;
            cursor.next();
            let right = self.negation(cursor, budget)?;
            left = Expression::Binary(Op::And, Box::new(left), Box::new(right));
        }
        Some(left)
    }

    fn negation(&mut self, cursor: &mut Cursor<'a>, budget: &mut usize) -> Option<Expression> {
        if !is_word(cursor, "not") {
            return self.comparison(cursor, budget);
        }
        self.spend(cursor, budget)?;
        let span = cursor.next().span;
        let inner = self.negation(cursor, budget)?;
        Some(Expression::Not(Box::new(inner), span))
    }

    fn comparison(&mut self, cursor: &mut Cursor<'a>, budget: &mut usize) -> Option<Expression> {
        let left = self.sum(cursor, budget)?;
        let token = cursor.peek();
        let op = match token.text {
            "==" | "=" if token.kind == Kind::Punctuation => Op::Equal,
            "!=" if token.kind == Kind::Punctuation => Op::NotEqual,
            _ => return Some(left),
        };
        self.spend(cursor, budget)?;
        cursor.next();
        let right = self.sum(cursor, budget)?;
        Some(Expression::Binary(op, Box::new(left), Box::new(right)))
    }

    fn sum(&mut self, cursor: &mut Cursor<'a>, budget: &mut usize) -> Option<Expression> {
        let mut left = self.product(cursor, budget)?;
        loop {
            let op = match cursor.peek() {
                t if t.is("+") => Op::Add,
                t if t.is("-") => Op::Sub,
                _ => return Some(left),
            };
            self.spend(cursor, budget)?;
            cursor.next();
            let right = self.product(cursor, budget)?;
            left = Expression::Binary(op, Box::new(left), Box::new(right));
        }
    }

    fn product(&mut self, cursor: &mut Cursor<'a>, budget: &mut usize) -> Option<Expression> {
        let mut left = self.atom(cursor, budget)?;
        while cursor.peek().is("*") {
            self.spend(cursor, budget)?;
            cursor.next();
            let right = self.atom(cursor, budget)?;
            left = Expression::Binary(Op::Mul, Box::new(left), Box::new(right));
        }
        Some(left)
    }

    fn atom(&mut self, cursor: &mut Cursor<'a>, budget: &mut usize) -> Option<Expression> {
        let token = cursor.peek();
        match token.kind {
            Kind::Number => self
                .expect_number(cursor, "a number")
                .map(Expression::Number),
            Kind::Name => Some(Expression::Name(cursor.next().name())),
            Kind::Quoted => Some(Expression::Quoted(cursor.next().name())),
            _ if token.is("(") => {
                self.spend(cursor, budget)?;
                cursor.next();
                let inner = self.disjunction(cursor, budget)?;
                self.expect(cursor, ")")?;
                Some(inner)
            }
            _ => {
                self.unexpected(token, "a number, a field or a quoted member");
                None
            }
        }
    }
}

fn is_word(cursor: &Cursor<'_>, word: &str) -> bool {
    let token = cursor.peek();
    token.kind == Kind::Name && token.text == word
}
