//! What is compiled: functions of CLIF files and generated ones, by source and by class of size.

use crate::{pressure, random, shapes};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use cranelift_codegen::ir::Function;
use cranelift_thisgpu::compile::SourceFile;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use thisgpu_filetests::shard::Shard;

/// A kind of generated functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Generated {
    /// Random kernels of the sizes of `--sizes`.
    Random,
    /// The shapes of `--growth` at the sizes of `--sizes`.
    Shapes,
    /// Loops with 100 to 300 live values.
    Pressure,
}

/// How large a function is, by its CLIF instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// At most 4.
    Tiny,
    /// 5 to 20.
    Small,
    /// 21 to 100.
    Medium,
    /// Over 100.
    Large,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 4] = [Class::Tiny, Class::Small, Class::Medium, Class::Large];

    /// Of so many instructions.
    pub fn of(insts: usize) -> Self {
        match insts {
            ..=4 => Class::Tiny,
            5..=20 => Class::Small,
            21..=100 => Class::Medium,
            _ => Class::Large,
        }
    }

    /// In tables.
    pub fn name(self) -> &'static str {
        match self {
            Class::Tiny => "1-4",
            Class::Small => "5-20",
            Class::Medium => "21-100",
            Class::Large => "over 100",
        }
    }
}

/// A path given by the user, or a kind of generated functions.
pub struct Source {
    /// In tables: the last part of the path.
    pub name: String,
    /// Files whose text parses.
    pub files: Vec<File>,
    /// Files that do not: tests of errors.
    pub unparsed: usize,
}

/// A file, read.
pub struct File {
    /// Path below the source's.
    pub name: String,
    /// Its functions.
    pub text: SourceFile,
}

/// What to generate.
pub struct Wanted<'a> {
    /// Kinds.
    pub kinds: &'a [Generated],
    /// CLIF instructions, about.
    pub sizes: &'a [usize],
    /// The first seed of random kernels.
    pub seed: u64,
    /// Random kernels of each size.
    pub count: u64,
}

/// CLIF instructions in the layout.
pub fn size(func: &Function) -> usize {
    let blocks = func.layout.blocks();
    blocks
        .map(|block| func.layout.block_insts(block).count())
        .sum()
}

/// The files of `paths`, folders searched, and what is to be generated.
///
/// # Errors
/// A path that cannot be read.
pub fn read(paths: &[PathBuf], wanted: &Wanted<'_>) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths {
        sources.push(of_path(path).with_context(|| format!("{}", path.display()))?);
    }
    for kind in wanted.kinds {
        sources.extend(generate(*kind, wanted)?);
    }
    // Two paths may end alike.
    for i in 1..sources.len() {
        let (before, source) = sources.split_at_mut(i);
        if before.iter().any(|other| other.name == source[0].name) {
            source[0].name = format!("{} ({})", source[0].name, i + 1);
        }
    }
    Ok(sources)
}

/// Names of files, and what is in them.
pub fn contents(sources: &[Source]) -> Vec<String> {
    let named = sources.iter().flat_map(|source| {
        let files = source.files.iter();
        files.map(|file| {
            let functions = file.text.functions.iter();
            let text: String = functions
                .map(|function| function.func.display().to_string())
                .collect();
            format!("{} {}\n{text}", source.name, file.name)
        })
    });
    named.collect()
}

/// The files of a part.
pub fn part(sources: Vec<Source>, shard: Shard) -> Vec<Source> {
    let files = sources.iter().enumerate();
    let files = files.flat_map(|(source, of)| (0..of.files.len()).map(move |file| (source, file)));
    let cost = |&(source, file): &(usize, usize)| {
        let functions = sources[source].files[file].text.functions.iter();
        functions.map(|function| size(&function.func) as u64).sum()
    };
    let taken: HashSet<(usize, usize)> = shard.items(files.collect(), cost).into_iter().collect();
    let part = sources.into_iter().enumerate().map(|(number, source)| {
        let files = source.files.into_iter().enumerate();
        let files = files.filter(|(file, _)| taken.contains(&(number, *file)));
        Source {
            files: files.map(|(_, file)| file).collect(),
            ..source
        }
    });
    part.collect()
}

/// All CLIF files of a path, sorted.
///
/// # Errors
/// A folder that cannot be read, or no such file.
pub fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
        files.sort();
    } else if path.extension().is_some_and(|e| e == "clif") {
        files.push(path.to_path_buf());
    } else if !path.exists() {
        bail!("no such file");
    }
    Ok(())
}

fn of_path(root: &Path) -> Result<Source> {
    let mut paths = Vec::new();
    collect(root, &mut paths)?;
    let name = root.file_name().unwrap_or(root.as_os_str());
    let mut source = Source {
        name: name.to_string_lossy().into_owned(),
        files: Vec::new(),
        unparsed: 0,
    };
    for path in paths {
        let below = path.strip_prefix(root).unwrap_or(&path);
        let name = if below.as_os_str().is_empty() {
            source.name.clone()
        } else {
            below.display().to_string()
        };
        let text = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        match SourceFile::parse(&path.display().to_string(), &text) {
            Ok(text) => source.files.push(File { name, text }),
            Err(_) => source.unparsed += 1,
        }
    }
    Ok(source)
}

fn generate(kind: Generated, wanted: &Wanted<'_>) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut add = |name: String, texts: Vec<(String, String)>| -> Result<()> {
        let files = texts.into_iter().map(|(name, text)| {
            let text = SourceFile::parse(&name, &text)?;
            Ok(File { name, text })
        });
        sources.push(Source {
            name,
            files: files.collect::<Result<_>>()?,
            unparsed: 0,
        });
        Ok(())
    };
    match kind {
        Generated::Random => {
            for &size in wanted.sizes {
                let seeds = wanted.seed..wanted.seed + wanted.count;
                let text = |seed| (format!("random {size} {seed}"), random::text(seed, size));
                add(format!("random {size}"), seeds.map(text).collect())?;
            }
        }
        Generated::Shapes => {
            for &size in wanted.sizes {
                let shapes = shapes::SHAPES.iter();
                let text = |shape: &shapes::Shape| (shape.name.to_owned(), (shape.text)(size));
                add(format!("shapes {size}"), shapes.map(text).collect())?;
            }
        }
        Generated::Pressure => {
            for l in pressure::LOOPS {
                let live = pressure::LIVE.iter();
                let text = |live: &usize| (format!("{} {live}", l.name), (l.text)(*live));
                add(format!("loop {}", l.name), live.map(text).collect())?;
            }
        }
    }
    Ok(sources)
}
