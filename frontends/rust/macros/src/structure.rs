//! Structures, as derive macros see them.

use crate::error::Error;
use crate::tokens::{in_angle_brackets, is_ident, is_punct, split_commas};
use proc_macro::{Delimiter, Ident, Literal, Span, TokenStream, TokenTree};

/// A structure.
pub struct Structure {
    pub name: Ident,
    /// What stands between `<` and `>` behind its name.
    pub generics: Vec<Vec<TokenTree>>,
    pub fields: Vec<Field>,
    /// Whether its fields have no names.
    pub is_tuple: bool,
    /// Whether it has `#[repr(C)]` or `#[repr(transparent)]`.
    pub has_layout: bool,
}

/// Reads one.
pub fn parse(input: TokenStream, what: &str, no_enumeration: &str) -> Result<Structure, Error> {
    let mut tokens = input.into_iter().peekable();
    let mut has_layout = false;
    while is_punct(tokens.peek(), '#') {
        tokens.next();
        if let Some(TokenTree::Group(attribute)) = tokens.next() {
            let inner: Vec<TokenTree> = attribute.stream().into_iter().collect();
            if let (true, Some(TokenTree::Group(list))) =
                (is_ident(inner.first(), "repr"), inner.get(1))
            {
                has_layout |= list.stream().into_iter().any(|token| {
                    is_ident(Some(&token), "C") || is_ident(Some(&token), "transparent")
                });
            }
        }
    }
    let mut is_struct = false;
    let name = loop {
        match tokens.next() {
            Some(TokenTree::Ident(word)) if word.to_string() == "struct" => is_struct = true,
            Some(TokenTree::Ident(word))
                if matches!(word.to_string().as_str(), "enum" | "union") =>
            {
                return Err(Error::new(word.span(), no_enumeration));
            }
            Some(TokenTree::Ident(word)) if is_struct => break word,
            Some(_) => {}
            None => {
                let message = format!("only structures can be {what}");
                return Err(Error::new(Span::call_site(), message));
            }
        }
    };
    let generics = split_commas(in_angle_brackets(&mut tokens, &mut Vec::new()));
    let mut is_tuple = false;
    let fields = match tokens.next() {
        Some(TokenTree::Group(group)) => {
            is_tuple = group.delimiter() == Delimiter::Parenthesis;
            split_commas(group.stream())
                .into_iter()
                .enumerate()
                .map(|(index, tokens)| field(tokens, is_tuple.then_some(index)))
                .collect()
        }
        _ => Vec::new(),
    };
    Ok(Structure {
        name,
        generics,
        fields,
        is_tuple,
        has_layout,
    })
}

/// A field of a structure.
pub struct Field {
    /// Its name, or its number.
    pub name: TokenStream,
    /// Its type.
    pub ty: TokenStream,
}

/// A field, behind attributes and visibility; the number of one without a name.
fn field(tokens: Vec<TokenTree>, number: Option<usize>) -> Field {
    let mut rest = tokens.as_slice();
    while is_punct(rest.first(), '#') {
        rest = &rest[2..];
    }
    if is_ident(rest.first(), "pub") {
        rest = &rest[1..];
        if matches!(rest.first(), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
            && (number.is_none() || rest.len() > 1)
        {
            rest = &rest[1..];
        }
    }
    let name = match number {
        Some(number) => TokenTree::from(Literal::usize_unsuffixed(number)).into(),
        None => {
            let name = rest.first().cloned().into_iter().collect();
            rest = &rest[rest.len().min(2)..];
            name
        }
    };
    Field {
        name,
        ty: rest.iter().cloned().collect(),
    }
}
