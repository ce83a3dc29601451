//! The types of sources and results under the names that rules know them by, and the terms that make one of another:
//! what a modifier does, what a part is, what becomes what by itself.
//!
//! Which types there are, how wide they are and what they carry follows from the constructors. What the description
//! does not have is said in `names.rs`: names, how a CLIF value is read; and here: the widths that only rules have.

mod names;
mod terms;

use super::constructors::{Constructor, constructors};
use super::sources::{Carried, SourceType};
use crate::model::Machine;
use names::{Beside, InRegisters};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use terms::{Term, terms};

/// Widths in words that no operation has and rules put together.
const ONLY_RULES: [u8; 1] = [4];

/// All types of sources that are operands in registers, and of results that are in registers.
struct Types {
    /// With what any constructor's operand of the type applies.
    sources: BTreeMap<SourceType, Carried>,
    results: BTreeSet<InRegisters>,
}

impl Types {
    fn of(machine: &Machine) -> Types {
        Types::of_constructors(&constructors(machine))
    }

    fn of_constructors(list: &[Constructor]) -> Types {
        let mut sources: BTreeMap<SourceType, Carried> = BTreeMap::new();
        let all = list.iter().flat_map(|constructor| &constructor.sources);
        for source in all.filter(|source| source.ty.kind().is_some()) {
            let carried = sources.entry(source.ty).or_default();
            *carried = carried.or(source.carried);
        }
        let results = list.iter().filter_map(|c| InRegisters::of(c.result));
        let mut results: BTreeSet<InRegisters> = results.collect();
        for words in ONLY_RULES {
            sources.entry(SourceType::Plain(words)).or_default();
            for beside in [Beside::Nothing, Beside::Carry] {
                results.insert(InRegisters {
                    beside,
                    uniform: false,
                    words,
                });
            }
        }
        Types { sources, results }
    }

    /// The sources that a plain one of so many words is as well.
    fn with_modifiers(&self, plain: SourceType) -> impl Iterator<Item = SourceType> {
        self.sources.keys().copied().filter(move |&ty| {
            let data = ty == SourceType::Data && !plain.is_uniform();
            let same = ty.words() == plain.words() && ty.is_uniform() == plain.is_uniform();
            // A word is no half, unless a rule says that it is.
            (data || same) && !ty.is_plain() && ty != SourceType::Half
        })
    }
}

/// Each type with what it is.
fn described(types: &Types) -> Vec<(String, String)> {
    let mut list = Vec::new();
    for ty in types.sources.keys() {
        let about = ty.kind().map_or("", |kind| kind.about);
        let bits = (32 * u32::from(ty.words().unwrap_or_default())).to_string();
        list.push((ty.name().unwrap_or_default(), about.replace('#', &bits)));
    }
    list.extend(types.results.iter().map(|r| (r.name(), r.about())));
    for (name, about) in [
        ("PSrc", "A predicate that may be negated"),
        ("Pred", "A predicate register"),
        (
            "PredPair",
            "A predicate register and one that is combined with the opposite",
        ),
        ("Regs", "Any number of registers"),
        ("Unit", "Nothing: of an instruction that only has an effect"),
    ] {
        list.push((name.to_string(), about.to_string()));
    }
    list
}

/// Declarations of the types and terms.
pub(super) fn declare(list: &[Constructor], w: &mut String) {
    let types = Types::of_constructors(list);
    let _ = writeln!(w, ";;;; Types of sources and results ;;;;\n");
    for (name, about) in described(&types) {
        let _ = writeln!(w, ";; {about}.\n(type {name} (primitive {name}))");
    }
    let _ = writeln!(w, "\n;;;; What is made of them ;;;;\n");
    for Term {
        name,
        from,
        to,
        implicit,
        ..
    } in terms(&types)
    {
        let from = from.join(" ");
        let _ = writeln!(
            w,
            "(decl {name} ({from}) {to})\n(extern constructor {name} {name})"
        );
        if implicit {
            let _ = writeln!(w, "(convert {from} {to} {name})");
        }
    }
    let _ = writeln!(w, "\n;;;; Constructors ;;;;\n");
}

/// The methods of the lowering context behind the terms.
pub(super) fn methods(list: &[Constructor], w: &mut String) {
    for Term {
        name,
        from,
        to,
        body,
        ..
    } in terms(&Types::of_constructors(list))
    {
        let arguments = match &from[..] {
            [one] => format!("x: {one}"),
            [low, high] => format!("low: {low}, high: {high}"),
            more => unreachable!("{name} has {} arguments", more.len()),
        };
        let _ = writeln!(
            w,
            "    #[inline]\n    fn {name}(&mut self, {arguments}) -> {to} {{ {body} }}"
        );
    }
}

/// The types in Rust, as the rows of the macros of `src/lower/typed.rs`.
pub fn rust(machine: &Machine) -> String {
    let types = Types::of(machine);
    let mut out = String::new();
    let w = &mut out;
    let about: BTreeMap<String, String> = described(&types).into_iter().collect();
    let mut rows = |name: &str, rows: Vec<(String, String)>| {
        let _ = writeln!(w, "{name}! {{");
        for (ty, row) in rows {
            let _ = writeln!(w, "    /// {}.\n    {ty}{row};", about[&ty]);
        }
        let _ = writeln!(w, "}}\n");
    };
    let sources = types.sources.keys().filter_map(|ty| {
        let (name, words) = (ty.name()?, ty.words()?);
        Some((name, format!(", {words}")))
    });
    rows("sources", sources.collect());
    let (alone, beside): (Vec<InRegisters>, Vec<InRegisters>) =
        (types.results.iter()).partition(|result| result.beside == Beside::Nothing);
    let row = |result: &InRegisters| {
        let source = result.source().name().unwrap_or_default();
        (result.name(), format!(", {}, {source}", result.words))
    };
    rows("results", alone.iter().map(row).collect());
    let row = |result: &InRegisters| (result.name(), format!(": {}", result.alone().name()));
    rows("with_predicate", beside.iter().map(row).collect());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceMap;
    use std::path::Path;

    fn types() -> Types {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src/isa/description");
        let mut sources = SourceMap::default();
        sources.read(&folder).expect("the description is readable");
        Types::of(&crate::resolve::load(&sources).expect("the description has no mistake"))
    }

    /// Types and terms have names of their own, and each type that a term names is there.
    #[test]
    fn names_are_those_of_types() {
        let types = types();
        let described = described(&types);
        let mut all: BTreeSet<String> = BTreeSet::new();
        for (name, about) in &described {
            assert!(
                all.insert(name.clone()) && !about.contains('#'),
                "{name}: {about}"
            );
        }
        all.extend(["Value".to_string(), "InstOutput".to_string()]);
        let mut seen = BTreeSet::new();
        let terms = terms(&types);
        for term in &terms {
            assert!(seen.insert(&term.name), "{} twice", term.name);
            for ty in term.from.iter().chain([&term.to]) {
                assert!(all.contains(ty), "{ty} of {}", term.name);
            }
        }
        for (ty, name) in names::JOINED.iter().chain(&names::COUNTED) {
            let term = terms.iter().find(|term| term.name == *name);
            assert_eq!(term.map(|term| term.to.as_str()), Some(*ty), "{name}");
        }
    }

    /// Modifiers follow from the description: an integer has a minus only, a word none, and no part of either is taken.
    #[test]
    fn terms_follow_from_what_types_carry() {
        let terms = terms(&types());
        let of = |ty: &str| -> BTreeSet<&str> {
            let named = terms.iter().filter(|t| !t.implicit && t.from[0] == ty);
            named.map(|term| term.name.as_str()).collect()
        };
        assert_eq!(of("ISrc"), BTreeSet::from(["minus"]));
        assert_eq!(of("NotSrc"), BTreeSet::from(["complement"]));
        assert_eq!(of("FSrc"), BTreeSet::from(["minus_single", "abs_single"]));
        assert_eq!(of("Word"), BTreeSet::from(["low_half"]));
        assert_eq!(of("Word64"), BTreeSet::from(["low", "high"]));
        assert_eq!(of("Gpr2Carry"), BTreeSet::from(["carry2_of", "quad_sums"]));
        let becomes = |from: &str, to: &str| {
            (terms.iter()).any(|t| t.implicit && t.from[0] == from && t.to == to)
        };
        assert!(becomes("Word", "ISrc") && becomes("Gpr", "FSrc") && becomes("Ugpr", "USrc"));
        assert!(
            !becomes("ISrc", "Word") && !becomes("Word", "HalfSrc") && !becomes("Word", "USrc")
        );
    }
}
