//! DWARF as a consumer reads it.

use gimli::{Dwarf, EndianSlice, Error, LittleEndian, SectionId};
use object::{File, Object, ObjectSection};

/// The sections of a file.
pub fn load(bytes: &[u8]) -> Dwarf<EndianSlice<'_, LittleEndian>> {
    let file = File::parse(bytes).unwrap();
    let section = |id: SectionId| -> Result<_, Error> {
        let section = file.section_by_name(id.name());
        let data = section.map_or(&[][..], |section| section.data().unwrap());
        Ok(EndianSlice::new(data, LittleEndian))
    };
    Dwarf::load(section).unwrap()
}
