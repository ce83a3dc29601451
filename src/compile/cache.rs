//! Compiled code kept in a folder from one run to the next.
//!
//! A [`CacheKey`] is the SHA-256 of all that decides what comes out: of a file as a whole, or of one function of those
//! that an embedding compiles one by one. An entry is a file under its key, with a checksum of its own. It is written
//! to a temporary file and then renamed, so that several processes may share a folder: each reads whole entries or
//! none. What cannot be read as what it should be is removed and counts as not there. When the entries take more than
//! the limit, those that were used longest ago go.
//!
//! A cache never makes a compilation fail: where the folder cannot be written, a message goes to the log, and the code
//! is compiled.

use super::unit::Compiled;
use super::watch::Halt;
use super::{Code, Compiler, FunctionInput, SourceFile, Summaries};
use crate::error::Errors;
use crate::locations::Locations;
use crate::object::Object;
use crate::remarks::Remark;
use crate::report::model::FunctionCycles;
use cranelift_codegen::ir::{Function, GlobalValueData};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher as _, RandomState};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// What this build of the compiler is made of, as a hash: another build may make other code.
const BUILD: &str = env!("THISGPU_BUILD_HASH");
/// First bytes of an entry; the last one is the version of its layout.
const MAGIC: &[u8; 8] = b"tgcache\x01";
/// Ends of the names of entries and of files that become entries.
const ENTRY: &str = "tgc";
const TEMPORARY: &str = "tmp";
/// A temporary file that is older was left behind by a process that ended early (*assumed*).
const ABANDONED: Duration = Duration::from_secs(3600);
/// Bytes of a checksum.
const HASH_BYTES: usize = 32;

/// All that decides what a compilation gives, as a hash. Prints as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheKey([u8; HASH_BYTES]);

impl CacheKey {
    /// The hash.
    pub fn as_bytes(&self) -> &[u8; HASH_BYTES] {
        &self.0
    }
}

impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes parts so that no two lists of parts give the same bytes.
struct Hasher(Sha256);

impl Hasher {
    fn part(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
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
            log::warn!("cache: {} is not kept: {error}", file.name);
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
        if compiled.constants.tables().is_empty()
            && compiled.constants.fits(room)
            && let Err(error) = cache.put_function(&key, &compiled)
        {
            log::warn!("cache: %{} is not kept: {error}", input.name);
        }
        Ok(compiled)
    }

    /// The key of what compiling these functions together gives: their CLIF as text, the symbols of the functions and
    /// data objects that they refer to, kernel marks, linkage, the settings, and this build of the compiler. Lines of
    /// the source count where they come out again: in line tables, remarks and cycles. What data objects hold decides
    /// nothing: code has their addresses only.
    pub fn cache_key(&self, functions: &[FunctionInput<'_>]) -> CacheKey {
        let mut hasher = Hasher(Sha256::new());
        if self.shows_places() {
            let places = self.locations.as_deref();
            hasher.part(places.map_or_else(String::new, Locations::content));
        }
        self.hash(&mut hasher, functions);
        CacheKey(hasher.0.finalize().into())
    }

    /// The key of what compiling one function of a unit gives, before the numbers of its lines are places: beside the
    /// function, what is known of its callees, and the registers that launch bounds leave it.
    fn function_key(&self, function: &FunctionInput<'_>, summaries: &Summaries) -> CacheKey {
        let mut hasher = Hasher(Sha256::new());
        hasher.part("function");
        self.hash(&mut hasher, std::slice::from_ref(function));
        hasher.part(format!("{:?}", summaries.of_callees(function)));
        hasher.part([summaries.register_limit(function.kernel)]);
        CacheKey(hasher.0.finalize().into())
    }

    /// Whether places in the source come out again.
    fn shows_places(&self) -> bool {
        self.options.lines || self.watch.remarks || self.watch.cycles
    }

    fn hash(&self, hasher: &mut Hasher, functions: &[FunctionInput<'_>]) {
        hasher.part(BUILD);
        hasher.part(cranelift_codegen::VERSION);
        hasher.part(format!("{:?}", self.options));
        let (remarks, cycles) = (self.watch.remarks, self.watch.cycles);
        hasher.part([u8::from(remarks), u8::from(cycles)]);
        hasher.part((functions.len() as u64).to_le_bytes());
        for function in functions {
            hasher.part(function.name);
            hasher.part(format!("{:?} {:?}", function.kernel, function.linkage));
            hasher.part(if self.shows_places() {
                function.func.display().to_string()
            } else {
                without_locations(function.func).display().to_string()
            });
            for callee in function.func.dfg.ext_funcs.values() {
                hasher.part(function.symbol(&callee.name));
            }
            for global in function.func.global_values.values() {
                if let GlobalValueData::Symbol { name, .. } = global {
                    hasher.part(function.symbol(name));
                }
            }
        }
    }
}

/// The function without lines of the source.
fn without_locations(func: &Function) -> Function {
    let mut func = func.clone();
    func.srclocs.clear();
    func
}

/// A folder with compiled code.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    limit: u64,
    /// Tells its temporary files from those of others, also of a process that has the same number in another container.
    identity: u64,
    /// Entries that were written; tells its temporary files apart.
    writes: AtomicU64,
    /// Entries that were there.
    hits: AtomicU64,
    size: Mutex<Size>,
}

/// What is known of the size of a folder without listing it, which takes longer the more entries there are.
#[derive(Debug, Default)]
struct Size {
    /// Bytes of all entries when they were listed; none before the first time.
    listed: Option<u64>,
    /// Bytes that were written since.
    written: u64,
}

impl Size {
    /// Entries are listed again after this part of the limit, for what others have written.
    const PART: u64 = 8;

    /// Counts an entry. Whether the entries are to be listed, because they may be too many.
    fn add(&mut self, bytes: u64, limit: u64) -> bool {
        self.written = self.written.saturating_add(bytes);
        let all = (self.listed).map(|listed| listed.saturating_add(self.written));
        all.is_none_or(|all| all > limit) || self.written > limit / Self::PART
    }
}

/// An error with the folder that it is about, which the system's does not name.
fn named(folder: &Path, error: &io::Error) -> io::Error {
    let kind = error.kind();
    io::Error::new(kind, format!("the folder {}: {kind}", folder.display()))
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
        let folder = folder.into();
        fs::create_dir_all(&folder).map_err(|error| named(&folder, &error))?;
        Ok(Self {
            folder,
            limit,
            identity: RandomState::new().build_hasher().finish(),
            writes: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            size: Mutex::default(),
        })
    }

    /// How often this value was asked for an entry that was there.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// How many entries this value has written, or tried to.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// The code under a key. A bad entry is removed, and so is what is no regular file; one that is larger than the
    /// limit counts as not there.
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
        make: impl FnOnce(C) -> Option<T>,
    ) -> Option<T> {
        let path = self.path(key);
        // Of a link this tells what it is, not what it leads to.
        let found = fs::symlink_metadata(&path).ok()?;
        if found.is_file() && found.len() > self.limit {
            // It may be one of a cache with a higher limit.
            return None;
        }
        // A pipe or a device never ends, and no entry is one.
        let bytes = if found.is_file() {
            self.read(&path).ok()?
        } else {
            Vec::new()
        };
        let Some(code) = decode(&bytes, key).and_then(make) else {
            log::warn!("cache: {} is damaged and is removed", path.display());
            // Another process may have been faster.
            let _ = fs::remove_file(&path);
            return None;
        };
        self.hits.fetch_add(1, Ordering::Relaxed);
        // For the order of eviction only.
        if let Ok(file) = File::options().append(true).open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(code)
    }

    /// The bytes of an entry, no more than the cache may have.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        file.take(self.limit.saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Keeps code under a key. What is larger than the limit is not kept.
    ///
    /// # Errors
    /// When the folder cannot be written, or the code has no file.
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
        let bytes = encode(key, contents).map_err(io::Error::other)?;
        let size = bytes.len() as u64;
        if size > self.limit {
            return Ok(());
        }
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let name = format!("{key}.{:016x}.{number}.{TEMPORARY}", self.identity);
        let temporary = self.folder.join(name);
        let written =
            fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, self.path(key)));
        if written.is_err() {
            // What cannot be removed was never made.
            let _ = fs::remove_file(&temporary);
        }
        let evicted = written.and_then(|()| {
            let mut known = self.size.lock().unwrap_or_else(PoisonError::into_inner);
            if known.add(size, self.limit) {
                *known = Size {
                    listed: Some(self.evict(key)?),
                    written: 0,
                };
            }
            Ok(())
        });
        evicted.map_err(|error| named(&self.folder, &error))
    }

    /// The entry's file.
    fn path(&self, key: &CacheKey) -> PathBuf {
        self.folder.join(format!("{key}.{ENTRY}"))
    }

    /// Removes entries until all take no more than the limit, first those that were used longest ago; `newest` stays.
    /// Gives the bytes that are left.
    fn evict(&self, newest: &CacheKey) -> io::Result<u64> {
        let kept = self.path(newest);
        let mut entries: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
        let mut total = 0;
        for file in fs::read_dir(&self.folder)? {
            // Other processes remove files too.
            let Some((path, data)) = file
                .ok()
                .and_then(|file| Some((file.path(), file.metadata().ok()?)))
            else {
                continue;
            };
            let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if has_extension(&path, TEMPORARY) {
                if used.elapsed().is_ok_and(|age| age > ABANDONED) {
                    let _ = fs::remove_file(&path);
                }
            } else if has_extension(&path, ENTRY) {
                total += data.len();
                entries.push((used, path, data.len()));
            }
        }
        entries.sort();
        for (_, path, bytes) in entries {
            if total <= self.limit {
                break;
            }
            if path != kept {
                let _ = fs::remove_file(&path);
                total -= bytes;
            }
        }
        Ok(total)
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e == extension)
}

/// The bytes of an entry: magic, checksum of the rest, key, contents.
fn encode(key: &CacheKey, contents: &impl Serialize) -> Result<Vec<u8>, rmp_serde::encode::Error> {
    let contents = rmp_serde::to_vec(&(key.0, contents))?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(Sha256::digest(&contents));
    bytes.extend(contents);
    Ok(bytes)
}

/// The contents of an entry; none if it is not what it should be.
fn decode<C: DeserializeOwned>(bytes: &[u8], key: &CacheKey) -> Option<C> {
    let (checksum, rest) = bytes.strip_prefix(MAGIC)?.split_at_checked(HASH_BYTES)?;
    if Sha256::digest(rest)[..] != *checksum {
        return None;
    }
    let (found, contents): ([u8; HASH_BYTES], C) = rmp_serde::from_slice(rest).ok()?;
    (found == key.0).then_some(contents)
}
