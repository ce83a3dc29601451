//! What the tests of whole crates share.

use std::path::{Path, PathBuf};
use thisgpu_build::{Compiled, Kernels};

/// The folder of the examples.
pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// A crate of the examples, as it is compiled unless said otherwise. All tests build in one folder.
pub fn example(name: &str) -> Kernels {
    Kernels::new()
        .crate_dir(examples().join(name))
        .target_dir(target())
        .locked(true)
}

/// Where cargo builds for the tests.
pub fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples")
}

/// The crate, compiled.
pub fn compiled(name: &str) -> Compiled {
    example(name)
        .compile()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Numbers that look random (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}
