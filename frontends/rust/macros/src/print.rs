//! `#[derive(Print)]`.

use crate::error::Error;
use crate::structure::{self, Field};
use crate::tokens::{is_ident, is_punct, splice};
use proc_macro::{Literal, TokenStream, TokenTree};

pub fn expand(input: TokenStream) -> Result<TokenStream, Error> {
    let structure = structure::parse(input, "printed", "only structures can be printed so")?;
    let title = TokenTree::from(Literal::string(&structure.name.to_string())).into();
    let name = TokenTree::from(structure.name).into();
    // The parameters without their defaults, and their names; types can be printed.
    let (mut declared, mut named, mut bounds) =
        (TokenStream::new(), TokenStream::new(), TokenStream::new());
    for generic in structure.generics {
        let ends = |token: &TokenTree| !is_punct(Some(token), '=');
        let parameter: Vec<TokenTree> = generic.into_iter().take_while(ends).collect();
        let is_constant = is_ident(parameter.first(), "const");
        let is_lifetime = is_punct(parameter.first(), '\'');
        let start = usize::from(is_constant);
        let end = start + 1 + usize::from(is_lifetime);
        let own: TokenStream = parameter[start..end.min(parameter.len())]
            .iter()
            .cloned()
            .collect();
        if !is_constant && !is_lifetime {
            bounds.extend(splice(
                "$: ::thisgpu_gpu::Print,",
                std::slice::from_ref(&own),
            ));
        }
        named.extend(splice("$,", &[own]));
        declared.extend(splice("$,", &[parameter.into_iter().collect()]));
    }
    let (mut words, mut writes) = (TokenStream::new(), TokenStream::new());
    let count = structure.fields.len();
    for Field { name, .. } in structure.fields {
        let title = match structure.is_tuple {
            true => String::new(),
            // `r#type` is called `type`.
            false => name.to_string().trim_start_matches("r#").to_string(),
        };
        let title: TokenStream = TokenTree::from(Literal::string(&title)).into();
        words.extend(splice(
            "($, ::thisgpu_gpu::Print::printed_words(&self.$)),",
            &[title.clone(), name.clone()],
        ));
        writes.extend(splice(
            "::thisgpu_gpu::Print::print_to($, writer); ::thisgpu_gpu::Print::print_to(&self.$, writer);",
            &[title, name],
        ));
    }
    let text = format!(
        "#[automatically_derived]
         impl<$> ::thisgpu_gpu::Print for $<$> where $ {{
             fn printed_words(&self) -> usize {{
                 ::thisgpu_gpu::print::structure_words($, [$])
             }}
             fn print_to(&self, writer: &mut ::thisgpu_gpu::print::Writer) {{
                 ::thisgpu_gpu::print::begin_structure(writer, $, {count}usize);
                 $
             }}
         }}"
    );
    let title: TokenStream = title;
    let parts = [
        declared,
        name,
        named,
        bounds,
        title.clone(),
        words,
        title,
        writes,
    ];
    Ok(splice(&text, &parts))
}
