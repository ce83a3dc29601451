//! Machine code kept in a folder from one run of a program to the next.
//!
//! The compiler's own cache keeps it, under all that decides what comes out: the function after CubeCL's passes is
//! that, so a kernel whose Rust has changed is compiled anew. CubeCL's passes run in every process.

use crate::environment::{CACHE_VARIABLE, settings};
use cranelift_thisgpu::compile::Cache;
use std::sync::{Arc, LazyLock};

static CACHE: LazyLock<Option<Arc<Cache>>> = LazyLock::new(|| {
    let folder = settings().cache.as_ref()?;
    match Cache::open(folder, Cache::DEFAULT_LIMIT) {
        Ok(cache) => Some(Arc::new(cache)),
        Err(error) => {
            // A cache decides nothing but the time; who has asked for one is told.
            eprintln!("{CACHE_VARIABLE}: nothing is kept: {error}");
            None
        }
    }
});

/// The cache that the environment asks for.
pub fn cache() -> Option<Arc<Cache>> {
    CACHE.clone()
}
