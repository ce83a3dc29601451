//! Lines of `__Syntax` of a set without encodings.
//!
//! A line is `{@{!}Pg} MNEMONIC{.modifier} Rd, …, {&req_6} {&rdN} {&wrN} {?sched} ;`. Blanks mean nothing but the end
//! of the head.

use super::{Line, List, Operand, Operation, Shape, Value};
use crate::ast::{Name, TextLine};
use crate::diagnostic::Diagnostic;
use crate::syntax::{is_word, name_in, parse_modifiers};

/// The guard that every line begins with.
const GUARD: &str = "{@{!}Pg}";
/// The control suffix that every line ends with.
const CONTROL: &str = "{&req_6}{&rdN}{&wrN}{?sched};";

type Parsed<T> = Result<T, Box<Diagnostic>>;

/// A text without blanks: two ways to write the same become equal.
pub fn canonical(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// An operation of its lines of syntax; what is wrong is left out.
pub(super) fn operation(
    name: Name,
    texts: &[TextLine],
    examples: Vec<TextLine>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Operation {
    let mut operation = Operation {
        name,
        lines: Vec::new(),
        lists: Vec::new(),
        examples,
    };
    for text in texts {
        let result = if text.text.starts_with('.') {
            list(text).map(|list| operation.lists.push(list))
        } else {
            line(text).map(|line| operation.lines.push(line))
        };
        diagnostics.extend(result.err().map(|error| *error));
    }
    for line in &operation.lines {
        let suffixes = line.operands.iter().filter_map(|o| o.suffix.as_ref());
        for suffix in suffixes {
            if !operation.lists.iter().any(|list| list.name == *suffix) {
                let message = format!("the values of `.{suffix}` are not listed");
                diagnostics.push(Diagnostic::error(line.span, message));
            }
        }
    }
    operation
}

fn wrong(line: &TextLine, part: &str, message: &str) -> Box<Diagnostic> {
    let span = name_in(line, part).span;
    Box::new(Diagnostic::error(span, message).help(
        "a line is written `{@{!}Pg} MNEMONIC{.modifier} Rd, {-}{|}Ra{|}{.list} {&req_6} {&rdN} {&wrN} {?sched} ;`",
    ))
}

/// `.name = {.A*, .B, <NULL>, INVALID}`. What is `INVALID` cannot be written.
pub(super) fn list(line: &TextLine) -> Parsed<List> {
    let wrong = |part: &str, message: &str| {
        let span = name_in(line, part).span;
        Box::new(
            Diagnostic::error(span, message)
                .help("a list is written `.name = {.VALUE*, .VALUE}`; `*` marks the default"),
        )
    };
    let Some((name, values)) = line.text.split_once('=') else {
        return Err(wrong(&line.text, "a list of values has a `=`"));
    };
    let name = name.trim().trim_start_matches('.');
    if !is_word(name) {
        return Err(wrong(name, "this is no name of a modifier"));
    }
    let values = values.trim();
    let Some(inner) = values.strip_prefix('{').and_then(|v| v.strip_suffix('}')) else {
        return Err(wrong(values, "the values of a modifier stand in braces"));
    };
    let mut list = List {
        name: name.to_owned(),
        values: Vec::new(),
    };
    for value in inner.split(',').map(str::trim) {
        let (word, starred) = match value.strip_suffix('*') {
            Some(word) => (word.trim_end(), true),
            None => (value, false),
        };
        let text = match word {
            "INVALID" => continue,
            "<NULL>" => None,
            _ => match word.strip_prefix('.').filter(|text| is_word(text)) {
                Some(text) => Some(text.to_owned()),
                None => return Err(wrong(value, "a value of a modifier is a dot and a word")),
            },
        };
        if list.values.iter().any(|v| v.text == text) {
            return Err(wrong(value, "this value is listed before"));
        }
        list.values.push(Value { text, starred });
    }
    Ok(list)
}

fn line(text: &TextLine) -> Parsed<Line> {
    let whole = text.text.as_str();
    let Some(rest) = whole.strip_prefix(GUARD) else {
        return Err(wrong(text, whole, "a line begins with its guard"));
    };
    let rest = rest.trim_start();
    let (head, rest) = rest
        .split_once(char::is_whitespace)
        .unwrap_or((rest, &rest[rest.len()..]));
    let end = head.find(['.', '{']).unwrap_or(head.len());
    let mnemonic = &head[..end];
    if !is_word(mnemonic) || mnemonic.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(wrong(text, head, "this is no mnemonic"));
    }
    let control = rest.find("{&").unwrap_or(rest.len());
    let (operands, suffix) = rest.split_at(control);
    if canonical(suffix) != CONTROL {
        return Err(wrong(text, suffix, "a line ends with the control suffix"));
    }
    let operands = operands.split(',').map(|part| operand(text, part.trim()));
    Ok(Line {
        text: whole.to_owned(),
        span: text.span,
        mnemonic: name_in(text, mnemonic),
        modifiers: parse_modifiers(text, &head[end..])?,
        operands: operands.collect::<Parsed<_>>()?,
    })
}

/// `{-}{|}Ra{|}{.iswz}`, `{-}c[#BankU05][#AddrU16]`, `{{-}{|}#Immfp10H1{|}}`, `{!}Pp`.
fn operand(line: &TextLine, part: &str) -> Parsed<Operand> {
    let mut text = canonical(part);
    // The braces of an immediate are its own.
    if let Some(inner) = text
        .strip_prefix("{{")
        .and_then(|text| text.strip_suffix('}'))
    {
        text = format!("{{{inner}");
    }
    let mut rest = text.as_str();
    let mut take = |sign: &str| {
        let stripped = rest.strip_prefix(sign);
        rest = stripped.unwrap_or(rest);
        stripped.is_some()
    };
    let (negate, absolute, not) = (take("{-}"), take("{|}"), take("{!}"));
    let end = rest.find('{').unwrap_or(rest.len());
    let (core, mut rest) = rest.split_at(end);
    if absolute {
        let Some(behind) = rest.strip_prefix("{|}") else {
            return Err(wrong(line, part, "the second `{|}` is missing"));
        };
        rest = behind;
    }
    let suffix = rest
        .strip_prefix("{.")
        .and_then(|rest| rest.strip_suffix('}'))
        .filter(|list| is_word(list));
    let Some((name, shape)) = shape(core).filter(|_| rest.is_empty() || suffix.is_some()) else {
        return Err(wrong(line, part, "this is no operand"));
    };
    Ok(Operand {
        name: name.to_owned(),
        shape,
        negate,
        absolute,
        not,
        suffix: suffix.map(str::to_owned),
    })
}

fn shape(core: &str) -> Option<(&str, Shape)> {
    if let Some(rest) = core.strip_prefix("c[#BankU") {
        let (bank, address) = rest.strip_suffix(']')?.split_once("][#AddrU")?;
        let (bank, address) = (bank.parse().ok()?, address.parse().ok()?);
        return Some(("c", Shape::Constant { bank, address }));
    }
    if let Some(name) = core.strip_prefix('#') {
        let bits = name.strip_prefix("Immfp")?.split_once('H')?.0;
        let bits = bits.parse().ok().filter(|bits| (1..=16).contains(bits))?;
        return Some((name, Shape::Immediate { bits }));
    }
    let shape = match core.chars().next()? {
        'R' => Shape::Register,
        'P' => Shape::Predicate,
        _ => return None,
    };
    is_word(core).then_some((core, shape))
}
