//! What Cranelift's reader asserts, said as errors before it sees the text.
//!
//! The reader (cranelift-reader 0.135.8) says of most mistakes what they are. Some it takes for granted instead, and
//! ends the process: these were found by reading it and what it calls. [`text`] finds them in a text, [`run_line`] in
//! the comment of a run line. Both look at words only and leave every other mistake to the reader, so a text that is
//! well-formed passes.

use super::syntax;
use super::tokens::{Token, Tokens, entity};
use crate::error::{Error, Place, Problem};
use cranelift_codegen::ir::instructions::InstructionFormat;
use cranelift_codegen::ir::{Opcode, Signature, Type, types};
use std::collections::{HashMap, HashSet};
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
    if !matches!(tokens.next(), Some(Token::Word("run" | "print"))) {
        return Ok(());
    }
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
    Err(format!(
        "the constant has {bytes} bytes, but {ty} has {}",
        ty.bytes()
    ))
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

/// Whether an operation on a legal type has types of results: two lanes of a dynamic vector do not become wider ones,
/// and only of a dynamic vector is a part taken.
fn has_result_type(opcode: Opcode, ty: Type) -> bool {
    match opcode {
        Opcode::SwidenLow | Opcode::SwidenHigh | Opcode::UwidenLow | Opcode::UwidenHigh => {
            !ty.is_dynamic_vector() || ty.min_lane_count() > 2
        }
        Opcode::ExtractVector => ty.is_dynamic_vector(),
        _ => true,
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
    /// Constants that stand in instructions: numbers, how many lists, and the line of the last.
    inline: HashSet<(Type, &'a str)>,
    inline_lists: usize,
    inline_line: u32,
    /// Dynamic types, by ascending number, and all of them.
    dynamic: Vec<(u32, Type)>,
    dynamic_types: HashSet<Type>,
    /// Values that are dynamic vectors.
    dynamic_values: HashMap<u32, Type>,
    /// Functions and symbols that the embedding knows by number.
    names: HashSet<(u32, u32)>,
    /// The largest reference to those, with its line.
    reference: Option<(u32, u32)>,
    /// Flags of accesses that name a region.
    flags: HashSet<Vec<&'a str>>,
}

impl Function<'_> {
    fn declare_dynamic(&mut self, number: u32, ty: Type) {
        self.dynamic_types.insert(ty);
        // A number that the reader has filled already stays what it is.
        if self.dynamic.last().is_none_or(|&(last, _)| last < number) {
            self.dynamic.push((number, ty));
        }
    }

    /// The dynamic type of a number. The reader fills gaps with the next type.
    fn dynamic_type(&self, number: u32) -> Option<Type> {
        let next = self.dynamic.partition_point(|&(known, _)| known < number);
        Some(self.dynamic.get(next)?.1)
    }

    /// What can only be said of the whole function.
    fn finish(&self) -> Result<(), Error> {
        // An instruction's constant gets the number of those there are.
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let first = count(self.constants.len());
        let next = first.saturating_add(count(self.inline.len() + self.inline_lists));
        let taken = (self.constants.iter()).find(|&&number| (first..next).contains(&number));
        if let Some(number) = taken {
            return Err(syntax(
                format!(
                    "const{number} is taken when this constant gets a number; count constants from const0 on"
                ),
                self.inline_line,
            ));
        }
        match self.reference {
            Some((number, line)) if number as usize >= self.names.len() => Err(syntax(
                format!(
                    "userextname{number} names nothing in this function; write the name, as in u0:{number}"
                ),
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
                let message = format!(
                    "a line of the header begins with `{word} `, with a blank after the word"
                );
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
                Some(ty) if !ty.is_vector() => {
                    return Err(syntax(format!("{ty} is no vector"), line));
                }
                Some(ty) if ty.bits() > MAX_DYNAMIC_BASE => return Err(dynamic_vectors(line)),
                Some(ty) => {
                    if let Some(ty) = ty.vector_to_dynamic() {
                        self.function.declare_dynamic(number, ty);
                    }
                }
                None => {}
            },
            "u" if self.is_mark(index + 1, ':')
                && index > 0
                && self.word(index - 1) != Some("function") =>
            {
                if let Some(Token::Number(name)) = self.at(index + 2) {
                    let name = name.parse().map(|name| (number, name));
                    self.function.names.extend(name.ok());
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
        let explicit = self
            .is_mark(index + 1, '.')
            .then(|| self.word(index + 2))
            .flatten();
        let operands = index + if explicit.is_some() { 3 } else { 1 };
        self.dynamic_type(index, opcode, line)?;
        let ty = match opcode {
            Opcode::F128const => Some(types::F128),
            _ => explicit.and_then(type_of),
        };
        let is_flag = |word: &&str| !matches!(entity(word), Some(("v" | "gv", _)));
        match opcode.format() {
            InstructionFormat::UnaryConst => {
                if let (Some(ty), Some(Token::Number(number))) = (ty, self.at(operands)) {
                    fits(number, ty).map_err(|message| syntax(message, line))?;
                    self.function.inline.insert((ty, number));
                    self.function.inline_line = line;
                } else if self.is_mark(operands, '[') {
                    // All are taken for different ones.
                    self.function.inline_lists += 1;
                    self.function.inline_line = line;
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
                if flags
                    .iter()
                    .any(|flag| matches!(entity(flag), Some(("region", _))))
                {
                    self.function.flags.insert(flags);
                }
                if self.function.flags.len() > MAX_REGION_FLAGS {
                    let message =
                        format!("more than {MAX_REGION_FLAGS} different flags of accesses");
                    return Err(syntax(message, line));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The type of an instruction on dynamic vectors, and of its result: the function must have declared both.
    fn dynamic_type(&mut self, index: usize, opcode: Opcode, line: u32) -> Result<(), Error> {
        let explicit = self.is_mark(index + 1, '.').then(|| self.word(index + 2));
        let controlling = match explicit.flatten().map(entity) {
            Some(Some(("dt", number))) => {
                let undefined = || syntax(format!("undefined dynamic type dt{number}"), line);
                Some(self.function.dynamic_type(number).ok_or_else(undefined)?)
            }
            Some(_) => None,
            // `select` and its like have the type of their second operand.
            None if opcode.format() == InstructionFormat::Ternary => self.dynamic_value(index + 3),
            None => self.dynamic_value(index + 1),
        };
        if controlling.is_some() && opcode.format() == InstructionFormat::UnaryConst {
            return Err(dynamic_vectors(line));
        }
        let constraints = opcode.constraints();
        let legal = |ty: &Type| {
            constraints
                .ctrl_typeset()
                .is_some_and(|legal| legal.contains(*ty))
        };
        let Some(ty) = controlling.filter(legal) else {
            return match opcode {
                Opcode::ExtractVector => Err(dynamic_vectors(line)),
                _ => Ok(()),
            };
        };
        if !has_result_type(opcode, ty) {
            return Err(dynamic_vectors(line));
        }
        for result in 0..constraints.num_fixed_results() {
            let result = constraints.result_type(result, ty);
            if !result.is_dynamic_vector() {
                continue;
            }
            if !self.function.dynamic_types.contains(&result) {
                return Err(dynamic_vectors(line));
            }
            if index > 1
                && let Some(("v", value)) = self.word(index - 2).and_then(entity)
            {
                self.function.dynamic_values.insert(value, result);
            }
            break;
        }
        Ok(())
    }

    /// The type of the value at an index, if it is a dynamic vector.
    fn dynamic_value(&self, index: usize) -> Option<Type> {
        let (_, value) = self
            .word(index)
            .and_then(entity)
            .filter(|(kind, _)| *kind == "v")?;
        self.function.dynamic_values.get(&value).copied()
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
                        return Err(syntax(
                            format!("a list has more than {MAX_LIST} entries"),
                            line,
                        ));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

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
    Err(syntax(
        format!("{word}: numbers up to {most} are accepted{remedy}"),
        line,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clif::source::SourceFile;

    /// What is said of a function with this in it.
    fn errors(preamble: &str, body: &str) -> String {
        let text = format!(
            "function %f(i32x2, i32) {{\n{preamble}\nblock0(v0: i32x2, v1: i32):\n{body}\nreturn\n}}\n"
        );
        match SourceFile::parse("x.clif", &text) {
            Ok(_) => String::new(),
            Err(errors) => errors.to_string(),
        }
    }

    #[test]
    fn what_the_reader_asserts_is_said_with_its_line() {
        let long = "0x0102030405060708090a0b0c0d0e0f10";
        let list = vec!["v1"; 1 << 16].join(", ");
        let unordered = format!("v2 = vconst.i32x4 {long}");
        for (preamble, body, expected) in [
            (
                format!("const0 = i32x2 {long}").as_str(),
                "",
                "x.clif:2: the constant has 16 bytes, but i32x2 has 8",
            ),
            (
                "",
                "v2 = vconst.i16x2 0x00010002_00030004",
                "x.clif:4: the constant has 8 bytes, but i16x2 has 4",
            ),
            ("const1 = 0x00", &unordered, "x.clif:4: const1 is taken"),
            (
                "const1 = 0x00",
                "v2 = vconst.i32x2 [1 2]",
                "x.clif:4: const1 is taken",
            ),
            (
                "gv0 = dyn_scale_target_const.i32",
                "",
                "x.clif:2: i32 is no vector",
            ),
            (
                "gv0 = dyn_scale_target_const.i32x4\ndt0 = i32*gv0",
                "",
                "x.clif:3: i32 is no vector",
            ),
            (
                "gv0 = dyn_scale_target_const.i32x4\ndt0 = i8x64*gv0",
                "",
                "x.clif:3: unsupported: dynamic vectors",
            ),
            (
                "",
                "v2 = splat.dt3 v1",
                "x.clif:4: undefined dynamic type dt3",
            ),
            (
                "gv0 = dyn_scale_target_const.i32x4\ndt0 = i16x8*gv0",
                "v2 = iconst.i16 1\nv3 = splat.dt0 v2\nv4 = swiden_low v3",
                "x.clif:7: unsupported: dynamic vectors",
            ),
            (
                "gv0 = dyn_scale_target_const.i32x4\ndt0 = i16x8*gv0",
                "v2 = vconst.dt0 [1 2]",
                "x.clif:5: unsupported: dynamic vectors",
            ),
            (
                "fn0 = userextname0(i32)",
                "",
                "x.clif:2: userextname0 names nothing",
            ),
            (
                "",
                "jump block0(ret1073741824)",
                "x.clif:4: ret1073741824: numbers up to 4194304",
            ),
            (
                "",
                &format!("v9 = call fn0({list}, v1)"),
                "x.clif:4: a list has more than 65536 entries",
            ),
        ] {
            let errors = errors(preamble, body);
            assert!(errors.starts_with(expected), "{preamble}\n{body}\n{errors}");
        }
        let header = "set(x) \nfunction %f() {\nblock0:\n return\n}\n";
        let errors = SourceFile::parse("x.clif", header).unwrap_err().to_string();
        assert!(
            errors.starts_with("x.clif:1: a line of the header begins with `set `"),
            "{errors}"
        );
    }

    #[test]
    fn what_is_well_formed_passes() {
        for (preamble, body) in [
            ("const0 = i32x4 0x01", "v2 = vconst.i32x4 const0"),
            (
                "const9 = 0x00",
                "v2 = vconst.i32x2 [1 2]\nv3 = vconst.i32x2 0x0000000100000002",
            ),
            ("fn0 = u0:3(i32)\nfn1 = userextname0(i32)", "call fn1(v1)"),
            (
                "gv0 = dyn_scale_target_const.i32x4\ndt0 = i32x4*gv0",
                "v2 = splat.dt0 v1\nv3 = icmp eq v2, v2",
            ),
            (
                "",
                "v2 = shuffle v3, v3, 0x03020100\nv3 = vconst.i8x16 0x00",
            ),
        ] {
            assert_eq!(errors(preamble, body), "", "{preamble}\n{body}");
        }
    }

    #[test]
    fn values_of_run_lines_fit_their_types() {
        let text = "function %f(i16x2, i32) -> i32x2, i8x4 {\nblock0(v0: i16x2, v1: i32):\n trap user1\n}\n";
        let errors = |line: &str| {
            let file = SourceFile::parse("x.clif", &format!("{text}{line}\n")).unwrap();
            match file.functions[0].run_lines(&file.name) {
                Ok(_) => String::new(),
                Err(errors) => errors.to_string(),
            }
        };
        assert_eq!(
            errors("; run: %f(0x00010002, 3) == [[1 2], 0x01020304]"),
            ""
        );
        assert_eq!(errors("; not a run line: 0x0001000200030004"), "");
        for (line, expected) in [
            (
                "; run: %f(0x0001000200030004, 3) == [[1 2], 0x01020304]",
                "8 bytes, but i16x2 has 4",
            ),
            (
                "; run: %f([1 2], 3) == [[1 2], 0x0102030405060708]",
                "8 bytes, but i8x4 has 4",
            ),
            ("; print: %f(0x000100020003, 3)", "6 bytes, but i16x2 has 4"),
        ] {
            let errors = errors(line);
            assert!(errors.contains(expected), "{line}: {errors}");
        }
    }

    /// The reader finds the types of results by these, and no opcode may end the process there.
    #[test]
    fn results_have_types_of_all_opcodes() {
        let lanes = [
            "i8", "i16", "i32", "i64", "i128", "f16", "f32", "f64", "f128",
        ];
        let mut all: Vec<Type> = lanes.iter().filter_map(|lane| type_of(lane)).collect();
        for exponent in 1..=8 {
            let vectors = lanes
                .iter()
                .filter_map(|lane| type_of(&format!("{lane}x{}", 1 << exponent)));
            let vectors: Vec<Type> = vectors.collect();
            all.extend(vectors.iter().filter_map(|ty| ty.vector_to_dynamic()));
            all.extend(vectors);
        }
        for opcode in Opcode::all() {
            let constraints = opcode.constraints();
            let Some(legal) = constraints.ctrl_typeset() else {
                continue;
            };
            let is_typed = |ty: &&Type| legal.contains(**ty) && has_result_type(*opcode, **ty);
            for ty in all.iter().filter(is_typed) {
                for result in 0..constraints.num_fixed_results() {
                    let result = constraints.result_type(result, *ty);
                    assert!(!result.is_invalid(), "{opcode}.{ty}");
                }
            }
        }
    }
}
