//! Why a text of LLVM IR is not read.

use std::borrow::Cow;

/// Why a text, or an instruction of it, is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Something else stands where this is expected.
    #[error("{wanted} expected, found {found}")]
    Expected {
        /// What is expected.
        wanted: Cow<'static, str>,
        /// The token that stands there.
        found: String,
    },
    /// A part is not there.
    #[error("{0} expected")]
    Missing(&'static str),
    /// Brackets are open at the end of what is read.
    #[error("brackets that are not closed")]
    Unclosed,
    /// Digits are no number that can stand where they stand.
    #[error("`{digits}` is no number {place}")]
    Number {
        /// As they are written.
        digits: String,
        /// What of: its type, or the place.
        place: &'static str,
    },
    /// An alignment is no power of two, or too large.
    #[error("an alignment of {0} bytes")]
    Alignment(u64),
    /// The data layout is not that of a machine with 64 bits, little-endian.
    #[error(
        "data layout `{layout}`: {difference}; compile for x86_64-unknown-linux-gnu or another target with the same \
         layout"
    )]
    Layout {
        /// As the text has it.
        layout: String,
        /// What must be otherwise.
        difference: Cow<'static, str>,
    },
    /// Control goes to a block that the function does not have.
    #[error("there is no block `{0}`")]
    NoBlock(String),
    /// A line is none of those that a module is made of.
    #[error("`{0}` is no part of a module that is known")]
    NoPart(String),
    /// A word stands where its meaning is not known: a comparison, an update.
    #[error("{0} is not known")]
    Unknown(String),
    /// An instruction, or a kind of it, is not supported.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// An instruction is one of unwinding.
    #[error("`{0}`: nothing unwinds on the device; compile with `-C panic=abort`")]
    Unwinds(String),
    /// Types or constants stand inside of each other too often.
    #[error("types or constants nested more than {most} deep are not supported")]
    TooDeep {
        /// How often they may.
        most: u32,
    },
    /// A type is made of too many others.
    #[error("types made of more than {most} others are not supported")]
    TooLarge {
        /// How many it may be made of.
        most: u64,
    },
    /// Parts of the text do not fit each other, as no compiler writes them.
    #[error("{0}")]
    Inconsistent(Cow<'static, str>),
}

impl ReadError {
    /// Something else stands where `wanted` is expected.
    pub(crate) fn expected(wanted: impl Into<Cow<'static, str>>, found: String) -> Self {
        let wanted = wanted.into();
        Self::Expected { wanted, found }
    }
}
