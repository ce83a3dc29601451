//! The devices: simulators, told apart by what they look for.

use cranelift_thisgpu::SimConfig;
use cubecl_common::device::{Device, DeviceId};

/// Local memory of a unit, in bytes: kernels of CubeCL may have large arrays of their own.
const STACK_BYTES: u32 = 256 * 1024;

/// A device. Each is a simulator of its own, with memory of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ThisgpuDevice {
    /// As fast as it can.
    #[default]
    Plain,
    /// Looks for races, reads of what nobody wrote, and barriers that only a part of a cube reaches; a finding is an error of the launch.
    Checking,
    /// Counts cycles, which profiles report; a hazard is an error of the launch.
    Timed,
}

impl ThisgpuDevice {
    /// All of them.
    pub const ALL: [ThisgpuDevice; 3] = [
        ThisgpuDevice::Plain,
        ThisgpuDevice::Checking,
        ThisgpuDevice::Timed,
    ];

    /// What the simulator does.
    pub(crate) fn config(self) -> SimConfig {
        SimConfig {
            check: self == ThisgpuDevice::Checking,
            timed: self == ThisgpuDevice::Timed,
            stack_bytes: STACK_BYTES,
            ..SimConfig::default()
        }
    }
}

impl Device for ThisgpuDevice {
    fn from_id(id: DeviceId) -> Self {
        let device = Self::ALL.get(usize::from(id.index_id));
        device.copied().unwrap_or_default()
    }

    fn to_id(&self) -> DeviceId {
        DeviceId {
            type_id: 0,
            index_id: *self as u16,
        }
    }
}
