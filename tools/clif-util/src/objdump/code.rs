//! The instructions of functions, with their words and the lines that they come from.

use crate::input;
use cranelift_thisgpu::asm::{ListedFunction, listed_functions};
use cranelift_thisgpu::object::{Line, Object, ObjectFunction};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;

/// The code of a function.
#[derive(Serialize)]
pub struct Function {
    name: String,
    kernel: bool,
    address: u64,
    instructions: Vec<Instruction>,
    /// The label behind the last instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
}

/// An instruction.
#[derive(Serialize)]
struct Instruction {
    /// That of the function and its offset there.
    address: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// 32 hexadecimal digits, most significant first.
    word: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Why the word is no instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The lines that begin here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    source: Vec<SourceLine>,
}

/// A line of the source.
#[derive(Serialize)]
struct SourceLine {
    file: Option<String>,
    line: u32,
    column: u32,
    /// What stands there, where the file is found.
    text: Option<String>,
}

/// The code of all functions, with lines of the source if they are asked for: files are looked for where their names
/// say, and in `folder`.
pub fn of(
    object: &Object,
    addresses: &BTreeMap<String, u64>,
    folder: Option<&Path>,
) -> Vec<Function> {
    let mut sources = folder.map(Sources::new);
    let functions = object.functions.iter().zip(listed_functions(object));
    let function = |(function, listed): (&ObjectFunction, ListedFunction)| {
        let address = addresses.get(&function.name).copied().unwrap_or(0);
        let mut lines = function.lines.iter().peekable();
        let instructions = listed.instructions.into_iter().map(|listed| {
            let begun =
                std::iter::from_fn(|| lines.next_if(|l| l.offset as usize <= listed.offset));
            let source = match &mut sources {
                Some(sources) => begun.map(|line| sources.line(object, line)).collect(),
                None => Vec::new(),
            };
            let (text, error) = match listed.text {
                Ok(text) => (Some(text), None),
                Err(reason) => (None, Some(reason.to_string())),
            };
            Instruction {
                // The addresses of a damaged file may be anything.
                address: address.wrapping_add(listed.offset as u64),
                label: listed.label,
                word: format!("{:032x}", listed.word),
                text,
                error,
                source,
            }
        });
        Function {
            name: function.name.clone(),
            kernel: function.kernel.is_some(),
            address,
            instructions: instructions.collect(),
            end: listed.end,
        }
    };
    functions.map(function).collect()
}

/// The texts of files of the source.
struct Sources<'a> {
    /// Where files are looked for that are not where their names say.
    folder: &'a Path,
    /// By name the lines; none of a file that is not found.
    files: HashMap<String, Option<Vec<String>>>,
}

impl<'a> Sources<'a> {
    fn new(folder: &'a Path) -> Self {
        Sources {
            folder,
            files: HashMap::new(),
        }
    }

    fn line(&mut self, object: &Object, line: &Line) -> SourceLine {
        let location = line.location;
        let file = object.file_name(location.file);
        let lines = file.and_then(|file| self.lines(file));
        let text = lines.and_then(|lines| lines.get((location.line as usize).checked_sub(1)?));
        SourceLine {
            text: text.map(|text| text.trim().to_owned()),
            file: file.map(str::to_owned),
            line: location.line,
            column: location.column,
        }
    }

    fn lines(&mut self, file: &str) -> Option<&Vec<String>> {
        let folder = self.folder;
        let lines = self.files.entry(file.to_owned()).or_insert_with(|| {
            let beside = Path::new(file).file_name().map(|name| folder.join(name));
            let text = text_of(Path::new(file)).or_else(|| text_of(&beside?));
            Some(text?.lines().map(str::to_owned).collect())
        });
        lines.as_ref()
    }
}

/// The text of a file. An object may name anything, devices that never end too: those are no files, and what is too
/// large is no source.
fn text_of(path: &Path) -> Option<String> {
    let is_file = std::fs::metadata(path).is_ok_and(|data| data.is_file());
    let bytes = is_file.then(|| input::bytes(path).ok())??;
    String::from_utf8(bytes).ok()
}

impl Function {
    /// What is wrong with words that are no instructions.
    pub fn errors(&self) -> impl Iterator<Item = String> + '_ {
        self.instructions.iter().filter_map(|instruction| {
            let reason = instruction.error.as_ref()?;
            let offset = instruction.address.wrapping_sub(self.address);
            Some(format!(
                "{}+{offset:#x}: {}: {reason}",
                self.name, instruction.word
            ))
        })
    }

    /// Writes the code, with words beside the instructions if wanted.
    pub fn write(&self, f: &mut fmt::Formatter<'_>, words: bool) -> fmt::Result {
        let kind = if self.kernel { "kernel" } else { "function" };
        writeln!(f, "{:#010x} {kind} {}:", self.address, self.name)?;
        for instruction in &self.instructions {
            let Instruction {
                address,
                label,
                word,
                text,
                error,
                source,
            } = instruction;
            for line in source {
                writeln!(f, "; {line}")?;
            }
            if let Some(label) = label {
                writeln!(f, "{label}:")?;
            }
            write!(f, "  {address:#06x}  ")?;
            if words {
                write!(f, "{word}  ")?;
            }
            match (text, error) {
                (Some(text), _) => writeln!(f, "{text} ;")?,
                (None, Some(reason)) => writeln!(f, "// no instruction: {reason}")?,
                (None, None) => writeln!(f)?,
            }
        }
        if let Some(label) = &self.end {
            writeln!(f, "{label}:")?;
        }
        Ok(())
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.as_deref().unwrap_or("?"), self.line)?;
        if self.column != 0 {
            write!(f, ":{}", self.column)?;
        }
        match &self.text {
            Some(text) => write!(f, ": {text}"),
            None => Ok(()),
        }
    }
}
