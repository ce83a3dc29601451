//! `shared-cache --service redis --option endpoint=redis://127.0.0.1:6379 FILES`: compiles CLIF files, each function by
//! itself, with a folder before a shared store, and says how much came from where.

use anyhow::{Context, Result};
use clap::Parser;
use cranelift_thisgpu::compile::{Cache, CacheKey, CacheStore, Compiler, SourceFile};
use cranelift_thisgpu::settings::Options;
use shared_cache::Shared;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Compiles files with a cache that machines share.
#[derive(Parser)]
struct Arguments {
    /// CLIF files.
    files: Vec<PathBuf>,
    /// The kind of store, as opendal names it.
    #[arg(long, default_value = "redis")]
    service: String,
    /// What it has to know, as opendal names it.
    #[arg(long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// Milliseconds that a question may take.
    #[arg(long, default_value_t = 1000)]
    limit: u64,
    /// A folder that is asked first.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// So many functions that are made up, in place of files: the same ones each time.
    #[arg(long, default_value_t = 0)]
    generated: u32,
}

/// Counts what a store is asked and what it has.
#[derive(Debug, Default)]
struct Counts {
    asked: AtomicU64,
    found: AtomicU64,
}

/// A store that is counted.
#[derive(Debug)]
struct Counted<S>(S, Arc<Counts>);

impl<S: CacheStore> CacheStore for Counted<S> {
    fn get(&self, key: &CacheKey) -> io::Result<Option<Vec<u8>>> {
        self.1.asked.fetch_add(1, Ordering::Relaxed);
        let found = self.0.get(key)?;
        self.1
            .found
            .fetch_add(u64::from(found.is_some()), Ordering::Relaxed);
        Ok(found)
    }

    fn insert(&self, key: &CacheKey, entry: &[u8]) -> io::Result<()> {
        self.0.insert(key, entry)
    }

    fn remove(&self, key: &CacheKey) {
        self.0.remove(key);
    }

    fn name(&self) -> String {
        self.0.name()
    }
}

fn main() -> Result<()> {
    env_logger::init();
    let arguments = Arguments::parse();
    let limit = Duration::from_millis(arguments.limit);
    let shared = Shared::new(&arguments.service, &arguments.options, limit)?;
    let counts = Arc::new(Counts::default());
    let shared = Counted(shared, counts.clone());
    let cache = match &arguments.folder {
        Some(folder) => Cache::open(folder, Cache::DEFAULT_LIMIT)
            .with_context(|| folder.display().to_string())?
            .before(shared),
        None => Cache::of(shared),
    };
    let mut compiler = Compiler::new(Options::default());
    compiler.use_cache(Some(Arc::new(cache)));
    let mut texts = Vec::new();
    for file in &arguments.files {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        texts.push((file.display().to_string(), text));
    }
    texts.extend(
        (0..arguments.generated).map(|number| (format!("generated-{number}"), function(number))),
    );
    let mut bytes = 0;
    let total = texts.len();
    for (name, text) in texts {
        let file = SourceFile::parse(&name, &text)?;
        let code = compiler.file(&file)?;
        bytes += code.to_elf()?.len();
    }
    println!(
        "{total} files, {bytes} bytes of code, {} of {} from the shared store",
        counts.found.load(Ordering::Relaxed),
        counts.asked.load(Ordering::Relaxed)
    );
    Ok(())
}

/// A kernel that no other number has.
fn function(number: u32) -> String {
    format!(
        "; kernel
function %k(i64) {{
    fn0 = %gpu_tid_x() -> i32
block0(v0: i64):
    v1 = call fn0()
    v2 = uextend.i64 v1
    v8 = iconst.i64 2
    v3 = ishl v2, v8
    v4 = iadd v0, v3
    v5 = load.i32 v4
    v9 = iconst.i32 {number}
    v6 = iadd v5, v9
    v7 = imul v6, v1
    store v7, v4
    return
}}
"
    )
}
