//! The runtime: what CubeCL asks for devices.

use crate::environment::settings;
use crate::properties::device_properties;
use crate::{Mode, ThisgpuDevice, ThisgpuServer};
use cranelift_thisgpu::Device as GpuDevice;
use cubecl_common::device::{Device, DeviceId, DeviceService, ServerUtilitiesHandle, ServiceId};
use cubecl_core::ir::TargetProperties;
use cubecl_core::zspace::{Shape, Strides};
use cubecl_server::allocator::ContiguousMemoryLayoutPolicy;
use cubecl_server::logging::ServerLogger;
use cubecl_server::runtime::Runtime;
use cubecl_server::server::{Server, ServerUtilities};
use std::sync::Arc;

/// Runs kernels of CubeCL on the simulator: `ThisgpuRuntime::client(&device)`.
#[derive(Clone, Debug)]
pub struct ThisgpuRuntime;

impl Runtime for ThisgpuRuntime {
    type Server = ThisgpuServer;
    type Device = ThisgpuDevice;

    fn can_read_tensor(shape: &Shape, strides: &Strides) -> bool {
        is_contiguous(shape, strides)
    }

    fn target_properties() -> TargetProperties {
        TargetProperties {
            // No matrix instructions are documented.
            mma: Default::default(),
        }
    }

    fn enumerate_devices(_: u16) -> Vec<DeviceId> {
        Mode::ALL
            .map(|mode| ThisgpuDevice::new(mode).to_id())
            .to_vec()
    }
}

impl DeviceService for ThisgpuServer {
    fn init(id: DeviceId) -> Self {
        let device = ThisgpuDevice::from_id(id);
        let properties = device_properties(device);
        let memory = properties.memory.clone();
        let alignment = memory.alignment;
        let logger = Arc::new(ServerLogger::default());
        // No launches are recorded to be played again.
        let (utilities, _captures) = ServerUtilities::init(
            ServiceId::of::<Self>(id),
            "thisgpu",
            properties,
            ThisgpuRuntime::target_properties(),
            logger.clone(),
            ContiguousMemoryLayoutPolicy::new(alignment as usize),
        );
        let simulator = GpuDevice::simulator(device.config());
        let utilities = Arc::new(utilities);
        let mut errors = settings().errors.clone();
        if ThisgpuDevice::from_number(id.index_id).is_none() {
            errors.push(format!("there is no device {}", id.index_id));
        }
        ThisgpuServer::new(device, simulator, memory, utilities, logger, errors)
    }

    fn utilities(&self) -> ServerUtilitiesHandle {
        Server::utilities(self) as ServerUtilitiesHandle
    }
}

/// Whether elements lie one behind the other, the last dimension fastest. The stride of a dimension of one element does
/// not count.
pub(crate) fn is_contiguous(shape: &Shape, strides: &Strides) -> bool {
    let mut expected = 1;
    let dimensions = shape.iter().zip(strides.iter()).rev();
    for (&size, &stride) in dimensions {
        if size != 1 && stride != expected {
            return false;
        }
        expected *= size;
    }
    true
}
