//! Remarks: what a pass could have done to the code and did not, and why; for those who tune it.
//!
//! A pass calls [`Remarks::missed`] where it turns something down. Nothing is kept unless somebody wants to read it
//! ([`crate::compile::Compiler::collect_remarks`]); the text of a reason is made only then.

use crate::locations::Locations;
use crate::vcode::SourceLine;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// What was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Missed {
    /// Two or more accesses to memory next to each other as one.
    Merging,
    /// An access as wide as its value.
    WholeAccess,
    /// The sides of a branch under guards.
    Guarding,
    /// A loop unrolled.
    Unrolling,
    /// A value in a register everywhere.
    Register,
    /// Registers assigned by regalloc2.
    Backtracking,
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missed::Merging => "not merged",
            Missed::WholeAccess => "split",
            Missed::Guarding => "not guarded",
            Missed::Unrolling => "not unrolled",
            Missed::Register => "spilled",
            Missed::Backtracking => "not by backtracking",
        })
    }
}

/// A remark on a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// The function, without `%`.
    pub function: String,
    /// The file, if it is known.
    pub file: Option<Box<str>>,
    /// The line; 0 if unknown.
    pub line: u32,
    /// The column; 0 if unknown.
    pub column: u32,
    /// What was not done.
    pub missed: Missed,
    /// Why, in words.
    pub why: Cow<'static, str>,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Remark {
            function,
            file,
            line,
            column,
            missed,
            why,
        } = self;
        if let Some(file) = file {
            write!(f, "{file}:")?;
        }
        if *line > 0 {
            write!(f, "{line}:")?;
            if *column > 0 {
                write!(f, "{column}:")?;
            }
        }
        if file.is_some() || *line > 0 {
            write!(f, " ")?;
        }
        write!(f, "%{function}: {missed}: {why}")
    }
}

impl Remark {
    /// Puts in what the number in place of the line stands for.
    pub(crate) fn locate(&mut self, locations: &Locations) {
        let location = locations.resolve(self.line);
        (self.line, self.column) = (location.line, location.column);
        self.file = locations.file_name(location.file).map(Box::from);
    }
}

/// Collects the remarks of one function.
#[derive(Debug, Default)]
pub struct Remarks {
    wanted: bool,
    found: Vec<(SourceLine, Missed, Cow<'static, str>)>,
}

impl Remarks {
    /// Keeps remarks if they are `wanted`.
    pub fn new(wanted: bool) -> Self {
        Self {
            wanted,
            found: Vec::new(),
        }
    }

    /// Whether anybody wants them: for reasons that take work to find.
    pub fn wanted(&self) -> bool {
        self.wanted
    }

    /// Says that at `line` something was not done, and why.
    pub fn missed<W: Into<Cow<'static, str>>>(
        &mut self,
        line: SourceLine,
        missed: Missed,
        why: impl FnOnce() -> W,
    ) {
        if self.wanted {
            self.found.push((line, missed, why().into()));
        }
    }

    /// What was collected on `function`, by line, each remark once.
    pub fn finish(mut self, function: &str) -> Vec<Remark> {
        self.found.sort();
        self.found.dedup();
        let remark = |(line, missed, why): (SourceLine, Missed, Cow<'static, str>)| Remark {
            function: function.to_owned(),
            file: None,
            line: line.0,
            column: 0,
            missed,
            why,
        };
        self.found.into_iter().map(remark).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_pays_for_what_is_not_wanted() {
        let mut remarks = Remarks::new(false);
        remarks.missed(SourceLine(1), Missed::Merging, || -> &str {
            unreachable!("nobody reads it")
        });
        assert_eq!(remarks.finish("f"), []);
    }

    #[test]
    fn they_come_by_line_and_once() {
        let mut remarks = Remarks::new(true);
        for line in [7, 3, 7] {
            remarks.missed(SourceLine(line), Missed::Guarding, || "it is long");
        }
        let texts: Vec<String> = (remarks.finish("f").iter())
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                "3: %f: not guarded: it is long",
                "7: %f: not guarded: it is long"
            ]
        );
    }
}
