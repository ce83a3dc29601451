//! Caches of several stores: who is asked, who keeps, and that no store can make a compilation fail or change its code.

#![cfg(feature = "cache")]

use cranelift_thisgpu::compile::{Cache, CacheKey, CacheStore, Code, Compiler};
use cranelift_thisgpu::settings::Options;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// A kernel that adds a number to each word of a buffer.
fn text(number: u32) -> String {
    format!(
        "; kernel
function %k(i64) {{
    fn0 = %gpu_tid_x() -> i32
block0(v0: i64):
    v1 = call fn0()
    v2 = uextend.i64 v1
    v7 = iconst.i64 2
    v3 = ishl v2, v7
    v4 = iadd v0, v3
    v5 = load.i32 v4
    v8 = iconst.i32 {number}
    v6 = iadd v5, v8
    store v6, v4
    return
}}
"
    )
}

/// A store in memory, which may be told to fail, and counts who asks.
#[derive(Debug, Default)]
struct Memory {
    entries: Mutex<HashMap<CacheKey, Vec<u8>>>,
    /// Calls from now on that fail.
    fails: AtomicU32,
    asked: AtomicU32,
}

impl Memory {
    fn ask(&self) -> io::Result<()> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let left = self.fails.load(Ordering::Relaxed);
        self.fails.store(left.saturating_sub(1), Ordering::Relaxed);
        match left {
            0 => Ok(()),
            _ => Err(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "no server",
            )),
        }
    }

    fn len(&self) -> usize {
        self.entries.lock().unwrap().len()
    }
}

/// The store as a cache takes it, while the test keeps it too.
#[derive(Clone, Debug, Default)]
struct Shared(Arc<Memory>);

impl CacheStore for Shared {
    fn get(&self, key: &CacheKey) -> io::Result<Option<Vec<u8>>> {
        self.0.ask()?;
        Ok(self.0.entries.lock().unwrap().get(key).cloned())
    }

    fn insert(&self, key: &CacheKey, entry: &[u8]) -> io::Result<()> {
        self.0.ask()?;
        self.0.entries.lock().unwrap().insert(*key, entry.into());
        Ok(())
    }

    fn remove(&self, key: &CacheKey) {
        self.0.entries.lock().unwrap().remove(key);
    }
}

fn compile(cache: Option<&Arc<Cache>>, number: u32) -> Code {
    let mut compiler = Compiler::new(Options::default());
    compiler.use_cache(cache.cloned());
    compiler.compile_clif(&text(number)).unwrap()
}

#[test]
fn what_a_later_store_has_the_earlier_ones_get() {
    let (near, far) = (Shared::default(), Shared::default());
    let fresh = compile(None, 1);
    // One machine compiles.
    compile(Some(&Arc::new(Cache::of(far.clone()))), 1);
    assert_eq!(far.0.len(), 1);
    // Another one has nothing, and finds it there.
    let both = Arc::new(Cache::of(near.clone()).before(far.clone()));
    assert_eq!(compile(Some(&both), 1), fresh);
    assert_eq!(near.0.len(), 1);
    // From then on the far store is not asked for it.
    let before = far.0.asked.load(Ordering::Relaxed);
    assert_eq!(compile(Some(&both), 1), fresh);
    assert_eq!(far.0.asked.load(Ordering::Relaxed), before);
    // What is compiled both keep.
    compile(Some(&both), 2);
    assert_eq!((near.0.len(), far.0.len()), (2, 2));
}

#[test]
fn a_damaged_entry_of_one_store_is_taken_from_the_next() {
    let (near, far) = (Shared::default(), Shared::default());
    let both = Arc::new(Cache::of(near.clone()).before(far.clone()));
    let fresh = compile(Some(&both), 1);
    let key = *near.0.entries.lock().unwrap().keys().next().unwrap();
    near.0
        .entries
        .lock()
        .unwrap()
        .insert(key, b"damaged".to_vec());
    assert_eq!(compile(Some(&both), 1), fresh);
    let entries = |store: &Shared| store.0.entries.lock().unwrap()[&key].clone();
    assert_eq!(entries(&near), entries(&far));
}

/// A store that refuses what is written to it, and how often that was.
#[derive(Clone, Debug)]
struct ReadOnly(Shared, Arc<AtomicU32>);

impl CacheStore for ReadOnly {
    fn get(&self, key: &CacheKey) -> io::Result<Option<Vec<u8>>> {
        self.0.get(key)
    }

    fn insert(&self, _: &CacheKey, _: &[u8]) -> io::Result<()> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn remove(&self, _: &CacheKey) {}

    fn name(&self) -> String {
        "what may be read".to_string()
    }
}

#[test]
fn a_store_that_is_down_is_left_alone_and_stops_nobody() {
    let (near, far) = (Shared::default(), Shared::default());
    let both = Arc::new(Cache::of(near.clone()).before(far.clone()));
    far.0.fails.store(u32::MAX, Ordering::Relaxed);
    for number in 0..20 {
        assert_eq!(compile(Some(&both), number), compile(None, number));
    }
    // Three reads, and two writes between them.
    assert_eq!(far.0.asked.load(Ordering::Relaxed), 5);
    assert_eq!(near.0.len(), 20);
    // One that everybody may read and nobody may write.
    let readable = ReadOnly(near.clone(), Arc::default());
    let alone = Arc::new(Cache::of(readable.clone()));
    for number in 0..40 {
        assert_eq!(compile(Some(&alone), number), compile(None, number));
    }
    assert_eq!(alone.hits(), 20);
    assert_eq!(readable.1.load(Ordering::Relaxed), 3);
    // One failure now and then is none that counts; of one in two the fifth is too much.
    for (failing, asked) in [(4, 80), (2, 17)] {
        let far = Shared::default();
        let alone = Arc::new(Cache::of(far.clone()));
        for number in 0..40 {
            let fails = u32::from(number % failing == 0);
            far.0.fails.store(fails, Ordering::Relaxed);
            assert_eq!(compile(Some(&alone), number), compile(None, number));
        }
        assert_eq!(far.0.asked.load(Ordering::Relaxed), asked, "{failing}");
    }
}

/// A store that nobody should write.
#[derive(Debug)]
struct Panicking;

impl CacheStore for Panicking {
    fn get(&self, _: &CacheKey) -> io::Result<Option<Vec<u8>>> {
        panic!("it has no server")
    }

    fn insert(&self, _: &CacheKey, _: &[u8]) -> io::Result<()> {
        panic!("it has no server")
    }
}

#[test]
fn a_store_that_panics_stops_nobody() {
    let near = Shared::default();
    let both = Arc::new(Cache::of(Panicking).before(near.clone()));
    for number in 0..10 {
        assert_eq!(compile(Some(&both), number), compile(None, number));
    }
    assert_eq!(near.0.len(), 10);
}

/// Every kind of damage that a store may hand out: single bits, lost and repeated parts, other entries, other sizes.
#[test]
fn poisoned_entries_never_change_code() {
    let store = Shared::default();
    let cache = Arc::new(Cache::of(store.clone()));
    let fresh = compile(Some(&cache), 1);
    compile(Some(&cache), 2);
    let entries: Vec<(CacheKey, Vec<u8>)> = store.0.entries.lock().unwrap().drain().collect();
    let [first, second] = entries.try_into().unwrap();
    compile(Some(&cache), 1);
    let key = *store.0.entries.lock().unwrap().keys().next().unwrap();
    let (good, other) = if first.0 == key {
        (first.1, second.1)
    } else {
        (second.1, first.1)
    };
    let mut poisons: Vec<Vec<u8>> = vec![Vec::new(), other.clone(), vec![0; good.len()]];
    let length = good.len();
    let places = |count: usize| (0..count).map(move |i| i * length / count);
    for (index, place) in places(200).enumerate() {
        let mut bytes = good.clone();
        bytes[place] ^= 1 << (index % 8);
        poisons.push(bytes);
    }
    for place in places(100) {
        poisons.push(good[..place].into());
        poisons.push([&good[..place], &good[place + 1..]].concat());
        // The head of one with the tail of the other.
        let at = place.min(other.len());
        poisons.push([&good[..at], &other[at..]].concat());
    }
    poisons.push([&good[..], b"more"].concat());
    poisons.retain(|poison| *poison != good);
    assert!(poisons.len() >= 400, "{}", poisons.len());
    for (index, poison) in poisons.into_iter().enumerate() {
        store.0.entries.lock().unwrap().insert(key, poison);
        assert!(cache.get(&key).is_none(), "{index}");
        assert_eq!(store.0.len(), 0, "{index}: it is removed");
        assert_eq!(compile(Some(&cache), 1), fresh, "{index}");
        assert_eq!(store.0.entries.lock().unwrap()[&key], good, "{index}");
    }
}
