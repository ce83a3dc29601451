//! Small help with token trees.

use proc_macro::{Delimiter, Group, Spacing, TokenStream, TokenTree};
use std::iter::Peekable;

/// Tokens of a text that this crate wrote.
pub fn stream(text: &str) -> TokenStream {
    text.parse().unwrap_or_default()
}

/// Tokens of a text in which each `$` stands for the next of `parts`, which keep their places in the source.
pub fn splice(text: &str, parts: &[TokenStream]) -> TokenStream {
    fill(stream(text), &mut parts.iter())
}

fn fill(tokens: TokenStream, parts: &mut std::slice::Iter<'_, TokenStream>) -> TokenStream {
    let mut filled = TokenStream::new();
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '$' => {
                filled.extend(parts.next().cloned());
            }
            TokenTree::Group(group) => {
                // Parts are taken in the order of the text, so the group's come before those behind it.
                let inner = fill(group.stream(), parts);
                filled.extend([TokenTree::Group(Group::new(group.delimiter(), inner))]);
            }
            other => filled.extend([other]),
        }
    }
    filled
}

/// Tokens in braces.
pub fn braced(tokens: TokenStream) -> TokenStream {
    TokenTree::Group(Group::new(Delimiter::Brace, tokens)).into()
}

/// Splits at commas that are in no group and between no `<` and `>`; a last empty part is left out.
pub fn split_commas(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let (mut parts, mut part, mut depth) = (Vec::new(), Vec::new(), 0u32);
    let mut arrow = false;
    for token in tokens {
        if let TokenTree::Punct(punct) = &token {
            match punct.as_char() {
                '<' => depth += 1,
                '>' if !arrow => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    parts.push(std::mem::take(&mut part));
                    continue;
                }
                _ => {}
            }
            // The `>` of `->` and `=>` closes nothing.
            arrow = matches!(punct.as_char(), '-' | '=') && punct.spacing() == Spacing::Joint;
        } else {
            arrow = false;
        }
        part.push(token);
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// Takes `<…>` if it comes next; gives what is inside, and puts all of it to `kept`.
pub fn in_angle_brackets(
    tokens: &mut Peekable<proc_macro::token_stream::IntoIter>,
    kept: &mut Vec<TokenTree>,
) -> TokenStream {
    let (mut depth, mut arrow, mut inside) = (0u32, false, Vec::new());
    while depth > 0 || inside.is_empty() && is_punct(tokens.peek(), '<') {
        let Some(token) = tokens.next() else {
            break;
        };
        kept.push(token.clone());
        // The `>` of `->` closes nothing.
        depth += u32::from(is_punct(Some(&token), '<'));
        depth -= u32::from(is_punct(Some(&token), '>') && !arrow);
        arrow = is_punct(Some(&token), '-');
        inside.push(token);
    }
    inside.pop();
    inside.into_iter().skip(1).collect()
}

/// Whether a token is this character.
pub fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

/// Whether a token is this word.
pub fn is_ident(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident.to_string() == word)
}

/// 64 bits of a text, by which it is known (FNV-1a).
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
