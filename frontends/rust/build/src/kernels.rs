//! A crate of kernels, from its directory to an object.

use crate::cache::{Cache, Inputs, Shared};
use crate::cargo::{Settings, Text};
use crate::compiled::{Compiled, Description};
use crate::error::Error;
use crate::{descriptor, generate, library, runtime, toolchain};
use cranelift_thisgpu::compile::Cache as SharedCache;
use cranelift_thisgpu::{KernelOptions, Options};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thisgpu_llvm::flags::{Checks, Compilation, DebugInfo, OptLevel, flags};
use thisgpu_llvm::{Kernel, Module, Panics, Program};

/// The environment's name of the folder with the shared cache.
const FOLDER: &str = "THISGPU_CACHE";

/// A crate of kernels, and how it is compiled.
///
/// In a build script:
///
/// ```no_run
/// thisgpu_build::Kernels::new().crate_dir("kernels").build_script();
/// ```
///
/// At run time:
///
/// ```no_run
/// # fn main() -> Result<(), thisgpu_build::Error> {
/// use thisgpu_build::{Device, Grid, Kernels, SimConfig};
/// let compiled = Kernels::new().crate_dir("kernels").compile()?;
/// let device = Device::simulator(SimConfig::default());
/// let module = compiled.load(&device)?;
/// let mut out = device.zeros::<f32>(100)?;
/// module.kernel("fill")?.launch(Grid::for_elems(100, 64)).arg(1.5f32).arg(&mut out).run()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Kernels {
    crate_dir: PathBuf,
    target_dir: Option<PathBuf>,
    level: OptLevel,
    checks: Checks,
    panics: Panics,
    options: Options,
    settings: Settings,
    shared: Option<Arc<SharedCache>>,
}

impl Default for Kernels {
    fn default() -> Self {
        Kernels::new()
    }
}

impl Kernels {
    /// The crate in the current directory, optimised, without checks.
    pub fn new() -> Kernels {
        Kernels {
            crate_dir: ".".into(),
            target_dir: None,
            level: OptLevel::default(),
            checks: Checks::default(),
            panics: Panics::Message,
            options: Options::default(),
            settings: Settings::default(),
            shared: None,
        }
    }

    /// The directory with the `Cargo.toml` of the kernels; a build script's is relative to its package.
    pub fn crate_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.crate_dir = path.as_ref().into();
        self
    }

    /// Where cargo builds; `thisgpu` in the crate's own target directory unless said, in a build script in `OUT_DIR`.
    pub fn target_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.target_dir = Some(path.as_ref().into());
        self
    }

    /// How much LLVM optimises.
    pub fn opt_level(mut self, level: OptLevel) -> Self {
        self.level = level;
        self
    }

    /// Compiles `debug_assert!` in.
    pub fn debug_assertions(mut self, on: bool) -> Self {
        self.checks.debug_assertions = on;
        self
    }

    /// Lets arithmetic that overflows panic.
    pub fn overflow_checks(mut self, on: bool) -> Self {
        self.checks.overflow = on;
        self
    }

    /// Whether a panic writes its message down, as it does unless told otherwise. Without, it is a single instruction
    /// that says where and of which kind it was, and a kernel needs no registers and no stack to format it.
    pub fn panic_messages(mut self, on: bool) -> Self {
        self.panics = match on {
            true => Panics::Message,
            false => Panics::Trap,
        };
        self
    }

    /// Features of the crate.
    pub fn features(mut self, features: &[&str]) -> Self {
        self.settings.features = features.iter().map(|feature| feature.to_string()).collect();
        self
    }

    /// Leaves out the crate's default features.
    pub fn no_default_features(mut self) -> Self {
        self.settings.no_default_features = true;
        self
    }

    /// Cargo's `--locked`.
    pub fn locked(mut self, on: bool) -> Self {
        self.settings.locked = on;
        self
    }

    /// Cargo's `--offline`.
    pub fn offline(mut self, on: bool) -> Self {
        self.settings.offline = on;
        self
    }

    /// A toolchain by the name that rustup has for it; unless said the one that cargo runs with.
    pub fn toolchain(mut self, name: &str) -> Self {
        self.settings.toolchain = Some(name.into());
        self
    }

    /// Settings of the back end. With `value_locations` debug information says where variables are.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Compiles the crate with `cfg(test)`, for tests marked `#[kernel_test]`.
    pub fn test(mut self, on: bool) -> Self {
        self.settings.test = on;
        self
    }

    /// Keeps cargo's messages, which are in the error then if it fails.
    pub fn quiet(mut self, on: bool) -> Self {
        self.settings.quiet = on;
        self
    }

    /// A cache that machines share: what another one has made of the same LLVM IR with the same program and options is
    /// not made again. A store that fails costs a warning in the log, not the compilation. Without this it is the
    /// folder that `THISGPU_CACHE` names, if the environment has that.
    pub fn shared_cache(mut self, cache: Arc<SharedCache>) -> Self {
        self.shared = Some(cache);
        self
    }

    /// Compiles.
    ///
    /// # Errors
    /// A toolchain that is not there; what cargo and rustc find wrong, whose messages are on standard
    /// error; what cannot be translated, with its Rust lines; barriers that LLVM's passes moved; a crate without
    /// kernels.
    pub fn compile(&self) -> Result<Compiled, Error> {
        let toolchain = toolchain::find(self.settings.toolchain.as_deref())?;
        let package = self.settings.package(&self.crate_dir, &toolchain.host)?;
        let target = match &self.target_dir {
            // Programs that are called may run elsewhere.
            Some(path) => std::path::absolute(path).map_err(Error::file(path))?,
            None => package.target_directory.join("thisgpu"),
        };
        let debug = match self.options.value_locations {
            true => DebugInfo::Variables,
            false => DebugInfo::Lines,
        };
        // What is compiled with other flags would push out what is there already, if it were in the same folder.
        let variant = format!(
            "{}{}{}{}{}",
            self.level.name(),
            if self.checks.debug_assertions {
                "-assertions"
            } else {
                ""
            },
            if self.checks.overflow {
                "-overflow"
            } else {
                ""
            },
            if self.settings.test { "-test" } else { "" },
            if debug == DebugInfo::Variables {
                "-variables"
            } else {
                ""
            },
        );
        let build = |compilation, folder: PathBuf| {
            self.settings.build(
                &package,
                &toolchain,
                compilation,
                self.checks,
                debug,
                &folder,
            )
        };
        let optimised = Compilation::Optimised(self.level);
        let texts = build(optimised, target.join(format!("opt-{variant}")))?;
        let options = format!(
            "{}\n{}\n{:?}\n{:?}",
            toolchain.verbose,
            flags(optimised, self.checks, debug).join("\n"),
            self.panics,
            self.options
        );
        let own = format!("{}\n{options}", identity());
        let (inputs, contents) = Inputs::read(&texts, own)?;
        let cache = Cache::new(&target.join(format!("kernels-{}-{variant}", package.name)));
        // Whoever compiles the same crate at the same time waits, and finds the result.
        let _lock = cache.lock()?;
        if let Some(compiled) = cache.get(&inputs, &package.workspace) {
            return Ok(compiled);
        }
        // A cache that is not to be had is no reason to fail.
        let (shared, without) = match self.shared_or_named() {
            Ok(shared) => (shared, None),
            Err(error) => (None, Some(format!("{FOLDER}, which is not used: {error}"))),
        };
        let shared = match shared {
            Some(shared) => Some((shared, Shared::key(&texts, &contents, &options)?)),
            None => None,
        };
        if let Some((shared, key)) = &shared
            && let Some(found) = shared.get_value::<Shared>(key)
        {
            let compiled = found.into_compiled(&package.workspace);
            cache.put(inputs, &compiled)?;
            return Ok(compiled);
        }
        let program = link(&texts, &contents, &package.workspace)?;
        let kernels = descriptor::kernels(&program)?;
        if kernels.is_empty() && !self.settings.test {
            return Err(Error::NoKernels(self.crate_dir.clone()));
        }
        // No pass takes away a call that the program comes to, for nobody knows what it does. So where none is left
        // there was none.
        if uses_convergent(&program) {
            let texts = build(
                Compilation::Reference,
                target.join(format!("reference-{variant}")),
            )?;
            let (_, contents) = Inputs::read(&texts, String::new())?;
            let reference = link(&texts, &contents, &package.workspace)?;
            thisgpu_llvm::convergence::check(&program, &reference).map_err(Error::Translation)?;
        }
        let libraries = library::Libraries {
            toolchain: &toolchain,
            name: self.settings.toolchain.as_deref(),
            target: &target,
        };
        let program = libraries.add_to(program, self.panics)?;
        let wanted: Vec<Kernel> = kernels
            .iter()
            .map(|kernel| Kernel {
                name: kernel.symbol.clone(),
                options: KernelOptions {
                    shared_bytes: 0,
                    max_threads: kernel.max_threads,
                    min_blocks: kernel.min_blocks,
                },
            })
            .collect();
        let translation = thisgpu_llvm::translate(&program, &wanted, &self.options)
            .map_err(Error::Translation)?;
        let mut compiled = Compiled {
            object: translation.code.to_elf()?,
            clif: translation.clif,
            description: Description {
                name: package.name.clone(),
                formats: descriptor::formats(&program)?,
                statics: descriptor::statics(&program)?,
                heap_holder: runtime::heap_holder(&translation.mutable),
                kernels,
            },
            is_fresh: false,
            source_folder: package.workspace,
            warnings: (toolchain.warning().into_iter())
                .chain(translation.warnings.iter().map(ToString::to_string))
                .collect(),
        };
        cache.put(inputs, &compiled)?;
        if let Some((shared, key)) = &shared {
            // It says itself that it fails.
            let _ = shared.put_value(key, &Shared::of(&compiled));
        }
        compiled.warnings.extend(without);
        Ok(compiled)
    }

    /// The shared cache, or the folder that the environment names.
    fn shared_or_named(&self) -> Result<Option<Arc<SharedCache>>, Error> {
        if self.shared.is_some() {
            return Ok(self.shared.clone());
        }
        let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
            return Ok(None);
        };
        let opened = SharedCache::open(&folder, SharedCache::DEFAULT_LIMIT);
        Ok(Some(Arc::new(opened.map_err(Error::file(&folder))?)))
    }

    /// Does all that a build script has to: compiles, writes `kernels.rs` and `kernels.elf` to `OUT_DIR`, and tells
    /// cargo what to watch. The program includes the first:
    /// `mod kernels { include!(concat!(env!("OUT_DIR"), "/kernels.rs")); }`.
    ///
    /// What goes wrong is printed, and ends the build script with status 1.
    pub fn build_script(self) {
        if let Err(error) = self.generate() {
            // A build script's standard error is shown when it fails.
            eprintln!("{error}");
            std::process::exit(1);
        }
    }

    /// What [`build_script`](Kernels::build_script) does, with the error as a value.
    ///
    /// # Errors
    /// As [`compile`](Kernels::compile); no `OUT_DIR` in the environment.
    pub fn generate(mut self) -> Result<(), Error> {
        let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else {
            return Err(Error::Unexpected(
                "OUT_DIR is not set: this is for build scripts; call `compile` at run time".into(),
            ));
        };
        let toolchain = toolchain::find(self.settings.toolchain.as_deref())?;
        // Said first, so that a build that fails is tried again when something has changed.
        println!("cargo::rerun-if-env-changed={FOLDER}");
        println!(
            "cargo::rerun-if-changed={}",
            self.crate_dir.join("Cargo.toml").display()
        );
        for source in self
            .settings
            .package(&self.crate_dir, &toolchain.host)?
            .sources
        {
            println!("cargo::rerun-if-changed={}", source.display());
        }
        self.target_dir.get_or_insert_with(|| out.join("thisgpu"));
        let compiled = self.compile()?;
        for warning in compiled.warnings().iter().flat_map(|text| text.lines()) {
            println!("cargo::warning={warning}");
        }
        let object = out.join("kernels.elf");
        fs::write(&object, &compiled.object).map_err(Error::file(&object))?;
        let text = generate::generate(&compiled, &object)?;
        let path = out.join("kernels.rs");
        fs::write(&path, text).map_err(Error::file(&path))
    }
}

/// The texts as one program.
fn link(texts: &[Text], contents: &[String], workspace: &Path) -> Result<Program, Error> {
    let one = |error| Error::Translation(vec![error]);
    let workspace = workspace.to_string_lossy();
    let parse = |text: &Text, content: &str| {
        let mut module = Module::parse(&text.name, content)?;
        module.name_files_from(&workspace);
        Ok(module)
    };
    let modules = texts.iter().zip(contents);
    let modules = modules
        .map(|(text, content)| parse(text, content))
        .collect::<Result<Vec<_>, _>>();
    Program::link(modules.map_err(one)?).map_err(one)
}

/// Which translator this is: version, and size and time of the program that it is part of.
fn identity() -> String {
    let program = env::current_exe().and_then(fs::metadata);
    let of_program = program.map(|file| (file.len(), file.modified().ok()));
    format!("{} {:?}", env!("CARGO_PKG_VERSION"), of_program.ok())
}

/// Whether a crate calls what a warp or block does together.
fn uses_convergent(program: &Program) -> bool {
    let mut names = program
        .modules()
        .iter()
        .flat_map(|module| module.functions.iter().map(|function| &*function.name));
    names.any(thisgpu_llvm::is_convergent)
}
