//! The ELF file as it is: header, sections, symbols, relocations.
//!
//! Nothing here knows what our sections mean but for the names of relocations, so that it can be looked at what the
//! library's reader refuses.

use anyhow::{Context, Result, anyhow, bail};
use cranelift_thisgpu::object::{MACHINE, ReadError, RelocationKind};
use object::LittleEndian;
use object::elf::{self, FileHeader64, SectionHeader64};
use object::read::SectionIndex;
use object::read::elf::{FileHeader, Rela, SectionHeader, SectionTable, Sym};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

type Elf = FileHeader64<LittleEndian>;
const LITTLE: LittleEndian = LittleEndian;

/// The types of sections that our files have, with their names.
const SECTION_TYPES: [(elf::SectionType, &str); 7] = [
    (elf::SHT_NULL, "NULL"),
    (elf::SHT_PROGBITS, "PROGBITS"),
    (elf::SHT_SYMTAB, "SYMTAB"),
    (elf::SHT_STRTAB, "STRTAB"),
    (elf::SHT_RELA, "RELA"),
    (elf::SHT_NOTE, "NOTE"),
    (elf::SHT_NOBITS, "NOBITS"),
];
/// Flags of sections, with the letters that other tools write for them.
const FLAGS: [(elf::SectionFlags, char); 4] = [
    (elf::SHF_WRITE, 'W'),
    (elf::SHF_ALLOC, 'A'),
    (elf::SHF_EXECINSTR, 'X'),
    (elf::SHF_INFO_LINK, 'I'),
];

/// A file whose header is one of ours.
pub struct Raw<'a> {
    data: &'a [u8],
    header: &'a Elf,
    sections: SectionTable<'a, Elf>,
}

/// The header of the file, and the sections.
#[derive(Serialize)]
pub struct Headers {
    header: Header,
    sections: Vec<Section>,
}

/// What the header of the file says.
#[derive(Serialize)]
struct Header {
    class: &'static str,
    kind: String,
    machine: u16,
    /// Where the table of sections begins.
    sections_at: u64,
    sections: usize,
}

/// A section.
#[derive(Serialize)]
struct Section {
    number: usize,
    name: String,
    kind: String,
    address: u64,
    /// Where it begins in the file.
    offset: u64,
    size: u64,
    align: u64,
    flags: String,
}

/// A symbol.
#[derive(Serialize)]
pub struct Symbol {
    value: u64,
    size: u64,
    binding: String,
    kind: String,
    /// Where it is defined; none where it is not.
    section: Option<String>,
    name: String,
}

/// A place that linking fills in.
#[derive(Serialize)]
pub struct Relocation {
    section: String,
    offset: u64,
    kind: String,
    symbol: String,
    addend: i64,
}

impl<'a> Raw<'a> {
    /// Looks at the header, and at where the sections are.
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let header = Elf::parse(data).context("no ELF file of 64 bits: the header, at 0x0")?;
        if !header.is_little_endian() {
            return Err(ReadError::Kind).context("the header, at 0x5");
        }
        let machine = header.e_machine(LITTLE).0;
        if machine != MACHINE {
            return Err(ReadError::Machine { found: machine }).context("the header, at 0x12");
        }
        let at = header.e_shoff(LITTLE);
        let sections = header.sections(LITTLE, data);
        let sections = sections
            .with_context(|| format!("the table of sections, at {at:#x} of {:#x}", data.len()))?;
        Ok(Raw {
            data,
            header,
            sections,
        })
    }

    fn section_name(&self, number: SectionIndex) -> Result<String> {
        let section = self.sections.section(number);
        let section = section.with_context(|| format!("section {number}"))?;
        self.name_of(number.0, section)
    }

    fn name_of(&self, number: usize, section: &SectionHeader64<LittleEndian>) -> Result<String> {
        let name = self.sections.section_name(LITTLE, section);
        let name = name.with_context(|| format!("section {number}: its name"))?;
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    /// The header and the sections.
    pub fn headers(&self) -> Result<Headers> {
        let sections = self.sections.iter().enumerate();
        let sections: Vec<Section> = sections
            .map(|(number, section)| self.section(number, section))
            .collect::<Result<_>>()?;
        let kind = match self.header.e_type(LITTLE) {
            elf::ET_REL => "relocatable".to_owned(),
            elf::ET_EXEC => "linked".to_owned(),
            other => format!("type {:#x}", other.0),
        };
        Ok(Headers {
            header: Header {
                class: "64 bits, little-endian",
                kind,
                machine: self.header.e_machine(LITTLE).0,
                sections_at: self.header.e_shoff(LITTLE),
                sections: sections.len(),
            },
            sections,
        })
    }

    fn section(&self, number: usize, section: &SectionHeader64<LittleEndian>) -> Result<Section> {
        let name = self.name_of(number, section)?;
        let (offset, size) = (section.sh_offset(LITTLE), section.sh_size(LITTLE));
        if section.data(LITTLE, self.data).is_err() {
            bail!(
                "section {number} `{name}`: its {size:#x} bytes at {offset:#x} are not in the file of {:#x} bytes",
                self.data.len()
            );
        }
        let kind = section.sh_type(LITTLE);
        let known = SECTION_TYPES.iter().find(|(known, _)| *known == kind);
        let flags = section.sh_flags(LITTLE);
        let letters = FLAGS.iter().filter(|(flag, _)| flags.contains(*flag));
        Ok(Section {
            number,
            name,
            kind: known.map_or_else(|| format!("{:#x}", kind.0), |(_, name)| (*name).to_owned()),
            address: section.sh_addr(LITTLE),
            offset,
            size,
            align: section.sh_addralign(LITTLE),
            flags: letters.map(|(_, letter)| letter).collect(),
        })
    }

    /// The symbols, but for the first, which is none.
    pub fn symbols(&self) -> Result<Vec<Symbol>> {
        let table = self.symbol_table()?;
        let symbols = table.enumerate().filter(|(index, _)| index.0 != 0);
        let symbol = |(index, symbol): (object::SymbolIndex, &elf::Sym64<LittleEndian>)| {
            let at = || format!("symbol {index}");
            let name = table.symbol_name(LITTLE, symbol).with_context(at)?;
            let section = table
                .symbol_section(LITTLE, symbol, index)
                .with_context(at)?;
            let section = section.map(|number| self.section_name(number));
            Ok(Symbol {
                value: symbol.st_value(LITTLE),
                size: symbol.st_size(LITTLE),
                binding: match symbol.st_bind() {
                    elf::STB_LOCAL => "local".to_owned(),
                    elf::STB_GLOBAL => "global".to_owned(),
                    other => format!("binding {}", other.0),
                },
                kind: match symbol.st_type() {
                    elf::STT_NOTYPE => "none".to_owned(),
                    elf::STT_FUNC => "function".to_owned(),
                    elf::STT_OBJECT => "data".to_owned(),
                    elf::STT_SECTION => "section".to_owned(),
                    other => format!("type {}", other.0),
                },
                section: section.transpose().with_context(at)?,
                name: String::from_utf8_lossy(name).into_owned(),
            })
        };
        symbols.map(symbol).collect()
    }

    fn symbol_table(&self) -> Result<object::read::elf::SymbolTable<'a, Elf>> {
        let table = self.sections.symbols(LITTLE, self.data, elf::SHT_SYMTAB);
        table.context("the table of symbols")
    }

    /// The relocations, section by section.
    pub fn relocations(&self) -> Result<Vec<Relocation>> {
        let table = self.symbol_table()?;
        let mut all = Vec::new();
        for (number, section) in self.sections.iter().enumerate() {
            let name = || anyhow!("section {number}");
            let Some((list, _)) = section.rela(LITTLE, self.data).with_context(name)? else {
                continue;
            };
            let target = self.section_name(section.info_link(LITTLE));
            let target = target.with_context(name)?;
            for (entry, relocation) in list.iter().enumerate() {
                let at = || format!("section {number}, relocation {entry}");
                let symbol = match relocation.symbol(LITTLE, false) {
                    Some(index) => {
                        let symbol = table.symbol(index).with_context(at)?;
                        let name = table.symbol_name(LITTLE, symbol).with_context(at)?;
                        String::from_utf8_lossy(name).into_owned()
                    }
                    None => String::new(),
                };
                let kind = relocation.r_type(LITTLE, false).0;
                let known = RelocationKind::ALL.iter().find(|k| **k as u32 == kind);
                all.push(Relocation {
                    section: target.clone(),
                    offset: relocation.r_offset(LITTLE),
                    kind: known.map_or_else(|| format!("type {kind}"), |k| k.name().to_owned()),
                    symbol,
                    addend: relocation.r_addend(LITTLE),
                });
            }
        }
        Ok(all)
    }
}

impl Headers {
    /// By function the address that it is linked to; 0 in relocatable files.
    pub fn code_addresses(&self) -> BTreeMap<String, u64> {
        let functions = self.sections.iter().filter_map(|section| {
            let function = section.name.strip_prefix(".text.")?;
            Some((function.to_owned(), section.address))
        });
        functions.collect()
    }
}

impl fmt::Display for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Header {
            class,
            kind,
            machine,
            sections_at,
            sections,
        } = &self.header;
        writeln!(
            f,
            "ELF of {class}, {kind}, machine {machine:#x}, {sections} sections, their table at {sections_at:#x}"
        )?;
        let width = self.sections.iter().map(|s| s.name.len()).max();
        let width = width.unwrap_or(0).max(4);
        writeln!(
            f,
            "\nsections:\n  {:>3} {:width$} {:8} {:>10} {:>10} {:>10} {:>5} flags",
            "no", "name", "type", "address", "offset", "size", "align"
        )?;
        for section in &self.sections {
            let Section {
                number,
                name,
                kind,
                address,
                offset,
                size,
                align,
                flags,
            } = section;
            let line = format!(
                "  {number:>3} {name:width$} {kind:8} {address:#10x} {offset:#10x} {size:#10x} {align:>5} {flags}"
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let section = self.section.as_deref().unwrap_or("undefined");
        write!(
            f,
            "{:#010x} {:#10x} {:6} {:8} {section} {}",
            self.value, self.size, self.binding, self.kind, self.name
        )
    }
}

impl fmt::Display for Relocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, addend) = match self.addend {
            0 => return self.without_addend(f),
            addend if addend < 0 => ('-', addend.unsigned_abs()),
            addend => ('+', addend.unsigned_abs()),
        };
        self.without_addend(f)?;
        write!(f, "{sign}{addend:#x}")
    }
}

impl Relocation {
    fn without_addend(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}+{:#06x} {:8} {}",
            self.section, self.offset, self.kind, self.symbol
        )
    }
}
