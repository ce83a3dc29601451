//! Several objects as one.
//!
//! The functions, constants and data of all objects stand one behind the other in the order in which the objects were
//! added. A name is looked for in the object that uses it, then among the global names of all; a local name stays its
//! object's: where an earlier object has it, it gets a number (`helper.2`). What kernels need is counted over the whole
//! call graph ([`Object::count_resources`]).

use super::link::Owner;
use super::{
    LinkError, LinkErrors, Linkage, Location, Object, ObjectFunction, Relocation, RelocationKind,
    StaticPlace, with_constant,
};
use crate::abi::{MAX_CONSTANTS, MAX_LOCAL};
use crate::emit::constants::CONSTANTS;
use crate::intrinsics::{self, PREFIX};
use crate::isa::encode::WORD_BYTES;
use crate::text::closest;
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeSet;

/// Alignment of an object's constants in the bank in bytes: that of the widest operand there.
const CONSTANT_ALIGN: u64 = 16;

/// Links objects.
#[derive(Clone, Debug, Default)]
#[must_use = "objects that were added are linked by `link`"]
pub struct Linker {
    inputs: Vec<Input>,
}

#[derive(Clone, Debug)]
struct Input {
    /// For messages.
    name: String,
    object: Object,
}

/// Where an object's names lead.
#[derive(Clone, Debug, Default)]
struct Names {
    /// Its own, and what they are called in the whole.
    own: HashMap<String, String>,
}

/// A global symbol.
struct Global {
    /// The input that defines it.
    input: usize,
    kernel: bool,
}

impl Linker {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object; messages call it `name`.
    pub fn add(mut self, name: impl Into<String>, object: &impl AsRef<Object>) -> Self {
        self.inputs.push(Input {
            name: name.into(),
            object: object.as_ref().clone(),
        });
        self
    }

    /// Puts the objects together.
    ///
    /// # Errors
    /// Every name that two objects define for all, and every one that none defines, where a function uses it first;
    /// functions that use another object's kernel; more constants than the bank holds; kernels that need more local
    /// memory than there is, or more registers than their launch bounds leave.
    pub fn link(self) -> Result<Object, LinkErrors> {
        let mut errors = Vec::new();
        let globals = self.globals(&mut errors);
        let names = self.names(&globals);
        self.check_uses(&globals, &mut errors);
        let mut whole = Object::default();
        drop(globals);
        for (input, names) in self.inputs.into_iter().zip(&names) {
            let base = (whole.constants.len() as u64).next_multiple_of(CONSTANT_ALIGN);
            if !input.object.constants.is_empty() {
                whole.constants.resize(base as usize, 0);
                whole.constants.extend(&input.object.constants);
            }
            let files: Vec<u32> = (input.object.files.iter())
                .map(|file| whole.file_number(file))
                .collect();
            let calls = whole.calls.len() as u32;
            let moved = |location: &mut Location| {
                let index = location.file.checked_sub(1);
                let file = index.and_then(|index| files.get(index as usize));
                location.file = file.copied().unwrap_or(0);
                if location.inlined != 0 {
                    location.inlined = location.inlined.saturating_add(calls);
                }
            };
            for mut call in input.object.calls {
                moved(&mut call);
                whole.calls.push(call);
            }
            let types = whole.types.len() as u32;
            let of_type = |ty: u32| ty.saturating_add(types);
            for mut ty in input.object.types {
                ty.renumber(of_type);
                whole.types.push(ty);
            }
            for mut of in input.object.statics {
                of.ty = of_type(of.ty);
                match &mut of.place {
                    StaticPlace::Data(symbol) => rename(symbol, names),
                    StaticPlace::Shared { kernels, .. } => {
                        kernels.iter_mut().for_each(|kernel| rename(kernel, names));
                    }
                }
                whole.statics.push(of);
            }
            for mut function in input.object.functions {
                for scope in &mut function.scopes {
                    scope.renumber(of_type, moved);
                }
                for line in &mut function.lines {
                    moved(&mut line.location);
                }
                move_constants(&mut function, base);
                rename(&mut function.name, names);
                rename_all(&mut function.relocations, names);
                whole.functions.push(function);
            }
            for mut data in input.object.data {
                rename(&mut data.name, names);
                rename_all(&mut data.relocations, names);
                whole.data.push(data);
            }
        }
        if whole.constants.len() > MAX_CONSTANTS as usize {
            let bytes = whole.constants.len() as u64;
            errors.push(LinkError::Constants { bytes });
        }
        whole.count_resources();
        for (function, _) in whole.kernels() {
            let bytes = function.resources.local_bytes;
            if bytes > MAX_LOCAL {
                let kernel = function.name.clone();
                errors.push(LinkError::Local { kernel, bytes });
            }
        }
        errors.extend(whole.beyond_bounds().into_iter().map(LinkError::Bounds));
        LinkErrors::finish(errors, whole)
    }

    /// The names that all objects see.
    fn globals(&self, errors: &mut Vec<LinkError>) -> HashMap<&str, Global> {
        let mut globals: HashMap<&str, Global> = HashMap::new();
        for (index, input) in self.inputs.iter().enumerate() {
            for symbol in symbols(&input.object).filter(|s| s.linkage == Linkage::Global) {
                let global = Global {
                    input: index,
                    kernel: symbol.kernel,
                };
                if let Some(first) = globals.get(symbol.name) {
                    errors.push(LinkError::Duplicate {
                        symbol: symbol.name.to_owned(),
                        first: self.inputs[first.input].name.clone(),
                        second: input.name.clone(),
                    });
                } else {
                    globals.insert(symbol.name, global);
                }
            }
        }
        globals
    }

    /// What each object's own names are called in the whole: a name that is taken gets a number.
    fn names(&self, globals: &HashMap<&str, Global>) -> Vec<Names> {
        let mut taken: HashSet<String> = globals.keys().map(|name| (*name).to_owned()).collect();
        let mut all = Vec::new();
        for input in &self.inputs {
            let mut names = Names::default();
            for symbol in symbols(&input.object) {
                let mut name = symbol.name.to_owned();
                if symbol.linkage == Linkage::Local {
                    let mut number = 1;
                    while !taken.insert(name.clone()) {
                        number += 1;
                        name = format!("{}.{number}", symbol.name);
                    }
                }
                names.own.insert(symbol.name.to_owned(), name);
            }
            all.push(names);
        }
        all
    }

    /// Names that nobody defines, and kernels that are used as functions.
    fn check_uses(&self, globals: &HashMap<&str, Global>, errors: &mut Vec<LinkError>) {
        for (index, input) in self.inputs.iter().enumerate() {
            let own: HashSet<&str> = symbols(&input.object).map(|s| s.name).collect();
            // An address takes two instructions, and each would say the same.
            let mut seen = HashSet::new();
            let uses = uses(&input.object)
                .filter(|(_, relocation)| !own.contains(relocation.symbol.as_str()))
                .filter(|(owner, relocation)| seen.insert((owner.name, &relocation.symbol)));
            for (owner, relocation) in uses {
                let place = || format!("{}: {}", input.name, relocation.place(owner));
                let symbol = relocation.symbol.clone();
                match globals.get(relocation.symbol.as_str()) {
                    Some(global) if global.kernel => errors.push(LinkError::Kernel {
                        place: place(),
                        symbol,
                    }),
                    Some(_) => {}
                    None => errors.push(LinkError::Undefined {
                        place: place(),
                        remedy: self.remedy(index, &symbol, globals),
                        symbol,
                    }),
                }
            }
        }
    }

    /// What may have been meant by a name that nobody defines.
    fn remedy(&self, user: usize, name: &str, globals: &HashMap<&str, Global>) -> String {
        let local = self.inputs.iter().find(|input| {
            symbols(&input.object).any(|s| s.name == name && s.linkage == Linkage::Local)
        });
        if let Some(input) = local {
            return format!("it is local to {}: make it global there", input.name);
        }
        let own = symbols(&self.inputs[user].object).map(|symbol| symbol.name);
        let mut known: Vec<&str> = globals.keys().copied().chain(own).collect();
        known.sort_unstable();
        suggestion(name, known)
    }
}

/// `did you mean …?`, or nothing.
pub(crate) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    if intrinsics::lookup(name).is_some() {
        return format!("did you mean the intrinsic `{PREFIX}{name}`?");
    }
    closest(name, known).map_or_else(String::new, |known| format!("did you mean `{known}`?"))
}

/// A name that an object uses and does not define.
pub(crate) struct Unresolved<'a> {
    pub symbol: &'a str,
    /// The function that uses it first; none if data does.
    pub function: Option<&'a str>,
    /// Where in the source, if that is known.
    pub line: Option<u32>,
    /// What may have been meant; may be empty.
    pub remedy: String,
}

/// The names that an object uses and does not define, each once, in the order of their uses.
pub(crate) fn unresolved(object: &Object) -> Vec<Unresolved<'_>> {
    let missing: HashSet<&str> = object.undefined().into_iter().collect();
    let mut seen = HashSet::new();
    uses(object)
        .filter(|(_, r)| missing.contains(r.symbol.as_str()) && seen.insert(r.symbol.as_str()))
        .map(|(owner, relocation)| {
            let function = object.function(owner.name);
            let known: BTreeSet<&str> = symbols(object).map(|symbol| symbol.name).collect();
            Unresolved {
                symbol: &relocation.symbol,
                function: function.map(|function| function.name.as_str()),
                line: function.and_then(|function| function.line_at(relocation.offset)),
                remedy: suggestion(&relocation.symbol, known),
            }
        })
        .collect()
}

struct Symbol<'a> {
    name: &'a str,
    linkage: Linkage,
    kernel: bool,
}

/// What an object defines.
fn symbols(object: &Object) -> impl Iterator<Item = Symbol<'_>> {
    let functions = object.functions.iter().map(|function| Symbol {
        name: &function.name,
        linkage: function.linkage,
        kernel: function.kernel.is_some(),
    });
    let data = object.data.iter().map(|data| Symbol {
        name: &data.name,
        linkage: data.linkage,
        kernel: false,
    });
    functions.chain(data)
}

/// The names that an object's relocations use, and where.
fn uses(object: &Object) -> impl Iterator<Item = (Owner<'_>, &Relocation)> {
    let functions = object.functions.iter().map(|function| {
        let owner = Owner {
            name: &function.name,
            lines: &function.lines,
        };
        (owner, &function.relocations)
    });
    let data = object.data.iter().map(|data| {
        let owner = Owner {
            name: &data.name,
            lines: &[],
        };
        (owner, &data.relocations)
    });
    functions
        .chain(data)
        .flat_map(|(owner, list)| list.iter().map(move |relocation| (owner, relocation)))
        .filter(|(_, relocation)| relocation.kind != RelocationKind::Const)
}

fn rename(name: &mut String, names: &Names) {
    if let Some(new) = names.own.get(name.as_str()) {
        name.clone_from(new);
    }
}

fn rename_all(relocations: &mut [Relocation], names: &Names) {
    for relocation in relocations {
        if relocation.symbol != CONSTANTS {
            rename(&mut relocation.symbol, names);
        }
    }
}

/// Moves the constants of a function's object to byte `base` of the bank.
fn move_constants(function: &mut ObjectFunction, base: u64) {
    for relocation in &mut function.relocations {
        if relocation.kind != RelocationKind::Const {
            continue;
        }
        relocation.addend = relocation.addend.wrapping_add_unsigned(base);
        // What has no operand in constant memory, or no room for the offset, is an error when it is loaded.
        if let Some(word) = (function.words).get_mut(relocation.offset as usize / WORD_BYTES) {
            *word = with_constant(*word, relocation.addend).unwrap_or(*word);
        }
    }
}
