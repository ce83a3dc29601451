//! What the numbers in `srcloc` stand for: places in files.
//!
//! A front end puts a number at every instruction ([`cranelift_codegen::ir::SourceLoc`]) and hands over what the
//! numbers mean, as [`Locations`] ([`crate::compile::Compiler::set_locations`]). Line tables of objects, debug
//! information, faults, remarks and errors then say file, line and column. Without a table the numbers are lines: of a
//! CLIF text those of its file, otherwise of a file without a name.

use cranelift_codegen::ir::SourceLoc;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The folder that the files of the compiler's own library are said to be in.
pub const LIBRARY: &str = "<library>";

/// A place in a file.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Location {
    /// The file's number in its list of files, from 1; 0 is unknown.
    pub file: u32,
    /// Line, from 1; 0 is unknown.
    pub line: u32,
    /// Column, from 1; 0 is unknown.
    pub column: u32,
    /// The number, from 1, of the call that put it here, in its list of calls ([`Locations::call`]); 0 if it was not
    /// inlined.
    #[serde(default, skip_serializing_if = "is_none")]
    pub inlined: u32,
}

/// Whether a number stands for nothing.
fn is_none(number: &u32) -> bool {
    *number == 0
}

/// What numbers stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locations {
    files: Vec<String>,
    /// The place of each number, from 1; none where the numbers are lines.
    places: Option<Vec<Location>>,
    /// The scope of each number that is in one.
    scopes: Vec<u32>,
    numbers: HashMap<(Location, u32), u32>,
    /// Calls that were inlined.
    calls: Vec<Location>,
    call_numbers: HashMap<Location, u32>,
}

impl Locations {
    /// Numbers are lines of this file.
    pub fn lines_of(file: impl Into<String>) -> Self {
        Self {
            files: vec![file.into()],
            ..Self::default()
        }
    }

    /// A table that is to be filled: see [`Locations::add`].
    pub fn table() -> Self {
        Self {
            places: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// The number of a file, by its name as messages are to say it.
    pub fn file(&mut self, name: &str) -> u32 {
        let known = self.files.iter().position(|file| file == name);
        let index = known.unwrap_or_else(|| {
            self.files.push(name.to_owned());
            self.files.len() - 1
        });
        index as u32 + 1
    }

    /// The number for a place, to be put at instructions; `file` is what [`Locations::file`] gave, line and column
    /// count from 1, a column of 0 is unknown. The same place always has the same number.
    pub fn add(&mut self, file: u32, line: u32, column: u32) -> SourceLoc {
        self.add_inlined(file, line, column, 0)
    }

    /// The number of a call that a front end inlined, for what came from the callee ([`Locations::add_inlined`]): its
    /// place, and the number of the call around it, or 0. Faults name the whole chain.
    pub fn call(&mut self, file: u32, line: u32, column: u32, around: u32) -> u32 {
        let place = Location {
            file,
            line,
            column,
            inlined: around,
        };
        let calls = &mut self.calls;
        *self.call_numbers.entry(place).or_insert_with(|| {
            calls.push(place);
            calls.len() as u32
        })
    }

    /// As [`Locations::add`], for a place in a function that was inlined at a call ([`Locations::call`]).
    pub fn add_inlined(&mut self, file: u32, line: u32, column: u32, call: u32) -> SourceLoc {
        let inlined = call;
        self.add_scoped(
            Location {
                file,
                line,
                column,
                inlined,
            },
            0,
        )
    }

    /// As [`Locations::add_inlined`], for a place in a scope of the front end's variables
    /// ([`Variables::add_scope`](crate::variables::Variables::add_scope)); 0 is none.
    pub fn add_scoped(&mut self, place: Location, scope: u32) -> SourceLoc {
        let places = self.places.get_or_insert_default();
        let number = *self.numbers.entry((place, scope)).or_insert_with(|| {
            places.push(place);
            if scope != 0 {
                self.scopes.resize(places.len() - 1, 0);
                self.scopes.push(scope);
            }
            places.len() as u32
        });
        SourceLoc::new(number)
    }

    /// The scope of a number; 0 if it is in none.
    pub fn scope(&self, number: u32) -> u32 {
        let index = (number as usize).checked_sub(1);
        index
            .and_then(|index| self.scopes.get(index))
            .copied()
            .unwrap_or(0)
    }

    /// The place of a number; unknown for 0 and for numbers that the table does not have.
    pub fn resolve(&self, number: u32) -> Location {
        match &self.places {
            Some(places) => (number.checked_sub(1))
                .and_then(|index| places.get(index as usize).copied())
                .unwrap_or_default(),
            None if number == 0 => Location::default(),
            None => Location {
                file: self.files.len() as u32,
                line: number,
                ..Location::default()
            },
        }
    }

    /// The same places under other numbers: those of `numbers`, from 1.
    pub(crate) fn renumbered(&self, numbers: impl Iterator<Item = u32>) -> Self {
        Self {
            files: self.files.clone(),
            places: Some(numbers.map(|number| self.resolve(number)).collect()),
            scopes: Vec::new(),
            numbers: HashMap::new(),
            calls: self.calls.clone(),
            call_numbers: HashMap::new(),
        }
    }

    /// The files, in the order of their numbers.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// The calls that were inlined, in the order of their numbers.
    pub fn calls(&self) -> &[Location] {
        &self.calls
    }

    /// The name of a file; none if the number is none of a file.
    pub fn file_name(&self, file: u32) -> Option<&str> {
        name_of(&self.files, file)
    }

    /// All that decides what numbers stand for, as a text that is the same each time.
    #[cfg(feature = "cache")]
    pub(crate) fn content(&self) -> String {
        format!("{:?} {:?} {:?}", self.files, self.places, self.calls)
    }

    /// Whether the numbers are those of a table.
    pub fn is_table(&self) -> bool {
        self.places.is_some()
    }
}

/// The name of a file by its number in a list of files.
pub(crate) fn name_of(files: &[String], file: u32) -> Option<&str> {
    files.get(file.checked_sub(1)? as usize).map(String::as_str)
}

/// A place as messages say it: `line 3, column 9 of k.clif`.
pub(crate) struct Spoken<'a> {
    pub location: Location,
    pub file: Option<&'a str>,
}

impl fmt::Display for Spoken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.location.line)?;
        if self.location.column != 0 {
            write!(f, ", column {}", self.location.column)?;
        }
        match self.file {
            Some(file) => write!(f, " of {file}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_lines_unless_there_is_a_table() {
        let lines = Locations::default().resolve(7);
        assert_eq!((lines.file, lines.line), (0, 7));
        let named = Locations::lines_of("a.clif");
        assert_eq!(named.file_name(named.resolve(7).file), Some("a.clif"));
        assert_eq!(named.resolve(0), Location::default());
        let mut table = Locations::table();
        let (a, b) = (table.file("a.rs"), table.file("b.rs"));
        let first = table.add(a, 3, 9);
        let second = table.add(b, 3, 9);
        assert_eq!(table.add(a, 3, 9), first);
        assert_eq!((first.bits(), second.bits(), table.file("a.rs")), (1, 2, a));
        let place = table.resolve(second.bits());
        assert_eq!((place.file, place.line, place.column), (b, 3, 9));
        assert_eq!(table.resolve(3), Location::default());
        let spoken = Spoken {
            location: place,
            file: table.file_name(place.file),
        };
        assert_eq!(spoken.to_string(), "line 3, column 9 of b.rs");
        let outer = table.call(a, 20, 1, 0);
        let inner = table.call(b, 30, 2, outer);
        assert_eq!((outer, inner, table.call(a, 20, 1, 0)), (1, 2, 1));
        let place = table.add_inlined(b, 3, 9, inner);
        assert_ne!(place, second);
        let inlined = table.resolve(place.bits()).inlined;
        assert_eq!((inlined, table.calls()[1].inlined), (inner, outer));
    }
}
