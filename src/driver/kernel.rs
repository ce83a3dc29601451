//! Modules and their kernels.

use super::buffer::Buffer;
use super::device::Device;
use super::error::DeviceError;
use super::link::{Linked, link};
use super::{ModuleId, Occupancy};
use crate::object::{self, Linker, Object, Resources};
use crate::text::did_you_mean;
use std::sync::Arc;

/// Loaded code. Clones are the same module; it is unloaded with the last of them and of its kernels.
#[derive(Clone)]
pub struct Module {
    inner: Arc<Inner>,
}

struct Inner {
    id: ModuleId,
    kernels: Vec<Entry>,
    data: Vec<(String, Buffer)>,
    /// Behind the data, which is given back before the device ends.
    device: Device,
}

pub(super) struct Entry {
    pub name: String,
    /// Code address of its first instruction.
    pub address: u32,
    pub kernel: object::Kernel,
    pub resources: Resources,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // It was loaded and nobody else unloads it, so this cannot fail.
        let _ = self.device.driver().unload(self.id);
    }
}

impl Device {
    /// Loads code: an [`Object`], or what has one.
    ///
    /// # Errors
    /// Symbols without a value; no room.
    pub fn load(&self, code: &impl AsRef<Object>) -> Result<Module, DeviceError> {
        Module::load(self.clone(), code.as_ref())
    }

    /// Links code and loads it: several [`Object`]s, or what has them. Messages call them `object 1` and so on; a
    /// [`Linker`] gives them names.
    ///
    /// # Errors
    /// What does not link, see [`Linker::link`]; no room.
    pub fn load_all<'a, C: AsRef<Object> + 'a>(
        &self,
        codes: impl IntoIterator<Item = &'a C>,
    ) -> Result<Module, DeviceError> {
        let mut linker = Linker::new();
        for (index, code) in codes.into_iter().enumerate() {
            linker = linker.add(format!("object {}", index + 1), code);
        }
        self.load(&linker.link().map_err(DeviceError::Link)?)
    }

    /// Loads an ELF object.
    ///
    /// # Errors
    /// No object of this machine; symbols without a value; no room.
    pub fn load_elf(&self, bytes: &[u8]) -> Result<Module, DeviceError> {
        Module::load(self.clone(), &Object::read(bytes)?)
    }
}

impl Module {
    fn load(device: Device, object: &Object) -> Result<Module, DeviceError> {
        let Linked {
            image,
            functions,
            data,
        } = link(&device, object)?;
        let kernels = object
            .kernels()
            .map(|(function, kernel)| Entry {
                name: function.name.clone(),
                address: functions[&function.name],
                kernel: kernel.clone(),
                resources: function.resources,
            })
            .collect();
        let id = device.driver().load(image)?;
        Ok(Module {
            inner: Arc::new(Inner {
                device,
                id,
                kernels,
                data,
            }),
        })
    }

    /// The kernel of a name, with or without `%`.
    ///
    /// # Errors
    /// When there is none, with the kernels there are.
    pub fn kernel(&self, name: &str) -> Result<Kernel, DeviceError> {
        let name = name.trim_start_matches('%');
        match self.inner.kernels.iter().position(|k| k.name == name) {
            Some(index) => Ok(Kernel {
                module: self.clone(),
                index,
            }),
            None => {
                let known = self.kernels().collect::<Vec<_>>().join(", ");
                let known = if known.is_empty() {
                    "none".to_string()
                } else {
                    known + &did_you_mean(name, self.kernels())
                };
                Err(DeviceError::NoKernel {
                    name: name.to_string(),
                    known,
                })
            }
        }
    }

    /// Names of its kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.inner.kernels.iter().map(|k| k.name.as_str())
    }

    /// The memory of a data object.
    pub fn data(&self, name: &str) -> Option<&Buffer> {
        self.inner.data.iter().find(|d| d.0 == name).map(|d| &d.1)
    }
}

/// A kernel of a loaded module.
#[derive(Clone)]
pub struct Kernel {
    module: Module,
    index: usize,
}

impl Kernel {
    pub(super) fn entry(&self) -> &Entry {
        &self.module.inner.kernels[self.index]
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.entry().name
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[object::Parameter] {
        &self.entry().kernel.parameters
    }

    /// What it needs of the machine.
    pub fn resources(&self) -> Resources {
        self.entry().resources
    }

    /// Threads of a block, at most, if it was compiled with launch bounds.
    pub fn max_threads(&self) -> Option<u32> {
        self.entry().kernel.max_threads
    }

    /// How many of its blocks a multiprocessor of its device holds, if they have so many threads and so many bytes of
    /// dynamic shared memory.
    pub fn occupancy(&self, threads: u32, dynamic_shared: u32) -> Occupancy {
        let Entry {
            kernel, resources, ..
        } = self.entry();
        let shared = kernel.shared_bytes.saturating_add(dynamic_shared);
        let properties = self.device().properties();
        properties.occupancy(threads, resources.registers, shared)
    }

    pub(super) fn device(&self) -> &Device {
        &self.module.inner.device
    }

    pub(super) fn module_id(&self) -> ModuleId {
        self.module.inner.id
    }
}
