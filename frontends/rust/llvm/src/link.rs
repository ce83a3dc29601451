//! Several modules as one program: which definition a symbol means.
//!
//! A local symbol means the definition of its own module. Another one means the only definition among all modules, or,
//! if all of them are weak, the first. Nothing is copied: a definition is named by module and place there ([`Symbol`]),
//! and debug information stays with its module.
//!
//! *Libraries*, if there are any, have the bodies of `core` and `alloc` and what they need on the device. What one
//! defines is what a symbol means that nobody in front of it defines, whatever its linkage; and the other way round
//! the program's own definitions, such as an allocator, are what the library's symbols mean.

use crate::data;
use crate::device::ALLOCATION_MARKER;
use crate::error::{Error, Place, Problem, is_of_library};
use crate::model::{Function, Item, Linkage, Metadata, Module, Variable};
use hashbrown::HashMap;
use std::sync::Arc;

/// A definition of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    /// A function with a body: module, place among its functions.
    Function(usize, usize),
    /// A variable with a value: module, place among its variables.
    Variable(usize, usize),
}

/// Modules that belong together.
#[derive(Clone, Debug, Default)]
pub struct Program {
    modules: Vec<Module>,
    /// What symbols that all modules see mean; the flag says that another definition may take its place.
    global: HashMap<Arc<str>, (usize, Item, bool)>,
    /// The first of the modules that are libraries; those behind it are too.
    library: Option<usize>,
    panics: Panics,
}

/// What a panic does before the launch ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Panics {
    /// Nothing: its kind and its place are known from the trap.
    #[default]
    Trap,
    /// The library writes its message down.
    Message,
}

/// What symbols of Rust begin with, mangled as version 0 does and as before.
const MANGLED: [&str; 2] = ["_R", "_ZN"];

/// Most aliases from one to the next.
const MAX_ALIASES: usize = 64;

impl Program {
    /// Puts modules together.
    ///
    /// # Errors
    /// Symbols that two modules define, neither of them weakly.
    pub fn link(modules: Vec<Module>) -> Result<Self, Error> {
        let mut global: HashMap<Arc<str>, (usize, Item, bool)> = HashMap::new();
        for (number, module) in modules.iter().enumerate() {
            for (name, item) in &module.items {
                let (linkage, defined) = module.linkage(*item);
                if !defined || linkage == Linkage::Local {
                    continue;
                }
                let weak = linkage == Linkage::Weak;
                match global.get(name) {
                    Some((first, _, false)) if !weak => {
                        let problem = Problem::DefinedTwice {
                            name: name.to_string(),
                            first: modules[*first].name.clone(),
                            second: module.name.clone(),
                        };
                        return Err(Error::new(None, problem));
                    }
                    Some((_, _, first)) if weak || !first => {}
                    _ => {
                        global.insert(name.clone(), (number, *item, weak));
                    }
                }
            }
        }
        Ok(Self {
            modules,
            global,
            library: None,
            panics: Panics::Trap,
        })
    }

    /// The program with a library behind those that it has.
    pub fn with_library(mut self, library: Module) -> Self {
        let number = self.modules.len();
        for (name, item) in &library.items {
            let (linkage, defined) = library.linkage(*item);
            let visible =
                linkage != Linkage::Local || MANGLED.iter().any(|begin| name.starts_with(begin));
            if defined && visible {
                let item = (number, *item, true);
                self.global.entry(name.clone()).or_insert(item);
            }
        }
        self.modules.push(library);
        self.library.get_or_insert(number);
        self
    }

    /// The program with panics that do something else. For messages there has to be a library.
    pub fn with_panics(mut self, panics: Panics) -> Self {
        self.panics = panics;
        self
    }

    /// What panics do.
    pub(crate) fn panics(&self) -> Panics {
        self.panics
    }

    /// Whether a module is a library.
    pub(crate) fn is_library(&self, module: usize) -> bool {
        self.library.is_some_and(|first| module >= first)
    }

    /// The symbols of Rust that are declared, and that nobody defines; those of functions that never return only if
    /// they are to write messages. Those of `std` itself are not among them: they want a host.
    pub fn undefined(&self, panics: Panics) -> Vec<&str> {
        let mut undefined = Vec::new();
        for (number, module) in self.modules.iter().enumerate() {
            let declared = module.items.iter().filter(|(name, item)| {
                let wanted = |function: &Function| {
                    let says = panics == Panics::Message;
                    (says || !function.attributes.no_return) && !function.is_of_std()
                };
                let is_wanted = match **item {
                    Item::Function(index) => wanted(&module.functions[index]),
                    _ => true,
                };
                MANGLED.iter().any(|begin| name.starts_with(begin))
                    && !module.linkage(**item).1
                    && is_wanted
                    && !name.ends_with(ALLOCATION_MARKER)
                    && self.resolve(number, name).is_none()
            });
            undefined.extend(declared.map(|(name, _)| &**name));
        }
        undefined.sort_unstable();
        undefined.dedup();
        undefined
    }

    /// The modules, in the order in which they were given.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// What a symbol means in a module: a definition and an offset into it. None if nobody defines it, or if it is an
    /// alias of something else than an address.
    pub fn resolve(&self, module: usize, name: &str) -> Option<(Symbol, i64)> {
        self.resolve_within(module, name, MAX_ALIASES)
    }

    fn resolve_within(&self, module: usize, name: &str, aliases: usize) -> Option<(Symbol, i64)> {
        let own = self.modules.get(module)?;
        let local = own.items.get(name);
        let local = local.filter(|item| own.linkage(**item).0 == Linkage::Local);
        let local = local.filter(|_| !(self.is_library(module) && self.global.contains_key(name)));
        let (number, item) = match local {
            Some(item) => (module, *item),
            None => {
                let (number, item, _) = self.global.get(name)?;
                (*number, *item)
            }
        };
        let of = &self.modules[number];
        match item {
            Item::Function(index) => (!of.functions[index].is_declaration())
                .then_some((Symbol::Function(number, index), 0)),
            Item::Variable(index) => (of.variables[index].value.is_some())
                .then_some((Symbol::Variable(number, index), 0)),
            Item::Alias(index) => {
                let target = &of.aliases[index].target;
                let (name, offset) = data::address(target)?;
                let (symbol, more) = self.resolve_within(number, &name, aliases.checked_sub(1)?)?;
                Some((symbol, offset.wrapping_add(more)))
            }
        }
    }

    /// A function by its symbol, if all modules see it.
    pub fn function(&self, name: &str) -> Option<Symbol> {
        match self.global.get(name)? {
            (number, Item::Function(index), _) => Some(Symbol::Function(*number, *index)),
            _ => None,
        }
    }

    /// The function that a symbol is.
    pub(crate) fn function_of(&self, symbol: Symbol) -> Option<&Function> {
        match symbol {
            Symbol::Function(module, index) => self.modules.get(module)?.functions.get(index),
            Symbol::Variable(..) => None,
        }
    }

    /// The variable that a symbol is.
    pub(crate) fn variable_of(&self, symbol: Symbol) -> Option<&Variable> {
        match symbol {
            Symbol::Variable(module, index) => self.modules.get(module)?.variables.get(index),
            Symbol::Function(..) => None,
        }
    }

    /// The declaration or definition of a function as a module names it.
    pub(crate) fn declaration(&self, module: usize, name: &str) -> Option<&Function> {
        let own = self.modules.get(module)?;
        match own.items.get(name)? {
            Item::Function(index) => own.functions.get(*index),
            _ => None,
        }
    }

    /// All symbols that every module sees and some module defines, in order.
    pub fn symbols(&self) -> Vec<&str> {
        let mut symbols: Vec<&str> = self.global.keys().map(|name| &**name).collect();
        symbols.sort_unstable();
        symbols
    }

    /// The bytes of a variable by its symbol. None if it is not defined, or if there are addresses among them.
    pub fn constant_bytes(&self, symbol: &str) -> Option<Vec<u8>> {
        let (number, item, _) = *self.global.get(symbol)?;
        let Item::Variable(index) = item else {
            return None;
        };
        let variable = &self.modules[number].variables[index];
        let image = data::image(&variable.ty, variable.value.as_ref()?).ok()?;
        image.relocations.is_empty().then_some(image.bytes)
    }

    /// The place that a node of a module's debug information says, with the calls inlined around it. None if there is
    /// no such place.
    pub fn place(&self, module: usize, node: Option<u32>) -> Option<Place> {
        let metadata = &self.modules.get(module)?.metadata;
        place(metadata, node?, MAX_INLINED)
    }

    /// The debug information of a module, by node.
    pub(crate) fn metadata(&self, module: usize) -> Option<&HashMap<u32, Metadata>> {
        Some(&self.modules.get(module)?.metadata)
    }

    /// A node of a module's debug information.
    pub(crate) fn node(&self, module: usize, node: u32) -> Option<&Metadata> {
        self.metadata(module)?.get(&node)
    }

    /// Of a place and those of the calls that were inlined around it the node of the innermost that is not in the
    /// standard library, or of the place itself.
    pub(crate) fn location_of_user(&self, module: usize, node: u32) -> Option<u32> {
        let metadata = self.metadata(module)?;
        let outer = |node: &u32| match metadata.get(node)? {
            Metadata::Location { inlined_at, .. } => *inlined_at,
            _ => None,
        };
        let is_of_user = |node: &u32| {
            let Some(Metadata::Location { scope, .. }) = metadata.get(node) else {
                return false;
            };
            file(metadata, *scope).is_some_and(|file| !is_of_library(&file))
        };
        let chain = std::iter::successors(Some(node), outer);
        Some(chain.take(MAX_INLINED).find(is_of_user).unwrap_or(node))
    }

    /// The place where a scope begins: a function.
    pub(crate) fn scope_place(&self, module: usize, scope: u32) -> Option<Place> {
        let metadata = &self.modules.get(module)?.metadata;
        let Metadata::Scope { line, .. } = metadata.get(&scope)? else {
            return None;
        };
        Some(Place {
            file: file(metadata, scope)?,
            line: *line,
            column: 0,
            inlined_at: None,
        })
    }
}

/// Most calls inlined into each other whose places are kept.
const MAX_INLINED: usize = 256;

fn place(metadata: &HashMap<u32, Metadata>, node: u32, depth: usize) -> Option<Place> {
    let Metadata::Location {
        line,
        column,
        scope,
        inlined_at,
    } = metadata.get(&node)?
    else {
        return None;
    };
    let outer = match (inlined_at, depth.checked_sub(1)) {
        (Some(outer), Some(depth)) => place(metadata, *outer, depth),
        _ => None,
    };
    Some(Place {
        file: file(metadata, *scope)?,
        line: *line,
        column: *column,
        inlined_at: outer.map(Box::new),
    })
}

/// The file of a scope, or of what it is in.
pub(crate) fn file(metadata: &HashMap<u32, Metadata>, scope: u32) -> Option<String> {
    let mut next = Some(scope);
    // Scopes are a tree: there are no more steps than nodes.
    for _ in 0..metadata.len() {
        match metadata.get(&next?)? {
            Metadata::Scope {
                file: Some(file), ..
            } => next = Some(*file),
            Metadata::Scope { parent, .. } => next = *parent,
            // The standard library's files are named from the root of its sources.
            Metadata::File { name, directory } => {
                let library = directory.starts_with("/rustc/") && !name.starts_with('/');
                return Some(match library {
                    true => format!("{directory}/{name}"),
                    false => name.to_string(),
                });
            }
            _ => return None,
        }
    }
    None
}
