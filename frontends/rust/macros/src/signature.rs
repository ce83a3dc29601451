//! A function as a kernel sees it: attributes, name, parameters.

use crate::error::Error;
use crate::generics::{self, Generic};
use crate::tokens::{is_ident, is_punct, split_commas};
use proc_macro::{Delimiter, Ident, Span, TokenStream, TokenTree};

/// What is known of the function.
pub struct Signature {
    /// Its name.
    pub name: Ident,
    /// Its parameters of types and constants.
    pub generics: Vec<Generic>,
    /// Each parameter's name, for the host, and type.
    pub parameters: Vec<(String, TokenStream)>,
    /// The lines of its documentation.
    pub documentation: Vec<String>,
    /// Whether it has `#[should_panic]`.
    pub should_panic: bool,
    /// The item without that attribute.
    pub item: TokenStream,
}

/// Reads a function that may be a kernel.
pub fn parse(item: TokenStream, what: &str) -> Result<Signature, Error> {
    let mut tokens = item.into_iter().peekable();
    let (mut kept, mut documentation, mut should_panic) = (Vec::new(), Vec::new(), false);
    // Attributes.
    while is_punct(tokens.peek(), '#') {
        let (hash, group) = (tokens.next(), tokens.next());
        if let Some(TokenTree::Group(group)) = &group {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            if is_ident(inner.first(), "should_panic") {
                should_panic = true;
                continue;
            }
            if let (true, Some(TokenTree::Literal(text))) =
                (is_ident(inner.first(), "doc"), inner.get(2))
            {
                documentation.push(crate::format::unescape(&text.to_string()).unwrap_or_default());
            }
        }
        kept.extend(hash.into_iter().chain(group));
    }
    // Visibility and qualifiers, up to `fn`.
    loop {
        match tokens.next() {
            Some(TokenTree::Ident(word)) if word.to_string() == "fn" => {
                kept.push(word.into());
                break;
            }
            Some(TokenTree::Ident(word)) if word.to_string() == "async" => {
                return Err(Error::new(
                    word.span(),
                    format!("{what} cannot be async: nobody polls on the device"),
                ));
            }
            Some(TokenTree::Ident(word))
                if matches!(word.to_string().as_str(), "unsafe" | "const" | "extern") =>
            {
                let message = format!(
                    "{what} is a plain `fn`: the host calls it, and promises nothing; put what is unsafe into a block"
                );
                return Err(Error::new(word.span(), message));
            }
            Some(TokenTree::Ident(word))
                if matches!(
                    word.to_string().as_str(),
                    "struct" | "enum" | "mod" | "impl" | "static" | "trait"
                ) =>
            {
                return Err(Error::new(word.span(), format!("{what} is a function")));
            }
            Some(other) => kept.push(other),
            None => {
                return Err(Error::new(
                    Span::call_site(),
                    format!("{what} is a function"),
                ));
            }
        }
    }
    let Some(TokenTree::Ident(name)) = tokens.next() else {
        return Err(Error::new(
            Span::call_site(),
            format!("{what} is a function with a name"),
        ));
    };
    kept.push(name.clone().into());
    let generics = generics::parse(&mut tokens, &mut kept)?;
    let arguments = match tokens.next() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => group,
        other => {
            let span = other.map_or_else(Span::call_site, |token| token.span());
            return Err(Error::new(
                span,
                format!("{what} is a function with parameters in parentheses"),
            ));
        }
    };
    let parameters = split_commas(arguments.stream())
        .into_iter()
        .map(parameter)
        .collect::<Result<_, _>>()?;
    kept.push(arguments.into());
    let rest: Vec<TokenTree> = tokens.collect();
    // `-> ()` says the same as nothing.
    if is_punct(rest.first(), '-') && rest.get(2).is_some_and(|result| result.to_string() != "()") {
        return Err(Error::new(
            rest[2].span(),
            format!("{what} returns nothing; write results to a `DisjointMut<T>`"),
        ));
    }
    kept.extend(rest);
    Ok(Signature {
        name,
        generics,
        parameters,
        documentation,
        should_panic,
        item: kept.into_iter().collect(),
    })
}

/// A parameter: the last word of its pattern, and its type.
fn parameter(tokens: Vec<TokenTree>) -> Result<(String, TokenStream), Error> {
    let span = tokens.first().map_or_else(Span::call_site, TokenTree::span);
    // The first colon that is not half of `::`.
    let colon = tokens.iter().enumerate().position(|(index, token)| {
        is_punct(Some(token), ':')
            && !is_punct(tokens.get(index + 1), ':')
            && !(index > 0 && is_punct(tokens.get(index - 1), ':'))
    });
    let Some(colon) = colon else {
        return Err(Error::new(
            span,
            "a kernel has no `self`: it is a function of its own, called by the host",
        ));
    };
    let name = tokens[..colon].iter().rev().find_map(|token| match token {
        TokenTree::Ident(word) if !matches!(word.to_string().as_str(), "mut" | "ref") => {
            Some(word.to_string())
        }
        _ => None,
    });
    if let Some(place) = forever(tokens[colon + 1..].iter().cloned().collect()) {
        return Err(Error::new(
            place,
            "memory that the host passes is there as long as the launch: leave `'static` away",
        ));
    }
    Ok((
        name.unwrap_or_else(|| "_".into())
            .trim_start_matches("r#")
            .to_string(),
        tokens[colon + 1..].iter().cloned().collect(),
    ))
}

/// Where a type says `'static`.
fn forever(ty: TokenStream) -> Option<Span> {
    let mut after_quote = false;
    for token in ty {
        match &token {
            TokenTree::Group(group) => {
                if let Some(place) = forever(group.stream()) {
                    return Some(place);
                }
            }
            TokenTree::Ident(word) if after_quote && word.to_string() == "static" => {
                return Some(word.span());
            }
            _ => {}
        }
        after_quote = is_punct(Some(&token), '\'');
    }
    None
}
