//! Instruction sets whose documents give syntax but no bit positions: SPA 5.3, the predecessor.
//!
//! In: files that begin with `__InstructionSet NAME;` ([`load`]), or the vendor's pages as they are ([`document`]).
//! Out: an [`InstructionSet`], of which [`generate`] makes tables to read, print and execute text by. There are no
//! encodings, and none are assigned: everything here is documented.

pub mod diff;
pub mod document;
pub mod generate;
mod syntax;

use crate::ast::{ConstructKind, Document, Name, TextLine};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ModifierToken;

pub use syntax::canonical;

/// An instruction set known by its syntax.
#[derive(Clone, Debug)]
pub struct InstructionSet {
    /// As in `__InstructionSet`.
    pub name: Name,
    /// In the order of the files.
    pub operations: Vec<Operation>,
}

/// What one page describes: lines of syntax that share their modifiers.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Of the page.
    pub name: Name,
    /// Ways to write it.
    pub lines: Vec<Line>,
    /// Values of its modifiers.
    pub lists: Vec<List>,
    /// One instruction each.
    pub examples: Vec<TextLine>,
}

/// A way to write an instruction.
#[derive(Clone, Debug)]
pub struct Line {
    /// As written, with one blank between words.
    pub text: String,
    /// Where it stands.
    pub span: Span,
    /// What stands before the first dot.
    pub mnemonic: Name,
    /// Behind it.
    pub modifiers: Vec<ModifierToken>,
    /// In order.
    pub operands: Vec<Operand>,
}

/// An operand as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// `Ra`, `Immfp10H1`; `c` of a constant.
    pub name: String,
    /// What it is.
    pub shape: Shape,
    /// `{-}`.
    pub negate: bool,
    /// `{|}`.
    pub absolute: bool,
    /// `{!}`.
    pub not: bool,
    /// The list of `{.iswz}`.
    pub suffix: Option<String>,
}

/// The shapes of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A general register.
    Register,
    /// A predicate.
    Predicate,
    /// `c[#BankU05][#AddrU16]`.
    Constant {
        /// Bits of the bank's number.
        bank: u32,
        /// Bits of the byte offset.
        address: u32,
    },
    /// `#Immfp10H1`: one half.
    Immediate {
        /// How many of its most significant bits there are.
        bits: u32,
    },
}

/// The values of a modifier; a flag has one beside none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Without its dot.
    pub name: String,
    /// In order.
    pub values: Vec<Value>,
}

/// A value of a modifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Without its dot; none for `<NULL>`, which is not written.
    pub text: Option<String>,
    /// The default.
    pub starred: bool,
}

impl List {
    /// The index of the value that stands where none is written: the starred one, else the first.
    pub fn default(&self) -> usize {
        self.values.iter().position(|v| v.starred).unwrap_or(0)
    }
}

impl InstructionSet {
    /// All lists of all operations, one of each name, flags included.
    pub fn lists(&self) -> Vec<List> {
        let mut lists: Vec<List> = Vec::new();
        for operation in &self.operations {
            let flags = operation.flags();
            for list in operation.lists.iter().chain(&flags) {
                if !lists.iter().any(|known| known.name == list.name) {
                    lists.push(list.clone());
                }
            }
        }
        lists
    }
}

impl Operation {
    /// Modifiers without a list, as lists of nothing and themselves.
    fn flags(&self) -> Vec<List> {
        let mut flags: Vec<List> = Vec::new();
        for token in self.lines.iter().flat_map(|line| &line.modifiers) {
            let name = &token.name.text;
            let known = self.lists.iter().chain(&flags).any(|l| l.name == *name);
            if !known {
                let value = |text: Option<&str>| Value {
                    text: text.map(str::to_owned),
                    starred: text.is_none(),
                };
                flags.push(List {
                    name: name.clone(),
                    values: vec![value(None), value(Some(name))],
                });
            }
        }
        flags
    }
}

/// The instruction sets of parsed files, in order, with every mistake in them.
pub fn load(documents: &[Document], diagnostics: &mut Vec<Diagnostic>) -> Vec<InstructionSet> {
    let mut sets: Vec<InstructionSet> = Vec::new();
    for document in documents {
        let Some(name) = &document.instruction_set else {
            continue;
        };
        let known = sets.iter().position(|set| set.name.text == name.text);
        let index = known.unwrap_or_else(|| {
            sets.push(InstructionSet {
                name: name.clone(),
                operations: Vec::new(),
            });
            sets.len() - 1
        });
        for construct in &document.constructs {
            if construct.kind != ConstructKind::Optype || !construct.fields.is_empty() {
                diagnostics.push(
                    Diagnostic::error(
                        construct.name.span,
                        format!("{} has no encodings", name.text),
                    )
                    .help("its files hold `__DefOptype` with `__Syntax` and `__Examples`"),
                );
                continue;
            }
            let operation = syntax::operation(
                construct.name.clone(),
                &construct.syntax,
                construct.examples.clone(),
                diagnostics,
            );
            sets[index].operations.push(operation);
        }
        check_lists(&sets[index], diagnostics);
    }
    sets
}

/// One name has the same values in all operations: they become one type.
fn check_lists(set: &InstructionSet, diagnostics: &mut Vec<Diagnostic>) {
    let lists = set.lists();
    for operation in &set.operations {
        for list in operation.lists.iter().chain(&operation.flags()) {
            if !lists.contains(list) {
                let message = format!(
                    "the values of `.{}` are not those of the operation before",
                    list.name
                );
                diagnostics.push(Diagnostic::error(operation.name.span, message));
            }
        }
    }
}
