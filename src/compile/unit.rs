//! Functions and data that are put together, while they are compiled.

use super::FunctionInput;
use super::summaries::Summaries;
use crate::abi;
use crate::abi::MAX_CONSTANTS;
use crate::clif::source::{KernelOptions, SourceFile, SourceFunction};
use crate::emit::{self, Constants};
use crate::locations::Locations;
use crate::object::{DataObject, Linkage};
use crate::remarks::Remark;
use crate::report::model::FunctionCycles;
use crate::variables::Variables;
use crate::vcode::{KernelInfo, SymbolKind};
use cranelift_codegen::ir;
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
    /// What the types of its variables are.
    #[serde(skip)]
    pub variables: Option<Arc<Variables>>,
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

    /// Bytes that it takes of the constant bank, with those before the next function's.
    pub fn constant_bytes(&self) -> u32 {
        self.constants.bank_bytes()
    }
}

/// Functions that were compiled one by one, before the call graph is looked at.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    pub(super) functions: Vec<Compiled>,
    /// Bytes that they take of the constant bank.
    constant_bytes: u32,
    pub(super) data: Vec<DataObject>,
    pub(super) summaries: Summaries,
}

impl Unit {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells of functions that are compiled into this unit later, or linked with it, before those that call them are
    /// compiled: what they do to the lanes that call them decides where those lanes meet. Of functions that nobody told
    /// of everything is assumed: lanes may come back from them one by one.
    pub fn announce(&mut self, functions: &[FunctionInput<'_>]) {
        let room = MAX_CONSTANTS.saturating_sub(self.constant_bytes);
        self.summaries.announce(functions, room);
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

    /// Tells what a data object holds that nobody ever writes, neither code nor the host, before functions are
    /// [announced](Unit::announce) that read it: its name, its bytes, and its alignment, a power of two. Loads of it at
    /// constant offsets are constants then; those at offsets that all lanes of a warp share, made of numbers of 32
    /// bits, read a copy in the constant bank, if it is one of the first with such loads that together have at most 4
    /// KiB. The object itself is still to be [added](Unit::push_data), as there may be loads that read it where it is.
    /// It must not hold addresses, which only linking knows. Who announces a name again says nothing new.
    pub fn announce_table(&mut self, name: &str, content: &[u8], align: u32) {
        self.summaries.announce_table(name, content, align);
    }

    /// Adds a compiled function.
    pub(super) fn push(&mut self, function: Compiled) {
        self.constant_bytes += function.constant_bytes();
        self.functions.push(function);
    }

    /// Bytes of the constant bank that nothing takes yet.
    pub(super) fn room(&self) -> u32 {
        MAX_CONSTANTS.saturating_sub(self.constant_bytes + self.summaries.table_bytes())
    }

    /// Adds everything of another unit behind what is here. Functions of either that call those of the other should
    /// have been [announced](Unit::announce) there before their callers were compiled.
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
}

impl emit::Code {
    /// The same code without lines of the source.
    pub(super) fn without_lines(mut self) -> Self {
        self.lines.clear();
        self
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
