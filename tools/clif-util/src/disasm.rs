//! `clif-util disasm FILE`: an object, or lines of hexadecimal words.

use crate::{Outcome, input};
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
            (text, bad.iter().map(|b| format!("{name}: {b}")).collect())
        } else {
            let lines = String::from_utf8(bytes)
                .with_context(|| format!("{name} is neither an object nor text"))?;
            words(&name, &lines)
        };
        input::write(Path::new("-"), text.as_bytes())?;
        for error in &errors {
            eprintln!("{error}");
        }
        Ok(if errors.is_empty() {
            Outcome::Success
        } else {
            Outcome::Failure
        })
    }
}

/// One line for each good word; `FILE:LINE: WORD: reason` for each bad one. Empty lines and comments are passed over.
fn words(name: &str, lines: &str) -> (String, Vec<String>) {
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
            Err(reason) => errors.push(format!("{name}:{}: {text}: {reason}", i + 1)),
        }
    }
    (out, errors)
}
