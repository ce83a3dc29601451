//! Launches: a compiled crate on a device, with arguments as the kernels' Rust signatures have them.

use crate::compiled::{Compiled, Description};
use crate::descriptor::{Class, KernelDescription, Number, Parameter};
use crate::error::{Error, Message, Mismatch};
use crate::{output, runtime};
use cranelift_thisgpu::driver::argument::Value;
use cranelift_thisgpu::driver::{self, Pod};
use cranelift_thisgpu::sim::debug::Session;
use cranelift_thisgpu::{Buffer, Device, DeviceError, Grid, Report};
use std::sync::{Arc, Mutex, PoisonError};
use thisgpu_llvm::panics::Reason;

/// A crate of kernels on a device.
#[derive(Clone)]
pub struct Module {
    module: driver::Module,
    description: Arc<Description>,
    device: Device,
    /// The memory of the launch that was started last.
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

/// A number by value, or memory.
#[derive(Clone, Debug)]
pub struct Passed {
    value: Value,
    /// Elements, bytes of one, and whether the kernel may write them; none of a number.
    memory: Option<(u64, u64, bool)>,
    name: &'static str,
}

/// What a parameter can take.
pub trait Argument {
    /// As it is passed.
    fn pass(self) -> Passed;
}

macro_rules! numbers {
    ($($type:ident)*) => {
        $(
            impl Argument for $type {
                fn pass(self) -> Passed {
                    Passed {
                        value: driver::Argument::value(&self),
                        memory: None,
                        name: stringify!($type),
                    }
                }
            }
        )*
    };
}

numbers!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

impl Argument for bool {
    fn pass(self) -> Passed {
        Passed {
            value: driver::Argument::value(&u8::from(self)),
            memory: None,
            name: "bool",
        }
    }
}

impl<T: Pod> Argument for &Buffer<T> {
    fn pass(self) -> Passed {
        Passed {
            value: driver::Argument::value(self),
            memory: Some((self.len(), size_of::<T>() as u64, false)),
            name: std::any::type_name::<T>(),
        }
    }
}

impl<T: Pod> Argument for &mut Buffer<T> {
    fn pass(self) -> Passed {
        let mut passed = (&*self).pass();
        passed.memory = Some((self.len(), size_of::<T>() as u64, true));
        passed
    }
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

    /// The message of a panic that no launch has shown: that of a debugger.
    ///
    /// # Errors
    /// Memory that cannot be read.
    pub fn panic_message(&self) -> Result<Option<Message>, Error> {
        runtime::message(&self.module)
    }

    /// What the device says, with what a panic has said, and how full the heap was where it had no room.
    fn explained(&self, error: DeviceError) -> Error {
        let mut error = Error::from(error);
        if let Error::Panic {
            what,
            message,
            heap,
            ..
        } = &mut error
        {
            // Memory that cannot be read has been said to be a fault before.
            *message = runtime::take_message(&self.module)
                .ok()
                .flatten()
                .map(Box::new);
            if *what == Reason::Memory.meaning() {
                *heap = runtime::heap(&self.module);
            }
        }
        error
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

    /// The next argument, as memory whose elements have so many bytes: for callers that do not know their type.
    pub fn memory(mut self, buffer: &Buffer, element: u64, writable: bool) -> Self {
        self.given.push(Passed {
            value: driver::Argument::value(buffer),
            memory: Some((buffer.len() / element.max(1), element, writable)),
            name: "bytes",
        });
        self
    }

    /// Dynamic shared memory in bytes: what `dynamic_shared` gives the kernel.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// Bytes that its threads can allocate together, if its kernels allocate and bring no allocator of their own: 16 MiB
    /// unless said otherwise. They are freed with the launch.
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
        let ready = self.values().and_then(|values| {
            self.give_heap()?;
            Ok(values)
        });
        let values = match ready {
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
        let outcome = outcome.map_err(|error| module.explained(error));
        match output::take(&module.module, &module.description.formats) {
            Ok(text) => (outcome, text),
            Err(error) => (outcome.and(Err(error)), String::new()),
        }
    }

    fn give_heap(&self) -> Result<(), Error> {
        let module = &self.kernel.module;
        let memory = runtime::give_heap(&module.device, &module.module, self.heap)?;
        *module.heap.lock().unwrap_or_else(PoisonError::into_inner) = memory;
        Ok(())
    }

    /// Stands before the first instruction and goes on when it is told to, for a debugger.
    ///
    /// # Errors
    /// Arguments that do not match the parameters, an impossible launch, a device without a debugger.
    pub fn debug(self) -> Result<Session, Error> {
        let values = self.values()?;
        self.give_heap()?;
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
        let kernel = self.kernel.description();
        if kernel.parameters.len() != self.given.len() {
            return Err(Error::ArgumentCount {
                kernel: kernel.name.clone(),
                expected: kernel.parameters.len(),
                names: kernel
                    .parameters
                    .iter()
                    .map(|parameter| parameter.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
                given: self.given.len(),
            });
        }
        let mut values = Vec::new();
        for (parameter, passed) in kernel.parameters.iter().zip(&self.given) {
            check(parameter, passed).map_err(|mismatch| Error::Argument {
                kernel: kernel.name.clone(),
                parameter: parameter.name.clone(),
                mismatch,
            })?;
            values.push(Ready(passed.value.clone()));
            if let (Class::Slice | Class::Disjoint, Some((elements, _, _))) =
                (parameter.class, passed.memory)
            {
                // `check` has looked that they fit.
                values.push(Ready(driver::Argument::value(&(elements as u32))));
            }
        }
        Ok(values)
    }
}

/// A value that has been checked.
struct Ready(Value);

impl driver::Argument for Ready {
    fn value(&self) -> Value {
        self.0.clone()
    }
}

/// Whether a parameter takes what was passed; else what is wrong.
fn check(parameter: &Parameter, passed: &Passed) -> Result<(), Mismatch> {
    let elements = || match parameter.number.host_type() {
        Some(name) => format!("elements {name}"),
        None => format!("elements of {} bytes", parameter.size),
    };
    let (wanted, given) = (parameter.number.value_type(), passed.name);
    match (parameter.class, passed.memory) {
        (Class::Value, None) => {
            let is_float = |name: &str| name.starts_with('f');
            let fits = passed.value.bytes.len() == parameter.size as usize
                && is_float(given) == is_float(wanted)
                && (parameter.number == Number::Bool) == (given == "bool");
            match fits {
                true => Ok(()),
                false => Err(Mismatch::Value { wanted, given }),
            }
        }
        (Class::Value, Some(_)) => {
            let given = "a buffer";
            Err(Mismatch::Value { wanted, given })
        }
        (_, None) => {
            let elements = elements();
            Err(Mismatch::NoBuffer { elements, given })
        }
        (class, Some((count, size, writable))) => {
            if size != u64::from(parameter.size) {
                let elements = elements();
                Err(Mismatch::Elements { elements, given })
            } else if class == Class::Disjoint && !writable {
                Err(Mismatch::ReadOnly)
            } else if count > u64::from(u32::MAX) {
                Err(Mismatch::TooLong(count))
            } else if class == Class::Reference && count == 0 {
                Err(Mismatch::Empty)
            } else {
                Ok(())
            }
        }
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
