//! The server: memory, copies, compilation, launches.
//!
//! It runs on a thread that CubeCL keeps for each device. A launch is complete when [`Server::launch`] returns; what
//! went wrong stands with the buffers that it would have written, and is what a read of them gives.

use crate::ThisgpuDevice;
use crate::compiler::{CompiledKernel, ThisgpuCompiler};
use crate::environment::BUDGET_VARIABLE;
use crate::overview;
use crate::profile::Profiler;
use crate::storage::{DeviceResource, DeviceStorage, io_error};
use crate::streams::Streams;
use cranelift_thisgpu::driver::Argument;
use cranelift_thisgpu::launch::{FaultKind, Place};
use cranelift_thisgpu::{Device, DeviceError, DevicePointer, Grid, Kernel};
use cubecl_common::bytes::Bytes;
use cubecl_common::profile::ProfileDuration;
use cubecl_core::ir::MemoryDeviceProperties;
use cubecl_core::{CompilationError, CubeCount};
use cubecl_environment::backtrace::BackTrace;
use cubecl_environment::future::DynFut;
use cubecl_environment::stream::StreamId;
use cubecl_server::config::{CubeClRuntimeConfig, RuntimeConfig};
use cubecl_server::dry_run::LaunchMode;
use cubecl_server::id::KernelId;
use cubecl_server::kernel::{CompiledKernel as Compilation, CubeKernel};
use cubecl_server::logging::ServerLogger;
use cubecl_server::memory_management::{
    Cleanup, ManagedMemoryHandle, MemoryAllocationMode, PageUpdate, StreamMemoryReport,
};
use cubecl_server::server::{
    BufferBinding, CopyDescriptor, IoError, KernelArguments, KernelResource, LaunchError,
    ProfileError, ProfilingToken, ResourceLimitError, Server, ServerCommunication, ServerError,
    ServerStorage, ServerUtilities,
};
use cubecl_server::storage::ManagedResource;
use cubecl_server::stream::{ExecuteScope, FailureStore, WriteScoped, failed_writing};
use cubecl_server::validation::{validate_cube_dim, validate_units};
use hashbrown::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// A device of CubeCL's.
pub struct ThisgpuServer {
    device: ThisgpuDevice,
    simulator: Device,
    streams: Streams,
    /// What came of each kernel that was asked for. What there was no room for is not here: there may be some later.
    kernels: HashMap<KernelId, Result<Arc<LoadedKernel>, LaunchError>>,
    profiler: Profiler,
    utilities: Arc<ServerUtilities>,
    logger: Arc<ServerLogger>,
    /// Why nothing is launched.
    errors: Vec<String>,
}

/// A kernel on the device.
struct LoadedKernel {
    kernel: Kernel,
    compiled: Arc<Compilation<ThisgpuCompiler>>,
    translated: CompiledKernel,
}

impl fmt::Debug for ThisgpuServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThisgpuServer")
            .field("device", &self.device)
            .field("kernels", &self.kernels.len())
            .finish_non_exhaustive()
    }
}

impl WriteScoped for ThisgpuServer {
    type Streams = Streams;

    fn write_streams(&mut self) -> &mut Streams {
        &mut self.streams
    }

    fn on_failure(&mut self, stream: StreamId, error: &ServerError) {
        self.profiler.fail(stream, error);
    }
}

impl ThisgpuServer {
    pub(crate) fn new(
        device: ThisgpuDevice,
        simulator: Device,
        memory: MemoryDeviceProperties,
        utilities: Arc<ServerUtilities>,
        logger: Arc<ServerLogger>,
        errors: Vec<String>,
    ) -> ThisgpuServer {
        let most = CubeClRuntimeConfig::get().streaming.max_streams;
        let sharing = device.sharing();
        ThisgpuServer {
            streams: Streams::new(simulator.clone(), memory, sharing, logger.clone(), most),
            device,
            simulator,
            kernels: HashMap::new(),
            profiler: Profiler::default(),
            utilities,
            logger,
            errors,
        }
    }

    /// The memory of a binding, on the stream that it is of.
    fn resource(&mut self, binding: &BufferBinding) -> Result<DeviceResource, ServerError> {
        let stream = self.streams.stream(&binding.stream)?;
        let (start, end) = (binding.offset_start, binding.offset_end);
        Ok(stream
            .memory
            .get_resource(binding.memory.clone(), start, end)?)
    }

    fn read_one(&mut self, descriptor: &CopyDescriptor) -> Result<Bytes, ServerError> {
        check_strides(descriptor)?;
        let resource = self.resource(&descriptor.handle)?;
        let bytes = resource.buffer().to_vec().map_err(io_error)?;
        Ok(Bytes::from_bytes_vec(bytes))
    }

    fn write_one(&mut self, descriptor: &CopyDescriptor, data: &[u8]) -> Result<(), ServerError> {
        check_strides(descriptor)?;
        let resource = self.resource(&descriptor.handle)?;
        Ok(resource.buffer().write(data).map_err(io_error)?)
    }

    /// The kernel on the device, compiled when it is asked for first.
    fn kernel(&mut self, kernel: &dyn CubeKernel) -> Result<Arc<LoadedKernel>, LaunchError> {
        let id = kernel.id();
        if let Some(known) = self.kernels.get(&id) {
            return known.clone();
        }
        let made = self.make(kernel, &id).map(Arc::new);
        if !matches!(made, Err(LaunchError::OutOfMemory { .. })) {
            self.kernels.insert(id, made.clone());
        }
        made
    }

    fn make(&self, kernel: &dyn CubeKernel, id: &KernelId) -> Result<LoadedKernel, LaunchError> {
        let (compiled, translated) = self.compile(kernel, id)?;
        Ok(LoadedKernel {
            kernel: self.load(&translated)?,
            compiled,
            translated,
        })
    }

    fn compile(
        &self,
        kernel: &dyn CubeKernel,
        id: &KernelId,
    ) -> Result<(Arc<Compilation<ThisgpuCompiler>>, CompiledKernel), LaunchError> {
        if !self.errors.is_empty() {
            return Err(generic(self.errors.join("\n")).into());
        }
        let properties = &self.utilities.properties;
        validate_cube_dim(properties, id)?;
        validate_units(properties, id)?;
        if id.cube_dim.num_elems() == 0 {
            let (name, size) = (kernel.name(), id.cube_dim);
            let reason = format!(
                "kernel {name}: a cube of {}x{}x{} units has none; every dimension of a CubeDim is 1 or more",
                size.x, size.y, size.z
            );
            return Err(generic(reason).into());
        }
        let definition = cubecl_core::define_kernel(kernel)?;
        let compiled = Compilation::compile(kernel, definition, &mut ThisgpuCompiler, &())?;
        self.logger.log_compilation(&compiled);
        let translated = compiled.repr.clone().ok_or_else(|| {
            let reason = format!("{} is text of another compiler", kernel.name());
            generic(reason)
        })?;
        Ok((Arc::new(compiled), translated))
    }

    fn load(&self, kernel: &CompiledKernel) -> Result<Kernel, LaunchError> {
        let requested = kernel.shared_bytes as usize;
        let max = self.utilities.properties.hardware.max_shared_memory_size;
        if requested > max {
            return Err(LaunchError::TooManyResources(
                ResourceLimitError::SharedMemory {
                    requested,
                    max,
                    backtrace: BackTrace::capture(),
                },
            ));
        }
        let module = self.simulator.load(&*kernel.code);
        let loaded = module.and_then(|module| module.kernel(&kernel.name));
        loaded.map_err(|error| match error {
            // No room, now.
            DeviceError::Driver(_) | DeviceError::Data { .. } => LaunchError::OutOfMemory {
                reason: error.to_string(),
                backtrace: BackTrace::capture(),
            },
            _ => generic(error.to_string()).into(),
        })
    }

    /// Runs a kernel to its end.
    fn run(
        &mut self,
        loaded: &LoadedKernel,
        count: CubeCount,
        arguments: &KernelArguments,
    ) -> Result<(), ServerError> {
        let blocks = self.cubes(count)?;
        if blocks.contains(&0) {
            return Ok(());
        }
        let names = &loaded.translated.arguments;
        let mut values: Vec<u64> = Vec::new();
        // The buffers live until the launch has ended.
        let mut resources = Vec::new();
        for &position in &names.buffers {
            let resource = match arguments.resources.get(position) {
                Some(KernelResource::Buffer(binding)) => self.resource(binding)?,
                Some(KernelResource::TensorMap(_)) => {
                    return Err(ServerError::Launch(unsupported("tensor maps").into()));
                }
                None => return Err(ServerError::Launch(generic("a buffer is missing").into())),
            };
            values.push(resource.buffer().address());
            resources.push(resource);
        }
        let words = &arguments.info.data;
        let known = words.get(..names.words);
        let known = known.ok_or_else(|| LaunchError::from(generic("arguments are missing")))?;
        values.extend(known);
        let shapes = match names.has_shapes {
            true => Some(
                self.simulator
                    .upload(&words[names.words..])
                    .map_err(io_error)?,
            ),
            false => None,
        };
        values.extend(shapes.iter().map(|shapes| shapes.address()));
        let values: Vec<_> = values.into_iter().map(DevicePointer).collect();
        let values: Vec<_> = values.iter().map(|value| value as &dyn Argument).collect();
        let size = loaded.compiled.cube_dim;
        let grid = Grid::new(blocks, [size.x, size.y, size.z]);
        let launch = loaded.kernel.launch(grid).args(&values);
        let start = Instant::now();
        let outcome = launch.run();
        let (host, translated) = (start.elapsed(), &loaded.translated);
        let counted = outcome.as_ref().ok();
        overview::count(self.device, translated, &loaded.kernel, grid, counted, host);
        crate::report::report(translated, grid, outcome.as_ref());
        let report = outcome.map_err(|error| ServerError::Generic {
            reason: failure(translated, &error),
            backtrace: BackTrace::capture(),
        })?;
        self.profiler.count(&report);
        let found = report.findings.iter().map(|finding| {
            let operation = operation(&loaded.translated, &finding.place);
            format!("{finding}{operation}")
        });
        let found = found.chain(report.hazards.iter().map(ToString::to_string));
        let found: Vec<_> = found.collect();
        if found.is_empty() {
            return Ok(());
        }
        Err(ServerError::Validation {
            message: found.join("\n"),
            backtrace: BackTrace::capture(),
        })
    }

    /// The cubes of a launch, which may stand in a buffer.
    fn cubes(&mut self, count: CubeCount) -> Result<[u32; 3], ServerError> {
        match count {
            CubeCount::Static(x, y, z) => Ok([x, y, z]),
            CubeCount::Dynamic(binding) => {
                let resource = self.resource(&binding)?;
                let mut cubes = [0; 3];
                let bytes = resource.buffer().bytes();
                if bytes < size_of_val(&cubes) as u64 {
                    let reason = format!(
                        "the buffer of a CubeCount::Dynamic has {bytes} bytes, not three u32"
                    );
                    return Err(LaunchError::from(generic(reason)).into());
                }
                let words = resource.buffer().cast::<u32>().map_err(io_error)?;
                words.read_at(0, &mut cubes).map_err(io_error)?;
                Ok(cubes)
            }
        }
    }
}

impl Server for ThisgpuServer {
    fn initialize_memory(
        &mut self,
        memory: ManagedMemoryHandle,
        size: u64,
        stream_id: StreamId,
    ) -> Result<(), ServerError> {
        let (stream, failures) = self.streams.stream_and_failures(&stream_id)?;
        let reserved = stream.memory.reserve(size, PageUpdate::Allow, failures);
        let bound =
            reserved.and_then(|reserved| stream.memory.bind(reserved, memory.clone(), 0, failures));
        bound.map_err(|error| {
            let error = ServerError::from(error);
            failures.fail_unallocated(&memory, error.clone());
            error
        })
    }

    fn logger(&self) -> Arc<ServerLogger> {
        self.logger.clone()
    }

    fn utilities(&self) -> Arc<ServerUtilities> {
        self.utilities.clone()
    }

    fn read(
        &mut self,
        descriptors: Vec<CopyDescriptor>,
        _: StreamId,
    ) -> DynFut<Result<Vec<Bytes>, ServerError>> {
        let written = self
            .streams
            .ensure_written(descriptors.iter().map(|descriptor| &descriptor.handle));
        let result = written.and_then(|()| {
            let bytes = descriptors.iter();
            bytes.map(|descriptor| self.read_one(descriptor)).collect()
        });
        overview::write();
        Box::pin(async move { result })
    }

    fn write(&mut self, descriptors: Vec<(CopyDescriptor, Bytes)>, stream_id: StreamId) {
        for (descriptor, data) in descriptors {
            let mut written = self.write_set();
            written.push(descriptor.handle.clone());
            ExecuteScope::over(self, stream_id, written)
                .execute(|server| server.write_one(&descriptor, &data));
        }
    }

    fn sync(
        &mut self,
        handles: Vec<BufferBinding>,
        stream_id: StreamId,
    ) -> DynFut<Result<(), ServerError>> {
        let result = self
            .flush(stream_id)
            .and_then(|()| self.streams.ensure_written(handles.iter()));
        overview::write();
        Box::pin(async move { result })
    }

    /// Comes before reads that are made later, which is where a program that fails stops.
    fn check(&mut self, handles: Vec<BufferBinding>, _: StreamId) -> Result<(), ServerError> {
        overview::write();
        self.streams.ensure_written(handles.iter())
    }

    #[expect(unsafe_code, reason = "CubeCL declares it so; nothing in it is")]
    unsafe fn launch(
        &mut self,
        kernel: Box<dyn CubeKernel>,
        count: CubeCount,
        arguments: KernelArguments,
        stream_id: StreamId,
        mode: LaunchMode,
    ) {
        let loaded = match self.kernel(kernel.as_ref()) {
            Ok(loaded) => loaded,
            Err(error) => {
                let error = ServerError::Launch(error);
                overview::refuse(self.device, kernel.name(), kernel.id().cube_dim.num_elems());
                self.profiler.fail(stream_id, &error);
                if !mode.is_skipped() {
                    // Without code nobody but the caller knows what would have been written.
                    let mut written = self.write_set();
                    written.extend(arguments.buffers_written(None).cloned());
                    failed_writing(self, stream_id, written, error);
                }
                return;
            }
        };
        if mode.is_skipped() {
            return;
        }
        let io = loaded.compiled.io.as_deref();
        let mut written = self.write_set();
        written.extend(arguments.buffers_written(io).cloned());
        let dimensions = match &count {
            CubeCount::Dynamic(binding) => Some(binding.clone()),
            CubeCount::Static(..) => None,
        };
        let read = arguments.buffers_read(io).chain(dimensions.as_ref());
        ExecuteScope::launching(self, kernel.id(), stream_id, read, written)
            .execute(|server| server.run(&loaded, count, &arguments));
    }

    fn flush(&mut self, _: StreamId) -> Result<(), ServerError> {
        self.simulator
            .synchronize()
            .map_err(|error| ServerError::Generic {
                reason: error.to_string(),
                backtrace: BackTrace::capture(),
            })
    }

    fn memory_report(&mut self, stream_id: StreamId) -> Option<StreamMemoryReport> {
        let stream = self.streams.stream(&stream_id).ok()?;
        Some(StreamMemoryReport {
            stream: stream_id,
            pools: stream.memory.memory_report(),
            auxiliary: Vec::new(),
        })
    }

    fn stream_ids(&self) -> Vec<StreamId> {
        self.streams.ids()
    }

    fn memory_cleanup(&mut self, stream_id: StreamId) -> Result<(), ServerError> {
        let (stream, failures) = self.streams.stream_and_failures(&stream_id)?;
        stream.memory.cleanup(Cleanup::Explicit, failures);
        Ok(())
    }

    fn start_profile(&mut self, stream: StreamId) -> Result<ProfilingToken, ServerError> {
        Ok(self.profiler.start(stream))
    }

    fn end_profile(
        &mut self,
        _: StreamId,
        token: ProfilingToken,
    ) -> Result<ProfileDuration, ProfileError> {
        self.profiler.stop(token)
    }

    fn abandon_profile(&mut self, _: StreamId, token: ProfilingToken) {
        self.profiler.abandon(token);
    }

    fn allocation_mode(&mut self, mode: MemoryAllocationMode, stream_id: StreamId) {
        if let Err(error) = self.streams.set_mode(&stream_id, mode) {
            log::warn!("the mode of allocation is not changed: {error}");
        }
    }
}

impl ServerCommunication for ThisgpuServer {}

impl ServerStorage for ThisgpuServer {
    type Storage = DeviceStorage;

    fn get_resource(
        &mut self,
        binding: BufferBinding,
        _: StreamId,
    ) -> Result<ManagedResource<DeviceResource>, ServerError> {
        self.streams.ensure_written([&binding].into_iter())?;
        let resource = self.resource(&binding)?;
        Ok(ManagedResource::new(binding.memory, resource))
    }
}

/// What went wrong with a launch. A fault says itself which kernel it is of.
fn failure(kernel: &CompiledKernel, error: &DeviceError) -> String {
    match error {
        DeviceError::Fault { fault, .. } => {
            let variable = match fault.kind {
                FaultKind::BudgetExhausted { .. } | FaultKind::LaunchBudgetExhausted { .. } => {
                    format!("\n  {BUDGET_VARIABLE} raises it")
                }
                _ => String::new(),
            };
            format!("{fault}{variable}{}", operation(kernel, &fault.place))
        }
        _ => format!("kernel {}: {error}", kernel.name),
    }
}

/// The operation of CubeCL's that a place comes from, as the end of a message.
fn operation(kernel: &CompiledKernel, place: &Place) -> String {
    match kernel.operation(place) {
        Some(operation) => format!("\n  from {operation}"),
        None => String::new(),
    }
}

/// Copies are of elements one behind the other.
fn check_strides(descriptor: &CopyDescriptor) -> Result<(), ServerError> {
    if crate::runtime::is_contiguous(&descriptor.shape, &descriptor.strides) {
        return Ok(());
    }
    Err(ServerError::Io(IoError::UnsupportedStrides {
        backtrace: BackTrace::capture(),
    }))
}

fn generic(reason: impl Into<String>) -> CompilationError {
    CompilationError::Generic {
        reason: reason.into(),
        backtrace: BackTrace::capture(),
    }
}

fn unsupported(what: &str) -> CompilationError {
    CompilationError::UnsupportedInstruction {
        reason: format!("unsupported: {what}"),
        backtrace: BackTrace::capture(),
    }
}
