//! Relocatable code: what the compiler and the assembler make, what the loader takes, and its file format.
//!
//! [`Object`] is the model. [`Object::write`] turns it into an ELF64 file (little-endian, machine number [`MACHINE`],
//! type `ET_REL`) and [`Object::read`] takes it back; the same object always gives the same bytes. Sections:
//! `.text.NAME` for each function, `.const` for constant bank 3, `.data.NAME`, `.rodata.NAME` and `.bss.NAME` for each
//! data object, `.symtab`, relocations with addends, the note `thisgpu` with the resources in MessagePack
//! ([`metadata`]), the lines of the source, and where its values are. All numbers are *assigned*.

mod dwarf;
mod link;
mod linker;
mod metadata;
mod read;
mod resources;
mod statics;
mod types;
mod values;
mod variables;
mod write;

#[cfg(feature = "asm")]
pub(crate) use link::constant_read;
pub(crate) use link::with_constant;
pub use link::{CODE_START, LinkError, LinkErrors, Symbols};
pub use linker::Linker;
#[cfg(feature = "driver")]
pub(crate) use linker::suggestion;
pub(crate) use linker::unresolved;
pub use metadata::{NOTE_NAME, NOTE_TYPE};
pub use read::ReadError;
pub(crate) use resources::Needs;
pub use resources::{BeyondBounds, RECURSION_BYTES};
pub use write::WriteError;

pub use crate::abi::Redzone;
use crate::emit::constants::CONSTANTS;
pub use crate::locations::Location;
use crate::locations::name_of;
use crate::properties::DeviceProperties;
pub use crate::values::ValueLocations;
pub use crate::variables::{ScopeKind, ScopeLocations, Static, StaticPlace, VariableType};
pub use cranelift_codegen::ir::Type;
use hashbrown::HashSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// `e_machine` of the files (*assigned*: "tg"; no registered machine has it).
pub const MACHINE: u16 = 0x7467;

/// Functions, constants and data before linking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Kernels and device functions, in the order of the code.
    pub functions: Vec<ObjectFunction>,
    /// Contents of constant bank 3.
    pub constants: Vec<u8>,
    /// Data in global memory.
    pub data: Vec<DataObject>,
    /// Files of the source, which [`Location::file`] counts.
    pub files: Vec<String>,
    /// Calls that a front end inlined, which [`Location::inlined`] counts.
    pub calls: Vec<Location>,
    /// Types of variables, which [`VariableLocations::ty`](crate::variables::VariableLocations::ty) counts from 0.
    pub types: Vec<VariableType>,
    /// Static variables of the source, if a front end has told of them.
    pub statics: Vec<Static>,
}

/// A kernel or a device function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFunction {
    /// Symbol name.
    pub name: String,
    /// Who sees the name.
    pub linkage: Linkage,
    /// What a launch needs; none of a device function.
    pub kernel: Option<Kernel>,
    /// What it needs of the machine.
    pub resources: Resources,
    /// What it needs by itself.
    pub own: OwnResources,
    /// Its instructions.
    pub words: Vec<u128>,
    /// Places that linking fills in, in ascending order; offsets are those of words.
    pub relocations: Vec<Relocation>,
    /// Lines of the source.
    pub lines: Vec<Line>,
    /// Parts of its frame that nothing may use, by offset.
    pub redzones: Vec<Redzone>,
    /// Where values of the source are, if the compiler was asked for it.
    pub values: Vec<ValueLocations>,
    /// Where variables of the source are, if a front end has told of them.
    pub scopes: Vec<ScopeLocations>,
}

/// Who sees a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Linkage {
    /// Other objects too.
    #[default]
    Global,
    /// This object only.
    Local,
}

/// What a launch must know of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// In order.
    pub parameters: Vec<Parameter>,
    /// Static shared memory in bytes.
    pub shared_bytes: u32,
    /// Threads of a block, at most, where the kernel says so.
    pub max_threads: Option<u32>,
    /// Blocks that are to be resident together in a multiprocessor, where the kernel says so.
    pub min_blocks: Option<u32>,
}

impl Kernel {
    /// The registers that its launch bounds leave a thread; none without bounds.
    ///
    /// # Errors
    /// Why the bounds cannot be kept.
    pub fn register_limit(&self) -> Result<Option<u32>, String> {
        DeviceProperties::ASSIGNED.register_limit(
            self.max_threads,
            self.min_blocks,
            self.shared_bytes,
        )
    }
}

/// A kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Byte offset in constant bank 0; the first is at `0x160`.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// What it is.
    pub kind: ParameterKind,
    /// Its type in CLIF; none when unknown.
    pub ty: Option<Type>,
}

/// What a kernel parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// A value.
    Value,
    /// The address of memory.
    #[serde(rename = "ptr")]
    Pointer,
}

/// What a function needs of the machine, everything that it calls included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// General-purpose registers of a thread: the highest number used, plus one.
    pub registers: u32,
    /// Local memory of a thread in bytes.
    #[serde(rename = "local")]
    pub local_bytes: u32,
    /// Barriers of the CTA: 1 with any `BAR`.
    pub barriers: u32,
}

/// What a function needs without what it calls: what [`Resources`] are computed from where objects are linked
/// ([`Object::count_resources`]). Whom it calls and whose addresses it takes its relocations say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnResources {
    /// General-purpose registers: the highest number used, plus one.
    pub registers: u32,
    /// Predicates: the highest number used, plus one.
    pub predicates: u32,
    /// Uniform registers: the highest number used, plus one.
    pub uniform: u32,
    /// Its frame in local memory in bytes, spill slots included.
    #[serde(rename = "local")]
    pub local_bytes: u32,
    /// Spill slots in bytes.
    #[serde(rename = "spilled")]
    pub spill_bytes: u32,
    /// Barriers of the CTA.
    pub barriers: u32,
    /// Whether it calls by address: then it may call every function whose address is taken.
    #[serde(rename = "indirect")]
    pub calls_by_address: bool,
    /// Instructions of each innermost loop, in the order of the code.
    pub loops: Vec<u32>,
}

/// A place that linking fills in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Relocation {
    /// Bytes from the start of the function or data object; in code, that of the instruction's word.
    pub offset: u32,
    /// What is filled in.
    pub kind: RelocationKind,
    /// The symbol.
    pub symbol: String,
    /// Added to its address.
    pub addend: i64,
}

/// What linking fills in. In code it goes to bits 32..63 of the word, but for [`RelocationKind::Const`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum RelocationKind {
    /// `ABS32_LO`: low 32 bits of the address.
    Abs32Lo = 1,
    /// `ABS32_HI`: high 32 bits of the address.
    Abs32Hi = 2,
    /// `REL`: the address less that of the next instruction, signed.
    Rel = 3,
    /// `ABS64`: the address, in data.
    Abs64 = 4,
    /// `CONST`: the byte offset in constant bank 3 of the object's constants and the addend, in the offset of an
    /// operand in constant memory: that of `c[bank][offset]`, and of an address in a bank.
    Const = 5,
}

impl RelocationKind {
    /// All kinds.
    pub const ALL: [RelocationKind; 5] = [
        RelocationKind::Abs32Lo,
        RelocationKind::Abs32Hi,
        RelocationKind::Rel,
        RelocationKind::Abs64,
        RelocationKind::Const,
    ];

    /// The name in references and messages.
    pub const fn name(self) -> &'static str {
        match self {
            RelocationKind::Abs32Lo => "ABS32_LO",
            RelocationKind::Abs32Hi => "ABS32_HI",
            RelocationKind::Rel => "REL",
            RelocationKind::Abs64 => "ABS64",
            RelocationKind::Const => "CONST",
        }
    }
}

/// A line of the source begins at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Byte offset in the function.
    pub offset: u32,
    /// Which; its file is one of [`Object::files`].
    pub location: Location,
}

/// Data in global memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataObject {
    /// Symbol name.
    pub name: String,
    /// Who sees the name.
    pub linkage: Linkage,
    /// Whether the program may write it.
    pub writable: bool,
    /// Alignment in bytes, a power of two.
    pub align: u32,
    /// Contents.
    pub contents: DataContents,
    /// Addresses in it, in ascending order; all [`RelocationKind::Abs64`].
    pub relocations: Vec<Relocation>,
}

/// Contents of a data object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataContents {
    /// As given.
    Bytes(Vec<u8>),
    /// That many bytes of 0.
    Zeros(u64),
}

impl DataContents {
    /// Size in bytes.
    pub fn len(&self) -> u64 {
        match self {
            DataContents::Bytes(bytes) => bytes.len() as u64,
            DataContents::Zeros(count) => *count,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Object {
    /// The name of a file by its number ([`Location::file`]); none of 0.
    pub fn file_name(&self, file: u32) -> Option<&str> {
        name_of(&self.files, file)
    }

    /// The number of a file, which is added if it is not there.
    pub(crate) fn file_number(&mut self, name: &str) -> u32 {
        let known = self.files.iter().position(|file| file == name);
        let index = known.unwrap_or_else(|| {
            self.files.push(name.to_owned());
            self.files.len() - 1
        });
        index as u32 + 1
    }

    /// The number of a call that was inlined, which is added if it is not there.
    pub(crate) fn call_number(&mut self, call: Location) -> u32 {
        let known = self.calls.iter().position(|of| *of == call);
        let index = known.unwrap_or_else(|| {
            self.calls.push(call);
            self.calls.len() - 1
        });
        index as u32 + 1
    }

    /// The function of a name.
    pub fn function(&self, name: &str) -> Option<&ObjectFunction> {
        self.functions.iter().find(|f| f.name == name)
    }

    /// The kernels.
    pub fn kernels(&self) -> impl Iterator<Item = (&ObjectFunction, &Kernel)> {
        self.functions
            .iter()
            .filter_map(|f| f.kernel.as_ref().map(|k| (f, k)))
    }

    /// Names that are used and not defined here, sorted.
    pub fn undefined(&self) -> Vec<&str> {
        let functions = self.functions.iter();
        let data = self.data.iter();
        let defined: HashSet<&str> = functions
            .clone()
            .map(|f| f.name.as_str())
            .chain(data.clone().map(|d| d.name.as_str()))
            .collect();
        let used = functions
            .flat_map(|f| &f.relocations)
            .chain(data.flat_map(|d| &d.relocations))
            .filter(|r| r.kind != RelocationKind::Const);
        let missing: BTreeSet<&str> = used
            .map(|r| r.symbol.as_str())
            .filter(|name| !defined.contains(name))
            .collect();
        missing.into_iter().collect()
    }

    /// The first relocation of constants that are not there: by name what has it, and its byte offset.
    fn dangling_constant(&self) -> Option<(&str, u32)> {
        let functions = self.functions.iter().map(|f| (&f.name, &f.relocations));
        let data = self.data.iter().map(|d| (&d.name, &d.relocations));
        functions.chain(data).find_map(|(owner, relocations)| {
            let mut constants = (relocations.iter()).filter(|r| r.kind == RelocationKind::Const);
            let is_there = |r: &Relocation| r.symbol == CONSTANTS && !self.constants.is_empty();
            let dangling = constants.find(|r| !is_there(r))?;
            Some((owner.as_str(), dangling.offset))
        })
    }
}

impl AsRef<Object> for Object {
    fn as_ref(&self) -> &Object {
        self
    }
}

impl ObjectFunction {
    /// Bytes of its code.
    pub fn len(&self) -> u64 {
        (self.words.len() * crate::isa::encode::WORD_BYTES) as u64
    }

    /// Whether it has no instruction.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The place in the source of an instruction at a byte offset; none when its line is unknown.
    pub fn location_at(&self, offset: u32) -> Option<Location> {
        let after = self.lines.partition_point(|l| l.offset <= offset);
        let last = self.lines[..after].last();
        last.map(|l| l.location).filter(|l| l.line != 0)
    }

    /// The line of the source of an instruction at a byte offset; none when unknown.
    pub fn line_at(&self, offset: u32) -> Option<u32> {
        self.location_at(offset).map(|location| location.line)
    }
}

#[cfg(test)]
mod tests;
