//! Stands in for CubeCL's CUDA runtime: `cubecl-cuda` by name, [`cubecl_thisgpu`] by what it does.
//!
//! Which runtimes there are is a closed list in CubeCL 0.11.3, and Burn 0.22.1 reaches them by that list alone. A
//! program that has this package in the place of the registry's runs what it would run by CUDA on the simulator
//! instead. The number of a device says which simulator it is ([`ThisgpuDevice::number`]); 0, which is Burn's and
//! CubeCL's default, and other small numbers are each one that does what the environment says.

#![deny(unsafe_code)]

use cubecl_common::device::DeviceId;
use cubecl_core::ir::TargetProperties;
use cubecl_core::zspace::{Shape, Strides};
use cubecl_runtime::runtime::Runtime;
use cubecl_thisgpu::{ThisgpuDevice, ThisgpuRuntime, ThisgpuServer};

pub use cubecl_runtime::device::CudaDevice;

/// The runtime behind CubeCL's `Device::Cuda`.
#[derive(Clone, Debug)]
pub struct CudaRuntime;

impl Runtime for CudaRuntime {
    type Server = ThisgpuServer;
    type Device = CudaDevice;

    fn can_read_tensor(shape: &Shape, strides: &Strides) -> bool {
        ThisgpuRuntime::can_read_tensor(shape, strides)
    }

    fn target_properties() -> TargetProperties {
        ThisgpuRuntime::target_properties()
    }

    /// The default device only: a program that uses all devices there are has no use for simulators beside each other.
    fn enumerate_devices(type_id: u16) -> Vec<DeviceId> {
        let index_id = 0;
        vec![DeviceId { type_id, index_id }]
    }

    /// Every number that names a simulator.
    fn find_device(device: DeviceId) -> Result<(), usize> {
        match ThisgpuDevice::from_number(device.index_id) {
            Some(_) => Ok(()),
            None => Err(Self::enumerate_devices(device.type_id).len()),
        }
    }
}
