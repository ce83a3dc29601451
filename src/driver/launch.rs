//! Launches: how many threads, arguments, and how to run them.

use super::argument::{self, Argument, Owner, Value};
use super::device::Device;
use super::error::DeviceError;
use super::kernel::Kernel;
use super::stream::{Pending, Stream};
use super::{DriverError, queue};
use crate::abi::LOWEST_ADDRESS;
use crate::abi::bank0::{MAX_PARAMETERS, PARAMETERS};
use crate::launch::{Fault, FaultKind, LaunchError, LaunchRequest, Progress, Report, Window};
#[cfg(feature = "sim")]
use crate::sim::debug::Session;
#[cfg(feature = "sim")]
use std::any::Any;
use std::time::Duration;

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

    /// At least one thread an element, in one dimension, `threads` to a CTA. No elements give one CTA; what is no
    /// number of elements, such as −1, gives more CTAs than there may be, so that the launch is refused.
    pub fn for_elems(elements: impl TryInto<u64>, threads: u32) -> Grid {
        let blocks = elements
            .try_into()
            .unwrap_or(u64::MAX)
            .div_ceil(u64::from(threads.max(1)))
            .max(1);
        Grid {
            blocks: [u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1],
            threads: [threads, 1, 1],
        }
    }
}

/// A launch being put together.
#[must_use = "nothing runs until `run` or `enqueue`"]
pub struct Launch<'a> {
    kernel: &'a Kernel,
    grid: Grid,
    shared: u32,
    values: Vec<Value>,
    progress: Option<Progress>,
    time_limit: Option<Duration>,
}

impl Kernel {
    /// Begins a launch.
    pub fn launch(&self, grid: Grid) -> Launch<'_> {
        Launch {
            kernel: self,
            grid,
            shared: 0,
            values: Vec::new(),
            progress: None,
            time_limit: None,
        }
    }
}

impl Launch<'_> {
    /// The next argument.
    pub fn arg(mut self, argument: impl Argument) -> Self {
        self.values.push(argument.value());
        self
    }

    /// The next arguments, in their order: `args(&[&2.5f32, &x, &y, &n])`.
    pub fn args(mut self, arguments: &[&dyn Argument]) -> Self {
        self.values.extend(arguments.iter().map(|a| a.value()));
        self
    }

    /// Dynamic shared memory in bytes, behind the kernel's static one.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// Where the launch counts how far it is, and may be told to end.
    pub fn progress(mut self, progress: &Progress) -> Self {
        self.progress = Some(progress.clone());
        self
    }

    /// How long it may run, by the host's clock; the time before it begins does not count. Where it takes longer it
    /// ends with the fault [`crate::launch::FaultKind::TimeLimit`].
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Runs it to its end, when all launches that were asked for before have ended.
    ///
    /// # Errors
    /// Arguments that do not match the parameters, an impossible launch, a fault of the kernel.
    pub fn run(self) -> Result<Report, DeviceError> {
        let device = self.kernel.device().clone();
        let ready = self.ready()?;
        device.queue().run(|| ready.run())
    }

    /// Runs it to its end or fault; the report has the fault.
    ///
    /// # Errors
    /// Arguments that do not match the parameters, an impossible launch.
    pub fn run_to_report(self) -> Result<Report, DeviceError> {
        match self.run() {
            Err(DeviceError::Fault { report, .. }) => Ok(*report),
            outcome => outcome,
        }
    }

    /// A session of the debugger before the first instruction, when all launches that were asked for before have ended.
    /// It works on the device's memory, and other launches may run meanwhile. Its progress and limit of time are not
    /// looked at.
    ///
    /// # Errors
    /// Arguments that do not match the parameters, an impossible launch, a device without a debugger.
    #[cfg(feature = "sim")]
    pub fn debug(self) -> Result<Session, DeviceError> {
        let device = self.kernel.device().clone();
        let ready = self.ready()?;
        device.synchronize()?;
        let (module, keep) = (ready.kernel.module_id(), ready.kept());
        let mut session = device.driver().debug(module, &ready.request(), keep)?;
        session.complete_faults(Box::new(move |fault| add_nearest(&device, fault)));
        Ok(session)
    }

    /// Puts it on a stream, and does not wait.
    ///
    /// # Errors
    /// Arguments that do not match the parameters; a stream of another device. What is wrong with the launch itself
    /// comes from [`Pending::wait`].
    pub fn enqueue(mut self, stream: &Stream) -> Result<Pending, DeviceError> {
        let kernel = self.kernel.name().to_string();
        if self.kernel.device().identity() != stream.device().identity() {
            return Err(DeviceError::OtherStream { kernel });
        }
        let progress = self.progress.get_or_insert_default().clone();
        let ready = self.ready()?;
        let queue = stream.device().queue().clone();
        let slot = queue.enqueue(stream.id(), kernel.clone(), Box::new(move || ready.run()));
        Ok(Pending {
            queue,
            stream: stream.id(),
            slot,
            kernel,
            progress,
        })
    }

    /// What runs, after all checks.
    fn ready(self) -> Result<Ready, DeviceError> {
        let threads = self.grid.threads.iter().map(|&n| u64::from(n));
        let threads = threads.fold(1, u64::saturating_mul);
        if let Some(most) = self.kernel.entry().kernel.max_threads
            && threads > u64::from(most)
        {
            return Err(DeviceError::Bounds {
                kernel: self.kernel.name().to_string(),
                threads,
                most,
            });
        }
        Ok(Ready {
            parameters: self.parameters()?,
            kernel: self.kernel.clone(),
            grid: self.grid,
            shared: self.shared,
            progress: self.progress,
            time_limit: self.time_limit,
            owners: self.values.into_iter().filter_map(|v| v.owner).collect(),
        })
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
        let device = self.kernel.device().identity();
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
            let owner = value.owner.as_ref();
            if owner.is_some_and(|owner| owner.device_identity() != device) {
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

/// Adds to a fault what only the device knows: of an access out of bounds the nearest allocation.
fn add_nearest(device: &Device, fault: &mut Fault) {
    if let FaultKind::OutOfBounds {
        window: Window::Global,
        address,
        ..
    } = fault.kind
        && address >= LOWEST_ADDRESS
    {
        fault.near = device.nearest(address);
    }
}

/// A launch with all that it needs, which it keeps alive.
struct Ready {
    kernel: Kernel,
    grid: Grid,
    shared: u32,
    parameters: Vec<u8>,
    progress: Option<Progress>,
    time_limit: Option<Duration>,
    /// They keep the memory of the arguments.
    owners: Vec<Owner>,
}

impl Ready {
    /// What has to stay as long as the launch.
    #[cfg(feature = "sim")]
    fn kept(&self) -> Box<dyn Any + Send> {
        Box::new((self.kernel.clone(), self.owners.clone()))
    }

    fn request(&self) -> LaunchRequest<'_> {
        let entry = self.kernel.entry();
        LaunchRequest {
            kernel: &entry.name,
            entry: entry.address,
            grid: self.grid.blocks,
            block: self.grid.threads,
            static_shared: entry.kernel.shared_bytes,
            dynamic_shared: self.shared,
            local_bytes: entry.resources.local_bytes,
            parameters: &self.parameters,
            progress: self.progress.as_ref(),
            time_limit: self.time_limit,
        }
    }

    fn run(self) -> queue::Outcome {
        let request = self.request();
        let device = self.kernel.device();
        let mut report = device.driver().launch(self.kernel.module_id(), &request)?;
        if let Some(fault) = &mut report.fault {
            add_nearest(device, fault);
        }
        match report.fault.clone() {
            None => Ok(report),
            Some(fault) => Err(DeviceError::Fault {
                fault: Box::new(fault),
                report: Box::new(report),
            }),
        }
    }
}
