//! The reader of LLVM IR as text, as rustc 1.95 (LLVM 22.1) prints it.
//!
//! It takes a whole module and gives a [`Module`]. What stands outside of functions has to be understood, or is an
//! error with its line; an instruction that is not understood becomes
//! [`Operation::Unsupported`](crate::model::Operation::Unsupported), since most of a crate is not reached by a kernel.
//!
//! A text, because rustc writes it, a person can read it, and tests can be written in it. The crate `llvm-bitcode`
//! reads LLVM's bit streams into records of numbers: types, values and debug information would have to be put together
//! from them in any case, so it would save the lexer alone.

mod instructions;
mod lexer;
mod memory;
mod metadata;
mod part;
mod records;
mod values;

use crate::error::{Error, Problem, ReadError};
use crate::layout;
use crate::model::{
    Alias, Attributes, Block, Function, Instruction, Item, Linkage, Metadata, Module, Operation,
    Parameter, Type, Variable,
};
use hashbrown::HashMap;
use instructions::{Groups, Names};
use lexer::{Lexer, Token};
use std::sync::Arc;
use values::NamedTypes;

impl Module {
    /// Reads the text of one crate; messages call it `name`.
    ///
    /// # Errors
    /// What cannot be read, with its line, or a data layout that is not that of 64-bit little-endian machines.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let mut reader = Reader {
            module: Module {
                name: name.to_owned(),
                ..Module::default()
            },
            named: NamedTypes::new(),
            groups: Groups::new(),
            title: None,
            laid_out: false,
        };
        reader.groups(text);
        reader.types(text);
        reader.text(text).map_err(|(line, error)| {
            let module = name.to_owned();
            Error::new(
                None,
                Problem::Read {
                    module,
                    line,
                    error,
                },
            )
        })?;
        if !reader.laid_out {
            let module = name.to_owned();
            return Err(Error::new(None, Problem::NoLayout { module }));
        }
        let mut module = reader.module;
        module.number();
        Ok(module)
    }

    /// Reads what some symbols of a text need, with all that is named by what they need.
    ///
    /// # Errors
    /// As of [`parse`](Self::parse); lines are counted in what is read.
    pub fn parse_part<'a>(
        name: &str,
        text: &'a str,
        symbols: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, Error> {
        Self::parse(name, &part::part(text, symbols))
    }

    /// Gives files of the source that do not stand in `folder` their whole names, where names begin in the folder that
    /// the compiler ran in: two packages may both have a `src/lib.rs`.
    pub fn name_files_from(&mut self, folder: &str) {
        for node in self.metadata.values_mut() {
            if let Metadata::File { name, directory } = node
                && !name.starts_with(['/', '<'])
                && !directory.starts_with("/rustc/")
                && !directory.is_empty()
                && directory.trim_end_matches('/') != folder.trim_end_matches('/')
            {
                *name = format!("{}/{name}", directory.trim_end_matches('/')).into();
            }
        }
    }

    /// Notes where each symbol stands. A definition goes before a declaration.
    fn number(&mut self) {
        for (index, alias) in self.aliases.iter().enumerate() {
            self.items.insert(alias.name.clone(), Item::Alias(index));
        }
        for (index, variable) in self.variables.iter().enumerate() {
            self.items
                .insert(variable.name.clone(), Item::Variable(index));
        }
        for (index, function) in self.functions.iter().enumerate() {
            self.items
                .insert(function.name.clone(), Item::Function(index));
        }
    }
}

struct Reader {
    module: Module,
    named: NamedTypes,
    groups: Groups,
    /// The Rust path that the last comment named.
    title: Option<Arc<str>>,
    laid_out: bool,
}

impl Reader {
    /// Attribute groups stand behind the functions that refer to them.
    fn groups(&mut self, text: &str) {
        for line in text.lines().rev() {
            let Some(rest) = line.strip_prefix("attributes #") else {
                continue;
            };
            let mut lexer = Lexer::new(rest);
            let Ok(number) = values::number(&mut lexer) else {
                continue;
            };
            let said = values::attributes(&mut lexer, &self.named, |_| false);
            let attributes = said.map(|said| said.attributes).unwrap_or_default();
            self.groups.insert(number, attributes);
        }
    }

    /// Named types, which may be made of others that are defined behind them: those first. One that cannot be read, or
    /// is made of itself, is an error only where it is used.
    fn types(&mut self, text: &str) {
        let mut open: HashMap<String, Lexer<'_>> = HashMap::new();
        let mut names = Vec::new();
        for line in text.lines().filter(|line| line.starts_with('%')) {
            let mut lexer = Lexer::new(line);
            if let Some(Token::Local(name)) = lexer.next_token()
                && lexer.eat('=')
                && lexer.eat_word("type")
            {
                names.push(name.clone().into_owned());
                open.insert(name.into_owned(), lexer);
            }
        }
        // A name is taken out of `open` when it is looked at first, and read behind those that its definition names.
        let mut path: Vec<(String, Lexer<'_>, Lexer<'_>)> = Vec::new();
        for name in names {
            path.extend(open.remove_entry(&name).map(entered));
            while let Some((_, _, ahead)) = path.last_mut() {
                match ahead.next_token() {
                    Some(Token::Local(inner)) => {
                        path.extend(open.remove_entry(inner.as_ref()).map(entered));
                    }
                    Some(_) => {}
                    None => {
                        if let Some((name, mut definition, _)) = path.pop() {
                            let ty = values::ty(&mut definition, &self.named);
                            let unknown = |reason| Type::Other(format!("%{name}: {reason}").into());
                            let ty = ty.unwrap_or_else(unknown);
                            self.named.insert(name, ty);
                        }
                    }
                }
            }
        }
    }

    fn text(&mut self, text: &str) -> Result<(), (usize, ReadError)> {
        let mut lines = Lines {
            text,
            at: 0,
            line: 0,
        };
        while let Some(line) = lines.next_line() {
            let number = lines.line;
            self.line(line, &mut lines)
                .map_err(|error| (number, error))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str, lines: &mut Lines<'_>) -> Result<(), ReadError> {
        if let Some(comment) = line.strip_prefix("; ") {
            if !comment.starts_with("Function Attrs:") {
                self.title = Some(comment.into());
            }
            return Ok(());
        }
        let title = self.title.take();
        if line.starts_with('@') {
            return self.global(line);
        }
        if let Some(rest) = line.strip_prefix("define ") {
            return self.definition(rest, title, lines);
        }
        if let Some(rest) = line.strip_prefix("declare ") {
            let function = self.signature(rest, title, &mut None)?;
            self.module.functions.push(function);
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix('!') {
            if let Some((number, rest)) = rest.split_once(" = ")
                && let Ok(number) = number.parse()
                && let Some(node) = metadata::node(rest)
            {
                self.module.metadata.insert(number, node);
            }
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix("target datalayout = ") {
            layout::check(rest.trim_matches('"'))?;
            self.laid_out = true;
            return Ok(());
        }
        // Types have been read before.
        let known = [
            "%",
            "source_filename",
            "target triple",
            "attributes #",
            "$",
            "^",
            "uselistorder",
            "module asm",
            ";",
        ];
        if line.trim().is_empty() || known.iter().any(|begin| line.starts_with(begin)) {
            return Ok(());
        }
        let begin: String = line.chars().take(60).collect();
        Err(ReadError::NoPart(begin))
    }

    /// A variable or an alias.
    fn global(&mut self, line: &str) -> Result<(), ReadError> {
        let mut lexer = Lexer::new(line);
        let Some(Token::Global(name)) = lexer.next_token() else {
            return Err(ReadError::Missing("a name"));
        };
        let name: Arc<str> = name.as_ref().into();
        lexer.expect('=')?;
        let (mut linkage, mut declared, mut thread_local) = (Linkage::External, false, false);
        let what = loop {
            match lexer.next_token() {
                Some(Token::Word(word @ ("global" | "constant" | "alias" | "ifunc"))) => {
                    break word;
                }
                Some(Token::Word("thread_local")) => thread_local = true,
                Some(Token::Word(word)) => {
                    declared |= matches!(word, "external" | "extern_weak");
                    linkage = self::linkage(word).unwrap_or(linkage);
                    if lexer.peek() == Some(&Token::Sign('(')) {
                        lexer.skip_brackets()?;
                    }
                }
                other => return Err(ReadError::expected("a variable", format!("{other:?}"))),
            }
        };
        let ty = values::ty(&mut lexer, &self.named)?;
        if matches!(what, "alias" | "ifunc") {
            // The parameters of a function.
            if lexer.peek() == Some(&Token::Sign('(')) {
                lexer.skip_brackets()?;
            }
            lexer.expect(',')?;
            let (_, target) = values::operand_constant(&mut lexer, &self.named)?;
            self.module.aliases.push(Alias {
                name,
                linkage,
                target,
            });
            return Ok(());
        }
        let value = match declared {
            true => None,
            false => Some(values::constant(&mut lexer, &self.named, &ty)?),
        };
        let (mut align, mut debug) = (None, None);
        while let Some(token) = lexer.next_token() {
            if token == Token::Word("align") {
                align = Some(values::alignment(&mut lexer)?);
            } else if token == Token::Kind("dbg")
                && let Some(Token::Node(node)) = lexer.peek()
            {
                debug = Some(*node);
            }
        }
        self.module.variables.push(Variable {
            name,
            linkage,
            constant: what == "constant",
            thread_local,
            ty,
            value,
            align,
            debug,
        });
        Ok(())
    }

    /// What stands before the body of a function. Names of parameters go to `names`, in order.
    fn signature(
        &mut self,
        text: &str,
        title: Option<Arc<str>>,
        names: &mut Option<Vec<String>>,
    ) -> Result<Function, ReadError> {
        let mut lexer = Lexer::new(text);
        let mut linkage = Linkage::External;
        for word in text.split_whitespace().take(3) {
            linkage = self::linkage(word).unwrap_or(linkage);
        }
        values::attributes(&mut lexer, &self.named, values::begins_type)?;
        let returns = values::ty(&mut lexer, &self.named)?;
        let Some(Token::Global(name)) = lexer.next_token() else {
            return Err(ReadError::Missing("the name of a function"));
        };
        let name: Arc<str> = name.as_ref().into();
        lexer.expect('(')?;
        let (mut parameters, mut variadic) = (Vec::new(), false);
        while !lexer.eat(')') {
            if !parameters.is_empty() {
                lexer.expect(',')?;
            }
            if lexer.eat('…') {
                variadic = true;
                continue;
            }
            let ty = values::ty(&mut lexer, &self.named)?;
            let said = values::attributes(&mut lexer, &self.named, |token| {
                matches!(token, Token::Local(_) | Token::Sign(',' | ')'))
            })?;
            let number = parameters.len() as u32;
            if let Some(Token::Local(name)) = lexer.peek() {
                let name = name.clone().into_owned();
                lexer.next_token();
                names.get_or_insert_default().push(name);
            } else if let Some(names) = names {
                names.push(number.to_string());
            }
            let align = said.align.unwrap_or(8);
            parameters.push(Parameter {
                ty,
                local: crate::model::Local(number),
                by_value: said.by_value.map(|ty| (ty, align)),
            });
        }
        let said = values::attributes(&mut lexer, &self.named, |token| {
            matches!(token, Token::Sign('{') | Token::Kind(_))
        })?;
        let groups = said
            .groups
            .iter()
            .filter_map(|group| self.groups.get(group));
        let attributes = groups.fold(said.attributes, |all: Attributes, group| all | *group);
        Ok(Function {
            name,
            title,
            linkage,
            returns,
            parameters,
            variadic,
            attributes,
            subprogram: instructions::location(text),
            blocks: Vec::new(),
            locals: 0,
        })
    }

    fn definition(
        &mut self,
        first: &str,
        title: Option<Arc<str>>,
        lines: &mut Lines<'_>,
    ) -> Result<(), ReadError> {
        let mut parameters = Some(Vec::new());
        let mut function = self.signature(first, title, &mut parameters)?;
        let parameters = parameters.unwrap_or_default();
        let body = lines.body();
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut texts: Vec<Vec<&str>> = Vec::new();
        for line in body {
            if let Some(label) = label(line) {
                names.push(label);
                texts.push(Vec::new());
            } else if let Some(last) = texts.last_mut() {
                last.push(line);
            } else {
                // The first block may have no label; its number follows those of the parameters.
                let unnamed = parameters.iter().filter(|name| name.parse::<u32>().is_ok());
                names.push(unnamed.count().to_string().into());
                texts.push(vec![line]);
            }
        }
        let mut locals = Names::new(&self.named, &self.groups, &names);
        for (parameter, name) in function.parameters.iter_mut().zip(&parameters) {
            parameter.local = locals.local(name);
        }
        for (name, lines) in names.into_iter().zip(texts) {
            let mut block = Block {
                name,
                ..Block::default()
            };
            for line in lines {
                if line.starts_with('#') {
                    let behind = block.instructions.len();
                    block.records.extend(locals.record(line, behind));
                } else {
                    locals.instruction(line, &mut block.instructions);
                }
            }
            let ended = block.instructions.last();
            if !ended.is_some_and(|last| last.operation.is_terminator()) {
                // A terminator that is not supported is reported where it is reached; behind it nothing is.
                block.instructions.push(Instruction {
                    result: None,
                    ty: Type::Void,
                    operation: Operation::Unreachable,
                    location: None,
                });
            }
            function.blocks.push(block);
        }
        function.locals = locals.count();
        self.module.functions.push(function);
        Ok(())
    }
}

/// A named type whose definition is looked through: its name, the definition, and where the search for other names is.
fn entered<'a>((name, definition): (String, Lexer<'a>)) -> (String, Lexer<'a>, Lexer<'a>) {
    let ahead = definition.clone();
    (name, definition, ahead)
}

/// The label that a line of a body is.
fn label(line: &str) -> Option<Arc<str>> {
    if line.starts_with([' ', '\t']) {
        return None;
    }
    let mut lexer = Lexer::new(line);
    let name = match lexer.next_token()? {
        Token::Word(name) | Token::Number(name) => name.into(),
        Token::Text(name) => String::from_utf8_lossy(&name).as_ref().into(),
        _ => return None,
    };
    lexer.eat(':').then_some(name)
}

fn linkage(word: &str) -> Option<Linkage> {
    Some(match word {
        // Lists that several modules add to matter to linkers of the host alone.
        "private" | "internal" | "appending" => Linkage::Local,
        "weak" | "weak_odr" | "linkonce" | "linkonce_odr" | "common" | "available_externally" => {
            Linkage::Weak
        }
        "external" => Linkage::External,
        _ => return None,
    })
}

/// A text line by line.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    /// The number of the line that was read last.
    line: usize,
}

impl<'a> Lines<'a> {
    fn next_line(&mut self) -> Option<&'a str> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let end = rest.find('\n').unwrap_or(rest.len());
        self.at = (self.at + end + 1).min(self.text.len());
        self.line += 1;
        Some(rest[..end].trim_end_matches('\r'))
    }

    /// The labels, instructions and records of a body, each with the lines that continue it; passes the closing brace.
    /// Records stand at the beginning of their lines.
    fn body(&mut self) -> Vec<&'a str> {
        let mut found: Vec<&'a str> = Vec::new();
        // Where the last instruction begins.
        let mut begin = 0;
        loop {
            let start = self.at;
            let Some(line) = self.next_line() else { break };
            if line.starts_with('}') {
                break;
            }
            let content = line.trim_start();
            if content.is_empty() || content.starts_with(';') {
                continue;
            }
            if content.starts_with('#') {
                found.push(content);
                continue;
            }
            let depth = line.len() - content.len();
            if depth > 2 || content.starts_with(']') {
                if let Some(last) = found.last_mut() {
                    *last = &self.text[begin..start + line.len()];
                }
            } else {
                begin = start;
                found.push(line);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
