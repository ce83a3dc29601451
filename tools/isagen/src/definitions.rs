//! All definitions of a set of documents by name, and what inherits from what.

use std::collections::HashMap;

use crate::ast::{
    Construct, ConstructKind, Document, FieldDeclaration, LatencyDefinition, Name, TypeDefinition,
};
use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// The group whose fields are the control bits that every form inherits.
pub const ALL: &str = "ALL";

/// The definitions of a set of documents. Of two with one name the first counts.
#[derive(Debug, Default)]
pub struct Definitions<'a> {
    /// In order.
    pub types: Vec<&'a TypeDefinition>,
    /// In order.
    pub groups: Vec<&'a Construct>,
    /// In order.
    pub optypes: Vec<&'a Construct>,
    /// In order.
    pub forms: Vec<&'a Construct>,
    /// In order; several may amend one construct.
    pub amendments: Vec<&'a Construct>,
    /// In order.
    pub latencies: Vec<&'a LatencyDefinition>,
    types_by_name: HashMap<&'a str, usize>,
    constructs_by_name: HashMap<(ConstructKind, &'a str), &'a Construct>,
}

impl<'a> Definitions<'a> {
    /// Collects the definitions of `documents` and reports what is defined twice.
    pub fn collect(
        documents: &'a [Document],
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Definitions<'a> {
        let mut all = Definitions::default();
        for document in documents {
            for definition in &document.types {
                let name = definition.name.text.as_str();
                if let Some(&first) = all.types_by_name.get(name) {
                    let first = all.types[first].name.span;
                    diagnostics.push(defined_twice("type", &definition.name, first));
                    continue;
                }
                all.types_by_name.insert(name, all.types.len());
                all.types.push(definition);
            }
            for construct in &document.constructs {
                all.add(construct, diagnostics);
            }
            for latency in &document.latencies {
                match all
                    .latencies
                    .iter()
                    .find(|l| l.class.text == latency.class.text)
                {
                    Some(first) => diagnostics.push(defined_twice(
                        "latency class",
                        &latency.class,
                        first.class.span,
                    )),
                    None => all.latencies.push(latency),
                }
            }
        }
        all
    }

    fn add(&mut self, construct: &'a Construct, diagnostics: &mut Vec<Diagnostic>) {
        let list = match construct.kind {
            ConstructKind::Group => &mut self.groups,
            ConstructKind::Optype => &mut self.optypes,
            ConstructKind::Opcode => &mut self.forms,
            ConstructKind::Amend => {
                self.amendments.push(construct);
                return;
            }
        };
        let key = (construct.kind, construct.name.text.as_str());
        if let Some(first) = self.constructs_by_name.get(&key) {
            let noun = construct.kind.noun();
            diagnostics.push(defined_twice(noun, &construct.name, first.name.span));
            return;
        }
        self.constructs_by_name.insert(key, construct);
        list.push(construct);
    }

    /// The index in [`Definitions::types`].
    pub fn type_index(&self, name: &str) -> Option<usize> {
        self.types_by_name.get(name).copied()
    }

    /// The group, optype or form of that name.
    pub fn construct(&self, kind: ConstructKind, name: &str) -> Option<&'a Construct> {
        self.constructs_by_name.get(&(kind, name)).copied()
    }

    /// What `construct` inherits from, outermost first, itself last. Missing and circular parents end the chain; see
    /// [`Definitions::check_parents`].
    pub fn chain(&self, construct: &'a Construct) -> Vec<&'a Construct> {
        let mut chain = vec![construct];
        let mut current = construct;
        while let Some(parent) = self.parent(current) {
            if chain.iter().any(|c| std::ptr::eq(*c, parent)) {
                break;
            }
            chain.push(parent);
            current = parent;
        }
        chain.reverse();
        chain
    }

    fn parent(&self, construct: &Construct) -> Option<&'a Construct> {
        let name = &construct.parent.as_ref()?.text;
        self.construct(parent_kind(construct.kind)?, name)
    }

    /// Reports parents that are not defined, and circles.
    pub fn check_parents(&self, diagnostics: &mut Vec<Diagnostic>) {
        let constructs = self.groups.iter().chain(&self.optypes).chain(&self.forms);
        for construct in constructs {
            let Some(name) = &construct.parent else {
                continue;
            };
            let Some(kind) = parent_kind(construct.kind) else {
                continue;
            };
            if self.parent(construct).is_none() {
                let noun = kind.noun();
                let keyword = kind.keyword();
                diagnostics.push(
                    Diagnostic::error(name.span, format!("{noun} `{}` is not defined", name.text))
                        .label(format!("no `{keyword} {}`", name.text)),
                );
            }
            let chain = self.chain(construct);
            let outermost = chain.first().copied().unwrap_or(construct);
            if self.parent(outermost).is_some() {
                let message = format!("`{}` inherits from itself", outermost.name.text);
                diagnostics.push(Diagnostic::error(outermost.name.span, message));
            }
        }
    }

    /// The fields of a chain of constructs: inherited ones first, an inner one in the place of the outer one of its
    /// name. Those of group [`ALL`] are left out.
    pub fn fields(chain: &[&'a Construct]) -> Vec<(&'a FieldDeclaration, &'a Construct)> {
        let mut fields: Vec<(&FieldDeclaration, &Construct)> = Vec::new();
        for construct in chain.iter().filter(|c| !is_all(c)) {
            for field in &construct.fields {
                match fields
                    .iter_mut()
                    .find(|(f, _)| f.name.text == field.name.text)
                {
                    Some(outer) => *outer = (field, construct),
                    None => fields.push((field, construct)),
                }
            }
        }
        fields
    }

    /// The amendments of any construct of a chain, in order.
    pub fn amendments_of(&self, chain: &[&'a Construct]) -> Vec<&'a Construct> {
        let amends = |a: &&&Construct| chain.iter().any(|c| c.name.text == a.name.text);
        self.amendments.iter().filter(amends).copied().collect()
    }
}

/// Whether this is the group of the control fields.
pub fn is_all(construct: &Construct) -> bool {
    construct.kind == ConstructKind::Group && construct.name.text == ALL
}

fn parent_kind(kind: ConstructKind) -> Option<ConstructKind> {
    match kind {
        ConstructKind::Group | ConstructKind::Optype => Some(ConstructKind::Group),
        ConstructKind::Opcode => Some(ConstructKind::Optype),
        ConstructKind::Amend => None,
    }
}

fn defined_twice(noun: &str, name: &Name, first: Span) -> Diagnostic {
    Diagnostic::error(
        name.span,
        format!("{noun} `{}` is defined twice", name.text),
    )
    .related(first, "first here")
}
