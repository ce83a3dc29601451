//! What functions become: instructions, copies, registers, accesses to spill slots and innermost loops, summed by
//! source and class, in every compared setting, and against a table that was saved before.

use crate::corpus::{Class, Source, size};
use crate::figures::Figures;
use crate::subject::Subject;
use anyhow::{Context, Result, bail};
use cranelift_thisgpu::compile::FunctionInput;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use thisgpu_filetests::shard::Part;

/// All functions with their figures.
#[derive(Serialize, Deserialize)]
pub struct Quality {
    /// The first seed of random kernels.
    pub seed: u64,
    #[serde(flatten)]
    part: Part,
    subjects: Vec<String>,
    functions: Vec<Function>,
}

#[derive(Serialize, Deserialize)]
struct Function {
    source: String,
    /// File and symbol.
    name: String,
    clif: usize,
    /// In each setting; none where it does not compile.
    figures: Vec<Option<Figures>>,
}

/// Compiles everything.
pub fn measure(sources: &[Source], subjects: &mut [Subject], seed: u64, part: Part) -> Quality {
    let mut functions = Vec::new();
    for source in sources {
        for file in &source.files {
            let (unit, _) = Subject::announce(&file.text);
            for function in &file.text.functions {
                let name = function.name();
                let input = FunctionInput::of_source(function, &name);
                let figures = subjects.iter_mut().map(|subject| {
                    let mut unit = unit.clone();
                    subject.compile(&input, &mut unit).ok()?;
                    unit.functions().next().map(Figures::of)
                });
                functions.push(Function {
                    source: source.name.clone(),
                    name: format!("{} {name}", file.name),
                    clif: size(&function.func),
                    figures: figures.collect(),
                });
            }
        }
    }
    let subjects: Vec<String> = subjects.iter().map(|s| s.label.clone()).collect();
    Quality {
        seed,
        part,
        subjects,
        functions,
    }
}

/// Figures to compare a setting with.
struct Baseline<'a> {
    figures: HashMap<(&'a str, &'a str), &'a Figures>,
    /// What it is, in the table.
    label: String,
}

/// A function in a setting and in its baseline.
type Pair<'a> = (&'a Function, &'a Figures, Option<&'a Figures>);

impl Quality {
    /// A saved table.
    ///
    /// # Errors
    /// When the file cannot be read or is something else.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{}: no table of --quality", path.display()))
    }

    /// The tables of all parts as one, by source and file.
    ///
    /// # Errors
    /// When a file cannot be read or is something else, and when they are not all parts of one run.
    pub fn join(paths: &[PathBuf]) -> Result<Self> {
        let mut tables = (paths.iter())
            .map(|path| Self::read(path))
            .collect::<Result<Vec<_>>>()?;
        let names = paths.iter().map(|path| path.display().to_string());
        let whole = Part::join(tables.iter().map(|table| &table.part).zip(names));
        let whole = whole.map_err(anyhow::Error::msg)?;
        tables.sort_by_key(|table| table.part.shard);
        let mut tables = tables.into_iter();
        let mut all = tables.next().context("nothing to join")?;
        all.functions
            .extend(tables.flat_map(|table| table.functions));
        all.part = whole;
        // Sources and their files by name; functions of one file stay as they are.
        all.functions.sort_by(|a, b| a.source.cmp(&b.source));
        Ok(all)
    }

    fn baseline(&self, index: usize) -> Baseline<'_> {
        let of = |function: &'_ Function| function.figures.get(index).copied().flatten().is_some();
        Baseline {
            figures: (self.functions.iter())
                .filter(|function| of(function))
                .filter_map(|function| {
                    let key = (function.source.as_str(), function.name.as_str());
                    Some((key, function.figures[index].as_ref()?))
                })
                .collect(),
            label: self.subjects[index].clone(),
        }
    }

    /// The setting of `saved` that belongs to a setting here: that of the same name, else that in the same place.
    fn partner(&self, saved: &Quality, index: usize) -> Result<usize> {
        let same = |label: &String| *label == self.subjects[index];
        if let Some(found) = saved.subjects.iter().position(same) {
            return Ok(found);
        }
        if saved.subjects.len() != self.subjects.len() {
            bail!(
                "the saved table has the settings {}, none of them {}",
                saved.subjects.join(", "),
                self.subjects[index]
            );
        }
        Ok(index)
    }

    /// The sums as text, and with `saved` the change since; then the functions that became worst since, at most
    /// `worst`, without `saved` those that are worse than in the first setting.
    ///
    /// # Errors
    /// When the saved table has other settings.
    pub fn table(&self, saved: Option<&Quality>, worst: usize) -> Result<String> {
        let mut out = String::new();
        write!(
            out,
            "{:<20} {:<9} {:<24} {:>9}",
            "source", "class", "setting", "functions"
        )?;
        for name in Figures::NAMES {
            write!(out, " {name:>18}")?;
        }
        writeln!(out)?;
        let mut remarks = String::new();
        let mut rows: BTreeMap<(usize, usize, usize), String> = BTreeMap::new();
        for (index, label) in self.subjects.iter().enumerate() {
            let baseline = match saved {
                Some(saved) => Some(saved.baseline(self.partner(saved, index)?)),
                None if index > 0 => Some(self.baseline(0)),
                None => None,
            };
            let pairs = self.pairs(index, baseline.as_ref());
            let compared = saved.is_some().then_some(());
            for ((source, class), pairs) in self.groups(&pairs) {
                let row = line(&pairs, compared.is_some());
                let (source_name, class_name) = self.names(source, class);
                let row = format!("{source_name:<20} {class_name:<9} {label:<24} {row}");
                rows.insert((source, class, index), row);
            }
            let lacking = self.functions.len() - pairs.len();
            if lacking > 0 {
                writeln!(
                    remarks,
                    "{label}: {lacking} functions are left out: they do not compile, or not in all that is compared"
                )?;
            }
            if let Some(baseline) = &baseline {
                remarks += &worse(&pairs, label, &baseline.label, worst);
            }
        }
        for row in rows.values() {
            writeln!(out, "{row}")?;
        }
        Ok(out + &remarks)
    }

    /// The sources in order of appearance.
    fn sources(&self) -> Vec<&str> {
        let mut sources: Vec<&str> = Vec::new();
        for function in &self.functions {
            if !sources.contains(&function.source.as_str()) {
                sources.push(&function.source);
            }
        }
        sources
    }

    fn names(&self, source: usize, class: usize) -> (String, &'static str) {
        let sources = self.sources();
        let source = sources.get(source).copied().unwrap_or("all");
        (
            source.to_owned(),
            Class::ALL.get(class).map_or("all", |class| class.name()),
        )
    }

    /// The functions that compile in every setting and in the baseline.
    fn pairs<'a>(&'a self, index: usize, baseline: Option<&Baseline<'a>>) -> Vec<Pair<'a>> {
        let compiled = self
            .functions
            .iter()
            .filter(|f| f.figures.iter().all(Option::is_some));
        compiled
            .filter_map(|function| {
                let key = (function.source.as_str(), function.name.as_str());
                let before = match baseline {
                    Some(baseline) => Some(*baseline.figures.get(&key)?),
                    None => None,
                };
                Some((function, function.figures[index].as_ref()?, before))
            })
            .collect()
    }

    /// By number of source and class; the number behind the last means all.
    fn groups<'a>(&self, pairs: &[Pair<'a>]) -> BTreeMap<(usize, usize), Vec<Pair<'a>>> {
        let sources = self.sources();
        let mut groups: BTreeMap<(usize, usize), Vec<Pair<'a>>> = BTreeMap::new();
        for pair in pairs {
            let source = sources.iter().position(|s| *s == pair.0.source);
            let class = Class::ALL.iter().position(|c| *c == Class::of(pair.0.clif));
            let (source, class) = (source.unwrap_or_default(), class.unwrap_or_default());
            let last = (sources.len(), Class::ALL.len());
            for key in [(source, class), (source, last.1), last] {
                groups.entry(key).or_default().push(*pair);
            }
        }
        groups
    }
}

/// Sums of a group, with their change if that is asked for.
fn line(pairs: &[Pair<'_>], change: bool) -> String {
    let (mut now, mut before) = (Figures::default(), Figures::default());
    for (_, figures, baseline) in pairs {
        now.add(figures);
        before.add(baseline.unwrap_or(figures));
    }
    let mut out = format!("{:>9}", pairs.len());
    for (now, before) in now.values().into_iter().zip(before.values()) {
        let cell = if change && before > 0 {
            let percent = 100.0 * (now as f64 / before as f64 - 1.0);
            format!("{now} {percent:+.2}%")
        } else if change {
            format!("{now} (0)")
        } else {
            now.to_string()
        };
        out += &format!(" {cell:>18}");
    }
    out
}

/// How many functions became better and worse, and the worst.
fn worse(pairs: &[Pair<'_>], label: &str, before: &str, most: usize) -> String {
    let change = |pair: &Pair<'_>| {
        let old = pair.2.unwrap_or(pair.1).values();
        let change: Vec<i64> = (pair.1.values().into_iter().zip(old))
            .map(|(new, old)| new as i64 - old as i64)
            .collect();
        change
    };
    let mut out = String::new();
    let instructions = |pair: &Pair<'_>| change(pair)[0];
    let better = pairs.iter().filter(|pair| instructions(pair) < 0).count();
    let longer = pairs.iter().filter(|pair| instructions(pair) > 0).count();
    out += &format!("{label} against {before}: {better} functions are shorter, {longer} longer\n");
    let mut worst: Vec<&Pair<'_>> = (pairs.iter())
        .filter(|pair| change(pair).iter().any(|&figure| figure > 0))
        .collect();
    worst.sort_by_key(|pair| std::cmp::Reverse(change(pair)));
    for pair in worst.into_iter().take(most) {
        let changes: Vec<String> = (Figures::NAMES.iter().zip(change(pair)).zip(pair.1.values()))
            .filter(|((_, change), _)| *change != 0)
            .map(|((name, change), now)| format!("{name} {now} ({change:+})"))
            .collect();
        out += &format!(
            "  {}: {}: {}\n",
            pair.0.source,
            pair.0.name,
            changes.join(", ")
        );
    }
    out
}
