//! A cache that machines share: what one has made of the same LLVM IR another one does not make again.

use crate::common;
use cranelift_thisgpu::compile::{Cache, CacheKey, CacheStore};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use thisgpu_build::Compiled;

/// A store in memory, which tests may spoil.
#[derive(Clone, Debug, Default)]
struct Store {
    entries: Arc<Mutex<HashMap<CacheKey, Vec<u8>>>>,
    removed: Arc<AtomicU64>,
    is_down: bool,
}

impl CacheStore for Store {
    fn get(&self, key: &CacheKey) -> io::Result<Option<Vec<u8>>> {
        match self.is_down {
            true => Err(io::Error::other("down")),
            false => Ok(self.entries.lock().unwrap().get(key).cloned()),
        }
    }

    fn insert(&self, key: &CacheKey, entry: &[u8]) -> io::Result<()> {
        if self.is_down {
            return Err(io::Error::other("down"));
        }
        self.entries.lock().unwrap().insert(*key, entry.to_vec());
        Ok(())
    }

    fn remove(&self, key: &CacheKey) {
        self.entries.lock().unwrap().remove(key);
        self.removed.fetch_add(1, Ordering::Relaxed);
    }
}

/// What another machine has that has built nothing of the crate itself, but the same LLVM IR.
fn forget(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("a folder can be read").path();
        let name = path.file_name().expect("it has one").to_string_lossy();
        if name.starts_with("kernels-") {
            fs::remove_dir_all(&path).expect("nobody builds now");
        }
    }
}

fn compile(folder: &Path, store: &Store) -> (Compiled, Arc<Cache>) {
    forget(folder);
    let cache = Arc::new(Cache::of(store.clone()));
    let kernels = common::example("peers").target_dir(folder);
    let compiled = kernels.shared_cache(cache.clone()).compile();
    (compiled.unwrap_or_else(|error| panic!("{error}")), cache)
}

fn same(a: &Compiled, b: &Compiled) -> bool {
    (a.object(), a.clif(), a.description()) == (b.object(), b.clif(), b.description())
        && a.warnings() == b.warnings()
}

#[test]
fn what_one_machine_has_made_another_takes() {
    let folder: PathBuf = common::target().join("shared");
    let store = Store::default();
    let (first, cache) = compile(&folder, &store);
    assert!(!first.is_fresh());
    assert_eq!((cache.hits(), cache.writes()), (0, 1));
    let (second, cache) = compile(&folder, &store);
    assert!(second.is_fresh() && same(&first, &second));
    assert_eq!((cache.hits(), cache.writes()), (1, 0));

    // Other options are another entry.
    forget(&folder);
    let cache = Arc::new(Cache::of(store.clone()));
    let kernels = common::example("peers").target_dir(&folder);
    let kernels = kernels.panic_messages(false).shared_cache(cache.clone());
    let other = kernels.compile().expect("it compiles");
    assert!(!other.is_fresh());
    assert_eq!((cache.hits(), cache.writes()), (0, 1));

    // A byte of each part of every entry is another: it is made anew, and kept.
    let bytes = |entries: &HashMap<CacheKey, Vec<u8>>| entries.values().map(Vec::len).min();
    let length = bytes(&store.entries.lock().unwrap()).expect("entries");
    for part in 0..8 {
        for entry in store.entries.lock().unwrap().values_mut() {
            entry[part * (length - 1) / 7] ^= 0x10;
        }
        let (made, cache) = compile(&folder, &store);
        assert!(!made.is_fresh() && same(&first, &made), "part {part}");
        assert_eq!((cache.hits(), cache.writes()), (0, 1), "part {part}");
        assert_eq!(store.removed.load(Ordering::Relaxed), part as u64 + 1);
    }

    // One that is down costs nothing but time.
    let down = Store {
        is_down: true,
        ..Store::default()
    };
    let (made, cache) = compile(&folder, &down);
    assert!(!made.is_fresh() && same(&first, &made));
    assert_eq!((cache.hits(), cache.writes()), (0, 0));
}
