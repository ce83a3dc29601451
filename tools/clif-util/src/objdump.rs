//! `clif-util objdump FILES`: what is in objects: headers, symbols, relocations, resources, and the code beside its
//! words and its source.
//!
//! Headers, symbols and relocations are those of the ELF file as it is ([`raw`]); the rest is what the library's reader
//! makes of it ([`resources`], [`code`]). So a file whose note is damaged still has headers to look at. Every part is
//! data first, which `--json` prints and people get as text.

mod code;
mod raw;
mod resources;

use crate::{Outcome, input, messages};
use anyhow::{Context, Result};
use clap::{ArgAction, Args};
use cranelift_thisgpu::object::Object;
use raw::Raw;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Options of `objdump`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Options {
    /// Objects.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The header of the file and its sections: number, name, type, address, place in the file, size, alignment, flags.
    #[arg(short = 'h', long)]
    headers: bool,
    /// The symbols.
    #[arg(short = 't', long)]
    syms: bool,
    /// What linking fills in.
    #[arg(short = 'r', long)]
    reloc: bool,
    /// What the note says: parameters and needs of kernels, own needs and callees of functions.
    #[arg(long)]
    resources: bool,
    /// The instructions with their words.
    #[arg(short = 'd', long)]
    disassemble: bool,
    /// The instructions below the lines of the source that they come from.
    #[arg(short = 'S', long)]
    source: bool,
    /// With --source, the words beside the instructions.
    #[arg(long, requires = "source")]
    words: bool,
    /// Everything, the words too.
    #[arg(short = 'x', long)]
    all: bool,
    /// One JSON object a file.
    #[arg(long)]
    json: bool,
    /// Print help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// What of an object is printed.
#[derive(Default, Serialize)]
struct Dump {
    file: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    headers: Option<raw::Headers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbols: Option<Vec<raw::Symbol>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relocations: Option<Vec<raw::Relocation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<resources::Function>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Vec<code::Function>>,
    /// Whether words stand beside instructions.
    #[serde(skip)]
    words: bool,
}

impl Options {
    /// Prints what is asked for of each file; a file that is damaged keeps none of the others from being printed.
    pub fn run(mut self) -> Result<Outcome> {
        let nothing = !(self.headers || self.syms || self.reloc || self.resources);
        if self.all || nothing && !self.disassemble && !self.source {
            (self.headers, self.syms, self.reloc, self.resources) = (true, true, true, true);
            (self.disassemble, self.source) = (self.all, true);
        }
        let mut outcome = Outcome::Success;
        for path in &self.files {
            let mut dump = Dump {
                file: input::name(path),
                words: self.disassemble || self.words,
                ..Dump::default()
            };
            // What comes before the damage is printed.
            let filled = input::bytes(path).and_then(|bytes| {
                let filled = self.fill(path, &bytes, &mut dump);
                filled.context(dump.file.clone())
            });
            if self.json {
                if filled.is_ok() {
                    input::print_line(serde_json::to_string(&dump)?)?;
                }
            } else if filled.is_ok() || dump.has_parts() {
                input::write(Path::new("-"), dump.to_string().as_bytes())?;
            }
            if let Err(error) = filled {
                messages::print_error(&error);
                outcome = Outcome::Failure;
                continue;
            }
            let functions = dump.code.iter().flatten();
            let bad = functions.flat_map(code::Function::errors);
            let bad: Vec<String> = bad.map(|bad| format!("{}: {bad}", dump.file)).collect();
            if !bad.is_empty() {
                messages::print_errors(&bad);
                outcome = Outcome::Failure;
            }
        }
        Ok(outcome)
    }

    /// Reads what is asked for.
    fn fill(&self, path: &Path, bytes: &[u8], dump: &mut Dump) -> Result<()> {
        let raw = Raw::parse(bytes)?;
        let headers = raw.headers()?;
        if self.syms {
            dump.symbols = Some(raw.symbols()?);
        }
        if self.reloc {
            dump.relocations = Some(raw.relocations()?);
        }
        let addresses = headers.code_addresses();
        dump.headers = self.headers.then_some(headers);
        let (code, source) = (self.disassemble || self.source, self.source);
        if self.resources || code {
            let object = Object::read(bytes).context("cannot read the object")?;
            dump.resources = self.resources.then(|| resources::of(&object));
            let folder = path.parent().unwrap_or(Path::new(""));
            dump.code = code.then(|| code::of(&object, &addresses, source.then_some(folder)));
        }
        Ok(())
    }
}

impl Dump {
    /// Whether there is more than the file's name.
    fn has_parts(&self) -> bool {
        let parts = [
            self.headers.is_some(),
            self.symbols.is_some(),
            self.relocations.is_some(),
        ];
        parts.contains(&true) || self.resources.is_some() || self.code.is_some()
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:", self.file)?;
        if let Some(headers) = &self.headers {
            write!(f, "{headers}")?;
        }
        if let Some(symbols) = &self.symbols {
            writeln!(f, "\nsymbols:")?;
            symbols.iter().try_for_each(|s| writeln!(f, "  {s}"))?;
        }
        if let Some(relocations) = &self.relocations {
            writeln!(f, "\nrelocations:")?;
            relocations.iter().try_for_each(|r| writeln!(f, "  {r}"))?;
        }
        if let Some(resources) = &self.resources {
            writeln!(f, "\nresources:")?;
            resources.iter().try_for_each(|r| write!(f, "{r}"))?;
        }
        for function in self.code.iter().flatten() {
            writeln!(f)?;
            function.write(f, self.words)?;
        }
        Ok(())
    }
}
