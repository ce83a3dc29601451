//! From the text of a file to its header and functions.

use super::check;
use super::mark::{kernel_mark, lost_mark, near_mark};
use super::{Header, HeaderLine, SourceComment, SourceFunction, line_number, syntax};
use crate::error::{Error, ErrorList, Place, line_of};
use crate::text::{did_you_mean, line_starts};
use crate::warning::Warning;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::{Function, Inst, Opcode, SourceLoc};
use cranelift_codegen::isa::CallConv;
use cranelift_reader::{Details, ParseOptions, TestFile, parse_test};
use std::str::FromStr;
use std::sync::Arc;

/// Splits the header off. The second result is the text with the header lines blank.
pub(super) fn split_header(text: &str) -> (Header, String) {
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

/// Parses the functions of a text without a header. A function with a mistake is left out, and the mistake goes to
/// `errors`.
pub(super) fn read_body(
    header: &Header,
    body: &str,
    name: &Arc<str>,
    errors: &mut ErrorList,
    warnings: &mut Vec<Warning>,
) -> Vec<SourceFunction> {
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

/// Cranelift's reader, for texts without what it asserts.
fn parse(body: &str, convention: CallConv) -> Result<TestFile<'_>, Error> {
    let options = ParseOptions {
        default_calling_convention: convention,
        ..ParseOptions::default()
    };
    check::text(body)?;
    parse_test(body, options).map_err(|error| {
        let index = error.location.line_number.max(1) - 1;
        let offset = body.lines().nth(index).and_then(atomic_offset);
        let message = offset.unwrap_or_else(|| {
            let remedy = remedy(&error.message);
            error.message + &remedy
        });
        syntax(message, line_number(index))
    })
}

/// What to write in place of an atomic operation with an offset, which the reader takes for the end of the line.
fn atomic_offset(line: &str) -> Option<String> {
    let code = line.split(';').next()?;
    let operation = code
        .split_once('=')
        .map_or(code, |(_, operation)| operation);
    let opcode = operation.split_whitespace().next()?;
    let name = opcode.split('.').next()?;
    if !name.starts_with("atomic_") {
        return None;
    }
    let words = operation.split(|c: char| c.is_whitespace() || c == ',');
    let (address, value) = words.into_iter().find_map(|word| {
        let (value, _) = word.split_once(['+', '-'])?;
        let number = value.strip_prefix('v')?;
        number
            .bytes()
            .all(|digit| digit.is_ascii_digit())
            .then_some((word, value))
    })?;
    let offset = &address[value.len()..];
    Some(format!(
        "`{name}` takes an address without an offset: write `vA = iconst.i64 {}` and `vB = iadd {value}, vA`, \
         then `{opcode} … vB` in place of `{address}`",
        offset.trim_start_matches('+')
    ))
}

/// What to do about a mistake that the reader names and does not explain; may be empty.
fn remedy(message: &str) -> String {
    if message.starts_with("duplicate entity: sig") {
        return "; a signature that stands in a declaration of a function takes the next number: declare this one \
         first, and name it there"
            .to_owned();
    }
    let opcode = message.strip_prefix("Unknown opcode: '");
    let Some(opcode) = opcode.and_then(|rest| rest.strip_suffix('\'')) else {
        return String::new();
    };
    let name = opcode.split('.').next().unwrap_or(opcode);
    // Older versions of Cranelift had these.
    match name.strip_suffix("_imm") {
        Some(general) if Opcode::from_str(general).is_ok() => {
            return format!("; make the constant a value by `iconst`, and use `{general}`");
        }
        _ => {}
    }
    match name {
        "stack_load" | "stack_store" => {
            let access = name.trim_start_matches("stack_");
            format!("; make the address a value by `stack_addr.i64`, and use `{access}`")
        }
        _ => {
            let known: Vec<String> = Opcode::all().iter().map(Opcode::to_string).collect();
            did_you_mean(name, known.iter().map(String::as_str))
        }
    }
}

/// Functions with mistakes that are left out of one text, at most.
const MOST_FAULTS: usize = 50;

/// The text with blank lines in place of the functions that cannot be read, `error` the first mistake; none if the rest
/// cannot be read either.
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
    let mut before: Vec<(u32, &str)> = (file.preamble_comments.iter())
        .map(|comment| (lines.line_of(body, comment.text), comment.text))
        .collect();
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
        let kernel = match before.split_last() {
            Some((&(line, text), earlier)) => {
                let odd = near_mark(text).map(|message| (line, message));
                let lost = earlier.iter().filter_map(|&(line, text)| {
                    let message = lost_mark(text)?;
                    Some((line, message))
                });
                warnings.extend(lost.chain(odd).map(|(line, message)| {
                    let place = Place::of_function(&func).in_file(name).at_line(line);
                    Warning::new(message, place)
                }));
                kernel_mark(text, line).unwrap_or_else(|error| {
                    errors.push(error);
                    None
                })
            }
            None => None,
        };
        // The reader delivers what stands before the next function as the last comments of this one; those before its
        // last instruction are its own.
        let last_line = func
            .layout
            .blocks()
            .flat_map(|block| func.layout.block_insts(block))
            .map(|i| inst_lines[i])
            .max();
        before = (details.comments.iter())
            .filter(|comment| comment.entity == AnyEntity::Function)
            .map(|comment| (lines.line_of(body, comment.text), comment.text))
            .filter(|(line, _)| Some(*line) >= last_line)
            .collect();
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

/// Byte offsets of the line starts, to give slices of the text their line.
struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    fn new(text: &str) -> Self {
        Self {
            starts: line_starts(text),
        }
    }

    /// Line of `part`, a slice of `text`.
    fn line_of(&self, text: &str, part: &str) -> u32 {
        let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        line_number(self.starts.partition_point(|start| *start <= offset).max(1) - 1)
    }
}
