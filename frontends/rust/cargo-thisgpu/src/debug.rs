//! `cargo thisgpu debug`: a kernel or a test stopped, looked into, and run backwards.
//!
//! Unless it is asked for more, the crate is compiled as a person reads it: nothing optimised, every variable in
//! memory, instructions in the order of the source.

use crate::launch::Target;
use crate::options::{Compilation, Purpose};
use anyhow::{Context, Result, bail};
use clap::{Args, Parser};
use thisgpu_build::{Compiled, Device, Fault, Grid, KernelDescription, Module, SimConfig};
use thisgpu_debugger::{Debugger, Library, Sources};

#[derive(Args)]
#[command(after_help = "Examples:
  cargo thisgpu debug saxpy 2 8:ramp 8:1
  cargo thisgpu debug --test lanes_add_up
  cargo thisgpu debug --adapter                     what VS Code starts
Commands of the prompt are told by its `help`. Without a terminal they are read from standard input.")]
pub struct Options {
    #[command(flatten)]
    compilation: Compilation,
    #[command(flatten)]
    commands: thisgpu_debugger::Commands,
    /// The name is that of a test marked `#[kernel_test]`; its launch is the one that it has as a test.
    #[arg(long)]
    test: bool,
    /// Speak the Debug Adapter Protocol on standard input and output; the launch request says the rest: `args`, a list
    /// as on this command line, and `cwd`, the folder.
    #[arg(long, exclusive = true)]
    adapter: bool,
    #[command(flatten)]
    target: Target,
}

/// The options of a launch request.
#[derive(clap::Parser)]
#[command(no_binary_name = true)]
struct Requested {
    #[command(flatten)]
    options: Options,
}

impl Options {
    pub fn run(self) -> Result<()> {
        if self.adapter {
            return thisgpu_debugger::run_adapter(Box::new(requested));
        }
        let debugger = self.debugger()?;
        let print = |line: &str| {
            use std::io::Write;
            writeln!(std::io::stdout().lock(), "{line}").context("standard output")
        };
        self.commands.run(debugger, print)
    }

    /// Compiles, and stands before the first instruction.
    fn debugger(&self) -> Result<Debugger> {
        let compiled = self.compilation.compile(match self.test {
            true => Purpose::DebugTest,
            false => Purpose::Debug,
        })?;
        let config = SimConfig {
            // As `cargo thisgpu test` has it.
            check: self.test || self.target.config().check,
            ..self.target.config()
        };
        let device = Device::simulator(config);
        let module = compiled.load(&device)?;
        let session = match self.test {
            true => {
                let test = self.wanted(&compiled)?;
                let grid = Grid::new([1; 3], [test.test_threads.unwrap_or(1), 1, 1]);
                module.kernel(&test.symbol)?.launch(grid).debug()?
            }
            false => {
                let kernel = module.kernel(&self.target.symbol(&compiled)?)?;
                let mut arguments = self.target.arguments(&device, &kernel)?;
                self.target.launch(&kernel, &mut arguments)?.debug()?
            }
        };
        let sources = Sources::in_folder(compiled.source_folder().into());
        Ok(Debugger::new(session, device, sources).with_library(Box::new(Written(module))))
    }

    /// The test of the name.
    fn wanted<'c>(&self, compiled: &'c Compiled) -> Result<&'c KernelDescription> {
        let kernels = compiled.description().kernels.iter();
        let tests: Vec<_> = kernels
            .filter(|kernel| kernel.test_threads.is_some())
            .collect();
        let Some(name) = &self.target.kernel else {
            bail!("which test? {}", names(&tests));
        };
        let exact = tests.iter().find(|test| test.name == *name);
        let mut containing = tests
            .iter()
            .filter(|test| test.name.contains(name.as_str()));
        match (exact, containing.next(), containing.next()) {
            (Some(test), ..) | (None, Some(test), None) => Ok(test),
            (None, None, _) => bail!("there is no test `{name}`; {}", names(&tests)),
            (None, Some(_), Some(_)) => bail!(
                "several tests have `{name}` in their names; {}",
                names(&tests)
            ),
        }
    }
}

fn names(tests: &[&KernelDescription]) -> String {
    let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
    match names.is_empty() {
        true => "the crate has none".to_owned(),
        false => format!("there are {}", names.join(", ")),
    }
}

/// What kernels have written to the memory of a module for the host.
struct Written(Module);

impl Library for Written {
    fn output(&self) -> Result<String, String> {
        self.0.output().map_err(|error| error.to_string())
    }

    fn panic(&self, fault: &Fault) -> Result<Option<String>, String> {
        let panic = self.0.panic_at(fault).map_err(|error| error.to_string())?;
        Ok(panic.map(|panic| panic.to_string()))
    }
}

/// What a launch request asks for.
fn requested(arguments: &serde_json::Value) -> Result<Debugger> {
    if let Some(folder) = arguments["cwd"].as_str() {
        std::env::set_current_dir(folder).with_context(|| folder.to_owned())?;
    }
    let words = arguments["args"]
        .as_array()
        .context("the launch has no `args`")?;
    let word = |word: &serde_json::Value| match word {
        serde_json::Value::String(text) => Ok(text.clone()),
        serde_json::Value::Number(number) => Ok(number.to_string()),
        other => bail!("`args` are texts and numbers, not {other}"),
    };
    let words = words.iter().map(word).collect::<Result<Vec<String>>>()?;
    Requested::try_parse_from(words)?.options.debugger()
}
