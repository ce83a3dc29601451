//! Reads a `.clif` file: header lines, functions, kernel marks, run lines, and the line of every instruction.
//!
//! The header (`test …`, `set …`, `target …`, `feature …`) is taken out before `cranelift_reader` sees the text, because
//! that reader knows neither this target nor its settings; the lines stay, blank, so that line numbers hold. Kernels are
//! marked by the last comment before their `function`, if it begins `; kernel`. Instructions get their line as source
//! location, unless the text has source locations of its own, so that every later message and the line table can name
//! lines.

use super::guard;
use crate::compile::Warning;
use crate::error::{Error, ErrorList, Errors, Place, Problem, line_of};
use crate::properties::DeviceProperties;
use crate::text::{closest, did_you_mean};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::{Function, Inst, SourceLoc};
use cranelift_codegen::isa::CallConv;
use cranelift_reader::{
    Details, ParseOptions, RunCommand, TestFile, parse_run_command, parse_test,
};
use std::sync::Arc;

/// The word of a kernel mark.
const KERNEL: &str = "kernel";

/// Largest number of a value, block or other entity that is accepted. The reader makes all entities up to the number, so
/// a single `v4000000000` would fill the memory.
const MAX_ENTITY_NUMBER: u32 = 1 << 22;

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

/// Options of a `; kernel` mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelOptions {
    /// Bytes of static shared memory (`shared=BYTES`).
    pub shared_bytes: u32,
    /// Threads of a block, at most (`max_threads=N`): a launch of more is refused, and registers are given out so that a block of so many fits.
    pub max_threads: Option<u32>,
    /// Blocks that are to be resident together in a multiprocessor (`min_blocks=N`): registers are given out so that they fit.
    pub min_blocks: Option<u32>,
}

impl KernelOptions {
    /// The registers that a thread may have by the bounds; none without bounds.
    ///
    /// # Errors
    /// Why the bounds cannot be kept.
    pub fn register_limit(&self) -> Result<Option<u32>, String> {
        DeviceProperties::ASSIGNED.register_limit(
            self.max_threads,
            self.min_blocks,
            self.shared_bytes,
        )
    }
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
            let message =
                match guard::catch(|| parse_run_command(&comment.text, &self.func.signature)) {
                    Some(Ok(None)) => continue,
                    Some(Ok(Some(command))) => {
                        lines.push(RunLine {
                            line: comment.line,
                            command,
                        });
                        continue;
                    }
                    Some(Err(error)) => error.message,
                    None => "a value does not fit its type".to_owned(),
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

/// Splits the header off. The second result is the text with the header lines blank.
fn split_header(text: &str) -> (Header, String) {
    let mut header = Header::default();
    let mut body = String::with_capacity(text.len());
    let mut in_header = true;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let code = line.split(';').next().unwrap_or_default();
        let mut words = code.split_whitespace();
        let section = match words.next() {
            None => None,
            Some(_) if !in_header => None,
            Some("test") => Some(&mut header.tests),
            Some("set") => Some(&mut header.settings),
            Some("target") => Some(&mut header.targets),
            Some("feature") => Some(&mut header.features),
            Some(_) => {
                in_header = false;
                None
            }
        };
        match section {
            Some(section) => {
                section.push(HeaderLine {
                    line: line_number(index),
                    words: words.map(str::to_owned).collect(),
                });
                // A comment after a header line stays, at its column: it may be the mark of the first kernel.
                body.extend(
                    code.chars()
                        .map(|c| if c.is_whitespace() { c } else { ' ' }),
                );
                body.push_str(&line[code.len()..]);
            }
            None => body.push_str(line),
        }
    }
    (header, body)
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

/// Parses the functions of a text without a header. A function with a mistake is left out, and the mistake goes to `errors`.
fn read_body(
    header: &Header,
    body: &str,
    name: &Arc<str>,
    errors: &mut ErrorList,
    warnings: &mut Vec<Warning>,
) -> Vec<SourceFunction> {
    if let Err(found) = check_entity_numbers(body) {
        errors.extend(found);
        return Vec::new();
    }
    let convention = default_convention(header);
    let repaired;
    let (file, body) = match parse(body, convention) {
        Ok(file) => (file, body),
        Err(error) => {
            let Some(text) = without_faults(body, error, convention, errors) else {
                return Vec::new();
            };
            repaired = text;
            match parse(&repaired, convention) {
                Ok(file) => (file, repaired.as_str()),
                Err(error) => {
                    errors.push(error);
                    return Vec::new();
                }
            }
        }
    };
    functions(file, body, name, errors, warnings)
}

/// The calling convention of functions that name none.
fn default_convention(header: &Header) -> CallConv {
    // Upstream's reader takes the host's convention where a file is to be run.
    let runs = header
        .tests
        .iter()
        .any(|test| test.words.first().is_some_and(|word| word == "run"));
    if runs {
        CallConv::SystemV
    } else {
        CallConv::Fast
    }
}

/// Cranelift's reader.
fn parse(body: &str, convention: CallConv) -> Result<TestFile<'_>, Error> {
    let options = ParseOptions {
        default_calling_convention: convention,
        ..ParseOptions::default()
    };
    guard::catch(|| parse_test(body, options))
        .ok_or_else(|| {
            syntax(
                "the CLIF reader gave up on this text; check the types of the instructions",
                1,
            )
        })?
        .map_err(|error| {
            let line = line_number(error.location.line_number.max(1) - 1);
            syntax(error.message, line)
        })
}

/// Functions with mistakes that are left out of one text, at most.
const MOST_FAULTS: usize = 50;

/// The text with blank lines in place of the functions that cannot be read, `error` the first mistake; none if the rest cannot be read
/// either.
fn without_faults(
    body: &str,
    error: Error,
    convention: CallConv,
    errors: &mut ErrorList,
) -> Option<String> {
    let mut lines: Vec<&str> = body.split('\n').collect();
    let mut error = error;
    for _ in 0..MOST_FAULTS {
        let line = error.place.line;
        errors.push(error);
        let range = function_around(&lines, line?.saturating_sub(1) as usize)?;
        lines[range].fill("");
        let text = lines.join("\n");
        match parse(&text, convention) {
            Ok(_) => return Some(text),
            Err(next) => error = next,
        }
    }
    None
}

/// The lines of the function that `line` is in, with the comments before it.
fn function_around(lines: &[&str], line: usize) -> Option<std::ops::Range<usize>> {
    let begins = |line: &&str| line.split_whitespace().next() == Some("function");
    let is_comment = |line: &&str| line.trim_start().starts_with(';');
    let head = lines.get(..=line)?.iter().rposition(begins)?;
    let comments = lines[..head]
        .iter()
        .rev()
        .take_while(|line| is_comment(line))
        .count();
    let rest = &lines[head + 1..];
    let next = rest.iter().position(begins).unwrap_or(rest.len());
    let end = rest[..next]
        .iter()
        .rposition(|line| line.trim_start().starts_with('}'))
        .map_or(next, |end| end + 1);
    // A mistake behind the end of a function belongs to nothing that could be left out.
    (line <= head + end).then_some(head - comments..head + 1 + end)
}

/// What the reader has read, with lines and kernel marks.
fn functions(
    file: TestFile<'_>,
    body: &str,
    name: &Arc<str>,
    errors: &mut ErrorList,
    warnings: &mut Vec<Warning>,
) -> Vec<SourceFunction> {
    let lines = LineIndex::new(body);
    let mut mark = file
        .preamble_comments
        .last()
        .map(|comment| (lines.line_of(body, comment.text), comment.text));
    let mut functions = Vec::with_capacity(file.functions.len());
    for (mut func, details) in file.functions {
        let inst_lines = inst_lines(&func, &details);
        locate_insts(&mut func, &inst_lines);
        let comments: Vec<SourceComment> = details
            .comments
            .iter()
            .map(|comment| SourceComment {
                line: lines.line_of(body, comment.text),
                entity: comment.entity,
                text: comment.text.to_owned(),
            })
            .collect();
        if let Some((line, text)) = mark
            && let Some(message) = near_mark(text)
        {
            let place = Place::of_function(&func).in_file(name).at_line(line);
            warnings.push(Warning::new(message, place));
        }
        let kernel = match mark {
            Some((line, text)) => kernel_mark(text, line).unwrap_or_else(|error| {
                errors.push(error);
                None
            }),
            None => None,
        };
        // The reader delivers what stands before the next function as the last comments of this one; those before its
        // first instruction are its own.
        let last_line = func
            .layout
            .blocks()
            .flat_map(|block| func.layout.block_insts(block))
            .map(|i| inst_lines[i])
            .max();
        mark = details
            .comments
            .last()
            .map(|comment| (lines.line_of(body, comment.text), comment))
            .filter(|(line, comment)| {
                comment.entity == AnyEntity::Function && Some(*line) >= last_line
            })
            .map(|(line, comment)| (line, comment.text));
        let line = line_number(details.location.line_number.max(1) - 1);
        functions.push(SourceFunction {
            func,
            line,
            kernel,
            comments,
            inst_lines,
        });
    }
    functions
}

/// The line of every instruction.
fn inst_lines(func: &Function, details: &Details) -> SecondaryMap<Inst, u32> {
    let mut lines = SecondaryMap::with_capacity(func.dfg.num_insts());
    for inst in func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
    {
        if let Some(location) = details.map.location(inst.into()) {
            lines[inst] = u32::try_from(location.line_number).unwrap_or(u32::MAX);
        }
    }
    lines
}

/// Sets the source locations to the line numbers, if the text gives none.
fn locate_insts(func: &mut Function, inst_lines: &SecondaryMap<Inst, u32>) {
    let insts: Vec<Inst> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .collect();
    if insts
        .iter()
        .all(|inst| line_of(func.srcloc(*inst)).is_none())
    {
        for inst in insts {
            func.set_srcloc(inst, SourceLoc::new(inst_lines[inst]));
        }
    }
}

/// What is odd about a comment before a function that looks like a kernel mark.
fn near_mark(text: &str) -> Option<String> {
    let comment = text.trim_start_matches(';');
    let first = comment.split_whitespace().next()?;
    if first == KERNEL {
        let exact = text.starts_with("; ");
        return (!exact).then(|| format!("this is read as a kernel mark; write `; {KERNEL}`"));
    }
    let word = first.trim_end_matches(|c: char| c.is_ascii_punctuation());
    let near = word.eq_ignore_ascii_case("kernels") || closest(word, [KERNEL]).is_some();
    near.then(|| {
        format!(
            "`; {first}` is no kernel mark, so this is a device function; a kernel is marked by `; {KERNEL}`"
        )
    })
}

/// Reads `; kernel KEY=VALUE…`; `None` if the comment is no kernel mark.
fn kernel_mark(text: &str, line: u32) -> Result<Option<KernelOptions>, Error> {
    let mut words = text.trim_start_matches(';').split_whitespace();
    if words.next() != Some(KERNEL) {
        return Ok(None);
    }
    let mut options = KernelOptions::default();
    for word in words {
        match word.split_once('=') {
            Some(("shared", bytes)) => {
                options.shared_bytes = bytes.parse().map_err(|_| {
                    syntax(
                        format!("'{bytes}' is no number of bytes in '; kernel shared=BYTES'"),
                        line,
                    )
                })?;
            }
            Some((key @ ("max_threads" | "min_blocks"), number)) => {
                let number = number.parse().map_err(|_| {
                    let message = format!("'{number}' is no number in '; kernel {key}=N'");
                    syntax(message, line)
                })?;
                if key == "max_threads" {
                    options.max_threads = Some(number);
                } else {
                    options.min_blocks = Some(number);
                }
            }
            _ => {
                let message = format!(
                    "unknown kernel option '{word}'; there are shared=BYTES, max_threads=N and min_blocks=N"
                );
                return Err(syntax(message, line));
            }
        }
    }
    Ok(Some(options))
}

/// Refuses entity numbers that would make the reader fill the memory.
fn check_entity_numbers(body: &str) -> Result<(), Errors> {
    const ENTITIES: [&str; 13] = [
        "v",
        "block",
        "ss",
        "dss",
        "gv",
        "mt",
        "const",
        "fn",
        "sig",
        "dt",
        "ex",
        "region",
        "userextname",
    ];
    let mut errors = ErrorList::new();
    for (index, line) in body.lines().enumerate() {
        let code = line.split(';').next().unwrap_or_default();
        for word in code.split(|c: char| !c.is_ascii_alphanumeric()) {
            let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
            let digits = &word[name.len()..];
            let large = digits.len() >= 7
                && digits
                    .parse::<u32>()
                    .map_or(true, |number| number > MAX_ENTITY_NUMBER);
            if large && ENTITIES.contains(&name) {
                errors.push(syntax(
                    format!("{word}: numbers up to {MAX_ENTITY_NUMBER} are accepted"),
                    line_number(index),
                ));
            }
        }
    }
    errors.finish(())
}

/// Byte offsets of the line starts, to give slices of the text their line.
struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    fn new(text: &str) -> Self {
        Self {
            starts: std::iter::once(0)
                .chain(text.match_indices('\n').map(|(at, _)| at + 1))
                .collect(),
        }
    }

    /// Line of `part`, a slice of `text`.
    fn line_of(&self, text: &str, part: &str) -> u32 {
        let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        line_number(self.starts.partition_point(|start| *start <= offset).max(1) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "\
test run
test compile precise-output ; kept
set opt_level=speed
target thisgpu fancy=1

; a remark
; kernel shared=256
function %k(i64) {
block0(v0: i64):
    ; not a mark: kernel
    return ; kernel
}
; run: %k(1)

function %f(i32) -> i32 {
; kernel inside is not a mark of the next
block0(v0: i32):
    v1 = iadd v0, v0
    return v1
}
; run: %f(2) == 4
; print: %f(3)
; kernel
function %g() {
block0:
    return
}
";

    #[test]
    fn a_file_is_read_with_its_lines() {
        let file = SourceFile::parse("two.clif", TWO).unwrap();
        assert_eq!(
            file.header.tests[1],
            HeaderLine {
                line: 2,
                words: vec!["compile".into(), "precise-output".into()]
            }
        );
        assert_eq!(file.header.settings[0].words, ["opt_level=speed"]);
        assert_eq!(
            file.header.targets[0],
            HeaderLine {
                line: 4,
                words: vec!["thisgpu".into(), "fancy=1".into()]
            }
        );
        let [k, f, g] = &file.functions[..] else {
            panic!("three functions")
        };
        assert_eq!(
            (k.name(), k.line, k.kernel),
            (
                "k".into(),
                8,
                Some(KernelOptions {
                    shared_bytes: 256,
                    ..KernelOptions::default()
                })
            )
        );
        assert_eq!((f.name(), f.line, f.kernel), ("f".into(), 15, None));
        assert_eq!((g.line, g.kernel), (24, Some(KernelOptions::default())));
        let insts: Vec<Inst> = f
            .func
            .layout
            .blocks()
            .flat_map(|b| f.func.layout.block_insts(b))
            .collect();
        assert_eq!(
            insts.iter().map(|i| f.inst_lines[*i]).collect::<Vec<_>>(),
            [18, 19]
        );
        assert_eq!(line_of(f.func.srcloc(insts[0])), Some(18));
        let lines = f.run_lines(&file.name).unwrap();
        assert_eq!(lines.iter().map(|l| l.line).collect::<Vec<_>>(), [21, 22]);
        assert!(matches!(lines[0].command, RunCommand::Run(..)));
        assert!(matches!(lines[1].command, RunCommand::Print(..)));
        assert_eq!(f.func.signature.call_conv, CallConv::SystemV);
    }

    #[test]
    fn a_comment_in_front_of_the_first_block_marks_no_other_function() {
        let text = "function %f() {\n; kernel\nblock0:\n    return\n}\nfunction %g() {\nblock0:\n    return\n}\n";
        let file = SourceFile::parse("x", text).unwrap();
        assert!(file.functions.iter().all(|f| f.kernel.is_none()));
    }

    #[test]
    fn kernels_are_marked_by_name() {
        let mut file = SourceFile::parse("two.clif", TWO).unwrap();
        file.mark_kernels(&["%f", "k"]).unwrap();
        assert_eq!(file.functions[1].kernel, Some(KernelOptions::default()));
        assert_eq!(
            file.functions[0].kernel,
            Some(KernelOptions {
                shared_bytes: 256,
                ..KernelOptions::default()
            }),
            "options stay"
        );
        let errors = file.mark_kernels(&["h"]).unwrap_err();
        assert_eq!(
            errors.to_string(),
            "two.clif: kernel: there is no function %h; the file has %k, %f, %g"
        );
    }

    #[test]
    fn bad_text_is_an_error_with_its_line() {
        for (text, expected) in [
            (
                "function %f() {\nblock0:\n    v0 = iadd v1, v2\n    return\n}\n",
                "x.clif:3: ",
            ),
            (
                "function %f() {\nblock0:\n    v0 = bogus.i32 1\n    return\n}\n",
                "x.clif:3: ",
            ),
            ("test compile\nfunction %f(\n", "x.clif:2: "),
            (
                "; kernel shared=lots\nfunction %f() {\nblock0:\n    return\n}\n",
                "x.clif:1: 'lots' is no number of bytes",
            ),
            (
                "; kernel min_blocks=-1\nfunction %f() {\nblock0:\n    return\n}\n",
                "x.clif:1: '-1' is no number in '; kernel min_blocks=N'",
            ),
            (
                "; kernel fast\nfunction %f() {\nblock0:\n    return\n}\n",
                "x.clif:1: unknown kernel option 'fast'",
            ),
            (
                "function %f() {\nblock0:\n    v4000000000 = iconst.i32 1\n    return\n}\n",
                "x.clif:3: v4000000000",
            ),
            (
                "function %f() {\nblock99999999:\n    return\n}\n",
                "x.clif:2: block99999999",
            ),
        ] {
            let errors = SourceFile::parse("x.clif", text).unwrap_err().to_string();
            assert!(errors.starts_with(expected), "{text}gives {errors}");
        }
    }

    #[test]
    fn a_run_line_that_does_not_fit_is_an_error() {
        let text = "function %f(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n; run: %f(1, 2) == 1\n; run\n";
        let file = SourceFile::parse("x.clif", text).unwrap();
        let errors = file.functions[0]
            .run_lines(&file.name)
            .unwrap_err()
            .to_string();
        assert_eq!(errors.lines().count(), 2, "{errors}");
        assert!(
            errors.starts_with("x.clif:5: ") && errors.contains("\nx.clif:6: "),
            "{errors}"
        );
    }

    #[test]
    fn source_locations_of_the_text_are_kept() {
        let text = "function %f() {\nblock0:\n    @0123 return\n}\n";
        let file = SourceFile::parse("x.clif", text).unwrap();
        let func = &file.functions[0].func;
        let inst = func
            .layout
            .last_inst(func.layout.entry_block().unwrap())
            .unwrap();
        assert_eq!(line_of(func.srcloc(inst)), Some(0x123));
        assert_eq!(file.functions[0].inst_lines[inst], 3);
    }

    #[test]
    fn near_misses_of_the_kernel_mark_warn() {
        let read = |comment: &str| {
            let text = format!("{comment}\nfunction %f() {{\nblock0:\n    return\n}}\n");
            SourceFile::parse("x.clif", &text).unwrap()
        };
        for (comment, kernel) in [
            (";kernel", true),
            ("; Kernel", false),
            ("; kernels", false),
            ("; kernel: x", false),
            ("; kernal shared=8", false),
        ] {
            let file = read(comment);
            assert_eq!(file.functions[0].kernel.is_some(), kernel, "{comment}");
            let warnings: Vec<String> = file.warnings.iter().map(Warning::to_string).collect();
            assert!(
                matches!(&warnings[..], [w] if w.starts_with("x.clif:1: ") && w.contains("`; kernel`")),
                "{comment}: {warnings:?}"
            );
        }
        for comment in [
            "; kernel",
            "; kernel shared=8",
            "; internal",
            "; adds; kernel",
            "",
        ] {
            assert_eq!(read(comment).warnings, [], "{comment}");
        }
    }
}
