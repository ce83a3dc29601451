//! ISLE declarations of the machine: enumerations, the types of `typed`, and the typed constructors of
//! `constructors.rs`; and the Rust methods behind them.
//!
//! `(decl IMAD (Word Word ISrc) GprCarry)`: one term for each way to write an operation, the guard left out. The
//! constructor picks the form (RR/RU/RI/RC, …) from what the sources are.
//! `(decl IMAD_with (ImadOptions Word Word ISrc) GprCarry)` takes the modifiers that `IMAD` implies, made by
//! `IMAD_options`.

use super::constructors::{Constructor, constructors};
use super::naming::{camel, constant, snake};
use super::sources::SourceType;
use super::typed;
use super::types::{is_bool, modifier_types};
use crate::model::Machine;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The Rust method behind a term.
fn method(term: &str) -> String {
    format!("emit_{}", term.to_ascii_lowercase())
}

/// The Rust type of a family's modifiers.
fn options_type(constructor: &Constructor) -> String {
    format!("{}Options", camel(&constructor.family))
}

/// An enumeration as ISLE type, unless it is a plain bool.
fn type_name(machine: &Machine, index: usize) -> String {
    let ty = &machine.enums[index];
    if is_bool(ty) {
        "bool".to_string()
    } else {
        ty.name.clone()
    }
}

fn source_name(machine: &Machine, ty: SourceType) -> String {
    match ty {
        SourceType::Member(index) => type_name(machine, index),
        other => other.name().unwrap_or_default(),
    }
}

/// Arguments of the constructor in front of its sources: the modifiers that the syntax demands.
fn demanded(constructor: &Constructor) -> impl Iterator<Item = &super::constructors::Choice> {
    constructor.choices.iter().filter(|c| c.default.is_none())
}

/// Constructors of which each is the first of its family.
fn families(list: &[Constructor]) -> Vec<&Constructor> {
    let mut seen = BTreeSet::new();
    list.iter()
        .filter(|c| c.implies() && seen.insert(c.family.as_str()))
        .collect()
}

/// The ISLE file of declarations.
pub fn declarations(machine: &Machine) -> String {
    let mut out = String::from(
        ";; Generated from the machine description: a constructor for each way to write an operation, and the types of \
         their\n;; sources and results.\n\n",
    );
    let w = &mut out;
    let list = constructors(machine);
    let mut used = BTreeSet::new();
    for constructor in &list {
        used.extend(constructor.choices.iter().map(|c| c.ty));
        used.extend(constructor.sources.iter().filter_map(|s| match s.ty {
            SourceType::Member(ty) => Some(ty),
            _ => None,
        }));
    }
    typed::declare(&list, w);
    for (_, ty) in modifier_types(machine).filter(|(i, t)| used.contains(i) && !is_bool(t)) {
        let mut seen = BTreeSet::new();
        let members: Vec<String> = ty
            .members
            .iter()
            .filter(|m| seen.insert(m.value))
            .map(|m| camel(&m.name))
            .collect();
        let _ = writeln!(w, "(type {} extern (enum {}))", ty.name, members.join(" "));
    }
    for constructor in families(&list) {
        let ty = options_type(constructor);
        let types: Vec<String> = constructor
            .choices
            .iter()
            .map(|c| type_name(machine, c.ty))
            .collect();
        let names: Vec<&str> = constructor
            .choices
            .iter()
            .map(|c| c.name.as_str())
            .collect();
        let term = format!("{}_options", constructor.family);
        let _ = writeln!(
            w,
            "\n(type {ty} (primitive {ty}))\n;; {}\n(decl pure {term} ({}) {ty})\n(extern constructor {term} {})",
            names.join(" "),
            types.join(" "),
            method(&term),
        );
    }
    for constructor in &list {
        let sources: Vec<String> = constructor
            .sources
            .iter()
            .map(|s| source_name(machine, s.ty))
            .collect();
        let mut arguments: Vec<String> = demanded(constructor)
            .map(|c| type_name(machine, c.ty))
            .collect();
        arguments.extend(sources.iter().cloned());
        let roles: Vec<&str> = demanded(constructor)
            .map(|c| c.name.as_str())
            .chain(constructor.sources.iter().map(|s| s.role.as_str()))
            .collect();
        let _ = writeln!(w, "\n;; {}", roles.join(" "));
        let result = constructor.result.name();
        let mut declare = |term: &str, arguments: &[String]| {
            let _ = writeln!(
                w,
                "(decl {term} ({}) {result})\n(extern constructor {term} {})",
                arguments.join(" "),
                method(term)
            );
        };
        declare(&constructor.name, &arguments);
        if constructor.implies() {
            let mut all = vec![options_type(constructor)];
            all.extend(sources);
            declare(&format!("{}_with", constructor.name), &all);
        }
    }
    out
}

/// What the methods need beside the context: the modes, and the types of modifiers under their ISLE names.
pub fn modes(machine: &Machine) -> String {
    let mut out = String::new();
    let w = &mut out;
    let list = constructors(machine);
    for constructor in families(&list) {
        let ty = options_type(constructor);
        let _ = writeln!(
            w,
            "/// Modifiers of `{}`, at their bits.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub struct {ty}(pub u128);\n\nimpl {ty} {{\n    /// All modifiers.\n    #[allow(clippy::too_many_arguments)]\n    pub fn new({}) -> {ty} {{\n        {ty}({})\n    }}\n}}\n",
            constructor.family,
            parameters(machine, constructor.choices.iter(), "").join(", "),
            word(machine, constructor.choices.iter(), 0, ""),
        );
    }
    let _ = writeln!(
        w,
        "/// How each constructor is written.\npub mod mode \
         {{\n    use crate::isa::generated::{{Form, Role}};\n    use \
        crate::lower::operation::candidate::Candidate;\n    use crate::lower::operation::mode::Mode;\n"
    );
    for constructor in &list {
        let roles: Vec<String> = constructor
            .sources
            .iter()
            .map(|source| format!("Role::{}", camel(&source.role)))
            .collect();
        let roles = roles.join(", ");
        let forms: Vec<String> = constructor
            .forms
            .iter()
            .map(|&f| {
                format!(
                    "Candidate::new(Form::{}, &[{roles}])",
                    machine.forms[f].name
                )
            })
            .collect();
        let results: Vec<String> = constructor
            .results
            .iter()
            .map(|role| format!("Role::{}", camel(role)))
            .collect();
        let _ = writeln!(
            w,
            "    /// `{}`.\n    pub static {}: Mode = Mode {{ candidates: &[{}], sources: &[{roles}], mask: {:#x}, \
             results: &[{}], complements: {} }};",
            constructor.name,
            constant(&constructor.name),
            forms.join(", "),
            constructor.mask,
            results.join(", "),
            constructor.complements,
        );
    }
    let _ = writeln!(w, "}}");
    out
}

/// Parameters of Rust functions for modifiers.
fn parameters<'c>(
    machine: &Machine,
    choices: impl Iterator<Item = &'c super::constructors::Choice>,
    reference: &str,
) -> Vec<String> {
    choices
        .map(|c| {
            let ty = type_name(machine, c.ty);
            let reference = if ty == "bool" { "" } else { reference };
            format!("{}: {reference}{ty}", snake(&c.name))
        })
        .collect()
}

/// An expression for the bits `base` and those of modifiers.
fn word<'c>(
    machine: &Machine,
    choices: impl Iterator<Item = &'c super::constructors::Choice>,
    base: u128,
    reference: &str,
) -> String {
    let mut parts = Vec::new();
    if base != 0 {
        parts.push(format!("{base:#x}"));
    }
    parts.extend(choices.map(|c| {
        let reference = match type_name(machine, c.ty) == "bool" {
            true => "",
            false => reference,
        };
        format!("({reference}{} as u128) << {}", snake(&c.name), c.bit)
    }));
    match parts.is_empty() {
        true => "0".to_string(),
        false => parts.join(" | "),
    }
}

/// The methods of the lowering context behind [`declarations`], for the implementation of the ISLE context.
pub fn methods(machine: &Machine) -> String {
    let mut out = String::new();
    let w = &mut out;
    let list = constructors(machine);
    typed::methods(&list, w);
    for constructor in families(&list) {
        let ty = options_type(constructor);
        let names: Vec<String> = constructor
            .choices
            .iter()
            .map(|c| {
                let reference = if type_name(machine, c.ty) == "bool" {
                    ""
                } else {
                    "*"
                };
                format!("{reference}{}", snake(&c.name))
            })
            .collect();
        let _ = writeln!(
            w,
            "    #[inline]\n    fn {}(&mut self, {}) -> {ty} {{ {ty}::new({}) }}",
            method(&format!("{}_options", constructor.family)),
            parameters(machine, constructor.choices.iter(), "&").join(", "),
            names.join(", "),
        );
    }
    for constructor in &list {
        let defaults = constructor
            .choices
            .iter()
            .filter_map(|c| Some(u128::from(c.default?) << c.bit))
            .fold(constructor.fixed, |word, bits| word | bits);
        let mut write = |term: &str, first: Vec<String>, word: &str| {
            let mut parameters = first;
            let mut sources = Vec::new();
            for source in &constructor.sources {
                let argument = snake(&source.role);
                let (reference, value) = match source.ty {
                    SourceType::Member(_) => ("&", format!("Source::Number(*{argument} as i64)")),
                    SourceType::Signed | SourceType::Number => {
                        ("", format!("Source::Number(i64::from({argument}))"))
                    }
                    _ => ("", format!("Source::from({argument})")),
                };
                parameters.push(format!(
                    "{argument}: {reference}{}",
                    source_name(machine, source.ty)
                ));
                sources.push(value);
            }
            let parameters: String = parameters.iter().map(|p| format!(", {p}")).collect();
            let _ = writeln!(
                w,
                "    #[inline]\n    fn {}(&mut self{parameters}) -> {} {{ self.emit(&mode::{}, {word}, &mut \
                 [{}]).into() }}",
                method(term),
                constructor.result.name(),
                constant(&constructor.name),
                sources.join(", "),
            );
        };
        write(
            &constructor.name,
            parameters(machine, demanded(constructor), "&"),
            &word(machine, demanded(constructor), defaults, "*"),
        );
        if constructor.implies() {
            write(
                &format!("{}_with", constructor.name),
                vec![format!("options: {}", options_type(constructor))],
                &match constructor.fixed {
                    0 => "options.0".to_string(),
                    fixed => format!("{fixed:#x} | options.0"),
                },
            );
        }
    }
    out
}
