//! Kernels of CubeCL to machine code.

use crate::arguments::Arguments;
use crate::cache::cache;
use crate::error::TranslateError;
use crate::translate;
use cranelift_codegen::ir::Function;
use cranelift_thisgpu::launch::Place;
use cranelift_thisgpu::locations::Locations;
use cranelift_thisgpu::{Code, DeviceProperties, KernelOptions, Options};
use cubecl_core::ir::attributes::{BufferIOAttr, buffer_io_by_position};
use cubecl_core::ir::metadata::Info;
use cubecl_core::ir::prelude::{
    AnalysisManager, NestedOpsPass, Op, OpPass, PMConfig, Pass, Passes,
};
use cubecl_core::ir::rewrite::{MatchRewritePass, SimplifyOpsPass};
use cubecl_core::ir::settings::KernelSettings;
use cubecl_core::post_processing::{
    bf16::LowerWideBf16CastPass,
    fp4::LowerFp4Cast,
    minifloat::{Fp8Container, LowerMinifloatCastPass, LowerMinifloatComparePass},
};
use cubecl_core::{CompilationError, Compiler};
use cubecl_environment::backtrace::BackTrace;
use cubecl_opt::passes::{
    alloc_shared_memory::AllocateSharedMemoryBlockPass,
    annotate_buffer_visibility::AnnotateGlobalVisibilityPass, inst_combine::InstCombinePass,
    sccp::SCCPPass, simple_cse::SimpleCSEPass, sroa::SROAPass,
};
use cubecl_server::kernel::KernelDefinition;
use pliron::builtin::ops::{FuncOp, ModuleOp};
use pliron::context::Context;
use pliron::opts::dce::DCEPass;
use pliron::printable::Printable;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Shared memory is given in pieces of so many bytes, the widest access: CubeCL's own kernels look at vectors that
/// begin in the last of them.
const SHARED_STEP: u32 = 16;

/// Translates and compiles kernels.
#[derive(Clone, Debug, Default)]
pub struct ThisgpuCompiler;

/// A compiled kernel.
#[derive(Clone, Debug)]
pub struct CompiledKernel {
    pub(crate) name: String,
    pub(crate) code: Arc<Code>,
    pub(crate) arguments: Arguments,
    /// Shared memory of a cube, in bytes; it may be more than there is, which a launch then says.
    pub(crate) shared_bytes: u32,
    /// The function, for logs.
    function: Arc<Function>,
    /// The operations that it was made of; the lines that its code comes from are their numbers.
    listing: Arc<[String]>,
    /// What it does with each buffer.
    io: Vec<BufferIOAttr>,
    times: Times,
}

/// How long a kernel took to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// CubeCL's own passes.
    pub passes: Duration,
    /// The translation of what they leave to a function of CLIF.
    pub translation: Duration,
    /// From there to machine code.
    pub code: Duration,
    /// Whether all machine code was in the cache, as its counts say, which devices that compile at the same time share.
    pub was_kept: bool,
}

impl CompiledKernel {
    /// The machine code, with what the kernel needs of the device.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// The kernel's symbol.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's operations as CubeCL's passes have left them, one in a line: the file that faults name.
    pub fn listing(&self) -> &[String] {
        &self.listing
    }

    /// How long it took to make.
    pub fn times(&self) -> Times {
        self.times
    }

    /// The line of the listing that a place in the kernel's code comes from, if it is one.
    pub(crate) fn operation(&self, place: &Place) -> Option<&str> {
        let index = (place.location.line as usize).checked_sub(1)?;
        let is_ours = place.function.as_ref() == Some(&self.name);
        let line = self.listing.get(index).filter(|_| is_ours)?;
        Some(line)
    }
}

impl fmt::Display for CompiledKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.function.display().fmt(f)
    }
}

impl Compiler for ThisgpuCompiler {
    type Representation = CompiledKernel;
    type CompilationOptions = ();

    fn compile(
        &mut self,
        kernel: KernelDefinition,
        (): &(),
    ) -> Result<CompiledKernel, CompilationError> {
        let errors = kernel.body.pop_errors();
        if !errors.is_empty() {
            return Err(CompilationError::Validation {
                reason: errors.join("\n"),
                backtrace: BackTrace::capture(),
            });
        }
        // CubeCL's passes hold their own promises by panics, which must not end the thread of the device.
        catch_unwind(AssertUnwindSafe(|| compile(kernel))).unwrap_or_else(|panic| {
            let text = (panic.downcast_ref::<String>().cloned())
                .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            let text = text.unwrap_or_else(|| "a panic without a message".to_string());
            Err(generic(format!("CubeCL's passes failed: {text}")))
        })
    }

    fn buffer_io(kernel: &CompiledKernel) -> Option<Vec<BufferIOAttr>> {
        Some(kernel.io.clone())
    }

    fn extension(&self) -> &'static str {
        "clif"
    }

    fn lang_tag(&self) -> &'static str {
        "clif"
    }
}

fn compile(kernel: KernelDefinition) -> Result<CompiledKernel, CompilationError> {
    let KernelDefinition {
        body,
        info,
        settings,
    } = kernel;
    let (module, entry) = (body.state().module, body.state().entry_func);
    let context = body.into_context();
    let mut context = context.ok_or_else(|| generic("the kernel is still being written"))?;
    let start = Instant::now();
    run_passes(&mut context, module)?;
    let passes = start.elapsed();
    log::trace!("{}", module.disp(&context));
    compile_module(&context, entry, &info, &settings, passes)
}

/// CubeCL's own passes: those that make a kernel smaller, and those that express what the device has not by what it
/// has.
fn run_passes(context: &mut Context, module: ModuleOp) -> Result<(), CompilationError> {
    let mut of_functions = OpPass::<FuncOp, Passes>::default();
    of_functions.add_pass(AllocateSharedMemoryBlockPass);
    of_functions.add_pass(SROAPass);
    of_functions.add_pass(SCCPPass);
    of_functions.add_pass(SimpleCSEPass::with_memory());
    of_functions.add_pass(SimplifyOpsPass::default());
    of_functions.add_pass(InstCombinePass::default());
    of_functions.add_pass(LowerWideBf16CastPass::default());
    of_functions.add_pass(LowerMinifloatCastPass::default());
    of_functions.add_pass(LowerMinifloatComparePass::default());
    of_functions.add_pass(MatchRewritePass(LowerFp4Cast::new(
        true,
        Fp8Container::Bytes,
    )));
    of_functions.add_pass(DCEPass);
    of_functions.add_pass(SROAPass);
    let mut passes = OpPass::<ModuleOp, Passes>::default();
    passes.add_pass(NestedOpsPass::new(of_functions));
    passes.add_pass(AnnotateGlobalVisibilityPass);
    let mut analyses = AnalysisManager::default();
    analyses.set_config(PMConfig::default());
    let ran = passes.run(module.get_operation(), context, &mut analyses);
    ran.map_err(|error| generic(error.disp(context).to_string()))?;
    Ok(())
}

fn compile_module(
    context: &Context,
    entry: FuncOp,
    info: &Info,
    settings: &KernelSettings,
    passes: Duration,
) -> Result<CompiledKernel, CompilationError> {
    let start = Instant::now();
    let name = translate::symbol(entry, context);
    let translation = translate::translate(context, entry, &name, info, settings);
    let translation = translation.map_err(refused)?;
    let shared_bytes = translation.shared_bytes.next_multiple_of(SHARED_STEP);
    let options = KernelOptions {
        shared_bytes: shared_bytes.min(DeviceProperties::ASSIGNED.shared_bytes),
        max_threads: Some(settings.cube_dim.num_elems()),
        ..KernelOptions::default()
    };
    let translated = start.elapsed();
    let cache = cache();
    let counts = || cache.as_ref().map(|cache| (cache.hits(), cache.writes()));
    let before = counts();
    let mut compiler = cranelift_thisgpu::Compiler::new(Options::default());
    compiler.use_cache(cache.clone());
    let lines = Locations::lines_of(format!("{name}.cubecl"));
    compiler.set_locations(Some(Arc::new(lines)));
    let code = compiler.function(&translation.function, Some(options));
    let code = code.map_err(|errors| {
        log::debug!("{}", translation.function.display());
        generic(errors.to_string())
    })?;
    let times = Times {
        passes,
        translation: translated,
        code: start.elapsed() - translated,
        was_kept: before
            .zip(counts())
            .is_some_and(|((hits, writes), now)| now.0 > hits && now.1 == writes),
    };
    Ok(CompiledKernel {
        name,
        code: Arc::new(code),
        shared_bytes: translation.shared_bytes,
        arguments: translation.arguments,
        function: Arc::new(translation.function),
        listing: translation.listing.into(),
        io: buffer_io_by_position(context, entry),
        times,
    })
}

/// What is not translated, as CubeCL's error for it.
fn refused(error: TranslateError) -> CompilationError {
    let (reason, backtrace) = (error.to_string(), BackTrace::capture());
    match error {
        TranslateError::Unsupported(_) => {
            CompilationError::UnsupportedInstruction { reason, backtrace }
        }
        TranslateError::Invalid(_) => CompilationError::Generic { reason, backtrace },
    }
}

fn generic(reason: impl Into<String>) -> CompilationError {
    CompilationError::Generic {
        reason: reason.into(),
        backtrace: BackTrace::capture(),
    }
}
