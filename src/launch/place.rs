//! Where in the code and in which memory something happened, for a reader.

use crate::locations::Location;
use serde::Serialize;
use std::fmt;

/// Kinds of memory as faults name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Window {
    /// The device's memory.
    Global,
    /// The CTA's memory.
    Shared,
    /// The thread's memory.
    Local,
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Window::Global => "global",
            Window::Shared => "shared",
            Window::Local => "local",
        })
    }
}

/// The place of an instruction for a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The kernel launched.
    pub kernel: String,
    /// The function that holds the instruction, when known.
    pub function: Option<String>,
    /// CTA.
    pub block: [u32; 3],
    /// Thread in its CTA; of a warp's event, its first active one.
    pub thread: [u32; 3],
    /// Code address in bytes.
    pub pc: u32,
    /// The instruction as assembly text.
    pub instruction: String,
    /// `line N of FILE`, as much as is known, when the module has a line table.
    pub source: Option<String>,
    /// The same as numbers; all 0 when it is unknown.
    pub location: Location,
    /// Whether the function is one of the compiler's own library.
    pub library: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "kernel {}, block {}, thread {}, ",
            self.kernel,
            triple(self.block),
            triple(self.thread)
        )?;
        match &self.function {
            Some(function) if self.library => {
                write!(f, "in {function} of the compiler's library, ")?;
            }
            Some(function) if *function != self.kernel => write!(f, "in {function}, ")?,
            _ => {}
        }
        write!(f, "pc {:#x}: {}", self.pc, self.instruction)?;
        match &self.source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

/// Coordinates of a block or a thread.
pub(super) fn triple([x, y, z]: [u32; 3]) -> String {
    format!("({x},{y},{z})")
}
