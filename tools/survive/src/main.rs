//! `survive`: no text may end the process.
//!
//! Reads and compiles CLIF texts: the files of folders, texts from standard input, and damaged ones made of them. What
//! comes of a text is not looked at; its errors are errors, and that it was compiled is enough. A panic ends the whole
//! process at once, as it does where the library is built with `panic=abort`; the text is named before, and kept.
//! `cargo run --profile abort -p survive` is such a build.

mod damage;

use clap::Parser;
use cranelift_thisgpu::compile::{Compiler, SourceFile};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::unstable::isa::random::Random;
use damage::damaged;
use rayon::prelude::*;
use std::cell::RefCell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads and compiles many CLIF texts, and ends at the first panic.
#[derive(Parser)]
struct Arguments {
    /// Files and folders with CLIF.
    paths: Vec<PathBuf>,
    /// Read more texts from standard input, each ended by a NUL byte (`fuzz --write`).
    #[arg(long)]
    stdin: bool,
    /// So many damaged texts, made of the others.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    damaged: u64,
    /// The first seed of damaged texts.
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Where the text is written that ends the process.
    #[arg(long, default_value = "survive-panic.clif", value_name = "FILE")]
    keep: PathBuf,
}

/// What came of texts.
#[derive(Default)]
struct Counts {
    compiled: AtomicU64,
    refused: AtomicU64,
}

impl Counts {
    fn print(&self, what: &str) {
        let [compiled, refused] =
            [&self.compiled, &self.refused].map(|count| count.load(Ordering::Relaxed));
        println!("{what}: {compiled} compiled, {refused} refused");
    }
}

thread_local! {
    /// The text that this thread compiles, with its name.
    static CURRENT: RefCell<(String, String)> = const { RefCell::new((String::new(), String::new())) };
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    abort_on_panic(arguments.keep.clone());
    let mut texts = Vec::new();
    for path in &arguments.paths {
        if let Err(error) = collect(path, &mut texts) {
            eprintln!("survive: {}: {error}", path.display());
            return ExitCode::from(2);
        }
    }
    let whole = Counts::default();
    texts
        .par_iter()
        .for_each(|(name, text)| survive(name, text, &whole));
    whole.print("files");
    if arguments.stdin {
        let mut all = Vec::new();
        if let Err(error) = std::io::stdin().read_to_end(&mut all) {
            eprintln!("survive: standard input: {error}");
            return ExitCode::from(2);
        }
        let more = all.split(|&byte| byte == 0).filter(|text| !text.is_empty());
        let more: Vec<(String, String)> = more
            .enumerate()
            .map(|(index, text)| {
                (
                    format!("text {index} of standard input"),
                    String::from_utf8_lossy(text).into_owned(),
                )
            })
            .collect();
        let given = Counts::default();
        more.par_iter()
            .for_each(|(name, text)| survive(name, text, &given));
        given.print("texts of standard input");
        texts.extend(more);
    }
    if texts.is_empty() {
        eprintln!("survive: no texts; name files or folders");
        return ExitCode::from(2);
    }
    let harmed = Counts::default();
    (arguments.seed..arguments.seed + arguments.damaged)
        .into_par_iter()
        .for_each(|seed| {
            let mut random = Random::new(seed);
            let (name, text) = &texts[random.below(texts.len())];
            let (_, other) = &texts[random.below(texts.len())];
            let text = damaged(text, other, &mut random);
            survive(&format!("seed {seed}, {name}"), &text, &harmed);
        });
    harmed.print(&format!("damaged texts from seed {}", arguments.seed));
    ExitCode::SUCCESS
}

/// Has the first panic end the process, whatever it is built with. The text is written to `keep` before.
fn abort_on_panic(keep: PathBuf) {
    std::panic::set_hook(Box::new(move |panic| {
        let (name, text) = CURRENT.take();
        eprintln!("survive: {name}: {panic}");
        match std::fs::write(&keep, text) {
            Ok(()) => eprintln!("survive: the text is in {}", keep.display()),
            Err(error) => eprintln!("survive: {}: {error}", keep.display()),
        }
        std::process::abort();
    }));
}

/// Adds the texts of a file or of all files of a folder, in order of their names.
fn collect(path: &Path, texts: &mut Vec<(String, String)>) -> std::io::Result<()> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
        let mut entries = entries.collect::<std::io::Result<Vec<PathBuf>>>()?;
        entries.sort();
        let is_wanted = |path: &PathBuf| {
            path.is_dir() || path.extension().is_some_and(|ending| ending == "clif")
        };
        return entries
            .iter()
            .filter(|path| is_wanted(path))
            .try_for_each(|path| collect(path, texts));
    }
    let text = std::fs::read(path)?;
    texts.push((
        path.display().to_string(),
        String::from_utf8_lossy(&text).into_owned(),
    ));
    Ok(())
}

/// Reads a text, its run lines too, and compiles it as its header says and without optimisation.
fn survive(name: &str, text: &str, counts: &Counts) {
    CURRENT.set((name.to_owned(), text.to_owned()));
    let file = SourceFile::parse_partly(name, text);
    for function in &file.functions {
        _ = function.run_lines(&file.name);
    }
    let mut options = Options::default();
    for word in file.header.settings.iter().flat_map(|line| &line.words) {
        // What the target does not know is for others.
        _ = options.set(word);
    }
    // Without the verifier a function has to be valid, which nobody knows of these.
    _ = options.set("enable_verifier=true");
    let mut plain = Options::default();
    _ = plain.set("opt_level=none");
    let results = [options, plain].map(|options| Compiler::new(options).file(&file).is_ok());
    let count = match results.contains(&true) {
        true => &counts.compiled,
        false => &counts.refused,
    };
    count.fetch_add(1, Ordering::Relaxed);
}
