//! Entries as files of a folder, which processes may share.
//!
//! An entry is a file under its key. It is written to a temporary file and then renamed, so that each process reads
//! whole entries or none. When the entries take more than the limit, those that were used longest ago go.

use super::{CacheKey, CacheStore};
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher as _, RandomState};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Ends of the names of entries and of files that become entries.
const ENTRY: &str = "tgc";
const TEMPORARY: &str = "tmp";
/// A temporary file that is older was left behind by a process that ended early (*assumed*).
const ABANDONED: Duration = Duration::from_secs(3600);

/// A folder with entries.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    limit: u64,
    /// Tells its temporary files from those of others, also of a process that has the same number in another container.
    identity: u64,
    /// Tells its temporary files apart.
    writes: AtomicU64,
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

impl Folder {
    /// The folder, which is made if it is not there. Its entries take at most `limit` bytes together.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub(super) fn open(path: PathBuf, limit: u64) -> io::Result<Self> {
        fs::create_dir_all(&path).map_err(|error| named(&path, &error))?;
        Ok(Self {
            path,
            limit,
            identity: RandomState::new().build_hasher().finish(),
            writes: AtomicU64::new(0),
            size: Mutex::default(),
        })
    }

    /// The bytes of an entry, no more than the folder may have.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        file.take(self.limit.saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write(&self, key: &CacheKey, bytes: &[u8]) -> io::Result<()> {
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let name = format!("{key}.{:016x}.{number}.{TEMPORARY}", self.identity);
        let temporary = self.path.join(name);
        let written =
            fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, self.file(key)));
        if written.is_err() {
            // What cannot be removed was never made.
            let _ = fs::remove_file(&temporary);
        }
        written?;
        let mut known = self.size.lock().unwrap_or_else(PoisonError::into_inner);
        if known.add(bytes.len() as u64, self.limit) {
            *known = Size {
                listed: Some(self.evict(key)?),
                written: 0,
            };
        }
        Ok(())
    }

    /// The entry's file.
    fn file(&self, key: &CacheKey) -> PathBuf {
        self.path.join(format!("{key}.{ENTRY}"))
    }

    /// Removes entries until all take no more than the limit, first those that were used longest ago; `newest` stays.
    /// Gives the bytes that are left.
    fn evict(&self, newest: &CacheKey) -> io::Result<u64> {
        let kept = self.file(newest);
        let mut entries: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
        let mut total = 0;
        for file in fs::read_dir(&self.path)? {
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

impl CacheStore for Folder {
    /// What is no regular file gives no bytes, so that it is no entry; an entry that is larger than the limit counts as
    /// not there, since it may be one of a cache with a higher limit.
    fn get(&self, key: &CacheKey) -> io::Result<Option<Vec<u8>>> {
        let path = self.file(key);
        // Of a link this tells what it is, not what it leads to. A pipe or a device never ends.
        let bytes = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
            Ok(found) if !found.is_file() => return Ok(Some(Vec::new())),
            Ok(found) if found.len() > self.limit => return Ok(None),
            Ok(_) => match self.read(&path) {
                // Another process may have removed it since.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                read => read?,
            },
        };
        // For the order of eviction only.
        if let Ok(file) = File::options().append(true).open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        Ok(Some(bytes))
    }

    fn insert(&self, key: &CacheKey, entry: &[u8]) -> io::Result<()> {
        if entry.len() as u64 > self.limit {
            return Ok(());
        }
        self.write(key, entry)
    }

    fn remove(&self, key: &CacheKey) {
        // Another process may have been faster.
        let _ = fs::remove_file(self.file(key));
    }

    fn name(&self) -> String {
        format!("the folder {}", self.path.display())
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e == extension)
}
