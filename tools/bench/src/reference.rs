//! Cranelift's own x86-64 back end.

use anyhow::{Context as _, Result};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::{self, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use std::time::{Duration, Instant};

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
        flags.set("opt_level", "speed")?;
        flags.set("enable_verifier", "false")?;
        let mut builder =
            isa::lookup_by_name("x86_64").context("Cranelift was built without x86-64")?;
        // What the tests use: everything that a current processor has.
        for feature in [
            "has_sse41",
            "has_sse42",
            "has_avx",
            "has_avx2",
            "has_bmi1",
            "has_bmi2",
            "has_lzcnt",
            "has_popcnt",
            "has_fma",
        ] {
            builder.enable(feature)?;
        }
        let isa = builder.finish(settings::Flags::new(flags))?;
        Ok(Reference {
            isa,
            context: cranelift_codegen::Context::new(),
        })
    }

    /// Compiles a function and says how long it took; none when x86-64 does not support it.
    pub fn compile(&mut self, func: &Function) -> Option<Duration> {
        // Unsupported types end in a panic inside Cranelift.
        let context = &mut self.context;
        let isa = &*self.isa;
        let start = Instant::now();
        let compiled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            context.clear();
            context.func = func.clone();
            context.compile(isa, &mut ControlPlane::default()).is_ok()
        }));
        let time = start.elapsed();
        match compiled {
            Ok(true) => Some(time),
            Ok(false) => None,
            Err(_) => {
                self.context = cranelift_codegen::Context::new();
                None
            }
        }
    }
}
