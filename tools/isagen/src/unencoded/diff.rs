//! Compares the vendor's pages of a set without encodings with its description: lines of syntax, values of modifiers,
//! examples.

use super::{InstructionSet, Operation, canonical};
use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Each with its place on the side that has it.
    pub differences: Vec<Diagnostic>,
    /// Lines of syntax that both sides have.
    pub lines: usize,
    /// Lists of values that both sides have.
    pub lists: usize,
    /// Examples that both sides have.
    pub examples: usize,
}

/// One thing that an operation says, with blanks left out.
struct Fact {
    noun: &'static str,
    text: String,
    span: Span,
}

/// Compares pages with a description, operation by operation; operations that no page is about do not count.
pub fn diff(pages: &[Operation], described: &InstructionSet) -> Comparison {
    let mut comparison = Comparison::default();
    for page in pages {
        let same = |o: &&Operation| o.name.text == page.name.text;
        let Some(operation) = described.operations.iter().find(same) else {
            let message = format!("{} is not in the description", page.name.text);
            let difference = Diagnostic::error(page.name.span, message).label("only here");
            comparison.differences.push(difference);
            continue;
        };
        let (ours, theirs) = (facts(page), facts(operation));
        only(&ours, &theirs, "not in the description", &mut comparison);
        only(&theirs, &ours, "in no document", &mut comparison);
        let both = |noun: &str| {
            let shared = ours.iter().filter(|f| f.noun == noun && has(&theirs, f));
            shared.count()
        };
        comparison.lines += both(LINE);
        comparison.lists += both(LIST);
        comparison.examples += both(EXAMPLE);
    }
    comparison
}

const LINE: &str = "line of syntax";
const LIST: &str = "list of values";
const EXAMPLE: &str = "example";

fn has(facts: &[Fact], fact: &Fact) -> bool {
    let mut same = facts.iter().filter(|f| f.noun == fact.noun);
    same.any(|f| f.text == fact.text)
}

fn only(facts: &[Fact], others: &[Fact], where_not: &str, comparison: &mut Comparison) {
    let missing = facts.iter().filter(|fact| !has(others, fact));
    comparison.differences.extend(missing.map(|fact| {
        Diagnostic::error(fact.span, format!("this {} is {where_not}", fact.noun))
            .label(fact.text.clone())
    }));
}

fn facts(operation: &Operation) -> Vec<Fact> {
    let lines = operation.lines.iter().map(|line| Fact {
        noun: LINE,
        text: canonical(&line.text),
        span: line.span,
    });
    let lists = operation.lists.iter().map(|list| {
        let value = |v: &super::Value| {
            let star = if v.starred { "*" } else { "" };
            format!("{}{star}", v.text.as_deref().unwrap_or("<NULL>"))
        };
        let values: Vec<String> = list.values.iter().map(value).collect();
        Fact {
            noun: LIST,
            text: format!("{}={}", list.name, values.join(",")),
            span: operation.name.span,
        }
    });
    let examples = operation.examples.iter().map(|example| Fact {
        noun: EXAMPLE,
        text: canonical(&example.text),
        span: example.span,
    });
    lines.chain(lists).chain(examples).collect()
}
