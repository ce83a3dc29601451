//! Cranelift's own x86-64 back end.

use crate::quietly;
use crate::subject::Refusal;
use anyhow::{Context as _, Result};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::{self, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use std::time::{Duration, Instant};

/// What Cranelift is asked for: the same optimisation, no verifier, and signatures with i128 and with many results as
/// this compiler has them.
const SETTINGS: &[(&str, &str)] = &[
    ("opt_level", "speed"),
    ("enable_verifier", "false"),
    ("enable_llvm_abi_extensions", "true"),
    ("enable_multi_ret_implicit_sret", "true"),
];

/// What the tests use: what every current processor has, without AVX-512.
const FEATURES: &[&str] = &[
    "has_sse3",
    "has_ssse3",
    "has_sse41",
    "has_sse42",
    "has_cmpxchg16b",
    "has_avx",
    "has_avx2",
    "has_bmi1",
    "has_bmi2",
    "has_lzcnt",
    "has_popcnt",
    "has_fma",
];

/// A compiler for x86-64 whose context is reused.
pub struct Reference {
    isa: OwnedTargetIsa,
    context: cranelift_codegen::Context,
}

impl Reference {
    /// Optimising as this compiler does, without the verifier.
    ///
    /// # Errors
    /// When Cranelift does not know the settings or the target.
    pub fn new() -> Result<Reference> {
        let mut flags = settings::builder();
        for (name, value) in SETTINGS {
            flags.set(name, value)?;
        }
        let mut builder =
            isa::lookup_by_name("x86_64").context("Cranelift was built without x86-64")?;
        for feature in FEATURES {
            builder.enable(feature)?;
        }
        let isa = builder.finish(settings::Flags::new(flags))?;
        Ok(Reference {
            isa,
            context: cranelift_codegen::Context::new(),
        })
    }

    /// Compiles a function and says how long it took.
    ///
    /// # Errors
    /// Why it did not; unsupported types end in a panic inside Cranelift.
    pub fn compile(&mut self, func: &Function) -> Result<Duration, Refusal> {
        let context = &mut self.context;
        let isa = &*self.isa;
        let start = Instant::now();
        let compiled = quietly(|| {
            context.clear();
            context.func = func.clone();
            context.compile(isa, &mut ControlPlane::default()).is_ok()
        });
        let time = start.elapsed();
        match compiled {
            Some(true) => Ok(time),
            Some(false) => Err(Refusal::Error),
            None => {
                self.context = cranelift_codegen::Context::new();
                Err(Refusal::Panic)
            }
        }
    }
}
