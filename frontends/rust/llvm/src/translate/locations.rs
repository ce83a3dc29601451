//! Numbers for places in the source, as instructions of CLIF carry them.

use crate::error::Place;
use cranelift_codegen::ir::SourceLoc;
use cranelift_thisgpu::locations::Locations;
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
    /// The number of a place: the user's own line, where code was inlined from the standard library.
    pub fn number(&mut self, place: &Place) -> SourceLoc {
        let place = place.of_user();
        let file = match self.files.get(&place.file) {
            Some(file) => *file,
            None => {
                let file = self.table.file(&place.file);
                self.files.insert(place.file.clone(), file);
                file
            }
        };
        self.table.add(file, place.line, place.column)
    }

    /// The table.
    pub fn into_table(self) -> Locations {
        self.table
    }
}
