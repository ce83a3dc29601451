//! The arguments of an attribute: `name = literal`, `name(list)`, or a word.

use crate::error::Error;
use crate::tokens::{is_punct, split_commas};
use proc_macro::{Span, TokenStream, TokenTree};

/// An argument: its name, its value's text if it has one, and where it is.
pub struct Argument {
    pub name: String,
    pub value: Option<String>,
    pub list: Option<TokenStream>,
    pub span: Span,
}

/// All arguments.
pub fn parse(tokens: TokenStream) -> Result<Vec<Argument>, Error> {
    split_commas(tokens)
        .into_iter()
        .map(|part| {
            let span = part.first().map_or_else(Span::call_site, TokenTree::span);
            let Some(TokenTree::Ident(name)) = part.first() else {
                return Err(Error::new(span, "expected `name = value`"));
            };
            let (value, list) = match &part[1..] {
                [] => (None, None),
                [TokenTree::Group(list)] => (None, Some(list.stream())),
                [sign, value] if is_punct(Some(sign), '=') => (Some(value.to_string()), None),
                _ => return Err(Error::new(span, "expected `name = value`")),
            };
            Ok(Argument {
                name: name.to_string(),
                value,
                list,
                span,
            })
        })
        .collect()
}

impl Argument {
    /// The value as a number in a range.
    pub fn number(&self, range: std::ops::RangeInclusive<u32>) -> Result<u32, Error> {
        let wanted = || {
            let (low, high) = (range.start(), range.end());
            Error::new(
                self.span,
                format!(
                    "`{}` takes a number from {low} to {high}: `{} = {high}`",
                    self.name, self.name
                ),
            )
        };
        let text = self.value.as_deref().ok_or_else(wanted)?;
        let number = text
            .replace('_', "")
            .trim_end_matches("u32")
            .parse()
            .map_err(|_| wanted())?;
        if range.contains(&number) {
            Ok(number)
        } else {
            Err(wanted())
        }
    }

    /// The value as a name in quotes.
    pub fn name_in_quotes(&self) -> Result<String, Error> {
        let text = self.value.as_deref().unwrap_or_default();
        let name = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'))
            .unwrap_or_default();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name {
            Ok(name.to_string())
        } else {
            Err(Error::new(
                self.span,
                format!(
                    "`{}` takes a name in quotes: `{} = \"saxpy_f32\"`",
                    self.name, self.name
                ),
            ))
        }
    }
}
