//! The flags by which stable rustc emits LLVM IR whose barriers are where the source has them.
//!
//! rustc's own passes over MIR and LLVM's passes duplicate calls, which is wrong for what a warp or block does
//! together. So crates that may have such calls are compiled at opt-level 0, which leaves the MIR alone, and LLVM's
//! passes are named here, with every function *convergent*: LLVM then moves no call to where other threads come by. The
//! switches after that turn off what duplicates or vectorises all the same. They are options of LLVM that nobody
//! promises, which is why the version of rustc is fixed. What the passes did is checked against a compilation without
//! them ([`crate::convergence`]).

/// How much is optimised, as `-C opt-level` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OptLevel {
    /// Nothing but what is always inlined.
    None,
    /// A little.
    Less,
    /// `-O2`.
    More,
    /// `-O3`; what is taken unless said otherwise.
    #[default]
    Aggressive,
    /// For size.
    Size,
    /// For size above all.
    SizeMin,
}

impl OptLevel {
    /// The level of `0`, `1`, `2`, `3`, `s` or `z`.
    pub fn parse(text: &str) -> Option<OptLevel> {
        Some(match text {
            "0" => OptLevel::None,
            "1" => OptLevel::Less,
            "2" => OptLevel::More,
            "3" => OptLevel::Aggressive,
            "s" => OptLevel::Size,
            "z" => OptLevel::SizeMin,
            _ => return None,
        })
    }

    /// Its name: `0` to `3`, `s`, `z`.
    pub fn name(self) -> &'static str {
        match self {
            OptLevel::None => "0",
            OptLevel::Less => "1",
            OptLevel::More => "2",
            OptLevel::Aggressive => "3",
            OptLevel::Size => "s",
            OptLevel::SizeMin => "z",
        }
    }

    /// LLVM's passes.
    fn passes(self) -> String {
        match self {
            // Not part of this level, unlike of the others: what makes functions convergent.
            OptLevel::None => "forceattrs,default<O0>".into(),
            // Slots become values before anything is inlined: the pipeline expects what rustc's own passes would have
            // left.
            _ => format!("function(sroa,early-cse) default<O{}>", self.name()),
        }
    }
}

/// Which of the two compilations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compilation {
    /// What is translated.
    Optimised(OptLevel),
    /// What it is checked against: the same without LLVM's passes.
    Reference,
}

/// Checks that are compiled into the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// `debug_assert!`, and what else asks for `cfg(debug_assertions)`.
    pub debug_assertions: bool,
    /// Arithmetic that overflows panics.
    pub overflow: bool,
}

/// What debug information is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DebugInfo {
    /// Lines, and calls that were inlined: what faults name.
    #[default]
    Lines,
    /// Variables and their types too.
    Variables,
}

/// The flags, one a piece.
pub fn flags(compilation: Compilation, checks: Checks, debug: DebugInfo) -> Vec<String> {
    let switch = |on: bool| if on { "on" } else { "off" };
    let mut flags: Vec<String> = [
        "-Cno-prepopulate-passes",
        "-Ccodegen-units=1",
        "-Cpanic=abort",
        "-Crelocation-model=static",
        "-Cforce-unwind-tables=no",
        "-Cjump-tables=off",
        "-Csymbol-mangling-version=v0",
        "-Cembed-bitcode=no",
        "--emit=llvm-ir",
        "--cfg=thisgpu",
        "--check-cfg=cfg(thisgpu)",
    ]
    .map(String::from)
    .to_vec();
    flags.push(format!(
        "-Cdebuginfo={}",
        match debug {
            // Inlined frames have their places with lines alone.
            DebugInfo::Lines => 1,
            DebugInfo::Variables => 2,
        }
    ));
    flags.push(format!(
        "-Cdebug-assertions={}",
        switch(checks.debug_assertions)
    ));
    flags.push(format!("-Coverflow-checks={}", switch(checks.overflow)));
    if let Compilation::Optimised(level) = compilation {
        flags.push(format!("-Cpasses={}", level.passes()));
        flags.push(format!("-Cllvm-args={}", llvm_arguments()));
    }
    flags
}

/// LLVM's own options.
fn llvm_arguments() -> String {
    let mut arguments = vec![
        "-force-attribute=convergent".to_string(),
        // Branches are not folded by copying what is in front of them, loops not peeled.
        "-simplifycfg-branch-fold-threshold=0".into(),
        "-unroll-peel-max-count=0".into(),
        // Loops whose turns are not counted are unrolled, if at all, by the back end, which knows about lanes.
        "-unroll-runtime=false".into(),
        "-unroll-allow-partial=false".into(),
        "-vectorize-loops=false".into(),
        "-vectorize-slp=false".into(),
        "-inline-threshold=1000".into(),
    ];
    arguments
        .extend(pure_functions().map(|name| format!("-force-remove-attribute={name}:convergent")));
    arguments.join(" ")
}

/// Functions that are not convergent, by name: they only compute.
fn pure_functions() -> impl Iterator<Item = String> {
    const FLOATS: &[&str] = &[
        "sqrt",
        "fma",
        "fmuladd",
        "fabs",
        "copysign",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "nearbyint",
        "round",
        "roundeven",
        "minnum",
        "maxnum",
        "minimum",
        "maximum",
        "minimumnum",
        "maximumnum",
        "sin",
        "cos",
        "exp",
        "exp2",
        "log",
        "log2",
        "log10",
        "pow",
        "canonicalize",
    ];
    const INTEGERS: &[&str] = &[
        "ctpop",
        "ctlz",
        "cttz",
        "bswap",
        "bitreverse",
        "fshl",
        "fshr",
        "umin",
        "umax",
        "smin",
        "smax",
        "abs",
        "uadd.with.overflow",
        "sadd.with.overflow",
        "usub.with.overflow",
        "ssub.with.overflow",
        "umul.with.overflow",
        "smul.with.overflow",
        "uadd.sat",
        "sadd.sat",
        "usub.sat",
        "ssub.sat",
        "ushl.sat",
        "sshl.sat",
    ];
    const WIDTHS: &[&str] = &["i8", "i16", "i32", "i64", "i128"];
    let floats = ["f32", "f64"]
        .iter()
        .flat_map(|ty| FLOATS.iter().map(move |name| format!("llvm.{name}.{ty}")));
    let integers = WIDTHS
        .iter()
        .flat_map(|ty| INTEGERS.iter().map(move |name| format!("llvm.{name}.{ty}")));
    let compares = WIDTHS
        .iter()
        .flat_map(|ty| ["ucmp", "scmp"].map(|name| format!("llvm.{name}.i8.{ty}")));
    let conversions = WIDTHS.iter().flat_map(|to| {
        let from = |float: &'static str| {
            ["fptoui", "fptosi"].map(|name| format!("llvm.{name}.sat.{to}.{float}"))
        };
        ["f32", "f64"]
            .into_iter()
            .flat_map(from)
            .collect::<Vec<_>>()
    });
    let memory = [
        "llvm.assume",
        "llvm.memcpy.p0.p0.i64",
        "llvm.memmove.p0.p0.i64",
        "llvm.memset.p0.i64",
        "memcmp",
        "bcmp",
    ]
    .map(String::from);
    let library = LIBRARY
        .iter()
        .flat_map(|name| [name.to_string(), format!("{name}f")]);
    let intrinsics = crate::pure_intrinsics();
    floats
        .chain(integers)
        .chain(compares)
        .chain(conversions)
        .chain(memory)
        .chain(library)
        .chain(intrinsics)
}

/// Functions of mathematics by their names in C for doubles.
const LIBRARY: &[&str] = &[
    "floor",
    "ceil",
    "trunc",
    "round",
    "rint",
    "nearbyint",
    "roundeven",
    "sqrt",
    "cbrt",
    "fma",
    "exp",
    "exp2",
    "exp10",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "pow",
    "hypot",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "fabs",
    "fmin",
    "fmax",
    "copysign",
    "fmod",
    "ldexp",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_has_none_of_llvms_passes() {
        let flags = |compilation| flags(compilation, Checks::default(), DebugInfo::default());
        let reference = flags(Compilation::Reference);
        let optimised = flags(Compilation::Optimised(OptLevel::Aggressive));
        assert!(
            !reference
                .iter()
                .any(|flag| flag.starts_with("-Cpasses") || flag.starts_with("-Cllvm-args"))
        );
        assert_eq!(optimised[..reference.len()], reference);
        assert!(optimised.contains(&"-Cpasses=function(sroa,early-cse) default<O3>".to_string()));
    }

    #[test]
    fn levels_have_names() {
        for name in ["0", "1", "2", "3", "s", "z"] {
            assert_eq!(OptLevel::parse(name).map(OptLevel::name), Some(name));
        }
        assert_eq!(OptLevel::parse("4"), None);
    }
}
