//! `#[derive(Element)]`.

use crate::error::Error;
use crate::tokens::{is_ident, is_punct, splice, split_commas};
use proc_macro::{Delimiter, Literal, Span, TokenStream, TokenTree};

pub fn expand(input: TokenStream) -> Result<TokenStream, Error> {
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
                return Err(Error::new(
                    word.span(),
                    "only structures: not every pattern of bits is a value of an enumeration",
                ));
            }
            Some(TokenTree::Ident(word)) if is_struct => break word,
            Some(_) => {}
            None => {
                return Err(Error::new(
                    Span::call_site(),
                    "only structures can be elements",
                ));
            }
        }
    };
    if !has_layout {
        return Err(Error::new(
            name.span(),
            "an element needs a layout that the host knows: #[repr(C)]",
        ));
    }
    if is_punct(tokens.peek(), '<') {
        return Err(Error::new(name.span(), "an element has no type parameters"));
    }
    let fields: Vec<Field> = match tokens.next() {
        Some(TokenTree::Group(group)) => {
            let is_tuple = group.delimiter() == Delimiter::Parenthesis;
            split_commas(group.stream())
                .into_iter()
                .enumerate()
                .map(|(index, tokens)| field(tokens, is_tuple.then_some(index)))
                .collect()
        }
        _ => Vec::new(),
    };
    let name: TokenStream = TokenTree::from(name).into();
    let (mut words, mut moves) = (TokenStream::new(), TokenStream::new());
    for Field { name, ty } in fields {
        words.extend(splice(
            "+ <$ as ::thisgpu_gpu::Element>::WORDS",
            std::slice::from_ref(&ty),
        ));
        moves.extend(splice(
            "self.$ = <$ as ::thisgpu_gpu::Element>::each_word(self.$, through);",
            &[name.clone(), ty, name],
        ));
    }
    Ok(splice(
        "#[automatically_derived]
         #[allow(unsafe_code)]
         // SAFETY: the layout is C's, and the fields are elements, as their words ask for.
         unsafe impl ::thisgpu_gpu::Element for $ {
             const WORDS: usize = 0 $;
             #[inline(always)]
             fn each_word(mut self, through: &impl ::core::ops::Fn(u32) -> u32) -> Self {
                 $
                 self
             }
         }",
        &[name, words, moves],
    ))
}

/// A field of a structure.
struct Field {
    /// Its name, or its number.
    name: TokenStream,
    /// Its type.
    ty: TokenStream,
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
