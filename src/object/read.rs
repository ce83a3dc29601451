//! ELF to [`Object`].

use super::metadata::{
    LINES_SECTION, Lines, NOTE_NAME, Note, ScopesAndTypes, VALUES_SECTION, VARIABLES_SECTION,
    VERSION, note_contents,
};
use super::{
    DataContents, DataObject, Linkage, MACHINE, Object, ObjectFunction, Relocation, RelocationKind,
    ValueLocations,
};
use crate::isa::encode::WORD_BYTES;
use hashbrown::HashMap;
use object::build::Id;
use object::build::elf::{Builder, Section, SectionData, SectionId, Symbol};
use object::elf;
use std::fmt;
use thiserror::Error;

/// Why a file is no object of ours. Nothing in a file makes the reader panic. Prints the same as `Debug`, which is what
/// `main` and `unwrap` show.
#[derive(Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Not an ELF file that can be parsed.
    #[error("no ELF file: {0}")]
    Elf(#[from] object::build::Error),
    /// Another machine's.
    #[error("machine {found:#x} is not this one ({MACHINE:#x})")]
    Machine {
        /// `e_machine`.
        found: u16,
    },
    /// Not 64 bits, little-endian, relocatable or linked.
    #[error("only relocatable and linked 64-bit little-endian files are supported")]
    Kind,
    /// A section that cannot be what its name says.
    #[error("section `{section}`: {reason}")]
    Section {
        /// Its name.
        section: String,
        /// What is wrong.
        reason: String,
    },
    /// A relocation of constants in an object that has none, or by another symbol than theirs.
    #[error("{owner}+{offset:#x}: a relocation of constants that are not there")]
    Constants {
        /// Function or data object.
        owner: String,
        /// Byte offset.
        offset: u32,
    },
    /// The note is missing or of another version.
    #[error("the note `{NOTE_NAME}` is {0}")]
    Note(String),
}

impl fmt::Debug for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Functions of larger files are refused instead of tried; an object never needs that much.
const MAX_ZEROS: u64 = 1 << 40;

impl Object {
    /// Whether `bytes` begin as an ELF file does.
    pub fn is_elf(bytes: &[u8]) -> bool {
        bytes.starts_with(&elf::ELFMAG)
    }

    /// The object in an ELF file.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read(bytes: &[u8]) -> Result<Object, ReadError> {
        let builder = Builder::read(bytes)?;
        if builder.header.e_machine.0 != MACHINE {
            return Err(ReadError::Machine {
                found: builder.header.e_machine.0,
            });
        }
        if !builder.is_64
            || builder.endian != object::Endianness::Little
            || ![elf::ET_REL, elf::ET_EXEC].contains(&builder.header.e_type)
        {
            return Err(ReadError::Kind);
        }
        let note = read_note(&builder)?;
        let note = note.index();
        let index = Index::new(&builder);
        let mut object = Object::default();
        for section in &builder.sections {
            let name = section_name(section);
            if let Some(symbol) = name.strip_prefix(".text.") {
                let mut function = read_function(&index, section, symbol)?;
                if !note.describe(&mut function) {
                    return Err(ReadError::Note(format!("silent about function `{symbol}`")));
                }
                object.functions.push(function);
            } else if name == ".const" {
                object.constants = contents(section)?.to_vec();
            } else if let Some(data) = read_data(&index, section)? {
                object.data.push(data);
            }
        }
        if let Some(section) = find(&builder, LINES_SECTION) {
            let Lines {
                files,
                lines,
                calls,
            } = rmp_serde::from_slice(contents(section)?)
                .map_err(|e| bad(section, e.to_string()))?;
            object.describe(section, lines, |function, lines| function.lines = lines)?;
            object.files = files;
            object.calls = calls;
        }
        if let Some(section) = find(&builder, VALUES_SECTION) {
            let values: Vec<(String, Vec<ValueLocations>)> =
                rmp_serde::from_slice(contents(section)?)
                    .map_err(|e| bad(section, e.to_string()))?;
            object.describe(section, values, |function, values| function.values = values)?;
        }
        if let Some(section) = find(&builder, VARIABLES_SECTION) {
            let ScopesAndTypes {
                types,
                scopes,
                statics,
            } = rmp_serde::from_slice(contents(section)?)
                .map_err(|e| bad(section, e.to_string()))?;
            object.describe(section, scopes, |function, scopes| function.scopes = scopes)?;
            object.types = types;
            object.statics = statics;
        }
        match object.dangling_constant() {
            None => Ok(object),
            Some((owner, offset)) => Err(ReadError::Constants {
                owner: owner.to_owned(),
                offset,
            }),
        }
    }

    /// Gives functions what a section says of them by name.
    fn describe<T>(
        &mut self,
        section: &Section<'_>,
        said: Vec<(String, T)>,
        take: impl Fn(&mut ObjectFunction, T),
    ) -> Result<(), ReadError> {
        let functions: HashMap<String, usize> = (0..self.functions.len())
            .map(|i| (self.functions[i].name.clone(), i))
            .collect();
        for (name, said) in said {
            let function = functions.get(&name);
            let function = function.ok_or_else(|| bad(section, format!("no function `{name}`")))?;
            take(&mut self.functions[*function], said);
        }
        Ok(())
    }
}

fn section_name(section: &Section<'_>) -> String {
    String::from_utf8_lossy(&section.name).into_owned()
}

fn bad(section: &Section<'_>, reason: impl Into<String>) -> ReadError {
    ReadError::Section {
        section: section_name(section),
        reason: reason.into(),
    }
}

fn find<'a, 'data>(builder: &'a Builder<'data>, name: &str) -> Option<&'a Section<'data>> {
    builder
        .sections
        .iter()
        .find(|s| &*s.name == name.as_bytes())
}

fn contents<'a>(section: &'a Section<'_>) -> Result<&'a [u8], ReadError> {
    match &section.data {
        SectionData::Data(bytes) | SectionData::Note(bytes) => Ok(bytes),
        _ => Err(bad(section, "has no contents")),
    }
}

fn read_note(builder: &Builder<'_>) -> Result<Note, ReadError> {
    let section = find(builder, &format!(".note.{NOTE_NAME}"))
        .ok_or_else(|| ReadError::Note("missing".to_string()))?;
    let bytes =
        note_contents(contents(section)?).ok_or_else(|| bad(section, "is no note of ours"))?;
    let note: Note = rmp_serde::from_slice(bytes).map_err(|e| bad(section, e.to_string()))?;
    if note.version != VERSION {
        return Err(ReadError::Note(format!(
            "of version {}, not {VERSION}",
            note.version
        )));
    }
    Ok(note)
}

/// What belongs to each section.
struct Index<'a, 'data> {
    builder: &'a Builder<'data>,
    /// By number of the section, and name.
    symbols: HashMap<(usize, &'a [u8]), &'a Symbol<'data>>,
    /// The sections with relocations, by the number of the section that they are for.
    relocations: HashMap<usize, &'a Section<'data>>,
}

impl<'a, 'data> Index<'a, 'data> {
    fn new(builder: &'a Builder<'data>) -> Self {
        let symbols = builder
            .symbols
            .iter()
            .filter_map(|symbol| Some(((symbol.section?.index(), &*symbol.name), symbol)));
        let relocations = builder
            .sections
            .iter()
            .filter(|section| section.sh_type == elf::SHT_RELA)
            .filter_map(|section| Some((section.sh_info_section?.index(), section)));
        Index {
            builder,
            symbols: symbols.collect(),
            relocations: relocations.collect(),
        }
    }

    /// The symbol of a section's name; a section without it is not ours.
    fn symbol_of(&self, section: &Section<'_>, name: &str) -> Result<&'a Symbol<'data>, ReadError> {
        self.symbols
            .get(&(section.id().index(), name.as_bytes()))
            .copied()
            .ok_or_else(|| bad(section, "has no symbol of its name"))
    }
}

fn linkage(symbol: &Symbol<'_>) -> Linkage {
    if symbol.st_bind() == elf::STB_LOCAL {
        Linkage::Local
    } else {
        Linkage::Global
    }
}

fn read_function(
    index: &Index<'_, '_>,
    section: &Section<'_>,
    name: &str,
) -> Result<ObjectFunction, ReadError> {
    let bytes = contents(section)?;
    let (words, rest) = bytes.as_chunks::<WORD_BYTES>();
    if !rest.is_empty() {
        return Err(bad(
            section,
            format!("{} bytes are no whole number of instructions", bytes.len()),
        ));
    }
    Ok(ObjectFunction {
        name: name.to_string(),
        linkage: linkage(index.symbol_of(section, name)?),
        words: words.iter().map(|w| u128::from_le_bytes(*w)).collect(),
        relocations: relocations(index, section.id())?,
        ..ObjectFunction::default()
    })
}

fn read_data(
    index: &Index<'_, '_>,
    section: &Section<'_>,
) -> Result<Option<DataObject>, ReadError> {
    let name = section_name(section);
    let Some(symbol) = [".data.", ".rodata.", ".bss."]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
    else {
        return Ok(None);
    };
    let contents = match &section.data {
        SectionData::UninitializedData(count) if *count <= MAX_ZEROS => DataContents::Zeros(*count),
        SectionData::UninitializedData(count) => {
            return Err(bad(section, format!("{count} bytes are too many")));
        }
        _ => DataContents::Bytes(contents(section)?.to_vec()),
    };
    let align = u32::try_from(section.sh_addralign.max(1))
        .ok()
        .filter(|a| a.is_power_of_two());
    Ok(Some(DataObject {
        name: symbol.to_string(),
        linkage: linkage(index.symbol_of(section, symbol)?),
        writable: section.sh_flags.contains(elf::SHF_WRITE),
        align: align.ok_or_else(|| bad(section, "its alignment is no power of two"))?,
        contents,
        relocations: relocations(index, section.id())?,
    }))
}

fn relocations(index: &Index<'_, '_>, target: SectionId) -> Result<Vec<Relocation>, ReadError> {
    let Some(section) = index.relocations.get(&target.index()) else {
        return Ok(Vec::new());
    };
    let SectionData::Relocation(list) = &section.data else {
        return Err(bad(section, "holds no relocations"));
    };
    let relocation = |r: &object::build::elf::Relocation| {
        let kind = RelocationKind::ALL
            .into_iter()
            .find(|k| *k as u32 == r.r_type.0);
        let kind = kind.ok_or_else(|| {
            bad(
                section,
                format!("relocation of unknown type {}", r.r_type.0),
            )
        })?;
        let offset = u32::try_from(r.r_offset).map_err(|_| bad(section, "offset beyond 4 GiB"))?;
        let symbol = r
            .symbol
            .ok_or_else(|| bad(section, "relocation without symbol"))?;
        let symbol = String::from_utf8_lossy(&index.builder.symbols.get(symbol).name).into_owned();
        Ok(Relocation {
            offset,
            kind,
            symbol,
            addend: r.r_addend,
        })
    };
    list.iter().map(relocation).collect()
}
