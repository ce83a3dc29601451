//! The devices: simulators, told apart by what they look for and by the host's threads that they take.
//!
//! CubeCL names a device by a number of 16 bits. Of ours the high four are the [`Mode`], counted from 1, and the others
//! the threads. Programs that know nothing of this number their devices from 0: each of those does what the environment
//! says. A number is a device, with memory of its own.

use crate::environment::settings;
use crate::streams::Sharing;
use cranelift_thisgpu::SimConfig;
use cubecl_common::device::{Device, DeviceId};
use std::fmt;

/// Local memory of a unit, in bytes: kernels of CubeCL may have large arrays of their own.
const STACK_BYTES: u32 = 256 * 1024;

/// Where the device's own allocations begin, in bytes.
const ALLOCATION_BYTES: u64 = 256;

/// The widest access, in bytes.
const ACCESS_BYTES: u64 = 16;

/// The bits of a device's number below its mode: its threads.
const THREADS_BITS: u32 = 12;

/// What a device does beside running kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Nothing, and is as fast as it can.
    Plain,
    /// Looks for races, reads of what nobody wrote, and barriers that only a part of a cube reaches; a finding is an
    /// error of the launch.
    Checking,
    /// Counts cycles, which profiles report; a hazard is an error of the launch.
    Timed,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 3] = [Mode::Plain, Mode::Checking, Mode::Timed];

    /// As [`DEVICE_VARIABLE`](crate::DEVICE_VARIABLE) has it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Plain => "plain",
            Mode::Checking => "checking",
            Mode::Timed => "timed",
        }
    }
}

/// A device. Each is a simulator of its own, with memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThisgpuDevice {
    mode: Mode,
    threads: u16,
}

impl ThisgpuDevice {
    /// Runs; the default.
    pub const PLAIN: ThisgpuDevice = ThisgpuDevice::new(Mode::Plain);
    /// Looks for mistakes of kernels: [`Mode::Checking`].
    pub const CHECKING: ThisgpuDevice = ThisgpuDevice::new(Mode::Checking);
    /// Counts cycles: [`Mode::Timed`].
    pub const TIMED: ThisgpuDevice = ThisgpuDevice::new(Mode::Timed);

    /// Threads of the host that a device may be given.
    pub const MOST_THREADS: u16 = (1 << THREADS_BITS) - 1;

    /// A device with this mode, which takes as many threads as the host runs at a time.
    pub const fn new(mode: Mode) -> ThisgpuDevice {
        ThisgpuDevice { mode, threads: 0 }
    }

    /// The same with so many threads of the host for the cubes of a launch, at most [`Self::MOST_THREADS`]; 0 stands
    /// for as many as the host runs at a time.
    pub const fn with_threads(self, threads: u16) -> ThisgpuDevice {
        let threads = match threads > Self::MOST_THREADS {
            true => Self::MOST_THREADS,
            false => threads,
        };
        ThisgpuDevice { threads, ..self }
    }

    /// What it does beside running kernels.
    pub fn mode(self) -> Mode {
        self.mode
    }

    /// Threads of the host; 0: as many as it runs at a time.
    pub fn threads(self) -> u16 {
        self.threads
    }

    /// The device's number for CubeCL, which [`Device::from_id`] reads.
    pub fn number(self) -> u16 {
        (self.mode as u16 + 1) << THREADS_BITS | self.threads
    }

    /// What the device with a number does; none if there is no such. A number without a mode is that of a default one.
    pub fn from_number(number: u16) -> Option<ThisgpuDevice> {
        let Some(mode) = (number >> THREADS_BITS).checked_sub(1) else {
            return Some(ThisgpuDevice::default());
        };
        let mode = *Mode::ALL.get(usize::from(mode))?;
        Some(ThisgpuDevice::new(mode).with_threads(number & Self::MOST_THREADS))
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
        match self.mode {
            Mode::Checking => Sharing::Nothing,
            Mode::Plain | Mode::Timed => Sharing::Pages,
        }
    }

    /// What the simulator does.
    pub(crate) fn config(self) -> SimConfig {
        let default = SimConfig::default();
        let (budget, launch_budget) = match settings().budget {
            None => (default.budget, default.launch_budget),
            Some(budget) => {
                let together = SimConfig::LAUNCH_BUDGET / SimConfig::BUDGET;
                (budget, budget.saturating_mul(together))
            }
        };
        SimConfig {
            budget,
            launch_budget,
            check: self.mode == Mode::Checking,
            timed: self.mode == Mode::Timed,
            profile: self.mode == Mode::Timed && settings().profile.is_some(),
            threads: self.threads.into(),
            stack_bytes: STACK_BYTES,
            ..default
        }
    }
}

impl fmt::Display for ThisgpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mode.name())?;
        match self.threads {
            0 => Ok(()),
            1 => f.write_str(", 1 thread"),
            threads => write!(f, ", {threads} threads"),
        }
    }
}

impl Default for ThisgpuDevice {
    /// The device that [`DEVICE_VARIABLE`](crate::DEVICE_VARIABLE) and [`THREADS_VARIABLE`](crate::THREADS_VARIABLE)
    /// name, or the plain one.
    fn default() -> Self {
        settings().device
    }
}

impl Device for ThisgpuDevice {
    /// The device with this number. Of one that there is not, every launch is an error; it is like the default one.
    fn from_id(id: DeviceId) -> Self {
        Self::from_number(id.index_id).unwrap_or_default()
    }

    fn to_id(&self) -> DeviceId {
        DeviceId {
            type_id: 0,
            index_id: self.number(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CubeCL keeps numbers only, and every device has one of its own.
    #[test]
    fn numbers_name_devices() {
        let threads = [0, 1, 7, ThisgpuDevice::MOST_THREADS, u16::MAX];
        let mut seen = std::collections::BTreeSet::new();
        for mode in Mode::ALL {
            for threads in threads {
                let device = ThisgpuDevice::new(mode).with_threads(threads);
                assert_eq!(ThisgpuDevice::from_id(device.to_id()), device);
                seen.insert(device.number());
            }
        }
        // The last two are one.
        assert_eq!(seen.len(), Mode::ALL.len() * (threads.len() - 1));
        for number in [0, 1, 15, ThisgpuDevice::MOST_THREADS] {
            let default = Some(ThisgpuDevice::default());
            assert_eq!(ThisgpuDevice::from_number(number), default);
            assert!(!seen.contains(&number), "{number} is the environment's");
        }
        assert_eq!(ThisgpuDevice::from_number(0x4000), None);
        assert_eq!(ThisgpuDevice::from_number(u16::MAX), None);
    }
}
