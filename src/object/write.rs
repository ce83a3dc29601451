//! [`Object`] to ELF.

use super::metadata::{
    LINES_SECTION, Lines, NOTE_NAME, Note, ScopesAndTypes, VALUES_SECTION, VARIABLES_SECTION,
    elf_note,
};
use super::{
    DataContents, DataObject, Line, LinkErrors, Linkage, MACHINE, Object, Relocation,
    ScopeLocations, ValueLocations, dwarf,
};
use crate::emit::constants::CONSTANTS;
use crate::isa::encode::WORD_BYTES;
use hashbrown::HashMap;
use object::build::elf::{Builder, Relocation as ElfRelocation, SectionData, SectionId, SymbolId};
use object::{LittleEndian, elf};
use std::fmt;
use thiserror::Error;

/// Why an object has no file. Prints the same as `Debug`, which is what `main` and `unwrap` show.
#[derive(Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Two functions or data objects have one name.
    #[error("symbol `{0}` is defined twice")]
    Duplicate(String),
    /// A name that an ELF file cannot hold.
    #[error("symbol {0:?} has a byte 0 in its name, where a name ends in an ELF file; rename it")]
    Name(String),
    /// A relocation that a function or data object cannot have.
    #[error("{owner}+{offset:#x}: a relocation lies outside")]
    Outside {
        /// Function or data object.
        owner: String,
        /// Byte offset.
        offset: u32,
    },
    /// A relocation of constants in an object that has none, or by another symbol than theirs.
    #[error("{owner}+{offset:#x}: a relocation of constants that are not there")]
    Constants {
        /// Function or data object.
        owner: String,
        /// Byte offset.
        offset: u32,
    },
    /// A file with addresses whose words cannot hold them.
    #[error("cannot link: {0}")]
    Link(LinkErrors),
    /// The debug information could not be written.
    #[error("cannot write debug information: {0}")]
    Debug(#[from] gimli::write::Error),
    /// The ELF writer refused.
    #[error("cannot write the ELF file: {0}")]
    Elf(#[from] object::build::Error),
    /// The metadata could not be written.
    #[error("cannot write the note: {0}")]
    Note(#[from] rmp_serde::encode::Error),
}

impl fmt::Debug for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A section whose relocations are written after the symbols are known.
struct Placed<'a> {
    section: SectionId,
    name: String,
    relocations: &'a [Relocation],
}

impl Object {
    /// The bytes of the ELF file, relocatable.
    ///
    /// # Errors
    /// When two symbols have one name, a name has a byte 0, or a relocation lies outside its function.
    pub fn write(&self) -> Result<Vec<u8>, WriteError> {
        self.file(elf::ET_REL)
    }

    /// The bytes of an ELF file with addresses: its functions stand where loading this object alone puts them
    /// ([`Object::code_addresses`]), and their words have these addresses. Data gets its addresses when it is loaded,
    /// so the relocations are there as well; [`Object::read`] takes the file like any other.
    ///
    /// # Errors
    /// As for [`Object::write`]; functions whose addresses do not fit into the words.
    pub fn write_linked(&self) -> Result<Vec<u8>, WriteError> {
        let mut linked = self.clone();
        linked.link_code().map_err(WriteError::Link)?;
        linked.file(elf::ET_EXEC)
    }

    fn file(&self, kind: elf::FileType) -> Result<Vec<u8>, WriteError> {
        self.check()?;
        let addresses = self.code_addresses();
        let address = |index: usize| match kind {
            elf::ET_EXEC => addresses[index],
            _ => 0,
        };
        let mut builder = Builder::new(object::Endianness::Little, true);
        builder.header.e_type = kind;
        builder.header.e_machine = elf::Machine(MACHINE);
        let mut symbols = SymbolTable::default();
        let mut placed = Vec::new();
        self.add_functions(&mut builder, &mut symbols, &mut placed, address);
        self.add_contents(&mut builder, &mut symbols, &mut placed);
        self.add_notes(&mut builder)?;
        let final_addresses = (kind == elf::ET_EXEC).then_some(addresses.as_slice());
        let debug = dwarf::sections(self, final_addresses)?;
        for part in &debug {
            let section = add_section(
                &mut builder,
                part.name,
                elf::SHT_PROGBITS,
                elf::SectionFlags(0),
                1,
                SectionData::Data(part.bytes.clone().into()),
            );
            placed.push(Placed {
                section,
                name: part.name.to_owned(),
                relocations: &part.relocations,
            });
        }
        symbols.undefined = self.undefined();
        let ids = symbols.add(&mut builder);
        tables(&mut builder, &placed, &ids);
        let mut out = Vec::new();
        builder.set_section_sizes();
        builder.write(&mut out)?;
        Ok(out)
    }

    /// Adds a section of words and a symbol for each function, which begins at its address.
    fn add_functions<'a>(
        &'a self,
        builder: &mut Builder<'_>,
        symbols: &mut SymbolTable<'a>,
        placed: &mut Vec<Placed<'a>>,
        address: impl Fn(usize) -> u64,
    ) {
        for (index, function) in self.functions.iter().enumerate() {
            let name = format!(".text.{}", function.name);
            let bytes: Vec<u8> = function
                .words
                .iter()
                .flat_map(|w| w.to_le_bytes())
                .collect();
            let flags = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
            let section = add_section(
                builder,
                &name,
                elf::SHT_PROGBITS,
                flags,
                WORD_BYTES as u64,
                SectionData::Data(bytes.into()),
            );
            builder.sections.get_mut(section).sh_addr = address(index);
            symbols.defined.push(Definition {
                name: &function.name,
                linkage: function.linkage,
                section,
                address: address(index),
                ty: elf::STT_FUNC,
                size: function.len(),
            });
            placed.push(Placed {
                section,
                name,
                relocations: &function.relocations,
            });
        }
    }

    /// Adds the constants, and a section and a symbol for each object of data.
    fn add_contents<'a>(
        &'a self,
        builder: &mut Builder<'_>,
        symbols: &mut SymbolTable<'a>,
        placed: &mut Vec<Placed<'a>>,
    ) {
        if !self.constants.is_empty() {
            let data = SectionData::Data(self.constants.clone().into());
            let section = add_section(
                builder,
                ".const",
                elf::SHT_PROGBITS,
                elf::SHF_ALLOC,
                16,
                data,
            );
            symbols.defined.push(Definition {
                name: CONSTANTS,
                linkage: Linkage::Local,
                section,
                address: 0,
                ty: elf::STT_OBJECT,
                size: self.constants.len() as u64,
            });
        }
        for data in &self.data {
            let (name, section) = add_data(builder, data);
            symbols.defined.push(Definition {
                name: &data.name,
                linkage: data.linkage,
                section,
                address: 0,
                ty: elf::STT_OBJECT,
                size: data.contents.len(),
            });
            placed.push(Placed {
                section,
                name,
                relocations: &data.relocations,
            });
        }
    }

    /// Adds what ELF has no place for: what launches need to know, lines of the source, and places of its values.
    fn add_notes(&self, builder: &mut Builder<'_>) -> Result<(), WriteError> {
        let note = elf_note(&rmp_serde::to_vec_named(&Note::of(self))?);
        let name = format!(".note.{NOTE_NAME}");
        add_section(
            builder,
            &name,
            elf::SHT_NOTE,
            elf::SectionFlags(0),
            4,
            SectionData::Note(note.into()),
        );
        let lines: Vec<(String, Vec<Line>)> = self
            .functions
            .iter()
            .filter(|f| !f.lines.is_empty())
            .map(|f| (f.name.clone(), f.lines.clone()))
            .collect();
        let values: Vec<(&str, &[ValueLocations])> = (self.functions.iter())
            .filter(|f| !f.values.is_empty())
            .map(|f| (f.name.as_str(), f.values.as_slice()))
            .collect();
        if !values.is_empty() {
            let data = SectionData::Data(rmp_serde::to_vec(&values)?.into());
            add_table(builder, VALUES_SECTION, elf::SHT_PROGBITS, 1, data);
        }
        let scopes: Vec<(String, Vec<ScopeLocations>)> = (self.functions.iter())
            .filter(|f| !f.scopes.is_empty())
            .map(|f| (f.name.clone(), f.scopes.clone()))
            .collect();
        if !scopes.is_empty() || !self.statics.is_empty() {
            let data = rmp_serde::to_vec(&ScopesAndTypes {
                types: self.types.clone(),
                scopes,
                statics: self.statics.clone(),
            })?;
            let data = SectionData::Data(data.into());
            add_table(builder, VARIABLES_SECTION, elf::SHT_PROGBITS, 1, data);
        }
        if !lines.is_empty() {
            let lines = Lines {
                files: self.files.clone(),
                lines,
                calls: self.calls.clone(),
            };
            let data = SectionData::Data(rmp_serde::to_vec(&lines)?.into());
            add_section(
                builder,
                LINES_SECTION,
                elf::SHT_PROGBITS,
                elf::SectionFlags(0),
                1,
                data,
            );
        }
        Ok(())
    }

    fn check(&self) -> Result<(), WriteError> {
        let mut seen = hashbrown::HashSet::new();
        if !self.constants.is_empty() {
            seen.insert(CONSTANTS);
        }
        let names = self
            .functions
            .iter()
            .map(|f| &f.name)
            .chain(self.data.iter().map(|d| &d.name));
        for name in names {
            if name.contains('\0') {
                return Err(WriteError::Name(name.clone()));
            }
            if !seen.insert(name.as_str()) {
                return Err(WriteError::Duplicate(name.clone()));
            }
        }
        if let Some(name) = self.undefined().iter().find(|name| name.contains('\0')) {
            return Err(WriteError::Name((*name).to_owned()));
        }
        let functions = self
            .functions
            .iter()
            .map(|f| (&f.name, f.len(), &f.relocations, WORD_BYTES as u64));
        let data = self
            .data
            .iter()
            .map(|d| (&d.name, d.contents.len(), &d.relocations, 8));
        if let Some((owner, offset)) = self.dangling_constant() {
            let owner = owner.to_owned();
            return Err(WriteError::Constants { owner, offset });
        }
        for (owner, len, relocations, size) in functions.chain(data) {
            if let Some(r) = relocations
                .iter()
                .find(|r| u64::from(r.offset) + size > len)
            {
                return Err(WriteError::Outside {
                    owner: owner.clone(),
                    offset: r.offset,
                });
            }
        }
        Ok(())
    }
}

struct Definition<'a> {
    name: &'a str,
    linkage: Linkage,
    section: SectionId,
    address: u64,
    ty: elf::SymbolType,
    size: u64,
}

#[derive(Default)]
struct SymbolTable<'a> {
    defined: Vec<Definition<'a>>,
    undefined: Vec<&'a str>,
}

impl<'a> SymbolTable<'a> {
    /// Adds the symbols, local ones first as ELF wants it.
    fn add(&self, builder: &mut Builder<'_>) -> HashMap<&'a str, SymbolId> {
        let mut ids = HashMap::new();
        for linkage in [Linkage::Local, Linkage::Global] {
            for definition in self.defined.iter().filter(|d| d.linkage == linkage) {
                let symbol = builder.symbols.add();
                symbol.name = definition.name.as_bytes().to_vec().into();
                symbol.section = Some(definition.section);
                let bind = if linkage == Linkage::Local {
                    elf::STB_LOCAL
                } else {
                    elf::STB_GLOBAL
                };
                symbol.set_st_info(bind, definition.ty);
                symbol.st_value = definition.address;
                symbol.st_size = definition.size;
                ids.insert(definition.name, symbol.id());
            }
        }
        for name in &self.undefined {
            let symbol = builder.symbols.add();
            symbol.name = name.as_bytes().to_vec().into();
            symbol.set_st_info(elf::STB_GLOBAL, elf::STT_NOTYPE);
            ids.insert(name, symbol.id());
        }
        ids
    }
}

fn add_data(builder: &mut Builder<'_>, data: &DataObject) -> (String, SectionId) {
    let writable = if data.writable {
        elf::SHF_WRITE
    } else {
        elf::SectionFlags(0)
    };
    let (prefix, ty, contents) = match &data.contents {
        DataContents::Zeros(count) => (
            ".bss",
            elf::SHT_NOBITS,
            SectionData::UninitializedData(*count),
        ),
        DataContents::Bytes(bytes) => (
            if data.writable { ".data" } else { ".rodata" },
            elf::SHT_PROGBITS,
            SectionData::Data(bytes.clone().into()),
        ),
    };
    let name = format!("{prefix}.{}", data.name);
    let section = add_section(
        builder,
        &name,
        ty,
        elf::SHF_ALLOC | writable,
        data.align.into(),
        contents,
    );
    (name, section)
}

fn add_section(
    builder: &mut Builder<'_>,
    name: &str,
    ty: elf::SectionType,
    flags: elf::SectionFlags,
    align: u64,
    data: SectionData<'static>,
) -> SectionId {
    let section = builder.sections.add();
    section.name = name.as_bytes().to_vec().into();
    section.sh_type = ty;
    section.sh_flags = flags;
    section.sh_addralign = align;
    section.data = data;
    section.id()
}

/// Adds a section that is not loaded.
fn add_table(
    builder: &mut Builder<'_>,
    name: &str,
    ty: elf::SectionType,
    align: u64,
    data: SectionData<'static>,
) -> SectionId {
    add_section(builder, name, ty, elf::SectionFlags(0), align, data)
}

/// Relocations, symbols and strings.
fn tables(builder: &mut Builder<'_>, placed: &[Placed<'_>], ids: &HashMap<&str, SymbolId>) {
    let strings = add_table(builder, ".strtab", elf::SHT_STRTAB, 1, SectionData::String);
    let symbols = add_table(builder, ".symtab", elf::SHT_SYMTAB, 8, SectionData::Symbol);
    let table = builder.sections.get_mut(symbols);
    table.sh_link_section = Some(strings);
    table.sh_entsize = size_of::<elf::Sym64<LittleEndian>>() as u64;
    // Numbers of sections from here on do not fit into a symbol: they stand in a table beside the symbols.
    if builder.sections.count() >= usize::from(elf::SHN_LORESERVE) {
        let data = SectionData::SymbolSectionIndex;
        let numbers = add_table(builder, ".symtab_shndx", elf::SHT_SYMTAB_SHNDX, 4, data);
        let table = builder.sections.get_mut(numbers);
        table.sh_link_section = Some(symbols);
        table.sh_entsize = 4;
    }
    for Placed {
        section,
        name,
        relocations,
    } in placed.iter().filter(|p| !p.relocations.is_empty())
    {
        let list = relocations.iter().map(|r| ElfRelocation {
            r_offset: r.offset.into(),
            symbol: ids.get(r.symbol.as_str()).copied(),
            r_type: elf::RelocationType(r.kind as u32),
            r_addend: r.addend,
        });
        let data = SectionData::Relocation(list.collect());
        let id = add_section(
            builder,
            &format!(".rela{name}"),
            elf::SHT_RELA,
            elf::SHF_INFO_LINK,
            8,
            data,
        );
        let added = builder.sections.get_mut(id);
        added.sh_link_section = Some(symbols);
        added.sh_info_section = Some(*section);
        added.sh_entsize = size_of::<elf::Rela64<LittleEndian>>() as u64;
    }
    let data = SectionData::SectionString;
    add_table(builder, ".shstrtab", elf::SHT_STRTAB, 1, data);
}
