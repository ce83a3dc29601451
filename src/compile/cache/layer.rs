//! A store as a part of a cache: what its failures mean.
//!
//! A failure is a warning, once in half a minute. After three in a row, or where more than one of three fail, the store
//! is left alone for half a minute, then asked once more. So a server that is down, or now and then, costs a few
//! time-outs and not one for every function. Reads and writes are counted apart, since a store may let everybody read
//! and few write; to one that cannot be read nothing is written. A store that panics has failed. One that gives a
//! damaged entry has not: the entry is removed, and the next may be right.

use super::{CacheKey, CacheStore};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a failure counts, where an answer takes one away again.
const FAILURE: u32 = 2;
/// The count at which a store is left alone: three failures in a row (*assumed*: one may be a connection that was cut).
const MOST: u32 = 3 * FAILURE;
/// How long (*assumed*).
const PAUSE: Duration = Duration::from_secs(30);

/// A store, and how it did lately.
#[derive(Debug)]
pub(super) struct Layer {
    store: Box<dyn CacheStore>,
    name: String,
    reads: Mutex<Failures>,
    writes: Mutex<Failures>,
    /// Whether it was said that an entry is damaged.
    tells_damage: AtomicBool,
}

#[derive(Debug, Default)]
struct Failures {
    count: u32,
    /// When the last one was.
    last: Option<Instant>,
    /// When one was told.
    told: Option<Instant>,
}

impl Failures {
    fn rests(&self) -> bool {
        self.count >= MOST && self.last.is_some_and(|at| at.elapsed() < PAUSE)
    }

    /// Whether nobody is to ask; whoever is let through after the pause is the only one until he has an answer.
    fn forbid(&mut self) -> bool {
        let rests = self.rests();
        if !rests && self.count >= MOST {
            self.last = Some(Instant::now());
        }
        rests
    }
}

impl Layer {
    pub(super) fn new(store: impl CacheStore + 'static) -> Self {
        let name = catch_unwind(AssertUnwindSafe(|| store.name()));
        Self {
            store: Box::new(store),
            name: name.unwrap_or_else(|_| "a store without a name".into()),
            reads: Mutex::default(),
            writes: Mutex::default(),
            tells_damage: AtomicBool::new(true),
        }
    }

    /// The bytes of an entry; none where the store has none, or fails.
    pub(super) fn get(&self, key: &CacheKey) -> Option<Vec<u8>> {
        self.ask(&self.reads, |store| store.get(key)).ok().flatten()
    }

    /// Keeps an entry.
    ///
    /// # Errors
    /// When the store fails or is left alone.
    pub(super) fn insert(&self, key: &CacheKey, entry: &[u8]) -> io::Result<()> {
        if locked(&self.reads).rests() {
            return Err(self.left_alone());
        }
        self.ask(&self.writes, |store| store.insert(key, entry))
    }

    /// Removes an entry that is damaged.
    pub(super) fn remove(&self, key: &CacheKey) {
        let name = &self.name;
        match self.tells_damage.swap(false, Ordering::Relaxed) {
            true => {
                log::warn!("cache: the entry {key} of {name} is damaged, and is compiled again")
            }
            false => log::debug!("cache: the entry {key} of {name} is damaged, too"),
        }
        let removed = self.ask(&self.writes, |store| {
            store.remove(key);
            Ok(())
        });
        if let Err(error) = removed {
            log::debug!("cache: {error}");
        }
    }

    fn ask<T>(
        &self,
        failures: &Mutex<Failures>,
        question: impl FnOnce(&dyn CacheStore) -> io::Result<T>,
    ) -> io::Result<T> {
        if locked(failures).forbid() {
            return Err(self.left_alone());
        }
        // Nothing is locked meanwhile: others may ask.
        let answer = catch_unwind(AssertUnwindSafe(|| question(&*self.store)))
            .unwrap_or_else(|_| Err(io::Error::other("it panicked")))
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.name)));
        let mut failures = locked(failures);
        match &answer {
            Ok(_) => {
                if failures.count >= MOST {
                    log::info!("cache: {} answers again", self.name);
                }
                failures.count = failures.count.saturating_sub(1);
            }
            Err(error) => {
                let now = Instant::now();
                if (failures.told).is_none_or(|at| now.duration_since(at) >= PAUSE) {
                    log::warn!("cache: {error}; compilation goes on without it");
                    failures.told = Some(now);
                }
                failures.count = (failures.count + FAILURE).min(MOST);
                failures.last = Some(now);
            }
        }
        answer
    }

    fn left_alone(&self) -> io::Error {
        io::Error::other(format!(
            "{} fails, and is left alone for {PAUSE:?}",
            self.name
        ))
    }
}

fn locked(failures: &Mutex<Failures>) -> MutexGuard<'_, Failures> {
    failures.lock().unwrap_or_else(PoisonError::into_inner)
}
