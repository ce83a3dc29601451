//! DWARF of an object: its functions, the lines of their instructions, where values of the CLIF are
//! ([`values`](super::values)) and variables of the source ([`variables`](super::variables), with their
//! [`types`](super::types); those that are there as long as the launch in [`statics`](super::statics)), for debuggers
//! and `addr2line`.
//!
//! Made from the object's own line tables when a file is written, and not read back. One unit of DWARF 5 holds
//! everything: a file's sections are never joined with those of others, because linking makes them anew. Without
//! addresses, places in code are relocations to functions. Places of data are always relocations.

use super::statics;
use super::types::TypeEntries;
use super::values::Types;
use super::variables::Scopes;
use super::{Linkage, Object, ObjectFunction, Relocation, RelocationKind};
use gimli::constants::{
    DW_AT_decl_file, DW_AT_decl_line, DW_AT_external, DW_AT_high_pc, DW_AT_low_pc, DW_AT_name,
    DW_AT_producer, DW_AT_ranges, DW_TAG_subprogram,
};
use gimli::write::{
    Address, AttributeValue, DirectoryId, DwarfUnit, EndianVec, Error, FileId, LineProgram,
    LineString, Range, RangeList, Result, Sections, UnitEntryId, Writer,
};
use gimli::{Encoding, Format, LineEncoding, LittleEndian, SectionId};

/// The file of lines whose file is unknown.
const UNKNOWN: &str = "<unknown>";
/// Bytes of an address.
const ADDRESS_BYTES: u8 = 8;

/// A section of debug information.
pub(super) struct DebugSection {
    /// `.debug_info` and so on.
    pub name: &'static str,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Addresses in it.
    pub relocations: Vec<Relocation>,
}

/// The debug information of an object; nothing if it has neither lines nor values nor variables. With `addresses`, one
/// for each function, places in code are final.
pub(super) fn sections(object: &Object, addresses: Option<&[u64]>) -> Result<Vec<DebugSection>> {
    let says_nothing =
        |f: &ObjectFunction| f.lines.is_empty() && f.values.is_empty() && f.scopes.is_empty();
    if object.functions.iter().all(says_nothing) && object.statics.is_empty() {
        return Ok(Vec::new());
    }
    let mut unit = DwarfUnit::new(Encoding {
        format: Format::Dwarf32,
        version: 5,
        address_size: ADDRESS_BYTES,
    });
    let files = Files::add(object, &mut unit);
    let mut ranges = Vec::new();
    let mut types = Types::default();
    let type_entries = TypeEntries::add(&object.types, &mut unit);
    statics::add_global(object, &type_entries, &mut unit);
    let shared = statics::SharedStatics::of(&object.statics);
    let mut scopes = Scopes::new(&type_entries);
    for (index, function) in object.functions.iter().enumerate() {
        let start = match addresses {
            Some(addresses) => Address::Constant(addresses[index]),
            None => Address::Symbol {
                symbol: index,
                addend: 0,
            },
        };
        ranges.push(Range::StartLength {
            begin: start,
            length: function.len(),
        });
        lines(function, start, &files, &mut unit.unit.line_program);
        let parent = entry(function, start, &files, &mut unit);
        types.add_values(function, start, parent, &mut unit);
        scopes.add(function, start, parent, &files, &mut unit);
        shared.add(&function.name, parent, &type_entries, &mut unit);
    }
    let ranges = unit.unit.ranges.add(RangeList(ranges));
    let producer = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));
    let name = clean(object.files.first().map_or(UNKNOWN, String::as_str));
    let root = unit.unit.root();
    let root = unit.unit.get_mut(root);
    root.set(DW_AT_producer, AttributeValue::String(producer.into()));
    root.set(DW_AT_name, AttributeValue::String(name));
    root.set(DW_AT_ranges, AttributeValue::RangeListRef(ranges));
    // Ranges are offsets from it.
    root.set(DW_AT_low_pc, AttributeValue::Address(Address::Constant(0)));

    let mut written = Sections::new(SectionWriter::default());
    unit.write(&mut written)?;
    let mut found = Vec::new();
    written.for_each(|id, section| -> Result<()> {
        if !section.bytes.slice().is_empty() {
            found.push(section.finish(id, object));
        }
        Ok(())
    })?;
    Ok(found)
}

/// The object's files as the unit knows them.
pub(super) struct Files {
    /// Of lines without a file.
    unknown: FileId,
    known: Vec<FileId>,
}

impl Files {
    fn add(object: &Object, unit: &mut DwarfUnit) -> Self {
        let first = clean(object.files.first().map_or(UNKNOWN, String::as_str));
        let mut program = LineProgram::new(
            unit.unit.encoding(),
            LineEncoding::default(),
            LineString::String(b".".to_vec()),
            None,
            LineString::String(first),
            None,
        );
        let folder: DirectoryId = program.default_directory();
        let mut add = |name: &str| program.add_file(LineString::String(clean(name)), folder, None);
        let known = object.files.iter().map(|file| add(file)).collect();
        let unknown = add(UNKNOWN);
        unit.unit.line_program = program;
        Self { unknown, known }
    }

    pub fn id(&self, file: u32) -> FileId {
        let index = file.checked_sub(1).map(|index| index as usize);
        let known = index.and_then(|index| self.known.get(index));
        known.copied().unwrap_or(self.unknown)
    }
}

/// A name as DWARF can hold it: not empty, and without bytes of 0.
pub(super) fn clean(name: &str) -> Vec<u8> {
    let name: Vec<u8> = name.bytes().filter(|byte| *byte != 0).collect();
    if name.is_empty() {
        UNKNOWN.into()
    } else {
        name
    }
}

/// The rows of a function.
fn lines(function: &ObjectFunction, start: Address, files: &Files, program: &mut LineProgram) {
    if function.is_empty() {
        return;
    }
    program.begin_sequence(Some(start));
    let mut last = 0;
    for line in &function.lines {
        let offset = u64::from(line.offset);
        // What is out of order, or outside, is of nobody's use.
        if offset < last || offset >= function.len() {
            continue;
        }
        last = offset;
        let row = program.row();
        row.address_offset = offset;
        row.file = files.id(line.location.file);
        row.line = line.location.line.into();
        row.column = line.location.column.into();
        program.generate_row();
    }
    program.end_sequence(function.len());
}

/// The entry of a function.
fn entry(
    function: &ObjectFunction,
    start: Address,
    files: &Files,
    unit: &mut DwarfUnit,
) -> UnitEntryId {
    let root = unit.unit.root();
    let id = unit.unit.add(root, DW_TAG_subprogram);
    let entry = unit.unit.get_mut(id);
    entry.set(DW_AT_name, AttributeValue::String(clean(&function.name)));
    entry.set(DW_AT_low_pc, AttributeValue::Address(start));
    entry.set(DW_AT_high_pc, AttributeValue::Udata(function.len()));
    if function.linkage == Linkage::Global {
        entry.set(DW_AT_external, AttributeValue::Flag(true));
    }
    let known = function.lines.iter().map(|line| line.location);
    if let Some(first) = known.filter(|location| location.line != 0).min() {
        let file = Some(files.id(first.file));
        entry.set(DW_AT_decl_file, AttributeValue::FileIndex(file));
        entry.set(DW_AT_decl_line, AttributeValue::Udata(first.line.into()));
    }
    id
}

/// Bytes of a section, and the places in it of addresses: offset, number of the symbol, addend. The numbers of symbols
/// count the functions, then the data.
#[derive(Clone)]
struct SectionWriter {
    bytes: EndianVec<LittleEndian>,
    addresses: Vec<(usize, usize, i64)>,
}

impl Default for SectionWriter {
    fn default() -> Self {
        Self {
            bytes: EndianVec::new(LittleEndian),
            addresses: Vec::new(),
        }
    }
}

impl SectionWriter {
    fn finish(&self, id: SectionId, object: &Object) -> DebugSection {
        let name = |symbol: usize| match symbol.checked_sub(object.functions.len()) {
            None => object.functions[symbol].name.clone(),
            Some(data) => object.data[data].name.clone(),
        };
        let relocation = |&(offset, symbol, addend): &(usize, usize, i64)| Relocation {
            offset: offset as u32,
            kind: RelocationKind::Abs64,
            symbol: name(symbol),
            addend,
        };
        DebugSection {
            name: id.name(),
            bytes: self.bytes.slice().to_vec(),
            relocations: self.addresses.iter().map(relocation).collect(),
        }
    }
}

impl Writer for SectionWriter {
    type Endian = LittleEndian;

    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.write(bytes)
    }

    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.bytes.write_at(offset, bytes)
    }

    fn write_address(&mut self, address: Address, size: u8) -> Result<()> {
        match address {
            Address::Constant(value) => self.write_udata(value, size),
            Address::Symbol { symbol, addend } if size == ADDRESS_BYTES => {
                self.addresses.push((self.len(), symbol, addend));
                self.write_udata(0, size)
            }
            Address::Symbol { .. } => Err(Error::InvalidAddress),
        }
    }
}
