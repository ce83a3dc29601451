//! Numbers for places in the source, as instructions of CLIF carry them.

use crate::error::Place;
use cranelift_codegen::ir::SourceLoc;
use cranelift_thisgpu::locations::{Location, Locations};
use hashbrown::HashMap;

/// The table of places that is filled while functions are translated.
pub struct Numbers {
    table: Locations,
    /// By file name, the number of the file.
    files: HashMap<String, u32>,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            table: Locations::table(),
            files: HashMap::new(),
        }
    }
}

impl Numbers {
    /// The number of a place in a scope of variables, or in none (0): the user's own line, where code was inlined from
    /// the standard library, with the calls that were inlined around it.
    pub fn number(&mut self, place: &Place, scope: u32) -> SourceLoc {
        let place = place.of_user();
        let outer: Vec<&Place> = place.chain().skip(1).collect();
        let mut around = 0;
        for call in outer.into_iter().rev() {
            let file = self.file(&call.file);
            around = self.table.call(file, call.line, call.column, around);
        }
        let file = self.file(&place.file);
        let (line, column, inlined) = (place.line, place.column, around);
        (self.table).add_scoped(
            Location {
                file,
                line,
                column,
                inlined,
            },
            scope,
        )
    }

    /// The number of a file.
    pub fn file(&mut self, name: &str) -> u32 {
        if let Some(file) = self.files.get(name) {
            return *file;
        }
        let file = self.table.file(name);
        self.files.insert(name.to_owned(), file);
        file
    }

    /// The table.
    pub fn into_table(self) -> Locations {
        self.table
    }
}
