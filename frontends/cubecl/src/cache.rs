//! Machine code kept in a folder from one run of a program to the next.
//!
//! The compiler's own cache keeps it, under all that decides what comes out: the function after CubeCL's passes is
//! that, so a kernel whose Rust has changed is compiled anew. CubeCL's passes run in every process.

use cranelift_thisgpu::compile::Cache;
use std::sync::{Arc, LazyLock};

/// With this in the environment, machine code is kept in the folder that it names.
pub const CACHE_VARIABLE: &str = "CUBECL_THISGPU_CACHE";

static CACHE: LazyLock<Option<Arc<Cache>>> = LazyLock::new(|| {
    let folder = std::env::var_os(CACHE_VARIABLE).filter(|folder| !folder.is_empty())?;
    match Cache::open(folder, Cache::DEFAULT_LIMIT) {
        Ok(cache) => Some(Arc::new(cache)),
        Err(error) => {
            log::warn!("{CACHE_VARIABLE}: nothing is kept: {error}");
            None
        }
    }
});

/// The cache that the environment asks for.
pub fn cache() -> Option<Arc<Cache>> {
    CACHE.clone()
}
