//! The variables of the module: which buffers a launch binds, where workgroup memory lies, and the kernel around the
//! entry point's body.

use super::function::first_span;
use super::memory::{Address, Space};
use super::places::{Place, Storage};
use super::types::Ty;
use super::{Result, Translator};
use crate::error::{Reason, invalid, unsupported};
use crate::interface::{Access, BoundBuffer, Interface, threads};
use crate::mistakes::{Mistake, planted};
use cranelift_codegen::ir;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData};
use cranelift_thisgpu::DeviceProperties;
use cranelift_thisgpu::build::GpuBuilder;
use cranelift_thisgpu::compile::library;
use naga::proc::Layouter;
use naga::valid::ModuleInfo;
use naga::{
    AddressSpace, ArraySize, GlobalVariable, Handle, Module, ResourceBinding, Span, StorageAccess,
    TypeInner,
};

/// Workgroup memory is given in pieces of so many bytes, what one thread zeroes at once.
const SHARED_STEP: u32 = 4;

/// What a launch gives, and which variables it is.
pub(super) struct Plan {
    pub interface: Interface,
    /// The variable of each buffer of the interface.
    buffers: Vec<Handle<GlobalVariable>>,
    /// Variables in workgroup memory, with their offsets.
    workgroup: Vec<(Handle<GlobalVariable>, u32)>,
    private: Vec<Handle<GlobalVariable>>,
    immediates: Option<Handle<GlobalVariable>>,
}

impl Plan {
    /// Of an entry point, by its index. `size_span` is where its size is said.
    pub(super) fn new(
        module: &Module,
        info: &ModuleInfo,
        entry: usize,
        layouter: &Layouter,
        size_span: Span,
    ) -> std::result::Result<Plan, (Span, Reason)> {
        let point = &module.entry_points[entry];
        let uses = info.get_entry_point(entry);
        let most = DeviceProperties::ASSIGNED.block_threads;
        if threads(point.workgroup_size) > most {
            let [x, y, z] = point.workgroup_size;
            let message = format!(
                "a workgroup of {x} by {y} by {z} invocations; a block has at most {most} threads"
            );
            return Err((size_span, unsupported(message)));
        }
        let mut bound = Vec::new();
        let mut plan = Plan {
            interface: Interface {
                entry: point.name.clone(),
                symbol: symbol(&point.name),
                workgroup_size: point.workgroup_size,
                shared_bytes: 0,
                buffers: Vec::new(),
                immediate_bytes: 0,
            },
            buffers: Vec::new(),
            workgroup: Vec::new(),
            private: Vec::new(),
            immediates: None,
        };
        let mut shared: u64 = 0;
        for (handle, variable) in module.global_variables.iter() {
            if uses[handle].is_empty() {
                continue;
            }
            let at = |reason| (module.global_variables.get_span(handle), reason);
            let layout = layouter[variable.ty];
            match variable.space {
                AddressSpace::Uniform | AddressSpace::Storage { .. } => {
                    let binding = (variable.binding)
                        .ok_or_else(|| at(invalid("a buffer without a binding")))?;
                    bound.push((binding, handle));
                }
                AddressSpace::WorkGroup => {
                    let offset = shared.next_multiple_of(u64::from(layout.alignment * 1u32));
                    plan.workgroup
                        .push((handle, offset.min(u32::MAX.into()) as u32));
                    shared = offset + u64::from(layout.size);
                }
                AddressSpace::Private => plan.private.push(handle),
                AddressSpace::Immediate => {
                    plan.immediates = Some(handle);
                    plan.interface.immediate_bytes = layout.size;
                }
                AddressSpace::Handle => {
                    return Err(at(unsupported(match module.types[variable.ty].inner {
                        TypeInner::BindingArray { .. } => "arrays of bindings",
                        TypeInner::AccelerationStructure { .. } => "acceleration structures",
                        _ => "textures and samplers",
                    })));
                }
                space => return Err(at(unsupported(format!("variables in {space:?}")))),
            }
        }
        let most = DeviceProperties::ASSIGNED.shared_bytes;
        let shared = shared.next_multiple_of(SHARED_STEP.into());
        if shared > u64::from(most) {
            let message = format!("{shared} bytes of workgroup memory; there are {most}");
            let last = plan.workgroup.last();
            let span = last.map_or(Span::UNDEFINED, |v| module.global_variables.get_span(v.0));
            return Err((span, unsupported(message)));
        }
        plan.interface.shared_bytes = shared as u32;
        bound.sort_by_key(|(binding, _)| (binding.group, binding.binding));
        for (binding, handle) in bound {
            let buffer = bound_buffer(module, layouter, handle, binding, plan.buffers.len() * 2);
            let buffer =
                buffer.map_err(|reason| (module.global_variables.get_span(handle), reason))?;
            plan.interface.buffers.push(buffer);
            plan.buffers.push(handle);
        }
        Ok(plan)
    }

    /// The types of the kernel's parameters.
    pub(super) fn parameter_types(&self) -> Vec<ir::Type> {
        let buffers = self.buffers.iter().flat_map(|_| [I64, I32]);
        buffers.chain(self.immediates.map(|_| I64)).collect()
    }
}

fn bound_buffer(
    module: &Module,
    layouter: &Layouter,
    handle: Handle<GlobalVariable>,
    binding: ResourceBinding,
    parameter: usize,
) -> Result<BoundBuffer> {
    let variable = &module.global_variables[handle];
    let access = match variable.space {
        AddressSpace::Storage { access } if access.contains(StorageAccess::STORE) => {
            Access::ReadWrite
        }
        AddressSpace::Storage { .. } => Access::Read,
        _ => Access::Uniform,
    };
    let inner = &module.types[variable.ty].inner;
    if let TypeInner::BindingArray { .. } = inner {
        return Err(unsupported("arrays of bindings"));
    }
    Ok(BoundBuffer {
        group: binding.group,
        binding: binding.binding,
        name: variable.name.clone(),
        access,
        least_bytes: layouter[variable.ty].size.into(),
        has_runtime_length: has_runtime_length(module, inner),
        parameter,
    })
}

/// Whether a type ends with an array without a length.
fn has_runtime_length(module: &Module, inner: &TypeInner) -> bool {
    match inner {
        TypeInner::Array { size, .. } => *size == ArraySize::Dynamic,
        TypeInner::Struct { members, .. } => (members.last())
            .is_some_and(|last| has_runtime_length(module, &module.types[last.ty].inner)),
        _ => false,
    }
}

/// A name as a symbol: of letters that CLIF's names have.
fn symbol(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(letter).collect();
    // `gpu_` begins the names of intrinsics. A function of the library would be replaced where the body calls it.
    match name.starts_with("gpu_") || library::provides(&name) {
        true => format!("entry_{name}"),
        false => name,
    }
}

impl Translator<'_, '_, '_> {
    /// The kernel.
    pub(super) fn kernel(&mut self, plan: &Plan, parameters: &[ir::Value]) -> Result<()> {
        self.at(first_span(self.frame.function));
        let alignment = self.integer(I32, BoundBuffer::ALIGNMENT as i64);
        let mut addresses = parameters.iter().copied();
        for (number, &handle) in plan.buffers.iter().enumerate() {
            let (Some(address), Some(length)) = (addresses.next(), addresses.next()) else {
                return Err(invalid("a kernel with too few parameters"));
            };
            let base = self
                .builder
                .intrinsic("gpu_assume_aligned", &[address, alignment]);
            self.lengths.push(length);
            let decorations = self.module.global_variables[handle].memory_decorations;
            let relaxed = !decorations.is_empty();
            let space = Space::Buffer {
                number,
                readonly: plan.interface.buffers[number].access != Access::ReadWrite && !relaxed,
                relaxed,
            };
            self.global(handle, base, 0, space);
        }
        if let (Some(handle), Some(address)) = (plan.immediates, addresses.next()) {
            let base = self
                .builder
                .intrinsic("gpu_assume_aligned", &[address, alignment]);
            self.global(handle, base, 0, Space::Immediates);
        }
        if !plan.workgroup.is_empty() {
            let base = self.builder.shared_memory(I32);
            for &(handle, offset) in &plan.workgroup {
                self.global(handle, base, offset, Space::Workgroup);
            }
        }
        // Zeros of constants in memory are written here once all are known.
        let [prologue, body] = [(); 2].map(|()| self.builder.create_block());
        self.builder.ins().jump(prologue, &[]);
        self.builder.switch_to_block(prologue);
        self.builder.switch_to_block(body);
        let zeroes = self.options.zero_workgroup && !planted(Mistake::WorkgroupZeros);
        if !plan.workgroup.is_empty() && zeroes {
            self.zero_workgroup(plan.interface.shared_bytes)?;
        }
        for &handle in &plan.private {
            self.private(handle)?;
        }
        self.entry_body()?;
        self.builder.switch_to_block(prologue);
        self.write_zeros()?;
        self.builder.ins().jump(body, &[]);
        Ok(())
    }

    fn global(
        &mut self,
        handle: Handle<GlobalVariable>,
        base: ir::Value,
        offset: u32,
        space: Space,
    ) {
        let address = Address {
            base,
            offset,
            space,
            inside: None,
        };
        let place = Place {
            ty: Ty::Handle(self.module.global_variables[handle].ty),
            storage: Storage::Memory(address),
        };
        self.globals.insert(handle, place);
    }

    fn private(&mut self, handle: Handle<GlobalVariable>) -> Result<()> {
        let variable = &self.module.global_variables[handle];
        let place = self.variable(Ty::Handle(variable.ty), self.reach.global(handle))?;
        match variable.init {
            Some(init) => {
                let value = self.global_value(init, &place.ty)?;
                self.store(&place, &value)?;
            }
            None => self.clear(&place)?,
        }
        self.globals.insert(handle, place);
        Ok(())
    }

    /// A variable of the module.
    pub(super) fn global_place(&self, handle: Handle<GlobalVariable>) -> Result<Place> {
        let place = self.globals.get(&handle).cloned();
        place.ok_or_else(|| match self.module.global_variables[handle].space {
            AddressSpace::Handle => unsupported("textures and samplers"),
            _ => invalid("a variable that the entry point does not use"),
        })
    }

    /// All threads of the workgroup write zeros to its memory, and wait for each other.
    fn zero_workgroup(&mut self, bytes: u32) -> Result<()> {
        let threads = threads(self.workgroup_size);
        let own = self.local_index();
        let step = self.integer(I32, SHARED_STEP.into());
        let first = self.builder.ins().imul(own, step);
        let [test, body, behind] = [(); 3].map(|()| self.builder.create_block());
        let offset = self.builder.append_block_param(test, I32);
        self.builder.ins().jump(test, &[first.into()]);
        self.builder.switch_to_block(test);
        let end = self.integer(I32, bytes.into());
        let goes_on = self
            .builder
            .ins()
            .icmp(IntCC::UnsignedLessThan, offset, end);
        (self.builder.ins()).brif(goes_on, body, &[], behind, &[]);
        self.builder.switch_to_block(body);
        let base = self.builder.shared_memory(I32);
        let place = self.builder.ins().iadd(base, offset);
        let zero = self.integer(I32, 0);
        let flags = MemFlagsData::new().with_aligned();
        self.builder.ins().store(flags, zero, place, 0);
        let turn = i64::from(threads) * i64::from(SHARED_STEP);
        let next = self.builder.ins().iadd_imm_u(offset, turn);
        self.builder.ins().jump(test, &[next.into()]);
        self.builder.switch_to_block(behind);
        self.builder.call_intrinsic("gpu_bar_sync", &[]);
        Ok(())
    }
}
