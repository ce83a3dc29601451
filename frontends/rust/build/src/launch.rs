//! Launches: a compiled crate on a device, with arguments as the kernels' Rust signatures have them.

use crate::argument::{self, Argument, Passed};
use crate::compiled::{Compiled, Description};
use crate::descriptor::{KernelDescription, StaticDescription};
use crate::error::{Error, Message};
use crate::{names, output, runtime};
use cranelift_thisgpu::driver::{self, Pod};
use cranelift_thisgpu::sim::debug::Session;
use cranelift_thisgpu::{Buffer, Device, DeviceError, Fault, Grid, Report, Stream};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use thisgpu_llvm::panics::Reason;

/// A crate of kernels on a device.
#[derive(Clone)]
pub struct Module {
    module: driver::Module,
    description: Arc<Description>,
    device: Device,
    /// The heap of the launch that was started last.
    heap: Arc<Mutex<Option<Buffer>>>,
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
    heap: u64,
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
            device: device.clone(),
            heap: Arc::default(),
        })
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Module")
            .field(&self.description.name)
            .finish()
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

    /// The memory of a static marked `#[device_static]`, for the host to fill: the elements of the array that it is, or
    /// one.
    ///
    /// # Errors
    /// None of this name that a kernel reads; other elements.
    pub fn device_static<T: Pod>(&self, name: &str) -> Result<Buffer<T>, Error> {
        let Some((of, buffer)) = self.statics().find(|(of, _)| of.name == name) else {
            let known: Vec<&str> = self.statics().map(|(of, _)| of.name.as_str()).collect();
            return Err(Error::NoStatic {
                name: name.into(),
                known: if known.is_empty() {
                    "none".into()
                } else {
                    known.join(", ")
                },
            });
        };
        if size_of::<T>() != of.elements.size as usize {
            return Err(Error::StaticElements {
                name: name.into(),
                elements: argument::elements(&of.elements),
                wanted: std::any::type_name::<T>(),
            });
        }
        Ok(buffer.cast()?)
    }

    /// The statics that the host fills, as far as kernels read them, and their memory.
    fn statics(&self) -> impl Iterator<Item = (&StaticDescription, &Buffer)> {
        let statics = self.description.statics.iter();
        statics.filter_map(|of| Some((of, self.module.data(&of.symbol())?)))
    }

    /// What its kernels have printed and no launch has shown: those of a debugger.
    ///
    /// # Errors
    /// Memory that cannot be read.
    pub fn output(&self) -> Result<String, Error> {
        output::read(&self.module, &self.description.formats)
    }

    /// The message of a panic that no launch has shown: that of a debugger.
    ///
    /// # Errors
    /// Memory that cannot be read.
    pub fn panic_message(&self) -> Result<Option<Message>, Error> {
        runtime::message(&self.module)
    }

    /// What a launch would have said of a fault at which a debugger stands: an [`Error::Panic`], with the message that
    /// no launch has shown; none of a fault that is no panic.
    ///
    /// # Errors
    /// Memory that cannot be read.
    pub fn panic_at(&self, fault: &Fault) -> Result<Option<Error>, Error> {
        let fault = DeviceError::Fault {
            fault: Box::new(fault.clone()),
            report: Box::default(),
        };
        let error = Error::from(fault);
        let is_panic = matches!(error, Error::Panic { .. });
        let said = if is_panic {
            self.panic_message()?
        } else {
            None
        };
        Ok(is_panic.then(|| self.with_message(error, said)))
    }

    /// What the device says, with what a panic has said, and how full the heap was where it had no room.
    fn explained(&self, error: DeviceError) -> Error {
        // Memory that cannot be read has been said to be a fault before.
        let said = runtime::take_message(&self.module).ok().flatten();
        self.with_message(error.into(), said)
    }

    /// An error with what a panic has said.
    fn with_message(&self, mut error: Error, said: Option<Message>) -> Error {
        if let Error::Panic {
            what,
            message,
            heap,
            ..
        } = &mut error
        {
            *message = said.map(Box::new);
            if *what == Reason::Memory.meaning() {
                *heap = runtime::heap(&self.module);
            }
        }
        error
    }

    /// The outcome of a launch, and what was printed.
    fn told(&self, mut outcome: Result<Report, DeviceError>) -> (Result<Report, Error>, String) {
        names::say_in(&mut outcome);
        let outcome = outcome.map_err(|error| self.explained(error));
        match output::take(&self.module, &self.description.formats) {
            Ok(text) => (outcome, text),
            Err(error) => (outcome.and(Err(error)), String::new()),
        }
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
            heap: runtime::HEAP_BYTES,
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

    /// Bytes that its threads can allocate together, if its kernels allocate and bring no allocator of their own:
    /// 16 MiB unless said otherwise. They are freed with the launch, unless a static of the program may hold an address
    /// (kernels may change it, and it has 8 bytes or more): then the first launch's heap stays with the module, and a
    /// later launch cannot have a larger one.
    pub fn heap(mut self, bytes: u64) -> Self {
        self.heap = bytes;
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
        let outcome = match self.driver() {
            Ok(launch) => launch.run(),
            Err(error) => return (Err(error), String::new()),
        };
        self.kernel.module.told(outcome)
    }

    /// Puts it on a stream, and does not wait.
    ///
    /// # Errors
    /// Arguments that do not match the parameters; a stream of another device. What is wrong with the launch itself
    /// comes from [`Pending::wait`].
    pub fn enqueue(self, stream: &Stream) -> Result<Pending, Error> {
        Ok(Pending {
            pending: self.driver()?.enqueue(stream)?,
            module: self.kernel.module.clone(),
        })
    }

    fn give_heap(&self) -> Result<(), Error> {
        let module = &self.kernel.module;
        let mut heap = module.heap.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(holder), Some(memory)) = (&module.description.heap_holder, &*heap) {
            // What a static holds must be there as long as the static.
            if self.heap > memory.bytes() {
                return Err(Error::Heap {
                    holder: holder.clone(),
                    bytes: memory.bytes(),
                    wanted: self.heap,
                });
            }
            return runtime::limit_heap(&module.module, self.heap);
        }
        *heap = runtime::give_heap(&module.device, &module.module, self.heap)?;
        Ok(())
    }

    /// Stands before the first instruction and goes on when it is told to, for a debugger.
    ///
    /// # Errors
    /// Arguments that do not match the parameters, an impossible launch, a device without a debugger.
    pub fn debug(self) -> Result<Session, Error> {
        Ok(self.driver()?.debug()?)
    }

    /// The launch as the driver has it, after all checks.
    fn driver(&self) -> Result<driver::Launch<'_>, Error> {
        let description = self.kernel.description();
        let statics: Vec<_> = self.kernel.module.statics().collect();
        let values = argument::values(description, &statics, self.grid, &self.given)?;
        self.give_heap()?;
        let values: Vec<&dyn driver::Argument> = (values.iter())
            .map(|value| value as &dyn driver::Argument)
            .collect();
        let launch = self.kernel.kernel.launch(self.grid);
        Ok(launch.shared(self.shared).args(&values))
    }
}

/// A launch on a stream. It keeps its module and the buffers among its arguments alive until it has ended. Dropped, it
/// runs all the same, and an error stays with the stream.
#[must_use = "wait for it, or the stream keeps its error"]
#[derive(Debug)]
pub struct Pending {
    pending: driver::Pending,
    module: Module,
}

impl Pending {
    /// Waits until it has ended; what its kernels and others of the module have printed so far goes to standard output.
    ///
    /// # Errors
    /// Its panic or fault, or why it could not be launched; that a fault before it on the stream has skipped it.
    pub fn wait(self) -> Result<Report, Error> {
        let (outcome, text) = self.wait_with_output();
        print!("{text}");
        outcome
    }

    /// Waits until it has ended, and gives what its kernels and others of the module have printed so far.
    pub fn wait_with_output(self) -> (Result<Report, Error>, String) {
        let outcome = self.pending.wait();
        self.module.told(outcome)
    }

    /// The launch as the driver has it: whether it is done, how far it is, how to cancel it.
    pub fn driver(&self) -> &driver::Pending {
        &self.pending
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
            device: device.clone(),
            heap: Arc::default(),
        };
        loaded.insert(0, (device.identity(), module.clone()));
        loaded.truncate(REMEMBERED);
        Ok(module)
    }
}
