//! The compiler behind Cranelift's [`Module`] interface: a front end written for `cranelift_object` or `cranelift_jit`
//! changes the type of its module and gets a GPU object.
//!
//! Kernels are named with [`GpuModule::declare_kernel`]. Functions that are imported under the name of an intrinsic
//! (`gpu_tid_x`) are that intrinsic. A definition is verified and kept; [`GpuModule::finish_definitions`] compiles all
//! of them on several threads. By then is known what decides about their code besides themselves: which are kernels,
//! with which launch bounds, and what each function does to the lanes that call it. [`GpuModule::finish`] puts
//! everything together. The module's [compiler](GpuModule::compiler_mut) keeps functions in a cache where it has one.
//!
//! The trait asks for a `TargetIsa`, which nobody outside of Cranelift can implement. A stock 64-bit one stands in to
//! answer `isa()`; no code is made or verified with it. Front ends should ask [`Module::target_config`] instead.

use crate::clif::source::KernelOptions;
use crate::compile::{Code, Compiler, FunctionInput, Unit};
use crate::error::{Error, ErrorList, Errors, Place, Problem};
use crate::object::{self, DataContents, DataObject, RelocationKind};
use crate::settings::Options;
use crate::target::{self, CALL_CONV};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{self, UserExternalName};
use cranelift_codegen::isa::{self, OwnedTargetIsa, TargetFrontendConfig, TargetIsa};
use cranelift_codegen::{CodegenError, Context, settings};
use cranelift_module::{
    DataDescription, DataId, FuncId, FuncOrDataId, FunctionDeclaration, Init, Linkage, Module,
    ModuleDeclarations, ModuleError, ModuleReloc, ModuleRelocTarget, ModuleResult,
};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::thread;

/// Alignment of data whose description asks for none.
const DATA_ALIGN: u32 = 16;

/// A module for the thisgpu target.
pub struct GpuModule {
    compiler: Compiler,
    unit: Unit,
    declarations: ModuleDeclarations,
    kernels: HashMap<FuncId, KernelOptions>,
    defined_functions: HashSet<FuncId>,
    defined_data: HashSet<DataId>,
    /// Data that nobody writes.
    tables: HashSet<DataId>,
    /// Functions that are defined and not compiled yet, in the order of their definitions.
    waiting: Vec<(FuncId, ir::Function)>,
    /// Functions that were made kernels after they had been compiled.
    marked_late: BTreeSet<FuncId>,
    /// Threads that compile.
    threads: usize,
    stand_in: OwnedTargetIsa,
}

impl GpuModule {
    /// An empty module.
    ///
    /// # Errors
    /// When this build of Cranelift has not even the ISA that stands in.
    pub fn new(options: Options) -> ModuleResult<Self> {
        let unsupported =
            |error: String| ModuleError::Compilation(CodegenError::Unsupported(error));
        let builder =
            isa::lookup_by_name("riscv64").map_err(|error| unsupported(error.to_string()))?;
        let stand_in = builder
            .finish(settings::Flags::new(settings::builder()))
            .map_err(ModuleError::Compilation)?;
        Ok(Self {
            compiler: Compiler::new(options),
            unit: Unit::new(),
            declarations: ModuleDeclarations::default(),
            kernels: HashMap::new(),
            defined_functions: HashSet::new(),
            defined_data: HashSet::new(),
            tables: HashSet::new(),
            waiting: Vec::new(),
            marked_late: BTreeSet::new(),
            threads: thread::available_parallelism().map_or(1, NonZeroUsize::get),
            stand_in,
        })
    }

    /// The compiler of what is defined and not compiled yet: to give it a cache, a table of places in the source, or to
    /// ask for remarks. Places of errors are by the table that it has when they are found: in a definition, or when all
    /// are compiled.
    pub fn compiler_mut(&mut self) -> &mut Compiler {
        &mut self.compiler
    }

    /// Compiles on so many threads; without this, on as many as the system runs at a time. What comes out is the same.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
    }

    /// Makes a declared function a kernel, before or after its definition. Its launch bounds hold for all functions of
    /// the module. A function that [`GpuModule::finish_definitions`] has compiled cannot become one any more.
    pub fn declare_kernel(&mut self, function: FuncId, options: KernelOptions) {
        let before = self.kernels.insert(function, options);
        let waits = || self.waiting.iter().any(|(id, _)| *id == function);
        if before != Some(options) && self.defined_functions.contains(&function) && !waits() {
            self.marked_late.insert(function);
        }
    }

    /// Says of a data object, before its definition, that nobody ever writes it, the host neither: functions that are
    /// compiled later may know what it holds ([`Unit::announce_table`]). Where it holds addresses, this says nothing.
    pub fn declare_table(&mut self, data: DataId) {
        self.tables.insert(data);
    }

    /// Puts together what was defined.
    ///
    /// # Errors
    /// All functions and data objects that are declared to be defined here and are not.
    pub fn finish(mut self) -> Result<Code, Errors> {
        let mut errors = ErrorList::new();
        let mut missing = |what: &str, name: &str| {
            let problem = Problem::Syntax(format!("{what} `{name}` is declared and never defined"));
            errors.push(Error::new(problem, Place::default()));
        };
        for (id, declaration) in self.declarations.get_functions() {
            if declaration.linkage.requires_definition() && !self.defined_functions.contains(&id) {
                missing("function", &declaration.linkage_name(id));
            }
        }
        for (id, declaration) in self.declarations.get_data_objects() {
            if declaration.linkage.requires_definition() && !self.defined_data.contains(&id) {
                missing("data object", &declaration.linkage_name(id));
            }
        }
        let mut kernels: Vec<FuncId> = self.kernels.keys().copied().collect();
        kernels.sort_unstable();
        for id in kernels {
            let message = match self.declared(id) {
                None => format!(
                    "function number {} is to be one and is not declared",
                    id.as_u32()
                ),
                Some(declaration) if !declaration.linkage.is_definable() => format!(
                    "`{}` is imported; only what is defined here can be one",
                    declaration.linkage_name(id)
                ),
                Some(declaration) if self.marked_late.contains(&id) => format!(
                    "`{}` was compiled as what it was before; declare kernels before `finish_definitions`",
                    declaration.linkage_name(id)
                ),
                Some(_) => continue,
            };
            errors.push(Error::new(Problem::Kernel(message), Place::default()));
        }
        errors.finish(())?;
        self.finish_definitions()?;
        self.unit.finish()
    }

    /// Compiles what was defined since the last call, on several threads; what they know of each other is known then.
    /// [`GpuModule::finish`] does so too. Functions that are defined later are strangers to those: lanes are taken to
    /// come back from them one by one, and nothing is known of their launch bounds.
    ///
    /// # Errors
    /// Everything that is wrong or unsupported in any of the functions, in the order of their definitions. Those are
    /// gone then.
    pub fn finish_definitions(&mut self) -> Result<(), Errors> {
        let waiting = std::mem::take(&mut self.waiting);
        let declarations = &self.declarations;
        let namer =
            |user: &UserExternalName| Self::symbol(declarations, user.namespace, user.index);
        let names = waiting.iter().map(|(id, _)| {
            let name = declarations.get_function_decl(*id).linkage_name(*id);
            name.into_owned()
        });
        let names: Vec<String> = names.collect();
        let inputs: Vec<FunctionInput<'_>> = (waiting.iter().zip(&names))
            .map(|((id, func), name)| FunctionInput {
                func,
                name,
                kernel: self.kernels.get(id).copied(),
                linkage: linkage(declarations.get_function_decl(*id).linkage),
                namer: &namer,
            })
            .collect();
        let compiled = self
            .compiler
            .compile_verified(&inputs, &mut self.unit, self.threads);
        let mut errors = ErrorList::new();
        for (input, compiled) in inputs.iter().zip(compiled) {
            if let Err(found) = compiled {
                errors.extend(found.in_function(&input.func.name.to_string(), input.name));
            }
        }
        errors.finish(())
    }

    /// The declaration of a function, if it is one of this module.
    fn declared(&self, id: FuncId) -> Option<&FunctionDeclaration> {
        let declared = has(self.declarations.get_functions(), id.as_u32());
        declared.then(|| self.declarations.get_function_decl(id))
    }

    /// The symbol that a reference in data or code stands for.
    fn symbol(declarations: &ModuleDeclarations, namespace: u32, index: u32) -> Option<String> {
        match namespace {
            0 if has(declarations.get_functions(), index) => {
                let id = FuncId::from_u32(index);
                Some(
                    declarations
                        .get_function_decl(id)
                        .linkage_name(id)
                        .into_owned(),
                )
            }
            1 if has(declarations.get_data_objects(), index) => {
                let id = DataId::from_u32(index);
                Some(declarations.get_data_decl(id).linkage_name(id).into_owned())
            }
            _ => None,
        }
    }
}

/// Whether declarations, which are numbered from 0, reach to a number.
fn has<T>(declarations: impl Iterator<Item = T>, index: u32) -> bool {
    declarations.size_hint().0 > index as usize
}

/// Who sees the symbol.
fn linkage(linkage: Linkage) -> object::Linkage {
    match linkage {
        Linkage::Import | Linkage::Preemptible | Linkage::Export => object::Linkage::Global,
        Linkage::Local | Linkage::Hidden => object::Linkage::Local,
    }
}

/// The library's errors as the trait's.
fn module_error(errors: Errors) -> ModuleError {
    if errors.only_unsupported() {
        ModuleError::Compilation(CodegenError::Unsupported(errors.to_string()))
    } else {
        ModuleError::Backend(errors.into())
    }
}

fn thread_local(name: &str) -> ModuleError {
    let message = format!("unsupported: thread-local data `{name}`: use stack slots");
    ModuleError::Compilation(CodegenError::Unsupported(message))
}

impl Module for GpuModule {
    /// A stand-in: Cranelift's riscv64, which answers for 64-bit pointers and for nothing else. No code is made with
    /// it. The target's own answers are [`Module::target_config`], [`target::triple`] and [`Compiler::options`].
    fn isa(&self) -> &dyn TargetIsa {
        &*self.stand_in
    }

    fn declarations(&self) -> &ModuleDeclarations {
        &self.declarations
    }

    fn get_name(&self, name: &str) -> Option<FuncOrDataId> {
        self.declarations.get_name(name)
    }

    fn target_config(&self) -> TargetFrontendConfig {
        target::frontend_config()
    }

    fn make_context(&self) -> Context {
        let mut context = Context::new();
        context.func.signature.call_conv = CALL_CONV;
        context
    }

    fn clear_context(&self, context: &mut Context) {
        context.clear();
        context.func.signature.call_conv = CALL_CONV;
    }

    fn make_signature(&self) -> ir::Signature {
        ir::Signature::new(CALL_CONV)
    }

    fn clear_signature(&self, signature: &mut ir::Signature) {
        signature.clear(CALL_CONV);
    }

    fn declare_function(
        &mut self,
        name: &str,
        linkage: Linkage,
        signature: &ir::Signature,
    ) -> ModuleResult<FuncId> {
        self.declarations
            .declare_function(name, linkage, signature)
            .map(|(id, _)| id)
    }

    fn declare_anonymous_function(&mut self, signature: &ir::Signature) -> ModuleResult<FuncId> {
        self.declarations.declare_anonymous_function(signature)
    }

    fn declare_data(
        &mut self,
        name: &str,
        linkage: Linkage,
        writable: bool,
        tls: bool,
    ) -> ModuleResult<DataId> {
        if tls {
            return Err(thread_local(name));
        }
        self.declarations
            .declare_data(name, linkage, writable, tls)
            .map(|(id, _)| id)
    }

    fn declare_anonymous_data(&mut self, writable: bool, tls: bool) -> ModuleResult<DataId> {
        if tls {
            return Err(thread_local("anonymous"));
        }
        self.declarations.declare_anonymous_data(writable, tls)
    }

    fn define_function_with_control_plane(
        &mut self,
        id: FuncId,
        context: &mut Context,
        _control_plane: &mut ControlPlane,
    ) -> ModuleResult<()> {
        let Some(declaration) = self.declared(id) else {
            return Err(ModuleError::Undeclared(format!(
                "function number {}",
                id.as_u32()
            )));
        };
        let name = declaration.linkage_name(id).into_owned();
        if !declaration.linkage.is_definable() {
            return Err(ModuleError::InvalidImportDefinition(name));
        }
        if self.defined_functions.contains(&id) {
            return Err(ModuleError::DuplicateDefinition(name));
        }
        let func_name = context.func.name.to_string();
        let declarations = &self.declarations;
        let input = FunctionInput {
            func: &context.func,
            name: &name,
            kernel: self.kernels.get(&id).copied(),
            linkage: linkage(declaration.linkage),
            namer: &|user: &UserExternalName| {
                Self::symbol(declarations, user.namespace, user.index)
            },
        };
        self.compiler
            .check(&input)
            .map_err(|errors| module_error(errors.in_function(&func_name, &name)))?;
        self.waiting.push((id, context.func.clone()));
        self.defined_functions.insert(id);
        Ok(())
    }

    fn define_function_bytes(
        &mut self,
        id: FuncId,
        _alignment: u64,
        _bytes: &[u8],
        _relocations: &[ModuleReloc],
    ) -> ModuleResult<()> {
        let Some(declaration) = self.declared(id) else {
            return Err(ModuleError::Undeclared(format!(
                "function number {}",
                id.as_u32()
            )));
        };
        let name = declaration.linkage_name(id);
        let message = format!(
            "unsupported: `{name}` as bytes: registers and local memory of machine code are unknown; define CLIF"
        );
        Err(ModuleError::Compilation(CodegenError::Unsupported(message)))
    }

    fn define_data(&mut self, id: DataId, data: &DataDescription) -> ModuleResult<()> {
        if !has(self.declarations.get_data_objects(), id.as_u32()) {
            return Err(ModuleError::Undeclared(format!(
                "data object number {}",
                id.as_u32()
            )));
        }
        let declaration = self.declarations.get_data_decl(id);
        let name = declaration.linkage_name(id).into_owned();
        if !declaration.linkage.is_definable() {
            return Err(ModuleError::InvalidImportDefinition(name));
        }
        if self.defined_data.contains(&id) {
            return Err(ModuleError::DuplicateDefinition(name));
        }
        let align = match data.align.map(u32::try_from) {
            None => DATA_ALIGN,
            Some(Ok(align)) => align,
            Some(Err(_)) => {
                let message = format!(
                    "unsupported: data `{name}` aligned to 4 GiB or more: devices align to 256 bytes"
                );
                return Err(ModuleError::Compilation(CodegenError::Unsupported(message)));
            }
        };
        let contents = match &data.init {
            Init::Bytes { contents } => DataContents::Bytes(contents.to_vec()),
            Init::Zeros { size } => DataContents::Zeros(*size as u64),
            Init::Uninitialized => {
                return Err(ModuleError::Undeclared(format!("contents of `{name}`")));
            }
        };
        let functions = data
            .function_relocs
            .iter()
            .map(|(offset, id)| (*offset, &data.function_decls[*id], 0));
        let objects = data
            .data_relocs
            .iter()
            .map(|(offset, id, addend)| (*offset, &data.data_decls[*id], *addend));
        let mut relocations = Vec::new();
        for (offset, target, addend) in functions.chain(objects) {
            let symbol = match target {
                ModuleRelocTarget::User { namespace, index } => {
                    Self::symbol(&self.declarations, *namespace, *index)
                }
                _ => None,
            };
            let Some(symbol) = symbol else {
                let message = format!(
                    "unsupported: the address of {target} in `{name}`: use functions and data of the module"
                );
                return Err(ModuleError::Compilation(CodegenError::Unsupported(message)));
            };
            relocations.push(object::Relocation {
                offset,
                kind: RelocationKind::Abs64,
                symbol,
                addend,
            });
        }
        relocations.sort();
        if let DataContents::Bytes(bytes) = &contents
            && relocations.is_empty()
            && self.tables.contains(&id)
        {
            self.unit.announce_table(&name, bytes, align);
        }
        self.unit.push_data(DataObject {
            linkage: linkage(declaration.linkage),
            writable: declaration.writable,
            align,
            name,
            contents,
            relocations,
        });
        self.defined_data.insert(id);
        Ok(())
    }
}

#[cfg(all(test, feature = "driver", feature = "sim"))]
mod tests;
