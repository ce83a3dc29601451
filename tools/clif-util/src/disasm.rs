//! `clif-util disasm FILE`: an object, or lines of hexadecimal words.

use crate::{Outcome, input, messages};
use anyhow::{Context, Result};
use clap::Args;
use cranelift_thisgpu::asm::listing;
use cranelift_thisgpu::object::Object;
use cranelift_thisgpu::unstable::isa::decode;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Options of `disasm`.
#[derive(Args)]
pub struct Options {
    /// An object, or text with one word of 32 hexadecimal digits a line, most significant first.
    file: PathBuf,
}

impl Options {
    /// Prints the text of the file.
    pub fn run(self) -> Result<Outcome> {
        let name = input::name(&self.file);
        let bytes = input::bytes(&self.file)?;
        let (text, errors) = if Object::is_elf(&bytes) {
            let object = Object::read(&bytes).with_context(|| name.clone())?;
            let (text, bad) = listing(&object);
            let bad = bad.iter().map(|b| Bad {
                text: format!("{name}: {b}"),
                is_word: true,
            });
            (text, bad.collect())
        } else {
            let lines = input::text_of(&name, bytes)
                .with_context(|| format!("{name} is neither an object nor lines of words"))?;
            words(&name, &lines)
        };
        input::write(Path::new("-"), text.as_bytes())?;
        if errors.is_empty() {
            return Ok(Outcome::Success);
        }
        let of_words = errors.iter().any(|error| error.is_word);
        let lines: Vec<String> = errors.into_iter().map(|error| error.text).collect();
        if of_words || !text.is_empty() {
            // Each bad word is named, however many they are: programs read this.
            for line in lines {
                messages::say(messages::shortened(&line) + "\n");
            }
        } else {
            messages::print_lines(
                &lines,
                "lines that are no words; disasm reads objects and hexadecimal words",
            );
        }
        Ok(Outcome::Failure)
    }
}

/// What does not disassemble.
struct Bad {
    /// Place, word and reason.
    text: String,
    /// Whether it has the digits of a word, or stands in an object.
    is_word: bool,
}

/// One line for each good word; `FILE:LINE: WORD: reason` for each bad one. Empty lines and comments are passed over.
fn words(name: &str, lines: &str) -> (String, Vec<Bad>) {
    let mut out = String::new();
    let mut errors = Vec::new();
    for (i, line) in lines.lines().enumerate() {
        let text = line
            .split(['#', ';'])
            .next()
            .unwrap_or_default()
            .split("//")
            .next()
            .unwrap_or_default()
            .trim();
        if text.is_empty() {
            continue;
        }
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let legal = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let decoded = match u128::from_str_radix(digits, 16) {
            Ok(word) if legal => decode(word).map_err(|e| e.to_string()),
            _ => Err("a word has 32 hexadecimal digits".to_string()),
        };
        match decoded {
            Ok((inst, control)) => {
                let _ = writeln!(out, "{}", inst.assembly(control));
            }
            Err(reason) => errors.push(Bad {
                text: format!("{name}:{}: {text}: {reason}", i + 1),
                is_word: legal,
            }),
        }
    }
    (out, errors)
}
