//! Type parameters of kernels, and with which types the device gets them.

use crate::error::Error;
use crate::tokens::{in_angle_brackets, is_ident, is_punct, splice, split_commas, stream};
use proc_macro::{Ident, TokenStream, TokenTree};
use std::iter::Peekable;

/// A parameter of types or constants.
pub struct Generic {
    name: Ident,
    /// The type of a constant.
    constant: Option<TokenStream>,
}

/// A kernel with certain types.
pub struct Instance {
    /// What its symbol ends with; nothing of a kernel without type parameters.
    pub suffix: String,
    /// What gives the parameters their meaning.
    pub aliases: TokenStream,
    /// `::<f32>`, behind the function's name.
    pub arguments: TokenStream,
}

/// Reads `<T: Bound, const N: usize>`, which becomes part of the item, if it is there.
pub fn parse(
    tokens: &mut Peekable<proc_macro::token_stream::IntoIter>,
    kept: &mut Vec<TokenTree>,
) -> Result<Vec<Generic>, Error> {
    split_commas(in_angle_brackets(tokens, kept))
        .into_iter()
        .map(generic)
        .collect()
}

fn generic(tokens: Vec<TokenTree>) -> Result<Generic, Error> {
    let is_constant = is_ident(tokens.first(), "const");
    match tokens.get(usize::from(is_constant)) {
        Some(TokenTree::Ident(name)) => Ok(Generic {
            name: name.clone(),
            constant: is_constant.then(|| {
                let ty = tokens[3.min(tokens.len())..].iter();
                let ty = ty.take_while(|token| !is_punct(Some(token), '='));
                ty.cloned().collect()
            }),
        }),
        token => {
            let span = token.map_or_else(proc_macro::Span::call_site, TokenTree::span);
            Err(Error::new(
                span,
                "a kernel has no lifetime parameters: leave lifetimes away",
            ))
        }
    }
}

/// The instances of a kernel: those of the list, or the kernel itself.
pub fn instances(
    generics: &[Generic],
    name: &Ident,
    list: Option<(proc_macro::Span, TokenStream)>,
) -> Result<Vec<Instance>, Error> {
    let Some((span, list)) = list else {
        if generics.is_empty() {
            return Ok(vec![Instance {
                suffix: String::new(),
                aliases: TokenStream::new(),
                arguments: TokenStream::new(),
            }]);
        }
        let message = "a kernel is compiled before the host that launches it, so it says with which types: \
             `#[kernel(instances(f32, f64))]`, or of several parameters `#[kernel(instances(<f32, 4>, <u64, 2>))]`";
        return Err(Error::new(name.span(), message));
    };
    if generics.is_empty() {
        let message = "the kernel has no type parameters to make instances of";
        return Err(Error::new(span, message));
    }
    let instances = split_commas(list).into_iter().map(|part| {
        let is_bracketed = is_punct(part.first(), '<') && is_punct(part.last(), '>');
        let types = match is_bracketed {
            true => split_commas(part[1..part.len() - 1].iter().cloned().collect()),
            false => vec![part.clone()],
        };
        if types.len() != generics.len() {
            let span = part.first().map_or(span, TokenTree::span);
            let (given, wanted) = (types.len(), generics.len());
            let message =
                format!("an instance has {given} types, and the kernel {wanted} parameters");
            return Err(Error::new(span, message));
        }
        Ok(instance(generics, types))
    });
    let instances: Vec<Instance> = instances.collect::<Result<_, _>>()?;
    match instances.is_empty() {
        true => Err(Error::new(span, "which types? `instances(f32, f64)`")),
        false => Ok(instances),
    }
}

fn instance(generics: &[Generic], types: Vec<Vec<TokenTree>>) -> Instance {
    let (mut suffix, mut aliases, mut arguments) =
        (String::new(), TokenStream::new(), TokenStream::new());
    for (generic, ty) in generics.iter().zip(types) {
        let ty: TokenStream = ty.into_iter().collect();
        let name: TokenStream = TokenTree::from(generic.name.clone()).into();
        for word in ty.to_string().split(|c: char| !c.is_ascii_alphanumeric()) {
            if !word.is_empty() {
                suffix.push('_');
                suffix.push_str(word);
            }
        }
        aliases.extend(match &generic.constant {
            Some(of) => splice("const $: $ = $;", &[name.clone(), of.clone(), ty]),
            None => splice("type $ = $;", &[name.clone(), ty]),
        });
        arguments.extend(splice("$,", &[name]));
    }
    Instance {
        suffix,
        aliases,
        arguments: [stream("::<"), arguments, stream(">")]
            .into_iter()
            .collect(),
    }
}
