//! Which form and mode of an operation a written instruction is, by the tables alone.
//!
//! The longest mnemonic that matches names the operation. A mode stands for a line of its syntax: its modifiers must
//! take all that are written, in any order; where two could take one (`.S8.U8` of IDP), the order of the syntax
//! decides. Among the forms and modes left, the kinds of the operands choose. What does not fit is explained by the
//! attempt that came furthest.

use super::diagnostic::{Diagnostic, Explanations, Span};
use super::matching::{Candidate, Failure, Match, match_operands};
use super::syntax::Written;
use crate::isa::Form;
use crate::isa::generated::OPTYPES;
use crate::isa::table::{ModeInfo, ModifierInfo, OptypeInfo};
use crate::text::closest;

/// The form and mode of a written instruction and how its operands fill the mode's.
pub(super) fn select(
    written: &Written,
    explanations: &mut Explanations,
) -> Result<(Candidate, Vec<Match>), Vec<Diagnostic>> {
    let (optype, count) = operation(written, explanations)?;
    let modifiers = &written.words[count..];
    let mut candidates = Vec::new();
    for &form in optype.forms {
        for mode in form.info().modes {
            if let Some(assigned) = assign(mode, modifiers, true) {
                candidates.push(candidate(form, mode, &assigned, modifiers));
            }
        }
    }
    if candidates.is_empty() {
        return Err(explain_modifiers(optype, written, modifiers, explanations));
    }
    let mut failure = Failure::default();
    for candidate in candidates {
        if let Some(matches) = match_operands(&candidate, &written.operands, &mut failure) {
            return Ok((candidate, matches));
        }
    }
    Err(vec![failure.explain(optype, written)])
}

/// Longest name that is repeated in a message, in bytes.
const LONGEST_SHOWN: usize = 100;

/// The operation and how many words of the mnemonic are its name.
fn operation(
    written: &Written,
    explanations: &mut Explanations,
) -> Result<(&'static OptypeInfo, usize), Vec<Diagnostic>> {
    let words = &written.words;
    // How many words a mnemonic has, if the written ones begin with it.
    let begins = |optype: &OptypeInfo| {
        let mut written = words.iter().map(|(word, _)| word.as_str());
        let mut name = optype.mnemonic.split('.');
        let all = name.clone().count();
        name.all(|word| written.next() == Some(word)).then_some(all)
    };
    let found = OPTYPES.iter().filter_map(|o| Some((o, begins(o)?)));
    if let Some(longest) = found.max_by_key(|(_, count)| *count) {
        return Ok(longest);
    }
    let (word, span) = &words[0];
    let message = if word.len() > LONGEST_SHOWN {
        "there is no instruction with so long a name".to_string()
    } else {
        format!("there is no instruction `{word}`")
    };
    let mut diagnostic = Diagnostic::new(*span, message);
    if !explanations.take(OPTYPES.len()) {
        return Err(vec![diagnostic]);
    }
    // `BAR` and `IDP` are beginnings of names, not names.
    let longer = OPTYPES.iter().map(|o| o.mnemonic).filter(|m| {
        m.strip_prefix(word.as_str())
            .is_some_and(|rest| rest.starts_with('.'))
    });
    let longer: Vec<String> = longer.map(|m| format!("`{m}`")).collect();
    if !longer.is_empty() {
        diagnostic = diagnostic.expect(longer);
    } else if let Some(known) = closest(word, OPTYPES.iter().map(|o| o.mnemonic)) {
        diagnostic = diagnostic.note(format!("did you mean `{known}`?"));
    }
    Err(vec![diagnostic])
}

/// Which modifier of the mode takes each written one: `(index in the mode, code)`.
///
/// With `complete`, modifiers that must be written are.
fn assign(
    mode: &ModeInfo,
    written: &[(String, Span)],
    complete: bool,
) -> Option<Vec<(usize, u64)>> {
    fn rest(
        mode: &ModeInfo,
        written: &[(String, Span)],
        taken: &mut Vec<(usize, u64)>,
        complete: bool,
    ) -> bool {
        let Some(((text, _), after)) = written.split_first() else {
            return !complete || missing(mode, taken).next().is_none();
        };
        for (i, modifier) in mode.modifiers.iter().enumerate() {
            let Some(code) = code_of(modifier, text) else {
                continue;
            };
            if taken.iter().any(|(t, _)| *t == i) {
                continue;
            }
            taken.push((i, code));
            if rest(mode, after, taken, complete) {
                return true;
            }
            taken.pop();
        }
        false
    }
    let mut taken = Vec::new();
    rest(mode, written, &mut taken, complete).then_some(taken)
}

fn code_of(modifier: &ModifierInfo, text: &str) -> Option<u64> {
    modifier
        .values
        .iter()
        .find(|(t, _)| *t == text)
        .map(|(_, code)| *code)
}

/// Modifiers that must be written and are not.
fn missing<'a>(
    mode: &'a ModeInfo,
    taken: &'a [(usize, u64)],
) -> impl Iterator<Item = &'static ModifierInfo> + use<'a> {
    let modifiers: &'static [ModifierInfo] = mode.modifiers;
    modifiers
        .iter()
        .enumerate()
        .filter(|(i, m)| !m.optional && !taken.iter().any(|(t, _)| t == i))
        .map(|(_, m)| m)
}

fn candidate(
    form: Form,
    mode: &'static ModeInfo,
    assigned: &[(usize, u64)],
    written: &[(String, Span)],
) -> Candidate {
    let info = form.info();
    let mut word = (info.initial & !mode.fixed_mask) | mode.fixed_bits;
    let mut places = Vec::new();
    for (&(index, code), (_, span)) in assigned.iter().zip(written) {
        if let Some(field) = mode.modifiers[index].field {
            word = info.fields[field as usize].set(word, code);
            places.push((field, *span));
        }
    }
    Candidate {
        form,
        mode,
        word,
        places,
    }
}

fn modes(optype: &'static OptypeInfo) -> impl Iterator<Item = &'static ModeInfo> {
    optype.forms.iter().flat_map(|f| f.info().modes)
}

fn texts(modifier: &'static ModifierInfo) -> impl Iterator<Item = String> {
    modifier.values.iter().map(|(text, _)| format!(".{text}"))
}

/// Why no mode takes the modifiers.
fn explain_modifiers(
    optype: &'static OptypeInfo,
    written: &Written,
    modifiers: &[(String, Span)],
    explanations: &mut Explanations,
) -> Vec<Diagnostic> {
    let name = optype.mnemonic;
    let known = || modes(optype).flat_map(|m| m.modifiers);
    let unknown = modifiers
        .iter()
        .filter(|(text, _)| !known().any(|m| code_of(m, text).is_some()));
    let unknown: Vec<Diagnostic> = unknown
        .map(|(text, span)| {
            let mut d = Diagnostic::new(*span, format!("`.{text}` is no modifier of {name}"));
            if !explanations.take(known().count()) {
                return d;
            }
            d = d.expect(known().flat_map(texts));
            if d.expected.is_empty() {
                d = d.note(format!("{name} has no modifiers"));
            } else if let Some(word) =
                closest(text, known().flat_map(|m| m.values.iter().map(|(t, _)| *t)))
            {
                d = d.note(format!("did you mean `.{word}`?"));
            }
            syntax_notes(d, optype)
        })
        .collect();
    if !unknown.is_empty() {
        return unknown;
    }
    let whole = written.words[0]
        .1
        .to(written.words[written.words.len() - 1].1);
    // The mode that lacks least.
    let lacking = modes(optype).filter_map(|mode| {
        let taken = assign(mode, modifiers, false)?;
        let lacking: Vec<_> = missing(mode, &taken).collect();
        Some(lacking)
    });
    if let Some(lacking) = lacking.min_by_key(Vec::len) {
        let one = |m: &'static ModifierInfo| {
            let message = match m.values {
                [(text, _)] => format!("{name} needs the modifier `.{text}` here"),
                _ => format!("{name} needs one more modifier"),
            };
            syntax_notes(Diagnostic::new(whole, message).expect(texts(m)), optype)
        };
        return lacking.into_iter().map(one).collect();
    }
    // Each is known, but not with the others: name the first that cannot follow those before it.
    let together =
        |count: usize| modes(optype).any(|mode| assign(mode, &modifiers[..count], false).is_some());
    let (text, span) = &modifiers[(1..=modifiers.len())
        .find(|n| !together(*n))
        .unwrap_or(modifiers.len())
        - 1];
    let twice = modifiers.iter().filter(|(t, _)| t == text).count() > 1;
    let reason = if twice {
        "is given twice"
    } else {
        "cannot stand together with the modifiers before it"
    };
    vec![syntax_notes(
        Diagnostic::new(*span, format!("`.{text}` {reason}")),
        optype,
    )]
}

pub(super) fn syntax_notes(mut diagnostic: Diagnostic, optype: &OptypeInfo) -> Diagnostic {
    for line in optype.syntax {
        // Without the tokens of the control suffix.
        let line = line.split('$').next().unwrap_or(line);
        diagnostic = diagnostic.note(format!(
            "syntax: {}",
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        ));
    }
    diagnostic
}

impl Failure {
    fn explain(self, optype: &OptypeInfo, written: &Written) -> Diagnostic {
        let name = optype.mnemonic;
        let kinds: Vec<String> = self.expected.iter().flatten().cloned().collect();
        let diagnostic = match written.operands.get(self.at) {
            None => {
                let end = Span {
                    start: written.span.end,
                    end: written.span.end,
                };
                Diagnostic::new(end, format!("{name} needs another operand"))
            }
            Some(operand) if kinds.is_empty() => Diagnostic::new(
                operand.span,
                format!("{name} has no operand {} here", self.at + 1),
            ),
            Some(operand) => Diagnostic::new(
                operand.span,
                format!("operand {} of {name} cannot be this", self.at + 1),
            ),
        };
        let end = self.expected.contains(&None) && !kinds.is_empty();
        let end = end.then(|| "the end of the instruction".to_string());
        syntax_notes(diagnostic.expect(kinds.into_iter().chain(end)), optype)
    }
}
