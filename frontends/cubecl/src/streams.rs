//! Streams: each has memory of its own, and what failed on the device is known to all.
//!
//! Launches run when they come: CubeCL's server has a thread of its own, so that the caller does not wait. Streams are
//! therefore in order by themselves, and keep apart what belongs to whom.

use crate::storage::DeviceStorage;
use cranelift_thisgpu::Device;
use cubecl_core::MemoryConfiguration;
use cubecl_core::ir::MemoryDeviceProperties;
use cubecl_environment::stream::StreamId;
use cubecl_server::logging::ServerLogger;
use cubecl_server::memory_management::{
    ErrorGraph, FailureId, MemoryAllocationMode, MemoryManagement, MemoryManagementOptions,
};
use cubecl_server::server::{BufferBinding, ServerError};
use cubecl_server::stream::{FailureStore, Failures, StreamFactory, StreamMemory, StreamPool};
use std::sync::Arc;

/// Whether buffers lie beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// In pages that CubeCL keeps and gives out again.
    Pages,
    /// Each has an allocation of the device's for itself, new each time: an access beside it is found out, and a read
    /// of what nobody wrote.
    Nothing,
}

/// A stream.
pub struct Stream {
    /// Its memory.
    pub memory: MemoryManagement<DeviceStorage>,
}

impl StreamMemory for Stream {
    fn failure(&self, binding: &BufferBinding) -> Option<FailureId> {
        self.memory.failure(&binding.memory, binding.range())
    }

    fn taint(&mut self, binding: &BufferBinding, failure: FailureId, failures: &mut ErrorGraph) {
        self.memory
            .taint(&binding.memory, binding.range(), failure, failures);
    }

    fn written(&mut self, binding: &BufferBinding, failures: &mut ErrorGraph) {
        self.memory
            .written(&binding.memory, binding.range(), failures);
    }
}

/// Makes streams of a device.
pub struct Factory {
    device: Device,
    properties: MemoryDeviceProperties,
    sharing: Sharing,
    logger: Arc<ServerLogger>,
}

impl StreamFactory for Factory {
    type Stream = Stream;

    fn create(&mut self) -> Result<Stream, ServerError> {
        let options = MemoryManagementOptions::new("thisgpu");
        let options = match self.sharing {
            Sharing::Pages => options,
            Sharing::Nothing => options.mode(MemoryAllocationMode::Dedicated),
        };
        let memory = MemoryManagement::from_configuration(
            DeviceStorage::new(self.device.clone(), self.properties.alignment),
            &self.properties,
            MemoryConfiguration::default(),
            self.logger.clone(),
            options,
        );
        Ok(Stream { memory })
    }
}

/// The streams of a device, with what failed on it.
pub struct Streams {
    sharing: Sharing,
    pool: StreamPool<Factory>,
    failures: Failures,
}

impl Streams {
    /// At most so many streams, made when they are asked for.
    pub fn new(
        device: Device,
        properties: MemoryDeviceProperties,
        sharing: Sharing,
        logger: Arc<ServerLogger>,
        most: u8,
    ) -> Streams {
        let factory = Factory {
            device,
            properties,
            sharing,
            logger: logger.clone(),
        };
        Streams {
            sharing,
            pool: StreamPool::new(factory, most, 0),
            failures: Failures::new(logger),
        }
    }

    /// A stream.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn stream(&mut self, id: &StreamId) -> Result<&mut Stream, ServerError> {
        self.pool.get_or_create(id)
    }

    /// Changes how a stream allocates, but where buffers share nothing: memory that is kept for good would be given out
    /// again with what the last one has written, so each stays on its own, as it began.
    ///
    /// # Errors
    /// When the stream cannot be made.
    pub fn set_mode(
        &mut self,
        id: &StreamId,
        mode: MemoryAllocationMode,
    ) -> Result<(), ServerError> {
        if self.sharing == Sharing::Pages {
            self.stream(id)?.memory.mode(mode);
        }
        Ok(())
    }

    /// A stream, and what failed.
    ///
    /// # Errors
    /// When the stream cannot be made.
    pub fn stream_and_failures(
        &mut self,
        id: &StreamId,
    ) -> Result<(&mut Stream, &mut ErrorGraph), ServerError> {
        Ok((self.pool.get_or_create(id)?, self.failures.graph_mut()))
    }

    /// The streams that there are.
    pub fn ids(&self) -> Vec<StreamId> {
        self.pool.stream_ids().collect()
    }
}

impl FailureStore for Streams {
    type Factory = Factory;

    fn split(&mut self) -> (&mut StreamPool<Factory>, &mut Failures) {
        (&mut self.pool, &mut self.failures)
    }

    fn parts(&self) -> (&StreamPool<Factory>, &Failures) {
        (&self.pool, &self.failures)
    }
}
