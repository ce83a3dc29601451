//! From a linked program to an object: what the kernels reach, as functions of CLIF and data objects.
//!
//! Functions are translated one after the other, beginning with the kernels; what one names is translated after it. All
//! of them together are then compiled, callees first. Everything that is unsupported is reported together, each with
//! its Rust line.

mod atomics;
mod bits;
mod call;
mod casts;
mod constants;
mod float;
mod function;
mod host;
mod instruction;
mod integer;
mod intrinsic;
mod locations;
mod memory;
mod shape;
mod variables;
mod wide;

use crate::data;
use crate::error::{Error, Place, Problem, of_backend};
use crate::link::{Program, Symbol};
use crate::model::{Function, HostFeatures, Type};
use crate::panics;
use crate::shared::{self, Shared};
use cranelift_codegen::ir::{self, AbiParam, Signature};
use cranelift_codegen::{CodegenError, Context};
use cranelift_module::{DataDescription, DataId, FuncId, Linkage, Module as _, ModuleError};
use cranelift_thisgpu::compile::{Code, KernelOptions};
use cranelift_thisgpu::locations::Locations;
use cranelift_thisgpu::variables::StaticPlace;
use cranelift_thisgpu::{Errors, GpuModule, Options, target};
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

/// A function that launches start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its symbol.
    pub name: String,
    /// Launch bounds, and shared memory if there is to be more than its static variables take.
    pub options: KernelOptions,
}

/// What a program was translated to.
#[derive(Debug)]
pub struct Translation {
    /// The compiled code.
    pub code: Code,
    /// All functions as CLIF, in the order in which they were compiled.
    pub clif: String,
    /// What compiles and is hardly meant.
    pub warnings: Vec<Error>,
    /// The variables in global memory that kernels may change, which live as long as the module.
    pub mutable: Vec<MutableVariable>,
}

/// A variable in global memory that is no constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutableVariable {
    /// Its symbol in the source's object.
    pub symbol: Arc<str>,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Translates what `kernels` reach, and compiles it.
///
/// # Errors
/// Everything that is wrong or not supported, with its place in the Rust source where that is known.
pub fn translate(
    program: &Program,
    kernels: &[Kernel],
    options: &Options,
) -> Result<Translation, Vec<Error>> {
    Translator::of(program, kernels, options)?.compiled()
}

/// The functions that `kernels` reach as a text of CLIF, which is not compiled.
///
/// # Errors
/// As of [`translate`], but for what only the back end finds.
pub fn clif(program: &Program, kernels: &[Kernel]) -> Result<String, Vec<Error>> {
    Ok(Translator::of(program, kernels, &Options::default())?.text())
}

/// The symbols of kernels.
fn entries(program: &Program, kernels: &[Kernel]) -> Result<Vec<Symbol>, Vec<Error>> {
    let mut entries = Vec::new();
    let mut errors = Vec::new();
    for kernel in kernels {
        match program.function(&kernel.name) {
            Some(symbol) => entries.push(symbol),
            None => errors.push(Error::new(None, Problem::NoKernel(kernel.name.clone()))),
        }
    }
    if errors.is_empty() {
        Ok(entries)
    } else {
        Err(errors)
    }
}

/// A function that was translated.
struct Body {
    id: FuncId,
    func: ir::Function,
    /// Functions that it calls or points to.
    callees: Vec<FuncId>,
}

/// What is known while functions are translated.
struct Translator<'p> {
    program: &'p Program,
    module: GpuModule,
    shared: Shared,
    functions: HashMap<Symbol, FuncId>,
    data: HashMap<Symbol, DataId>,
    /// Functions that trap in place of those that have no body, by name.
    stubs: HashMap<Arc<str>, FuncId>,
    /// Symbols of the object that are in use.
    taken: HashSet<String>,
    queue: Vec<Symbol>,
    data_queue: Vec<Symbol>,
    kernels: HashMap<FuncId, KernelOptions>,
    /// The kernels in the order in which they were given.
    entries: Vec<FuncId>,
    locations: locations::Numbers,
    /// Variables of the source, if somebody wants to know.
    variables: Option<variables::Table>,
    bodies: Vec<Body>,
    mutable: Vec<MutableVariable>,
    errors: Vec<Error>,
    warnings: Vec<Error>,
}

impl<'p> Translator<'p> {
    /// With everything translated.
    fn of(program: &'p Program, kernels: &[Kernel], options: &Options) -> Result<Self, Vec<Error>> {
        let entries = entries(program, kernels)?;
        let shared = shared::lay_out(program, &entries)?;
        let module = GpuModule::new(options.clone())
            .map_err(|error| vec![Error::new(None, of_backend(error))])?;
        let mut translator = Translator {
            program,
            module,
            shared,
            functions: HashMap::new(),
            data: HashMap::new(),
            stubs: HashMap::new(),
            taken: HashSet::new(),
            queue: Vec::new(),
            data_queue: Vec::new(),
            kernels: HashMap::new(),
            entries: Vec::new(),
            locations: locations::Numbers::default(),
            variables: options.value_locations.then(variables::Table::default),
            bodies: Vec::new(),
            mutable: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
        };
        for (index, (kernel, entry)) in kernels.iter().zip(entries).enumerate() {
            if let Err(error) = translator.kernel(kernel, entry, translator.shared.bytes[index]) {
                translator.errors.push(error);
            }
        }
        loop {
            if let Some(symbol) = translator.queue.pop() {
                translator.function_body(symbol);
            } else if let Some(symbol) = translator.data_queue.pop() {
                translator.variable(symbol);
            } else {
                break;
            }
        }
        match translator.errors.is_empty() {
            true => Ok(translator),
            false => Err(causes(translator.errors)),
        }
    }

    fn kernel(&mut self, kernel: &Kernel, entry: Symbol, bytes: u64) -> Result<(), Error> {
        let function = self.program.function_of(entry);
        let by_value = function.is_some_and(|function| {
            function
                .parameters
                .iter()
                .any(|parameter| parameter.by_value.is_some())
        });
        if by_value {
            let message = format!(
                "kernel `{}` takes a structure by value; take its fields, or a reference",
                kernel.name
            );
            let problem = Problem::Unsupported(message.into());
            return Err(Error::new(self.place_of(entry), problem));
        }
        let id = self.declare(entry)?;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let shared_bytes = bytes.max(kernel.options.shared_bytes);
        let options = kernel.options.with_shared(shared_bytes);
        self.module.declare_kernel(id, options);
        self.kernels.insert(id, options);
        self.entries.push(id);
        Ok(())
    }

    /// Where a function begins in the source.
    fn place_of(&self, symbol: Symbol) -> Option<Place> {
        let Symbol::Function(module, _) = symbol else {
            return None;
        };
        let function = self.program.function_of(symbol)?;
        self.program.scope_place(module, function.subprogram?)
    }

    /// The declaration of a function that has a body; asks for it to be translated.
    fn declare(&mut self, symbol: Symbol) -> Result<FuncId, Error> {
        if let Some(id) = self.functions.get(&symbol) {
            return Ok(*id);
        }
        let missing = || {
            let message = "a symbol that is no function";
            Error::new(None, Problem::Inconsistent(message.into()))
        };
        let function = self.program.function_of(symbol).ok_or_else(missing)?;
        let wrong = |problem| Error::new(self.place_of(symbol), problem);
        let signature = signature(function).map_err(wrong)?;
        let (name, linkage) = self.name(&function.name, function.linkage);
        let id = self
            .module
            .declare_function(&name, linkage, &signature)
            .map_err(|error| Error::new(None, of_backend(error)))?;
        self.functions.insert(symbol, id);
        self.queue.push(symbol);
        Ok(id)
    }

    /// The name of a symbol in the object: its own, unless another module has a local one of the same name.
    fn name(&mut self, name: &str, linkage: crate::model::Linkage) -> (String, Linkage) {
        let local = linkage == crate::model::Linkage::Local;
        let mut unique = name.to_owned();
        let mut number = 0_u32;
        while !self.taken.insert(unique.clone()) {
            number += 1;
            unique = format!("{name}.{number}");
        }
        let linkage = if local {
            Linkage::Local
        } else {
            Linkage::Export
        };
        (unique, linkage)
    }

    /// Asks for a variable to be defined.
    fn declare_variable(&mut self, symbol: Symbol) -> Result<DataId, Problem> {
        if let Some(id) = self.data.get(&symbol) {
            return Ok(*id);
        }
        let variable = self
            .program
            .variable_of(symbol)
            .ok_or(Problem::Inconsistent("a symbol that is no variable".into()))?;
        if variable.thread_local {
            let message = format!(
                "`{}` is thread-local: threads of the device have locals instead",
                variable.name
            );
            return Err(Problem::Unsupported(message.into()));
        }
        let (name, linkage) = self.name(&variable.name, variable.linkage);
        let writable = !variable.constant;
        let id = self
            .module
            .declare_data(&name, linkage, writable, false)
            .map_err(of_backend)?;
        // What it points to may be written all the same, but an object that holds addresses is no table.
        if variable.constant {
            self.module.declare_table(id);
        }
        self.data.insert(symbol, id);
        self.data_queue.push(symbol);
        Ok(id)
    }

    /// Defines a variable; what its value points to is asked for.
    fn variable(&mut self, symbol: Symbol) {
        let (Some(variable), Symbol::Variable(module, _)) =
            (self.program.variable_of(symbol), symbol)
        else {
            return;
        };
        if let Err(problem) = self.define_variable(symbol, module) {
            let (name, problem) = (variable.name.to_string(), Box::new(problem));
            let problem = Problem::Static { name, problem };
            self.errors.push(Error::new(None, problem));
        }
    }

    fn define_variable(&mut self, symbol: Symbol, module: usize) -> Result<(), Problem> {
        let missing = |what: &'static str| Problem::Inconsistent(what.into());
        let variable = self.program.variable_of(symbol);
        let variable = variable.ok_or_else(|| missing("no variable"))?;
        let value = variable.value.as_ref().ok_or_else(|| missing("no value"))?;
        let image = data::image(&variable.ty, value)?;
        if !variable.constant {
            self.mutable.push(MutableVariable {
                symbol: variable.name.clone(),
                bytes: image.bytes.len() as u64,
            });
        }
        let mut description = DataDescription::new();
        let natural = crate::layout::align(&variable.ty);
        description.set_align(variable.align.or(natural).unwrap_or(1));
        let zero = image.relocations.is_empty() && image.bytes.iter().all(|byte| *byte == 0);
        if zero {
            description.define_zeroinit(image.bytes.len());
        } else {
            description.define(image.bytes.into());
        }
        for (at, name, addend) in image.relocations {
            let behind = |_| Problem::TooLarge("an address behind 4 GiB".into());
            let at = u32::try_from(at).map_err(behind)?;
            match self.target(module, &name)? {
                Target::Function(id) if addend == 0 => {
                    let function = self.module.declare_func_in_data(id, &mut description);
                    description.write_function_addr(at, function);
                }
                Target::Function(_) => {
                    let message = format!("an address within `{name}`");
                    return Err(Problem::NotConstant(message.into()));
                }
                Target::Data(id, offset) => {
                    let data = self.module.declare_data_in_data(id, &mut description);
                    description.write_data_addr(at, data, offset.wrapping_add(addend));
                }
                Target::Shared(_) => {
                    let message =
                        format!("the address of `{name}` in shared memory is no constant");
                    return Err(Problem::NotConstant(message.into()));
                }
            }
        }
        let id = self.data[&symbol];
        self.module
            .define_data(id, &description)
            .map_err(of_backend)
    }

    /// What a symbol means in a module.
    fn target(&mut self, module: usize, name: &Arc<str>) -> Result<Target, Problem> {
        if &**name == shared::DYNAMIC_START {
            return Ok(Target::Shared(self.shared.dynamic));
        }
        match self.program.resolve(module, name) {
            Some((symbol @ Symbol::Function(..), _)) => {
                let id = self.declare(symbol);
                let id = id.map_err(|error| Problem::Callee(Box::new(error)))?;
                Ok(Target::Function(id))
            }
            Some((symbol, offset)) => match self.shared.offsets.get(&symbol) {
                Some(place) => Ok(Target::Shared(place.wrapping_add_signed(offset))),
                None => Ok(Target::Data(self.declare_variable(symbol)?, offset)),
            },
            None => match self.program.declaration(module, name) {
                Some(function) => Ok(Target::Function(self.stub(function)?)),
                None => Err(Problem::Undefined(name.to_string())),
            },
        }
    }

    /// A function that traps, for one without a body whose address is taken: mostly one that formats what a panic would
    /// say.
    fn stub(&mut self, function: &Function) -> Result<FuncId, Problem> {
        if let Some(id) = self.stubs.get(&function.name) {
            return Ok(*id);
        }
        let signature = signature(function)?;
        let library = cranelift_thisgpu::compile::library::provides(&function.name);
        let (name, linkage) = match library {
            true => (function.name.to_string(), Linkage::Import),
            false => self.name(&function.name, crate::model::Linkage::Local),
        };
        let id = self
            .module
            .declare_function(&name, linkage, &signature)
            .map_err(of_backend)?;
        self.stubs.insert(function.name.clone(), id);
        if !library {
            let func = function::stub(&name, signature, panics::Reason::Missing);
            let callees = Vec::new();
            self.bodies.push(Body { id, func, callees });
        }
        Ok(id)
    }

    fn function_body(&mut self, symbol: Symbol) {
        let (Some(function), Symbol::Function(module, _)) =
            (self.program.function_of(symbol), symbol)
        else {
            return;
        };
        let id = self.functions[&symbol];
        let declaration = self.module.declarations().get_function_decl(id);
        let signature = declaration.signature.clone();
        let name = declaration.linkage_name(id).into_owned();
        let place = self.place_of(symbol);
        let features = function.attributes.host_features;
        let errors = self.errors.len();
        let mut body = None;
        if features != HostFeatures::OfSome {
            let signature = signature.clone();
            let (func, callees) =
                function::translate(self, module, function, &name, signature, place);
            body = Some(Body { id, func, callees });
        }
        // What every processor of the host has is used without asking, and mostly as vectors, which are lanes here.
        // What is an operation of that processor alone is an error only if it is called.
        if features == HostFeatures::OfAll && self.errors.len() > errors {
            self.errors.truncate(errors);
            body = None;
        }
        // Of the other features the device has none, which a program learns that asks first.
        let stub = || Body {
            id,
            func: function::stub(&name, signature, panics::Reason::HostFeatures),
            callees: Vec::new(),
        };
        self.bodies.push(body.unwrap_or_else(stub));
    }

    /// All functions as a text, callees first.
    fn text(&self) -> String {
        let mut text = String::new();
        for index in callees_first(&self.bodies) {
            let body = &self.bodies[index];
            if let Some(options) = self.kernels.get(&body.id) {
                let mut mark = "; kernel".to_owned();
                let bounds = [
                    (
                        "shared",
                        Some(options.shared_bytes).filter(|bytes| *bytes != 0),
                    ),
                    ("max_threads", options.max_threads),
                    ("min_blocks", options.min_blocks),
                ];
                for (word, value) in bounds {
                    mark.extend(value.map(|value| format!(" {word}={value}")));
                }
                text.push_str(&mark);
                text.push('\n');
            }
            text.push_str(&format!("{}\n", self.named(&body.func).display()));
        }
        text
    }

    /// A function that names others by their symbols.
    fn named(&self, func: &ir::Function) -> ir::Function {
        let mut named = func.clone();
        if let ir::UserFuncName::Testcase(name) = &named.name {
            let own = clif_name(&String::from_utf8_lossy(name.raw()));
            named.name = ir::UserFuncName::testcase(own);
        }
        let declarations = self.module.declarations();
        let symbol = |name: &ir::ExternalName| {
            let ir::ExternalName::User(reference) = name else {
                return None;
            };
            let user = &func.params.user_named_funcs()[*reference];
            let symbol = match user.namespace {
                0 => {
                    let id = FuncId::from_u32(user.index);
                    let declaration = declarations.get_function_decl(id);
                    declaration.linkage_name(id)
                }
                _ => {
                    let id = DataId::from_u32(user.index);
                    declarations.get_data_decl(id).linkage_name(id)
                }
            };
            Some(ir::ExternalName::testcase(clif_name(&symbol).as_bytes()))
        };
        for callee in named.dfg.ext_funcs.values_mut() {
            if let Some(symbol) = symbol(&callee.name) {
                callee.name = symbol;
            }
        }
        for value in named.global_values.values_mut() {
            if let ir::GlobalValueData::Symbol { name, .. } = value
                && let Some(symbol) = symbol(name)
            {
                *name = symbol;
            }
        }
        named
    }

    /// The variables that have a place in global or shared memory.
    fn placed(&self) -> Vec<variables::Placed> {
        let declarations = self.module.declarations();
        let data = self.data.iter().map(|(symbol, id)| {
            let name = declarations.get_data_decl(*id).linkage_name(*id);
            let place = StaticPlace::Data(name.into_owned());
            let symbol = *symbol;
            variables::Placed { symbol, place }
        });
        let shared = self.shared.offsets.iter().map(|(symbol, offset)| {
            let kernels = self.entries.iter().zip(&self.shared.variables);
            let has_it = kernels.filter(|(_, variables)| variables.contains(symbol));
            let kernels = has_it.map(|(id, _)| {
                let declaration = declarations.get_function_decl(*id);
                declaration.linkage_name(*id).into_owned()
            });
            variables::Placed {
                symbol: *symbol,
                place: StaticPlace::Shared {
                    offset: u32::try_from(*offset).unwrap_or(u32::MAX),
                    kernels: kernels.collect(),
                },
            }
        });
        data.chain(shared).collect()
    }

    /// Compiles everything, callees first.
    fn compiled(mut self) -> Result<Translation, Vec<Error>> {
        let clif = self.text();
        let placed = match self.variables {
            Some(_) => self.placed(),
            None => Vec::new(),
        };
        let locations: Arc<Locations> = Arc::new(self.locations.into_table());
        self.module.compiler_mut().set_locations(Some(locations));
        let variables = self.variables.map(|mut table| {
            table.add_statics(self.program, placed);
            Arc::new(table.into_variables())
        });
        self.module.compiler_mut().set_variables(variables);
        let mut context = Context::new();
        for index in callees_first(&self.bodies) {
            let body = &mut self.bodies[index];
            std::mem::swap(&mut context.func, &mut body.func);
            if let Err(error) = self.module.define_function(body.id, &mut context) {
                let message = match error {
                    ModuleError::Compilation(CodegenError::Unsupported(message)) => message,
                    other => other.to_string(),
                };
                self.errors
                    .push(Error::new(None, Problem::Backend(message)));
            }
        }
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        let code = self.module.finish().map_err(|errors| all_of(&errors))?;
        let undefined = code.warnings().iter();
        let undefined: Vec<Error> = undefined
            .map(|warning| Error::new(None, of_backend(warning)))
            .collect();
        if !undefined.is_empty() {
            return Err(undefined);
        }
        Ok(Translation {
            code,
            clif,
            warnings: self.warnings,
            mutable: self.mutable,
        })
    }
}

/// A symbol as a name of CLIF's text, which has letters, digits and `_`: LLVM numbers by a dot.
fn clif_name(symbol: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    symbol.replace(|c| !is_word(c), "_")
}

/// Errors without those that only follow from others: what a value that was not translated would have been needed for.
fn causes(errors: Vec<Error>) -> Vec<Error> {
    let follows = |error: &Error| error.problem == Problem::NotTranslated;
    match errors.iter().all(follows) {
        true => errors,
        false => errors.into_iter().filter(|error| !follows(error)).collect(),
    }
}

/// The back end's errors, which name places by the table of locations.
fn all_of(errors: &Errors) -> Vec<Error> {
    let errors = errors.iter();
    errors
        .map(|error| Error::new(None, of_backend(error)))
        .collect()
}

/// What a symbol means.
#[derive(Clone, Copy, Debug)]
enum Target {
    Function(FuncId),
    /// An object, and bytes behind its beginning.
    Data(DataId, i64),
    /// Bytes behind the beginning of the kernel's shared memory.
    Shared(u64),
}

/// The order in which functions are compiled: each behind those that it names, as far as they do not name each other.
fn callees_first(bodies: &[Body]) -> Vec<usize> {
    let index: HashMap<FuncId, usize> = bodies
        .iter()
        .zip(0..)
        .map(|(body, i)| (body.id, i))
        .collect();
    let (mut order, mut seen) = (Vec::new(), vec![false; bodies.len()]);
    for first in 0..bodies.len() {
        let mut stack = vec![(first, 0)];
        while let Some((body, next)) = stack.pop() {
            if next == 0 && std::mem::replace(&mut seen[body], true) {
                continue;
            }
            match bodies[body].callees.get(next) {
                Some(callee) => {
                    stack.push((body, next + 1));
                    if let Some(callee) = index.get(callee).filter(|callee| !seen[**callee]) {
                        stack.push((*callee, 0));
                    }
                }
                None => order.push(body),
            }
        }
    }
    order
}

/// The signature of a function: one parameter for each part of each of its own.
///
/// # Errors
/// Types that have no values on the device.
fn signature(function: &Function) -> Result<Signature, Problem> {
    let mut types = Vec::new();
    for parameter in &function.parameters {
        types.push(&parameter.ty);
    }
    signature_of(types.into_iter(), &function.returns)
}

/// A signature by the types of parameters and result.
fn signature_of<'a>(
    parameters: impl Iterator<Item = &'a Type>,
    returns: &Type,
) -> Result<Signature, Problem> {
    let mut signature = Signature::new(target::frontend_config().default_call_conv);
    for parameter in parameters {
        for part in shape::parts(parameter)? {
            signature.params.push(AbiParam::new(part.clif()));
        }
    }
    for part in shape::parts(returns)? {
        signature.returns.push(AbiParam::new(part.clif()));
    }
    Ok(signature)
}
