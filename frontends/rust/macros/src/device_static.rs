//! `#[device_static]`: a static whose symbol and elements the host knows.

use crate::error::Error;
use crate::tokens::{is_ident, is_punct, splice};
use proc_macro::{Delimiter, Literal, Span, TokenStream, TokenTree};

const WANTED: &str =
    "expected `static NAME: TYPE;`, or with a value at first `static NAME: TYPE = VALUE;`";

pub fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    if let Some(argument) = arguments.into_iter().next() {
        return Err(Error::new(argument.span(), "`device_static` takes nothing"));
    }
    let tokens: Vec<TokenTree> = item.into_iter().collect();
    let wrong = |at: usize| {
        let span = tokens.get(at).map_or_else(Span::call_site, TokenTree::span);
        Error::new(span, WANTED)
    };
    let place = tokens
        .iter()
        .position(|token| is_ident(Some(token), "static"));
    let place = place.ok_or_else(|| wrong(0))?;
    let Some(TokenTree::Ident(name)) = tokens.get(place + 1) else {
        return Err(wrong(place + 1));
    };
    if name.to_string() == "mut" {
        return Err(Error::new(
            name.span(),
            "kernels do not write it: leave `mut` away",
        ));
    }
    if !is_punct(tokens.get(place + 2), ':') {
        return Err(wrong(place + 2));
    }
    let rest = &tokens[place + 3..];
    let end = rest.iter().position(|token| is_punct(Some(token), ';'));
    let end = end.ok_or_else(|| wrong(tokens.len()))?;
    let equals = rest[..end]
        .iter()
        .position(|token| is_punct(Some(token), '='));
    let of = |tokens: &[TokenTree]| tokens.iter().cloned().collect::<TokenStream>();
    let ty = &rest[..equals.unwrap_or(end)];
    let value = match equals {
        Some(equals) => splice("new($)", &[of(&rest[equals + 1..end])]),
        None => splice("zeros()", &[]),
    };
    // Elements of an array are the buffer's.
    let element = match ty {
        [TokenTree::Group(array)] if array.delimiter() == Delimiter::Bracket => {
            let inside = array.stream().into_iter();
            inside
                .take_while(|token| !is_punct(Some(token), ';'))
                .collect()
        }
        ty => of(ty),
    };
    let (before, ty) = (of(&tokens[..place]), of(ty));
    let (span, text) = (name.span(), name.to_string());
    let about = format!(
        "name {text}\nat {}:{}\nparameter {text}\n",
        span.file(),
        span.line()
    );
    let (name, about_text): (TokenStream, TokenStream) = (
        TokenTree::from(name.clone()).into(),
        TokenTree::from(Literal::byte_string(about.as_bytes())).into(),
    );
    let device = format!(
        "#[unsafe(export_name = \"__thisgpu_buffer_{text}\")]
         #[allow(unsafe_code)]
         $ static $: ::thisgpu_gpu::DeviceStatic<$> = ::thisgpu_gpu::DeviceStatic::$;
         #[used]
         #[unsafe(export_name = \"__thisgpu_held_{text}\")]
         #[allow(non_upper_case_globals, unsafe_code)]
         static __thisgpu_held_{text}: ::thisgpu_gpu::parameter::Descriptor<1, {length}> = \
         ::thisgpu_gpu::parameter::Descriptor::new([<&[$] as ::thisgpu_gpu::Parameter>::DESCRIPTION], $);",
        length = about.len()
    );
    let host = "$ static $: ::thisgpu_gpu::DeviceStatic<$> = ::thisgpu_gpu::DeviceStatic::$;";
    let parts = [before, name, ty, value];
    let device = splice(&device, &[&parts[..], &[element, about_text]].concat());
    let host = splice(host, &parts);
    Ok(splice(
        "::thisgpu_gpu::__device_or_host! { { $ } { $ } }",
        &[device, host],
    ))
}
