//! `shared!`: a static whose symbol says that each block has its own.

use crate::error::Error;
use crate::tokens::{hash, splice};
use proc_macro::{Span, TokenStream};
use std::sync::atomic::{AtomicU32, Ordering};

/// Tells apart what a macro of the user's makes several times at one place.
static MADE: AtomicU32 = AtomicU32::new(0);

pub fn expand(ty: TokenStream) -> Result<TokenStream, Error> {
    let span = Span::call_site();
    if ty.is_empty() {
        return Err(Error::new(span, "which type? `shared!([f32; 256])`"));
    }
    let compiled = |name: &str| std::env::var(name).unwrap_or_default();
    let place = hash(&format!(
        "{} {} {} {} {}",
        compiled("CARGO_PKG_VERSION"),
        span.file(),
        span.line(),
        span.column(),
        MADE.fetch_add(1, Ordering::Relaxed)
    ));
    let symbol = format!(
        "__thisgpu_static_shared_{}_{place:016x}",
        compiled("CARGO_CRATE_NAME")
    );
    // The symbol is visible outside, so that nobody concludes from what this crate does with it what is in it.
    let text = format!(
        "{{
            ::thisgpu_gpu::__device_or_host! {{
                {{
                    #[unsafe(export_name = \"{symbol}\")]
                    #[allow(unsafe_code)]
                    static SHARED: ::thisgpu_gpu::Shared<$> = ::thisgpu_gpu::Shared::uninitialised();
                }}
                {{
                    static SHARED: ::thisgpu_gpu::Shared<$> = ::thisgpu_gpu::Shared::uninitialised();
                }}
            }}
            &SHARED
        }}"
    );
    Ok(splice(&text, &[ty.clone(), ty]))
}
