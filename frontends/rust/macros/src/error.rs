//! An error at a place of the source.

use crate::tokens::stream;
use proc_macro::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};

/// What is wrong, and where.
pub struct Error {
    pub span: Span,
    pub message: String,
}

impl Error {
    pub fn new(span: Span, message: impl Into<String>) -> Error {
        Error {
            span,
            message: message.into(),
        }
    }
}

/// The expansion, or the error as rustc's own at its place.
pub fn or_compile_error(expansion: Result<TokenStream, Error>) -> TokenStream {
    expansion.unwrap_or_else(|error| {
        let mut text = Literal::string(&error.message);
        text.set_span(error.span);
        let mut arguments = Group::new(Delimiter::Brace, TokenTree::from(text).into());
        arguments.set_span(error.span);
        let mut tokens: Vec<TokenTree> = stream("::core::compile_error!").into_iter().collect();
        tokens.push(arguments.into());
        for token in &mut tokens {
            token.set_span(error.span);
        }
        tokens.into_iter().collect()
    })
}
