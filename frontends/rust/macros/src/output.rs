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
    // How each argument is printed: with `{:?}`, and in other ways.
    let mut used = vec![(false, false); given];
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
                            used.push((false, false));
                            values.len() - 1
                        }
                    },
                };
                match specification.ends_with('?') {
                    true => used[index].0 = true,
                    false => used[index].1 = true,
                }
                portable.push_str(&format!("{{{index}:{specification}}}"));
            }
        }
    }
    if let Some(unused) = used.iter().position(|used| *used == (false, false)) {
        return Err(Error::new(
            values[unused].0,
            "no placeholder takes this argument",
        ));
    }

    let number = hash(&portable) as u32;
    let (mut taken, mut names) = (TokenStream::new(), Vec::new());
    for (index, ((_, value), (_, is_displayed))) in values.into_iter().zip(used).enumerate() {
        let trait_of = if is_displayed { "display" } else { "debug" };
        // At the place of the argument, so that an error is there.
        taken.extend(splice(
            &format!("::thisgpu_gpu::print::{trait_of}(&($)),"),
            &[value],
        ));
        names.push(format!("argument_{index}"));
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
    let words: String = (names.iter())
        .map(|name| format!("+ ::thisgpu_gpu::Print::printed_words({name})"))
        .collect();
    let writes: String = (names.iter())
        .map(|name| format!("::thisgpu_gpu::Print::print_to({name}, &mut writer);"))
        .collect();
    let names: String = names.iter().map(|name| format!("{name},")).collect();
    // A `match` keeps what is temporary in the arguments until they are written.
    statements.extend(splice(
        &format!(
            "match ($) {{
                ({names}) => {{
                    if let ::core::option::Option::Some(mut writer) =
                        ::thisgpu_gpu::print::record({number}u32, 0usize {words})
                    {{
                        let _ = &mut writer;
                        {writes}
                    }}
                }}
            }}"
        ),
        &[taken],
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
