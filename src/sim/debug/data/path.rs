//! Variables and their parts as somebody writes them: `x`, `p.x`, `xs[3]`, `*r`, `(*r).0`.
//!
//! As in Rust, members and elements are looked for in what a reference points to.

use super::{Datum, TypeKind, datum, element, seen, spoken, statics, type_of};
use crate::sim::debug::operand::Look;
use std::fmt;

/// A variable, and the way to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    name: String,
    steps: Vec<Step>,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(u64),
    Pointee,
}

/// Most stars and brackets inside of each other, and references that are followed by themselves.
const DEEPEST: u32 = 32;

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Path {
    /// Reads one; none if the text is none.
    pub fn parse(text: &str) -> Option<Path> {
        let mut rest = text.trim();
        let mut path = Path {
            name: String::new(),
            steps: Vec::new(),
            text: rest.to_owned(),
        };
        path.read(&mut rest, 0)?;
        rest.is_empty().then_some(path)
    }

    /// A star binds less than what stands behind a name, so it is the last step.
    fn read(&mut self, rest: &mut &str, depth: u32) -> Option<()> {
        (depth < DEEPEST).then_some(())?;
        *rest = rest.trim_start();
        if eat(rest, '*') {
            self.read(rest, depth + 1)?;
            self.steps.push(Step::Pointee);
            return Some(());
        }
        if eat(rest, '(') {
            self.read(rest, depth + 1)?;
            eat(rest, ')').then_some(())?;
        } else {
            let name = word(rest)?;
            (!name.starts_with(|c: char| c.is_ascii_digit())).then_some(())?;
            self.name = name.to_owned();
            while let Some(behind) = rest.strip_prefix("::") {
                *rest = behind;
                self.name = format!("{}::{}", self.name, word(rest)?);
            }
        }
        loop {
            if eat(rest, '.') {
                self.steps.push(Step::Member(word(rest)?.to_owned()));
            } else if eat(rest, '[') {
                self.steps.push(Step::Element(word(rest)?.parse().ok()?));
                eat(rest, ']').then_some(())?;
            } else {
                return Some(());
            }
        }
    }

    /// The name of its variable.
    pub fn variable(&self) -> &str {
        &self.name
    }

    /// What it leads to from where a lane is, with a variable of a function that is inlined into so many others, or one
    /// further out.
    ///
    /// # Errors
    /// A variable or part that is not there, or not available, in words.
    pub(in crate::sim::debug) fn resolve(
        &self,
        look: &Look<'_>,
        frame: u32,
        lane: usize,
    ) -> Result<Datum, String> {
        let is_meant = |of: u32, name: &str| of >= frame && name == self.name;
        let found = seen(look).find(|(of, variable)| is_meant(*of, &variable.name));
        let missing = || format!("{self} is not available here");
        let mut found = match found {
            Some((_, variable)) => datum(look, variable, lane).ok_or_else(missing)?,
            None => self.of_statics(look)?,
        };
        for step in &self.steps {
            if found.is_unknown() {
                return Err(missing());
            }
            found = match step {
                Step::Pointee => found.pointee(look, lane).ok_or_else(missing)?,
                Step::Member(name) => {
                    let part = behind(&found, look, lane, &|datum| part(datum, look, lane, name));
                    let none = || format!("{self}: there is no `{name}`, or it is not available");
                    part.ok_or_else(none)?
                }
                Step::Element(index) => {
                    let element =
                        behind(&found, look, lane, &|datum| at(datum, look, lane, *index));
                    element.ok_or_else(|| match length(&found, look, lane) {
                        Some(length) => format!("{self}: there are {length} elements"),
                        None => format!("{self}: there are no elements, or they are not available"),
                    })?
                }
            };
        }
        Ok(found)
    }
}

impl Path {
    /// The static variable of its name, or whose path ends with that.
    fn of_statics(&self, look: &Look<'_>) -> Result<Datum, String> {
        let is_meant = |name: &str| is_named(name, &self.name);
        let mut found: Vec<_> = statics(look).filter(|(name, _)| is_meant(name)).collect();
        if let Some(exact) = found.iter().position(|(name, _)| *name == self.name) {
            found.swap(0, exact);
            found.truncate(1);
        }
        match &found[..] {
            [] => Err(format!("there is no variable `{}` here", self.name)),
            [(_, datum)] => Ok(datum.clone()),
            several => {
                let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
                Err(format!("`{}` is one of {}", self.name, names.join(", ")))
            }
        }
    }
}

/// Whether a path names what somebody has written: all of it, or its last names.
pub(in crate::sim::debug) fn is_named(path: &str, written: &str) -> bool {
    let before = path.strip_suffix(written);
    before.is_some_and(|before| before.is_empty() || before.ends_with("::"))
}

/// How many elements there are in a datum, or in what it points to.
fn length(datum: &Datum, look: &Look<'_>, lane: usize) -> Option<u64> {
    behind(datum, look, lane, &|datum| datum.elements(look, lane))
}

/// What `find` finds in a datum, or in what it points to.
fn behind<T>(
    datum: &Datum,
    look: &Look<'_>,
    lane: usize,
    find: &dyn Fn(&Datum) -> Option<T>,
) -> Option<T> {
    let mut datum = datum.clone();
    for _ in 0..DEEPEST {
        if let Some(found) = find(&datum) {
            return Some(found);
        }
        datum = datum.pointee(look, lane)?;
    }
    None
}

fn part(datum: &Datum, look: &Look<'_>, lane: usize, name: &str) -> Option<Datum> {
    if matches!(type_of(look, datum.ty)?.kind, TypeKind::Pointer(_)) {
        return None;
    }
    let datum = &datum.content(look);
    // Of what is shown by its elements, the pointer and the length can be asked for.
    let parts = match &type_of(look, datum.ty)?.kind {
        TypeKind::Structure(members, None) => datum.members(look, members),
        _ => datum.parts(look, 0, lane),
    };
    let found = parts.into_iter().find(|(part, _)| part == spoken(name));
    found.map(|(_, datum)| datum)
}

fn at(datum: &Datum, look: &Look<'_>, lane: usize, index: u64) -> Option<Datum> {
    let datum = &datum.content(look);
    if let Some((first, ty, count)) = datum.slice(look, lane) {
        return (index < count).then(|| element(look, first, ty, index))?;
    }
    let TypeKind::Array(ty, count) = type_of(look, datum.ty)?.kind else {
        return None;
    };
    (index < count).then(|| datum.of_array(look, ty, index))?
}

fn eat(rest: &mut &str, sign: char) -> bool {
    match rest.trim_start().strip_prefix(sign) {
        Some(behind) => {
            *rest = behind;
            true
        }
        None => false,
    }
}

/// A name or a number.
fn word<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let text = rest.trim_start();
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    let (word, behind) = text.split_at(end);
    *rest = behind;
    (!word.is_empty()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_in_rust() {
        let path = Path::parse("*p.x[3]").unwrap();
        let steps = [Step::Member("x".into()), Step::Element(3), Step::Pointee];
        assert_eq!((path.name.as_str(), &path.steps[..]), ("p", &steps[..]));
        let path = Path::parse(" ( *r ) . 0 ").unwrap();
        let steps = [Step::Pointee, Step::Member("0".into())];
        assert_eq!((path.name.as_str(), &path.steps[..]), ("r", &steps[..]));
        for wrong in [
            "", "3", "a.", "a[", "a[x]", "a b", "(a", "a)", "**", "a..b", "a[-1]", "a::", "a:b",
        ] {
            assert_eq!(Path::parse(wrong), None, "{wrong}");
        }
        let path = Path::parse("a::B.0").unwrap();
        assert_eq!(path.name, "a::B");
        assert!(is_named("a::B", "B") && is_named("a::B", "a::B") && !is_named("a::AB", "B"));
    }
}
