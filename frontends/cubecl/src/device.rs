//! The devices: simulators, told apart by what they look for.

use crate::streams::Sharing;
use cranelift_thisgpu::SimConfig;
use cubecl_common::device::{Device, DeviceId};

/// Local memory of a unit, in bytes: kernels of CubeCL may have large arrays of their own.
const STACK_BYTES: u32 = 256 * 1024;

/// Where the device's own allocations begin, in bytes.
const ALLOCATION_BYTES: u64 = 256;

/// The widest access, in bytes.
const ACCESS_BYTES: u64 = 16;

/// With this in the environment, the default device is another one: `plain`, `checking` or `timed`.
pub const DEVICE_VARIABLE: &str = "CUBECL_THISGPU_DEVICE";

/// A device. Each is a simulator of its own, with memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThisgpuDevice {
    /// As fast as it can; the default.
    Plain,
    /// Looks for races, reads of what nobody wrote, and barriers that only a part of a cube reaches; a finding is an
    /// error of the launch.
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

    fn name(self) -> &'static str {
        match self {
            ThisgpuDevice::Plain => "plain",
            ThisgpuDevice::Checking => "checking",
            ThisgpuDevice::Timed => "timed",
        }
    }

    /// Where a buffer may begin, in bytes, and what its size is rounded up to.
    pub(crate) fn alignment(self) -> u64 {
        match self.sharing() {
            Sharing::Pages => ALLOCATION_BYTES,
            Sharing::Nothing => ACCESS_BYTES,
        }
    }

    /// Whether buffers share allocations: not where accesses beside them are looked for.
    pub(crate) fn sharing(self) -> Sharing {
        match self {
            ThisgpuDevice::Checking => Sharing::Nothing,
            ThisgpuDevice::Plain | ThisgpuDevice::Timed => Sharing::Pages,
        }
    }

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

impl Default for ThisgpuDevice {
    /// The device that [`DEVICE_VARIABLE`] names, or the plain one.
    fn default() -> Self {
        let Ok(wanted) = std::env::var(DEVICE_VARIABLE) else {
            return ThisgpuDevice::Plain;
        };
        let found = Self::ALL.into_iter().find(|device| device.name() == wanted);
        found.unwrap_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            log::warn!("{DEVICE_VARIABLE}={wanted} is no device; there are {known}");
            ThisgpuDevice::Plain
        })
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
