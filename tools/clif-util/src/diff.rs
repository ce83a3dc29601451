//! `clif-util diff FILE --a K=V.. --b K=V..`: the functions of a file compiled with two sets of settings, and what
//! differs.
//!
//! For each function a table of its numbers ([`figures`]) and the two texts line beside line ([`rows`]). That something
//! differs is no failure.

mod figures;
mod rows;
mod weights;

use crate::options::{Settings, parse_setting};
use crate::{Outcome, input, source};
use anyhow::{Context, Result};
use clap::Args;
use cranelift_thisgpu::asm::{ListedFunction, listed_functions};
use cranelift_thisgpu::compile::{Code, Compiler, SourceFile};
use figures::Figures;
use rows::Difference;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Options of `diff`.
#[derive(Args)]
pub struct Options {
    /// CLIF text.
    file: PathBuf,
    /// Settings of the first side, over those of --set.
    #[arg(long, value_name = "K=V", num_args = 1.., required_unless_present = "b", value_parser = parse_setting)]
    a: Vec<String>,
    /// Settings of the second side, over those of --set.
    #[arg(long, value_name = "K=V", num_args = 1.., value_parser = parse_setting)]
    b: Vec<String>,
    #[command(flatten)]
    settings: Settings,
    /// Make this function a kernel.
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// Print what changes below each other, with three lines around it, not both texts beside each other.
    #[arg(short, long)]
    unified: bool,
    /// Compare without the numbers of registers and labels.
    #[arg(long)]
    ignore_registers: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A file compiled with the settings of a side.
struct Side {
    /// The settings, `default` if there are none.
    name: String,
    code: Code,
    listed: BTreeMap<String, ListedFunction>,
}

impl Options {
    /// Compiles both sides and prints what differs.
    pub fn run(self) -> Result<Outcome> {
        let file = source::read(&self.file, &self.kernel)?;
        let a = self.side(&file, &self.a).context("the settings of --a")?;
        let b = self.side(&file, &self.b).context("the settings of --b")?;
        if self.json {
            input::print_line(self.as_json(&file, &a, &b)?)?;
        } else {
            input::write(Path::new("-"), self.as_text(&a, &b)?.as_bytes())?;
        }
        Ok(Outcome::Success)
    }

    fn side(&self, file: &SourceFile, settings: &[String]) -> Result<Side> {
        let settings = [self.settings.settings.as_slice(), settings].concat();
        let name = match settings.as_slice() {
            [] => "default".to_owned(),
            settings => settings.join(" "),
        };
        let settings = Settings { settings };
        let mut compiler = Compiler::new(settings.over(file)?);
        compiler.model_cycles(true);
        let code = source::compile(&mut compiler, file, 1)?;
        let functions = code.object().functions.iter();
        let names = functions.map(|function| function.name.clone());
        let listed = names.zip(listed_functions(code.object())).collect();
        Ok(Side { name, code, listed })
    }

    fn as_text(&self, a: &Side, b: &Side) -> Result<String> {
        let mut out = format!("a: {}\nb: {}\n", a.name, b.name);
        for name in names(a, b) {
            let (first, second) = (a.lines(name), b.lines(name));
            let difference = Difference::new(&first, &second, self.ignore_registers);
            writeln!(out, "\n%{name}")?;
            let figures = Figures::of_both([a, b], name);
            figures::table(figures[0].as_ref(), figures[1].as_ref(), &mut out)?;
            if difference.is_empty() {
                writeln!(out, "  the code is the same")?;
            } else if self.unified {
                difference.unified(&mut out)?;
            } else {
                difference.side_by_side(&mut out)?;
            }
        }
        Ok(out)
    }

    fn as_json(&self, file: &SourceFile, a: &Side, b: &Side) -> Result<String> {
        let function = |name: &str| {
            let (first, second) = (a.lines(name), b.lines(name));
            let difference = Difference::new(&first, &second, self.ignore_registers);
            let [figures_a, figures_b] = Figures::of_both([a, b], name);
            Ok(json!({
                "name": name,
                "a": figures_a,
                "b": figures_b,
                "same": difference.is_empty(),
                "rows": difference.to_json()?,
            }))
        };
        let functions: Vec<_> = names(a, b).map(function).collect::<Result<_>>()?;
        let whole = json!({
            "file": &*file.name,
            "a": a.name,
            "b": b.name,
            "functions": functions,
        });
        Ok(whole.to_string())
    }
}

/// The functions of the first side in their order, then those that only the second has: which of the library are called
/// may differ.
fn names<'a>(a: &'a Side, b: &'a Side) -> impl Iterator<Item = &'a str> {
    let functions = |side: &'a Side| side.code.object().functions.iter();
    let more = functions(b).filter(|function| !a.listed.contains_key(&function.name));
    let both = functions(a).chain(more);
    both.map(|function| function.name.as_str())
}

impl Side {
    fn lines(&self, name: &str) -> Vec<String> {
        rows::lines(self.listed.get(name))
    }
}
