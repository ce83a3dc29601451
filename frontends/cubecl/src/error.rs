//! Why a kernel is not translated.

use thiserror::Error;

/// Why a kernel is not translated.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TranslateError {
    /// CubeCL has it, this device or this translation has not.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// The IR is not what CubeCL promises.
    #[error("the kernel's IR is not valid: {0}")]
    Invalid(String),
}

/// What is translated, or why it is not.
pub(crate) type Result<T> = std::result::Result<T, TranslateError>;

/// The error of something that is not supported.
pub(crate) fn unsupported(what: impl Into<String>) -> TranslateError {
    TranslateError::Unsupported(what.into())
}

/// The error of IR that CubeCL does not make.
pub(crate) fn invalid(what: impl Into<String>) -> TranslateError {
    TranslateError::Invalid(what.into())
}
