//! Records of variables, which stand between instructions.

use super::instructions::Names;
use super::lexer::{Lexer, Token};
use crate::error::ReadError;
use crate::model::{Computation, Constant, Record, Step, Value};

impl Names<'_> {
    /// One record behind so many instructions of its block. What cannot be read says that the variable is nowhere;
    /// nothing if not even the variable can be read, or it is a record of something else.
    pub fn record(&mut self, text: &str, behind: usize) -> Option<Record> {
        let mut lexer = Lexer::new(text);
        lexer.eat('#').then_some(())?;
        let Token::Word(kind @ ("dbg_value" | "dbg_declare")) = lexer.next_token()? else {
            return None;
        };
        // Everything but the value is the same for all kinds of values.
        let mut ahead = lexer.clone();
        ahead.eat('(').then_some(())?;
        let value = self.recorded(&mut ahead).ok();
        let mut rest = lexer;
        let mut depth = 0_u32;
        while depth != 1 || rest.peek() != Some(&Token::Sign(',')) {
            match rest.next_token()? {
                Token::Sign('(' | '[' | '{' | '<') => depth += 1,
                Token::Sign(')' | ']' | '}' | '>') => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        rest.eat(',').then_some(())?;
        let Token::Node(variable) = rest.next_token()? else {
            return None;
        };
        rest.eat(',').then_some(())?;
        let unknown = || Computation {
            steps: vec![Step::Unknown],
            fragment: None,
        };
        let mut expression = expression(&mut rest).unwrap_or_else(unknown);
        // It stands last.
        let (_, location) = text.rsplit_once(", !")?;
        let location = location.trim_end().strip_suffix(')')?.parse().ok()?;
        if kind == "dbg_declare" {
            // Its value is an address in any case.
            expression.steps.push(Step::Dereference);
        }
        Some(Record {
            behind,
            variable,
            value: value.flatten(),
            expression,
            location,
        })
    }

    /// A value; none if it is any.
    fn recorded(
        &mut self,
        lexer: &mut Lexer<'_>,
    ) -> Result<Option<crate::model::Operand>, ReadError> {
        let operand = self.operand(lexer)?;
        lexer.expect(',')?;
        let is_any = operand.value == Value::Constant(Constant::Undefined);
        Ok((!is_any).then_some(operand))
    }
}

/// `!DIExpression(DW_OP_plus_uconst, 8, DW_OP_deref)`.
fn expression(lexer: &mut Lexer<'_>) -> Option<Computation> {
    (lexer.next_token()? == Token::Kind("DIExpression")).then_some(())?;
    lexer.eat('(').then_some(())?;
    let mut computation = Computation::default();
    while !lexer.eat(')') {
        let word = match lexer.next_token()? {
            Token::Word(word) => word,
            Token::Sign(',') => continue,
            _ => {
                computation.steps.push(Step::Unknown);
                continue;
            }
        };
        match word {
            "DW_OP_deref" => computation.steps.push(Step::Dereference),
            "DW_OP_plus_uconst" => {
                let more = number(lexer).and_then(|more| i64::try_from(more).ok());
                computation
                    .steps
                    .push(more.map_or(Step::Unknown, Step::Plus));
            }
            "DW_OP_LLVM_fragment" => {
                let (first, bits) = (number(lexer)?, number(lexer)?);
                computation.fragment = Some((first.try_into().ok()?, bits.try_into().ok()?));
            }
            // The value itself, not where it is: so it is without a dereference in the end anyway.
            "DW_OP_stack_value" => {}
            _ => computation.steps.push(Step::Unknown),
        }
    }
    Some(computation)
}

/// `, 8`.
fn number(lexer: &mut Lexer<'_>) -> Option<u64> {
    lexer.eat(',').then_some(())?;
    match lexer.next_token()? {
        Token::Number(digits) => digits.parse().ok(),
        _ => None,
    }
}
