//! Documents → [`Machine`].
//!
//! Inheritance is flattened, names become indices and numbers, and each line of `__Syntax` is worked out for each form.
//! Mistakes are collected; what depends on a missing definition is not reported again.

mod expression;
mod fields;
mod forms;
mod modes;
mod operands;
mod types;
mod written_operands;

pub use forms::EFFECTS;

use std::cell::RefCell;
use std::collections::HashSet;

use crate::ast::{Construct, ConstructKind, Document, LatencyDefinition};
use crate::check;
use crate::definitions::{ALL, Definitions};
use crate::diagnostic::{Diagnostic, has_errors, sort};
use crate::model::{Field, Latency, Machine, Optype};
use crate::parser::parse;
use crate::source::{SourceMap, Span};
use crate::syntax::parse_syntax;
use crate::unencoded;

/// The figures of a row of the latency table.
const TIMING: [&str; 5] = ["result", "predicate", "wide", "sources", "variable"];

/// Reads a machine.
///
/// # Errors
/// All mistakes of the sources, with their places; none is a warning.
pub fn load(sources: &SourceMap) -> Result<Machine, Vec<Diagnostic>> {
    let (machine, mut diagnostics) = load_with_warnings(sources);
    machine.ok_or_else(|| {
        diagnostics.retain(Diagnostic::is_error);
        diagnostics
    })
}

/// Reads a machine; also everything that is wrong or suspicious, sorted by place. There is a machine if nothing is an
/// error.
pub fn load_with_warnings(sources: &SourceMap) -> (Option<Machine>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut documents = parse(sources, &mut diagnostics);
    let unencoded = unencoded::load(&documents, &mut diagnostics);
    // What belongs to another instruction set is no part of this machine.
    documents.retain(|document| document.instruction_set.is_none());
    let mut machine = resolve(&documents, &mut diagnostics);
    machine.unencoded = unencoded;
    check::layout(&machine, &mut diagnostics);
    if !has_errors(&diagnostics) {
        check::meaning(&machine, &mut diagnostics);
    }
    sort(&mut diagnostics);
    let usable = !has_errors(&diagnostics);
    (usable.then_some(machine), diagnostics)
}

/// Resolves documents. The machine is complete only if no error was reported.
pub fn resolve(documents: &[Document], diagnostics: &mut Vec<Diagnostic>) -> Machine {
    let definitions = Definitions::collect(documents, diagnostics);
    definitions.check_parents(diagnostics);
    let (enums, undefined) = types::enums(&definitions, diagnostics);
    let context = Context {
        definitions: &definitions,
        machine: Machine {
            enums,
            ..Machine::default()
        },
        undefined,
        undefined_registers: RefCell::default(),
        used: RefCell::default(),
        diagnostics: RefCell::default(),
    };
    let machine = context.resolve();
    diagnostics.extend(machine.1);
    machine.0
}

/// What the parts of the resolver share.
struct Context<'a> {
    definitions: &'a Definitions<'a>,
    machine: Machine,
    /// Names of types that no document defines; already reported.
    undefined: HashSet<&'a str>,
    /// Types and names of registers whose number no document gives; already reported.
    undefined_registers: RefCell<HashSet<(String, String)>>,
    /// Places of amendments' statements that concern at least one form.
    used: RefCell<HashSet<Span>>,
    diagnostics: RefCell<Vec<Diagnostic>>,
}

impl<'a> Context<'a> {
    fn report(&self, diagnostic: Diagnostic) {
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    fn error(&self, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(span, message));
    }

    fn mark_used(&self, span: Span) {
        self.used.borrow_mut().insert(span);
    }

    fn resolve(mut self) -> (Machine, Vec<Diagnostic>) {
        self.machine.control = self.control();
        self.machine.latencies = self.latencies();
        for optype in &self.definitions.optypes {
            self.optype(optype);
        }
        self.check_groups();
        self.check_amendments();
        (self.machine, self.diagnostics.into_inner())
    }

    /// The fields of group `ALL`.
    fn control(&self) -> Vec<Field> {
        let Some(all) = self.definitions.construct(ConstructKind::Group, ALL) else {
            return Vec::new();
        };
        self.check_duplicate_fields(all);
        let declarations: Vec<_> = all.fields.iter().map(|field| (field, all)).collect();
        self.fields(&declarations)
    }

    fn latencies(&self) -> Vec<Latency> {
        let mut seen: Vec<(&str, Span)> = Vec::new();
        let mut rows = Vec::new();
        for definition in &self.definitions.latencies {
            for optype in &definition.optypes {
                let name = optype.text.as_str();
                if self
                    .definitions
                    .construct(ConstructKind::Optype, name)
                    .is_none()
                {
                    self.error(optype.span, format!("optype `{name}` is not defined"));
                }
                match seen.iter().find(|(n, _)| *n == name) {
                    Some((_, first)) => self.report(
                        Diagnostic::error(
                            optype.span,
                            format!("optype `{name}` has two latency classes"),
                        )
                        .related(*first, "first here"),
                    ),
                    None => seen.push((name, optype.span)),
                }
            }
            self.check_timing(definition);
            let timing = definition.timing.iter();
            rows.push(Latency {
                class: definition.class.text.clone(),
                timing: timing.map(|(n, v)| (n.text.clone(), v.value)).collect(),
            });
        }
        rows
    }

    /// A row has each figure once.
    fn check_timing(&self, definition: &LatencyDefinition) {
        for (i, (name, _)) in definition.timing.iter().enumerate() {
            if !TIMING.contains(&name.text.as_str()) {
                self.report(
                    Diagnostic::error(name.span, format!("unknown figure `{}`", name.text))
                        .help(format!("the figures are {}", TIMING.join(", "))),
                );
            }
            let earlier = definition.timing[..i].iter();
            if let Some((first, _)) = earlier.clone().find(|(n, _)| n.text == name.text) {
                let message = format!("`{}` is stated twice", name.text);
                self.report(
                    Diagnostic::error(name.span, message).related(first.span, "first here"),
                );
            }
        }
        for figure in TIMING {
            if !definition
                .timing
                .iter()
                .any(|(name, _)| name.text == figure)
            {
                let class = &definition.class;
                let message = format!("latency class `{}` has no `{figure}`", class.text);
                self.report(
                    Diagnostic::error(class.span, message)
                        .help(format!("add `{figure} = CYCLES;` to its `__Timing`")),
                );
            }
        }
    }

    fn latency_of(&self, optype: &Construct) -> Option<usize> {
        let rows = &self.definitions.latencies;
        let found = rows
            .iter()
            .position(|row| row.optypes.iter().any(|o| o.text == optype.name.text));
        if found.is_none() && !rows.is_empty() {
            let message = format!("optype `{}` has no latency class", optype.name.text);
            self.report(
                Diagnostic::error(optype.name.span, message)
                    .help("name it in `__Optypes` of a `__DefLatency`"),
            );
        }
        found
    }

    fn optype(&mut self, optype: &'a Construct) {
        let mut mistakes = Vec::new();
        let block = parse_syntax(&optype.syntax, &mut mistakes);
        if block.lines.is_empty() && mistakes.is_empty() {
            let message = format!("optype `{}` has no syntax", optype.name.text);
            mistakes.push(
                Diagnostic::error(optype.name.span, message)
                    .help("add a section `__Syntax` with a fenced code block"),
            );
        }
        self.diagnostics.borrow_mut().extend(mistakes);
        self.check_duplicate_fields(optype);
        let children: Vec<&Construct> = self
            .definitions
            .forms
            .iter()
            .filter(|form| {
                form.parent
                    .as_ref()
                    .is_some_and(|p| p.text == optype.name.text)
            })
            .copied()
            .collect();
        if children.is_empty() {
            let message = format!("optype `{}` has no form", optype.name.text);
            self.report(Diagnostic::warning(optype.name.span, message));
        }
        let index = self.machine.optypes.len();
        let first = self.machine.forms.len();
        let mut forms = Vec::new();
        for form in children {
            forms.push(self.form(form, index));
        }
        let mnemonic = self.mnemonic(&block, &forms);
        self.resolve_modes(&block, &mnemonic, &mut forms);
        let number = self.optype_number(optype);
        let (effects, selection, floating) = self.effects(optype);
        self.machine.forms.extend(forms);
        let resolved = Optype {
            name: optype.name.text.clone(),
            number,
            mnemonic: mnemonic.text,
            group: optype
                .parent
                .as_ref()
                .map_or(String::new(), |p| p.text.clone()),
            syntax: block.lines.iter().map(|line| line.text.clone()).collect(),
            write_scoreboard: block.lines.iter().any(|line| line.write_scoreboard),
            latency: self.latency_of(optype),
            effects,
            selection,
            floating,
            forms: first..self.machine.forms.len(),
            examples: optype.examples.iter().map(|e| e.text.clone()).collect(),
            provenance: optype.provenance,
            span: optype.name.span,
        };
        self.machine.optypes.push(resolved);
    }

    /// Group fields are declared once and seen by many forms: their own mistakes are looked for here.
    fn check_duplicate_fields(&self, construct: &Construct) {
        for (i, field) in construct.fields.iter().enumerate() {
            let earlier = construct.fields[..i]
                .iter()
                .find(|f| f.name.text == field.name.text);
            if let Some(first) = earlier {
                self.report(
                    Diagnostic::error(
                        field.name.span,
                        format!("field `{}` is defined twice", field.name.text),
                    )
                    .related(first.name.span, "first here"),
                );
            }
        }
    }

    fn check_groups(&self) {
        for group in &self.definitions.groups {
            self.check_duplicate_fields(group);
        }
    }

    fn check_amendments(&self) {
        let used = self.used.borrow();
        for amendment in &self.definitions.amendments {
            let name = &amendment.name;
            let kinds = [
                ConstructKind::Group,
                ConstructKind::Optype,
                ConstructKind::Opcode,
            ];
            if !kinds
                .iter()
                .any(|&kind| self.definitions.construct(kind, &name.text).is_some())
            {
                self.report(
                    Diagnostic::error(name.span, format!("`{}` is not defined", name.text))
                        .label("no group, optype or form of this name"),
                );
                continue;
            }
            let info = &amendment.operands;
            let lists = [
                &info.inputs,
                &info.outputs,
                &info.order,
                &info.modifier_order,
            ];
            for list in lists.into_iter().flatten() {
                let message = format!("an amendment cannot change `{}`", list.keyword.text);
                self.error(list.keyword.span, message);
            }
            let shown = amendment.shown.iter().map(|(field, _)| field.span);
            let defaults = amendment.defaults.iter().map(|(field, _)| field.span);
            let exceptions = amendment.exceptions.iter().map(|e| e.message.span);
            for span in shown.chain(defaults).chain(exceptions) {
                if !used.contains(&span) {
                    let message = format!("this concerns no form of `{}`", name.text);
                    self.report(
                        Diagnostic::error(span, message)
                            .help("a statement counts for the forms that have all its fields"),
                    );
                }
            }
        }
    }
}
