//! The compiler behind Cranelift's [`Module`] interface: a front end written for `cranelift_object` or `cranelift_jit`
//! changes the type of its module and gets a GPU object.
//!
//! Kernels are named with [`GpuModule::declare_kernel`]. Functions that are imported under the name of an intrinsic
//! (`gpu_tid_x`) are that intrinsic. Everything is compiled when it is defined; [`GpuModule::finish`] puts it together.
//! A function that is compiled before one that it calls, and in which lanes wait for other threads, is compiled again
//! then: where lanes meet behind the call depends on it. So is one that was compiled before a kernel got launch bounds,
//! and has more registers than those leave. The module's [compiler](GpuModule::compiler_mut) keeps functions in a cache
//! where it has one.
//!
//! The trait asks for a `TargetIsa`, which nobody outside of Cranelift can implement. A stock 64-bit one stands in to
//! answer `isa()`; no code is made or verified with it. Front ends should ask [`Module::target_config`] instead.

use crate::analysis::calls::Summary;
use crate::clif;
use crate::clif::source::KernelOptions;
use crate::compile::{Code, Compiler, FunctionInput, Unit};
use crate::error::{Error, ErrorList, Errors, Place, Problem};
use crate::object::{self, DataContents, DataObject, RelocationKind};
use crate::properties::DeviceProperties;
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
use std::collections::{BTreeMap, BTreeSet};

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
    /// Functions that may be compiled again, as they were defined: those that return nothing may be made kernels later,
    /// others are `early`, or have more registers than the launch bounds of a kernel may leave them.
    kept: BTreeMap<FuncId, ir::Function>,
    /// Functions that were made kernels after they had been defined.
    marked_late: BTreeSet<FuncId>,
    /// Functions that call some that were not defined yet, and what was taken of their callees.
    early: Vec<(FuncId, Vec<Summary>)>,
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
            kept: BTreeMap::new(),
            marked_late: BTreeSet::new(),
            early: Vec::new(),
            stand_in,
        })
    }

    /// The compiler of what is defined from now on: to give it a cache, a table of places in the source, or to ask for
    /// remarks.
    pub fn compiler_mut(&mut self) -> &mut Compiler {
        &mut self.compiler
    }

    /// Makes a declared function a kernel. It may be defined already: then it is compiled again when the module is
    /// finished. Its launch bounds hold for all functions of the module, which are compiled again too if they were
    /// defined with more registers.
    pub fn declare_kernel(&mut self, function: FuncId, options: KernelOptions) {
        self.unit.summaries().bound(options);
        let before = self.kernels.insert(function, options);
        if before != Some(options) && self.defined_functions.contains(&function) {
            self.marked_late.insert(function);
        }
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
                Some(_) => continue,
            };
            errors.push(Error::new(Problem::Kernel(message), Place::default()));
        }
        errors.finish(())?;
        self.compile_marked_late()?;
        self.compile_again()?;
        self.compile_within_bounds()?;
        self.unit.finish()
    }

    /// Functions that were made kernels after they had been compiled as functions.
    fn compile_marked_late(&mut self) -> Result<(), Errors> {
        let (mut errors, mut changed) = (ErrorList::new(), Vec::new());
        for id in std::mem::take(&mut self.marked_late) {
            let declaration = self.declarations.get_function_decl(id);
            if declaration.signature.returns.is_empty() {
                changed.push(id);
                continue;
            }
            let place = Place {
                function: Some(format!("%{}", declaration.linkage_name(id)).into()),
                ..Place::default()
            };
            errors.push(clif::kernel_with_results(place, &declaration.signature));
        }
        errors.extend(self.compile_kept(&changed).err().into_iter().flatten());
        errors.finish(())
    }

    /// Functions that were compiled before a kernel got launch bounds, and have more registers than those leave.
    fn compile_within_bounds(&mut self) -> Result<(), Errors> {
        let functions = self.unit.functions();
        let registers: HashMap<&str, u32> = functions
            .map(|code| (code.name.as_str(), code.resources.registers))
            .collect();
        let (declarations, summaries) = (&self.declarations, self.unit.known());
        let beyond = self.kept.keys().copied().filter(|&id| {
            let name = declarations.get_function_decl(id).linkage_name(id);
            let kernel = self.kernels.get(&id).copied();
            let limit = summaries.register_limit(kernel);
            registers
                .get(&*name)
                .is_some_and(|&registers| registers > u32::from(limit))
        });
        let beyond: Vec<FuncId> = beyond.collect();
        drop(registers);
        self.compile_kept(&beyond)
    }

    /// Compiles functions again as they were defined, with what is known now.
    fn compile_kept(&mut self, functions: &[FuncId]) -> Result<(), Errors> {
        let mut errors = ErrorList::new();
        for id in functions {
            let Some(func) = self.kept.get(id) else {
                continue;
            };
            let declaration = self.declarations.get_function_decl(*id);
            let name = declaration.linkage_name(*id).into_owned();
            let declarations = &self.declarations;
            let input = FunctionInput {
                func,
                name: &name,
                kernel: self.kernels.get(id).copied(),
                linkage: linkage(declaration.linkage),
                namer: &|user: &UserExternalName| {
                    Self::symbol(declarations, user.namespace, user.index)
                },
            };
            if let Some(index) = self.unit.take_out(&name) {
                match self.compiler.compile_function(&input, &mut self.unit) {
                    Ok(()) => self.unit.put_back(index),
                    Err(found) => errors.extend(found),
                }
            }
        }
        errors.finish(())
    }

    /// Functions that call some that were defined later: lanes may come back from those one by one, which is known only
    /// now. Few functions wait for other threads, so few are compiled again.
    fn compile_again(&mut self) -> Result<(), Errors> {
        let Self {
            compiler,
            unit,
            declarations,
            kernels,
            early,
            kept,
            ..
        } = self;
        let name = |id: FuncId| {
            declarations
                .get_function_decl(id)
                .linkage_name(id)
                .into_owned()
        };
        let names: Vec<String> = early.iter().map(|(id, _)| name(*id)).collect();
        let namer =
            |user: &UserExternalName| Self::symbol(declarations, user.namespace, user.index);
        let inputs: Vec<FunctionInput<'_>> = (early.iter().zip(&names))
            .map(|((id, _), name)| FunctionInput {
                func: &kept[id],
                name,
                kernel: kernels.get(id).copied(),
                linkage: linkage(declarations.get_function_decl(*id).linkage),
                namer: &namer,
            })
            .collect();
        unit.announce(&inputs);
        for (input, (_, taken)) in inputs.iter().zip(early.iter()) {
            let known = unit.summaries().of_callees(input);
            let polls = |(known, taken): (&Summary, &Summary)| known.polls && !taken.polls;
            if known.iter().zip(taken).any(polls)
                && let Some(index) = unit.take_out(input.name)
            {
                compiler.compile_function(input, unit)?;
                unit.put_back(index);
            }
        }
        Ok(())
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
        // Callees that this module defines later are known when it is finished.
        for callee in context.func.dfg.ext_funcs.values() {
            let ir::ExternalName::User(reference) = callee.name else {
                continue;
            };
            let user = &context.func.params.user_named_funcs()[reference];
            if user.namespace == 0 && has(declarations.get_functions(), user.index) {
                let id = FuncId::from_u32(user.index);
                let callee = declarations.get_function_decl(id);
                if callee.linkage.is_definable() {
                    self.unit.summaries().expect(&callee.linkage_name(id));
                }
            }
        }
        let early = self.unit.summaries().announce_before_callees(&input);
        let taken = self.unit.summaries().of_callees(&input);
        self.compiler
            .compile_function(&input, &mut self.unit)
            .map_err(|errors| module_error(errors.in_function(&func_name, &name)))?;
        let last = self.unit.functions().last();
        let registers = last.map_or(0, |code| code.resources.registers);
        let device = DeviceProperties::ASSIGNED;
        let many = registers > device.registers_of_warps(device.warps);
        if early {
            self.early.push((id, taken));
        }
        if early || many || context.func.signature.returns.is_empty() {
            self.kept.insert(id, context.func.clone());
        }
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
