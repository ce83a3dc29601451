//! The compiler: CLIF in, [`Code`] out.
//!
//! [`Pass`] lists the passes. Those on CLIF are rows of `clif::pipeline`; the others are the steps of `numbered`, in
//! order: each takes one type and returns the next. Every type between passes prints (`--dump-after`) and verifies
//! itself (after each pass in debug builds, or with `--set verify=true`), each pass can be the last (`--stop-after`),
//! and those without which code is only slower can be left out (`--skip`).
//! Functions are compiled one by one into a [`Unit`]; memory is kept from one to the next. All unsupported items of a
//! text are reported together.

#[cfg(feature = "cache")]
mod cache;
mod code;
mod finish;
pub mod library;
mod parallel;
mod resources;
mod stages;
pub(crate) mod summaries;
mod time_trace;
mod unit;
mod watch;

pub use crate::clif::source::{KernelOptions, SourceFile, SourceFunction};
pub use crate::object::RECURSION_BYTES;
pub use crate::passes::Pass;
pub use crate::remarks::Remark;
pub use crate::report::model::FunctionCycles;
pub use crate::warning::Warning;
#[cfg(feature = "cache")]
pub use cache::{Cache, CacheKey, CacheStore};
pub use code::{Code, KernelRef};
pub use resources::KernelResources;
pub use time_trace::{PassSlice, TimeTrace};
pub use unit::Unit;
pub use watch::{Dump, DumpSink, Timings};

use crate::analysis::Facts;
use crate::clif::{self, Preparer};
use crate::emit::{self, Constants};
use crate::error::{Error, Errors, Place, Problem};
use crate::hazards::program::Program;
use crate::locations::Locations;
use crate::object::Linkage;
use crate::remarks::Remarks;
use crate::sched::control::Waiting;
use crate::settings::Options;
use crate::values;
use crate::variables::{self, Assignment, Variables};
use crate::vcode::FunctionKind;
use crate::{lower, regalloc, report, sched, simt};
use cranelift_codegen::ir::{ExternalName, Function, Signature, UserExternalName};
use hashbrown::HashMap;
use stages::Analyzed;
use std::sync::Arc;
use summaries::Summaries;
use time_trace::Recorder;
use unit::Compiled;
use watch::{Halt, Watch};

/// A function to compile, and what surrounds it.
#[derive(Clone, Copy)]
pub struct FunctionInput<'a> {
    /// The function.
    pub func: &'a Function,
    /// Its symbol.
    pub name: &'a str,
    /// What the kernel mark says; `None` for a device function.
    pub kernel: Option<KernelOptions>,
    /// Who sees the symbol.
    pub linkage: Linkage,
    /// Symbols of the functions and data that the embedding knows by number; a name without one is `u0:1` for itself.
    pub namer: &'a (dyn Fn(&UserExternalName) -> Option<String> + Sync),
}

impl<'a> FunctionInput<'a> {
    /// A function of a text.
    pub fn of_source(function: &'a SourceFunction, name: &'a str) -> Self {
        Self {
            func: &function.func,
            name,
            kernel: function.kernel,
            linkage: Linkage::Global,
            namer: &|_| None,
        }
    }

    /// What it is, with the signature that it has at last.
    fn kind(&self, signature: &Signature) -> FunctionKind {
        match self.kernel {
            Some(kernel) => FunctionKind::Kernel(unit::kernel_info(signature, kernel)),
            None => FunctionKind::Device,
        }
    }

    /// The symbol of an external name.
    fn symbol(&self, name: &ExternalName) -> String {
        match name {
            ExternalName::User(reference) => {
                let user = &self.func.params.user_named_funcs()[*reference];
                (self.namer)(user).unwrap_or_else(|| user.to_string())
            }
            ExternalName::TestCase(name) => String::from_utf8_lossy(name.raw()).into_owned(),
            ExternalName::LibCall(call) => call.to_string(),
            ExternalName::KnownSymbol(symbol) => symbol.to_string(),
        }
    }
}

/// Compiles functions, one after the other.
#[derive(Default)]
#[must_use = "a compiler does nothing until it is given functions"]
pub struct Compiler {
    options: Options,
    preparer: Preparer,
    facts: Facts,
    lowering: lower::Scratch,
    ordering: sched::order::OrderBuffers,
    allocation: regalloc::AllocationBuffers,
    emission: emit::EmitBuffers,
    watch: Watch,
    /// Passes that are left out.
    skip: Vec<Pass>,
    #[cfg(feature = "cache")]
    cache: Option<Arc<Cache>>,
    locations: Option<Arc<Locations>>,
    variables: Option<Arc<Variables>>,
    /// Whether the verifier has seen the functions already.
    verified: bool,
}

impl Compiler {
    /// A compiler with these settings.
    pub fn new(options: Options) -> Self {
        let watch = Watch {
            verify: options.verify,
            ..Watch::default()
        };
        Self {
            options,
            watch,
            ..Self::default()
        }
    }

    /// The settings.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Hands the text of every function to `sink` after each of `passes`.
    pub fn dump_after(&mut self, passes: &[Pass], sink: DumpSink) {
        self.watch.dumps = passes.to_vec();
        self.watch.sink = Some(sink);
    }

    /// Compiles from now on no further than to the end of a pass, or to the end again. Nothing is added to units then,
    /// and nothing is taken from a cache; dumps show what there is.
    pub fn stop_after(&mut self, pass: Option<Pass>) {
        self.watch.last = pass;
    }

    /// Leaves these passes out from now on, and no others. Nothing is taken from a cache then.
    ///
    /// # Errors
    /// Code would be wrong without one of them, which is named; nothing changes then.
    pub fn skip(&mut self, passes: &[Pass]) -> Result<(), Error> {
        let required = passes.iter().find_map(|pass| pass.check_optional().err());
        if let Some(message) = required {
            let name = "skip".to_owned();
            return Err(Error::new(
                Problem::Setting { name, message },
                Place::default(),
            ));
        }
        self.skip = passes.to_vec();
        Ok(())
    }

    /// Has dumps say from now on where instructions come from, or no longer ([`Dump::text`]).
    pub fn dump_sources(&mut self, on: bool) {
        self.watch.sources = on;
    }

    /// Has dumps after [`Pass::Control`] report from now on what there is to see of the code, or no longer
    /// ([`Dump::report`]).
    pub fn report_code(&mut self, on: bool) {
        self.watch.reports = on;
    }

    /// Collects remarks on what was not done from now on, or no longer: [`Code::remarks`].
    pub fn collect_remarks(&mut self, on: bool) {
        self.watch.remarks = on;
    }

    /// Finds from now on how long the blocks of functions take, or no longer: [`Code::cycles`].
    pub fn model_cycles(&mut self, on: bool) {
        self.watch.cycles = on;
    }

    /// Says what the numbers in `srcloc` of what is compiled from now on stand for; with none, they are lines, those of
    /// a text lines of its file.
    pub fn set_locations(&mut self, locations: Option<Arc<Locations>>) {
        self.locations = locations;
    }

    /// Says what variables of the front end are in what is compiled from now on, where `value_locations` is set.
    pub fn set_variables(&mut self, variables: Option<Arc<Variables>>) {
        self.variables = variables;
    }

    /// Counts the time of every pass from now on, or no longer. It is not counted unless asked for.
    pub fn time_passes(&mut self, on: bool) {
        self.watch.timed = on;
    }

    /// Time spent so far, while it was counted ([`Compiler::time_passes`]).
    pub fn timings(&self) -> &Timings {
        &self.watch.timings
    }

    /// Records from now on when each pass runs over each function, or no longer; what was recorded before is dropped.
    /// With `false`, which is the beginning, it costs nothing.
    pub fn record_passes(&mut self, on: bool) {
        self.watch.recorder = on.then(Recorder::new);
    }

    /// What was recorded so far, of all threads; none if recording is off ([`Compiler::record_passes`]). Functions of
    /// the library that are added in the end are not in it.
    pub fn time_trace(&self) -> Option<&TimeTrace> {
        self.watch.recorder.as_ref().map(Recorder::trace)
    }

    /// Compiles a CLIF text.
    ///
    /// # Errors
    /// Everything that is wrong or unsupported in any of its functions. Of a function that cannot be read it is the
    /// first mistake.
    pub fn compile_clif(&mut self, text: &str) -> Result<Code, Errors> {
        self.file(&SourceFile::parse_partly("<clif>", text))
    }

    /// Compiles all functions of a file.
    ///
    /// # Errors
    /// Everything that is wrong or unsupported in any of them.
    pub fn file(&mut self, file: &SourceFile) -> Result<Code, Errors> {
        self.file_on(file, 1)
    }

    /// [`Compiler::file`] on so many threads; see [`Compiler::compile_module`].
    ///
    /// # Errors
    /// As [`Compiler::file`], in the same order.
    pub fn file_on(&mut self, file: &SourceFile, threads: usize) -> Result<Code, Errors> {
        let given = self.locations.clone();
        self.locations
            .get_or_insert_with(|| Arc::new(Locations::lines_of(&*file.name)));
        let code = self.file_located(file, threads);
        self.locations = given;
        code
    }

    /// Takes a file from the cache, where there is one, or compiles it.
    fn file_located(&mut self, file: &SourceFile, threads: usize) -> Result<Code, Errors> {
        let names: Vec<String> = file.functions.iter().map(SourceFunction::name).collect();
        let inputs: Vec<FunctionInput<'_>> = (file.functions.iter().zip(&names))
            .map(|(function, name)| FunctionInput::of_source(function, name))
            .collect();
        // What is wrong with a text is not in the key.
        #[cfg(feature = "cache")]
        if !file.is_partial()
            && let Some(cache) = self.cache_in_use()
        {
            return self.file_kept(&cache, file, &inputs, threads);
        }
        self.file_afresh(file, &inputs, threads)
    }

    /// Compiles all functions of a file without a look at the cache.
    fn file_afresh(
        &mut self,
        file: &SourceFile,
        inputs: &[FunctionInput<'_>],
        threads: usize,
    ) -> Result<Code, Errors> {
        let mut unit = Unit::new();
        unit.announce_file(file);
        let mut lines: HashMap<&str, u32> = HashMap::new();
        // By function, the line of an earlier one of its name.
        let twice: Vec<Option<u32>> = (file.functions.iter().zip(inputs))
            .map(|(function, input)| lines.insert(input.name, function.line))
            .collect();
        let once: Vec<FunctionInput<'_>> = (inputs.iter().zip(&twice))
            .filter(|(_, twice)| twice.is_none())
            .map(|(input, _)| *input)
            .collect();
        let mut compiled = self.compile_all(&once, &mut unit, threads).into_iter();
        let mut errors = file.faults.clone();
        for ((function, input), twice) in file.functions.iter().zip(inputs).zip(twice) {
            if let Some(first) = twice {
                let message = format!("%{} is defined twice, first in line {first}", input.name);
                let place = Place::default().at_line(function.line);
                errors.push(Error::new(Problem::Syntax(message), place));
            } else if let Some(Err(found)) = compiled.next() {
                errors.extend(found.or_at_line(function.line));
            }
        }
        errors
            .in_order_of_lines()
            .finish(())
            .and_then(|()| unit.finish())
            .map(|code| code.with_text(file))
            .map_err(|errors| errors.in_file(&file.name).with_text(&file.text))
    }

    /// Compiles one function; `kernel` makes it a kernel.
    ///
    /// # Errors
    /// Everything that is wrong or unsupported in it.
    pub fn function(
        &mut self,
        func: &Function,
        kernel: Option<KernelOptions>,
    ) -> Result<Code, Errors> {
        let name = func.name.to_string();
        let name = name.trim_start_matches('%');
        let input = FunctionInput {
            func,
            name,
            kernel,
            linkage: Linkage::Global,
            namer: &|_| None,
        };
        let mut unit = Unit::new();
        unit.announce(&[input]);
        self.compile_function(&input, &mut unit)?;
        unit.finish()
    }

    /// Whether a function can be compiled, as far as that is known without those that it calls.
    ///
    /// # Errors
    /// What the verifier finds, and all wrong signatures and uses of intrinsics.
    #[cfg(feature = "module")]
    pub(crate) fn check(&self, input: &FunctionInput<'_>) -> Result<(), Errors> {
        let given = PassSelection::default();
        let checked = with_options(
            input,
            &Summaries::default(),
            &self.options,
            &given,
            |given| clif::check(input.func, given),
        );
        let locations = self.locations.clone().unwrap_or_default();
        checked.map_err(|errors| errors.located(&locations))
    }

    /// [`Compiler::compile_module`] of functions that the verifier has seen ([`Compiler::check`]); gives what became of
    /// each.
    #[cfg(feature = "module")]
    pub(crate) fn compile_verified(
        &mut self,
        functions: &[FunctionInput<'_>],
        unit: &mut Unit,
        threads: usize,
    ) -> Vec<Result<(), Errors>> {
        unit.announce(functions);
        self.verified = true;
        let compiled = self.compile_all(functions, unit, threads);
        self.verified = false;
        compiled
    }

    /// Compiles one function into `unit`.
    ///
    /// # Errors
    /// Everything that is wrong or unsupported in it; nothing is added to `unit` then.
    pub fn compile_function(
        &mut self,
        input: &FunctionInput<'_>,
        unit: &mut Unit,
    ) -> Result<(), Errors> {
        if let Some(compiled) = self.passes(input, &unit.summaries, unit.room())? {
            unit.push(compiled);
        }
        Ok(())
    }

    /// The passes; none if they are to stop before the end. Constants may take `room` bytes of the constant bank.
    fn passes(
        &mut self,
        input: &FunctionInput<'_>,
        summaries: &Summaries,
        room: u32,
    ) -> Result<Option<Compiled>, Errors> {
        let mut locations = self.locations.clone().unwrap_or_default();
        let start = self.watch.enter(input.name);
        if cfg!(feature = "trace-rules") {
            log::debug!("compile {}", input.name);
        }
        #[cfg(feature = "cache")]
        let compiled = match self.cache_in_use() {
            Some(cache) => self.kept(&cache, input, summaries, room),
            None => self.numbered(input, summaries, room),
        };
        #[cfg(not(feature = "cache"))]
        let compiled = self.numbered(input, summaries, room);
        self.watch.leave(start);
        if let Some(sources) = self.preparer.tracking.end() {
            locations = Arc::new(sources.located(&locations));
        }
        let mut compiled = match compiled {
            Ok(compiled) => compiled,
            Err(Halt::Stopped) => return Ok(None),
            Err(Halt::Failed(errors)) => return Err(errors.located(&locations)),
        };
        compiled.locate(&locations);
        compiled.variables.clone_from(&self.variables);
        Ok(Some(compiled))
    }

    /// The passes, with numbers for places in the source.
    fn numbered(
        &mut self,
        input: &FunctionInput<'_>,
        summaries: &Summaries,
        room: u32,
    ) -> Result<Compiled, Halt> {
        let Self {
            options,
            preparer,
            facts,
            lowering,
            ordering,
            allocation,
            emission,
            watch,
            skip,
            #[cfg(feature = "cache")]
                cache: _,
            locations,
            variables,
            verified,
        } = self;
        let name = input.name;
        let mut constants = Constants::with_room(room);
        let limit = summaries.register_limit(input.kernel);

        preparer.remarks = Remarks::new(watch.remarks);
        let given = PassSelection {
            verified: *verified,
            skip,
            stop_after: watch.last,
            assignments: variables
                .as_ref()
                .map_or(&[], |variables| variables.assignments(name)),
        };
        let prepared = prepare(input, summaries, options, &given, preparer, watch)?;
        let mut remarks = std::mem::take(&mut preparer.remarks);
        let analyzed = watch.pass(Pass::Analyze, name, || Ok(Analyzed::of(&prepared, facts)))?;
        let code = watch.pass(Pass::Lower, name, || {
            let kind = input.kind(&prepared.func.signature);
            let names = |name: &ExternalName| input.symbol(name);
            let tables = |name: &str| summaries.table(name).cloned();
            let input = analyzed.input(name, kind, &names, &tables, options, &preparer.tracking);
            lower::lower(&input, lowering, &mut constants, &mut remarks)
        })?;
        preparer.recycle(prepared);
        let program = watch.verifies().then(|| Program::of(&code)).flatten();
        let code = watch.pass(Pass::Converge, name, || {
            simt::run(code, &mut constants, options.if_convert, &mut remarks)
                .map_err(|error| stages::simt_error(name, &error))
        })?;
        let code = watch.pass(Pass::Order, name, || {
            Ok(match stages::waiting(options) {
                Waiting::Needed if options.reorder && !skip.contains(&Pass::Order) => {
                    let registers = stages::allocation(options, limit).gpr_limit;
                    sched::order::order(code, registers, ordering)
                }
                Waiting::Needed | Waiting::Serial => code,
            })
        })?;
        let mut source = regalloc::AllocationSummary::default();
        let mut places = regalloc::locations::Places::default();
        let code = watch.pass(Pass::Allocate, name, || {
            let allocated =
                regalloc::allocate(code, &stages::allocation(options, limit), allocation);
            let allocated = allocated.map_err(|error| stages::allocation_error(name, &error))?;
            source = allocated.report.source;
            allocated.report.remark(&mut remarks);
            places = allocated.places;
            Ok(allocated.code)
        })?;
        watch.timings.count_registers(source);
        let conventions = watch.reports.then(|| report::Conventions::of(&code));
        let code = watch.pass(Pass::Layout, name, || {
            let code = emit::layout(code, emission);
            let mut code = code.map_err(|error| watch::internal(name, error.to_string()))?;
            if let Some(sources) = preparer.tracking.sources() {
                code.values = values::ranges::ranges(&code, &places, &sources);
                if let (Some(locations), Some(variables)) = (locations, variables) {
                    code.scopes = variables::scopes::scopes(
                        &code,
                        &sources,
                        locations,
                        variables,
                        !options.optimizes(),
                    );
                }
            }
            Ok(code)
        })?;
        let code = watch.time(Pass::Control, || {
            let waiting = stages::waiting(options);
            sched::control::schedule(code, waiting, &mut emission.control)
        });
        let seen = conventions.map(|conventions| report::report(&code, &conventions));
        watch.dump(Pass::Control, name, &code, seen.as_ref());
        watch.stop(Pass::Control)?;
        let cycles = watch.cycles.then(|| report::model::cycles(&code));
        let code = watch.pass(Pass::Emit, name, || {
            emit::emit(code, options.verify, &mut constants, emission)
                .map_err(|error| stages::emit_error(name, &error))
        })?;
        if let Some(program) = program {
            stages::check_order(name, &code, &program)?;
        }
        Ok(Compiled {
            code: if options.lines {
                code
            } else {
                code.without_lines()
            },
            constants,
            linkage: input.linkage,
            remarks: remarks.finish(name),
            cycles,
            locations: None,
            variables: None,
        })
    }
}

/// The passes on CLIF.
fn prepare(
    input: &FunctionInput<'_>,
    summaries: &Summaries,
    options: &Options,
    given: &PassSelection<'_>,
    preparer: &mut Preparer,
    watch: &mut Watch,
) -> Result<Box<clif::Prepared>, Halt> {
    let mut start = watch.start();
    let prepared = with_options(input, summaries, options, given, |given| {
        preparer.prepare_until(input.func.clone(), given, &mut |pass, func| {
            watch.count(pass, start);
            watch.dump(pass, input.name, func, None);
            start = watch.start();
        })
    })?;
    prepared.ok_or(Halt::Stopped)
}

/// Which of the passes on CLIF run.
#[derive(Default)]
struct PassSelection<'a> {
    verified: bool,
    skip: &'a [Pass],
    stop_after: Option<Pass>,
    assignments: &'a [Assignment],
}

/// What `take` makes of the options of the passes on CLIF.
fn with_options<T>(
    input: &FunctionInput<'_>,
    summaries: &Summaries,
    settings: &Options,
    given: &PassSelection<'_>,
    take: impl FnOnce(&clif::Options<'_>) -> T,
) -> T {
    take(&clif::Options {
        kernel: input.kernel,
        settings,
        namer: &|user| Some((input.namer)(user).unwrap_or_else(|| user.to_string())),
        summarize: &|callee| summaries.of(callee),
        tables: &|name| summaries.table(name).cloned(),
        verified: given.verified,
        skip: given.skip,
        stop_after: given.stop_after,
        assignments: given.assignments,
    })
}
