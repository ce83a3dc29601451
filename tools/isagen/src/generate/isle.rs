//! ISLE declarations of the machine: enumerations, and one constructor per operation; and the Rust methods behind them.
//!
//! `(decl IMAD (ImadOptions Src Src Src PSrc) Outputs)`: options are the modifiers behind the mnemonic, the other arguments are the sources
//! in the order of the documents, the guard left out. The constructor picks the form (RR/RU/RI/RC, …) from what the sources are.

use super::naming::{camel, module_name, snake};
use super::optypes::{Kind, options, signature};
use super::types::{is_bool, modifier_types};
use crate::model::{Machine, Optype};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Operations that end or leave a block are terminators, not values: they have no constructor.
fn has_constructor(optype: &Optype) -> bool {
    !optype
        .effects
        .iter()
        .any(|e| ["branch", "call", "return", "exit", "convergence"].contains(&e.as_str()))
        && optype.name != "NOP"
}

/// The ISLE term: the documents' own name, which no CLIF instruction has.
fn term(optype: &Optype) -> &str {
    &optype.name
}

/// The Rust method behind a term.
fn method(optype: &Optype) -> String {
    format!("op_{}", optype.name.to_ascii_lowercase())
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

/// The ISLE file of declarations.
pub fn declarations(machine: &Machine) -> String {
    let mut out = String::from(
        ";; Generated from the machine description: one constructor per operation, under its documented name.\n\n",
    );
    let w = &mut out;
    let mut used = BTreeSet::new();
    for optype in machine.optypes.iter().filter(|o| has_constructor(o)) {
        used.extend(options(machine, optype).iter().map(|o| o.ty));
    }
    for (index, ty) in modifier_types(machine).filter(|(i, t)| used.contains(i) && !is_bool(t)) {
        let _ = index;
        let mut seen = BTreeSet::new();
        let members: Vec<String> = ty
            .members
            .iter()
            .filter(|m| seen.insert(m.value))
            .map(|m| camel(&m.name))
            .collect();
        let _ = writeln!(w, "(type {} extern (enum {}))", ty.name, members.join(" "));
    }
    for optype in machine.optypes.iter().filter(|o| has_constructor(o)) {
        let name = term(optype);
        let options = options(machine, optype);
        let _ = writeln!(w, "\n;; {}", optype.mnemonic);
        let mut arguments = Vec::new();
        if !options.is_empty() {
            let ty = format!("{}Options", camel(&optype.name));
            let fields: Vec<String> = options.iter().map(|o| type_name(machine, o.ty)).collect();
            let _ = writeln!(w, "(type {ty} (primitive {ty}))");
            let _ = writeln!(
                w,
                ";; {}",
                options
                    .iter()
                    .map(|o| o.name.as_str())
                    .collect::<Vec<_>>()
                    .join(" ")
            );
            let _ = writeln!(w, "(decl pure {name}_options ({}) {ty})", fields.join(" "));
            let _ = writeln!(
                w,
                "(extern constructor {name}_options {}_options)",
                method(optype)
            );
            arguments.push(ty);
        }
        let sources = signature(machine, optype).sources;
        arguments.extend(sources.iter().map(|(_, kind)| isle_kind(*kind).to_string()));
        let _ = writeln!(
            w,
            ";; {}",
            sources
                .iter()
                .map(|(role, _)| role.as_str())
                .collect::<Vec<_>>()
                .join(" ")
        );
        let _ = writeln!(w, "(decl {name} ({}) Outputs)", arguments.join(" "));
        let _ = writeln!(w, "(extern constructor {name} {})", method(optype));
    }
    out
}

fn isle_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "PSrc",
        Kind::Word | Kind::Pair | Kind::Quad => "Src",
        Kind::Set => "PredicateSet",
        Kind::Signed => "i32",
        Kind::Number => "u32",
    }
}

/// The types of options, under their ISLE names.
pub fn option_types(machine: &Machine) -> String {
    let mut out = String::new();
    for optype in machine
        .optypes
        .iter()
        .filter(|o| has_constructor(o) && !options(machine, o).is_empty())
    {
        let _ = writeln!(
            out,
            "/// Modifiers of `{}`.\npub use crate::isa::generated::{}::Options as {}Options;",
            optype.mnemonic,
            module_name(&optype.name),
            camel(&optype.name)
        );
    }
    out
}

/// The methods of the lowering context behind [`declarations`], as a macro to be called inside the implementation of the ISLE context.
pub fn methods(machine: &Machine) -> String {
    let mut out = String::new();
    let w = &mut out;
    let _ = writeln!(
        w,
        "\n/// Methods of the lowering context that emit operations.\nmacro_rules! operation_methods {{\n    () => {{"
    );
    for optype in machine.optypes.iter().filter(|o| has_constructor(o)) {
        let name = method(optype);
        let module = module_name(&optype.name);
        let options = options(machine, optype);
        let mut parameters = String::new();
        let mut word = "0".to_string();
        if !options.is_empty() {
            let list: Vec<String> = options
                .iter()
                .map(|o| {
                    let ty = type_name(machine, o.ty);
                    let reference = if ty == "bool" { "" } else { "&" };
                    format!("{}: {reference}{ty}", snake(&o.name))
                })
                .collect();
            let values: Vec<String> = options
                .iter()
                .map(|o| {
                    if type_name(machine, o.ty) == "bool" {
                        snake(&o.name)
                    } else {
                        format!("*{}", snake(&o.name))
                    }
                })
                .collect();
            let ty = format!("{}Options", camel(&optype.name));
            let _ = writeln!(
                w,
                "        #[inline]\n        fn {name}_options(&mut self, {}) -> {ty} {{ crate::isa::generated::{module}::Options::new({}) }}",
                list.join(", "),
                values.join(", ")
            );
            parameters = format!(", options: {ty}");
            word = "options.word()".to_string();
        }
        let sources = signature(machine, optype).sources;
        let mut values = Vec::new();
        for (role, kind) in &sources {
            let argument = snake(role);
            let (ty, value) = match kind {
                Kind::Bool => ("PSrc", format!("Source::Predicate({argument})")),
                Kind::Word | Kind::Pair | Kind::Quad => {
                    ("Src", format!("Source::Value({argument})"))
                }
                Kind::Set => ("PredicateSet", format!("Source::Predicates({argument})")),
                Kind::Signed => ("i32", format!("Source::Number(i64::from({argument}))")),
                Kind::Number => ("u32", format!("Source::Number(i64::from({argument}))")),
            };
            parameters += &format!(", {argument}: {ty}");
            values.push(format!("(Role::{}, {value})", camel(role)));
        }
        let _ = writeln!(
            w,
            "        #[inline]\n        fn {name}(&mut self{parameters}) -> Outputs {{ self.operation(Optype::{}, {word}, &[{}]) }}",
            optype.name,
            values.join(", ")
        );
    }
    let _ = writeln!(w, "    }};\n}}");
    out
}
