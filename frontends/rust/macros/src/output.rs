//! `print!` and `println!`: the format becomes a text that the host finds, the arguments go to the buffer as they are.

use crate::error::Error;
use crate::format::{self, Argument, Piece};
use crate::tokens::{braced, hash, is_punct, splice, split_commas, stream};
use proc_macro::{Ident, Literal, Span, TokenStream, TokenTree};

pub fn expand(input: TokenStream, end: &str) -> Result<TokenStream, Error> {
    let mut parts = split_commas(input).into_iter();
    let first = parts.next().unwrap_or_default();
    let span = first.first().map_or_else(Span::call_site, TokenTree::span);
    let mut text = match first.as_slice() {
        [] => String::new(),
        [literal] => format::unescape(&literal.to_string())
            .ok_or_else(|| Error::new(span, "the format is a string literal"))?,
        _ => return Err(Error::new(span, "the format is a string literal")),
    };
    text.push_str(end);
    let pieces = format::pieces(&text).map_err(|message| Error::new(span, message))?;

    let (mut values, mut names) = (Vec::new(), Vec::new());
    for part in parts {
        let named = is_punct(part.get(1), '=') && !is_punct(part.get(2), '=');
        match (named, part.first()) {
            (true, Some(TokenTree::Ident(name))) => {
                names.push((name.to_string(), values.len()));
                values.push((
                    part[0].span(),
                    part[2..].iter().cloned().collect::<TokenStream>(),
                ));
            }
            (_, Some(token)) => values.push((token.span(), part.iter().cloned().collect())),
            (_, None) => {
                return Err(Error::new(
                    span,
                    "an argument is missing between two commas",
                ));
            }
        }
    }
    let given = values.len();
    let mut used = vec![false; given];
    let mut portable = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => portable.push_str(&text.replace('{', "{{").replace('}', "}}")),
            Piece::Placeholder(argument, specification) => {
                let index = match argument {
                    Argument::Number(number) if number < given => number,
                    Argument::Number(number) => {
                        return Err(Error::new(
                            span,
                            format!("the format wants argument {number}, and there are {given}"),
                        ));
                    }
                    Argument::Name(name) => match names.iter().find(|known| known.0 == name) {
                        Some(known) => known.1,
                        None => {
                            let variable = TokenTree::from(Ident::new(&name, span)).into();
                            names.push((name, values.len()));
                            values.push((span, variable));
                            values.len() - 1
                        }
                    },
                };
                if let Some(used) = used.get_mut(index) {
                    *used = true;
                }
                portable.push_str(&format!("{{{index}:{specification}}}"));
            }
        }
    }
    if let Some(unused) = used.iter().position(|used| !used) {
        return Err(Error::new(
            values[unused].0,
            "no placeholder takes this argument",
        ));
    }

    let number = hash(&portable) as u32;
    let mut arguments = TokenStream::new();
    for (_, value) in values {
        arguments.extend(splice("::thisgpu_gpu::print::argument(&($)),", &[value]));
    }
    let mut statements = splice(
        &format!(
            "::thisgpu_gpu::__device_only! {{
                #[used]
                #[unsafe(export_name = \"__thisgpu_format_{number:08x}_{:016x}\")]
                #[allow(unsafe_code)]
                static FORMAT: [u8; {}] = *$;
            }}",
            place(span),
            portable.len()
        ),
        &[TokenTree::from(Literal::byte_string(portable.as_bytes())).into()],
    );
    statements.extend(splice(
        &format!("::thisgpu_gpu::print::record({number}u32, [$]);"),
        &[arguments],
    ));
    let mut expansion = stream("");
    expansion.extend(braced(statements));
    Ok(expansion)
}

/// Tells one text of a format from another one of the same: symbols must differ.
fn place(span: Span) -> u64 {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    hash(&format!(
        "{package} {}:{}:{}",
        span.file(),
        span.line(),
        span.column()
    ))
}
