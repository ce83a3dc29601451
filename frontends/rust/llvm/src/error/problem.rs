//! What can be wrong with a program.

use super::{Error, ReadError};
use std::borrow::Cow;

/// What is wrong with a program, without the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A module cannot be read.
    #[error("{module}: line {line} of its LLVM IR: {error}")]
    Read {
        /// Its name.
        module: String,
        /// The line, from 1.
        line: usize,
        /// Why.
        error: ReadError,
    },
    /// A module does not say how types are laid out.
    #[error("{module}: no `target datalayout`: sizes of types are unknown")]
    NoLayout {
        /// Its name.
        module: String,
    },
    /// Two modules define a symbol, neither of them weakly.
    #[error("`{name}` is defined twice: in {first} and in {second}")]
    DefinedTwice {
        /// The symbol.
        name: String,
        /// The name of the first module.
        first: String,
        /// The name of the other.
        second: String,
    },
    /// A call that waits for other threads is not where the source has it.
    #[error("`{intrinsic}` {moved}")]
    Moved {
        /// What is called.
        intrinsic: String,
        /// How it differs from the source.
        moved: Moved,
    },
    /// A function that waits for other threads calls itself.
    #[error("unsupported: a function that waits for other threads calls itself; use a loop")]
    WaitsInRecursion,
    /// Too many ways lead to calls that wait for other threads.
    #[error(
        "unsupported: more than {most} ways lead to `{intrinsic}`; mark a function around it #[inline(never)]"
    )]
    TooManyWays {
        /// What is called.
        intrinsic: String,
        /// How many ways may lead to all such calls.
        most: usize,
    },
    /// A kernel that was asked for is none of the program's functions.
    #[error("kernel `{0}` is not defined in the program")]
    NoKernel(String),
    /// A symbol has no definition.
    #[error("`{0}` is defined nowhere in the program")]
    Undefined(String),
    /// A function that is called has no body, and nothing stands for it.
    #[error("{0}")]
    NoBody(String),
    /// An intrinsic or operation of the device that it does not have, or not with these types.
    #[error("{0}")]
    Intrinsic(String),
    /// Something reaches an instruction that cannot be read.
    #[error(transparent)]
    Unread(ReadError),
    /// Correct code that is not translated.
    #[error("{0}")]
    Unsupported(Cow<'static, str>),
    /// More of something than the device, or this translator, can take.
    #[error("{0}")]
    TooLarge(Cow<'static, str>),
    /// A value is not known before the program runs, and has to be.
    #[error("{0}")]
    NotConstant(Cow<'static, str>),
    /// A type has no place in memory, and needs one.
    #[error("{0}")]
    NoSize(Cow<'static, str>),
    /// Parts of the program do not fit each other, as no compiler writes them.
    #[error("{0}")]
    Inconsistent(Cow<'static, str>),
    /// A value is needed whose instruction has had an error: what follows from that error.
    #[error("a value that was not translated")]
    NotTranslated,
    /// A variable cannot be defined.
    #[error("static `{name}`: {problem}")]
    Static {
        /// Its symbol.
        name: String,
        /// Why.
        problem: Box<Problem>,
    },
    /// A variable cannot lie in shared memory.
    #[error("`{name}`: {problem}")]
    Shared {
        /// Its symbol.
        name: String,
        /// Why.
        problem: Box<Problem>,
    },
    /// A function that is called, or pointed to, cannot be declared.
    #[error(transparent)]
    Callee(Box<Error>),
    /// What the back end says.
    #[error("{0}")]
    Backend(String),
}

/// How a call that waits for other threads differs from the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Moved {
    /// It has no debug location.
    #[error(
        "has no place in the source, so that nothing says that it is where it was; compile with `-C debuginfo=1`"
    )]
    NoPlace,
    /// LLVM was not told what it is.
    #[error(
        "was compiled without being `convergent`, so that LLVM may have moved it; compile with the flags of \
         thisgpu-build"
    )]
    NotConvergent,
    /// The source has none on this way.
    #[error("is not called from here in the source; LLVM has merged or moved it")]
    Elsewhere,
    /// It is in a loop that the source does not have around it.
    #[error("is in more loops than in the source; LLVM has moved it into one")]
    InLoop,
    /// Different branches have copies of it.
    #[error(
        "stands in several branches of what the compiler made of one call, where threads would wait for each other in \
         different places; put it into a function of its own marked #[inline(never)], or lower the opt-level"
    )]
    InBranches,
}

/// What the back end says, as it says it.
pub(crate) fn of_backend(error: impl ToString) -> Problem {
    Problem::Backend(error.to_string())
}
