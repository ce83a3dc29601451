//! Instructions that reach memory.

use super::instructions::Names;
use super::lexer::{Lexer, Token};
use super::values;
use crate::error::ReadError;
use crate::layout;
use crate::model::{
    Access, AddressOf, Constant, Operand, Operation, Ordering, Type, Update, Value,
};

/// What stands between the opcode and the first type.
struct Words<'a> {
    all: Vec<&'a str>,
    /// Whether the scope is a single thread.
    own_thread: bool,
}

impl<'a> Words<'a> {
    fn read(lexer: &mut Lexer<'a>) -> Result<Self, ReadError> {
        let mut all = Vec::new();
        let mut own_thread = false;
        while let Some(Token::Word(word)) = lexer.peek() {
            if values::begins_type(&Token::Word(word)) {
                break;
            }
            all.push(*word);
            lexer.next_token();
            if lexer.peek() == Some(&Token::Sign('(')) {
                let mut ahead = lexer.clone();
                ahead.next_token();
                own_thread |=
                    matches!(ahead.peek(), Some(Token::Text(text)) if text == b"singlethread");
                lexer.skip_brackets()?;
            }
        }
        Ok(Self { all, own_thread })
    }
}

impl Names<'_> {
    /// An instruction that reaches memory, or computes an address, behind its opcode.
    pub(super) fn memory(
        &mut self,
        lexer: &mut Lexer<'_>,
        opcode: &str,
    ) -> Result<(Type, Operation), ReadError> {
        let words = Words::read(lexer)?;
        let volatile = words.all.contains(&"volatile");
        match opcode {
            "fence" => {
                // What orders a thread against itself is for who compiles before us.
                let ordering = match words.own_thread {
                    true => Ordering::Plain,
                    false => Ordering::Ordered,
                };
                Ok((Type::Void, Operation::Fence(ordering)))
            }
            "alloca" => self.alloca(lexer),
            "load" => {
                let ty = values::ty(lexer, self.named)?;
                let address = self.next_operand(lexer)?;
                let access = access(lexer, volatile)?;
                Ok((ty, Operation::Load(address, access)))
            }
            "store" => {
                let value = self.operand(lexer)?;
                let address = self.next_operand(lexer)?;
                let access = access(lexer, volatile)?;
                let operation = Operation::Store {
                    value,
                    address,
                    access,
                };
                Ok((Type::Void, operation))
            }
            "cmpxchg" => self.compare_exchange(lexer, volatile),
            "atomicrmw" => {
                let name = words.all.last().copied().unwrap_or_default();
                self.update(lexer, name, volatile)
            }
            _ => self.element_address(lexer),
        }
    }

    fn alloca(&mut self, lexer: &mut Lexer<'_>) -> Result<(Type, Operation), ReadError> {
        let ty = values::ty(lexer, self.named)?;
        let mut count = Operand {
            ty: Type::Int(32),
            value: Value::Constant(Constant::Int(1)),
        };
        let mut align = 1;
        while lexer.eat(',') {
            if lexer.eat_word("align") {
                align = values::alignment(lexer)?;
            } else if lexer.peek().is_some_and(values::begins_type) {
                count = self.operand(lexer)?;
            } else {
                break;
            }
        }
        Ok((Type::POINTER, Operation::Alloca { ty, count, align }))
    }

    fn compare_exchange(
        &mut self,
        lexer: &mut Lexer<'_>,
        volatile: bool,
    ) -> Result<(Type, Operation), ReadError> {
        let address = self.operand(lexer)?;
        let expected = self.next_operand(lexer)?;
        let new = self.next_operand(lexer)?;
        let access = access(lexer, volatile)?;
        let fields = vec![new.ty.clone(), Type::BOOL];
        let ty = layout::structure(false, fields);
        let operation = Operation::CompareExchange {
            address,
            expected,
            new,
            access,
        };
        Ok((ty, operation))
    }

    /// `atomicrmw` with the update of this name.
    fn update(
        &mut self,
        lexer: &mut Lexer<'_>,
        name: &str,
        volatile: bool,
    ) -> Result<(Type, Operation), ReadError> {
        let unknown = || ReadError::Unknown(format!("`atomicrmw {name}`"));
        let update = update(name).ok_or_else(unknown)?;
        let address = self.operand(lexer)?;
        let operand = self.next_operand(lexer)?;
        let access = access(lexer, volatile)?;
        let ty = operand.ty.clone();
        let operation = Operation::Update {
            update,
            address,
            operand,
            access,
        };
        Ok((ty, operation))
    }

    /// `getelementptr`.
    fn element_address(&mut self, lexer: &mut Lexer<'_>) -> Result<(Type, Operation), ReadError> {
        let element = values::ty(lexer, self.named)?;
        let base = self.next_operand(lexer)?;
        let mut indices = Vec::new();
        loop {
            let mut ahead = lexer.clone();
            if !(ahead.eat(',') && ahead.peek().is_some_and(values::begins_type)) {
                break;
            }
            *lexer = ahead;
            indices.push(self.operand(lexer)?);
        }
        let mut operands = std::iter::once(&base).chain(&indices);
        if operands.any(|operand| operand.ty.lanes().is_some()) {
            let what = "`getelementptr` of vectors".to_owned();
            return Err(ReadError::Unsupported(what));
        }
        let operation = Operation::Address(AddressOf {
            element,
            base,
            indices,
        });
        Ok((Type::POINTER, operation))
    }
}

/// What stands behind the operands of an access.
fn access(lexer: &mut Lexer<'_>, volatile: bool) -> Result<Access, ReadError> {
    let mut access = Access {
        align: 1,
        ordering: Ordering::Plain,
        volatile,
    };
    loop {
        match lexer.peek() {
            Some(Token::Word("align")) => {
                lexer.next_token();
                access.align = values::alignment(lexer)?;
            }
            Some(Token::Word("syncscope")) => {
                lexer.next_token();
                lexer.skip_brackets()?;
            }
            Some(Token::Word(word)) => {
                if let Some(found) = ordering(word)
                    && access.ordering != Ordering::Ordered
                {
                    access.ordering = found;
                }
                lexer.next_token();
            }
            Some(Token::Sign(',')) => {
                lexer.next_token();
            }
            _ => return Ok(access),
        }
    }
}

fn ordering(word: &str) -> Option<Ordering> {
    Some(match word {
        "unordered" | "monotonic" => Ordering::Relaxed,
        "acquire" | "release" | "acq_rel" | "seq_cst" => Ordering::Ordered,
        _ => return None,
    })
}

fn update(word: &str) -> Option<Update> {
    use Update::*;
    Some(match word {
        "xchg" => Xchg,
        "add" => Add,
        "sub" => Sub,
        "and" => And,
        "nand" => Nand,
        "or" => Or,
        "xor" => Xor,
        "max" => Max,
        "min" => Min,
        "umax" => UMax,
        "umin" => UMin,
        "fadd" => FAdd,
        "fsub" => FSub,
        "fmax" => FMax,
        "fmin" => FMin,
        "uinc_wrap" => UIncWrap,
        "udec_wrap" => UDecWrap,
        "usub_cond" => USubCond,
        "usub_sat" => USubSat,
        _ => return None,
    })
}
