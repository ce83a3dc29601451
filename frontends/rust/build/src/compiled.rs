//! What a crate of kernels becomes: an object, and what the host must know to launch from it.

use crate::descriptor::{KernelDescription, StaticDescription};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What the host knows of the kernels of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The crate.
    pub name: String,
    /// Its kernels.
    pub kernels: Vec<KernelDescription>,
    /// Statics that the host fills.
    pub statics: Vec<StaticDescription>,
    /// Texts of `println!` by their numbers.
    pub formats: Vec<(u32, String)>,
    /// A static that may hold an address from launch to launch, if there is one: then the heap is not freed between.
    pub heap_holder: Option<String>,
}

/// A compiled crate of kernels.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub(crate) object: Vec<u8>,
    pub(crate) clif: String,
    pub(crate) description: Description,
    pub(crate) is_fresh: bool,
    pub(crate) source_folder: PathBuf,
    pub(crate) warnings: Vec<String>,
}

impl Compiled {
    /// The ELF object with all kernels.
    pub fn object(&self) -> &[u8] {
        &self.object
    }

    /// The CLIF that was compiled.
    pub fn clif(&self) -> &str {
        &self.clif
    }

    /// The kernels.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The folder in which the names of source files begin that are not absolute.
    pub fn source_folder(&self) -> &Path {
        &self.source_folder
    }

    /// What compiles and is hardly meant, and a compiler that nobody has tested.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether nothing had to be translated, since no crate's LLVM IR has changed since the last time.
    pub fn is_fresh(&self) -> bool {
        self.is_fresh
    }
}
