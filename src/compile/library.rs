//! Functions that front ends call by name without defining them: the C library's memory functions and mathematics, the
//! conversions of f16, and Cranelift's own library calls.
//!
//! They are CLIF (`library/FAMILY.clif`), compiled when a unit calls or takes the address of one that it does not
//! define, with what they call in turn. A function of the unit goes first. The line above a function may be a comment
//! of its other names, with commas between them.

use crate::clif::source::{SourceFile, SourceFunction};
pub use crate::locations::LIBRARY;
use hashbrown::HashMap;
use std::sync::{LazyLock, OnceLock};

/// Functions of one topic, a file.
struct Family {
    /// The name of the file.
    name: &'static str,
    text: &'static str,
    /// Every unit with calls asks for names, few for functions: a file is only parsed then.
    file: OnceLock<SourceFile>,
}

impl Family {
    const fn new(name: &'static str, text: &'static str) -> Self {
        let file = OnceLock::new();
        Self { name, text, file }
    }

    fn functions(&self) -> &[SourceFunction] {
        let file = self.file.get_or_init(|| {
            SourceFile::parse(self.name, self.text)
                .unwrap_or_else(|errors| unreachable!("the library is valid: {errors}"))
        });
        &file.functions
    }
}

/// The families of these names.
macro_rules! families {
    ($($name:literal)*) => {
        static FAMILIES: [Family; [$($name),*].len()] =
            [$(Family::new(concat!($name, ".clif"), include_str!(concat!("library/", $name, ".clif")))),*];
    };
}

families![
    "arithmetic" "conversions" "error_function" "exponential" "inverse_trigonometric" "logarithmic" "memory" "power"
    "remainder" "rounding" "trigonometric"
];

/// By each name of each function its family and position there.
static NAMES: LazyLock<HashMap<&'static str, (&'static Family, usize)>> = LazyLock::new(|| {
    let mut names = HashMap::new();
    for family in &FAMILIES {
        let (mut index, mut above) = (0, "");
        for line in family.text.lines().filter(|line| !line.starts_with(";;")) {
            if let Some(rest) = line.strip_prefix("function %") {
                let name = rest.split('(').next();
                let others = above.split(", ").filter(|name| !name.is_empty());
                names.extend(
                    name.into_iter()
                        .chain(others)
                        .map(|name| (name, (family, index))),
                );
                index += 1;
            }
            above = line.strip_prefix("; ").unwrap_or_default();
        }
    }
    names
});

/// Whether the library has a function of this name.
pub fn provides(name: &str) -> bool {
    NAMES.contains_key(name)
}

/// The function of a name, if the library [`provides`] it. What it calls is in the library as well.
pub fn function(name: &str) -> Option<&'static SourceFunction> {
    let (family, index) = NAMES.get(name)?;
    family.functions().get(*index)
}

/// The file of a function that the library [`provides`], as places in it are named.
pub(super) fn file_of(name: &str) -> Option<String> {
    let (family, _) = NAMES.get(name)?;
    Some(format!("{LIBRARY}/{}", family.name))
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

    /// The names of the functions that come of a text.
    fn compiled(text: &str) -> Vec<String> {
        let code = Compiler::default().compile_clif(text).unwrap();
        let mut names: Vec<String> = code
            .object()
            .functions
            .iter()
            .map(|function| function.name.clone())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_unit_gets_what_it_calls_and_nothing_else() {
        let names = compiled(
            "function %f(f16, i64) -> f32 {
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
        }",
        );
        assert_eq!(names, ["__extendhfsf2", "f", "memset"]);
    }

    #[test]
    fn what_a_function_of_the_library_calls_comes_with_it() {
        let names = compiled(
            "function %f(f64, i32) -> f64 {
            fn0 = %__powidf2(f64, i32) -> f64
        block0(v0: f64, v1: i32):
            v2 = call fn0(v0, v1)
            return v2
        }",
        );
        assert_eq!(names, ["__powidf2", "f", "pow"]);
    }

    #[test]
    fn every_function_compiles_with_what_it_calls() {
        for name in NAMES.keys() {
            let function = function(name).unwrap();
            let signature = function.func.signature.to_string();
            let signature = signature.trim_end_matches(" fast");
            let params: Vec<String> = (function.func.signature.params.iter().enumerate())
                .map(|(index, param)| format!("v{index}: {}", param.value_type))
                .collect();
            let arguments: Vec<String> =
                (0..params.len()).map(|index| format!("v{index}")).collect();
            let results: Vec<String> = (0..function.func.signature.returns.len())
                .map(|index| format!("v{}", 100 + index))
                .collect();
            let results = results.join(", ");
            let names = compiled(&format!(
                "function %caller{signature} {{
                fn0 = %{name}{signature}
            block0({}):
                {results} = call fn0({})
                return {results}
            }}",
                params.join(", "),
                arguments.join(", ")
            ));
            assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
        }
    }
}
