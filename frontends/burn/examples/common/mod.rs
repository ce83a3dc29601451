//! What the examples share: numbers by chance, training on the simulator and the reference side by side, and pictures.

pub mod chance;
pub mod picture;
pub mod training;

/// What ends an example early.
pub type Error = Box<dyn std::error::Error>;
