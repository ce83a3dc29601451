//! Cuts a document into definitions and their sections.
//!
//! Works on lines: a line whose first word is a keyword begins a definition or a section, unless it stands in a fenced
//! code block. Everything else is left for the section parsers, which know whether it may be prose.

use std::ops::Range;

use crate::ast::Name;
use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// The sections whose content has a meaning or is known to be prose.
pub const SECTIONS: [&str; 13] = [
    "__Encoding",
    "__Syntax",
    "__OperandInfo",
    "__Exception",
    "__Examples",
    "__Description",
    "__ModifierInfo",
    "__Semantics",
    "__Simulation",
    "__Shown",
    "__Default",
    "__Timing",
    "__Optypes",
];

/// The words that begin a definition.
pub const DEFINITIONS: [&str; 6] = [
    "__DefBitFieldType",
    "__DefGroup",
    "__DefOptype",
    "__DefOpcode",
    "__DefLatency",
    "__Amend",
];

/// Begins a file whose definitions are not the vendor's.
pub const PROVENANCE: &str = "__Provenance";

/// Begins a file whose definitions belong to another instruction set, which has no bit positions.
pub const INSTRUCTION_SET: &str = "__InstructionSet";

/// A definition and where its parts are.
#[derive(Clone, Debug)]
pub struct Block {
    /// `__DefOptype` and so on.
    pub keyword: Name,
    /// From behind the keyword to the first section.
    pub header: Range<usize>,
    /// Its sections.
    pub sections: Vec<Section>,
}

/// A section.
#[derive(Clone, Debug)]
pub struct Section {
    /// `__Encoding` and so on.
    pub keyword: Name,
    /// From behind the keyword to the next one.
    pub content: Range<usize>,
}

/// A whole file.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// Behind each `__Provenance`, to the end of its line.
    pub provenance: Vec<Section>,
    /// Behind each `__InstructionSet`, to the end of its line.
    pub instruction_set: Vec<Section>,
    /// In order.
    pub blocks: Vec<Block>,
}

/// Finds the definitions and sections of a file.
pub fn outline(file: u32, text: &str, diagnostics: &mut Vec<Diagnostic>) -> Outline {
    let mut scanner = Scanner {
        outline: Outline::default(),
        in_block: false,
        diagnostics,
    };
    let mut fence: Option<Span> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        let (line_start, word_start) = (start, start + indent);
        start += line.len();
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            fence = match fence {
                Some(_) => None,
                None => Some(span(file, word_start, word_start + 3)),
            };
            continue;
        }
        let Some(word) = keyword(trimmed) else {
            continue;
        };
        if let Some(opened) = fence {
            if !DEFINITIONS.contains(&word) && !SECTIONS.contains(&word) {
                continue;
            }
            scanner.diagnostics.push(
                Diagnostic::error(opened, "this code block is not closed")
                    .label("opened here")
                    .help(format!("put a line ``` before `{word}`")),
            );
            fence = None;
        }
        let name = Name {
            text: word.to_owned(),
            span: span(file, word_start, word_start + word.len()),
        };
        scanner.keyword_line(name, line_start, start);
    }
    if let Some(opened) = fence {
        scanner
            .diagnostics
            .push(Diagnostic::error(opened, "this code block is not closed").label("opened here"));
    }
    scanner.close(text.len());
    scanner.outline
}

struct Scanner<'a> {
    outline: Outline,
    /// Whether sections belong to the last block of the outline.
    in_block: bool,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Scanner<'_> {
    fn keyword_line(&mut self, keyword: Name, line_start: usize, line_end: usize) {
        let content = keyword.span.end as usize..line_end;
        let word = keyword.text.as_str();
        if word == PROVENANCE {
            self.close(line_start);
            self.in_block = false;
            self.outline.provenance.push(Section { keyword, content });
        } else if word == INSTRUCTION_SET {
            self.close(line_start);
            self.in_block = false;
            let section = Section { keyword, content };
            self.outline.instruction_set.push(section);
        } else if DEFINITIONS.contains(&word) {
            self.close(line_start);
            self.in_block = true;
            self.outline.blocks.push(Block {
                keyword,
                header: content,
                sections: Vec::new(),
            });
        } else if word.starts_with("__Def") && !SECTIONS.contains(&word) {
            self.close(line_start);
            self.in_block = false;
            self.unknown(&keyword, &DEFINITIONS, "definition");
        } else {
            if !SECTIONS.contains(&word) {
                self.unknown(&keyword, &SECTIONS, "section");
            } else if !self.in_block {
                self.diagnostics.push(
                    Diagnostic::warning(keyword.span, "this section belongs to no definition")
                        .help("sections stand below `__DefGroup`, `__DefOptype` or `__DefOpcode`"),
                );
            }
            self.close(line_start);
            if let Some(block) = self.outline.blocks.last_mut().filter(|_| self.in_block) {
                block.sections.push(Section { keyword, content });
            }
        }
    }

    fn unknown(&mut self, keyword: &Name, known: &[&str], noun: &str) {
        let message = format!("unknown {noun} `{}`", keyword.text);
        self.diagnostics.push(match closest(&keyword.text, known) {
            Some(near) => {
                Diagnostic::error(keyword.span, message).help(format!("did you mean `{near}`?"))
            }
            None => Diagnostic::warning(keyword.span, message).label("its content is skipped"),
        });
    }

    /// Ends the last header or section at `end`.
    fn close(&mut self, end: usize) {
        if !self.in_block {
            return;
        }
        if let Some(block) = self.outline.blocks.last_mut() {
            let range = match block.sections.last_mut() {
                Some(section) => &mut section.content,
                None => &mut block.header,
            };
            range.end = end.max(range.start);
        }
    }
}

fn span(file: u32, start: usize, end: usize) -> Span {
    Span {
        file,
        start: start as u32,
        end: end as u32,
    }
}

/// The word of a line that begins with `__`, if it can be a keyword: followed by a blank or the end, and no Markdown
/// emphasis.
fn keyword(trimmed: &str) -> Option<&str> {
    if !trimmed.starts_with("__") {
        return None;
    }
    let length = trimmed
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(trimmed.len());
    let word = &trimmed[..length];
    let alone = trimmed[length..]
        .chars()
        .next()
        .is_none_or(char::is_whitespace);
    (alone && length > 2 && !word.ends_with('_')).then_some(word)
}

/// The known word that differs in at most two letters.
pub fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|&candidate| (edit_distance(word, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= 2 && distance * 2 < candidate.len())
        .min()
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, delete or replace to get from one word to the other.
fn edit_distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}
