//! `clif-util compile FILES`: CLIF to assembly text, words or an object, with dumps and reports.

mod report;

use crate::messages::{self, Several, Usage};
use crate::options::{self, DebugOutput, Format, Settings};
use crate::{Outcome, input, run_lines, source};
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use cranelift_thisgpu::asm::listing;
use cranelift_thisgpu::compile::{Cache, Code, Compiler, Pass, SourceFile, TimeTrace, Timings};
use cranelift_thisgpu::object::Linker;
use report::{Texts, observe, resource_usage};
use std::fmt::Write;
use std::io::IsTerminal;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thisgpu_filetests::file::TARGET;
use thisgpu_filetests::find_files;

/// Options of `compile`.
#[derive(Args)]
#[command(after_help = "Examples:
  clif-util compile k.clif --target thisgpu              assembly text
  clif-util compile k.clif                               the same, if the file says `target thisgpu`
  clif-util compile k.clif --target thisgpu -o k.elf     an object
  clif-util compile a.clif b.clif --target thisgpu -o k.elf   both, linked
  clif-util compile kernels --target thisgpu -o k.elf    all files below a folder, linked
  clif-util compile k.clif --target thisgpu --dump-after mid-end
Exit status: 0 success, 1 the files do not compile, 2 a wrong command line.")]
pub struct Options {
    /// CLIF text, and folders with `.clif` files; several are printed in turn, and linked with -o.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The target; not needed for files whose header has `target thisgpu`.
    #[arg(long, value_name = "TARGET", value_parser = [TARGET])]
    target: Option<String>,
    #[command(flatten)]
    settings: Settings,
    /// Make this function a kernel.
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// What to make; by default assembly text, with -o what the extension says or an object.
    #[arg(long, value_name = "KIND")]
    emit: Option<Emit>,
    /// Write to this file.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Print the disassembly.
    #[arg(short = 'D', long)]
    disasm: bool,
    /// Print the CLIF as it is selected from.
    #[arg(short, long)]
    print: bool,
    /// Print the time that each pass takes.
    #[arg(short = 'T', long)]
    time_passes: bool,
    /// Write when each pass ran over each function, in the Chrome trace format: a row for each thread of -j.
    #[arg(long, value_name = "FILE")]
    time_trace: Option<PathBuf>,
    /// Print what could have been done to the code and was not, and why.
    #[arg(long)]
    remarks: bool,
    /// Print how many cycles each block takes by the scheduler's model, and each turn of a loop.
    #[arg(long)]
    cycles: bool,
    /// Print every function after this pass, or after all.
    #[arg(long, value_name = "PASS", value_parser = parse_passes)]
    dump_after: Option<Passes>,
    /// Compile no further than to the end of this pass, print every function as it is then, and make nothing.
    #[arg(long, value_name = "PASS", value_parser = options::parse_pass)]
    #[arg(conflicts_with_all = ["emit", "output", "disasm", "resource_usage"])]
    stop_after: Option<Pass>,
    /// Leave this pass out; those that code is wrong without are refused. Once for each.
    #[arg(long, value_name = "PASS", value_parser = options::parse_optional_pass)]
    skip: Vec<Pass>,
    /// Compile on this many threads; the result is the same.
    #[arg(short = 'j', long, value_name = "N", default_value = "1")]
    threads: NonZeroU16,
    /// Keep what is compiled in this folder, and take from there what was compiled before.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Most bytes of the folder of --cache; what was used longest ago is removed.
    #[arg(long, value_name = "BYTES", requires = "cache", default_value_t = Cache::DEFAULT_LIMIT)]
    cache_limit: u64,
    /// Print what each kernel needs of the machine.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    resource_usage: Option<Format>,
    #[command(flatten)]
    pub debug: DebugOutput,
}

/// What to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// Assembly text.
    Asm,
    /// One word a line, 32 hexadecimal digits, most significant first.
    Hex,
    /// An ELF object.
    Elf,
    /// Machine instructions before register allocation.
    Vcode,
}

/// Passes to dump after.
#[derive(Clone, Debug)]
struct Passes(Vec<Pass>);

fn parse_passes(text: &str) -> Result<Passes, String> {
    if text == "all" {
        return Ok(Passes(Pass::ALL.to_vec()));
    }
    options::parse_pass(text)
        .map(|pass| Passes(vec![pass]))
        .map_err(|error| format!("{error}; all is every one"))
}

/// What it takes to compile all files.
#[derive(Default)]
struct Times {
    passes: Timings,
    trace: TimeTrace,
}

/// A file that is compiled.
struct Compiled {
    file: SourceFile,
    code: Code,
    texts: Texts,
}

impl Options {
    /// Compiles the files.
    pub fn run(mut self) -> Result<Outcome> {
        let emit = self.emit();
        self.files = files(&self.files)?;
        self.check(emit)?;
        let files = self.read()?;
        let cache = match &self.cache {
            Some(folder) => Some(Arc::new(
                Cache::open(folder, self.cache_limit)
                    .with_context(|| format!("cannot make the cache {}", folder.display()))?,
            )),
            None => None,
        };
        let mut times = Times::default();
        let mut compiled = Vec::new();
        let mut failed = false;
        for file in files {
            match self.compile(file, emit, cache.clone(), &mut times) {
                Ok(code) => compiled.push(code),
                Err(error) => {
                    messages::print_error(&error);
                    failed = true;
                }
            }
        }
        // Where the time went until an error is worth as much.
        if let Some(path) = &self.time_trace {
            input::write(
                path,
                (serde_json::to_string(&times.trace)? + "\n").as_bytes(),
            )?;
        }
        if failed {
            return Ok(Outcome::Failure);
        }
        if self.stop_after.is_some() {
            let report = self.report(&compiled, None, &times.passes)?;
            input::write(Path::new("-"), report.as_bytes())?;
            return Ok(Outcome::Success);
        }
        let linked = self.link(&compiled)?;
        self.print_warnings(&compiled, linked.is_some());
        let report = self.report(&compiled, linked.as_ref(), &times.passes)?;
        let output = self.output.as_deref().unwrap_or(Path::new("-"));
        input::write(output, &made(emit, &compiled, linked.as_ref())?)?;
        self.print_report(&report)?;
        Ok(Outcome::Success)
    }

    /// Refuses what cannot be meant.
    fn check(&self, emit: Emit) -> Result<()> {
        input::check_inputs(&self.files)?;
        if let Some(trace) = &self.time_trace {
            input::check_output("--time-trace", trace, self.files.iter().chain(&self.output))?;
        }
        let output = self
            .output
            .as_deref()
            .filter(|path| !input::is_standard(path));
        if emit == Emit::Elf && output.is_none() && std::io::stdout().is_terminal() {
            bail!(Usage(
                "an object is no text for a terminal; write -o OUT, or --emit asm to read it"
                    .to_owned()
            ));
        }
        if let Some(output) = &self.output {
            input::check_output("-o", output, &self.files)?;
        } else if emit == Emit::Elf && self.files.len() > 1 {
            bail!(Usage(
                "several objects are not printed one behind the other; write -o OUT, which links them, or one command \
                 for each".to_owned()
            ));
        }
        Ok(())
    }

    /// Reads all files, and marks the kernels in them.
    fn read(&self) -> Result<Vec<SourceFile>> {
        let read = |path: &PathBuf| {
            let file = source::read_partly(path);
            if self.target.is_some() {
                return file;
            }
            let unknown = |error| Usage(format!("{error:#}; and no --target is given"));
            let file = file.map_err(unknown)?;
            options::check_header_target(&file)?;
            Ok(file)
        };
        let mut files: Vec<SourceFile> = self.files.iter().map(read).collect::<Result<_>>()?;
        source::mark_kernels(&mut files, &self.kernel)?;
        Ok(files)
    }

    /// Compiles one file.
    fn compile(
        &self,
        file: SourceFile,
        emit: Emit,
        cache: Option<Arc<Cache>>,
        times: &mut Times,
    ) -> Result<Compiled> {
        let mut compiler = Compiler::new(self.settings.over(&file)?);
        compiler.time_passes(self.time_passes);
        compiler.record_passes(self.time_trace.is_some());
        compiler.collect_remarks(self.remarks);
        compiler.model_cycles(self.cycles);
        compiler.use_cache(cache);
        compiler.stop_after(self.stop_after);
        compiler.skip(&self.skip)?;
        let dumps = self.dump_after.as_ref().map(|passes| passes.0.as_slice());
        let mut dumps = dumps.unwrap_or_default().to_vec();
        dumps.extend(self.stop_after.filter(|last| !dumps.contains(last)));
        let texts = observe(&mut compiler, &dumps, self.print, emit == Emit::Vcode);
        let code = source::compile(&mut compiler, &file, self.threads.get().into());
        let texts = texts.take();
        times.passes.add(compiler.timings());
        if let Some(trace) = compiler.time_trace() {
            times.trace.append(trace);
        }
        if code.is_err() {
            // What was seen until an error helps to find it.
            self.print_report(&texts.reports)?;
        }
        let code = code?;
        Ok(Compiled { file, code, texts })
    }

    /// Several files as one object, if they go to a file.
    fn link(&self, compiled: &[Compiled]) -> Result<Option<Code>> {
        if compiled.len() == 1 || self.output.is_none() {
            return Ok(None);
        }
        let mut linker = Linker::new();
        for one in compiled {
            linker = linker.add(&*one.file.name, one.code.object());
        }
        let object = linker
            .link()
            .map_err(|errors| Several::of(errors.as_slice()))?;
        Ok(Some(Code::of_object(object)))
    }

    /// Prints what is suspicious. Names that nothing defines are errors of linking.
    fn print_warnings(&self, compiled: &[Compiled], linked: bool) {
        for Compiled { file, code, .. } in compiled {
            messages::print_warnings(if linked {
                &file.warnings
            } else {
                code.warnings()
            });
        }
    }

    /// What was asked for besides the code.
    fn report(
        &self,
        compiled: &[Compiled],
        linked: Option<&Code>,
        times: &Timings,
    ) -> Result<String> {
        let mut report = String::new();
        for Compiled { code, texts, .. } in compiled {
            report.push_str(&texts.reports);
            if self.disasm && linked.is_none() {
                report.push_str(&disassembly(code)?);
            }
        }
        if let Some(linked) = linked.filter(|_| self.disasm) {
            report.push_str(&disassembly(linked)?);
        }
        if let Some(format) = self.resource_usage {
            let all = compiled.iter().map(|one| &one.code);
            let codes: Vec<&Code> = linked.map_or_else(|| all.collect(), |linked| vec![linked]);
            report.push_str(&resource_usage(&codes, format)?);
        }
        for Compiled { file, code, .. } in compiled {
            for function in code.cycles() {
                write!(report, "{function}")?;
            }
            for remark in code.remarks() {
                match remark.file {
                    Some(_) => writeln!(report, "{remark}")?,
                    None => writeln!(report, "{}: {remark}", file.name)?,
                }
            }
        }
        if self.time_passes {
            write!(report, "{times}")?;
        }
        Ok(report)
    }

    /// What to make: as asked for, or by the extension of the output.
    fn emit(&self) -> Emit {
        let output = self
            .output
            .as_ref()
            .filter(|path| !input::is_standard(path));
        let extension = output.map(|path| {
            path.extension()
                .and_then(|e| e.to_str())
                .unwrap_or_default()
        });
        self.emit.unwrap_or(match extension {
            None | Some("s" | "asm") => Emit::Asm,
            Some("hex") => Emit::Hex,
            Some("vcode") => Emit::Vcode,
            Some(_) => Emit::Elf,
        })
    }

    /// Reports go to standard output if the code goes elsewhere.
    fn print_report(&self, report: &str) -> Result<()> {
        if self
            .output
            .as_ref()
            .is_some_and(|path| !input::is_standard(path))
        {
            input::write(Path::new("-"), report.as_bytes())
        } else {
            Ok(messages::report(report)?)
        }
    }
}

/// The files to compile: of folders, those below them.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut empty = Vec::new();
    for path in paths {
        let found = find_files(path)?;
        if found.is_empty() {
            empty.push(run_lines::no_files(path));
        }
        files.extend(found);
    }
    match empty.as_slice() {
        [] => Ok(files),
        empty => bail!(Several::of(empty)),
    }
}

/// The bytes of the output: of linked code, or of all files in turn.
fn made(emit: Emit, compiled: &[Compiled], linked: Option<&Code>) -> Result<Vec<u8>> {
    if emit == Emit::Vcode {
        let texts = compiled.iter().map(|one| one.texts.vcode.as_str());
        return Ok(texts.collect::<String>().into_bytes());
    }
    if let Some(linked) = linked {
        return Ok(match emit {
            Emit::Elf => linked.object().write_linked()?,
            Emit::Hex => hex(linked)?.into_bytes(),
            Emit::Asm | Emit::Vcode => disassembly(linked)?.into_bytes(),
        });
    }
    let mut out = Vec::new();
    for one in compiled {
        if emit == Emit::Asm && compiled.len() > 1 {
            out.extend(format!("// {}\n", one.file.name).into_bytes());
        }
        out.extend(match emit {
            Emit::Elf => one.code.to_elf()?,
            Emit::Hex => hex(&one.code)?.into_bytes(),
            Emit::Asm | Emit::Vcode => disassembly(&one.code)?.into_bytes(),
        });
    }
    Ok(out)
}

/// The code as text that assembles to the same object.
fn disassembly(code: &Code) -> Result<String> {
    let (text, bad) = listing(code.object());
    match bad.first() {
        Some(word) => Err(anyhow!(
            "internal error: an emitted word does not disassemble: {word}"
        )),
        None => Ok(text),
    }
}

/// One word a line.
fn hex(code: &Code) -> Result<String> {
    let words = code.object().linked_words().map_err(|errors| {
        let error =
            |error| format!("error: {error}; words cannot say that, an object can (--emit elf)");
        Several(errors.as_slice().iter().map(error).collect())
    })?;
    let mut text = String::with_capacity(words.len() * 33);
    for word in words {
        writeln!(text, "{word:032x}")?;
    }
    Ok(text)
}
