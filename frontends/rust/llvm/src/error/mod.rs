//! What is wrong with a program, and where its Rust source says it.

mod problem;
mod read;

pub(crate) use problem::of_backend;
pub use problem::{Moved, Problem};
pub use read::ReadError;

use std::fmt;

/// A place in a source file, with the calls that were inlined around it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file, as rustc names it.
    pub file: String,
    /// Line, from 1; 0 is unknown.
    pub line: u32,
    /// Column, from 1; 0 is unknown.
    pub column: u32,
    /// The call that put the code here, if it was inlined.
    pub inlined_at: Option<Box<Place>>,
}

impl Place {
    /// The places from the innermost to the outermost call.
    pub fn chain(&self) -> impl Iterator<Item = &Place> {
        std::iter::successors(Some(self), |place| place.inlined_at.as_deref())
    }

    /// The innermost place that is not in the standard library, or the place itself.
    pub fn of_user(&self) -> &Place {
        self.chain()
            .find(|place| !place.is_of_library())
            .unwrap_or(self)
    }

    /// Whether the file is one of the standard library's.
    fn is_of_library(&self) -> bool {
        is_of_library(&self.file)
    }

    /// File, line and column, without the calls around it.
    fn own(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.column != 0 {
            write!(f, ":{}", self.column)?;
        }
        Ok(())
    }
}

/// Whether a file is one of the standard library's.
pub(crate) fn is_of_library(file: &str) -> bool {
    file.starts_with("/rustc/") || file.contains("/rustlib/src/rust/library/")
}

impl fmt::Display for Place {
    /// `src/lib.rs:3:9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.own(f)
    }
}

/// What is wrong, or not supported, with what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where; none if no debug location is known.
    pub place: Option<Place>,
    /// What, and what to do.
    pub problem: Problem,
}

impl Error {
    /// An error at a place.
    pub fn new(place: Option<Place>, problem: Problem) -> Self {
        Self { place, problem }
    }
}

/// Places in the standard library that an error names, the innermost first: further out they say less and less.
const SHOWN_INLINED: usize = 3;

impl fmt::Display for Error {
    /// `file.rs:line:column: message`. Of code that was inlined from the standard library the user's own line comes
    /// first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = &self.place else {
            return write!(f, "{}", self.problem);
        };
        let user = place.of_user();
        write!(f, "{user}: {}", self.problem)?;
        let library = place.chain().take_while(|inner| *inner != user);
        for inner in library.take(SHOWN_INLINED) {
            write!(f, "\n  inlined from {inner}")?;
        }
        for outer in user.chain().skip(1) {
            write!(f, "\n  called at {outer}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_line_comes_first() {
        let at = |file: &str, line, inlined_at| Place {
            file: file.into(),
            line,
            column: 5,
            inlined_at,
        };
        let outer = at("src/main.rs", 40, None);
        let user = at("src/lib.rs", 7, Some(Box::new(outer)));
        let core = at("/rustc/0/library/core/src/a.rs", 3, Some(Box::new(user)));
        let error = Error::new(Some(core), Problem::Inconsistent("no such thing".into()));
        assert_eq!(
            error.to_string(),
            "src/lib.rs:7:5: no such thing\n  inlined from /rustc/0/library/core/src/a.rs:3:5\n  called at \
             src/main.rs:40:5"
        );
        let module = "m".into();
        let error = Error::new(None, Problem::NoLayout { module });
        assert_eq!(
            error.to_string(),
            "m: no `target datalayout`: sizes of types are unknown"
        );
    }
}
