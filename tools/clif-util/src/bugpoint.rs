//! `clif-util bugpoint FILE TARGET`: makes a file smaller while the compiler keeps failing on it in the same way.
//!
//! A failure is a panic or an internal error; correct input that is not supported, or wrong input, is none. Functions,
//! blocks and instructions are taken away one after the other, as long as anything can go; what still fails and is
//! still valid CLIF is kept. Two failures are the same if their messages are, but for numbers.
//!
//! With `--kernel` the launch of a kernel is made smaller that goes wrong ([`launch`]).

mod launch;

use crate::options::{DebugOutput, Subject};
use crate::{Outcome, input, messages, progress};
use anyhow::{Result, bail};
use clap::Args;
use cranelift_codegen::ir::Function;
use cranelift_thisgpu::compile::{Compiler, FunctionInput, Unit};
use cranelift_thisgpu::compile::{KernelOptions, SourceFile, SourceFunction};
use cranelift_thisgpu::error::Problem;
use cranelift_thisgpu::object::Linkage;
use cranelift_thisgpu::settings;
use indicatif::ProgressBar;
use launch::LaunchOptions;
use std::path::Path;
use thisgpu_filetests::file::TARGET;
use thisgpu_filetests::panics;
use thisgpu_filetests::reduce::{Reducer, STEPS};

/// How the bar looks.
const BAR: &str = "{elapsed_precise} {spinner} {human_pos} tries, {msg} instructions are left";

/// Options of `bugpoint`.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    launch: LaunchOptions,
    /// Tell what is tried.
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    pub debug: DebugOutput,
}

impl Options {
    /// Prints the smallest function found, or the smallest launch.
    pub fn run(self) -> Result<Outcome> {
        if let Some(kernel) = &self.launch.kernel {
            return self.reduce_launch(kernel);
        }
        let (file, settings) = self.subject.read()?;
        let Some((function, message)) = first_failure(&file, &settings) else {
            bail!(
                "{}: the compiler does not fail on any of its functions",
                file.name
            );
        };
        if self.verbose {
            messages::say(format_args!("%{}: {message}\n", function.name()));
        }
        let kind = without_numbers(&message);
        let reduce = |bar: &ProgressBar| {
            let fails = |func: &Function| {
                let found = failure(func, function.kernel, &settings);
                let fails = found.is_some_and(|found| without_numbers(&found) == kind);
                bar.inc(1);
                if fails {
                    bar.set_message(instructions(func).to_string());
                }
                fails
            };
            let reducer = Reducer {
                fails: &fails,
                steps: &STEPS,
                verbose: self.verbose,
            };
            reducer.reduce(function.func.clone())
        };
        // What is told would run into the bar; it shows how far it is too.
        let reduced = match self.verbose {
            true => reduce(&ProgressBar::hidden()),
            false => progress::drawn(BAR, |_| {}, reduce),
        };
        let message = failure(&reduced, function.kernel, &settings).unwrap_or(message);
        let mark = mark(function.kernel);
        let header = header(&settings);
        let text = format!("{header}\n;; {message}\n{mark}{reduced}");
        input::write(Path::new("-"), text.as_bytes())?;
        Ok(Outcome::Success)
    }
}

impl Options {
    /// Prints the smallest launch found.
    fn reduce_launch(&self, kernel: &str) -> Result<Outcome> {
        let kernel = kernel.trim_start_matches('%');
        let (file, settings) = self.subject.marked(kernel)?;
        let functions = file.functions.into_iter();
        let functions = functions.map(|mut function| {
            // Lines of another file.
            function.func.srclocs.clear();
            (mark(function.kernel), function.func)
        });
        let functions: Vec<_> = functions.collect();
        let reduce = |bar: &ProgressBar| {
            let tried = |instructions: usize| {
                bar.inc(1);
                bar.set_message(instructions.to_string());
            };
            self.launch
                .reduce(kernel, functions, settings, self.verbose, &tried)
        };
        let text = match self.verbose {
            true => reduce(&ProgressBar::hidden())?,
            false => progress::drawn(BAR, |_| {}, reduce)?,
        };
        input::write(Path::new("-"), text.as_bytes())?;
        Ok(Outcome::Success)
    }
}

/// A message without its numbers: values, blocks and instructions have others when some are gone.
fn without_numbers(message: &str) -> String {
    let parts = message.split(|c: char| c.is_ascii_digit());
    parts.filter(|part| !part.is_empty()).collect()
}

/// What a file begins with that is compiled with these settings.
fn header(options: &settings::Options) -> String {
    let default = settings::Options::default();
    let settings = settings::SETTINGS.iter().filter_map(|setting| {
        let value = setting.value(options);
        (value != setting.value(&default)).then(|| format!("set {}={value}\n", setting.name))
    });
    format!(
        "test compile\n{}target {TARGET}\n",
        settings.collect::<String>()
    )
}

/// The mark of a kernel, as files have it; nothing for other functions.
fn mark(kernel: Option<KernelOptions>) -> String {
    kernel.map_or(String::new(), |kernel| {
        let bounds = [
            ("max_threads", kernel.max_threads),
            ("min_blocks", kernel.min_blocks),
        ];
        let bounds = bounds
            .map(|(key, number)| number.map_or(String::new(), |number| format!(" {key}={number}")));
        format!(
            "; kernel shared={}{}\n",
            kernel.shared_bytes,
            bounds.concat()
        )
    })
}

/// The instructions of a function.
fn instructions(func: &Function) -> usize {
    let blocks = func.layout.blocks();
    blocks
        .map(|block| func.layout.block_insts(block).count())
        .sum()
}

/// The first function on which the compiler fails, and how.
fn first_failure<'a>(
    file: &'a SourceFile,
    settings: &settings::Options,
) -> Option<(&'a SourceFunction, String)> {
    (file.functions.iter()).find_map(|function| {
        failure(&function.func, function.kernel, settings).map(|message| (function, message))
    })
}

/// How the compiler fails on a function, if it does.
fn failure(
    func: &Function,
    kernel: Option<KernelOptions>,
    settings: &settings::Options,
) -> Option<String> {
    let input = FunctionInput {
        func,
        name: "reduced",
        kernel,
        linkage: Linkage::Global,
        namer: &|_| None,
    };
    let compile = || Compiler::new(settings.clone()).compile_function(&input, &mut Unit::new());
    match panics::catch(compile) {
        Err(message) => Some(message),
        Ok(Ok(())) => None,
        Ok(Err(errors)) => errors
            .as_slice()
            .iter()
            .find_map(|error| match &error.problem {
                Problem::Internal(message) => Some(message.replace('\n', " ")),
                _ => None,
            }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_apart_by_their_words() {
        let one = "src/a.rs:12:3: v7 of block2 has no register";
        let same = "src/a.rs:12:3: v13 of block0 has no register";
        let other = "src/a.rs:12:3: v7 of block2 has no place";
        assert_eq!(without_numbers(one), without_numbers(same));
        assert_ne!(without_numbers(one), without_numbers(other));
    }

    #[test]
    fn a_header_has_the_settings_that_are_not_the_defaults() {
        let mut settings = settings::Options::default();
        assert_eq!(
            header(&settings),
            format!("test compile\ntarget {TARGET}\n")
        );
        settings.set("unroll=off").expect("there is such a setting");
        let expected = format!("test compile\nset unroll=off\ntarget {TARGET}\n");
        assert_eq!(header(&settings), expected);
    }
}
