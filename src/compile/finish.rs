//! Puts a unit together: the library's functions that it calls, its constants, and the object.

use super::summaries::TABLE_ALIGN;
use super::unit::Compiled;
use super::watch::internal;
use super::{Code, Compiler, FunctionInput, Unit, library};
use crate::abi;
use crate::emit::constants::{CONSTANTS, JUMP_TABLES};
use crate::emit::{self, Constants, Places};
use crate::error::{Error, ErrorList, Errors, Place, Problem};
use crate::isa::encode::WORD_BYTES;
use crate::locations::{Location, Locations};
use crate::object::{
    DataContents, DataObject, Kernel, Line, Linkage, Object, ObjectFunction, OwnResources,
    Parameter, ParameterKind, Relocation, RelocationKind, Resources, with_constant,
};
use crate::settings::Options;
use crate::variables::{Static, Variables};
use crate::vcode::{FunctionKind, KernelInfo, SymbolKind};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Unit {
    /// Puts the functions together, with those of the library that they call, and counts what kernels need with all
    /// that they call.
    ///
    /// # Errors
    /// A name that is defined twice; a kernel that is called or whose address is taken; a kernel that needs more local
    /// memory than there is; of units that were compiled apart, more constants than there is room for, and kernels that
    /// call what needs more registers than their launch bounds leave.
    pub fn finish(mut self) -> Result<Code, Errors> {
        complete(&mut self)?;
        let constants = self.place_constants()?;
        if !constants.jump_tables().is_empty() {
            self.data.push(DataObject {
                name: JUMP_TABLES.to_owned(),
                linkage: Linkage::Local,
                writable: false,
                align: 4,
                contents: DataContents::Bytes(constants.jump_tables().to_vec()),
                relocations: Vec::new(),
            });
        }
        let mut names: Vec<&str> = self
            .function_names()
            .chain(self.data.iter().map(|data| data.name.as_str()))
            .collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let problem = Problem::Syntax(format!("%{} is defined twice", twice[0]));
            return Err(Error::new(problem, Place::default()).into());
        }
        let mut errors = ErrorList::new();
        errors.extend(self.uses_of_kernels());
        let (mut remarks, mut cycles) = (Vec::new(), Vec::new());
        let mut object = Object {
            constants: constants.bytes().to_vec(),
            data: self.data,
            ..Object::default()
        };
        let mut types = TypeTables::default();
        for compiled in self.functions {
            let Compiled {
                mut code,
                linkage,
                variables,
                remarks: found,
                cycles: model,
                locations,
                ..
            } = compiled;
            remarks.extend(found);
            cycles.extend(model);
            let locations = locations.unwrap_or_default();
            let lines = lines(&code, &locations, &mut object);
            if let Some(variables) = variables.filter(|_| !code.scopes.is_empty()) {
                let first = types.add(&variables, &mut object);
                for scope in &mut code.scopes {
                    scope.renumber(
                        |ty| ty.saturating_add(first),
                        |call| in_object(call, &locations, &mut object),
                    );
                }
            }
            object.functions.push(ObjectFunction {
                lines,
                ..function(code, linkage)
            });
        }
        object.count_resources();
        for bound in object.beyond_bounds() {
            let place = in_function(&bound.kernel);
            errors.push(Error::new(Problem::Limit(bound.to_string()), place));
        }
        let code = Code::of_object(object).with_reports(remarks, cycles);
        let kernels = code.kernels().iter();
        for kernel in kernels.filter(|k| k.local_bytes > abi::MAX_LOCAL) {
            let message = format!(
                "with what it calls it takes {} bytes of local memory of at most {}; use smaller stack slots",
                kernel.local_bytes,
                abi::MAX_LOCAL
            );
            errors.push(Error::new(
                Problem::Kernel(message),
                in_function(&kernel.name),
            ));
        }
        errors.finish(code)
    }

    /// Puts the functions' constants one behind the other, and the places into the words that read them.
    fn place_constants(&mut self) -> Result<Constants, Errors> {
        let mut all = Constants::default();
        for Compiled {
            code, constants, ..
        } in &mut self.functions
        {
            let places = all.append(constants).map_err(|full| {
                Error::new(Problem::Limit(full.to_string()), in_function(&code.name))
            })?;
            if places != Places::default() {
                code.move_constants(places);
            }
        }
        self.place_tables(&mut all)?;
        Ok(all)
    }

    /// Puts the tables that functions read behind their constants, each once, and the places into the words that read
    /// them.
    fn place_tables(&mut self, all: &mut Constants) -> Result<(), Errors> {
        let mut places: HashMap<String, u32> = HashMap::new();
        for Compiled { code, .. } in &mut self.functions {
            let is_table = |name: &str| name != CONSTANTS;
            for relocation in (code.relocations.iter_mut())
                .filter(|of| of.kind == SymbolKind::Constant && is_table(&of.name))
            {
                let place = match places.get(&relocation.name) {
                    Some(place) => *place,
                    None => {
                        let table = self.summaries.table(&relocation.name).ok_or_else(|| {
                            let message = format!("%{} is no table any more", relocation.name);
                            internal(&code.name, message)
                        })?;
                        let placed = all.append_table(&table.content, TABLE_ALIGN);
                        let place = placed.map_err(|full| {
                            Error::new(Problem::Limit(full.to_string()), in_function(&code.name))
                        })?;
                        places.insert(relocation.name.clone(), place);
                        place
                    }
                };
                relocation.name = CONSTANTS.to_owned();
                relocation.addend += i64::from(place);
                let word = &mut code.words[relocation.offset as usize / WORD_BYTES];
                *word = with_constant(*word, relocation.addend).unwrap_or(*word);
            }
        }
        Ok(())
    }

    /// Functions that call a kernel or take its address: a kernel ends its lanes and has its parameters from the
    /// launch.
    fn uses_of_kernels(&self) -> Vec<Error> {
        let kernels: HashSet<&str> = self
            .functions
            .iter()
            .map(|function| &function.code)
            .filter(|code| matches!(code.kind, FunctionKind::Kernel(_)))
            .map(|code| code.name.as_str())
            .collect();
        let mut errors = Vec::new();
        for code in self.functions() {
            for relocation in &code.relocations {
                if kernels.contains(relocation.name.as_str()) {
                    let begun = |(at, _): &(u32, _)| *at <= relocation.offset;
                    let line = code.lines[..code.lines.partition_point(begun)].last();
                    let place = Place {
                        line: line.map(|(_, line)| line.0).filter(|&line| line != 0),
                        ..in_function(&code.name)
                    };
                    let message = format!(
                        "%{} is a kernel, which only a launch can start; move what it does to a function that both \
                         call",
                        relocation.name
                    );
                    errors.push(Error::new(Problem::Kernel(message), place));
                }
            }
        }
        errors
    }
}

impl emit::Code {
    /// Adds the places of its constants among those of the module to what reads them.
    fn move_constants(&mut self, places: Places) {
        for relocation in &mut self.relocations {
            match (relocation.kind, relocation.name.as_str()) {
                (SymbolKind::Constant, CONSTANTS) => {
                    relocation.addend += i64::from(places.bank);
                    let word = &mut self.words[relocation.offset as usize / WORD_BYTES];
                    // What has no operand in constant memory is an error when it is linked.
                    *word = with_constant(*word, relocation.addend).unwrap_or(*word);
                }
                (SymbolKind::AbsoluteLow | SymbolKind::AbsoluteHigh, JUMP_TABLES) => {
                    relocation.addend += i64::from(places.data);
                }
                _ => {}
            }
        }
    }
}

/// Adds the library's functions that `unit` refers to and does not define, and those that they refer to.
///
/// # Errors
/// None are expected: the library compiles.
fn complete(unit: &mut Unit) -> Result<(), Errors> {
    loop {
        let missing: BTreeSet<String> = unit
            .undefined()
            .filter(|name| library::provides(name))
            .map(str::to_owned)
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let lines = unit.functions().any(|code| !code.lines.is_empty());
        let mut compiler = Compiler::new(Options {
            lines,
            ..Options::default()
        });
        for name in missing {
            let (Some(function), Some(file)) = (library::function(&name), library::file_of(&name))
            else {
                continue;
            };
            compiler.set_locations(Some(Arc::new(Locations::lines_of(file))));
            let input = FunctionInput {
                linkage: Linkage::Local,
                ..FunctionInput::of_source(function, &name)
            };
            compiler.compile_function(&input, unit)?;
        }
    }
}

/// The place of a function that is known by its symbol.
fn in_function(name: &str) -> Place {
    Place {
        function: Some(format!("%{name}").into()),
        ..Place::default()
    }
}

/// One function of the object.
fn function(code: emit::Code, linkage: Linkage) -> ObjectFunction {
    let own = code.resources;
    ObjectFunction {
        kernel: match &code.kind {
            FunctionKind::Kernel(info) => Some(kernel(info)),
            FunctionKind::Device => None,
        },
        // Known when all functions are there.
        resources: Resources::default(),
        own: OwnResources {
            registers: own.registers,
            predicates: own.predicates,
            uniform: own.uniform,
            local_bytes: own.local_bytes,
            spill_bytes: own.spill_bytes,
            barriers: own.uses_barrier.into(),
            calls_by_address: own.calls_by_address,
            loops: own.loops,
        },
        relocations: code.relocations.into_iter().map(relocation).collect(),
        lines: Vec::new(),
        redzones: code.redzones,
        values: code.values,
        scopes: code.scopes,
        name: code.name,
        linkage,
        words: code.words,
    }
}

/// The lines of a function, with their files among the object's.
fn lines(code: &emit::Code, locations: &Locations, object: &mut Object) -> Vec<Line> {
    let mut files: HashMap<u32, u32> = HashMap::new();
    let mut calls: HashMap<u32, u32> = HashMap::new();
    let mut lines: Vec<Line> = Vec::with_capacity(code.lines.len());
    let mut place = |mut location: Location, calls: &HashMap<u32, u32>, object: &mut Object| {
        if let Some(name) = locations.file_name(location.file) {
            let number = files.entry(location.file);
            location.file = *number.or_insert_with(|| object.file_number(name));
        }
        location.inlined = calls.get(&location.inlined).copied().unwrap_or(0);
        location
    };
    for (offset, number) in &code.lines {
        let location = locations.resolve(number.0);
        // The calls around it, of which a table holds the outer ones first.
        let mut around = Vec::new();
        let mut next = location.inlined;
        while let Some(index) = next.checked_sub(1).filter(|_| !calls.contains_key(&next))
            && let Some(call) = locations.calls().get(index as usize)
        {
            around.push((next, *call));
            next = call.inlined.min(index);
        }
        for (number, call) in around.into_iter().rev() {
            let call = place(call, &calls, object);
            calls.insert(number, object.call_number(call));
        }
        let location = place(location, &calls, object);
        if lines.last().is_none_or(|last| last.location != location) {
            lines.push(Line {
                offset: *offset,
                location,
            });
        }
    }
    lines
}

/// Front ends' tables of types that are in the object.
#[derive(Default)]
struct TypeTables(Vec<(Arc<Variables>, u32)>);

impl TypeTables {
    /// The number of a table's first type in the object, which gets its static variables too.
    fn add(&mut self, variables: &Arc<Variables>, object: &mut Object) -> u32 {
        // Most often there is one table.
        let known = self.0.iter().find(|(of, _)| Arc::ptr_eq(of, variables));
        if let Some((_, first)) = known {
            return *first;
        }
        let first = object.types.len() as u32;
        object
            .types
            .extend(variables.types().iter().cloned().map(|mut ty| {
                ty.renumber(|ty| ty.saturating_add(first));
                ty
            }));
        object
            .statics
            .extend(variables.statics().iter().map(|of| Static {
                ty: of.ty.saturating_add(first),
                ..of.clone()
            }));
        self.0.push((variables.clone(), first));
        first
    }
}

/// Gives a place that stands for itself the number that its file has in the object.
fn in_object(place: &mut Location, locations: &Locations, object: &mut Object) {
    let file = locations
        .file_name(place.file)
        .map(|name| object.file_number(name));
    place.file = file.unwrap_or(0);
    place.inlined = 0;
}

/// What the object says of a kernel.
fn kernel(info: &KernelInfo) -> Kernel {
    let parameters = info.parameters.iter().map(|parameter| Parameter {
        offset: parameter.offset,
        size: parameter.ty.bytes(),
        // CLIF has no pointer type: an i64 may be one, and a launch accepts both for it.
        kind: ParameterKind::Value,
        ty: Some(parameter.ty),
    });
    Kernel {
        parameters: parameters.collect(),
        shared_bytes: info.shared_bytes,
        max_threads: info.max_threads,
        min_blocks: info.min_blocks,
    }
}

fn relocation(emitted: emit::Relocation) -> Relocation {
    let kind = match emitted.kind {
        SymbolKind::AbsoluteLow => RelocationKind::Abs32Lo,
        SymbolKind::AbsoluteHigh => RelocationKind::Abs32Hi,
        SymbolKind::Relative => RelocationKind::Rel,
        SymbolKind::Constant => RelocationKind::Const,
    };
    Relocation {
        offset: emitted.offset,
        kind,
        symbol: emitted.name,
        addend: emitted.addend,
    }
}
