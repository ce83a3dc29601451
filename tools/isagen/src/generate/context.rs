//! The context of ISLE rules: an implementation of the trait that the ISLE compiler generates, whose methods call those
//! of the same names that the type itself has. Nothing of the machine is known here, only the text of compiled rules.

use std::collections::BTreeSet;
use std::fmt::Write;

/// What an implementation is made of.
pub struct Implementation<'t> {
    /// The rules, compiled.
    pub rules: &'t str,
    /// The path of the module that they are in.
    pub module: &'t str,
    /// The type that the trait is implemented for: `Lower<'_>`.
    pub context: &'t str,
    /// Methods of the trait that are written out.
    pub methods: &'t str,
    /// Names of those that macros in `methods` stand for.
    pub from_macros: BTreeSet<&'t str>,
    /// A module of functions that know nothing of the type, by the path and its text: what is called in place of a
    /// method of the same name.
    pub functions: (&'t str, &'t str),
}

/// A method of the trait.
struct Method<'t> {
    name: &'t str,
    /// Names of its arguments behind `self`.
    arguments: Vec<&'t str>,
    /// From the name to the result.
    signature: &'t str,
}

/// The implementation as Rust. A path finds the type's own methods before those of the trait; where it has none, a
/// method would call itself, which is an error.
///
/// # Errors
/// When the rules have no trait, or a line of it is not understood.
pub fn implementation(of: &Implementation<'_>) -> Result<String, String> {
    let mut written: BTreeSet<&str> = of.methods.lines().filter_map(defined).collect();
    written.extend(&of.from_macros);
    let methods = methods(of.rules)?;
    let is_named = |ty: &&str| {
        let mut words = (methods.iter()).flat_map(|m| {
            m.signature
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        });
        words.any(|word| word == *ty)
    };
    let types: Vec<&str> = (of.rules.lines())
        .filter_map(|line| line.strip_prefix("pub enum "))
        .filter_map(|rest| rest.split([' ', '{']).next())
        .filter(is_named)
        .collect();
    let (path, functions) = of.functions;
    let functions: BTreeSet<&str> = functions.lines().filter_map(defined).collect();
    let mut out = String::new();
    let w = &mut out;
    let module = of.module;
    if !types.is_empty() {
        let _ = writeln!(w, "use {module}::{{{}}};\n", types.join(", "));
    }
    let _ = writeln!(
        w,
        "#[deny(unconditional_recursion)]\nimpl {module}::Context for {} {{",
        of.context
    );
    w.push_str(of.methods);
    let head = of.context.split('<').next().unwrap_or_default();
    for method in methods {
        if written.contains(method.name) {
            continue;
        }
        let (name, signature) = (method.name, method.signature);
        let (path, context) = match functions.contains(name) {
            true => (path, None),
            false => (head, Some("self")),
        };
        let arguments: Vec<&str> = context.into_iter().chain(method.arguments).collect();
        let arguments = arguments.join(", ");
        let _ = writeln!(
            w,
            "    #[inline]\n    fn {signature} {{ {path}::{name}({arguments}) }}"
        );
    }
    let _ = writeln!(w, "}}");
    Ok(out)
}

/// The methods of the trait, each of which is a line.
fn methods(rules: &str) -> Result<Vec<Method<'_>>, String> {
    let mut lines = rules.lines();
    if !lines.any(|line| line == "pub trait Context {") {
        return Err("the compiled rules have no trait `Context`".to_string());
    }
    lines
        .take_while(|&line| line != "}")
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .map(|line| {
            method(line).ok_or_else(|| {
                let hint = match line.starts_with("type ") {
                    true => " (a term that gives several results)",
                    false => "",
                };
                format!("`{line}` of the trait of the compiled rules is not understood{hint}")
            })
        })
        .collect()
}

fn method(line: &str) -> Option<Method<'_>> {
    let signature = line.strip_suffix(';')?.strip_prefix("fn ")?;
    let (name, rest) = signature.split_once("(&mut self")?;
    let (list, _) = rest.split_once(") -> ")?;
    let is_name = |word: &str| {
        !word.is_empty() && (word.chars()).all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let arguments = match list {
        "" | ", " => Vec::new(),
        _ => (list.strip_prefix(", ")?.split(", "))
            .map(|argument| {
                let (argument, ty) = argument.split_once(": ")?;
                // A name, or a reference to what one says.
                let ty = ty.strip_prefix('&').unwrap_or(ty);
                (is_name(argument) && is_name(ty)).then_some(argument)
            })
            .collect::<Option<Vec<&str>>>()?,
    };
    is_name(name).then_some(Method {
        name,
        arguments,
        signature,
    })
}

/// The function that a line begins to define.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
    line.strip_prefix("fn ")?.split('(').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(methods: &str) -> Result<String, String> {
        let rules = format!(
            "pub trait Context {{\n{methods}}}\npub enum Rounded {{\n}}\npub enum Other {{\n}}\n"
        );
        implementation(&Implementation {
            rules: &rules,
            module: "super::rules",
            context: "Lower<'_>",
            methods: "    fn written(&mut self) -> Gpr { self.emit() }\n    numbers!();\n",
            from_macros: BTreeSet::from(["u8_add"]),
            functions: ("rules", "pub(crate) fn two(a: Value) -> Two {"),
        })
    }

    #[test]
    fn methods_call_those_of_the_type() {
        let text = "    fn word(&mut self, arg0: Value) -> Word;
    fn zero(&mut self, ) -> Rounded;

    // A comment.
    fn pair(&mut self, arg0: &Object, arg1: Value) -> Option<(Value, Value)>;
    fn written(&mut self) -> Gpr;
    fn u8_add(&mut self, arg0: u8, arg1: u8) -> u8;
    fn two(&mut self, arg0: Value) -> Two;
";
        let expected = "use super::rules::{Rounded};

#[deny(unconditional_recursion)]
impl super::rules::Context for Lower<'_> {
    fn written(&mut self) -> Gpr { self.emit() }
    numbers!();
    #[inline]
    fn word(&mut self, arg0: Value) -> Word { Lower::word(self, arg0) }
    #[inline]
    fn zero(&mut self, ) -> Rounded { Lower::zero(self) }
    #[inline]
    fn pair(&mut self, arg0: &Object, arg1: Value) -> Option<(Value, Value)> { Lower::pair(self, arg0, arg1) }
    #[inline]
    fn two(&mut self, arg0: Value) -> Two { rules::two(arg0) }
}
";
        assert_eq!(made(text).as_deref(), Ok(expected));
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (line, hint) in [
            (
                "type parts_returns: Default + IntoContextIter;",
                "several results",
            ),
            (
                "fn parts(&mut self, arg0: Value, returns: &mut Self::R) -> ();",
                "`fn parts",
            ),
            (
                "fn pairs(&mut self, arg0: (u8, u8)) -> u8;",
                "not understood",
            ),
            ("fn nothing(&self) -> u8;", "not understood"),
        ] {
            let error = made(&format!("    {line}\n")).expect_err(line);
            assert!(error.contains(hint) && error.contains(line), "{error}");
        }
        let none = Implementation {
            rules: "",
            module: "rules",
            context: "Lower",
            methods: "",
            from_macros: BTreeSet::new(),
            functions: ("", ""),
        };
        assert!(implementation(&none).is_err());
    }
}
