//! What may be wrong with a shader, and where.

use std::fmt;
use thiserror::Error;

/// A place in a shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as messages say it.
    pub file: String,
    /// Line and column, from 1. Of SPIR-V the line is the number of the word, from 1. None where naga knows none.
    pub position: Option<(u32, u32)>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some((line, column)) => write!(f, "{}:{line}:{column}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

/// Why a shader is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// naga does not read it, or finds it not valid.
    #[error("{0}")]
    Naga(String),
    /// naga reads it, and the translator has nothing for it.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// What the caller asks for does not fit the module: an entry point that it has not, an override without a value.
    #[error("{0}")]
    Request(String),
    /// A module that naga's validator should not let pass.
    #[error("not valid: {0}")]
    Invalid(String),
    /// The compiler refuses the translated function.
    #[error("{0}")]
    Compiler(String),
}

/// A shader that is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {reason}")]
pub struct Error {
    /// Where.
    pub place: Place,
    /// Why.
    pub reason: Reason,
}

/// What the translator finds, before its place is added.
pub(crate) type Result<T> = std::result::Result<T, Reason>;

/// Something that naga lets pass and the translator has nothing for.
pub(crate) fn unsupported(what: impl Into<String>) -> Reason {
    Reason::Unsupported(what.into())
}

/// Something that naga's validator excludes.
pub(crate) fn invalid(what: impl Into<String>) -> Reason {
    Reason::Invalid(what.into())
}
