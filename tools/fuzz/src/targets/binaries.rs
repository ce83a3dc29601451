//! Bytes that tools hand over: words, objects, entries of a cache.

use cranelift_thisgpu::asm;
use cranelift_thisgpu::compile::{Cache, CacheKey, CacheStore, Compiler};
use cranelift_thisgpu::object::{Linker, Object};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::unstable::isa::decode;
use sha2::{Digest, Sha256};
use std::io;
use std::sync::{Arc, Mutex};

/// Every word that is an instruction is encoded to the same word, and its text is assembled to it.
///
/// # Panics
/// When it is not.
pub fn words(bytes: &[u8]) {
    for word in bytes.chunks_exact(16) {
        let word = u128::from_le_bytes(word.try_into().expect("16 bytes"));
        let Ok((inst, control)) = decode(word) else {
            continue;
        };
        let again = inst.encode(control).expect("what was decoded is legal");
        assert_eq!(again, word, "{word:032x} decodes as {inst:?}");
        let text = format!("{inst}{control} ;");
        let assembled = asm::word(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(assembled, word, "{text}");
    }
}

/// An object is read, listed, written and read again.
///
/// # Panics
/// When what was written is not read as the same.
pub fn object(bytes: &[u8]) {
    let Ok(object) = Object::read(bytes) else {
        return;
    };
    _ = asm::listing(&object);
    let mut object = object;
    object.count_resources();
    // Not everything that can be read can be written: an ELF of others may have names twice.
    let Ok(written) = object.write() else {
        return;
    };
    let again = Object::read(&written).expect("what was written is read");
    assert_eq!(again.functions.len(), object.functions.len());
    let code = |object: &Object| -> Vec<(String, Vec<u128>)> {
        let functions = object.functions.iter();
        functions
            .map(|f| (f.name.clone(), f.words.clone()))
            .collect()
    };
    assert_eq!(code(&again), code(&object));
}

/// Two inputs in one: four bytes say how long the first one is.
pub fn two(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// Two inputs as one.
pub fn joined(first: &[u8], second: &[u8]) -> Vec<u8> {
    let length = (first.len() as u32).to_le_bytes();
    [&length[..], first, second].concat()
}

/// Two objects are linked, and the result is one that can be read.
///
/// # Panics
/// When it cannot.
pub fn linking(bytes: &[u8]) {
    let Some((first, second)) = two(bytes) else {
        return;
    };
    let (Ok(first), Ok(second)) = (Object::read(first), Object::read(second)) else {
        return;
    };
    let linker = Linker::new().add("first", &first).add("second", &second);
    if let Ok(linked) = linker.link()
        && let Ok(written) = linked.write()
    {
        Object::read(&written).expect("what was linked is read");
    }
}

/// A store that has one thing to say, and remembers what it is told.
#[derive(Clone, Debug, Default)]
struct One(Arc<Mutex<Option<Vec<u8>>>>);

impl One {
    fn holding(entry: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Some(entry))))
    }
}

impl CacheStore for One {
    fn get(&self, _: &CacheKey) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().expect("nobody panics with it").clone())
    }

    fn insert(&self, _: &CacheKey, entry: &[u8]) -> io::Result<()> {
        *self.0.lock().expect("nobody panics with it") = Some(entry.into());
        Ok(())
    }
}

/// What the entries are of.
const KEPT: &str = "; kernel shared=64
function %k(i64, i32) {
    fn0 = %helper(i32) -> i32
block0(v0: i64, v1: i32):
    v2 = call fn0(v1)
    store v2, v0
    return
}
function %helper(i32) -> i32 {
block0(v0: i32):
    v1 = iconst.i32 3
    v2 = imul v0, v1
    return v2
}
";

/// The function, compiled with a store behind it.
fn compiled_with(store: &One) -> Vec<u8> {
    let mut compiler = Compiler::new(Options::default());
    compiler.use_cache(Some(Arc::new(Cache::of(store.clone()))));
    let code = compiler
        .compile_clif(KEPT)
        .expect("a function that compiles");
    code.to_elf().expect("code has a file")
}

/// An entry is taken or not; the code is the same.
///
/// # Panics
/// When it is not.
pub fn cache_entry(bytes: &[u8]) {
    let fresh = compiled_with(&One::default());
    assert_eq!(compiled_with(&One::holding(bytes.into())), fresh);
    // Behind a checksum that is right, so that engines need not find one.
    _ = compiled_with(&One::holding(sealed(bytes)));
}

/// Bytes as the contents of an entry: a magic of eight bytes and a SHA-256 stand before them.
fn sealed(contents: &[u8]) -> Vec<u8> {
    let mut entry = b"tgcache\x01".to_vec();
    entry.extend(Sha256::digest(contents));
    entry.extend(contents);
    entry
}

/// What is behind magic and checksum of the entry of [`KEPT`].
pub(super) fn contents_of_an_entry() -> Vec<u8> {
    let store = One::default();
    compiled_with(&store);
    let entry = store.0.lock().expect("nobody panics with it").take();
    let entry = entry.expect("what is compiled is kept");
    assert_eq!(sealed(&entry[40..]), entry);
    entry[40..].into()
}
