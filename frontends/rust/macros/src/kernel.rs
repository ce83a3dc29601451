//! `#[kernel]`: the function as it is, an entry with the device's calling convention, and what the host reads about it.

use crate::arguments::{self, Argument};
use crate::error::Error;
use crate::generics;
use crate::signature::{self, Signature};
use crate::tokens::{splice, stream};
use proc_macro::{Literal, TokenStream, TokenTree};

/// Threads of a block at most, as the device has it.
pub const MOST_THREADS: u32 = 1024;

pub fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    let signature = signature::parse(item, "a kernel")?;
    let mut symbol = signature
        .name
        .to_string()
        .trim_start_matches("r#")
        .to_string();
    let (mut properties, mut list) = (Vec::new(), None);
    for argument in arguments::parse(arguments)? {
        let Argument { name, span, .. } = &argument;
        match name.as_str() {
            "max_threads" => properties.push(format!(
                "max_threads {}",
                argument.number(1..=MOST_THREADS)?
            )),
            "min_blocks" => properties.push(format!("min_blocks {}", argument.number(1..=32)?)),
            "name" => symbol = argument.name_in_quotes()?,
            "instances" => list = Some((*span, argument.list.unwrap_or_default())),
            _ => {
                return Err(Error::new(
                    *span,
                    format!(
                        "unknown argument `{name}`; there are `max_threads`, `min_blocks`, `name`, `instances`"
                    ),
                ));
            }
        }
    }
    let mut devices = TokenStream::new();
    for instance in generics::instances(&signature.generics, &signature.name, list)? {
        let symbol = format!("{symbol}{}", instance.suffix);
        let device = device(
            &signature,
            &instance.arguments,
            &symbol,
            &symbol,
            &properties,
        );
        devices.extend(match signature.generics.is_empty() {
            true => device,
            // The names of the parameters mean these types here.
            false => splice("const _: () = { $ $ };", &[instance.aliases, device]),
        });
    }
    // Inlined for sure: the entry is then the whole kernel.
    let mut expansion = stream("#[inline(always)]");
    expansion.extend(signature.item);
    expansion.extend(splice("::thisgpu_gpu::__device_only! { $ }", &[devices]));
    Ok(expansion)
}

/// The entry and the descriptor of a function with these types.
pub fn device(
    signature: &Signature,
    types: &TokenStream,
    symbol: &str,
    title: &str,
    properties: &[String],
) -> TokenStream {
    let span = signature.name.span();
    let mut text = format!("name {title}\nat {}:{}\n", span.file(), span.line());
    for property in properties {
        text.push_str(&format!("{property}\n"));
    }
    for (name, _) in &signature.parameters {
        text.push_str(&format!("parameter {name}\n"));
    }
    for line in &signature.documentation {
        text.push_str(&format!("doc {}\n", line.trim_end()));
    }

    let (mut declared, mut passed, mut described) =
        (TokenStream::new(), TokenStream::new(), TokenStream::new());
    for (index, (_, ty)) in signature.parameters.iter().enumerate() {
        // What a parameter is made of: its address or value, and extents.
        let (mut names, parts) = (Vec::new(), ["First", "Second", "Third", "Fourth"]);
        for part in parts {
            let name = format!("{}_{index}", part.to_lowercase());
            declared.extend(splice(
                &format!("{name}: <$ as ::thisgpu_gpu::Parameter>::{part},"),
                std::slice::from_ref(ty),
            ));
            names.push(name);
        }
        passed.extend(splice(
            &format!(
                "<$ as ::thisgpu_gpu::parameter::Received<'_>>::receive(&launch, {}),",
                names.join(", ")
            ),
            std::slice::from_ref(ty),
        ));
        described.extend(splice(
            "<$ as ::thisgpu_gpu::Parameter>::DESCRIPTION,",
            std::slice::from_ref(ty),
        ));
    }
    let name: TokenStream = TokenTree::from(signature.name.clone()).into();
    let entry = format!(
        "#[unsafe(export_name = \"{symbol}\")]
         #[allow(improper_ctypes_definitions, non_snake_case, unused_unsafe, unused_variables, unsafe_code, \
         clippy::all, clippy::pedantic)]
         extern \"C\" fn __thisgpu_entry_{symbol}($) {{
             let launch = ::thisgpu_gpu::parameter::Launch;
             // SAFETY: the host passes what the descriptor says.
             unsafe {{ $ $($) }}
         }}"
    );
    let mut items = splice(&entry, &[declared, name, types.clone(), passed]);
    let descriptor = format!(
        "#[used]
         #[unsafe(export_name = \"__thisgpu_kernel_{symbol}\")]
         #[allow(non_upper_case_globals, unsafe_code)]
         static __thisgpu_descriptor_{symbol}: ::thisgpu_gpu::parameter::Descriptor<{}, {}> = \
         ::thisgpu_gpu::parameter::Descriptor::new([$], $);",
        signature.parameters.len(),
        text.len()
    );
    let text = TokenTree::from(Literal::byte_string(text.as_bytes())).into();
    items.extend(splice(&descriptor, &[described, text]));
    items
}
