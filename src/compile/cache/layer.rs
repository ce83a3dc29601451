//! A store as a part of a cache: what its failures mean.
//!
//! The first failure is a warning, those that follow are not, until the store answers again. After three in a row it is
//! left alone for half a minute, then asked once more. So a server that is down costs three time-outs and not one for
//! every function.

use super::{CacheKey, CacheStore};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures in a row after which a store is left alone (*assumed*: one may be a connection that was cut).
const FAILURES: u32 = 3;
/// How long (*assumed*).
const PAUSE: Duration = Duration::from_secs(30);

/// A store, and how it did lately.
#[derive(Debug)]
pub(super) struct Layer {
    store: Box<dyn CacheStore>,
    failures: Mutex<Failures>,
}

#[derive(Debug, Default)]
struct Failures {
    in_a_row: u32,
    /// When the last one was.
    last: Option<Instant>,
}

impl Failures {
    /// Whether nobody is to ask; whoever is let through after the pause is the only one until he has an answer.
    fn forbid(&mut self) -> bool {
        let rests = self.in_a_row >= FAILURES && self.last.is_some_and(|at| at.elapsed() < PAUSE);
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
            failures: Mutex::default(),
        }
    }

    /// The bytes of an entry; none where the store has none, or fails.
    pub(super) fn get(&self, key: &CacheKey) -> Option<Vec<u8>> {
        self.ask(|store| store.get(key)).ok().flatten()
    }

    /// Keeps an entry.
    ///
    /// # Errors
    /// When the store fails or is left alone.
    pub(super) fn insert(&self, key: &CacheKey, entry: &[u8]) -> io::Result<()> {
        self.ask(|store| store.insert(key, entry))
    }

    /// Removes an entry that is damaged.
    pub(super) fn remove(&self, key: &CacheKey) {
        let name = self.store.name();
        log::warn!("cache: the entry {key} of {name} is damaged and is removed");
        self.store.remove(key);
    }

    fn ask<T>(&self, question: impl FnOnce(&dyn CacheStore) -> io::Result<T>) -> io::Result<T> {
        if self.failures().forbid() {
            return Err(io::Error::other(format!(
                "{} failed {FAILURES} times and is left alone for {PAUSE:?}",
                self.store.name()
            )));
        }
        // Nothing is locked meanwhile: others may ask.
        let answer = question(&*self.store);
        let mut failures = self.failures();
        match &answer {
            Ok(_) if failures.in_a_row > 0 => {
                log::info!("cache: {} answers again", self.store.name());
                *failures = Failures::default();
            }
            Ok(_) => {}
            Err(error) => {
                if failures.in_a_row == 0 {
                    let name = self.store.name();
                    log::warn!("cache: {name}: {error}; what is compiled is not kept there");
                }
                failures.in_a_row += 1;
                failures.last = Some(Instant::now());
            }
        }
        answer
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, Failures> {
        (self.failures)
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
