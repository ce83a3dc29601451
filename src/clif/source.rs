//! Reads a `.clif` file: header lines, functions, kernel marks, run lines, and the line of every instruction.
//!
//! The header (`test …`, `set …`, `target …`, `feature …`) is taken out before `cranelift_reader` sees the text,
//! because that reader knows neither this target nor its settings; the lines stay, blank, so that line numbers hold.
//! Kernels are marked by the last comment before their `function`, if it begins `; kernel`. Instructions get their line
//! as source location, unless the text has source locations of its own, so that every later message and the line table
//! can name lines.

mod check;
mod mark;
mod read;
#[cfg(test)]
mod tests;
mod tokens;

pub use mark::KernelOptions;

use crate::error::{Error, ErrorList, Errors, Place, Problem};
use crate::text::did_you_mean;
use crate::warning::Warning;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::{Function, Inst};
use cranelift_reader::{RunCommand, parse_run_command};
use read::{read_body, split_header};
use std::sync::Arc;

/// A file, read.
#[derive(Debug)]
pub struct SourceFile {
    /// Name as the user gave it.
    pub name: Arc<str>,
    /// The lines before the first function.
    pub header: Header,
    /// The functions in the order of the text.
    pub functions: Vec<SourceFunction>,
    /// Comments before functions that are nearly kernel marks.
    pub warnings: Vec<Warning>,
    /// The text, for messages.
    pub(crate) text: String,
    /// What is wrong with the functions that are left out ([`SourceFile::parse_partly`]).
    pub(crate) faults: ErrorList,
}

/// The header, one entry per line and in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// `test NAME OPTIONS`.
    pub tests: Vec<HeaderLine>,
    /// `set KEY=VALUE…`.
    pub settings: Vec<HeaderLine>,
    /// `target NAME KEY=VALUE…`.
    pub targets: Vec<HeaderLine>,
    /// `feature "NAME"`.
    pub features: Vec<HeaderLine>,
}

/// The words of a header line after the keyword.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderLine {
    /// Line number, from 1.
    pub line: u32,
    /// What follows the keyword, split at blanks.
    pub words: Vec<String>,
}

/// A function with what the text says about it.
#[derive(Debug)]
pub struct SourceFunction {
    /// The function.
    pub func: Function,
    /// Line of the `function` keyword.
    pub line: u32,
    /// What the kernel mark says, if there is one.
    pub kernel: Option<KernelOptions>,
    /// All comments that the reader attaches to the function: those in it, and those after it.
    pub comments: Vec<SourceComment>,
    /// The line of every instruction.
    pub inst_lines: SecondaryMap<Inst, u32>,
}

/// A comment with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceComment {
    /// Line number, from 1.
    pub line: u32,
    /// What it follows.
    pub entity: AnyEntity,
    /// Text with the leading `;`.
    pub text: String,
}

/// A `; run:` or `; print:` line.
#[derive(Debug)]
pub struct RunLine {
    /// Line number, from 1.
    pub line: u32,
    /// What to do. The function that the command names is only informative: the command belongs to the function that
    /// the comment is attached to. A bare `; run` becomes a call without arguments and the comparison `!= 0` as i8: it
    /// passes when the result, of whatever integer type, is not zero.
    pub command: RunCommand,
}

impl SourceFile {
    /// Reads `text`; `name` is only used in messages.
    ///
    /// # Errors
    /// The first syntax error of each function, with its line, and all faulty kernel marks.
    pub fn parse(name: &str, text: &str) -> Result<Self, Errors> {
        let mut file = Self::parse_partly(name, text);
        let faults = std::mem::take(&mut file.faults);
        let errors = faults.finish(());
        errors
            .map(|()| file)
            .map_err(|errors| errors.in_file(&name.into()).with_text(text))
    }

    /// Reads what can be read of `text`. What is wrong with the rest comes with the errors of compiling it.
    pub fn parse_partly(name: &str, text: &str) -> Self {
        // Some editors begin a file with a mark of its byte order.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (header, body) = split_header(text);
        let name: Arc<str> = name.into();
        let mut faults = ErrorList::new();
        let mut warnings = Vec::new();
        Self {
            functions: read_body(&header, &body, &name, &mut faults, &mut warnings),
            name,
            header,
            warnings,
            text: text.to_owned(),
            faults,
        }
    }

    /// Whether a part of the text could not be read.
    pub fn is_partial(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Marks the named functions as kernels, without options where the text has no mark. Names may begin with `%`.
    ///
    /// # Errors
    /// All names that no function has, with the names there are.
    pub fn mark_kernels<S: AsRef<str>>(&mut self, names: &[S]) -> Result<(), Errors> {
        let mut errors = ErrorList::new();
        for name in names {
            let wanted = name.as_ref().trim_start_matches('%');
            let found = self.functions.iter_mut().find(|f| f.name() == wanted);
            match found {
                Some(function) => {
                    function.kernel.get_or_insert_default();
                }
                None => {
                    let names: Vec<String> = self.functions.iter().map(|f| f.name()).collect();
                    let known: Vec<String> = names.iter().map(|name| format!("%{name}")).collect();
                    let known = if known.is_empty() {
                        "none".to_owned()
                    } else {
                        known.join(", ")
                    };
                    let message = format!(
                        "there is no function %{wanted}; the file has {known}{}",
                        did_you_mean(wanted, names.iter().map(String::as_str))
                    );
                    let place = Place::default().in_file(&self.name);
                    errors.push(Error::new(Problem::Kernel(message), place));
                }
            }
        }
        errors.finish(())
    }
}

impl SourceFunction {
    /// Name without the leading `%`; functions that are known by number keep CLIF's spelling `u0:1`.
    pub fn name(&self) -> String {
        let name = self.func.name.to_string();
        name.strip_prefix('%').map(str::to_owned).unwrap_or(name)
    }

    /// The run and print lines attached to this function.
    ///
    /// # Errors
    /// All run lines that do not fit the function's signature, each with its line.
    pub fn run_lines(&self, file: &Arc<str>) -> Result<Vec<RunLine>, Errors> {
        let mut lines = Vec::new();
        let mut errors = ErrorList::new();
        for comment in &self.comments {
            let signature = &self.func.signature;
            let command = check::run_line(&comment.text, signature).and_then(|()| {
                parse_run_command(&comment.text, signature).map_err(|error| error.message)
            });
            let message = match command {
                Ok(None) => continue,
                Ok(Some(command)) => {
                    let line = comment.line;
                    lines.push(RunLine { line, command });
                    continue;
                }
                Err(message) => message,
            };
            let message = format!("{message} in run line: {}", comment.text);
            let place = Place::of_function(&self.func)
                .at_line(comment.line)
                .in_file(file);
            errors.push(Error::new(Problem::Syntax(message), place));
        }
        errors.finish(lines)
    }
}

/// Line number of the line with this index.
fn line_number(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}

/// A syntax error at `line`.
fn syntax(message: impl Into<String>, line: u32) -> Error {
    Error::new(
        Problem::Syntax(message.into()),
        Place::default().at_line(line),
    )
}
