//! Compiled code: functions, constants and data with what they need of the machine.

use super::resources::KernelResources;
use super::summaries::Summaries;
use super::{FunctionInput, Warning};
use crate::abi;
use crate::abi::MAX_CONSTANTS;
use crate::clif::source::{KernelOptions, SourceFile, SourceFunction};
use crate::emit::constants::{CONSTANTS, TABLES};
use crate::emit::{self, Constants, Places};
use crate::error::{Error, ErrorList, Errors, Place, Problem};
use crate::isa::encode::WORD_BYTES;
use crate::locations::Locations;
use crate::object::{
    DataContents, DataObject, Kernel, Line, Linkage, Object, ObjectFunction, OwnResources,
    Parameter, ParameterKind, Relocation, RelocationKind, Resources, with_constant,
};
use crate::remarks::Remark;
use crate::sched::model::FunctionCycles;
use crate::text::did_you_mean;
use crate::vcode::{FunctionKind, KernelInfo, SymbolKind};
use cranelift_codegen::ir;
use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A compiled function by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Compiled {
    pub code: emit::Code,
    pub constants: Constants,
    pub linkage: Linkage,
    pub remarks: Vec<Remark>,
    /// How long its blocks take, if that was asked for.
    pub cycles: Option<FunctionCycles>,
    /// What the numbers of its lines stand for; none before that is settled.
    #[serde(skip)]
    pub locations: Option<Arc<Locations>>,
}

impl Compiled {
    /// Settles what the numbers of its lines stand for.
    pub fn locate(&mut self, locations: &Arc<Locations>) {
        for remark in &mut self.remarks {
            remark.locate(locations);
        }
        for block in self.cycles.iter_mut().flat_map(|c| &mut c.blocks) {
            block.line = locations.resolve(block.line).line;
        }
        self.locations = Some(locations.clone());
    }

    /// Bytes that it takes of the constant bank.
    pub fn constant_bytes(&self) -> u32 {
        self.constants.bytes().len() as u32
    }
}

/// Functions that were compiled one by one, before the call graph is looked at.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    functions: Vec<Compiled>,
    /// Bytes that they take of the constant bank.
    constant_bytes: u32,
    data: Vec<DataObject>,
    pub(super) summaries: Summaries,
}

impl Unit {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells of functions that are compiled into this unit later, or linked with it, before those that call them are compiled: what they do
    /// to the lanes that call them decides where those lanes meet. Of functions that nobody told of everything is assumed: lanes may come
    /// back from them one by one.
    pub fn announce(&mut self, functions: &[FunctionInput<'_>]) {
        self.summaries.announce(functions);
    }

    /// [`Unit::announce`] for all functions of a file.
    pub fn announce_file(&mut self, file: &SourceFile) {
        let names: Vec<String> = file.functions.iter().map(SourceFunction::name).collect();
        let inputs: Vec<FunctionInput<'_>> = file
            .functions
            .iter()
            .zip(&names)
            .map(|(function, name)| FunctionInput::of_source(function, name))
            .collect();
        self.announce(&inputs);
    }

    /// What is known of the functions that others call.
    pub(crate) fn summaries(&mut self) -> &mut Summaries {
        &mut self.summaries
    }

    /// What is known of them, to be read.
    #[cfg(feature = "module")]
    pub(crate) fn known(&self) -> &Summaries {
        &self.summaries
    }

    /// Takes a function out; [`Unit::put_back`] puts the one that was compiled last in its place.
    pub(crate) fn take_out(&mut self, name: &str) -> Option<usize> {
        let index = (self.functions.iter()).position(|function| function.code.name == name)?;
        let function = self.functions.remove(index);
        self.constant_bytes -= function.constant_bytes();
        Some(index)
    }

    /// See [`Unit::take_out`].
    pub(crate) fn put_back(&mut self, index: usize) {
        if let Some(last) = self.functions.pop() {
            self.functions.insert(index, last);
        }
    }

    /// Adds a compiled function.
    pub(super) fn push(&mut self, function: Compiled) {
        self.constant_bytes += function.constant_bytes();
        self.functions.push(function);
    }

    /// Bytes of the constant bank that nothing takes yet.
    pub(super) fn room(&self) -> u32 {
        MAX_CONSTANTS.saturating_sub(self.constant_bytes)
    }

    /// Adds everything of another unit behind what is here. Functions of either that call those of the other should have been
    /// [announced](Unit::announce) there before their callers were compiled.
    pub fn append(&mut self, other: Unit) {
        self.constant_bytes += other.constant_bytes;
        self.functions.extend(other.functions);
        self.data.extend(other.data);
        self.summaries.append(other.summaries);
    }

    /// Adds a data object.
    pub fn push_data(&mut self, data: DataObject) {
        self.data.push(data);
    }

    /// Names of the functions so far.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        self.functions().map(|code| code.name.as_str())
    }

    /// The functions so far, before linking.
    pub fn functions(&self) -> impl Iterator<Item = &emit::Code> {
        self.functions.iter().map(|function| &function.code)
    }

    /// Drops the functions that `keep` does not want.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.functions.retain(|function| keep(&function.code.name));
        self.constant_bytes = self.functions.iter().map(Compiled::constant_bytes).sum();
    }

    /// Names that functions refer to and nothing here defines, some more than once.
    pub(super) fn undefined(&self) -> impl Iterator<Item = &str> {
        let defined: hashbrown::HashSet<&str> = self
            .function_names()
            .chain(self.data.iter().map(|data| data.name.as_str()))
            .collect();
        self.functions()
            .flat_map(|code| &code.relocations)
            .filter(|relocation| relocation.kind != SymbolKind::Constant)
            .map(|relocation| relocation.name.as_str())
            .filter(move |name| !defined.contains(name))
    }

    /// Puts the functions together, with those of the library that they call, and counts what kernels need with all that they call.
    ///
    /// # Errors
    /// A name that is defined twice; a kernel that is called or whose address is taken; a kernel that needs more local memory than there is; of
    /// units that were compiled apart, more constants than there is room for, and kernels that call what needs more registers than their launch
    /// bounds leave.
    pub fn finish(mut self) -> Result<Code, Errors> {
        super::library::complete(&mut self)?;
        let constants = self.place_constants()?;
        if !constants.tables().is_empty() {
            self.data.push(DataObject {
                name: TABLES.to_owned(),
                linkage: Linkage::Local,
                writable: false,
                align: 4,
                contents: DataContents::Bytes(constants.tables().to_vec()),
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
        for compiled in self.functions {
            let Compiled {
                code,
                linkage,
                remarks: found,
                cycles: model,
                locations,
                ..
            } = compiled;
            remarks.extend(found);
            cycles.extend(model);
            let lines = lines(&code, &locations.unwrap_or_default(), &mut object);
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
        let kernels = code.kernels.iter();
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
        Ok(all)
    }

    /// Functions that call a kernel or take its address: a kernel ends its lanes and has its parameters from the launch.
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
                        "%{} is a kernel, which only a launch can start; move what it does to a function that both call",
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
    /// The same code without lines of the source.
    pub(super) fn without_lines(mut self) -> Self {
        self.lines.clear();
        self
    }

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
                (SymbolKind::AbsoluteLow | SymbolKind::AbsoluteHigh, TABLES) => {
                    relocation.addend += i64::from(places.data);
                }
                _ => {}
            }
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
        name: code.name,
        linkage,
        words: code.words,
    }
}

/// The lines of a function, with their files among the object's.
fn lines(code: &emit::Code, locations: &Locations, object: &mut Object) -> Vec<Line> {
    let mut files: HashMap<u32, u32> = HashMap::new();
    let mut lines: Vec<Line> = Vec::with_capacity(code.lines.len());
    for (offset, number) in &code.lines {
        let mut location = locations.resolve(number.0);
        if let Some(name) = locations.file_name(location.file) {
            let number = files.entry(location.file);
            location.file = *number.or_insert_with(|| object.file_number(name));
        }
        if lines.last().is_none_or(|last| last.location != location) {
            lines.push(Line {
                offset: *offset,
                location,
            });
        }
    }
    lines
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

/// Places the parameters of a kernel in constant bank 0: in order, naturally aligned, at most to 16 bytes (*assigned*).
pub(super) fn kernel_info(signature: &ir::Signature, options: KernelOptions) -> KernelInfo {
    let mut end = abi::bank0::PARAMETERS;
    let parameters = signature.params.iter().map(|param| {
        let bytes = param.value_type.bytes().max(1);
        let offset = end.next_multiple_of(bytes.next_power_of_two().min(16));
        end = offset + bytes;
        crate::vcode::Parameter {
            offset,
            ty: param.value_type,
        }
    });
    KernelInfo {
        parameters: parameters.collect(),
        shared_bytes: options.shared_bytes,
        max_threads: options.max_threads,
        min_blocks: options.min_blocks,
    }
}

/// Compiled code, ready to be written to a file or loaded onto a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    object: Object,
    kernels: Vec<KernelResources>,
    remarks: Vec<Remark>,
    cycles: Vec<FunctionCycles>,
    warnings: Vec<Warning>,
}

/// A kernel in [`Code`].
#[derive(Clone, Copy, Debug)]
pub struct KernelRef<'a> {
    function: &'a ObjectFunction,
    resources: &'a KernelResources,
}

impl Code {
    /// The code of an object: all that it answers but remarks and cycles, which are reports of the compilation.
    pub fn of_object(object: Object) -> Self {
        Self {
            kernels: KernelResources::of_object(&object),
            warnings: Warning::of_unresolved(&object),
            remarks: Vec::new(),
            cycles: Vec::new(),
            object,
        }
    }

    /// The same code with the reports of its compilation.
    pub(super) fn with_reports(self, remarks: Vec<Remark>, cycles: Vec<FunctionCycles>) -> Self {
        Self {
            remarks,
            cycles,
            ..self
        }
    }

    /// The same code with what is known of the text that it was made of: its name, and its warnings.
    pub(super) fn with_text(mut self, file: &SourceFile) -> Self {
        let found = std::mem::take(&mut self.warnings).into_iter();
        let found = found.map(|mut warning| {
            warning.place.file = Some(file.name.clone());
            warning
        });
        self.warnings = file.warnings.iter().cloned().chain(found).collect();
        self
    }

    /// What is suspicious: names that nothing here defines, and comments of a text that are nearly kernel marks.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// How long the blocks of each function take by the scheduler's model ([`crate::sched::model`]), if it was asked for
    /// ([`super::Compiler::model_cycles`]).
    pub fn cycles(&self) -> &[FunctionCycles] {
        &self.cycles
    }

    /// What could have been done and was not, function by function, if it was asked for ([`super::Compiler::collect_remarks`]).
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// The object: what a device loads.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The object, by value.
    pub fn into_object(self) -> Object {
        self.object
    }

    /// The kernel of a name.
    ///
    /// # Errors
    /// When there is none, with the kernels there are.
    pub fn kernel(&self, name: &str) -> Result<KernelRef<'_>, Error> {
        let wanted = name.trim_start_matches('%');
        let resources = self.kernels.iter().find(|kernel| kernel.name == wanted);
        let found = resources.zip(self.object.function(wanted));
        found
            .map(|(resources, function)| KernelRef {
                function,
                resources,
            })
            .ok_or_else(|| {
                let names: Vec<&str> = self
                    .kernels
                    .iter()
                    .map(|kernel| kernel.name.as_str())
                    .collect();
                let known = if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                };
                Error::new(
                    Problem::Kernel(format!(
                        "there is no kernel `{wanted}`; kernels: {known}{}",
                        did_you_mean(wanted, names)
                    )),
                    Place::default(),
                )
            })
    }

    /// What each kernel needs, in the order of the code.
    pub fn kernels(&self) -> &[KernelResources] {
        &self.kernels
    }

    /// The ELF file. The same code always gives the same bytes.
    ///
    /// # Errors
    /// What the file format cannot hold.
    pub fn to_elf(&self) -> Result<Vec<u8>, Error> {
        self.object
            .write()
            .map_err(|error| Error::new(Problem::Limit(error.to_string()), Place::default()))
    }
}

impl AsRef<Object> for Code {
    fn as_ref(&self) -> &Object {
        &self.object
    }
}

impl<'a> KernelRef<'a> {
    /// What a launch of it needs.
    pub fn resources(&self) -> &'a KernelResources {
        self.resources
    }

    /// Its instructions and metadata.
    pub fn function(&self) -> &'a ObjectFunction {
        self.function
    }
}
