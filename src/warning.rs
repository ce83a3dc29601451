//! What is suspicious about an input that compiles.

use crate::error::{Error, Place, Problem};
use crate::object::{Object, unresolved};
use std::fmt;

/// Something that is legal and hardly meant. Prints as `FILE:LINE: MESSAGE (in function NAME)`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// What is suspicious, and what to write instead.
    pub message: String,
    /// Where.
    pub place: Place,
}

impl Warning {
    /// A warning at `place`.
    pub(crate) fn new(message: impl Into<String>, place: Place) -> Self {
        Self {
            message: message.into(),
            place,
        }
    }

    /// The names that an object uses and leaves to others.
    pub(crate) fn of_unresolved(object: &Object) -> Vec<Self> {
        unresolved(object)
            .into_iter()
            .map(|name| {
                let mut message = format!(
                    "`{}` is not defined here; an object that is linked with this one has to define it",
                    name.symbol
                );
                if !name.remedy.is_empty() {
                    message = format!("{message}; {}", name.remedy);
                }
                let place = Place {
                    function: name.function.map(|function| format!("%{function}").into()),
                    line: name.line,
                    ..Place::default()
                };
                Self::new(message, place)
            })
            .collect()
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Error::new(Problem::Syntax(self.message.clone()), self.place.clone()).fmt(f)
    }
}
