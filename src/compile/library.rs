//! Functions that front ends call by name without defining them: the C library's memory functions, roundings, the conversions of f16, and
//! Cranelift's own library calls.
//!
//! They are CLIF (`library.clif`), compiled when a unit calls or takes the address of one that it does not define. A function of the unit goes first.

use crate::clif::source::{SourceFile, SourceFunction};
pub use crate::locations::LIBRARY;
use hashbrown::HashMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("library.clif");

/// The functions.
static FILE: LazyLock<SourceFile> = LazyLock::new(|| {
    SourceFile::parse("library.clif", TEXT)
        .unwrap_or_else(|errors| unreachable!("the library is valid: {errors}"))
});

/// By each of their names, which one of the functions it is. Every unit with calls asks for names, few for the functions: those are only parsed then.
static NAMES: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
    let mut names = HashMap::new();
    let (mut index, mut above) = (0, None);
    for line in TEXT.lines().filter(|line| !line.starts_with(";;")) {
        if let Some(rest) = line.strip_prefix("function %") {
            // A single word in the line above the function is Cranelift's name.
            let name = rest.split('(').next();
            names.extend(name.into_iter().chain(above).map(|name| (name, index)));
            index += 1;
        }
        above = (line.strip_prefix("; ")).filter(|comment| !comment.contains(' '));
    }
    names
});

/// Whether the library has a function of this name.
pub fn provides(name: &str) -> bool {
    NAMES.contains_key(name)
}

/// The function of a name, if the library [`provides`] it.
pub(super) fn function(name: &str) -> Option<&'static SourceFunction> {
    NAMES.get(name).map(|&index| &FILE.functions[index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Compiler;
    use cranelift_codegen::ir::LibCall;

    /// Cranelift's library calls but for those of other machines and of thread-local storage.
    #[test]
    fn cranelifts_calls_are_there() {
        for call in LibCall::all_libcalls() {
            let elsewhere = matches!(
                call,
                LibCall::Probestack
                    | LibCall::ElfTlsGetAddr
                    | LibCall::ElfTlsGetOffset
                    | LibCall::X86Pshufb
            );
            let name = call.to_string();
            assert_eq!(provides(&name), !elsewhere, "{name}");
        }
    }

    #[test]
    fn a_unit_gets_what_it_calls_and_nothing_else() {
        let text = "function %f(f16, i64) -> f32 {
            fn0 = %__extendhfsf2(f16) -> f32
            fn1 = %memset(i64, i32, i64) -> i64
        block0(v0: f16, v1: i64):
            v2 = iconst.i32 0
            v3 = call fn1(v1, v2, v1)
            v4 = call fn0(v0)
            return v4
        }
        function %memset(i64, i32, i64) -> i64 {
        block0(v0: i64, v1: i32, v2: i64):
            return v0
        }";
        let code = Compiler::default().compile_clif(text).unwrap();
        let mut names: Vec<&str> = code
            .object()
            .functions
            .iter()
            .map(|function| function.name.as_str())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["__extendhfsf2", "f", "memset"]);
    }
}
