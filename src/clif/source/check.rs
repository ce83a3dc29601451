//! What Cranelift's reader asserts, said as errors before it sees the text.
//!
//! The reader (cranelift-reader 0.135.8) says of most mistakes what they are. Some it takes for granted instead, and
//! ends the process: these were found by reading it and what it calls. [`text`] finds them in a text, [`run_line`] in
//! the comment of a run line. Both look at words only and leave every other mistake to the reader, so a text that is
//! well-formed passes.

use super::tokens::{Token, Tokens, entity};
use super::syntax;
use crate::error::{Error, Place, Problem};
use cranelift_codegen::ir::instructions::InstructionFormat;
use cranelift_codegen::ir::{Opcode, Signature, Type, types};
use std::collections::HashSet;
use std::str::FromStr;

/// Largest number of an entity that is accepted. The reader makes all entities up to the number, so a single
/// `v4000000000` would fill the memory.
const MAX_ENTITY_NUMBER: u32 = 1 << 22;
/// Largest number of a block: Cranelift's reader takes 100,000 blocks.
const MAX_BLOCK_NUMBER: u32 = 100_000 - 1;
/// Longest list of parameters, results or arguments: places in them have 16 bits.
const MAX_LIST: u32 = 1 << 16;
/// Most alias regions with flags of their own: there are 16 bits to number flags, and less than 2^13 without regions.
const MAX_REGION_FLAGS: usize = (1 << 16) - (1 << 13);
/// Widest vector from which a dynamic one is made.
const MAX_DYNAMIC_BASE: u32 = 256;

/// Kinds of entities of which the reader makes all up to the number, or packs the number.
const ENTITIES: [&str; 16] = [
    "v",
    "block",
    "ss",
    "dss",
    "gv",
    "mt",
    "const",
    "fn",
    "sig",
    "dt",
    "ex",
    "region",
    "userextname",
    "ret",
    "exn",
    "tag",
];

/// The first mistake of a text without a header that the reader would assert.
pub(super) fn text(text: &str) -> Result<(), Error> {
    let tokens: Vec<(Token, u32)> = Tokens::of(text).collect();
    let mut check = Check {
        tokens: &tokens,
        lists: vec![Some(0)],
        function: Function::default(),
    };
    for index in 0..tokens.len() {
        check.token(index)?;
    }
    check.function.finish()
}

/// The mistake of a run line that the reader would assert: a constant that is wider than its vector.
pub(super) fn run_line(comment: &str, signature: &Signature) -> Result<(), String> {
    let text = comment.trim_start_matches([' ', ';']);
    let mut tokens = Tokens::of(text).map(|(token, _)| token).peekable();
    let parameters = signature.params.iter().chain(&signature.returns);
    let mut values = parameters.map(|parameter| parameter.value_type);
    // Several results stand in brackets.
    let mut wraps = false;
    while let Some(token) = tokens.next() {
        match token {
            Token::Mark('=') => wraps = signature.returns.len() != 1,
            Token::Mark('[') if wraps => wraps = false,
            Token::Mark('[') => {
                values.next();
                while tokens.next_if(|&token| token != Token::Mark(']')).is_some() {}
            }
            Token::Number(number) => {
                if let Some(ty) = values.next().filter(|ty| ty.is_vector()) {
                    fits(number, ty)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a constant has no more bytes than its type. Numbers that are no constants are the reader's.
fn fits(number: &str, ty: Type) -> Result<(), String> {
    let Some(digits) = number.strip_prefix("0x") else {
        return Ok(());
    };
    let digits = digits.bytes().filter(|&byte| byte != b'_').count();
    let bytes = digits / 2;
    if digits % 2 != 0 || bytes > 16 || bytes <= ty.bytes() as usize {
        return Ok(());
    }
    Err(format!("the constant has {bytes} bytes, but {ty} has {}", ty.bytes()))
}

/// A type as it is written.
fn type_of(word: &str) -> Option<Type> {
    let lane = |name: &str| {
        Some(match name {
            "i8" => types::I8,
            "i16" => types::I16,
            "i32" => types::I32,
            "i64" => types::I64,
            "i128" => types::I128,
            "f16" => types::F16,
            "f32" => types::F32,
            "f64" => types::F64,
            "f128" => types::F128,
            _ => return None,
        })
    };
    let (kind, number) = entity(word)?;
    match kind.strip_suffix('x') {
        Some(name) => lane(name)?.by(number),
        None => lane(word),
    }
}

fn dynamic_vectors(line: u32) -> Error {
    let problem = Problem::Unsupported {
        item: "dynamic vectors".to_owned(),
        remedy: "use vector types of a fixed length".to_owned(),
    };
    Error::new(problem, Place::default().at_line(line))
}

/// A walk over the words of a text.
struct Check<'a> {
    tokens: &'a [(Token<'a>, u32)],
    /// The commas in each list that is open; none where any number is accepted.
    lists: Vec<Option<u32>>,
    function: Function<'a>,
}

/// What a function has declared and used.
#[derive(Default)]
struct Function<'a> {
    /// Inside the braces.
    has_body: bool,
    /// The numbers of its constants.
    constants: Vec<u32>,
    /// Constants that stand in instructions, and the line of the last.
    inline: HashSet<(Type, &'a str)>,
    inline_line: u32,
    /// Dynamic types: number and type.
    dynamic: Vec<(u32, Type)>,
    /// Functions and symbols that the embedding knows by number.
    names: HashSet<(u32, &'a str)>,
    /// The largest reference to those, with its line.
    reference: Option<(u32, u32)>,
    /// Flags of accesses that name a region.
    flags: HashSet<Vec<&'a str>>,
}

impl Function<'_> {
    /// What can only be said of the whole function.
    fn finish(&self) -> Result<(), Error> {
        // An instruction's constant gets the number of those there are.
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let first = count(self.constants.len());
        let next = first.saturating_add(count(self.inline.len()));
        let taken = (self.constants.iter()).find(|&&number| (first..next).contains(&number));
        if let Some(number) = taken {
            return Err(syntax(
                format!("const{number} is taken when this constant gets a number; count constants from const0 on"),
                self.inline_line,
            ));
        }
        match self.reference {
            Some((number, line)) if number as usize >= self.names.len() => Err(syntax(
                format!("userextname{number} names nothing in this function; write the name, as in u0:{number}"),
                line,
            )),
            _ => Ok(()),
        }
    }
}

impl<'a> Check<'a> {
    fn at(&self, index: usize) -> Option<Token<'a>> {
        self.tokens.get(index).map(|&(token, _)| token)
    }

    /// The word at an index.
    fn word(&self, index: usize) -> Option<&'a str> {
        match self.at(index)? {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    fn is_mark(&self, index: usize, mark: char) -> bool {
        self.at(index) == Some(Token::Mark(mark))
    }

    fn token(&mut self, index: usize) -> Result<(), Error> {
        let (token, line) = self.tokens[index];
        match token {
            Token::Word(word) => {
                check_number(word, line)?;
                self.keyword(index, word, line)?;
                if let Some((kind, number)) = entity(word) {
                    self.entity(index, kind, number, line)?;
                } else if self.function.has_body
                    && let Ok(opcode) = Opcode::from_str(word)
                {
                    self.instruction(index, opcode, line)?;
                }
            }
            Token::Mark(mark) => self.mark(mark, line)?,
            Token::Number(_) | Token::Name(_) => {}
        }
        Ok(())
    }

    fn keyword(&mut self, index: usize, word: &str, line: u32) -> Result<(), Error> {
        match word {
            // The reader would set up a target of its own.
            "test" | "set" | "target" | "feature" if index == 0 => {
                let message = format!("a line of the header begins with `{word} `, with a blank after the word");
                Err(syntax(message, line))
            }
            "function" if !self.function.has_body => {
                self.function.finish()?;
                self.function = Function::default();
                Ok(())
            }
            "dyn_scale_target_const" if self.is_mark(index + 1, '.') => {
                match self.word(index + 2).and_then(type_of) {
                    Some(ty) if !ty.is_vector() => Err(syntax(format!("{ty} is no vector"), line)),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Declarations and uses of entities.
    fn entity(&mut self, index: usize, kind: &'a str, number: u32, line: u32) -> Result<(), Error> {
        let is_declared = self.is_mark(index + 1, '=');
        let ty = self.word(index + 2).and_then(type_of);
        match kind {
            "const" if is_declared => {
                self.function.constants.push(number);
                if let (Some(ty), Some(Token::Number(number))) = (ty, self.at(index + 3)) {
                    fits(number, ty).map_err(|message| syntax(message, line))?;
                }
            }
            "dt" if is_declared => match ty {
                Some(ty) if !ty.is_vector() => return Err(syntax(format!("{ty} is no vector"), line)),
                Some(ty) if ty.bits() > MAX_DYNAMIC_BASE => return Err(dynamic_vectors(line)),
                Some(ty) => self.function.dynamic.extend(ty.vector_to_dynamic().map(|ty| (number, ty))),
                None => {}
            },
            "u" if self.is_mark(index + 1, ':') && index > 0 && self.word(index - 1) != Some("function") => {
                if let Some(Token::Number(name)) = self.at(index + 2) {
                    self.function.names.insert((number, name));
                }
            }
            "userextname" => {
                let most = self.function.reference.map_or(0, |(most, _)| most);
                self.function.reference = Some((most.max(number), line));
            }
            _ => {}
        }
        Ok(())
    }

    /// The type and the constants of an instruction.
    fn instruction(&mut self, index: usize, opcode: Opcode, line: u32) -> Result<(), Error> {
        let explicit = self.is_mark(index + 1, '.').then(|| self.word(index + 2)).flatten();
        let operands = index + if explicit.is_some() { 3 } else { 1 };
        self.dynamic_type(opcode, explicit, line)?;
        let ty = match opcode {
            Opcode::F128const => Some(types::F128),
            _ => explicit.and_then(type_of),
        };
        let is_flag = |word: &&str| !matches!(entity(word), Some(("v" | "gv", _)));
        match opcode.format() {
            InstructionFormat::UnaryConst => {
                if let (Some(ty), Some(Token::Number(number))) = (ty, self.at(operands)) {
                    fits(number, ty).map_err(|message| syntax(message, line))?;
                    self.inline(ty, number, line);
                } else if let (Some(ty), Some(Token::Mark('['))) = (ty, self.at(operands)) {
                    // Lists are taken for different ones.
                    let count = self.function.inline.len();
                    self.inline(ty, &SPACES[..count.min(SPACES.len())], line);
                }
            }
            InstructionFormat::Shuffle => {
                if let Some(Token::Number(number)) = self.at(operands + 4) {
                    fits(number, types::I8X16).map_err(|message| syntax(message, line))?;
                }
            }
            InstructionFormat::Load
            | InstructionFormat::Store
            | InstructionFormat::LoadNoOffset
            | InstructionFormat::StoreNoOffset
            | InstructionFormat::AtomicCas
            | InstructionFormat::AtomicRmw => {
                let words = (operands..).map_while(|index| self.word(index));
                let flags: Vec<&str> = words.take_while(is_flag).collect();
                if flags.iter().any(|flag| matches!(entity(flag), Some(("region", _)))) {
                    self.function.flags.insert(flags);
                }
                if self.function.flags.len() > MAX_REGION_FLAGS {
                    let message = format!("more than {MAX_REGION_FLAGS} different flags of accesses");
                    return Err(syntax(message, line));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A constant that stands in an instruction.
    fn inline(&mut self, ty: Type, text: &'a str, line: u32) {
        self.function.inline.insert((ty, text));
        self.function.inline_line = line;
    }

    /// Dynamic types are known by what the function declares, and so must be those of results.
    fn dynamic_type(&self, opcode: Opcode, explicit: Option<&str>, line: u32) -> Result<(), Error> {
        let declared = &self.function.dynamic;
        if let Some(("dt", number)) = explicit.and_then(entity) {
            // The reader fills gaps with a type that is declared.
            if !declared.iter().any(|&(most, _)| number <= most) {
                return Err(syntax(format!("undefined dynamic type dt{number}"), line));
            }
            if opcode.format() == InstructionFormat::UnaryConst {
                return Err(dynamic_vectors(line));
            }
        }
        let constraints = opcode.constraints();
        let Some(legal) = constraints.ctrl_typeset() else {
            return Ok(());
        };
        let types = declared.iter().map(|&(_, ty)| ty).filter(|&ty| legal.contains(ty));
        let results = |ty| (0..constraints.num_fixed_results()).map(move |index| constraints.result_type(index, ty));
        let is_known = |ty: Type| !ty.is_dynamic_vector() || declared.iter().any(|&(_, known)| known == ty);
        match types.flat_map(results).all(is_known) {
            true => Ok(()),
            false => Err(dynamic_vectors(line)),
        }
    }

    /// Lists, and the beginning and end of bodies.
    fn mark(&mut self, mark: char, line: u32) -> Result<(), Error> {
        match mark {
            '{' | '}' | '=' => {
                self.lists = vec![Some(0)];
                if mark != '=' {
                    self.function.has_body = mark == '{';
                }
            }
            '(' => self.lists.push(Some(0)),
            '[' => self.lists.push(None),
            ')' | ']' if self.lists.len() > 1 => {
                self.lists.pop();
            }
            ',' => {
                if let Some(Some(commas)) = self.lists.last_mut() {
                    *commas += 1;
                    if *commas >= MAX_LIST {
                        return Err(syntax(format!("a list has more than {MAX_LIST} entries"), line));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Names for lists of constants: a longer one for each.
const SPACES: &str = "                                                                                          ";

/// Refuses numbers of entities that would make the reader fill the memory.
fn check_number(word: &str, line: u32) -> Result<(), Error> {
    let kind = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &word[kind.len()..];
    if digits.len() < 6 || !ENTITIES.contains(&kind) {
        return Ok(());
    }
    let most = match kind {
        "block" => MAX_BLOCK_NUMBER,
        _ => MAX_ENTITY_NUMBER,
    };
    if digits.parse::<u32>().is_ok_and(|number| number <= most) {
        return Ok(());
    }
    let remedy = match kind {
        "block" => "; count blocks from block0 on, and split a function that has more",
        _ => "",
    };
    Err(syntax(format!("{word}: numbers up to {most} are accepted{remedy}"), line))
}
