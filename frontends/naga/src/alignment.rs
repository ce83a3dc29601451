//! `@align` of structures that lie in others, which naga 30.0.1 forgets: it knows the alignment of a structure by the
//! types of its members only, and so puts it where it must not be. What is in the text is compared with what became of
//! it; a structure in a wrong place is refused.

use crate::error::{Result, unsupported};
use hashbrown::HashMap;
use naga::proc::Layouter;
use naga::{Handle, Module, Span, Type, TypeInner};

/// The greatest `@align` in each structure of a text, by the structure's name. An alignment that is no number is left
/// out.
fn alignments(text: &str) -> HashMap<String, u32> {
    let words = words(text);
    let mut found: HashMap<String, u32> = HashMap::new();
    let mut inside: Option<&str> = None;
    for (number, word) in words.iter().enumerate() {
        let next = |ahead: usize| words.get(number + ahead).copied().unwrap_or("");
        match *word {
            "struct" => inside = Some(next(1)),
            "}" => inside = None,
            "align" if number > 0 && words[number - 1] == "@" && next(1) == "(" => {
                let number = next(2).trim_end_matches(['u', 'i']).parse::<u32>();
                if let (Some(name), Ok(number)) = (inside, number) {
                    let greatest = found.entry(name.to_string()).or_insert(number);
                    *greatest = number.max(*greatest);
                }
            }
            _ => {}
        }
    }
    found
}

/// Names, numbers and signs of a text, without comments and blanks.
fn words(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let (mut words, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            comment(rest)
        } else if is_part(first) {
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            words.push(&rest[..length]);
            length
        } else {
            if !first.is_whitespace() {
                words.push(&rest[..first.len_utf8()]);
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    words
}

/// The length of a comment that may have others in it.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Looks at all structures of a module that was read from a text.
///
/// # Errors
/// One that is not where its alignment wants it, with its place.
pub(crate) fn check(module: &Module, text: &str) -> std::result::Result<(), (Span, crate::Reason)> {
    let asked = alignments(text);
    let mut layouter = Layouter::default();
    // A module without a layout is refused by the validator.
    if asked.is_empty() || layouter.update(module.to_ctx()).is_err() {
        return Ok(());
    }
    let mut known: HashMap<Handle<Type>, u32> = HashMap::new();
    for (handle, ty) in module.types.iter() {
        let named = ty.name.as_ref().and_then(|name| asked.get(name));
        let mut alignment = (layouter[handle].alignment * 1u32).max(named.copied().unwrap_or(1));
        let checked = match &ty.inner {
            TypeInner::Struct { members, span } => members
                .iter()
                .try_for_each(|member| {
                    let own = known.get(&member.ty).copied().unwrap_or(1);
                    alignment = alignment.max(own);
                    placed(member.offset, own, member.name.as_deref(), ty)
                })
                .and_then(|()| placed(*span, alignment, None, ty)),
            TypeInner::Array { base, stride, .. } => {
                alignment = known.get(base).copied().unwrap_or(1);
                placed(*stride, alignment, None, ty)
            }
            _ => Ok(()),
        };
        checked.map_err(|reason| (module.types.get_span(handle), reason))?;
        known.insert(handle, alignment);
    }
    Ok(())
}

/// Whether an offset is a multiple of an alignment.
fn placed(offset: u32, alignment: u32, member: Option<&str>, ty: &Type) -> Result<()> {
    if alignment == 0 || offset.is_multiple_of(alignment) {
        return Ok(());
    }
    let name = ty.name.as_deref().unwrap_or("an array");
    let member = member
        .map(|member| format!(" of the member `{member}`"))
        .unwrap_or_default();
    Err(unsupported(format!(
        "the offset {offset}{member} in `{name}`, which `@align({alignment})` forbids: naga forgets the alignment of \
         structures in others; put `@align({alignment})` at the member as well"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_and_comments_are_not() {
        let text = "/* struct A { /* @align(4) */ } */ struct B { // @align(8)
            @align(16) x: i32, @size(8) @align( 32u ) y: i32 } struct C { @align(N) x: i32 }";
        let found = alignments(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found["B"], 32);
    }
}
