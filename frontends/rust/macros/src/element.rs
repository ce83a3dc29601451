//! `#[derive(Element)]`.

use crate::error::Error;
use crate::structure::{self, Field, Structure};
use crate::tokens::splice;
use proc_macro::{TokenStream, TokenTree};

pub fn expand(input: TokenStream) -> Result<TokenStream, Error> {
    let Structure {
        name,
        generics,
        fields,
        has_layout,
        ..
    } = structure::parse(
        input,
        "elements",
        "only structures: not every pattern of bits is a value of an enumeration",
    )?;
    if !has_layout {
        return Err(Error::new(
            name.span(),
            "an element needs a layout that the host knows: #[repr(C)]",
        ));
    }
    if !generics.is_empty() {
        return Err(Error::new(name.span(), "an element has no type parameters"));
    }
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
