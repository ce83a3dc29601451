//! Launches: a compiled crate on a device, with arguments as the kernels' Rust signatures have them.

use crate::argument::{self, Argument, Passed, Ready};
use crate::compiled::{Compiled, Description};
use crate::descriptor::KernelDescription;
use crate::error::Error;
use crate::output;
use cranelift_thisgpu::driver;
use cranelift_thisgpu::sim::debug::Session;
use cranelift_thisgpu::{Buffer, Device, Grid, Report};
use std::sync::{Arc, Mutex, PoisonError};

/// A crate of kernels on a device.
#[derive(Clone)]
pub struct Module {
    module: driver::Module,
    description: Arc<Description>,
}

/// A kernel of a [`Module`].
#[derive(Clone)]
pub struct Kernel {
    module: Module,
    kernel: driver::Kernel,
    index: usize,
}

/// A launch being put together: an argument for each parameter of the Rust function.
#[must_use = "nothing runs until `run`"]
pub struct Launch<'a> {
    kernel: &'a Kernel,
    grid: Grid,
    shared: u32,
    given: Vec<Passed>,
}

impl Compiled {
    /// Loads the kernels onto a device.
    ///
    /// # Errors
    /// When the device has no room.
    pub fn load(&self, device: &Device) -> Result<Module, Error> {
        Ok(Module {
            module: device.load_elf(&self.object)?,
            description: Arc::new(self.description.clone()),
        })
    }
}

impl Module {
    /// A kernel by name.
    ///
    /// # Errors
    /// When there is none, with the kernels there are.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        let kernels = &self.description.kernels;
        let index = kernels.iter().position(|kernel| kernel.symbol == name);
        Ok(Kernel {
            kernel: self.module.kernel(name)?,
            // A kernel of the object that is not described is none that a macro made.
            index: index.ok_or_else(|| Error::Descriptor {
                kernel: name.into(),
                message: "it has no descriptor".into(),
            })?,
            module: self.clone(),
        })
    }

    /// What its kernels have printed and no launch has shown: those of a debugger.
    ///
    /// # Errors
    /// Memory that cannot be read.
    pub fn output(&self) -> Result<String, Error> {
        output::read(&self.module, &self.description.formats)
    }

    /// What is known of its kernels.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The module as the driver has it.
    pub fn driver(&self) -> &driver::Module {
        &self.module
    }
}

impl Kernel {
    /// What is known of it.
    pub fn description(&self) -> &KernelDescription {
        &self.module.description.kernels[self.index]
    }

    /// The kernel as the driver has it: resources, occupancy.
    pub fn driver(&self) -> &driver::Kernel {
        &self.kernel
    }

    /// Begins a launch.
    pub fn launch(&self, grid: Grid) -> Launch<'_> {
        Launch {
            kernel: self,
            grid,
            shared: 0,
            given: Vec::new(),
        }
    }
}

impl Launch<'_> {
    /// The next argument.
    pub fn arg(mut self, argument: impl Argument) -> Self {
        self.given.push(argument.pass());
        self
    }

    /// The next argument, as memory whose elements have so many bytes, with the extents of a view: for callers that do
    /// not know its type.
    pub fn memory(
        mut self,
        buffer: &Buffer,
        element: u64,
        extents: &[u32],
        writable: bool,
    ) -> Self {
        (self.given).push(Passed::memory(buffer, element, extents, writable));
        self
    }

    /// Dynamic shared memory in bytes: what `dynamic_shared` gives the kernel.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// Runs it to its end; what it printed goes to standard output.
    ///
    /// # Errors
    /// Arguments that do not match the parameters, an impossible launch, a fault of the kernel.
    pub fn run(self) -> Result<Report, Error> {
        let (outcome, text) = self.run_with_output();
        print!("{text}");
        outcome
    }

    /// Runs it to its end, and gives what it printed.
    pub fn run_with_output(self) -> (Result<Report, Error>, String) {
        let values = match self.values() {
            Ok(values) => values,
            Err(error) => return (Err(error), String::new()),
        };
        let arguments: Vec<&dyn driver::Argument> = values
            .iter()
            .map(|value| value as &dyn driver::Argument)
            .collect();
        let outcome = self
            .kernel
            .kernel
            .launch(self.grid)
            .shared(self.shared)
            .args(&arguments)
            .run();
        let module = &self.kernel.module;
        match output::take(&module.module, &module.description.formats) {
            Ok(text) => (outcome.map_err(Error::from), text),
            Err(error) => (outcome.map_err(Error::from).and(Err(error)), String::new()),
        }
    }

    /// Stands before the first instruction and goes on when it is told to, for a debugger.
    ///
    /// # Errors
    /// Arguments that do not match the parameters, an impossible launch, a device without a debugger.
    pub fn debug(self) -> Result<Session, Error> {
        let values = self.values()?;
        let arguments: Vec<&dyn driver::Argument> = values
            .iter()
            .map(|value| value as &dyn driver::Argument)
            .collect();
        let launch = self.kernel.kernel.launch(self.grid);
        let session = launch.shared(self.shared).args(&arguments).debug();
        Ok(session?)
    }

    /// The values as the entry takes them.
    fn values(&self) -> Result<Vec<Ready>, Error> {
        argument::values(self.kernel.description(), self.grid, &self.given)
    }
}

/// Kernels that a build script has compiled, in the program that includes them.
pub struct Embedded {
    object: &'static [u8],
    description: &'static str,
    /// By the identities of devices; those that were used last.
    loaded: Mutex<Vec<(usize, Module)>>,
}

/// Devices that a program is taken to use in turns. A module keeps its device alive, so not all are remembered.
const REMEMBERED: usize = 4;

impl Embedded {
    /// What the generated code says.
    #[doc(hidden)]
    pub const fn new(object: &'static [u8], description: &'static str) -> Embedded {
        Embedded {
            object,
            description,
            loaded: Mutex::new(Vec::new()),
        }
    }

    /// The kernels on a device: loaded the first time, remembered after that.
    ///
    /// # Errors
    /// When the device has no room.
    pub fn module(&self, device: &Device) -> Result<Module, Error> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, module)) = loaded.iter().find(|known| known.0 == device.identity()) {
            return Ok(module.clone());
        }
        let description: Description = serde_json::from_str(self.description)
            .map_err(|error| Error::Unexpected(error.to_string()))?;
        let module = Module {
            module: device.load_elf(self.object)?,
            description: Arc::new(description),
        };
        loaded.insert(0, (device.identity(), module.clone()));
        loaded.truncate(REMEMBERED);
        Ok(module)
    }
}
