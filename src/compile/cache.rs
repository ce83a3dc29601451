//! Compiled code kept from one run to the next: in a folder, and in stores of other kinds behind it.
//!
//! A [`CacheKey`] is the SHA-256 of all that decides what comes out ([`key`]): of a file as a whole, or of one function
//! of those that an embedding compiles one by one. An entry is bytes with a checksum of their own ([`entry`]). Where
//! they are kept is a [`CacheStore`]; one is a folder ([`folder`]), others are an embedding's: a server that many
//! machines ask, say. A [`Cache`] asks its stores in order. What cannot be read as what it should be is removed and
//! counts as not there, wherever it comes from.
//!
//! A cache never makes a compilation fail: where a store fails, one message goes to the log, and the code is compiled.
//! A store that fails several times in a row is left alone for a while ([`layer`]), so that one that is down does not
//! cost its time-out for every function.

mod entry;
mod folder;
mod key;
mod layer;

use super::unit::Compiled;
use super::watch::Halt;
use super::{Code, Compiler, FunctionInput, SourceFile, Summaries};
use crate::error::Errors;
use crate::object::Object;
use crate::remarks::Remark;
use crate::report::model::FunctionCycles;
use folder::Folder;
pub use key::CacheKey;
use layer::Layer;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where entries are kept: bytes under keys. (Cranelift's `CacheKvStore` is the precedent.)
///
/// Several threads ask at once, and for a compiled function twice. So a call must end within a time that is short
/// against a compilation of everything; a store over a network needs a time-out. An entry may be lost at any time. It
/// need not be the one that was kept either: a cache checks what it gets.
pub trait CacheStore: fmt::Debug + Send + Sync {
    /// The bytes of an entry; none where there is none.
    ///
    /// # Errors
    /// When the store cannot be asked.
    fn get(&self, key: &CacheKey) -> io::Result<Option<Vec<u8>>>;

    /// Keeps an entry, in place of one that is there. What is too large for the store it may leave out.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn insert(&self, key: &CacheKey, entry: &[u8]) -> io::Result<()>;

    /// Removes an entry that turned out to be damaged. Without it a damaged entry stays until one is kept in its place.
    fn remove(&self, key: &CacheKey) {
        let _ = key;
    }

    /// What messages call it.
    fn name(&self) -> String {
        "a store".into()
    }
}

impl Compiler {
    /// Looks for code in a cache from now on before it is compiled, and keeps it there; or no longer. Files are kept as
    /// a whole ([`Compiler::file`] and what is made of it), functions that are compiled one by one each by itself
    /// ([`Compiler::compile_function`], [`Compiler::compile_module`], and so those of a `GpuModule`). With dumps
    /// everything is compiled.
    pub fn use_cache(&mut self, cache: Option<Arc<Cache>>) {
        self.cache = cache;
    }

    /// The cache, unless somebody wants to see everything compiled.
    pub(super) fn cache_in_use(&self) -> Option<Arc<Cache>> {
        let is_whole =
            self.watch.sink.is_none() && self.watch.last.is_none() && self.skip.is_empty();
        // What numbers of instructions stand for is not kept.
        let is_whole = is_whole && !self.options.value_locations;
        self.cache.clone().filter(|_| is_whole)
    }

    /// Takes a file from the cache or compiles it.
    pub(super) fn file_kept(
        &mut self,
        cache: &Arc<Cache>,
        file: &SourceFile,
        inputs: &[FunctionInput<'_>],
        threads: usize,
    ) -> Result<Code, Errors> {
        let key = self.cache_key(inputs);
        if let Some(code) = cache.get(&key) {
            return Ok(code.with_text(file));
        }
        // The functions are kept together, not one by one.
        self.cache = None;
        let code = self.file_afresh(file, inputs, threads);
        self.cache = Some(cache.clone());
        let code = code?;
        if let Err(error) = cache.put(&key, &code) {
            log::debug!("cache: {} is not kept: {error}", file.name);
        }
        Ok(code)
    }

    /// Takes a function from the cache or compiles it.
    pub(super) fn kept(
        &mut self,
        cache: &Cache,
        input: &FunctionInput<'_>,
        summaries: &Summaries,
        room: u32,
    ) -> Result<Compiled, Halt> {
        let key = self.function_key(input, summaries);
        if let Some(compiled) = cache.get_function(&key)
            && compiled.constants.fits(room)
        {
            return Ok(compiled);
        }
        let compiled = self.numbered(input, summaries, room)?;
        // How much room there was decides nothing only where it was enough.
        if compiled.constants.jump_tables().is_empty()
            && compiled.constants.fits(room)
            && let Err(error) = cache.put_function(&key, &compiled)
        {
            log::debug!("cache: %{} is not kept: {error}", input.name);
        }
        Ok(compiled)
    }
}

/// Stores with compiled code, asked in order.
#[derive(Debug)]
pub struct Cache {
    layers: Vec<Layer>,
    /// Entries that were there.
    hits: AtomicU64,
    /// Entries that every store has kept.
    writes: AtomicU64,
}

/// What the entry of a file holds.
#[derive(Serialize, Deserialize)]
struct Contents {
    /// The object's file.
    object: Vec<u8>,
    remarks: Vec<Remark>,
    cycles: Vec<FunctionCycles>,
}

impl Cache {
    /// Most bytes of the entries of a folder where nothing else is said.
    pub const DEFAULT_LIMIT: u64 = 1 << 30;

    /// The cache in a folder, which is made if it is not there. Its entries take at most `limit` bytes together.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(folder: impl Into<PathBuf>, limit: u64) -> io::Result<Self> {
        Ok(Self::of(Folder::open(folder.into(), limit)?))
    }

    /// The cache in a store.
    pub fn of(store: impl CacheStore + 'static) -> Self {
        let empty = Self {
            layers: Vec::new(),
            hits: AtomicU64::new(0),
            writes: AtomicU64::new(0),
        };
        empty.before(store)
    }

    /// The same cache with one more store, which is asked where those that are there have nothing: a folder before a
    /// server. What it has they get too, and what is compiled all of them keep.
    #[must_use]
    pub fn before(mut self, store: impl CacheStore + 'static) -> Self {
        self.layers.push(Layer::new(store));
        self
    }

    /// How many entries were there of those that were asked for since it was opened.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// How many entries were written since it was opened.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// The code under a key. A bad entry is removed; one that is larger than the limit counts as not there.
    pub fn get(&self, key: &CacheKey) -> Option<Code> {
        self.take(key, |contents: Contents| {
            let object = Object::read(&contents.object).ok()?;
            Some(Code::of_object(object).with_reports(contents.remarks, contents.cycles))
        })
    }

    /// The function under a key. A bad entry is removed.
    fn get_function(&self, key: &CacheKey) -> Option<Compiled> {
        self.take(key, Some)
    }

    /// What `make` makes of the contents of an entry, which is removed if that is nothing.
    fn take<C: DeserializeOwned, T>(
        &self,
        key: &CacheKey,
        make: impl Fn(C) -> Option<T>,
    ) -> Option<T> {
        for (index, layer) in self.layers.iter().enumerate() {
            let Some(bytes) = layer.get(key) else {
                continue;
            };
            match entry::decode(&bytes, key).and_then(&make) {
                Some(code) => {
                    for before in &self.layers[..index] {
                        // It says itself that it fails.
                        let _ = before.insert(key, &bytes);
                    }
                    self.hits.fetch_add(1, Ordering::Relaxed);
                    return Some(code);
                }
                None => layer.remove(key),
            }
        }
        None
    }

    /// What a front end has put under a key ([`CacheKey::of_parts`]). A bad entry is removed.
    pub fn get_value<T: DeserializeOwned>(&self, key: &CacheKey) -> Option<T> {
        self.take(key, Some)
    }

    /// Keeps what a front end has made.
    ///
    /// # Errors
    /// When a store cannot be written (the others keep it), or the value has no bytes.
    pub fn put_value(&self, key: &CacheKey, value: &impl Serialize) -> io::Result<()> {
        self.keep(key, value)
    }

    /// Keeps code under a key. What is larger than the limit is not kept.
    ///
    /// # Errors
    /// When a store cannot be written (the others keep it), or the code has no file.
    pub fn put(&self, key: &CacheKey, code: &Code) -> io::Result<()> {
        let object = code.to_elf().map_err(io::Error::other)?;
        let contents = Contents {
            object,
            remarks: code.remarks().to_vec(),
            cycles: code.cycles().to_vec(),
        };
        self.keep(key, &contents)
    }

    /// Keeps a function under a key, as [`Cache::put`].
    fn put_function(&self, key: &CacheKey, function: &Compiled) -> io::Result<()> {
        self.keep(key, function)
    }

    fn keep(&self, key: &CacheKey, contents: &impl Serialize) -> io::Result<()> {
        let bytes = entry::encode(key, contents).map_err(io::Error::other)?;
        let kept = self.layers.iter().map(|layer| layer.insert(key, &bytes));
        kept.fold(Ok(()), Result::and)?;
        self.writes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
