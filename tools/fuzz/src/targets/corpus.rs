//! Inputs to begin with, made of the test files, and the words that engines may insert.

use super::binaries::{contents_of_an_entry, joined};
use super::{Input, Target};
use crate::random::Random;
use anyhow::{Context, Result};
use cranelift_codegen::ir::Opcode;
use cranelift_thisgpu::asm;
use cranelift_thisgpu::compile::{Compiler, SourceFile};
use cranelift_thisgpu::intrinsics::{PREFIX, TABLE};
use cranelift_thisgpu::object::Object;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::unstable::isa::generated::{ENUMS, OPTYPES};
use std::collections::BTreeSet;
use std::path::Path;
use thisgpu_filetests::find_files;

/// Bytes of an input at most (*assumed*: what is longer makes engines slow).
const MOST_BYTES: usize = 4096;
/// Inputs of a target at most, so that the corpora of all stay within two megabytes.
const MOST_INPUTS: usize = 120;
/// Bytes that decide about a function or a kernel.
const CHOICES: usize = 512;

/// The inputs of a target, made of the test files of a folder.
///
/// # Errors
/// When a file cannot be read.
pub fn inputs(target: &Target, folder: &Path) -> Result<Vec<Vec<u8>>> {
    let inputs = match target.input {
        Input::Entry => vec![contents_of_an_entry()],
        Input::Choices => (0..16).map(choices).collect(),
        Input::Clif => texts(folder)?,
        Input::Assembly => of_objects(folder, |object| asm::listing(object).0.into_bytes())?,
        Input::Words => of_objects(folder, words)?,
        Input::Object => of_objects(folder, |object| object.write().unwrap_or_default())?,
        Input::Objects => {
            let objects = of_objects(folder, |object| object.write().unwrap_or_default())?;
            let pairs = objects.windows(2).map(|pair| joined(&pair[0], &pair[1]));
            pairs.filter(|pair| pair.len() <= 2 * MOST_BYTES).collect()
        }
    };
    Ok(thinned(inputs))
}

/// Every so manieth of inputs that are not too many, the same ones each time.
fn thinned(inputs: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let step = inputs.len().div_ceil(MOST_INPUTS).max(1);
    inputs.into_iter().step_by(step).collect()
}

/// Choices that a seed makes.
fn choices(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..CHOICES).map(|_| random.bits() as u8).collect()
}

/// The files that are short, without the comments of their expectations.
fn texts(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let mut texts = Vec::new();
    for path in find_files(folder)? {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let kept = text
            .lines()
            .filter(|line| !line.starts_with("; ") || is_read(line));
        let text = kept.collect::<Vec<_>>().join("\n") + "\n";
        if text.len() <= MOST_BYTES {
            texts.push(text.into_bytes());
        }
    }
    Ok(texts)
}

/// Whether a comment says something to the library.
fn is_read(line: &str) -> bool {
    ["; kernel", "; run", "; print"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// What `make` makes of the objects that the files become.
fn of_objects(folder: &Path, make: impl Fn(&Object) -> Vec<u8>) -> Result<Vec<Vec<u8>>> {
    let mut made = Vec::new();
    for text in thinned(texts(folder)?) {
        let text = String::from_utf8_lossy(&text);
        let file = SourceFile::parse_partly("seed.clif", &text);
        let Ok(code) = Compiler::new(Options::default()).file(&file) else {
            continue;
        };
        let bytes = make(code.object());
        if !bytes.is_empty() && bytes.len() <= MOST_BYTES {
            made.push(bytes);
        }
    }
    Ok(made)
}

fn words(object: &Object) -> Vec<u8> {
    let words = object.functions.iter().flat_map(|function| &function.words);
    words.flat_map(|word| word.to_le_bytes()).collect()
}

/// The words of a target's language as a dictionary of libFuzzer and AFL++; none where inputs have no words.
pub fn dictionary(target: &Target) -> Option<String> {
    let words: BTreeSet<String> = match target.input {
        Input::Clif => {
            let opcodes = Opcode::all().iter().map(ToString::to_string);
            let names = TABLE.iter().map(|row| format!("%{PREFIX}{}", row.name));
            opcodes.chain(names).collect()
        }
        Input::Assembly => {
            let mnemonics = OPTYPES.iter().map(|optype| optype.mnemonic.to_owned());
            let values = ENUMS.iter().flat_map(|of| of.members);
            mnemonics
                .chain(values.map(|(name, _)| format!(".{name}")))
                .collect()
        }
        _ => return None,
    };
    Some(words.iter().map(|word| format!("\"{word}\"\n")).collect())
}
