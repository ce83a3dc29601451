//! A loaded module.

use crate::launch::Image;
use crate::sim::SimConfig;
use crate::sim::decode::program::Program;
use crate::sim::decode::specialised::Decoding;
use crate::sim::launch::cta::Cta;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A loaded module.
pub struct Loaded {
    /// Code, constants, names and lines.
    pub image: Image,
    /// The code decoded.
    pub program: Program,
    /// Room that the CTAs of earlier launches have left.
    rooms: Mutex<Vec<Cta>>,
}

impl Loaded {
    /// Decodes an image.
    pub fn new(image: Image, config: &SimConfig) -> Loaded {
        Loaded {
            program: Program::new(&image.words, Decoding::new(config.semantics, config.simd)),
            image,
            rooms: Mutex::default(),
        }
    }

    /// The rooms, which are whole also after a panic of who held them.
    pub(super) fn rooms(&self) -> MutexGuard<'_, Vec<Cta>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
