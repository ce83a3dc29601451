//! A store as a part of a cache: what its failures mean.
//!
//! The first failure is a warning, those that follow are not, until the store answers again. After three in a row it is
//! left alone for half a minute, then asked once more. So a server that is down costs a few time-outs and not one for
//! every function. Reads and writes are counted apart, since a store may let everybody read and few write; to one that
//! cannot be read nothing is written.

use super::{CacheKey, CacheStore};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Failures in a row after which a store is left alone (*assumed*: one may be a connection that was cut).
const FAILURES: u32 = 3;
/// How long (*assumed*).
const PAUSE: Duration = Duration::from_secs(30);

/// A store, and how it did lately.
#[derive(Debug)]
pub(super) struct Layer {
    store: Box<dyn CacheStore>,
    reads: Mutex<Failures>,
    writes: Mutex<Failures>,
}

#[derive(Debug, Default)]
struct Failures {
    in_a_row: u32,
    /// When the last one was.
    last: Option<Instant>,
}

impl Failures {
    fn rests(&self) -> bool {
        self.in_a_row >= FAILURES && self.last.is_some_and(|at| at.elapsed() < PAUSE)
    }

    /// Whether nobody is to ask; whoever is let through after the pause is the only one until he has an answer.
    fn forbid(&mut self) -> bool {
        let rests = self.rests();
        if !rests && self.in_a_row >= FAILURES {
            self.last = Some(Instant::now());
        }
        rests
    }
}

impl Layer {
    pub(super) fn new(store: impl CacheStore + 'static) -> Self {
        Self {
            store: Box::new(store),
            reads: Mutex::default(),
            writes: Mutex::default(),
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
        let name = self.store.name();
        log::warn!("cache: the entry {key} of {name} is damaged, and is compiled again");
        self.store.remove(key);
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
        let answer = question(&*self.store).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.store.name()))
        });
        let mut failures = locked(failures);
        match &answer {
            Ok(_) if failures.in_a_row > 0 => {
                log::info!("cache: {} answers again", self.store.name());
                *failures = Failures::default();
            }
            Ok(_) => {}
            Err(error) => {
                if failures.in_a_row == 0 {
                    log::warn!("cache: {error}; compilation goes on without it");
                }
                failures.in_a_row += 1;
                failures.last = Some(Instant::now());
            }
        }
        answer
    }

    fn left_alone(&self) -> io::Error {
        io::Error::other(format!(
            "{} failed {FAILURES} times and is left alone for {PAUSE:?}",
            self.store.name()
        ))
    }
}

fn locked(failures: &Mutex<Failures>) -> MutexGuard<'_, Failures> {
    failures.lock().unwrap_or_else(PoisonError::into_inner)
}
