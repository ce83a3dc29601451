//! Instructions of a function.

use super::lexer::{Lexer, Token};
use super::values::{self, NamedTypes, Said};
use crate::error::ReadError;
use crate::model::{
    BlockId, Call, Callee, FloatPredicate, Instruction, IntPredicate, Local, Operand, Operation,
    Type, Value,
};
use hashbrown::HashMap;
use std::sync::Arc;

/// Attribute groups by number.
pub type Groups = HashMap<u32, crate::model::Attributes>;

/// Names of a function's values and blocks while it is read.
pub struct Names<'a> {
    pub named: &'a NamedTypes,
    pub groups: &'a Groups,
    locals: HashMap<String, Local>,
    blocks: HashMap<String, BlockId>,
}

impl<'a> Names<'a> {
    /// Of a function whose blocks have these names, in order.
    pub fn new(named: &'a NamedTypes, groups: &'a Groups, blocks: &[Arc<str>]) -> Self {
        let numbered = blocks.iter().zip(0..);
        Self {
            named,
            groups,
            locals: HashMap::new(),
            blocks: numbered
                .map(|(name, number)| (name.to_string(), BlockId(number)))
                .collect(),
        }
    }

    /// The value of a name.
    pub fn local(&mut self, name: &str) -> Local {
        if let Some(local) = self.locals.get(name) {
            return *local;
        }
        let local = Local(self.locals.len() as u32);
        self.locals.insert(name.to_owned(), local);
        local
    }

    /// How many values were named.
    pub fn count(&self) -> u32 {
        self.locals.len() as u32
    }

    fn block(&self, name: &str) -> Result<BlockId, ReadError> {
        let block = self.blocks.get(name).copied();
        block.ok_or_else(|| ReadError::NoBlock(name.to_owned()))
    }

    /// `label %name`.
    fn label(&self, lexer: &mut Lexer<'_>) -> Result<BlockId, ReadError> {
        lexer.expect_word("label")?;
        match lexer.next_token() {
            Some(Token::Local(name)) => self.block(&name),
            other => Err(ReadError::expected("a block", format!("{other:?}"))),
        }
    }

    /// A value of a known type.
    fn value(&mut self, lexer: &mut Lexer<'_>, ty: &Type) -> Result<Value, ReadError> {
        if let Some(Token::Local(name)) = lexer.peek() {
            let name = name.clone();
            lexer.next_token();
            return Ok(Value::Local(self.local(&name)));
        }
        values::constant(lexer, self.named, ty).map(Value::Constant)
    }

    /// A type and a value.
    pub(super) fn operand(&mut self, lexer: &mut Lexer<'_>) -> Result<Operand, ReadError> {
        let ty = values::ty(lexer, self.named)?;
        let value = self.value(lexer, &ty)?;
        Ok(Operand { ty, value })
    }

    /// A comma, a type and a value.
    pub(super) fn next_operand(&mut self, lexer: &mut Lexer<'_>) -> Result<Operand, ReadError> {
        lexer.expect(',')?;
        self.operand(lexer)
    }

    /// A type and two values of it.
    fn pair(&mut self, lexer: &mut Lexer<'_>) -> Result<(Operand, Operand), ReadError> {
        let left = self.operand(lexer)?;
        lexer.expect(',')?;
        let ty = left.ty.clone();
        let value = self.value(lexer, &ty)?;
        Ok((left, Operand { ty, value }))
    }

    /// One instruction, which is the whole text; an `invoke` is two, the call and the jump to where it returns to: a
    /// panic ends the launch, so that nothing goes to the block that it would unwind to. What cannot be read is an
    /// unsupported operation, which is an error only if something reaches it.
    pub fn instruction(&mut self, text: &str, into: &mut Vec<Instruction>) {
        let mut lexer = Lexer::new(text);
        let mut result = None;
        let mut ahead = lexer.clone();
        if let (Some(Token::Local(name)), Some(Token::Sign('='))) =
            (ahead.next_token(), ahead.next_token())
        {
            result = Some(self.local(&name));
            lexer = ahead;
        }
        let (ty, operation) = match self.operation(&mut lexer) {
            Ok(read) => read,
            Err(reason) => (Type::Void, Operation::Unsupported(reason)),
        };
        let instruction = Instruction {
            result,
            ty,
            operation,
            location: location(text),
        };
        let returns_to = match instruction.operation {
            Operation::Call(_) if lexer.eat_word("to") => Some(self.label(&mut lexer)),
            _ => None,
        };
        into.push(instruction);
        into.extend(returns_to.map(|block| Instruction {
            result: None,
            ty: Type::Void,
            operation: match block {
                Ok(block) => Operation::Jump(block),
                Err(reason) => Operation::Unsupported(reason),
            },
            location: location(text),
        }));
    }

    fn operation(&mut self, lexer: &mut Lexer<'_>) -> Result<(Type, Operation), ReadError> {
        let Some(Token::Word(opcode)) = lexer.next_token() else {
            return Err(ReadError::Inconsistent("no instruction".into()));
        };
        if let Some(binary) = values::binary(opcode) {
            self.skip_flags(lexer);
            let (left, right) = self.pair(lexer)?;
            return Ok((left.ty.clone(), Operation::Binary(binary, left, right)));
        }
        if let Some(cast) = values::cast(opcode) {
            self.skip_flags(lexer);
            let of = self.operand(lexer)?;
            lexer.expect_word("to")?;
            let to = values::ty(lexer, self.named)?;
            return Ok((to, Operation::Cast(cast, of)));
        }
        match opcode {
            "fneg" => {
                self.skip_flags(lexer);
                let of = self.operand(lexer)?;
                Ok((of.ty.clone(), Operation::Negate(of)))
            }
            "freeze" => {
                let of = self.operand(lexer)?;
                Ok((of.ty.clone(), Operation::Freeze(of)))
            }
            "icmp" | "fcmp" => self.compare(lexer, opcode == "icmp"),
            "select" => {
                self.skip_flags(lexer);
                let condition = self.operand(lexer)?;
                let then = self.next_operand(lexer)?;
                let otherwise = self.next_operand(lexer)?;
                let ty = then.ty.clone();
                Ok((ty, Operation::Select(condition, then, otherwise)))
            }
            "phi" => self.phi(lexer),
            "ret" => self.ret(lexer),
            "br" => self.branch(lexer),
            "switch" => self.switch(lexer),
            "unreachable" => Ok((Type::Void, Operation::Unreachable)),
            "extractvalue" => {
                let of = self.operand(lexer)?;
                let path = path(lexer)?;
                let mut ty = &of.ty;
                for index in &path {
                    ty = ty
                        .element(*index)
                        .ok_or(ReadError::Inconsistent("an index out of range".into()))?;
                }
                Ok((ty.clone(), Operation::ExtractValue(of, path)))
            }
            "insertvalue" => {
                let into = self.operand(lexer)?;
                let element = self.next_operand(lexer)?;
                let path = path(lexer)?;
                let ty = into.ty.clone();
                Ok((ty, Operation::InsertValue(into, element, path)))
            }
            "extractelement" => {
                let vector = self.operand(lexer)?;
                let index = self.next_operand(lexer)?;
                let ty = vector.ty.lane().clone();
                Ok((ty, Operation::ExtractElement(vector, index)))
            }
            "insertelement" => {
                let vector = self.operand(lexer)?;
                let element = self.next_operand(lexer)?;
                let index = self.next_operand(lexer)?;
                let ty = vector.ty.clone();
                Ok((ty, Operation::InsertElement(vector, element, index)))
            }
            "shufflevector" => self.shuffle(lexer),
            "tail" | "musttail" | "notail" => {
                lexer.expect_word("call")?;
                self.call(lexer)
            }
            "call" | "invoke" => self.call(lexer),
            "alloca" | "load" | "store" | "fence" | "cmpxchg" | "atomicrmw" | "getelementptr" => {
                self.memory(lexer, opcode)
            }
            "landingpad" | "resume" | "cleanuppad" | "catchpad" | "cleanupret" | "catchret"
            | "catchswitch" => Err(ReadError::Unwinds(opcode.to_owned())),
            opcode => Err(ReadError::Unsupported(format!("`{opcode}`"))),
        }
    }

    /// Fast-math flags, `nuw`, `exact` and their like.
    fn skip_flags(&self, lexer: &mut Lexer<'_>) {
        while lexer
            .peek()
            .is_some_and(|token| matches!(token, Token::Word(_)) && !values::begins_type(token))
        {
            lexer.next_token();
        }
    }

    fn compare(
        &mut self,
        lexer: &mut Lexer<'_>,
        integers: bool,
    ) -> Result<(Type, Operation), ReadError> {
        let mut word = "";
        while let Some(Token::Word(next)) = lexer.peek() {
            if values::begins_type(&Token::Word(next)) {
                break;
            }
            word = next;
            lexer.next_token();
        }
        let unknown = || ReadError::Unknown(format!("comparison `{word}`"));
        let (left, right) = self.pair(lexer)?;
        let ty = left.ty.with_lane(Type::BOOL);
        let operation = match integers {
            true => Operation::CompareInts(int_predicate(word).ok_or_else(unknown)?, left, right),
            false => {
                Operation::CompareFloats(float_predicate(word).ok_or_else(unknown)?, left, right)
            }
        };
        Ok((ty, operation))
    }

    fn phi(&mut self, lexer: &mut Lexer<'_>) -> Result<(Type, Operation), ReadError> {
        self.skip_flags(lexer);
        let ty = values::ty(lexer, self.named)?;
        let mut incoming = Vec::new();
        loop {
            lexer.expect('[')?;
            let value = self.value(lexer, &ty)?;
            lexer.expect(',')?;
            let from = match lexer.next_token() {
                Some(Token::Local(name)) => self.block(&name)?,
                other => return Err(ReadError::expected("a block", format!("{other:?}"))),
            };
            lexer.expect(']')?;
            incoming.push((value, from));
            let mut ahead = lexer.clone();
            if !(ahead.eat(',') && ahead.peek() == Some(&Token::Sign('['))) {
                break;
            }
            *lexer = ahead;
        }
        Ok((ty, Operation::Phi(incoming)))
    }

    fn ret(&mut self, lexer: &mut Lexer<'_>) -> Result<(Type, Operation), ReadError> {
        let ty = values::ty(lexer, self.named)?;
        let value = match ty {
            Type::Void => None,
            ty => {
                let value = self.value(lexer, &ty)?;
                Some(Operand { ty, value })
            }
        };
        Ok((Type::Void, Operation::Return(value)))
    }

    fn branch(&mut self, lexer: &mut Lexer<'_>) -> Result<(Type, Operation), ReadError> {
        if lexer.peek() == Some(&Token::Word("label")) {
            return Ok((Type::Void, Operation::Jump(self.label(lexer)?)));
        }
        let condition = self.operand(lexer)?;
        lexer.expect(',')?;
        let then = self.label(lexer)?;
        lexer.expect(',')?;
        let otherwise = self.label(lexer)?;
        Ok((Type::Void, Operation::Branch(condition, then, otherwise)))
    }

    fn switch(&mut self, lexer: &mut Lexer<'_>) -> Result<(Type, Operation), ReadError> {
        let on = self.operand(lexer)?;
        lexer.expect(',')?;
        let default = self.label(lexer)?;
        lexer.expect('[')?;
        let mut cases = Vec::new();
        while !lexer.eat(']') {
            let (ty, value) = values::operand_constant(lexer, self.named)?;
            let value = match (value, ty) {
                (crate::model::Constant::Int(value), _) => value,
                (crate::model::Constant::Zero, _) => 0,
                (other, _) => {
                    let message = format!("{other:?} is no case of a switch");
                    return Err(ReadError::Inconsistent(message.into()));
                }
            };
            lexer.expect(',')?;
            cases.push((value, self.label(lexer)?));
        }
        let operation = Operation::Switch { on, default, cases };
        Ok((Type::Void, operation))
    }

    fn shuffle(&mut self, lexer: &mut Lexer<'_>) -> Result<(Type, Operation), ReadError> {
        use crate::model::Constant;
        let left = self.operand(lexer)?;
        let right = self.next_operand(lexer)?;
        lexer.expect(',')?;
        let (mask_type, mask) = values::operand_constant(lexer, self.named)?;
        let lanes = mask_type
            .lanes()
            .ok_or(ReadError::Inconsistent("a mask that is no vector".into()))?;
        let number = |constant: &Constant| match constant {
            Constant::Int(lane) => Some(*lane as u32),
            Constant::Zero => Some(0),
            _ => None,
        };
        let mask = match &mask {
            Constant::Aggregate(elements) => elements.iter().map(|(_, c)| number(c)).collect(),
            Constant::Splat(lane) => vec![number(lane); lanes as usize],
            other => vec![number(other); lanes as usize],
        };
        let ty = Type::Vector(lanes, Arc::new(left.ty.lane().clone()));
        Ok((ty, Operation::Shuffle(left, right, mask)))
    }

    fn call(&mut self, lexer: &mut Lexer<'_>) -> Result<(Type, Operation), ReadError> {
        values::attributes(lexer, self.named, values::begins_type)?;
        let returns = values::ty(lexer, self.named)?;
        // The parameters of a function that takes more than it says.
        if lexer.peek() == Some(&Token::Sign('(')) {
            lexer.skip_brackets()?;
        }
        let callee = match lexer.peek() {
            Some(Token::Global(name)) => {
                let name = name.as_ref().into();
                lexer.next_token();
                Callee::Symbol(name)
            }
            Some(Token::Word("asm")) => {
                lexer.next_token();
                let mut texts = Vec::new();
                while lexer.peek().is_some_and(|token| *token != Token::Sign('(')) {
                    if let Some(Token::Text(text)) = lexer.next_token() {
                        texts.push(Arc::from(&*String::from_utf8_lossy(&text)));
                    }
                }
                let mut texts = texts.into_iter();
                let empty = || Arc::from("");
                let template = texts.next().unwrap_or_else(empty);
                Callee::Assembly(template, texts.next().unwrap_or_else(empty))
            }
            _ => {
                let ty = Type::POINTER;
                let value = self.value(lexer, &ty)?;
                Callee::Address(Operand { ty, value })
            }
        };
        lexer.expect('(')?;
        let mut call = Call {
            callee,
            arguments: Vec::new(),
            by_value: Vec::new(),
            aligns: Vec::new(),
            attributes: Default::default(),
        };
        while !lexer.eat(')') {
            if !call.arguments.is_empty() {
                lexer.expect(',')?;
            }
            self.argument(lexer, &mut call)?;
        }
        let said = values::attributes(lexer, self.named, |token| {
            matches!(token, Token::Sign(',' | '[') | Token::Word("to"))
        })?;
        call.attributes = self.all(&said);
        Ok((returns, Operation::Call(Box::new(call))))
    }

    fn argument(&mut self, lexer: &mut Lexer<'_>, call: &mut Call) -> Result<(), ReadError> {
        let ty = values::ty(lexer, self.named)?;
        if matches!(&ty, Type::Other(name) if &**name == "metadata") {
            // Only debugging and constrained floats have such operands.
            while lexer
                .peek()
                .is_some_and(|token| !matches!(token, Token::Sign(',' | ')')))
            {
                match lexer.peek() {
                    Some(Token::Sign('(' | '{')) => lexer.skip_brackets()?,
                    _ => {
                        lexer.next_token();
                    }
                }
            }
            let value = Value::Constant(crate::model::Constant::Undefined);
            call.arguments.push(Operand { ty, value });
            call.by_value.push(None);
            call.aligns.push(None);
            return Ok(());
        }
        // Attributes stand before the value; a value is never such a word.
        let begins_value = |token: &Token<'_>| match token {
            Token::Word(word) => {
                matches!(
                    *word,
                    "true"
                        | "false"
                        | "null"
                        | "undef"
                        | "poison"
                        | "none"
                        | "zeroinitializer"
                        | "splat"
                        | "getelementptr"
                        | "dso_local_equivalent"
                        | "no_cfi"
                ) || values::cast(word).is_some()
                    || values::binary(word).is_some()
            }
            Token::Text(_) | Token::Group(_) => false,
            Token::Sign('=') => false,
            _ => true,
        };
        let said = values::attributes(lexer, self.named, begins_value)?;
        let value = self.value(lexer, &ty)?;
        call.arguments.push(Operand { ty, value });
        let align = said.align;
        call.by_value
            .push(said.by_value.map(|ty| (ty, align.unwrap_or(8))));
        call.aligns.push(align);
        Ok(())
    }

    /// Attributes with those of the groups.
    fn all(&self, said: &Said) -> crate::model::Attributes {
        let groups = said
            .groups
            .iter()
            .filter_map(|group| self.groups.get(group));
        groups.fold(said.attributes, |all, group| all | *group)
    }
}

/// Indices of an aggregate.
fn path(lexer: &mut Lexer<'_>) -> Result<Vec<u64>, ReadError> {
    let mut path = Vec::new();
    loop {
        let mut ahead = lexer.clone();
        if !(ahead.eat(',') && matches!(ahead.peek(), Some(Token::Number(_)))) {
            return Ok(path);
        }
        *lexer = ahead;
        path.push(values::number(lexer)?);
    }
}

fn int_predicate(word: &str) -> Option<IntPredicate> {
    use IntPredicate::*;
    Some(match word {
        "eq" => Eq,
        "ne" => Ne,
        "ugt" => Ugt,
        "uge" => Uge,
        "ult" => Ult,
        "ule" => Ule,
        "sgt" => Sgt,
        "sge" => Sge,
        "slt" => Slt,
        "sle" => Sle,
        _ => return None,
    })
}

fn float_predicate(word: &str) -> Option<FloatPredicate> {
    use FloatPredicate::*;
    Some(match word {
        "false" => False,
        "oeq" => Oeq,
        "ogt" => Ogt,
        "oge" => Oge,
        "olt" => Olt,
        "ole" => Ole,
        "one" => One,
        "ord" => Ord,
        "ueq" => Ueq,
        "ugt" => Ugt,
        "uge" => Uge,
        "ult" => Ult,
        "ule" => Ule,
        "une" => Une,
        "uno" => Uno,
        "true" => True,
        _ => return None,
    })
}

/// The node that `!dbg` names at the end of an instruction.
pub fn location(text: &str) -> Option<u32> {
    let (_, behind) = text.rsplit_once("!dbg !")?;
    let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
    behind[..digits].parse().ok()
}
