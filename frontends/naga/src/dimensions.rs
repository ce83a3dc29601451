//! Arrays of arrays in GLSL, whose dimensions naga 30.0.1 swaps: `a[2][3]` becomes three arrays of two. They are
//! refused.

use crate::error::{Reason, unsupported};
use naga::{Module, Span, TypeInner};

/// Looks at all types of a module that was read from GLSL.
///
/// # Errors
/// An array of arrays, with its place.
pub(crate) fn check(module: &Module) -> Result<(), (Span, Reason)> {
    for (handle, ty) in module.types.iter() {
        let TypeInner::Array { base, .. } = ty.inner else {
            continue;
        };
        if let TypeInner::Array { .. } = module.types[base].inner {
            let reason = unsupported(
                "an array of arrays in GLSL: naga swaps the dimensions; put a structure around the inner array",
            );
            return Err((module.types.get_span(handle), reason));
        }
    }
    Ok(())
}
