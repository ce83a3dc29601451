//! The terms that make one type of another.

use super::Types;
use super::names::{Beside, COUNTED, InRegisters, JOINED};
use crate::generate::sources::{Carried, SourceType};

/// A term and the method behind it.
pub(super) struct Term {
    /// Its name, and that of the method.
    pub name: String,
    /// Types of its arguments, `x` or `low` and `high`.
    pub from: Vec<String>,
    /// What it gives.
    pub to: String,
    /// The method in Rust.
    pub body: String,
    /// Whether it is applied by itself where a value has one type and the other is wanted.
    pub implicit: bool,
}

/// Terms, as they are found.
#[derive(Default)]
struct Terms(Vec<Term>);

impl Terms {
    /// A term that rules name.
    fn named(&mut self, name: String, from: Vec<String>, to: String, body: String) {
        self.0.push(Term {
            name,
            from,
            to,
            body,
            implicit: false,
        });
    }

    /// One that is applied by itself.
    fn implicit(&mut self, from: &str, to: &str, body: String) {
        self.0.push(Term {
            name: format!("{from}_as_{to}").to_ascii_lowercase(),
            from: vec![from.to_string()],
            to: to.to_string(),
            body,
            implicit: true,
        });
    }
}

/// Rust for a source made of an operand.
fn made(ty: SourceType, operand: &str) -> String {
    match ty {
        SourceType::Data => operand.to_string(),
        _ => format!("{}::new({operand})", ty.name().unwrap_or_default()),
    }
}

/// All terms.
pub(super) fn terms(types: &Types) -> Vec<Term> {
    let mut terms = Terms::default();
    for (&ty, &carried) in &types.sources {
        of_source(types, ty, carried, &mut terms);
    }
    for &result in &types.results {
        of_result(types, result, &mut terms);
    }
    // Types that are no rows: a predicate, a predicate and its opposite, any number of registers, nothing.
    terms.implicit("Pred", "PSrc", "x.source()".to_string());
    terms.implicit("PredPair", "PSrc", "x.first.source()".to_string());
    terms.implicit("Regs", "Src", "Src::regs(x)".to_string());
    terms.implicit("Regs", "InstOutput", "output(x)".to_string());
    terms.implicit(
        "Unit",
        "InstOutput",
        "let Unit = x; InstOutput::new()".to_string(),
    );
    terms.0
}

fn of_source(types: &Types, ty: SourceType, carried: Carried, terms: &mut Terms) {
    let (Some(name), Some(kind)) = (ty.name(), ty.kind()) else {
        return;
    };
    let read = made(ty, &format!("self.{}(x)", kind.reads));
    terms.implicit("Value", &name, read);
    for (carries, term, method) in [
        (carried.negate, "minus", "negated"),
        (carried.absolute, "abs", "absolute"),
        (carried.complement, "complement", "complemented"),
    ] {
        if carries {
            let body = made(ty, &format!("x.src().{method}()"));
            let term = format!("{term}{}", ty.suffix());
            terms.named(term, vec![name.clone()], name.clone(), body);
        }
    }
    let (true, Some(words)) = (ty.is_plain(), ty.words()) else {
        return;
    };
    for other in types.with_modifiers(ty) {
        let to = other.name().unwrap_or_default();
        terms.implicit(&name, &to, made(other, "x.src()"));
    }
    if ty == SourceType::Plain(1) && types.sources.contains_key(&SourceType::Half) {
        let to = SourceType::Half.name().unwrap_or_default();
        let body = made(SourceType::Half, "x.src()");
        terms.named("low_half".to_string(), vec![name.clone()], to, body);
    }
    let half = ty.with_words(words / 2);
    if types.sources.contains_key(&half) {
        for (part, first) in [("low", 0), ("high", words / 2)] {
            let body = made(half, &format!("x.src().slice({first}, {})", words / 2));
            let (term, to) = (format!("{part}{}", half.suffix()), half.name());
            terms.named(term, vec![name.clone()], to.unwrap_or_default(), body);
        }
    }
}

fn of_result(types: &Types, result: InRegisters, terms: &mut Terms) {
    let name = result.name();
    let registers = result.registers("x");
    terms.implicit(&name, "InstOutput", format!("output({registers})"));
    let plain = result.source();
    let to = plain.name().unwrap_or_default();
    let source = match result.beside {
        Beside::Nothing => "x.source()",
        _ => "x.regs.source()",
    };
    terms.implicit(&name, &to, source.to_string());
    if let Some((_, term)) = JOINED.iter().find(|(ty, _)| *ty == name) {
        let half = InRegisters {
            words: result.words / 2,
            ..result
        };
        let (low, high) = (half.registers("low"), half.registers("high"));
        let body = format!("{}::from({low}.concat({high}))", result.alone().name());
        let body = match result.beside {
            Beside::Nothing => body,
            _ => format!("{name} {{ regs: {body}, predicate: high.predicate }}"),
        };
        terms.named(term.to_string(), vec![half.name(); 2], name.clone(), body);
    }
    let predicate = match result.beside {
        Beside::Nothing => None,
        Beside::Carry => Some("carry"),
        Beside::Predicate => Some("predicate"),
    };
    if let Some(predicate) = predicate {
        terms.implicit(&name, &result.alone().name(), "x.regs".to_string());
        let term = format!("{predicate}{}_of", result.count());
        let body = "x.predicate.source()".to_string();
        terms.named(term, vec![name], "PSrc".to_string(), body);
        return;
    }
    terms.implicit(&name, "Regs", registers.clone());
    for other in types.with_modifiers(plain) {
        let to = other.name().unwrap_or_default();
        let body = made(other, &format!("Src::regs({registers})"));
        terms.implicit(&name, &to, body);
    }
    if let Some((_, term)) = COUNTED.iter().find(|(ty, _)| *ty == name) {
        let body = format!("{name}::from(x)");
        terms.named(
            term.to_string(),
            vec!["Regs".to_string()],
            name.clone(),
            body,
        );
    }
    let half = InRegisters {
        words: result.words / 2,
        ..result
    };
    if types.results.contains(&half) && !result.uniform {
        let term = if half.words == 1 { "reg" } else { "regs" };
        for (part, first) in [("low", 0), ("high", half.words)] {
            let body = format!(
                "{}::from({registers}.slice({first}, {}))",
                half.name(),
                half.words
            );
            terms.named(
                format!("{part}_{term}"),
                vec![name.clone()],
                half.name(),
                body,
            );
        }
    }
}
