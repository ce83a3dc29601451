//! Who says what a definition says.

/// Who says so: the vendor's documents, or this project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provenance {
    /// Stated in a source document.
    Documented,
    /// Chosen by this project where the documents are silent.
    Assigned,
}

impl Provenance {
    /// The lower-case word printed in references and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Provenance::Documented => "documented",
            Provenance::Assigned => "assigned",
        }
    }
}
