//! `isagen`: checks, compares and prints instruction set descriptions.

use std::collections::BTreeMap;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use isagen::ast::Document;
use isagen::diagnostic::{Diagnostic, has_errors, render};
use isagen::diff::diff;
use isagen::parser::parse;
use isagen::reference::reference;
use isagen::resolve::load_with_warnings;
use isagen::source::SourceMap;
use isagen::unencoded;

/// Reads instruction set descriptions in the notation of the vendor's documents.
///
/// Without a command it prints the whole instruction table as Markdown.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The description to print.
    #[arg(long, value_name = "DIR", default_value = DESCRIPTION)]
    description: PathBuf,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Reports every mistake of the files, taken together as one description.
    Check {
        /// Files, or folders of `.isa` files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Prints the constructors that lowering rules use and the types of their operands, as ISLE declarations.
    Constructors,
    /// Compares what documents declare with a description: each field, operand list, exception, member and syntax line.
    Diff {
        /// The description: a folder of `.isa` files, or a file.
        #[arg(long, value_name = "DIR")]
        against: PathBuf,
        /// Documents, unmodified.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// The description of this workspace.
const DESCRIPTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/isa/description");

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints on standard output. A reader such as `head` that has seen enough changes nothing of what was found.
fn say(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Does what was asked; false if something was found wrong.
fn run(arguments: Arguments) -> Result<bool> {
    match arguments.command {
        None => print(&arguments.description, reference),
        Some(Command::Constructors) => {
            print(&arguments.description, isagen::generate::isle::declarations)
        }
        Some(Command::Check { files }) => check(&files),
        Some(Command::Diff { against, files }) => compare(&against, &files),
    }
}

/// Prints what `text` makes of a description.
fn print(description: &Path, text: fn(&isagen::model::Machine) -> String) -> Result<bool> {
    let mut sources = SourceMap::default();
    read(&mut sources, description)?;
    let (machine, diagnostics) = load_with_warnings(&sources);
    print_diagnostics(&diagnostics, &sources);
    if let Some(machine) = &machine {
        say(&text(machine))?;
    }
    Ok(machine.is_some())
}

/// What is found right must have been something.
const NOTHING_DEFINED: &str = "the files define nothing: no line of them begins with `__Def`";

fn check(files: &[PathBuf]) -> Result<bool> {
    let mut sources = SourceMap::default();
    for file in files {
        read(&mut sources, file)?;
    }
    let (machine, diagnostics) = load_with_warnings(&sources);
    print_diagnostics(&diagnostics, &sources);
    if machine
        .as_ref()
        .is_some_and(|m| m.enums.is_empty() && m.optypes.is_empty())
    {
        bail!(NOTHING_DEFINED);
    }
    let errors = diagnostics.iter().filter(|d| d.is_error()).count();
    let warnings = diagnostics.len() - errors;
    let all = match &machine {
        Some(machine) => format!(
            "{} optypes, {} forms: ",
            machine.optypes.len(),
            machine.forms.len()
        ),
        None => String::new(),
    };
    say(&format!("{all}{errors} errors, {warnings} warnings\n"))?;
    Ok(machine.is_some())
}

fn compare(against: &Path, files: &[PathBuf]) -> Result<bool> {
    let mut sources = SourceMap::default();
    for file in files {
        read(&mut sources, file)?;
    }
    let ours = sources.files().len();
    read(&mut sources, against)?;
    let mut diagnostics = Vec::new();
    let mut documents = parse(&sources, &mut diagnostics);
    let description = documents.split_off(ours);
    let pages = unencoded_pages(&sources, ours, &mut diagnostics);
    let sets = unencoded::load(&description, &mut diagnostics);
    let encoded = |document: &Document| document.instruction_set.is_none();
    let (mut documents, mut description) = (documents, description);
    documents.retain(encoded);
    description.retain(encoded);
    let comparison = diff(&documents, &description);
    let parsed = !has_errors(&diagnostics);
    diagnostics.extend(comparison.differences);
    let mut compared = comparison.definitions;
    let mut lines = Vec::new();
    for (name, pages) in pages {
        let Some(set) = sets.iter().find(|set| set.name.text == name) else {
            bail!("the description has nothing of {name}");
        };
        let found = unencoded::diff::diff(&pages, set);
        compared += found.lines;
        lines.push(format!(
            "{name}: {} lines of syntax, {} lists of values and {} examples compared: {} differences",
            found.lines,
            found.lists,
            found.examples,
            found.differences.len()
        ));
        diagnostics.extend(found.differences);
    }
    print_diagnostics(&diagnostics, &sources);
    if parsed && compared == 0 {
        bail!(NOTHING_DEFINED);
    }
    for line in lines {
        say(&format!("{line}\n"))?;
    }
    if comparison.definitions != 0 || !parsed {
        say(&format!(
            "{} definitions compared, among them {} forms with {} fields: {} differences\n",
            comparison.definitions,
            comparison.forms,
            comparison.fields,
            diagnostics.len()
        ))?;
    }
    Ok(parsed && diagnostics.is_empty())
}

/// The pages among the first `count` files that are about a set without encodings, by its name.
fn unencoded_pages(
    sources: &SourceMap,
    count: usize,
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeMap<String, Vec<unencoded::Operation>> {
    let mut pages: BTreeMap<String, Vec<unencoded::Operation>> = BTreeMap::new();
    for (index, file) in sources.files()[..count].iter().enumerate() {
        let Some(set) = unencoded::document::instruction_set(&file.text) else {
            continue;
        };
        let page = unencoded::document::read(index as u32, &file.text, diagnostics);
        pages.entry(set.to_owned()).or_default().extend(page);
    }
    pages
}

fn read(sources: &mut SourceMap, path: &Path) -> Result<()> {
    sources
        .read(path)
        .with_context(|| format!("cannot read `{}`", path.display()))
}

fn print_diagnostics(diagnostics: &[Diagnostic], sources: &SourceMap) {
    let colour = std::io::stderr().is_terminal();
    for diagnostic in diagnostics {
        eprintln!("{}\n", render(diagnostic, sources, colour));
    }
}
