//! `#[kernel_test]`: a kernel without parameters that exists in tests only.

use crate::error::Error;
use crate::kernel::{MOST_THREADS, device};
use crate::tokens::{hash, splice, stream};
use crate::{arguments, signature};
use proc_macro::TokenStream;

pub fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    let signature = signature::parse(item, "a test")?;
    let mut threads = 1;
    for argument in arguments::parse(arguments)? {
        match argument.name.as_str() {
            "threads" => threads = argument.number(1..=MOST_THREADS)?,
            name => {
                return Err(Error::new(
                    argument.span,
                    format!("unknown argument `{name}`; there is `threads`"),
                ));
            }
        }
    }
    if !signature.generics.is_empty() {
        return Err(Error::new(
            signature.name.span(),
            "a test has no parameters of types: nobody would say which",
        ));
    }
    if !signature.parameters.is_empty() {
        return Err(Error::new(
            signature.name.span(),
            "a test has no parameters: nobody would pass any",
        ));
    }
    let name = signature.name.to_string();
    let span = signature.name.span();
    let place = hash(&format!(
        "{}:{}:{}",
        span.file(),
        span.line(),
        span.column()
    ));
    let mut properties = vec![format!("test {threads}")];
    let mut host = TokenStream::new();
    if threads == 1 {
        host.extend(stream("#[test]"));
    } else {
        host.extend(stream("#[allow(dead_code)]"));
    }
    if signature.should_panic {
        properties.push("should_panic".into());
        if threads == 1 {
            host.extend(stream("#[should_panic]"));
        }
    }
    let mut on_device = signature.item.clone();
    on_device.extend(device(
        &signature,
        &TokenStream::new(),
        &format!("test_{name}_{place:016x}"),
        &name,
        &properties,
    ));
    host.extend(signature.item);
    Ok(splice(
        "#[cfg(test)] ::thisgpu_gpu::__device_or_host! { { $ } { $ } }",
        &[on_device, host],
    ))
}
