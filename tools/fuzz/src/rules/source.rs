//! The rules of `isle/`, read by Cranelift's own parser of ISLE.

use anyhow::{Context, Result};
use cranelift_isle::ast::{Def, Pattern};
use cranelift_isle::lexer::Lexer;
use cranelift_isle::parser::parse;
use std::path::Path;
use thisgpu_filetests::find_files_with;

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its file, below the repository.
    pub file: String,
    /// The line where it begins.
    pub line: usize,
    /// The term that it is a rule of.
    pub term: String,
    /// Its text, with single blanks.
    pub text: String,
}

impl Rule {
    /// All rules below the folder `isle` of a repository, file by file.
    ///
    /// # Errors
    /// A file that cannot be read, or is no ISLE.
    pub fn all(repository: &Path) -> Result<Vec<Self>> {
        let mut rules = Vec::new();
        for path in find_files_with(&repository.join("isle"), "isle")? {
            let name = path.strip_prefix(repository).unwrap_or(&path);
            let name = name.display().to_string();
            let text = std::fs::read_to_string(&path).with_context(|| name.clone())?;
            rules.extend(Self::of_text(&name, &text)?);
        }
        Ok(rules)
    }

    /// A number that is made of its text.
    pub fn number(&self) -> String {
        // FNV-1a, 32 bits.
        let hash = self.text.bytes().fold(0x811c_9dc5u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        format!("{hash:08x}")
    }

    /// The rules of a file.
    ///
    /// # Errors
    /// A text that is no ISLE.
    pub fn of_text(file: &str, text: &str) -> Result<Vec<Self>> {
        let failed = |error: cranelift_isle::error::Error| anyhow::anyhow!("{file}: {error:?}");
        let definitions = parse(Lexer::new(0, text).map_err(failed)?).map_err(failed)?;
        let rules = definitions.into_iter().filter_map(|definition| {
            let Def::Rule(rule) = definition else {
                return None;
            };
            let Pattern::Term { sym, .. } = &rule.pattern else {
                return None;
            };
            // The position is that of what follows the keyword.
            let start = text[..rule.pos.offset].rfind("(rule").unwrap_or(0);
            Some(Self {
                file: file.to_owned(),
                line: text[..start].matches('\n').count() + 1,
                term: sym.0.clone(),
                text: list_at(&text[start..]),
            })
        });
        Ok(rules.collect())
    }
}

/// The list that a text begins with, without comments, in one line.
fn list_at(text: &str) -> String {
    let mut depth = 0;
    let mut list = String::new();
    for line in text.lines() {
        let code = line.split(';').next().unwrap_or_default();
        for letter in code.chars() {
            list.push(letter);
            match letter {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return list.split_whitespace().collect::<Vec<_>>().join(" ");
            }
        }
        list.push(' ');
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_their_places_and_texts() {
        let text = "; a comment\n(decl f (u8) u8)\n(rule 1 (f 0)\n      1) ; (\n\n(rule (f x) x)\n";
        let rules = Rule::of_text("f.isle", text).unwrap();
        let found: Vec<(usize, &str, &str)> = rules
            .iter()
            .map(|rule| (rule.line, rule.term.as_str(), rule.text.as_str()))
            .collect();
        let expected = [(3, "f", "(rule 1 (f 0) 1)"), (6, "f", "(rule (f x) x)")];
        assert_eq!(found, expected);
    }
}
