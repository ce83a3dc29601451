//! From a translated entry point to a launch: machine code, a loaded kernel, dispatches of it.

use crate::error::{Error, Reason};
use crate::interface::{Access, BoundBuffer, Interface, threads};
use crate::translate::Translation;
use cranelift_thisgpu::compile::{FunctionInput, Unit};
use cranelift_thisgpu::driver::argument::Argument;
use cranelift_thisgpu::object::{DataContents, Linkage};
use cranelift_thisgpu::{
    Buffer, Code, Compiler, Device, DeviceError, Grid, Kernel, KernelOptions, Options, Report,
};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// A compiled entry point.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The machine code.
    pub code: Arc<Code>,
    /// What a launch must give to it.
    pub interface: Interface,
}

impl Translation {
    /// Compiles the kernel.
    ///
    /// # Errors
    /// What the compiler refuses, such as a workgroup of more threads than a block has.
    pub fn compile(self, options: &Options) -> Result<Compiled, Error> {
        let Translation {
            function,
            interface,
            data,
            locations,
            place,
        } = self;
        let kernel = KernelOptions {
            shared_bytes: interface.shared_bytes,
            max_threads: Some(threads(interface.workgroup_size)),
            ..KernelOptions::default()
        };
        let mut compiler = Compiler::new(options.clone());
        compiler.set_locations(Some(Arc::new(locations)));
        let input = FunctionInput {
            func: &function,
            name: &interface.symbol,
            kernel: Some(kernel),
            linkage: Linkage::Global,
            namer: &|_| None,
        };
        let mut unit = Unit::new();
        for object in &data {
            if let DataContents::Bytes(bytes) = &object.contents {
                unit.announce_table(&object.name, bytes, object.align);
            }
        }
        unit.announce(&[input]);
        for object in data {
            unit.push_data(object);
        }
        let code = compiler.compile_function(&input, &mut unit);
        let code = code.and_then(|()| unit.finish());
        let code = code.map_err(|errors| Error {
            place,
            reason: Reason::Compiler(errors.to_string()),
        })?;
        Ok(Compiled {
            code: Arc::new(code),
            interface,
        })
    }
}

impl Compiled {
    /// Loads the kernel on a device, with a place for its immediates.
    ///
    /// # Errors
    /// No room.
    pub fn load(&self, device: &Device) -> Result<Pipeline, LaunchError> {
        let module = device.load(&*self.code)?;
        let immediates = match self.interface.immediate_bytes {
            0 => None,
            bytes => Some(Arc::new(Mutex::new(device.allocate(bytes.into())?))),
        };
        Ok(Pipeline {
            kernel: module.kernel(&self.interface.symbol)?,
            immediates,
            interface: self.interface.clone(),
        })
    }
}

/// A buffer, or a part of one, that stands for a variable of the shader.
#[derive(Clone, Debug)]
pub struct Binding {
    /// `@group`.
    pub group: u32,
    /// `@binding`.
    pub binding: u32,
    /// The bytes that are bound. They begin at a multiple of [`BoundBuffer::ALIGNMENT`].
    pub buffer: Buffer,
}

impl Binding {
    /// All of a buffer.
    pub fn new(group: u32, binding: u32, buffer: &Buffer) -> Binding {
        Binding {
            group,
            binding,
            buffer: buffer.clone(),
        }
    }
}

/// Why a dispatch fails.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The shader uses a variable that nothing is bound to.
    #[error("nothing is bound to @group({group}) @binding({binding}), which `{entry}` uses")]
    Missing {
        /// The entry point.
        entry: String,
        /// The variable's group.
        group: u32,
        /// The variable's binding.
        binding: u32,
    },
    /// A buffer is smaller than its variable, larger than a length of 32 bits, or begins at an address that no
    /// variable may have.
    #[error(
        "the {bytes} bytes at {address:#x} that are bound to @group({group}) @binding({binding}) must be at least \
         {least}, less than 4 GiB, and at a multiple of {}",
        BoundBuffer::ALIGNMENT
    )]
    Unfit {
        /// The variable's group.
        group: u32,
        /// The variable's binding.
        binding: u32,
        /// How many are bound.
        bytes: u64,
        /// Where.
        address: u64,
        /// How many there must be.
        least: u64,
    },
    /// A binding that the shader only reads shares bytes with one that it may write: what is read would be from before
    /// or after. Two that it may write can lie in each other, as wgpu lets them.
    #[error(
        "`{entry}` writes to @group({}) @binding({}) and only reads @group({}) @binding({}), which share bytes",
        written.0, written.1, read.0, read.1
    )]
    Overlap {
        /// The entry point.
        entry: String,
        /// Group and binding of what it may write.
        written: (u32, u32),
        /// Group and binding of what it reads.
        read: (u32, u32),
    },
    /// Immediates of another size.
    #[error("`{entry}` has {expected} bytes of immediates, {given} are given")]
    Immediates {
        /// The entry point.
        entry: String,
        /// How many it has.
        expected: u32,
        /// How many are given.
        given: usize,
    },
    /// The device refuses, or the launch ends with a fault.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A kernel on a device.
#[derive(Clone)]
pub struct Pipeline {
    kernel: Kernel,
    /// Where the immediates of a dispatch are while it runs; a device runs one at a time.
    immediates: Option<Arc<Mutex<Buffer>>>,
    interface: Interface,
}

impl Pipeline {
    /// What a dispatch must give to it.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The loaded kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Runs so many workgroups along x, y and z to their end. Bindings that the entry point does not use may be among
    /// `bindings`. Without a workgroup nothing runs, and there is no report.
    ///
    /// # Errors
    /// Bindings or immediates that do not fit, and what the launch ends with; [`DeviceError::Fault`] names the line.
    pub fn dispatch(
        &self,
        groups: [u32; 3],
        bindings: &[Binding],
        immediates: &[u8],
    ) -> Result<Option<Report>, LaunchError> {
        let mut buffers = Vec::new();
        for wanted in &self.interface.buffers {
            buffers.push(self.bound(wanted, bindings)?);
        }
        self.apart(&buffers)?;
        if immediates.len() as u64 != u64::from(self.interface.immediate_bytes) {
            return Err(LaunchError::Immediates {
                entry: self.interface.entry.clone(),
                expected: self.interface.immediate_bytes,
                given: immediates.len(),
            });
        }
        if groups.contains(&0) {
            return Ok(None);
        }
        let lengths: Vec<u32> = buffers.iter().map(|buffer| buffer.bytes() as u32).collect();
        let place = self.immediates.as_ref();
        let given = place.map(|place| place.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(given) = &given {
            given.write(immediates)?;
        }
        let mut arguments: Vec<&dyn Argument> = Vec::new();
        for (buffer, length) in buffers.iter().zip(&lengths) {
            arguments.push(*buffer);
            arguments.push(length);
        }
        if let Some(given) = given.as_deref() {
            arguments.push(given);
        }
        let grid = Grid::new(groups, self.interface.workgroup_size);
        let report = self.kernel.launch(grid).args(&arguments).run()?;
        Ok(Some(report))
    }

    /// Loads of what is only read may be moved: nobody may write there.
    fn apart(&self, buffers: &[&Buffer]) -> Result<(), LaunchError> {
        let all = || self.interface.buffers.iter().zip(buffers);
        for (writer, written) in all().filter(|(bound, _)| bound.access == Access::ReadWrite) {
            for (reader, read) in all().filter(|(bound, _)| bound.access != Access::ReadWrite) {
                let [(a, a_end), (b, b_end)] = [written, read]
                    .map(|buffer| (buffer.address(), buffer.address() + buffer.bytes()));
                if a < b_end && b < a_end {
                    return Err(LaunchError::Overlap {
                        entry: self.interface.entry.clone(),
                        written: (writer.group, writer.binding),
                        read: (reader.group, reader.binding),
                    });
                }
            }
        }
        Ok(())
    }

    fn bound<'b>(
        &self,
        wanted: &BoundBuffer,
        bindings: &'b [Binding],
    ) -> Result<&'b Buffer, LaunchError> {
        let BoundBuffer { group, binding, .. } = *wanted;
        let mut given = bindings.iter();
        let found = given.find(|given| given.group == group && given.binding == binding);
        let found = found.ok_or_else(|| LaunchError::Missing {
            entry: self.interface.entry.clone(),
            group,
            binding,
        })?;
        let (bytes, address) = (found.buffer.bytes(), found.buffer.address());
        let fits = (wanted.least_bytes..=u64::from(u32::MAX)).contains(&bytes);
        if !fits || !address.is_multiple_of(BoundBuffer::ALIGNMENT) {
            return Err(LaunchError::Unfit {
                group,
                binding,
                bytes,
                address,
                least: wanted.least_bytes,
            });
        }
        Ok(&found.buffer)
    }
}
