//! Modules, kernels, launches.

use super::argument::{self, Argument, Value};
use super::device::{Buffer, Device};
use super::error::DeviceError;
use super::link::{Linked, link};
use super::{DriverError, ModuleId};
use crate::abi::bank0::{MAX_PARAMETERS, PARAMETERS};
use crate::launch::{LaunchError, LaunchRequest, Progress, Report};
use crate::object::{self, Object, Resources};
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

struct Entry {
    name: String,
    address: u32,
    kernel: object::Kernel,
    resources: Resources,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // It was loaded and nobody else unloads it, so this cannot fail.
        let _ = self.device.driver().unload(self.id);
    }
}

impl Module {
    pub(super) fn load(device: Device, object: &Object) -> Result<Module, DeviceError> {
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
    fn entry(&self) -> &Entry {
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

    /// Begins a launch.
    pub fn launch(&self, grid: Grid) -> Launch<'_> {
        Launch {
            kernel: self,
            grid,
            shared: 0,
            values: Vec::new(),
            progress: None,
        }
    }
}

/// How many threads: CTAs, and threads of a CTA, in x, y, z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// CTAs.
    pub blocks: [u32; 3],
    /// Threads of a CTA.
    pub threads: [u32; 3],
}

impl Grid {
    /// As given.
    pub fn new(blocks: [u32; 3], threads: [u32; 3]) -> Grid {
        Grid { blocks, threads }
    }

    /// At least one thread an element, in one dimension, `threads` to a CTA. No elements give one CTA.
    pub fn for_elems(elements: impl TryInto<u64>, threads: u32) -> Grid {
        let blocks = elements
            .try_into()
            .unwrap_or(0)
            .div_ceil(u64::from(threads.max(1)))
            .max(1);
        Grid {
            blocks: [u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1],
            threads: [threads, 1, 1],
        }
    }
}

/// A launch being put together.
pub struct Launch<'a> {
    kernel: &'a Kernel,
    grid: Grid,
    shared: u32,
    values: Vec<Value>,
    progress: Option<&'a Progress>,
}

impl<'a> Launch<'a> {
    /// The next argument.
    pub fn arg(mut self, argument: impl Argument) -> Self {
        self.values.push(argument.value());
        self
    }

    /// Dynamic shared memory in bytes, behind the kernel's static one.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// Where the launch counts how far it is, and may be told to end.
    pub fn progress(mut self, progress: &'a Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// Arguments that do not match the parameters, an impossible launch, a fault of the kernel.
    pub fn run(self) -> Result<Report, DeviceError> {
        let mut report = self.run_to_report()?;
        match report.fault.take() {
            None => Ok(report),
            Some(fault) => {
                report.fault = Some(fault.clone());
                Err(DeviceError::Fault {
                    fault: Box::new(fault),
                    report: Box::new(report),
                })
            }
        }
    }

    /// Runs it to its end or fault; the report has the fault.
    ///
    /// # Errors
    /// Arguments that do not match the parameters, an impossible launch.
    pub fn run_to_report(self) -> Result<Report, DeviceError> {
        let parameters = self.parameters()?;
        let entry = self.kernel.entry();
        let inner = &self.kernel.module.inner;
        let request = LaunchRequest {
            kernel: &entry.name,
            entry: entry.address,
            grid: self.grid.blocks,
            block: self.grid.threads,
            static_shared: entry.kernel.shared_bytes,
            dynamic_shared: self.shared,
            local_bytes: entry.resources.local_bytes,
            parameters: &parameters,
            progress: self.progress,
        };
        Ok(inner.device.driver().launch(inner.id, &request)?)
    }

    /// The bytes of the parameters, after all checks.
    fn parameters(&self) -> Result<Vec<u8>, DeviceError> {
        let (kernel, expected) = (self.kernel.name().to_string(), self.kernel.parameters());
        if self.values.len() != expected.len() {
            return Err(DeviceError::ArgumentCount {
                kernel,
                expected: expected.len(),
                given: self.values.len(),
            });
        }
        let mut bytes = Vec::new();
        for (index, (value, parameter)) in self.values.iter().zip(expected).enumerate() {
            if !value.fits(parameter) {
                let (given, expected) = (value.describe(), argument::describe(parameter));
                return Err(DeviceError::Argument {
                    kernel,
                    index,
                    given,
                    expected,
                });
            }
            if value
                .owner
                .is_some_and(|owner| owner != self.kernel.module.inner.device.identity())
            {
                return Err(DeviceError::OtherDevice { kernel, index });
            }
            let start = parameter.offset.saturating_sub(PARAMETERS) as usize;
            let end = start + value.bytes.len();
            if end > MAX_PARAMETERS as usize {
                return Err(DriverError::from(LaunchError::Parameters(end)).into());
            }
            bytes.resize(bytes.len().max(end), 0);
            bytes[start..end].copy_from_slice(&value.bytes);
        }
        Ok(bytes)
    }
}
