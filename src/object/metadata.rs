//! The note `thisgpu`: what a driver must know to launch, in MessagePack (maps with the names of the fields as keys).

use super::{
    Kernel, Line, Location, Object, ObjectFunction, OwnResources, Parameter, ParameterKind,
    Redzone, Resources, ScopeLocations, Static, VariableType,
};
use crate::type_name::type_named;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// Owner of the note, and with `.note.` before it the name of its section.
pub const NOTE_NAME: &str = "thisgpu";
/// Type of the note (*assigned*).
pub const NOTE_TYPE: u32 = 1;
/// Version of the contents; a reader refuses others.
pub(super) const VERSION: u32 = 1;
/// Section of the line tables, which readers of ours take; `.debug_line` says the same to others.
pub(super) const LINES_SECTION: &str = ".thisgpu.lines";
/// Section of the places of values, by function, which readers of ours take; location lists of DWARF say the same to
/// others.
pub(super) const VALUES_SECTION: &str = ".thisgpu.values";
/// Section of scopes and variables, by function, with their types; entries of DWARF say the same to others.
pub(super) const VARIABLES_SECTION: &str = ".thisgpu.variables";

/// Contents of the note.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Note {
    pub version: u32,
    pub kernels: Vec<KernelNote>,
    pub functions: Vec<FunctionNote>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KernelNote {
    pub name: String,
    /// Offset in constant bank 0, size in bytes, kind.
    pub parameters: Vec<(u32, u32, ParameterKind)>,
    /// The type of each parameter as CLIF writes it, empty where it is unknown; left out where all are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    #[serde(flatten)]
    pub resources: Resources,
    pub own: Option<OwnResources>,
    pub shared: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_threads: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_blocks: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redzones: Vec<Redzone>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FunctionNote {
    pub name: String,
    #[serde(flatten)]
    pub resources: Resources,
    pub own: Option<OwnResources>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redzones: Vec<Redzone>,
}

impl Note {
    pub fn of(object: &Object) -> Note {
        let kernels = object.kernels().map(|(function, kernel)| KernelNote {
            name: function.name.clone(),
            parameters: kernel
                .parameters
                .iter()
                .map(|p| (p.offset, p.size, p.kind))
                .collect(),
            types: type_names(&kernel.parameters),
            resources: function.resources,
            own: Some(function.own.clone()),
            shared: kernel.shared_bytes,
            max_threads: kernel.max_threads,
            min_blocks: kernel.min_blocks,
            redzones: function.redzones.clone(),
        });
        let device = object.functions.iter().filter(|f| f.kernel.is_none());
        Note {
            version: VERSION,
            kernels: kernels.collect(),
            functions: device
                .map(|f| FunctionNote {
                    name: f.name.clone(),
                    resources: f.resources,
                    own: Some(f.own.clone()),
                    redzones: f.redzones.clone(),
                })
                .collect(),
        }
    }

    /// By name.
    pub fn index(&self) -> NoteIndex<'_> {
        let kernels = self.kernels.iter().map(|k| (k.name.as_str(), k));
        let functions = self.functions.iter().map(|f| (f.name.as_str(), f));
        NoteIndex {
            kernels: kernels.collect(),
            functions: functions.collect(),
        }
    }
}

/// What a note says of each function.
pub(super) struct NoteIndex<'a> {
    kernels: HashMap<&'a str, &'a KernelNote>,
    functions: HashMap<&'a str, &'a FunctionNote>,
}

impl NoteIndex<'_> {
    /// Gives a function what the note says of it; whether it says anything.
    pub fn describe(&self, function: &mut ObjectFunction) -> bool {
        if let Some(note) = self.kernels.get(function.name.as_str()) {
            let types = note.types.iter().map(|name| type_named(name));
            let parameters = note
                .parameters
                .iter()
                .zip(types.chain(std::iter::repeat(None)))
                .map(|(&(offset, size, kind), ty)| Parameter {
                    offset,
                    size,
                    kind,
                    // A type of another size is none that this reader knows.
                    ty: ty.filter(|ty| ty.bytes() == size),
                });
            function.kernel = Some(Kernel {
                parameters: parameters.collect(),
                shared_bytes: note.shared,
                max_threads: note.max_threads,
                min_blocks: note.min_blocks,
            });
            function.resources = note.resources;
            function.own = own(&note.own, note.resources);
            function.redzones = note.redzones.clone();
            return true;
        }
        let note = self.functions.get(function.name.as_str());
        if let Some(note) = note {
            function.resources = note.resources;
            function.own = own(&note.own, note.resources);
            function.redzones = note.redzones.clone();
        }
        note.is_some()
    }
}

/// The names of the parameters' types, if any is known.
fn type_names(parameters: &[Parameter]) -> Vec<String> {
    if parameters.iter().all(|p| p.ty.is_none()) {
        return Vec::new();
    }
    let name = |p: &Parameter| p.ty.map_or(String::new(), |ty| ty.to_string());
    parameters.iter().map(name).collect()
}

/// What a function needs by itself; where the note does not say it, as much as with all that it calls.
fn own(said: &Option<OwnResources>, all: Resources) -> OwnResources {
    said.clone().unwrap_or_else(|| OwnResources {
        registers: all.registers,
        local_bytes: all.local_bytes,
        barriers: all.barriers,
        ..OwnResources::default()
    })
}

/// Contents of the section of lines.
#[derive(Serialize, Deserialize)]
pub(super) struct Lines {
    pub files: Vec<String>,
    /// By function.
    pub lines: Vec<(String, Vec<Line>)>,
    /// Calls that were inlined; not written where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Location>,
}

/// Contents of the section of variables.
#[derive(Serialize, Deserialize)]
pub(super) struct ScopesAndTypes {
    pub types: Vec<VariableType>,
    /// By function.
    pub scopes: Vec<(String, Vec<ScopeLocations>)>,
    /// Not written where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statics: Vec<Static>,
}

/// The ELF note around `contents`.
pub(super) fn elf_note(contents: &[u8]) -> Vec<u8> {
    let name = [NOTE_NAME.as_bytes(), &[0]].concat();
    let mut out = Vec::new();
    for number in [name.len() as u32, contents.len() as u32, NOTE_TYPE] {
        out.extend(number.to_le_bytes());
    }
    for part in [name.as_slice(), contents] {
        out.extend(part);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

/// The contents of an ELF note of ours; none when it is another's or cut off.
pub(super) fn note_contents(bytes: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| {
        bytes
            .get(at..at + 4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    };
    let (name_len, len, ty) = (number(0)? as usize, number(4)? as usize, number(8)?);
    let name = bytes.get(12..12usize.checked_add(name_len)?)?;
    let start = 12 + name_len.next_multiple_of(4);
    let contents = bytes.get(start..start.checked_add(len)?)?;
    (ty == NOTE_TYPE && name.strip_suffix(&[0]) == Some(NOTE_NAME.as_bytes())).then_some(contents)
}
