//! `clif-util compile FILE`: CLIF to assembly text, words or an object, with dumps and reports.

use crate::colours::Label;
use crate::options::{Format, Settings};
use crate::{Outcome, input, source};
use anyhow::{Context, Result, anyhow};
use clap::{Args, ValueEnum};
use cranelift_thisgpu::asm::listing;
use cranelift_thisgpu::compile::{Cache, Code, Compiler, Pass};
use std::fmt::Write;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use thisgpu_filetests::file::TARGET;

/// Options of `compile`.
#[derive(Args)]
pub struct Options {
    /// CLIF text.
    file: PathBuf,
    /// The target.
    #[arg(long, value_name = "TARGET", value_parser = [TARGET])]
    target: String,
    #[command(flatten)]
    settings: Settings,
    /// Make this function a kernel.
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// What to make; by default assembly text, with -o what the extension says or an object.
    #[arg(long, value_name = "KIND")]
    emit: Option<Emit>,
    /// Write to this file.
    #[arg(short, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Print the disassembly.
    #[arg(short = 'D')]
    disassemble: bool,
    /// Print the CLIF as it is selected from.
    #[arg(short)]
    print: bool,
    /// Print the time that each pass takes.
    #[arg(short = 'T')]
    times: bool,
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
    /// Compile on this many threads; the result is the same.
    #[arg(short = 'j', value_name = "N", default_value = "1")]
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
    let pass = Pass::from_name(text)
        .ok_or_else(|| format!("passes are all, {}", Pass::ALL.map(Pass::name).join(", ")))?;
    Ok(Passes(vec![pass]))
}

impl Options {
    /// Compiles the file.
    pub fn run(self) -> Result<Outcome> {
        let file = source::read_partly(&self.file, &self.kernel)?;
        let mut compiler = Compiler::new(self.settings.over(&file)?);
        compiler.time_passes(self.times);
        compiler.record_passes(self.time_trace.is_some());
        compiler.collect_remarks(self.remarks);
        compiler.model_cycles(self.cycles);
        if let Some(folder) = &self.cache {
            let cache = Cache::open(folder, self.cache_limit)
                .with_context(|| format!("cannot make the cache {}", folder.display()))?;
            compiler.use_cache(Some(Arc::new(cache)));
        }
        let emit = self.emit();
        let texts = Arc::new(Mutex::new(Texts::default()));
        self.observe(&mut compiler, emit, &texts);
        let compiled = source::compile(&mut compiler, &file, self.threads.get().into());
        // Where the time went until an error is worth as much.
        if let (Some(path), Some(trace)) = (&self.time_trace, compiler.time_trace()) {
            input::write(path, (serde_json::to_string(trace)? + "\n").as_bytes())?;
        }
        let texts = std::mem::take(&mut *texts.lock().unwrap_or_else(PoisonError::into_inner));
        // What was seen until an error helps to find it.
        let mut report = texts.reports;
        let code = match compiled {
            Ok(code) => code,
            Err(error) => {
                self.print_report(&report)?;
                return Err(error);
            }
        };
        for warning in code.warnings() {
            eprintln!("{} {warning}", Label::Warning);
        }
        if self.disassemble {
            report.push_str(&disassembly(&code)?);
        }
        if let Some(format) = self.resource_usage {
            report.push_str(&resource_usage(&code, format)?);
        }
        for function in code.cycles() {
            write!(report, "{function}")?;
        }
        for remark in code.remarks() {
            match remark.file {
                Some(_) => writeln!(report, "{remark}")?,
                None => writeln!(report, "{}: {remark}", self.file.display())?,
            }
        }
        if self.times {
            write!(report, "{}", compiler.timings())?;
        }
        let output = self.output.as_deref().unwrap_or(Path::new("-"));
        let bytes = match emit {
            Emit::Asm => disassembly(&code)?.into_bytes(),
            Emit::Hex => hex(&code)?.into_bytes(),
            Emit::Elf => code.to_elf()?,
            Emit::Vcode => texts.vcode.into_bytes(),
        };
        input::write(output, &bytes)?;
        self.print_report(&report)?;
        Ok(Outcome::Success)
    }

    /// What to make: as asked for, or by the extension of the output.
    fn emit(&self) -> Emit {
        let extension = self.output.as_ref().map(|path| {
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

    /// Has the texts collected that the options ask for.
    fn observe(&self, compiler: &mut Compiler, emit: Emit, texts: &Arc<Mutex<Texts>>) {
        let dumps = self
            .dump_after
            .clone()
            .map_or_else(Vec::new, |passes| passes.0);
        let mut passes = dumps.clone();
        if self.print {
            passes.push(Pass::Clif);
        }
        if emit == Emit::Vcode {
            passes.push(Pass::BEFORE_ALLOCATION);
        }
        if passes.is_empty() {
            return;
        }
        let (print, texts) = (self.print, Arc::clone(texts));
        compiler.dump_after(
            &passes,
            Box::new(move |dump| {
                let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
                if print && dump.pass == Pass::Clif {
                    texts.reports.push_str(dump.text);
                    texts.reports.push('\n');
                }
                if dumps.contains(&dump.pass) {
                    let heading = format!(
                        "; %{} after {}\n{}\n",
                        dump.function,
                        dump.pass.name(),
                        dump.text.trim_end()
                    );
                    texts.reports.push_str(&heading);
                }
                if emit == Emit::Vcode && dump.pass == Pass::BEFORE_ALLOCATION {
                    texts.vcode.push_str(dump.text);
                }
            }),
        );
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
            eprint!("{report}");
            Ok(())
        }
    }
}

/// What is collected while functions are compiled.
#[derive(Default)]
struct Texts {
    reports: String,
    vcode: String,
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
    let words = (code.object().linked_words())
        .map_err(|errors| anyhow!("{errors}; words cannot say that, an object can (--emit elf)"))?;
    let mut text = String::with_capacity(words.len() * 33);
    for word in words {
        writeln!(text, "{word:032x}")?;
    }
    Ok(text)
}

/// What the kernels need.
fn resource_usage(code: &Code, format: Format) -> Result<String> {
    Ok(match format {
        Format::Text => code
            .kernels()
            .iter()
            .map(|kernel| format!("{kernel}\n"))
            .collect(),
        Format::Json => serde_json::to_string(code.kernels())? + "\n",
    })
}
