//! Compares what two sets of documents declare, definition by definition.
//!
//! Works on declarations rather than on a resolved machine, because the vendor's documents alone leave types and
//! numbers open. Each definition becomes a list of facts (a field, an operand list, a syntax line, …), each with a key
//! and one canonical way of writing it; facts are then compared by key, both ways. What is inherited is compared where
//! it is declared.

use std::collections::HashSet;

use crate::ast::{Construct, Document, FieldDeclaration, Name, TypeDefinition, ValueDeclaration};
use crate::definitions::Definitions;
use crate::diagnostic::Diagnostic;
use crate::lexer::parse_number;
use crate::model::Provenance;
use crate::source::Span;

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Each with the place in the documents or, for what only the description has, there; the related place is on the
    /// other side.
    pub differences: Vec<Diagnostic>,
    /// Types, groups, optypes and forms that both sides have.
    pub definitions: usize,
    /// Forms among them.
    pub forms: usize,
    /// Their fields, inherited ones included.
    pub fields: usize,
}

/// One thing a definition says.
struct Fact {
    /// Such as "field `rb`".
    key: String,
    /// One way of writing it.
    text: String,
    span: Span,
}

/// A definition reduced to facts.
struct Entry<'a> {
    noun: &'static str,
    name: &'a Name,
    facts: Vec<Fact>,
}

/// Compares `documents` with `against`, one [`Document`] a file.
///
/// Of `against` only documented definitions count, and only of files that define something the documents define too: a
/// single document can be compared with the whole description.
pub fn diff(documents: &[Document], against: &[Document]) -> Comparison {
    let mut comparison = Comparison::default();
    let ours: Vec<Entry> = documents.iter().flat_map(entries).collect();
    let known: HashSet<_> = ours.iter().map(key).collect();
    let mut theirs: Vec<Entry> = Vec::new();
    for document in against {
        let entries = entries(document);
        if entries.iter().any(|entry| known.contains(&key(entry))) {
            theirs.extend(entries);
        }
    }
    for entry in &ours {
        match theirs.iter().find(|other| key(other) == key(entry)) {
            Some(other) => {
                comparison.definitions += 1;
                facts(entry, other, &mut comparison.differences);
            }
            None => comparison.differences.push(
                Diagnostic::error(
                    entry.name.span,
                    format!(
                        "{} `{}` is not in the description",
                        entry.noun, entry.name.text
                    ),
                )
                .label("only here"),
            ),
        }
    }
    for entry in &theirs {
        if !known.contains(&key(entry)) {
            comparison.differences.push(
                Diagnostic::error(
                    entry.name.span,
                    format!("{} `{}` is in no document", entry.noun, entry.name.text),
                )
                .label("only here"),
            );
        }
    }
    let definitions = Definitions::collect(documents, &mut comparison.differences);
    let described = Definitions::collect(against, &mut Vec::new());
    for form in &definitions.forms {
        let other = described.construct(form.kind, &form.name.text);
        if other.is_some() {
            comparison.forms += 1;
            comparison.fields += Definitions::fields(&definitions.chain(form)).len();
        }
    }
    comparison
}

fn key<'e>(entry: &'e Entry<'_>) -> (&'static str, &'e str) {
    (entry.noun, &entry.name.text)
}

/// The documented definitions of a file.
fn entries(document: &Document) -> Vec<Entry<'_>> {
    let types = document
        .types
        .iter()
        .filter(|t| t.provenance == Provenance::Documented)
        .map(|definition| Entry {
            noun: "type",
            name: &definition.name,
            facts: type_facts(definition),
        });
    let constructs = document
        .constructs
        .iter()
        .filter(|c| c.provenance == Provenance::Documented)
        .map(|construct| Entry {
            noun: construct.kind.noun(),
            name: &construct.name,
            facts: construct_facts(construct),
        });
    types.chain(constructs).collect()
}

fn facts(entry: &Entry<'_>, other: &Entry<'_>, differences: &mut Vec<Diagnostic>) {
    let of = format!("{} `{}`", entry.noun, entry.name.text);
    for fact in &entry.facts {
        match other.facts.iter().find(|f| f.key == fact.key) {
            Some(same) if same.text == fact.text => {}
            Some(different) => differences.push(
                Diagnostic::error(fact.span, format!("{} of {of} differs", fact.key))
                    .label(&fact.text)
                    .related(different.span, &different.text),
            ),
            None => differences.push(
                Diagnostic::error(
                    fact.span,
                    format!("{} of {of} is not in the description", fact.key),
                )
                .label(&fact.text)
                .related(other.name.span, "not in this definition"),
            ),
        }
    }
    for fact in &other.facts {
        if !entry.facts.iter().any(|f| f.key == fact.key) {
            differences.push(
                Diagnostic::error(fact.span, format!("{} of {of} is in no document", fact.key))
                    .label(&fact.text)
                    .related(entry.name.span, "not in this definition"),
            );
        }
    }
}

fn type_facts(definition: &TypeDefinition) -> Vec<Fact> {
    let mut facts = vec![Fact {
        key: "the width".to_owned(),
        text: definition.width.value.to_string(),
        span: definition.width.span,
    }];
    let mut next = 0u64;
    for member in &definition.members {
        let value = member.value.map_or(next, |number| number.value);
        facts.push(Fact {
            key: format!("member `{}`", member.name.text),
            text: format!("{} = {value}", member.name.text),
            span: member.name.span,
        });
        next = value.wrapping_add(1);
    }
    facts
}

fn construct_facts(construct: &Construct) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(parent) = &construct.parent {
        facts.push(Fact {
            key: "the parent".to_owned(),
            text: parent.text.clone(),
            span: parent.span,
        });
    }
    facts.extend(construct.fields.iter().map(|field| Fact {
        key: format!("field `{}`", field.name.text),
        text: field_text(field),
        span: field.span,
    }));
    syntax_facts(construct, &mut facts);
    let info = &construct.operands;
    for list in [
        &info.inputs,
        &info.outputs,
        &info.order,
        &info.modifier_order,
    ]
    .into_iter()
    .flatten()
    {
        let entries: Vec<String> = list.entries.iter().map(|entry| entry.text()).collect();
        facts.push(Fact {
            key: format!("`{}`", list.keyword.text),
            text: format!("{}<{}>", list.keyword.text, entries.join(", ")),
            span: list.keyword.span,
        });
    }
    facts.extend(info.widths.iter().map(|(operand, width)| Fact {
        key: format!("the width of `{}`", operand.text),
        text: width.canonical(),
        span: operand.span,
    }));
    facts.extend(info.formats.iter().map(|format| Fact {
        key: format!("the format of `{}`", format.field.text),
        text: format!(
            "{}({}, {})",
            format.function.text, format.subject.text, format.by.text
        ),
        span: format.field.span,
    }));
    facts.extend(info.effects.iter().map(|effect| Fact {
        key: format!("effect `{}`", effect.text),
        text: effect.text.clone(),
        span: effect.span,
    }));
    facts.extend(construct.exceptions.iter().map(|exception| Fact {
        key: format!("the exception \"{}\"", exception.message.text),
        text: format!(
            "{}: {}",
            exception.kind.text,
            exception.condition.canonical()
        ),
        span: exception.message.span,
    }));
    for (i, example) in construct.examples.iter().enumerate() {
        facts.push(Fact {
            key: format!("example {}", i + 1),
            text: normalized(&example.text),
            span: example.span,
        });
    }
    facts
}

fn syntax_facts(construct: &Construct, facts: &mut Vec<Fact>) {
    let mut lines = 0;
    for line in &construct.syntax {
        let key = match line.text.split_once('=') {
            Some((name, _)) => format!("the list of `{}`", name.trim()),
            None => {
                lines += 1;
                format!("syntax line {lines}")
            }
        };
        facts.push(Fact {
            key,
            text: normalized(&line.text),
            span: line.span,
        });
    }
}

/// A field as it is compared and checksummed: numbers in decimal, one blank between words.
pub fn field_text(field: &FieldDeclaration) -> String {
    let value = match &field.value {
        ValueDeclaration::Free => String::new(),
        ValueDeclaration::Default(member) => format!(" = {}", member_text(member)),
        ValueDeclaration::Constant(member) => format!(" == {}", member_text(member)),
    };
    format!(
        "field<{}, {}> {} {}{value}",
        field.bit.value, field.width.value, field.type_name.text, field.name.text
    )
}

fn member_text(member: &Name) -> String {
    parse_number(&member.text).map_or_else(|| member.text.clone(), |value| value.to_string())
}

/// Runs of blanks become one.
fn normalized(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A checksum of all fields of each form, inherited ones included: 64-bit FNV-1a of their texts in ascending order of
/// bits, so that it changes with every declared number, name, type and value, and with nothing else.
pub fn field_checksums<'a>(documents: &'a [Document]) -> Vec<(String, u64)> {
    let definitions = Definitions::collect(documents, &mut Vec::new());
    let checksum = |form: &&'a Construct| {
        let chain = definitions.chain(form);
        let mut fields: Vec<&FieldDeclaration> = Definitions::fields(&chain)
            .into_iter()
            .map(|(field, _)| field)
            .collect();
        fields.sort_by_key(|field| (field.bit.value, field.name.text.clone()));
        let text: String = fields.iter().map(|f| field_text(f) + ";\n").collect();
        (form.name.text.clone(), fnv1a(text.as_bytes()))
    };
    definitions.forms.iter().map(checksum).collect()
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
