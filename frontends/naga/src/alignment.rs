//! `@align` of structures that lie in others, which naga 30.0.1 forgets: it knows the alignment of a structure by the
//! types of its members only, and so puts it where it must not be. What is in the text is compared with what became of
//! it; a structure in a wrong place is refused.

use crate::error::{Result, unsupported};
use hashbrown::HashMap;
use naga::proc::Layouter;
use naga::{Handle, Module, Span, Type, TypeInner};

/// The greatest `@align` in each structure of a text, by the structure's name; none if one of them is more than a
/// number.
fn alignments(text: &str) -> HashMap<String, Option<u32>> {
    let words = words(text);
    let mut found: HashMap<String, Option<u32>> = HashMap::new();
    let mut inside: Option<&str> = None;
    for (number, word) in words.iter().enumerate() {
        let next = |ahead: usize| words.get(number + ahead).copied().unwrap_or("");
        match *word {
            "struct" => inside = Some(next(1)),
            "}" => inside = None,
            "align" if number > 0 && words[number - 1] == "@" && next(1) == "(" => {
                let ends = next(3) == ")" || next(3) == "," && next(4) == ")";
                let number = number_of(next(2)).filter(|_| ends);
                if let Some(name) = inside {
                    let greatest = found.entry(name.to_string()).or_insert(Some(1));
                    *greatest = greatest.zip(number).map(|(a, b)| a.max(b));
                }
            }
            _ => {}
        }
    }
    found
}

/// A literal of WGSL.
fn number_of(word: &str) -> Option<u32> {
    let digits = word.trim_end_matches(['u', 'i']);
    match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    }
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
    let mut known: HashMap<Handle<Type>, Option<u32>> = HashMap::new();
    for (handle, ty) in module.types.iter() {
        let named = ty.name.as_ref().and_then(|name| asked.get(name));
        let named = named.copied().unwrap_or(Some(1));
        let mut alignment = named.map(|named| named.max(layouter[handle].alignment * 1u32));
        let checked = match &ty.inner {
            TypeInner::Struct { members, span } => members
                .iter()
                .try_for_each(|member| {
                    let own = known.get(&member.ty).copied().unwrap_or(Some(1));
                    alignment = alignment.zip(own).map(|(a, b)| a.max(b));
                    placed(member.offset, own, member.name.as_deref(), ty)
                })
                // What is not in another structure is where naga puts it.
                .and_then(|()| alignment.map_or(Ok(()), |_| placed(*span, alignment, None, ty))),
            TypeInner::Array { base, stride, .. } => {
                alignment = known.get(base).copied().unwrap_or(Some(1));
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
fn placed(offset: u32, alignment: Option<u32>, member: Option<&str>, ty: &Type) -> Result<()> {
    let name = ty.name.as_deref().unwrap_or("an array");
    let alignment = alignment.ok_or_else(|| {
        unsupported(format!(
            "a structure in `{name}` whose `@align` is more than a number: naga forgets the alignment of structures in \
             others; write it as a number"
        ))
    })?;
    if alignment == 0 || offset.is_multiple_of(alignment) {
        return Ok(());
    }
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
            @align(16) x: i32, @size(8) @align( 32u ) y: i32 } struct C { @align(N) x: i32 }
            struct D { @align(0x10u,) x: i32, @align(8) y: i32 } struct E { @align(8+8) x: i32 }";
        let found = alignments(text);
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!((found["B"], found["D"]), (Some(32), Some(16)));
        assert_eq!((found["C"], found["E"]), (None, None));
    }
}
