//! Calls that a thread was in when it ended.

use super::Image;
use crate::locations::{LIBRARY, name_of};
use serde::Serialize;
use std::fmt;

/// A call that a thread is in. Prints as `FUNCTION, pc 0x40 (line 3 of k.clif)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// The function that calls, when known.
    pub function: Option<String>,
    /// Code address of the call in bytes.
    pub pc: u32,
    /// The call's place in the source, when the module has a line table.
    pub source: Option<String>,
    /// Whether the function is one of the compiler's own library.
    pub library: bool,
}

impl Frame {
    /// The call at an address.
    pub fn at(address: u32, image: &Image) -> Self {
        Self {
            function: image.function_at(address).map(|f| f.name.clone()),
            pc: address,
            source: image.source_at(address),
            library: is_library(address, image),
        }
    }
}

/// Whether code at an address is of the compiler's own library.
pub(crate) fn is_library(address: u32, image: &Image) -> bool {
    let line = image.line_at(address);
    line.and_then(|line| name_of(&image.files, line.location.file))
        .is_some_and(|file| file.starts_with(LIBRARY))
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(function) = &self.function {
            write!(f, "{function}, ")?;
        }
        write!(f, "pc {:#x}", self.pc)?;
        match &self.source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}
